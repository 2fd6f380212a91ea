"""The kit that every page is made of: one document with one stylesheet, and one table, section, curve and highlight.

It knows plain values alone. A page stands beside what it shows: explanations, evaluations, comparisons, fits and runs.
"""

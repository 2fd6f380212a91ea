"""The networks' inner loops in native code, and their loader.

Nothing is loaded before its first use; where it is absent torch does the work.
"""

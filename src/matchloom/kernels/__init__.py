"""The native spatial GRU and k-max pooling, and their loader.

Nothing is loaded before its first use; where it is absent torch does the work.
"""

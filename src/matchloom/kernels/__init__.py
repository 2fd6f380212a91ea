"""The native spatial GRU and its loader. Nothing is loaded before its first use; without it torch does the work."""

"""Pairs from files and corpora, negatives and groups for them, batches of them."""

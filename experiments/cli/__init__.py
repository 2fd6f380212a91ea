"""The commands of `python -m experiments`, which are also those of `matchloom` in a clone."""

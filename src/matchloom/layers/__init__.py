"""Tensors in, tensors out: the blocks that models compose. Paper letters are used as names here."""

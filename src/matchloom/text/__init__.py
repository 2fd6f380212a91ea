"""Texts into words, words into numbers."""

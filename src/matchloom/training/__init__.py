"""From labelled pairs to a matcher: losses, one frozen configuration, one plain loop.

Nothing is imported here: `config.py` needs no torch, and the commands show its defaults.
"""

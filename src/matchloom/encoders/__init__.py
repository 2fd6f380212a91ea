"""What turns the positions of a text into one vector each.

Nothing is imported here: an encoder is found (`library.py`) without torch, which only reading with one needs.
"""

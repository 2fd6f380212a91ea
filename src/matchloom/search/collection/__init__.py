"""Collection: answers with their questions, that are asked, changed while they are asked, and kept in a folder.

What `fit` keeps and what `index` makes is a collection, with or without weights that its questions taught. Its methods
are `collection.py`; how one is made is `making.py`, how it is asked `asking.py`, how it follows its folder and is
changed `living.py`, how a refit takes its place `switching.py`. What a search does is `search/state.py`.
"""

from __future__ import annotations

from matchloom.search.changes import entries_of
from matchloom.search.collection.collection import Collection
from matchloom.search.collection.switching import Feedback
from matchloom.search.refitting import Refit
from matchloom.search.state import ENCODER_ALONE, FITTED, WITH_ENCODER

__all__ = ["ENCODER_ALONE", "FITTED", "WITH_ENCODER", "Collection", "Feedback", "Refit", "entries_of"]

"""What graphs take: the fields of texts and batches by name, the same for torch and for numpy."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import pad

from matchloom.batches import Lexical, PairBatch, Pieces, Texts

# What each input is; N texts, of at most L words and P pieces. In the match graph the fields of either side have left_
# or right_ before their names.
MEANINGS = {
    "words": "(N, L) the id of each word in vocab.txt, 0 behind a text",
    "lengths": "(N,) how many words each text has; a text without any has one, with the id 1",
    "lexical_keys": "(N, 3, L) hashes of each word, its stem and its first four characters",
    "lexical_idf": "(N, 3, L) how rare each of these is, from 0 to 1",
    "piece_ids": "(N, P) pieces by tokenizer.json, with a special token at either end; 0 after the text",
    "piece_words": "(N, P) the word that each piece belongs to, -1 for none",
    "piece_lengths": "(N,) how many pieces each text has, special tokens included",
    "left": "the output of the encode graph for the left texts",
    "right": "the output of the encode graph for the right texts",
    "left_rows": "(B,) for each pair the row of its left text",
    "right_rows": "(B,) for each pair the row of its right text",
    "features": "(B, F) features of the pair",
}


def fields(texts: Texts, side: str = "") -> dict[str, Tensor]:
    """The fields that texts have, by name."""
    found = {"words": texts.words, "lengths": texts.lengths}
    if texts.lexical is not None:
        found |= {"lexical_keys": texts.lexical.keys, "lexical_idf": texts.lexical.idf}
    if texts.pieces is not None:
        pieces = texts.pieces
        found |= {"piece_ids": pieces.ids, "piece_words": pieces.words, "piece_lengths": pieces.lengths}
    return {side + name: x for name, x in found.items()}


def texts_of(named: dict[str, Tensor], side: str = "") -> Texts:
    """The texts that have these fields."""
    own = {name.removeprefix(side): x for name, x in named.items() if name.startswith(side)}
    lexical = Lexical(own["lexical_keys"], own["lexical_idf"]) if "lexical_keys" in own else None
    pieces = Pieces(own["piece_ids"], own["piece_words"], own["piece_lengths"]) if "piece_ids" in own else None
    return Texts(own["words"], own["lengths"], lexical, pieces)


def pair_fields(batch: PairBatch) -> dict[str, Tensor]:
    """The fields of a batch by name, all that the match graph takes beside the encoded texts."""
    named = {**fields(batch.left, "left_"), **fields(batch.right, "right_")}
    named |= {"left_rows": batch.left_rows, "right_rows": batch.right_rows}
    return named if batch.features is None else {**named, "features": batch.features}


def batch_of(named: dict[str, Tensor]) -> PairBatch:
    """The batch that has these fields."""
    left, right = texts_of(named, "left_"), texts_of(named, "right_")
    return PairBatch(left, right, named["left_rows"], named["right_rows"], named.get("features"))


def at_least(texts: Texts, words: int) -> Texts:
    """The same texts, padded to so many words where they have fewer."""
    more = (0, max(0, words - texts.words.shape[1]))
    lexical = texts.lexical
    if lexical is not None:
        lexical = Lexical(pad(lexical.keys, more), pad(lexical.idf, more))
    return Texts(pad(texts.words, more), texts.lengths, lexical, texts.pieces)

"""A pretrained BERT-like transformer as an encoder: BERT, MiniLM, RoBERTa, DistilBERT and what has their layout.

    x_0 = norm(word + place)                            of every piece; the first type of a text is part of its places
    a   = norm(x + W_o attention(W_q x, W_k x, W_v x))  all pieces of the text see each other
    x'  = norm(a + W_2 gelu(W_1 a))                     a layer; the last one's x' are a piece's numbers

A word is the mean of its pieces. Punctuation and the marks around a text take part in attention and belong to no word:
on the development questions of TREC-QA and WikiQA, untrained MaxSim has AP .860 and .673 without punctuation, .867 and
.709 with it, and .852 and .697 where it takes part in the match as words do. What comes out of the last layer equals
the transformers package's to 1e-5 (tests/encoders), which is not needed to run it.

Two texts can be read as one, which is what such encoders were pretrained on: a mark, the left text, a mark, the right
text (whose positions have the second type's vector besides), a mark.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, embedding, gelu, scaled_dot_product_attention
from torch.onnx import is_in_onnx_export

from matchloom.batches import Pieces, Texts
from matchloom.data.reader import WordPieces
from matchloom.encoders.base import Encoder
from matchloom.encoders.pieces import PieceTokenizer
from matchloom.encoders.pooling import FIRST, MEAN, counts_of, pieces_of, pooled, pooling_of, words_of
from matchloom.encoders.shape import ACTIVATIONS, Shape
from matchloom.encoders.text_by_text import TextByText
from matchloom.encoders.weights import read_folder
from matchloom.layers.links import attention_mask
from matchloom.text.tokenize import Span
from matchloom.types import MatchloomError

_log = logging.getLogger("matchloom")


class Layer(nn.Module):
    """Attention and a feed-forward network; behind each, the sum with its input is normalised."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        D, self.heads, self.gelu = shape.size, shape.heads, ACTIVATIONS[shape.activation]
        self.qkv, self.out = _linear(D, 3 * D), _linear(D, D)
        self.up, self.down = _linear(D, shape.inner), _linear(shape.inner, D)
        self.first, self.second = nn.LayerNorm(D, shape.epsilon), nn.LayerNorm(D, shape.epsilon)

    def forward(self, x: Tensor, mask: Tensor, p: float) -> Tensor:
        """(N, P, D) -> (N, P, D); the mask is as scaled_dot_product_attention takes it, p what dropout leaves out."""
        N, P, D = x.shape
        q, k, v = self.qkv(x).view(N, P, 3, self.heads, D // self.heads).permute(2, 0, 3, 1, 4)
        seen = scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p)
        x = self.first(x + dropout(self.out(seen.transpose(1, 2).reshape(N, P, D)), p))
        inner = gelu(self.up(x), approximate=self.gelu)
        return self.second(x + dropout(self.down(inner), p))  # type: ignore[no-any-return]


class Transformer(Encoder):
    """One vector for every word: the mean of its pieces behind the last layer. Made by `Transformer.load(folder)`.

    While it is trained it reads `training_pieces` of a text, and drops out as its config tells; its table of pieces and
    that of positions stay as they are.
    """

    vocabulary = None
    draws_at_random = True
    reads_pairs = True
    # What moves such weights without spoiling them: settings of `TrainConfig`, whatever the model above.
    trained_with: ClassVar[dict[str, int | float | str | bool]] = {
        "loss": "softmax",
        "optimizer": "adamw",
        "learning_rate": 0.001,
        "encoder_rate": 5e-5,
        "weight_decay": 0.01,
        "clip": 1.0,
        "warmup": 0.1,
        "batch": 40,
        "positives": 3,
        "negatives": 6,
        "epochs": 2,
        "patience": 2,
    }

    def __init__(
        self, shape: Shape, tokenizer: PieceTokenizer, *, training_pieces: int = 48, pooling: str = MEAN
    ) -> None:
        """An encoder whose weights are to be loaded."""
        super().__init__()
        self.shape, self.tokenizer, self.size, self.pooling = shape, tokenizer, shape.size, pooling
        self.training_pieces = training_pieces
        self.learns, self._told = 0, False  # how many of the last layers are being trained
        self.kept: Callable[[Pieces], Tensor | None] | None = None  # what it has read already: embedding_cache.py
        self.words = nn.Parameter(torch.empty(shape.vocabulary, shape.size))
        self.places = nn.Parameter(torch.empty(shape.positions, shape.size))
        self.second = nn.Parameter(torch.empty(shape.size))  # what its type adds to a text behind another
        self.norm = nn.LayerNorm(shape.size, shape.epsilon)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))

    @classmethod
    def load(cls, folder: Path | str, *, pieces: int | None = None) -> Transformer:
        """The encoder of a folder with config.json, model.safetensors and tokenizer.json; what is damaged is refused.

        `pieces` is how many pieces of a text it reads; by default what the folder says it was made for, or 256.
        """
        shape, tokenizer, weights, pooling = read_folder(Path(folder), most=pieces)
        made = cls(shape, tokenizer, pooling=pooling)
        made.load_state_dict(weights, assign=True)
        return made

    @classmethod
    def of_settings(cls, settings: dict[str, Any]) -> Transformer:
        """The encoder that a saved matcher's settings describe, without its weights."""
        try:
            shape, most = Shape(**settings["shape"]), int(settings["pieces"])
            training, text = int(settings["training_pieces"]), str(settings["tokenizer.json"])
            pooling = pooling_of(settings.get("pooling", MEAN))
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, MatchloomError):
                raise
            raise MatchloomError(
                "the matcher's encoder has other settings than this matchloom knows", code="wrong_format"
            ) from None
        pieces = PieceTokenizer(text, shape, min(most, shape.most_pieces), prompt=str(settings.get("prompt", "")))
        return cls(shape, pieces, training_pieces=training, pooling=pooling)

    def settings(self) -> dict[str, Any]:
        """Its sizes, how much it reads, and the whole tokenizer.json, which a matcher keeps as a file of its own."""
        return {
            "kind": "transformer",
            "shape": self.shape.as_dict(),
            "pieces": self.tokenizer.most,
            "training_pieces": self.training_pieces,
            **({} if self.pooling == MEAN else {"pooling": self.pooling}),
            **({"prompt": self.tokenizer.prompt} if self.tokenizer.prompt else {}),
            "tokenizer.json": self.tokenizer.text,
        }

    def word_pieces(self, text: str, words: Sequence[Span]) -> WordPieces:
        """A text as pieces, punctuation included, which belongs to no word."""
        return self.tokenizer(text, words)

    def forward(self, texts: Texts) -> Tensor:
        """(N, L, D); of a word that was cut away nothing but zeros."""
        pieces = self._read(texts)
        return words_of(self.positions(pieces), pieces, texts.words.shape[1])

    def mean(self, texts: Texts) -> Tensor:
        """The mean of all pieces, marks and punctuation included, or the first mark's vector, by `pooling`. (N, D)"""
        pieces = self._read(texts)
        return pooled(self.positions(pieces), pieces.mask, pieces.lengths, self.pooling)

    def shares(self, texts: Texts) -> Tensor:
        """A word has as much of the mean as it has pieces, and none of the first mark. (N, L)"""
        pieces = self._read(texts)
        counts = counts_of(pieces, texts.words.shape[1])
        return torch.zeros_like(counts) if self.pooling == FIRST else counts / pieces.lengths[:, None]

    def seen(self, texts: Texts) -> Tensor:
        """True where there is a word of which it has read a piece. (N, L)"""
        words = self._read(texts).words
        N, L = texts.words.shape
        found = torch.zeros(N, L + 1, dtype=torch.int64, device=words.device)  # graphs scatter no truth values
        return found.scatter(1, torch.where(words < 0, L, words), 1)[:, :L] > 0

    def positions(self, pieces: Pieces) -> Tensor:
        """The vectors of all pieces behind the last layer, (N, P, D)."""
        known = self.known(pieces)
        return self._layers(self.embed(pieces), pieces.mask[:, None, None, :]) if known is None else known

    def known(self, pieces: Pieces) -> Tensor | None:
        """The same of texts that were all read before and kept, or None."""
        return None if self.kept is None else self.kept(pieces)

    def embed(self, pieces: Pieces) -> Tensor:
        """The vector of each piece and that of its place, added up. (N, P, D)"""
        first = self.shape.first
        return embedding(pieces.ids, self.words) + self.places[first : first + pieces.ids.shape[1]]

    def together(self, left: Texts, right: Texts, links: Tensor | None = None) -> Tensor:
        """The vector of the first mark. At most half the positions are the left text's, the rest the right one's."""
        x, pieces = self.embed_pairs(left, right)
        return self._layers(x, attention_mask(pieces.words, pieces.mask, links))[:, 0]

    def embed_pairs(self, left: Texts, right: Texts) -> tuple[Tensor, Pieces]:
        """What goes into the first layer where two texts are read as one, and the pieces of both. (B, P, D)"""
        first = _truncate(self._read(left), self.shape.most_pieces // 2)
        pieces = self._joined(first, self._read(right), left.words.shape[1])
        x = self.embed(pieces)
        if self.tokenizer.second_typed:
            x = x + (_places(pieces.ids) >= first.lengths[:, None])[:, :, None] * self.second
        return x, pieces

    def _layers(self, x: Tensor, mask: Tensor) -> Tensor:
        """From what goes into the first layer to what comes out of the last. (N, P, D)"""
        # Nothing is dropped out below the first layer that learns.
        p, fixed = self.shape.dropout if self.training else 0.0, len(self.layers) - self.learns
        x = dropout(self.norm(x), 0.0 if fixed else p)
        for n, layer in enumerate(self.layers):
            x = layer(x, mask, p if n >= fixed else 0.0)
        return x

    def _joined(self, left: Pieces, right: Pieces, L: int) -> Pieces:
        """Two texts in a row, with marks between; the right one's words are counted on from L. Cut where places end."""
        # The left text brings the first mark between them; what is between besides stands for the right one's own.
        marks = self.tokenizer.between[1:]
        others = right.ids.new_tensor(marks).expand(right.ids.shape[0], len(marks))
        ids = torch.cat([left.ids, others, right.ids[:, 1:]], 1)
        theirs = torch.where(right.words < 0, -1, right.words + L)
        words = torch.cat([left.words, torch.full_like(others, -1), theirs[:, 1:]], 1)
        lengths = left.lengths + right.lengths + len(marks) - 1
        # The left text's padding goes behind both.
        P, places, own = left.ids.shape[1], _places(ids), left.lengths[:, None]
        order = torch.where(places < own, places, (places - own + P).clamp_max(ids.shape[1] - 1))
        joined = Pieces(ids.gather(1, order), words.gather(1, order), lengths)
        self._tell_if_long(joined)
        return _truncate(joined, self.shape.most_pieces)

    def _tell_if_long(self, joined: Pieces) -> None:
        """Say once that pairs are cut; in training they are cut anyway."""
        most = self.shape.most_pieces
        if self._told or self.training or is_in_onnx_export() or joined.ids.shape[1] <= most:
            return
        longest = int(joined.lengths.max())
        if longest > most:
            self._told = True
            _log.warning("a pair of %d pieces was cut to its first %d, and so are all longer pairs", longest, most)

    def _read(self, texts: Texts) -> Pieces:
        """The pieces to read: in training not all of a long text."""
        pieces = pieces_of(texts)
        return _truncate(pieces, self.training_pieces) if self.training and self.learns else pieces

    def in_double(self) -> Encoder:
        """The same, reading text by text: see `TextByText`."""
        return TextByText(self)

    def learn(self, wanted: bool, *, layers: int = 0) -> None:
        """Training moves the layers, never the tables of pieces and positions: few texts would tell too few of them."""
        if layers > len(self.layers):
            raise MatchloomError(f"layers is {layers}, and the encoder has {len(self.layers)}", code="bad_value")
        self.learns = (layers or len(self.layers)) if wanted else 0
        self.requires_grad_(False)
        for layer in self.layers[len(self.layers) - self.learns :]:
            layer.requires_grad_(True)

    def parts(self, decay: float) -> list[tuple[list[nn.Parameter], float]]:
        """The layers that learn; with a decay the last one at the whole rate, and each at a part of the next one's."""
        if decay == 1:
            return super().parts(decay)
        learning = self.layers[len(self.layers) - self.learns :]
        return [(list(layer.parameters()), decay ** (self.learns - 1 - n)) for n, layer in enumerate(learning)]

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *more: Any) -> None:
        """Matchers that were saved before pairs could be read as one have no second type; they never ask for it."""
        state_dict.setdefault(f"{prefix}second", torch.zeros_like(self.second))
        super()._load_from_state_dict(state_dict, prefix, *more)

    def digest(self) -> bytes:
        """Of its settings and weights: what a resumed run must have in common with the first."""
        made = hashlib.sha256(json.dumps(self.settings(), sort_keys=True).encode())
        for name, x in sorted(self.state_dict().items()):
            made.update(name.encode() + x.cpu().numpy().tobytes())
        return made.digest()


def _truncate(pieces: Pieces, most: int) -> Pieces:
    """The first pieces of each text; where it went on, its closing mark stands at the cut."""
    if pieces.ids.shape[1] <= most and not is_in_onnx_export():  # a graph must be ready for longer ones
        return pieces
    closing = pieces.ids.gather(1, (pieces.lengths - 1)[:, None])
    ids, words, cut = pieces.ids[:, :most], pieces.words[:, :most], (pieces.lengths > most)[:, None]
    last = cut & (_places(ids) == most - 1)
    return Pieces(torch.where(last, closing, ids), words.masked_fill(last, -1), pieces.lengths.clamp_max(most))


def _places(ids: Tensor) -> Tensor:
    """0, 1, 2 ... of the pieces of a row. (P,)"""
    return torch.arange(ids.shape[1], device=ids.device)


def _linear(inputs: int, outputs: int) -> nn.Linear:
    """Without a first draw: its weights are loaded."""
    return nn.utils.skip_init(nn.Linear, inputs, outputs)  # type: ignore[no-any-return, no-untyped-call]

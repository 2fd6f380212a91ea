"""A matcher: a trained model with its vocabulary and tokenizer. It scores, ranks, traces, and lives in a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from matchloom.data.batching import deduplicate, features_of, make_batch
from matchloom.data.reader import Reader
from matchloom.data.tokenized import Rows, TokenizedTexts
from matchloom.encoders import Transformer, build_encoder
from matchloom.encoders.library import find_encoder
from matchloom.matcher_files import Saved, digest, digest_of, read_matcher, write_matcher
from matchloom.models import Argument, build_model, model_arguments, sentence_vector_models
from matchloom.models.base import PairModel
from matchloom.parallel import inline_pool, thread_pool
from matchloom.progress import track
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vocab import Vocab
from matchloom.types import MatchloomError, Pair, PairBatch, Ranked, Scores, Texts, Trace

Cut = Callable[[str], list[str]]
NOTHING_LEARNT = "nothing_learnt"  # of `Matcher.training`: why its scores mean nothing
_BATCH = 256
_CELLS = 256 * 64 * 64  # pairs of words in a batch: networks keep some hundred bytes for each
_QUERY = 64  # words of a query, when candidates are encoded before it is known
_CHUNK = 8192  # pairs whose texts are held as arrays at a time


class _Block(NamedTuple):
    rows: np.ndarray[Any, np.dtype[np.int64]]
    table: TokenizedTexts
    texts: Texts
    encoded: Tensor


class Candidates(NamedTuple):
    """Texts encoded once by a matcher, to be ranked for many queries."""

    texts: list[str]
    blocks: list[_Block]  # texts of similar length together, so that little padding is read


class ReadPairs(NamedTuple):
    """Pairs as a matcher reads them: two tables of texts, each pair's row of either, and the pairs' features."""

    left: TokenizedTexts
    right: TokenizedTexts
    left_rows: Rows
    right_rows: Rows
    features: NDArray[np.float32] | None


@dataclass
class Matcher:
    """Scores how well two texts match, ranks candidates, and says why. Made by `train`, or by `Matcher.load`."""

    name: str
    arguments: dict[str, Argument]
    model: PairModel
    reader: Reader
    training: dict[str, Any] = field(default_factory=dict)

    @property
    def tokenizer(self) -> Tokenizer:
        """How texts become words."""
        return self.reader.tokenizer

    @property
    def vocab(self) -> Vocab:
        """The words that are known."""
        return self.reader.vocab

    def refuse_if_unlearnt(self, name: str) -> None:
        """Refuse a matcher whose training ended at chance: what is built on it would be worse than without.

        Args:
            name: What the user calls it.
        """
        reason = self.training.get(NOTHING_LEARNT)
        if reason is not None:
            raise MatchloomError(f"{name} has learnt nothing ({reason}); train it again with other settings or pairs")

    @property
    def device(self) -> torch.device:
        """Where the model's weights are."""
        return self.model.encoder.device

    @property
    def digest(self) -> str:
        """What decides the scores (model, arguments, vocabulary, tokenizer, weights) as one number in hexadecimals."""
        decides = [self.name, self.arguments, self.tokenizer]
        if self.model.encoder.vocabulary is None:  # how it cuts words into pieces, and its sizes
            decides.append(self.model.encoder.settings())
        settings = json.dumps(decides, sort_keys=True)
        weights = {name: x.detach().cpu() for name, x in self.model.state_dict().items()}
        return digest(f"{settings}\n{self.vocab.dumps()}{digest_of(weights)}".encode())

    def read(self, texts: Sequence[str], *, cut: Cut | None = None, progress: bool = False) -> TokenizedTexts:
        """The texts as this matcher reads them; `cut` as for `Reader.read`.

        Args:
            texts: Any texts.
            cut: What gives the words of a text, capitals included, where somebody has them; else the tokenizer does.
            progress: Whether to show a bar.
        """
        model = self.model
        return self.reader.read(
            texts, lexical=model.needs_lexical, features=model.needs_features, cut=cut, progress=progress
        )

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        """The score of each pair; higher matches better.

        Args:
            pairs: Any pairs; labels are not looked at.
            progress: Whether to show a bar.
        """
        starts = track(range(0, len(pairs), _CHUNK), "scoring", show=progress and len(pairs) > _CHUNK)
        chunks = [self.score_read(self.read_pairs(pairs[start : start + _CHUNK])) for start in starts]
        return np.concatenate([np.empty(0, dtype=np.float32), *chunks])

    def read_pairs(self, pairs: Sequence[Pair], *, cut: Cut | None = None) -> ReadPairs:
        """Pairs made ready to be scored, once or many times; `cut` as for `Reader.read`.

        Args:
            pairs: Any pairs; labels are not looked at.
            cut: As for `read`.
        """
        left_texts, left_rows = deduplicate([pair.query for pair in pairs])
        right_texts, right_rows = deduplicate([pair.text for pair in pairs])
        left, right = self.read(left_texts, cut=cut), self.read(right_texts, cut=cut)
        return ReadPairs(left, right, left_rows, right_rows, features_of(left, right, left_rows, right_rows))

    def score_read(self, pairs: ReadPairs) -> Scores:
        """The score of each pair that `read_pairs` made ready.

        Args:
            pairs: What `read_pairs` made.
        """
        left, right, left_rows, right_rows, features = pairs
        scores = np.empty(len(left_rows), dtype=np.float32)
        if not len(scores):
            return scores
        order = np.lexsort((left.lengths[left_rows], right.lengths[right_rows]))
        cuts = _cuts(order, right.lengths[right_rows], left.lengths[left_rows])
        batches = (
            make_batch(left, right, left_rows[cut], right_rows[cut], None if features is None else features[cut])
            for cut in cuts
        )
        with thread_pool() as pool:
            for cut, values in zip(cuts, pool.map(self._score_batch, batches), strict=True):
                scores[cut] = values
        return scores

    def _score_batch(self, batch: PairBatch) -> Scores:
        with torch.inference_mode():
            return self.model(batch.to(self.device)).cpu().numpy()  # type: ignore[no-any-return]

    def encode(self, texts: Sequence[str], *, progress: bool = False) -> Candidates:
        """Encode candidate texts once, for `rank` with many queries.

        Args:
            texts: The candidates, in the order to which `Ranked.index` refers.
            progress: Whether to show a bar.
        """
        return Candidates(list(texts), list(self._blocks(texts, self.model.encode_right, progress)))

    def vectors(self, texts: Sequence[str], *, side: str = "left", progress: bool = False) -> NDArray[np.float32]:
        """The sentence vector of each text, read as a query (side "left") or as a candidate ("right"). (N, n)

        Args:
            texts: Any texts.
            side: Read them as queries ("left") or as candidates ("right").
            progress: Whether to show a bar.
        """
        if not self.model.sentence_vectors:
            raise MatchloomError(
                f"{self.name} has no sentence vectors; train one of {', '.join(sentence_vector_models())} for them"
            )
        if self.model.needs_features:
            raise MatchloomError(
                f"this {self.name} also looks at features of both texts ({self.model.needs_features}), which sentence "
                "vectors do not hold; train it without features for them"
            )
        if side not in ("left", "right"):
            raise MatchloomError(f"side {side!r} is unknown; choose left (queries) or right (candidates)")
        # A wordless text gives the width where there are no texts at all.
        blocks = self._blocks(texts or [""], self.model.encode if side == "left" else self.model.encode_right, progress)
        found = [(block.rows, block.encoded.cpu().numpy()) for block in blocks]
        vectors = np.empty((len(texts), found[0][1].shape[1]), dtype=np.float32)
        for rows, encoded in found if texts else []:
            vectors[rows] = encoded
        return vectors

    def _blocks(self, texts: Sequence[str], encode: Callable[[Texts], Tensor], progress: bool) -> Iterator[_Block]:
        """The texts encoded, those of similar length together."""
        if not texts:
            return
        table = self.read(texts, progress=progress)
        order = np.argsort(table.lengths, kind="stable")
        cuts = _cuts(order, table.lengths, np.full_like(table.lengths, _QUERY))

        def work(rows: Rows) -> _Block:
            padded = table.pad(rows).to(self.device)
            with torch.inference_mode():
                return _Block(rows, table, padded, encode(padded))

        with thread_pool() if len(cuts) > 1 else inline_pool(1) as pool:  # threads for one question would cost more
            yield from track(pool.map(work, cuts), "encoding", total=len(cuts), show=progress)

    def rank(self, query: str, candidates: Sequence[str] | Candidates, *, top: int | None = None) -> list[Ranked]:
        """The candidates by falling score; equal scores are ordered by their text, not by their place.

        Args:
            query: The query.
            candidates: Texts, or what `encode` made of them.
            top: At most this many; all by default.
        """
        found = candidates if isinstance(candidates, Candidates) else self.encode(candidates)
        if not found.texts:
            return []
        scores = self.query_scores(query, found)
        if top is not None and top < len(scores):  # only what can be among the first is sorted
            places = np.flatnonzero(scores >= np.partition(scores, -top)[-top])
        else:
            places = np.arange(len(scores))
        best = sorted(places.tolist(), key=lambda n: (-scores[n], found.texts[n]))[:top]
        return [Ranked(n, float(scores[n]), found.texts[n]) for n in best]

    def query_scores(self, query: str, candidates: Candidates) -> Scores:
        """The score of each candidate, in the order in which they were encoded.

        Args:
            query: The query.
            candidates: What `encode` made of the texts.
        """
        scores = np.empty(len(candidates.texts), dtype=np.float32)
        with thread_pool() as pool:
            table = self.read([query])
            with torch.inference_mode():
                left = table.pad(np.zeros(1, dtype=np.int64)).to(self.device)
                encoded = self.model.encode(left)
            for block, values in zip(
                candidates.blocks,
                pool.map(lambda block: self._match_block(table, left, encoded, block), candidates.blocks),
                strict=True,
            ):
                scores[block.rows] = values
        return scores

    def _match_block(self, table: TokenizedTexts, left: Texts, encoded: Tensor, block: _Block) -> Scores:
        places = torch.arange(len(block.rows), device=self.device)
        found = features_of(table, block.table, np.zeros_like(block.rows), block.rows)
        features = None if found is None else torch.from_numpy(found).to(self.device)
        batch = PairBatch(left, block.texts, torch.zeros_like(places), places, features)
        with torch.inference_mode():
            return self.model.match(encoded, block.encoded, batch).cpu().numpy()

    def match_vectors(self, left: NDArray[np.float32], right: NDArray[np.float32]) -> Scores:
        """The scores of one left sentence vector with each of N right ones, as `score` gives them for their texts.

        What `vectors` made may be stored: an archive matches a new question without reading its answers again.

        Args:
            left: The vector of one query, (n,).
            right: The vectors of N candidates, (N, n).
        """
        rows = torch.arange(len(right), device=self.device)
        unread = Texts(rows.new_zeros((1, 1)), rows.new_ones(1))  # a model with sentence vectors looks at nothing else
        batch = PairBatch(unread, unread, torch.zeros_like(rows), rows)
        with (
            inline_pool(1),
            torch.inference_mode(),
        ):  # too little work for threads, which would only wait for each other
            first, second = (torch.tensor(side, device=self.device) for side in (left[None], right))
            return self.model.match(first, second, batch).cpu().numpy()

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """The words of both texts and why they got their score.

        Args:
            query: One text.
            text: The other.
        """
        table = self.read([query, text])
        batch = make_batch(table, table, np.array([0]), np.array([1]))
        words = [self.tokenizer(side) or ["(no words)"] for side in (query, text)]
        return words[0], words[1], self.model.trace(batch.to(self.device))[0]

    def save(self, folder: Path | str) -> None:
        """Write matcher.json, vocab.txt and weights.safetensors (and an encoder's tokenizer.json); all or none.

        Args:
            folder: Where; it is made if it is new.
        """
        settings = {
            "model": self.name,
            "arguments": {**model_arguments(self.name), **self.arguments},  # defaults may change
            "encoder": self.model.encoder.settings(),
            "tokenizer": self.tokenizer._asdict(),
            "training": self.training,
        }
        write_matcher(Path(folder), Saved(settings, self.vocab, self.model.state_dict()))

    @classmethod
    def untrained(cls, encoder: Path | str, *, tokenizer: Tokenizer | None = None) -> Matcher:
        """A matcher that needs no pairs to learn from: a pretrained encoder, and each query word's best partner.

        Args:
            encoder: The folder of an encoder, or its name as `matchloom encoders` lists it.
            tokenizer: How a text becomes words; English by default, as many as the encoder could read.
        """
        made = Transformer.load(find_encoder(encoder))
        name, arguments = "late_interaction", {"k": 1}
        model = build_model(name, arguments, made, seed=0).eval()
        reader = made.reader(tokenizer or Tokenizer(max_words=made.tokenizer.most), Vocab([], [], [], 0))
        return cls(name, dict(arguments), model, reader, {"untrained": True})

    @classmethod
    def load(cls, folder: Path | str) -> Matcher:
        """Read a saved matcher. A folder that is missing, cut off, altered or newer is refused in one line.

        Args:
            folder: A saved matcher.
        """
        about, vocab, weights = read_matcher(Path(folder))
        encoder = build_encoder(about["encoder"], vocab)
        model = build_model(about["model"], about["arguments"], encoder, seed=0)
        try:
            model.load_state_dict(weights)
        except RuntimeError:
            raise MatchloomError(
                f"the weights in {folder} do not fit this version's {about['model']}; train the matcher again"
            ) from None
        model.eval()
        reader = encoder.reader(Tokenizer(**about["tokenizer"]), vocab)
        return cls(about["model"], about["arguments"], model, reader, about["training"])


def _cuts(order: Rows, lengths: Rows, others: Rows) -> list[Rows]:
    """Pieces of an order of pairs that fit a batch, by their number and by how many pairs of words they hold."""
    cuts = []
    for start in range(0, len(order), _BATCH):
        block = order[start : start + _BATCH]
        cells = len(block) * int(lengths[block].max()) * int(others[block].max())
        cuts += np.array_split(block, min(len(block), -(-cells // _CELLS) or 1))
    return cuts

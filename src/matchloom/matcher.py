"""A matcher: a trained model with its vocabulary and tokenizer. It scores, ranks, traces, and lives in a folder."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors
import safetensors.torch
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from matchloom.data.batching import Rows, TokenizedTexts, deduplicate, features_of, make_batch
from matchloom.files import atomic_write
from matchloom.models import SENTENCE_VECTORS, Argument, build_model
from matchloom.models.base import PairModel
from matchloom.parallel import inline_pool, thread_pool
from matchloom.progress import track
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vocab import Vocab
from matchloom.types import MatchloomError, Pair, PairBatch, Ranked, Scores, Texts, Trace

FORMAT = 1
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


@dataclass
class Matcher:
    """Scores how well two texts match, ranks candidates, and says why. Made by `train`, or by `Matcher.load`."""

    name: str
    arguments: dict[str, Argument]
    model: PairModel
    vocab: Vocab
    tokenizer: Tokenizer
    training: dict[str, Any] = field(default_factory=dict)

    @property
    def device(self) -> torch.device:
        """Where the model's weights are."""
        return self.model.embedding.weight.device

    @property
    def digest(self) -> str:
        """What decides the scores (model, arguments, vocabulary, tokenizer, weights) as one number in hexadecimals."""
        settings = json.dumps([self.name, self.arguments, self.tokenizer], sort_keys=True)
        weights = {name: x.detach().cpu() for name, x in self.model.state_dict().items()}
        return _digest(f"{settings}\n{self.vocab.dumps()}{_digest_of(weights)}".encode())

    def table(self, texts: Sequence[str], *, progress: bool = False) -> TokenizedTexts:
        """The texts as this matcher reads them."""
        lexical, features = self.model.needs_lexical, self.model.needs_features
        return TokenizedTexts(texts, self.vocab, self.tokenizer, lexical=lexical, features=features, progress=progress)

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        """The score of each pair; higher matches better."""
        scores = np.empty(len(pairs), dtype=np.float32)
        starts = track(range(0, len(pairs), _CHUNK), "scoring", show=progress and len(pairs) > _CHUNK)
        with thread_pool() as pool:
            for start in starts:
                chunk = pairs[start : start + _CHUNK]
                left_texts, left_rows = deduplicate([pair.query for pair in chunk])
                right_texts, right_rows = deduplicate([pair.text for pair in chunk])
                left, right = self.table(left_texts), self.table(right_texts)
                order = np.lexsort((left.lengths[left_rows], right.lengths[right_rows]))
                cuts = _cuts(order, right.lengths[right_rows], left.lengths[left_rows])
                features = features_of(left, right, left_rows, right_rows)
                batches = (
                    make_batch(
                        left, right, left_rows[cut], right_rows[cut], None if features is None else features[cut]
                    )
                    for cut in cuts
                )
                for cut, values in zip(cuts, pool.map(self._score_batch, batches), strict=True):
                    scores[start + cut] = values
        return scores

    def _score_batch(self, batch: PairBatch) -> Scores:
        with torch.inference_mode():
            return self.model(batch.to(self.device)).cpu().numpy()  # type: ignore[no-any-return]

    def encode(self, texts: Sequence[str], *, progress: bool = False) -> Candidates:
        """Encode candidate texts once, for `rank` with many queries."""
        return Candidates(list(texts), list(self._blocks(texts, self.model.encode_right, progress)))

    def vectors(self, texts: Sequence[str], *, side: str = "left", progress: bool = False) -> NDArray[np.float32]:
        """The sentence vector of each text, read as a query (side "left") or as a candidate ("right"). (N, n)"""
        if self.name not in SENTENCE_VECTORS:
            raise MatchloomError(
                f"{self.name} has no sentence vectors; train one of {', '.join(SENTENCE_VECTORS)} for them"
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
        table = self.table(texts, progress=progress)
        order = np.argsort(table.lengths, kind="stable")
        cuts = _cuts(order, table.lengths, np.full_like(table.lengths, _QUERY))

        def work(rows: Rows) -> _Block:
            padded = table.pad(rows).to(self.device)
            with torch.inference_mode():
                return _Block(rows, table, padded, encode(padded))

        with thread_pool() if len(cuts) > 1 else inline_pool(1) as pool:  # threads for one question would cost more
            yield from track(pool.map(work, cuts), "encoding", total=len(cuts), show=progress)

    def rank(self, query: str, candidates: Sequence[str] | Candidates, *, top: int | None = None) -> list[Ranked]:
        """The candidates by falling score; equal scores are ordered by their text, not by their place."""
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
        """The score of each candidate, in the order in which they were encoded."""
        scores = np.empty(len(candidates.texts), dtype=np.float32)
        with thread_pool() as pool:
            table = self.table([query])
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
        """The words of both texts and why they got their score."""
        table = self.table([query, text])
        batch = make_batch(table, table, np.array([0]), np.array([1]))
        words = [self.tokenizer(side) or ["(no words)"] for side in (query, text)]
        return words[0], words[1], self.model.trace(batch.to(self.device))[0]

    def save(self, folder: Path | str) -> None:
        """Write matcher.json, vocab.txt and weights.safetensors; all three or none."""
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise MatchloomError(f"{folder} cannot be made a matcher's folder: {error.strerror}") from None
        about = {
            "format": FORMAT,
            "model": self.name,
            "arguments": self.arguments,
            "dimensions": self.model.embedding.embedding_dim,
            "tokenizer": self.tokenizer._asdict(),
            "versions": {"torch": str(torch.__version__)},
            "training": self.training,
        }
        vocab = self.vocab.dumps()
        settings = json.dumps(about, indent=2, ensure_ascii=False) + "\n"
        tensors = {name: x.detach().cpu().contiguous() for name, x in self.model.state_dict().items()}
        seals = {
            "settings": _digest(settings.encode()),
            "vocab": _digest(vocab.encode()),
            "weights": _digest_of(tensors),
        }
        with ExitStack() as stack:
            files = [stack.enter_context(atomic_write(folder / "vocab.txt", "wb"))]
            files.append(stack.enter_context(atomic_write(folder / "matcher.json", "wb")))
            files.append(stack.enter_context(atomic_write(folder / "weights.safetensors", "wb")))
            contents = (vocab.encode(), settings.encode(), safetensors.torch.save(tensors, metadata=seals))
            for file, content in zip(files, contents, strict=True):
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # all three are on the disk before the first takes its name

    @classmethod
    def load(cls, folder: Path | str) -> Matcher:
        """Read a saved matcher. A folder that is missing, cut off, altered or newer is refused in one line."""
        folder = Path(folder)
        files = {name: folder / name for name in ("matcher.json", "vocab.txt", "weights.safetensors")}
        if not folder.is_dir():
            raise MatchloomError(f"{folder} is not a folder; expected a matcher saved by 'matchloom train'")
        for name, path in files.items():
            if not path.is_file():
                raise MatchloomError(f"{folder} has no {name}, so it is no whole matcher; train or copy it again")
        settings = files["matcher.json"].read_bytes()
        try:
            about = json.loads(settings)
            version = int(about["format"])
        except (ValueError, TypeError, KeyError):
            raise MatchloomError(
                f"{files['matcher.json']} is damaged or cut off; train or copy the matcher again"
            ) from None
        if version > FORMAT:
            raise MatchloomError(
                f"{folder} has format {version}, this matchloom reads up to {FORMAT}; upgrade matchloom"
            )
        try:
            with safetensors.safe_open(files["weights.safetensors"], "pt") as opened:
                seals = opened.metadata() or {}
                tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 (no mapping)
        except safetensors.SafetensorError as error:
            raise MatchloomError(
                f"{files['weights.safetensors']} is damaged or cut off ({error}); copy it again"
            ) from None
        found = {
            "settings": _digest(settings),
            "vocab": _digest(files["vocab.txt"].read_bytes()),
            "weights": _digest_of(tensors),
        }
        for part, name in (("settings", "matcher.json"), ("vocab", "vocab.txt"), ("weights", "weights.safetensors")):
            if seals.get(part) != found[part]:
                raise MatchloomError(f"{folder / name} was altered since the matcher was saved; copy or train it again")
        vocab = Vocab.load(files["vocab.txt"])
        embedding = nn.Embedding(len(vocab), about["dimensions"], padding_idx=0)
        model = build_model(about["model"], about["arguments"], embedding, seed=0)
        try:
            model.load_state_dict(tensors)
        except RuntimeError:
            raise MatchloomError(
                f"the weights in {folder} do not fit this version's {about['model']}; train the matcher again"
            ) from None
        model.eval()
        return cls(about["model"], about["arguments"], model, vocab, Tokenizer(**about["tokenizer"]), about["training"])


def _cuts(order: Rows, lengths: Rows, others: Rows) -> list[Rows]:
    """Pieces of an order of pairs that fit a batch, by their number and by how many pairs of words they hold."""
    cuts = []
    for start in range(0, len(order), _BATCH):
        block = order[start : start + _BATCH]
        cells = len(block) * int(lengths[block].max()) * int(others[block].max())
        cuts += np.array_split(block, min(len(block), -(-cells // _CELLS) or 1))
    return cuts


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _digest_of(tensors: dict[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        x = tensors[name]
        digest.update(f"{name} {x.dtype} {tuple(x.shape)}\n".encode())
        digest.update(x.contiguous().flatten().view(torch.uint8).numpy().tobytes() if x.numel() else b"")
    return digest.hexdigest()

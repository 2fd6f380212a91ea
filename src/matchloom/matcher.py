"""A matcher: a trained model with its vocabulary and tokenizer. It scores, ranks, traces, and lives in a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from matchloom.artifact import as_saved
from matchloom.basics.arrays import distinct
from matchloom.basics.parallel import inline_pool, thread_pool
from matchloom.basics.progress import track
from matchloom.basics.validation import at_least_one, many_texts, one_path, one_text
from matchloom.batches import PairBatch, Texts
from matchloom.calibration import LOG_ODDS, Calibration
from matchloom.data.batching import distinct_pairs, features_of, make_batch, pad_texts
from matchloom.data.formats import PairsLike, scorable
from matchloom.data.reader import Reader
from matchloom.data.tokenized import Rows, TokenizedTexts, deduplicate
from matchloom.encoders.kinds import build_encoder
from matchloom.encoders.library import find_encoder
from matchloom.encoders.transformer import Transformer
from matchloom.matcher_files import REMEDY, SavedMatcher, digest, digest_of, read_matcher, write_matcher
from matchloom.models import MODELS, Argument, Kind, build_model, model_arguments, model_name, sentence_vector_models
from matchloom.models.base import PairModel
from matchloom.models.ensemble import Ensemble
from matchloom.models.float64_copy import Float64Copy, rounded
from matchloom.models.own import check_saved
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vocab import Vocab
from matchloom.types import MatchloomError, Pair, Ranked, Ranking, Scores, Trace

Tokenize = Callable[[str], list[str]]
Positions = NDArray[np.int8]  # of one text, (words, n); see layers/int8_positions.py
CALIBRATION = "calibration"  # of `Matcher.training`: threshold, slope and offset from its development pairs
NOTHING_LEARNT = "nothing_learnt"  # of `Matcher.training`: why its scores mean nothing
UNTRAINED = ("late_interaction", "sentence_bert")  # models that need no training over a pretrained encoder
_BATCH = 256
_CELLS = 128 * 64 * 64  # pairs of words in a batch: networks keep some hundred bytes for each, in double precision
_QUERY = 64  # words of a query, when candidates are encoded before it is known
_PIECES = 256 * 64  # in a block of encoded texts, each some thousand bytes until it is part of a word
_ALONE = 1024  # words that are read by one core, as a second one would not save what it costs
_CHUNK = 8192  # pairs whose texts are held as arrays at a time


class _Block(NamedTuple):
    rows: Rows  # of the table: texts of like length
    places: Rows  # for each row its place among the encoded texts; rows with the same positions share one
    table: TokenizedTexts
    texts: Texts
    encoded: Tensor


class Candidates(NamedTuple):
    """Texts encoded once by a matcher, to be ranked for many queries."""

    texts: list[str]
    blocks: list[_Block]  # texts of similar length together, so that little padding is read

    def __repr__(self) -> str:
        return f"Candidates({len(self.texts):,} texts)"


class ReadPairs(NamedTuple):
    """Pairs as a matcher reads them: two tables of texts, each pair's row of either, and the pairs' features."""

    left: TokenizedTexts
    right: TokenizedTexts
    left_rows: Rows
    right_rows: Rows
    features: NDArray[np.float32] | None


@dataclass
class Matcher:
    """Scores how well two texts match, ranks candidates, and says why. Made by `train`, or by `Matcher.load`.

    It needs the extra `networks`.
    """

    name: str
    arguments: dict[str, Argument]
    model: PairModel
    reader: Reader
    training: dict[str, Any] = field(default_factory=dict)
    _double: Float64Copy = field(default_factory=Float64Copy, init=False, repr=False, compare=False)

    def __repr__(self) -> str:
        arguments = "".join(f", {name}={value!r}" for name, value in self.arguments.items())
        return f"Matcher({self.name}{arguments}; {len(self.vocab):,} words)"

    @property
    def tokenizer(self) -> Tokenizer:
        """How texts become words."""
        return self.reader.tokenizer

    @property
    def kind(self) -> Kind:
        """What its model was made by: a name of `MODELS`, or a class of the user's own."""
        if self.name in MODELS:
            return self.name
        return type(self.model.each()[0] if isinstance(self.model, Ensemble) else self.model)

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
            raise MatchloomError(
                f"{name} has learnt nothing ({reason}); train it again with other settings or pairs", code="failed"
            )

    @property
    def device(self) -> torch.device:
        """Where the model's weights are."""
        return self.model.encoder.device

    @property
    def calibration(self) -> Calibration | None:
        """What scores mean, where independent development pairs told it or cross-entropy made them log-odds."""
        if found := self.training.get(CALIBRATION):
            return Calibration(**found)
        return LOG_ODDS if self.training.get("config", {}).get("loss") == "cross_entropy" else None

    @property
    def threshold(self) -> float | None:
        """The score from which on a pair is said to match; None where training left the scale of scores open."""
        return None if self.calibration is None else self.calibration.threshold

    def probabilities(self, scores: Scores) -> Scores | None:
        """How likely pairs with these scores match; None where training left the scale open. See `threshold`.

        Args:
            scores: What `score` gave.
        """
        return None if self.calibration is None else self.calibration.probabilities(scores)

    @property
    def digest(self) -> str:
        """What decides the scores (model, arguments, vocabulary, tokenizer, weights) as one number in hexadecimals."""
        arguments = {**model_arguments(self.kind), **self.arguments}  # as they are saved
        decides = [self.name, arguments, self.tokenizer]
        if self.model.encoder.vocabulary is None:  # how it cuts words into pieces, and its sizes
            decides.append(self.model.encoder.settings())
        settings = json.dumps(decides, sort_keys=True)
        weights = {name: x.detach().cpu() for name, x in self.model.state_dict().items()}
        return digest(f"{settings}\n{self.vocab.dumps()}{digest_of(weights)}".encode())

    def read(self, texts: Sequence[str], *, tokenize: Tokenize | None = None, progress: bool = False) -> TokenizedTexts:
        """The texts as this matcher reads them; `tokenize` as for `Reader.read`.

        Args:
            texts: Any texts.
            tokenize: What gives the words of a text, capitals included; without it the matcher's tokenizer does.
            progress: Whether to show a bar.
        """
        model = self.model
        return self.reader.read(
            texts, lexical=model.needs_lexical, features=model.needs_features, tokenize=tokenize, progress=progress
        )

    @overload
    def score(self, pairs: str, text: str) -> float: ...

    @overload
    def score(self, pairs: PairsLike, *, progress: bool = False) -> Scores: ...

    def score(self, pairs: PairsLike, text: str | None = None, *, progress: bool = False) -> Scores | float:
        """The score of each pair, or of one query and text; higher matches better.

        A score depends on its pair alone, to the last digit: not on the other pairs, their order or the threads.
        Texts that are the same to the model, such as "X" and "X !", get the same score.

        Args:
            pairs: Pairs, tuples, dicts or a data frame, whose labels are not looked at; or one query.
            text: The text to that one query.
            progress: Whether to show a bar.
        """
        if text is not None:
            return float(self.score([Pair(one_text("query", pairs), one_text("text", text))])[0])
        pairs = scorable(pairs)
        starts = track(range(0, len(pairs), _CHUNK), "scoring", show=progress and len(pairs) > _CHUNK)
        chunks = [self.score_read(self.read_pairs(pairs[start : start + _CHUNK])) for start in starts]
        return np.concatenate([np.empty(0, dtype=np.float32), *chunks])

    def read_pairs(self, pairs: Sequence[Pair], *, tokenize: Tokenize | None = None) -> ReadPairs:
        """Pairs made ready to be scored, once or many times; `tokenize` as for `Reader.read`.

        Args:
            pairs: Any pairs; labels are not looked at.
            tokenize: As for `read`.
        """
        left_texts, left_rows = deduplicate([pair.query for pair in pairs])
        right_texts, right_rows = deduplicate([pair.text for pair in pairs])
        left, right = self.read(left_texts, tokenize=tokenize), self.read(right_texts, tokenize=tokenize)
        return ReadPairs(left, right, left_rows, right_rows, features_of(left, right, left_rows, right_rows))

    def score_read(self, pairs: ReadPairs) -> Scores:
        """The score of each pair that `read_pairs` made ready.

        Args:
            pairs: What `read_pairs` made.
        """
        left, right, left_rows, right_rows, features = pairs
        if not len(left_rows):
            return np.empty(0, dtype=np.float32)
        left_rows, right_rows = left.same[left_rows], right.same[right_rows]
        first, of_pair = distinct_pairs(left_rows, right_rows, features)
        left_rows, right_rows = left_rows[first], right_rows[first]
        features = None if features is None else features[first]
        scores = np.empty(len(first), dtype=np.float32)
        ours, theirs = left.read_lengths[left_rows], right.read_lengths[right_rows]
        order = np.lexsort((ours, theirs))
        cuts = _cuts(order, theirs, ours if left.pieces is None else np.maximum(ours, theirs))
        cuts = _divided(cuts, ours + theirs, left.pieces is not None)
        batches = (
            make_batch(left, right, left_rows[cut], right_rows[cut], None if features is None else features[cut])
            for cut in cuts
        )
        model = self._double.of(self.model)

        def work(batch: PairBatch) -> Scores:
            with torch.inference_mode():
                return rounded(model(_as_read_by(model, batch.to(self.device))))

        with thread_pool() as pool:
            for cut, values in zip(cuts, pool.map(work, batches), strict=True):
                scores[cut] = values
        return scores[of_pair]

    def encode(self, texts: Sequence[str], *, progress: bool = False) -> Candidates:
        """Encode candidate texts once, for `rank` with many queries.

        Args:
            texts: The candidates, in the order to which `Ranked.index` refers.
            progress: Whether to show a bar.
        """
        texts = many_texts("texts", texts)
        return Candidates(list(texts), list(self._blocks(texts, self._double.of(self.model).encode_right, progress)))

    def vectors(self, texts: Sequence[str], *, side: str = "left", progress: bool = False) -> NDArray[np.float32]:
        """The sentence vector of each text, read as a query (side "left") or as a candidate ("right"). (N, n)

        Args:
            texts: Any texts.
            side: Read them as queries ("left") or as candidates ("right").
            progress: Whether to show a bar.
        """
        if not self.model.sentence_vectors:
            raise MatchloomError(
                f"{self.name} has no sentence vectors; train one of {', '.join(sentence_vector_models())} for them",
                code="not_supported",
            )
        if self.model.needs_features:
            raise MatchloomError(
                f"this {self.name} also looks at features of both texts ({self.model.needs_features}), which sentence "
                "vectors do not hold; train it without features for them",
                code="not_supported",
            )
        if side not in ("left", "right"):
            raise MatchloomError(
                f"side {side!r} is unknown; choose left (queries) or right (candidates)", code="unknown_name"
            )
        texts = many_texts("texts", texts)
        # A wordless text gives the width where there are no texts at all.
        model = self._double.of(self.model)
        blocks = self._blocks(texts or [""], model.encode if side == "left" else model.encode_right, progress)
        found = [(block.rows, rounded(block.encoded)[block.places]) for block in blocks]
        vectors = np.empty((len(texts), found[0][1].shape[1]), dtype=np.float32)
        for rows, encoded in found if texts else []:
            vectors[rows] = encoded
        return vectors

    def _blocks(self, texts: Sequence[str], encode: Callable[[Texts], Tensor], progress: bool) -> Iterator[_Block]:
        """The texts encoded, those with the same positions once, those of similar length together."""
        if not texts:
            return
        table = self.read(texts, progress=progress)
        once = distinct(table.same)
        read = table.read_lengths
        order = once[np.argsort(read[once], kind="stable")]
        cuts = _cuts(order, read, np.full_like(read, _QUERY if table.pieces is None else _CELLS // _PIECES))
        cuts = _divided(cuts, read, table.pieces is not None)
        numbers = np.empty(len(table), dtype=np.int64)
        numbers[order] = np.arange(len(order))
        numbers = numbers[table.same]  # of each text, in the order in which the distinct ones are encoded
        by_number = np.argsort(numbers, kind="stable")

        def work(cut: Rows) -> _Block:
            padded = pad_texts(table, cut, right=True).to(self.device)
            start = int(numbers[cut[0]])
            low, high = np.searchsorted(numbers[by_number], (start, start + len(cut)))
            rows = by_number[low:high]
            with torch.inference_mode():
                return _Block(rows, numbers[rows] - start, table, padded, encode(padded))

        with thread_pool() if len(cuts) > 1 else inline_pool(1) as pool:  # threads for one question would cost more
            yield from track(pool.map(work, cuts), "encoding", total=len(cuts), show=progress)

    @overload
    def rank(  # type: ignore[overload-overlap]  # a text is many letters too
        self, query: str, candidates: Iterable[str] | Candidates, *, top: int | None = None
    ) -> Ranking: ...

    @overload
    def rank(
        self, query: Iterable[str], candidates: Iterable[str] | Candidates, *, top: int | None = None
    ) -> list[Ranking]: ...

    def rank(
        self, query: str | Iterable[str], candidates: Iterable[str] | Candidates, *, top: int | None = None
    ) -> Ranking | list[Ranking]:
        """The candidates by falling score; equal scores are ordered by their text, not by their place.

        Args:
            query: The query; many of them, in a list, give a ranking each.
            candidates: Texts, or what `encode` made of them.
            top: At most this many; all by default.
        """
        queries = None if isinstance(query, str) else many_texts("query", query)
        if top is not None:
            at_least_one("top", top)
        if not isinstance(candidates, Candidates):
            candidates = self.encode(many_texts("candidates", candidates))
        if queries is not None:
            return [self.rank(one, candidates, top=top) for one in queries]
        query, found = one_text("query", query), candidates
        if not found.texts:
            return Ranking()
        scores = self.query_scores(query, found)
        if top is not None and top < len(scores):  # only what can be among the first is sorted
            places = np.flatnonzero(scores >= np.partition(scores, -top)[-top])
        else:
            places = np.arange(len(scores))
        best = sorted(places.tolist(), key=lambda n: (-scores[n], found.texts[n]))[:top]
        return Ranking(Ranked(n, float(scores[n]), found.texts[n]) for n in best)

    def query_scores(self, query: str, candidates: Candidates) -> Scores:
        """The score of each candidate, in the order in which they were encoded.

        Args:
            query: The query.
            candidates: What `encode` made of the texts.
        """
        scores = np.empty(len(candidates.texts), dtype=np.float32)
        several = len(candidates.blocks) > 1 and torch.get_num_threads() > 1
        with thread_pool() if several else inline_pool(1) as pool:
            table, model = self.read([query]), self._double.of(self.model)
            with torch.inference_mode():
                left = pad_texts(table, np.zeros(1, dtype=np.int64)).to(self.device)
                encoded = model.encode(left)

            def work(block: _Block) -> Scores:
                zeros = np.zeros_like(block.rows)
                features = features_of(table, block.table, zeros, block.rows)
                if features is None:  # then each text that was encoded is a pair with the query
                    places, found, of_row = torch.arange(len(block.encoded)), None, block.places
                else:
                    first, of_row = distinct_pairs(zeros, block.places, features)
                    places, found = torch.from_numpy(block.places[first]), torch.from_numpy(features[first])
                batch = PairBatch(left, block.texts, torch.zeros_like(places), places, found).to(self.device)
                with torch.inference_mode():
                    return rounded(model.match(encoded, block.encoded, _as_read_by(model, batch)))[of_row]

            for block, values in zip(candidates.blocks, pool.map(work, candidates.blocks), strict=True):
                scores[block.rows] = values
        return scores

    def match_vectors(self, left: NDArray[np.float32], right: NDArray[np.float32]) -> Scores:
        """The scores of one left sentence vector with each of N right ones, as `score` gives them for their texts.

        They may differ in the seventh digit, which the vectors do not hold, and depend on nothing but the two vectors.
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
            model = self._double.of(self.model)
            first, second = (torch.tensor(side, device=self.device) for side in (left[None], right))
            if model is not self.model:
                first, second = first.double(), second.double()
            return rounded(model.match(first, second, batch))

    def positions(self, texts: Sequence[str], *, side: str = "left", progress: bool = False) -> list[Positions]:
        """The positions of each text as numbers of eight bits, for a late-interaction matcher: (words, n) each.

        Args:
            texts: Any texts.
            side: Read them as queries ("left") or as candidates ("right").
            progress: Whether to show a bar.
        """
        if not self.model.stored_positions:
            raise MatchloomError(
                f"this {self.name} has no positions that can be stored; late_interaction has", code="not_supported"
            )
        model = self._double.of(self.model)
        found: dict[int, Positions] = {}
        texts = many_texts("texts", texts)
        for block in self._blocks(texts, model.encode if side == "left" else model.encode_right, progress):
            encoded, lengths = block.encoded.cpu().numpy(), block.texts.lengths.tolist()
            for row, place in zip(block.rows.tolist(), block.places.tolist(), strict=True):
                found[row] = encoded[place, : lengths[place]]
        return [found[row] for row in range(len(texts))]

    def match_positions(self, left: Positions, right: Sequence[Positions]) -> Scores:
        """The scores of one query's positions with those of N candidates, as `score` gives them for their texts.

        Args:
            left: What `positions` made of one query.
            right: What it made of N candidates.
        """
        scores = np.empty(len(right), dtype=np.float32)
        order = np.argsort([len(one) for one in right], kind="stable")
        model = self._double.of(self.model)
        unread = Texts(torch.zeros((1, 1), dtype=torch.int64), torch.ones(1, dtype=torch.int64))
        query = torch.tensor(left[None], device=self.device)
        with inline_pool(1), torch.inference_mode():
            for start in range(0, len(order), _BATCH):
                cut = order[start : start + _BATCH]
                padded = np.full((len(cut), len(right[cut[-1]]), left.shape[1]), -1, np.int8)  # as what was not read
                for n, row in enumerate(cut):
                    padded[n, : len(right[row])] = right[row]
                rows = torch.arange(len(cut), device=self.device)
                batch = PairBatch(unread, unread, torch.zeros_like(rows), rows)
                scores[cut] = rounded(model.match(query, torch.from_numpy(padded).to(self.device), batch))
        return scores

    def trace(self, query: str, text: str) -> tuple[list[str], list[str], Trace]:
        """The words of both texts and why they got their score.

        Args:
            query: One text.
            text: The other.
        """
        table = self.read([one_text("query", query), one_text("text", text)])
        batch = make_batch(table, table, np.array([0]), np.array([1]))
        words = [self.tokenizer(side) or ["(no words)"] for side in (query, text)]
        model = self._double.of(self.model)
        found = model.trace(_as_read_by(model, batch.to(self.device)))[0]
        # The score as `score` gives it; what is rounded off belongs to the residual.
        score = float(rounded(torch.tensor(found.score, dtype=torch.float64)))
        residual = found.residual + score - found.score
        return words[0], words[1], found._replace(score=score, residual=residual, grid=found.grid.astype(np.float32))

    def save(self, folder: Path | str) -> None:
        """Write matcher.json, vocab.txt and weights.safetensors (and an encoder's tokenizer.json); all or none.

        Args:
            folder: Where; it is made if it is new.
        """
        settings = {
            "model": self.name,
            "arguments": {**model_arguments(self.kind), **self.arguments},  # defaults may change
            "encoder": self.model.encoder.settings(),
            "tokenizer": self.tokenizer._asdict(),
            "training": self.training,
        }
        write_matcher(Path(folder), SavedMatcher(settings, self.vocab, self.model.state_dict()))

    @classmethod
    def untrained(
        cls,
        encoder: Path | str,
        *,
        model: str = "late_interaction",
        size: int | None = None,
        texts: Iterable[str] | None = None,
        bits: int = 8,
        tokenizer: Tokenizer | None = None,
        progress: bool = False,
    ) -> Matcher:
        """A matcher that needs no pairs to learn from: a pretrained encoder, and each query word's best partner.

        Args:
            encoder: The folder of an encoder, or its name as `matchloom encoders` lists it.
            model: late_interaction, or sentence_bert (the cosine of two texts' means), which has no size and no bits.
            size: Numbers that are kept of each position, such as 128; all of the encoder's by default.
            texts: Texts like those to be matched, which tell the numbers worth keeping; some hundred do.
            bits: Of each number, 8 or 32.
            tokenizer: How a text becomes words; English by default, as many as the encoder could read.
            progress: Whether to show a bar.
        """
        made = Transformer.load(find_encoder(encoder))
        if model not in UNTRAINED:
            raise MatchloomError(
                f"model is {model!r}, expected one that needs no training: {', '.join(UNTRAINED)}", code="unknown_name"
            )
        arguments: dict[str, Argument] = {}
        if model == "late_interaction":
            arguments = {"k": 1, "bits": bits}
            if size is not None:
                at_least_one("size", size)
                arguments["size"] = size
        built = build_model(model, arguments, made, seed=0).eval()
        reader = made.reader(tokenizer or Tokenizer(max_words=made.tokenizer.most), Vocab([], [], [], 0))
        matcher = cls(model, dict(arguments), built, reader, {"untrained": True})
        if "size" in arguments and size is not None and size < made.size:
            known = sorted(set(many_texts("texts", () if texts is None else texts)))  # in whatever order they came
            if not known:
                raise MatchloomError(
                    f"size {size} keeps a part of the encoder's {made.size} numbers; give texts that tell which",
                    code="conflict",
                )
            table = matcher.read(known)
            built.pretrain(table, matcher.read([]), np.empty((0, 3), dtype=np.int64), 0, progress)
        return matcher

    @classmethod
    def load(cls, folder: Path | str, *, model: Kind | None = None, device: str | torch.device = "cpu") -> Matcher:
        """Read a saved matcher. A folder that is missing, cut off, altered or newer is refused in one line.

        Args:
            folder: A saved matcher.
            model: The class, where it was trained with one of your own: code is never saved, nor run from a folder.
            device: Where its weights go, such as "cuda".
        """
        given = None if model is None else model_name(model)
        about, vocab, weights = read_matcher(one_path("folder", folder))
        check_saved(folder, about["model"], given, MODELS)
        with as_saved(folder, REMEDY):
            encoder = build_encoder(about["encoder"], vocab)
            network = build_model(model or about["model"], about["arguments"], encoder, seed=0)
            reader = encoder.reader(Tokenizer.from_dict(about["tokenizer"]), vocab)
        try:
            network.load_state_dict(weights)
        except RuntimeError:
            raise MatchloomError(
                f"the weights in {folder} do not fit this version's {about['model']}; train the matcher again",
                code="mismatch",
            ) from None
        try:
            network.eval().to(torch.device(device))
        except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
            reason = str(error).partition("\n")[0]
            raise MatchloomError(
                f"device is {device!r}, which cannot be used: {reason[:100]}", code="bad_value"
            ) from None
        return cls(about["model"], about["arguments"], network, reader, about["training"])


def _as_read_by(model: PairModel, batch: PairBatch) -> PairBatch:
    """A batch in the precision of the model that reads it."""
    return batch.double() if any(x.dtype == torch.float64 for x in model.parameters()) else batch


def _cuts(order: Rows, lengths: Rows, others: Rows) -> list[Rows]:
    """Pieces of an order of pairs that fit a batch, by their number and by how many pairs of words they hold."""
    cuts = []
    for start in range(0, len(order), _BATCH):
        block = order[start : start + _BATCH]
        cells = len(block) * int(lengths[block].max()) * int(others[block].max())
        cuts += np.array_split(block, min(len(block), -(-cells // _CELLS) or 1))
    return cuts


def _divided(cuts: list[Rows], read: Rows, pieces: bool) -> list[Rows]:
    """Few large pieces, each in as many of like work as there are cores; a transformer's are large from 2 texts on."""
    threads, words = torch.get_num_threads(), sum(int(read[cut].sum()) for cut in cuts)
    if threads == 1 or len(cuts) >= 2 * threads or (not pieces and words <= _ALONE):
        return cuts
    divided = []
    for cut in cuts:
        own = read[cut]
        middles = np.cumsum(own) - own / 2
        shares = np.arange(1, threads) * (own.sum() / threads)
        divided += [some for some in np.split(cut, np.searchsorted(middles, shares)) if len(some)]
    return divided

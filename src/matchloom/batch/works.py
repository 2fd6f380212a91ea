"""What is done to pairs: a work is a few plain settings; opened, it is one function from an Arrow table to another.

The function keeps nothing from one table to the next, so that any engine may call it, in any order, as often as it
likes: `batch/run.py` in one process, `batch/on_ray.py` in Ray's actors, Spark by `mapInArrow` (see `map_in_arrow`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast

from matchloom import artifact
from matchloom.artifact.manifest import manifest_name, sha256
from matchloom.basics.extras import named_extras, need
from matchloom.data.formats import read_pairs
from matchloom.data.formats.columns import Columns
from matchloom.data.formats.parquet import table_rows
from matchloom.data.formats.scored import added_names
from matchloom.data.formats.values import pair_of
from matchloom.data.identity import normalize_text, with_ids
from matchloom.lexical import LEXICAL, fit_scorer
from matchloom.text.tokenize import Tokenizer
from matchloom.types import Calibrates, MatchloomError, Pair, Scorer

Function = Callable[[Any], Any]  # a pyarrow.Table into another
ROWS = 8_192  # of a table that a function is given


class Work(Protocol):
    """Plain settings, and what they mean."""

    whole: ClassVar[bool]  # whether the function needs all rows of a shard at once

    def open(self) -> Function:
        """The function; what it needs is loaded now, once."""
        ...

    def digest(self) -> str:
        """Of the settings and of what they name: another one makes other rows."""
        ...


@dataclass(frozen=True)
class ScoreWork:
    """A column `score`, and `probability` where the scorer knows how likely a match is.

    Args:
        scorer: A folder that `fit` or `train` made, or the name of a lexical scorer.
        collection: For a lexical scorer: a file of pairs or texts in which words are counted.
        tokenizer: How a lexical scorer finds words.
        columns: Your names of the columns.
        seed: Of the scorer `random`.
    """

    scorer: str
    collection: str | None = None
    tokenizer: str = "english"
    columns: Mapping[str, str] | None = None
    seed: int = 0
    whole: ClassVar[bool] = False

    def open(self) -> Function:
        """The function that scores."""
        scorer = self._scorer()
        calibrated = scorer if isinstance(scorer, Calibrates) and scorer.threshold is not None else None

        def score(table: Any) -> Any:
            scores = scorer.score(pairs_of(table, self.columns))
            added: dict[str, Any] = {"score": scores}
            if calibrated is not None:
                added["probability"] = calibrated.probabilities(scores)
            return with_columns(table, added, scorer.name)

        return score

    def digest(self) -> str:
        """Of the settings and the scorer."""
        return digest_of(self, [self.scorer, self.collection])

    def _scorer(self) -> Scorer:
        if self.scorer not in LEXICAL:
            return cast(Scorer, artifact.load(self.scorer))
        if self.collection is None:
            raise MatchloomError(
                f"{self.scorer} counts words in a collection, and no shard knows all texts: name one (collection=FILE)",
                code="no_data",
            )
        texts = [pair.text for pair in read_pairs(self.collection, columns=self.columns)]
        return fit_scorer(self.scorer, texts, tokenizer=Tokenizer(self.tokenizer), seed=self.seed)


@dataclass(frozen=True)
class EncodeWork:
    """A column `vector`: what a matcher with sentence vectors makes of one side.

    Args:
        matcher: The matcher's folder.
        side: Which column is encoded: text or query.
        columns: Your names of the columns.
    """

    matcher: str
    side: str = "text"
    columns: Mapping[str, str] | None = None
    whole: ClassVar[bool] = False

    def open(self) -> Function:
        """The function that encodes."""
        if self.side not in ("query", "text"):
            raise MatchloomError(f"side is {self.side!r}; expected query or text", code="unknown_name")
        with named_extras(self.matcher):
            from matchloom.matcher import Matcher

            matcher = Matcher.load(self.matcher)
        arrow = need("pyarrow")

        def encode(table: Any) -> Any:
            texts = [getattr(pair, self.side) for pair in pairs_of(table, self.columns)]
            vectors = matcher.vectors(texts, side="left" if self.side == "query" else "right")
            flat = arrow.array(vectors.reshape(-1), arrow.float32())
            return with_columns(table, {"vector": arrow.FixedSizeListArray.from_arrays(flat, vectors.shape[1])}, "")

        return encode

    def digest(self) -> str:
        """Of the settings and the matcher."""
        return digest_of(self, [self.matcher])


@dataclass(frozen=True)
class MineWork:
    """Each positive pair among its negatives, as `mine_negatives` draws them from one pool.

    Args:
        pool: A file or folder of pairs, whose texts are drawn from.
        count: Negatives for each positive.
        source: bm25, cosine, query, random, or the folder of a matcher.
        top: How many of the nearest texts to draw from.
        seed: Of every draw.
        tokenizer: How words are found.
        columns: Your names of the columns.
        elsewhere: Positive texts of queries that stand in several shards (`positives_elsewhere`).
    """

    pool: str
    count: int = 4
    source: str = "bm25"
    top: int = 1000
    seed: int = 0
    tokenizer: str = "english"
    columns: Mapping[str, str] | None = None
    elsewhere: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    whole: ClassVar[bool] = True  # a query's pairs are drawn for together

    def open(self) -> Function:
        """The function that mines."""
        from matchloom.data.negatives import SOURCES, Pool, mine_negatives, one_id_each

        tokenizer = Tokenizer(self.tokenizer)
        source: str | Scorer = self.source if self.source in SOURCES else cast(Scorer, artifact.load(self.source))
        drawn_from = list(read_pairs(self.pool, columns=self.columns, fill_ids=False))
        pool = Pool((pair.text for pair in drawn_from), tokenizer, ids=one_id_each(drawn_from))
        del drawn_from
        arrow = need("pyarrow")

        def mine(table: Any) -> Any:
            positives = [pair for pair in pairs_of(table, self.columns, ids=False) if pair.is_positive]
            mined = (
                []
                if not positives
                else mine_negatives(
                    positives,
                    count=self.count,
                    source=source,
                    top=self.top,
                    seed=self.seed,
                    tokenizer=tokenizer,
                    pool=pool,
                    elsewhere=self.elsewhere,
                )
            )
            types = [arrow.string(), arrow.string(), arrow.float64(), *[arrow.string()] * 3]
            names = Pair._fields[: len(types)]
            rows = list(zip(*mined, strict=True)) or [()] * len(Pair._fields)
            return arrow.table(
                {name: arrow.array(values, kind) for name, values, kind in zip(names, rows, types, strict=False)}
            )

        return mine

    def digest(self) -> str:
        """Of the settings, the pool and the scorer."""
        return digest_of(self, [self.pool, self.source])


def positives_elsewhere(paths: Iterable[Path], columns: Columns | None) -> dict[str, tuple[str, ...]]:
    """The positive texts of queries that stand in several files, by query; most have none.

    Args:
        paths: The files, each read twice.
        columns: Your names of the columns.
    """
    paths, seen, several = list(paths), set[bytes](), set[bytes]()
    for path in paths:
        own = {_key(pair.query) for pair in read_pairs(path, columns=columns, graded=True, fill_ids=False)}
        several |= seen & own
        seen |= own
    found: dict[str, set[str]] = {}
    for path in paths if several else []:
        for pair in read_pairs(path, columns=columns, graded=True, fill_ids=False):
            if pair.is_positive and _key(pair.query) in several:
                found.setdefault(normalize_text(pair.query), set()).add(pair.text)
    return {query: tuple(sorted(texts)) for query, texts in sorted(found.items())}


def _key(query: str) -> bytes:
    return hashlib.blake2b(normalize_text(query).encode("utf-8", "replace"), digest_size=8).digest()


def map_in_arrow(work: Work) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The work as Spark's `DataFrame.mapInArrow` calls it: record batches in, record batches out.

    What the work names is loaded once for each call, that is for each partition.

    Args:
        work: What is done to the rows.
    """

    def mapped(batches: Iterable[Any]) -> Iterator[Any]:
        arrow, function = need("pyarrow"), work.open()
        if work.whole:
            given = list(batches)
            batches = [arrow.Table.from_batches(given)] if given else []
        for batch in batches:
            table = batch if work.whole else arrow.Table.from_batches([batch])
            yield from function(table).combine_chunks().to_batches()

    return mapped


def pairs_of(table: Any, columns: Columns | None, *, ids: bool = True) -> list[Pair]:
    """The pairs of an Arrow table, one for each row."""
    rows = table_rows("the table", table.schema.names, table.to_batches(), columns)
    pairs = (pair_of(f"the table, {row.place}", row.values, graded=True) for row in rows)
    return list(with_ids(pairs) if ids else pairs)


def with_columns(table: Any, added: Mapping[str, Any], scorer: str) -> Any:
    """A table with more columns behind its own, which keep their names, types and order."""
    names = added_names(table.schema.names, list(added), scorer)
    for name, values in zip(names, added.values(), strict=True):
        table = table.append_column(name, [values])
    return table


def digest_of(work: Any, named: Iterable[str | None]) -> str:
    """Of the settings and of what stands in the files and folders that they name."""
    found = hashlib.sha256(json.dumps([type(work).__name__, asdict(work)], sort_keys=True).encode())
    for name in named:
        if name is None or not Path(name).exists():
            continue
        path = Path(name)
        kind = artifact.kind_of(path) if path.is_dir() else None
        if kind is not None:
            found.update(sha256((path / manifest_name(kind)).read_bytes()).encode())
        else:
            files = sorted(path.rglob("*")) if path.is_dir() else [path]
            stamps = [(str(one.name), one.stat().st_size, one.stat().st_mtime_ns) for one in files if one.is_file()]
            found.update(json.dumps(stamps).encode())
    return found.hexdigest()[:32]

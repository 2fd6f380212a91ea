"""A scorer by what the user calls it: a lexical name, a folder that fit, train or trans-lm made, or a run file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import numpy as np

import matchloom
from matchloom.artifact import kind_of
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vectors import WordVectors
from matchloom.types import MatchloomError, Pair, Scorer, Scores


class RunFile:
    """The scores of a TREC run file, by query_id and text_id."""

    def __init__(self, path: Path) -> None:
        from matchloom.data.formats import read_run

        self.name: str = path.name
        self._path = path
        self._scores: dict[tuple[str, str], float] = {}
        for line in read_run(path):
            ids = (line.query_id, line.text_id)
            if ids in self._scores:
                raise MatchloomError(
                    f"{path} lists query {ids[0]!r} with text {ids[1]!r} twice; 'matchloom doctor' shows the effect",
                    code="bad_row",
                )
            self._scores[ids] = line.score

    def score(self, pairs: Sequence[Pair], *, progress: bool = False) -> Scores:
        """The score of each pair; a pair that the run lacks is an error, as any score for it would be invented."""
        missing = [pair for pair in pairs if (pair.query_id, pair.text_id) not in self._scores]
        if missing:
            raise MatchloomError(
                f"{self._path} lacks {len(missing)} of {len(pairs)} pairs, such as query {missing[0].query_id!r} with "
                f"text {missing[0].text_id!r}; do the ids of the run and of the file agree? For an incomplete "
                "run use 'matchloom doctor'",
                code="missing",
            )
        return np.array([self._scores[pair.query_id, pair.text_id] for pair in pairs], dtype=np.float32)


def load_scorer(
    name: str,
    texts: Callable[[], Sequence[str]],
    *,
    tokenizer: Tokenizer,
    vectors: WordVectors | None = None,
    seed: int = 0,
) -> Scorer:
    """The scorer of this name; a lexical one counts its words in `texts`, which are read only then."""
    from matchloom.lexical import LEXICAL, fit_scorer

    if name in LEXICAL:
        return fit_scorer(name, texts(), tokenizer=tokenizer, vectors=vectors, seed=seed)
    path = Path(name)
    try:
        folder, file = path.is_dir(), path.is_file()
    except PermissionError as error:
        raise MatchloomError(
            f"{path} cannot be read: {error.strerror}; check its permissions", code="unreadable"
        ) from None
    except OSError:  # a query in the wrong place may be too long to be a name
        folder = file = False
    if folder and kind_of(path) == "archive":
        raise MatchloomError(f"{path} is an archive, not a scorer; use 'matchloom search'", code="wrong_format")
    if folder:
        return cast(Scorer, matchloom.load(path))
    if file:
        return RunFile(path)
    raise MatchloomError(
        f"scorer {name[:80]!r} is no folder that 'matchloom fit', 'train' or 'trans-lm' made, no run file and none of "
        f"{', '.join(LEXICAL)}; 'matchloom fit' makes one from your file",
        code="unknown_name",
    )

"""A baseline of answers in a folder: it is made again from its answers in a moment, so that these are what is kept."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from matchloom.artifact import as_saved, read, write
from matchloom.fitting.word_scorers import REMEDY
from matchloom.search.baselines import BASELINES, RankingBaseline
from matchloom.search.ranker_files import ANSWERS, dump_answers, load_answers
from matchloom.text.tokenize import Tokenizer

FORMAT = 2


class KeptBaseline(NamedTuple):
    """A baseline that can be saved."""

    scorer: RankingBaseline

    def save(self, folder: Path | str) -> None:
        """Write its name, its tokenizer and its answers."""
        settings = {"name": self.scorer.name, "tokenizer": self.scorer.tokenizer._asdict()}
        write(folder, "baseline", FORMAT, settings, {ANSWERS: dump_answers(self.scorer.answers)})


def load(folder: Path | str) -> RankingBaseline:
    """Read what `save` wrote; what is missing, altered or newer is refused in one line."""
    saved = read(folder, "baseline", FORMAT, remedy=REMEDY)
    with as_saved(folder, REMEDY):
        make, tokenizer = BASELINES[saved.settings["name"]], Tokenizer.from_dict(saved.settings["tokenizer"])
        return make(load_answers(saved.content(ANSWERS)), tokenizer)

"""Damaged files of public corpora: each reader gives pairs, or one line that names the file."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from experiments.corpora.amazon import amazon_questions
from experiments.corpora.dblp import dblp_papers
from experiments.corpora.insuranceqa import insuranceqa_answers
from experiments.corpora.medical import forum_questions, medquad_questions
from experiments.corpora.semeval import read_semeval
from experiments.corpora.trecqa import read_trecqa
from experiments.corpora.yahoo import read_yahoo
from tests.experiments.corpora.test_dblp import OBJECTS, TEXT
from tests.experiments.corpora.test_medical import PAGE
from tests.experiments.corpora.test_semeval import XML as THREADS
from tests.experiments.corpora.test_trecqa import XML as PSEUDO_XML
from tests.experiments.corpora.test_yahoo import entry, feed
from tests.hostile.damage import mutated
from tests.hostile.trying import Refused, told

POSTS = json.dumps([{"url": "http://x/1", "question": "is wool warm?", "answer": "it is"}] * 3)
LINES = "".join(f"{{'asin': 'B{n}', 'question': 'Is it oak?', 'answer': 'It is.'}}\n" for n in range(5))
ANSWERS = json.dumps({str(n): {"en": f"text {n}", "zh": "下雨"} for n in range(5)})
READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "qa_Looms.json": (LINES, amazon_questions),
    "weaversQAs.json": (POSTS, forum_questions),
    "page.xml": (PAGE, medquad_questions),
    "threads.xml": (THREADS, read_semeval),
    "TRAIN.xml": (PSEUDO_XML, read_trecqa),
    "manner.xml": (feed(entry("1"), entry("2")), read_yahoo),
    "dblp.txt": (TEXT, dblp_papers),
    "dblp.json": ("\n".join(json.dumps(one) for one in OBJECTS), dblp_papers),
    "answers.json": (ANSWERS, lambda path: insuranceqa_answers(path.parent)),
}


class CorpusFiles:
    """Every public layout that is not read by `read_pairs`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def attempt(self, rng: random.Random) -> None:
        """Read one that came to harm, plain or gzip, which may be cut off itself."""
        name = rng.choice(sorted(READERS))
        content, read = READERS[name]
        made = mutated(content.encode(), rng)
        path = self._folder / name
        path.write_bytes(made if rng.random() < 0.7 else gzip.compress(made, mtime=0)[: rng.choice((None, -9))])
        found = told(lambda: list(read(path)))
        if isinstance(found, Refused):
            assert str(path) in found.message, found

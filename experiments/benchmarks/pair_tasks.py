"""Labelled pairs to choose on, from the training parts of several corpora; each with the fold that a pair belongs to.

    msrp                  sentences of news
    semeval               questions of a forum with their bodies
    atec                  Chinese questions of customers to a payment service
    covid                 two questions of one answer, or two near ones with other answers
    hwu64, stackoverflow  the same of intents and tags

The last three are made of questions with answers. A question stands in one pair at most. All questions of an
answer are in one fold, and both sides of a pair: what a classifier learns of some answers has to hold for others.
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from sklearn.feature_extraction.text import TfidfVectorizer

from experiments import places
from experiments.corpora.labelled import labelled_pairs
from matchloom import Pair
from matchloom.data.identity import digest
from matchloom.data.splits import fold_labelled
from matchloom.text.tokenize import Tokenizer

FOLDS, MOST = 3, 6_000
_NEAR = 10  # a partner is one of so many that are nearest


class PairTask(NamedTuple):
    """Pairs, and the fold of each."""

    name: str
    pairs: list[Pair]
    folds: NDArray[np.int64]


def msrp() -> PairTask:
    """Sentences of news."""
    lines = (places.DATA / "msrp" / "msr_paraphrase_train.txt").read_text(encoding="utf-8-sig").split("\n")[1:]
    return _labelled("msrp", [Pair(r[3], r[4], float(r[0])) for line in lines if len(r := line.split("\t")) == 5])


def semeval() -> PairTask:
    """A new question and one of the forum."""
    found = []
    for name in ("subtaskB_train_part1_fromcsv.jsonl", "subtaskB_train_part2.jsonl"):
        for line in (places.DATA / "semeval-cqa" / name).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            found.append(Pair(row["q_body"], row["r_body"], float(row["label"] != "Irrelevant")))
    return _labelled("semeval", found)


def atec() -> PairTask:
    """Chinese questions of customers."""
    with (places.DATA / "pairs" / "atec_train.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    return _labelled("atec", [Pair(row[0], row[1], float(row[2])) for row in rows[:MOST]])


def covid() -> PairTask:
    """An FAQ, and what users asked."""
    folder = places.DATA / "faq"
    return _of_answers("covid", labelled_pairs(folder / "covid_faq.tsv", folder / "covid_train.tsv"))


def intents(name: str) -> PairTask:
    """HWU64 and StackOverflow."""
    return _of_answers(name, labelled_pairs(places.DATA / "intents" / f"{name}_train.tsv"))


TASKS: Mapping[str, Callable[[], PairTask]] = {
    "msrp": msrp,
    "semeval": semeval,
    "atec": atec,
    "covid": covid,
    "hwu64": lambda: intents("hwu64"),
    "stackoverflow": lambda: intents("stackoverflow"),
}


def _labelled(name: str, pairs: list[Pair]) -> PairTask:
    return PairTask(name, pairs, np.array(fold_labelled(pairs, FOLDS)))


def _of_answers(name: str, pairs: Sequence[Pair]) -> PairTask:
    answers: dict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        answers[pair.query].add(pair.text_id)
    return _made(name, answers)


def _made(name: str, answers: Mapping[str, set[str]]) -> PairTask:
    """As many pairs of one answer as there are, at most half of MOST, and as many near ones of two."""
    order = sorted(answers, key=lambda one: digest(name, one))
    folds = _folds([answers[one] for one in order])
    vectors = TfidfVectorizer(analyzer=Tokenizer(), sublinear_tf=True).fit_transform(order)
    free = np.full(len(order), True)
    members = defaultdict(list)
    for n, question in enumerate(order):
        for one in answers[question]:
            members[one].append(n)
    found: list[tuple[Pair, int]] = []
    for wanted, most in ((True, min(MOST // 2, len(order) // 4)), (False, 0)):
        most = most or len(found)
        for n, question in enumerate(order):
            if not most:
                break
            if not free[n]:
                continue
            free[n] = False
            same = np.full(len(order), False)
            same[[m for one in answers[question] for m in members[one]]] = True
            among = np.flatnonzero(free & (same if wanted else ~same & (folds == folds[n])))
            likeness = (vectors[among] @ vectors[[n]].T).toarray()[:, 0]
            near = among[np.argsort(-likeness, kind="stable")[:_NEAR]].tolist()
            partner = min(near, key=lambda m: digest("near", question, order[m]), default=None)
            if partner is not None:
                free[partner] = False
                found.append((Pair(question, order[partner], float(wanted)), int(folds[n])))
                most -= 1
            elif wanted:
                free[n] = True
    found.sort(key=lambda one: digest(one[0].query, one[0].text))
    return PairTask(name, [pair for pair, _ in found], np.array([fold for _, fold in found]))


def _folds(answers: Sequence[set[str]]) -> NDArray[np.int64]:
    """The fold of each question; those with an answer in common, also by way of others, are together."""
    first = {one: n for n, own in reversed(list(enumerate(answers))) for one in own}
    links = [(n, first[one]) for n, own in enumerate(answers) for one in own]
    size = (len(answers), len(answers))
    count, group = connected_components(sp.coo_array((np.ones(len(links)), tuple(zip(*links, strict=True))), size))
    names = [min(min(own) for own in some) for some in _by_group(answers, group, count)]
    return np.array([int(digest("fold", names[one])[:8], 16) % FOLDS for one in group])


def _by_group(answers: Sequence[set[str]], group: NDArray[np.int32], count: int) -> list[list[set[str]]]:
    found: list[list[set[str]]] = [[] for _ in range(count)]
    for one, own in zip(group.tolist(), answers, strict=True):
        found[one].append(own)
    return found

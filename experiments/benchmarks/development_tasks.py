"""Collections to choose constants on, drawn from the training parts of several corpora: no test file is opened here.

A task is what an owner would have (pairs), questions that are asked of it with the ids of their answers, and questions
whose answers were taken away before (`gone`), a fifth of the answers. Draws are by digests.

    hwu64, stackoverflow     1, 2, 5, 10, 20 and 50 questions an answer, and four fifths
    covid                    the FAQ alone (its own question an answer), 2, 5, and four fifths
    sofmattress              1, 2, 5, and four fifths of what the owner wrote; other fifths are asked
    insurance, insurance_zh  an answer of about 80 words with one question; others of the same answer are asked
    semeval                  forum questions with their bodies; a new question with the same meaning is asked
    msrp, atec               paraphrases: one sentence is known, the other asked (English; Chinese)
    *_small                  10, 15 or 20 answers of the first four with 1, 2, 3 or 6 questions each, some more or fewer
    hwu64_fields             a quarter of HWU64's fields (alarm, music, ...) is taken away, and not single intents; as
                             many questions an answer, and four fifths
"""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from experiments import places
from experiments.corpora.labelled import labelled_pairs, rows_of
from matchloom import Pair
from matchloom.data.identity import digest

SIZES = (1, 2, 5, 10, 20, 50)
ASKED = 600  # questions at most
ENTRIES = 300  # of a collection with one question an answer
FAR = 100  # questions of another field


class Task(NamedTuple):
    """A collection, and questions with and without an answer in it."""

    corpus: str
    size: int  # questions an answer, about
    draw: int
    pairs: list[Pair]
    asked: list[tuple[str, frozenset[str]]]
    gone: list[str]

    @property
    def name(self) -> str:
        """How it is called in files and tables."""
        return f"{self.corpus}-{self.size}-{self.draw}"

    def texts(self) -> Iterator[str]:
        """All that an encoder would read."""
        for pair in self.pairs:
            yield from (pair.query, pair.text)
        yield from (question for question, _ in self.asked)
        yield from self.gone


def far_questions(corpus: str) -> list[str]:
    """Questions of other fields: products and health (others than those which are asked in tests), and other corpora.

    Encyclopedic questions are none of another field for a home assistant.
    """
    with gzip.open(places.DATA / "cqa" / "cqa_5_50.tsv.gz", "rt", encoding="utf-8") as file:
        others = {"development": {line.split("\t")[2] for line in file}}
    folder = places.DATA / "intents"
    for name, path in (
        ("hwu64", folder / "hwu64_train.tsv"),
        ("stackoverflow", folder / "stackoverflow_train.tsv"),
        ("covid", places.DATA / "faq" / "covid_train.tsv"),
    ):
        others[name] = {row["query"] for row in rows_of(path)}
    lines = (places.DATA / "wikiqa" / "WikiQASent-train.txt").read_text(encoding="utf-8").splitlines()
    others["wikiqa"] = {line.split("\t")[0] for line in lines}
    own = corpus.split("_")[0]
    left_out = {own, *(["wikiqa"] if own == "hwu64" else [])}
    return [
        question
        for name, questions in others.items()
        if name not in left_out
        for question in sorted(questions, key=lambda one: digest(name, one))[:FAR]
    ]


def parted(
    corpus: str, pairs: Sequence[Pair], size: int, draw: int, first: frozenset[str] = frozenset(), part: int = 5
) -> Task:
    """At most `size` questions an answer are known, `first` ones before others; the rest is asked.

    One answer of `part` is taken away before; none with 0.
    """
    order = sorted(pairs, key=lambda one: (one.query not in first, digest(f"{draw}", one.query)))
    golds: dict[str, set[str]] = defaultdict(set)
    for one in order:
        golds[one.query].add(one.text_id)
    names = sorted({one.text_id for one in pairs}, key=lambda one: digest(f"gone {draw}", one))
    away = set(names[: len(names) // part if part else 0])
    counts: dict[str, int] = defaultdict(int)
    known: list[Pair] = []
    rest: dict[str, None] = {}
    for one in order:
        counts[one.text_id] += 1
        if counts[one.text_id] <= size:
            known.append(one)
        else:
            rest[one.query] = None
    spent = {one.query for one in known}
    free = [one for one in rest if one not in spent]
    asked = [(one, frozenset(golds[one])) for one in free if not golds[one] & away][:ASKED]
    gone = [one for one in free if golds[one] <= away][:ASKED]
    return Task(corpus, size, draw, [one for one in known if one.text_id not in away], asked, gone)


def held_out(corpus: str, pairs: Sequence[Pair], draw: int, part: int = 5) -> Task:
    """Four fifths of the questions are known, the others asked; one answer of `part` is taken away, none with 0."""
    order = sorted(dict.fromkeys(one.query for one in pairs), key=lambda one: digest("fifth", one))
    held = set(order[draw::5])
    names = sorted({one.text_id for one in pairs}, key=lambda one: digest(f"gone {draw}", one))
    away = set(names[: len(names) // part if part else 0])
    golds: dict[str, set[str]] = defaultdict(set)
    for one in pairs:
        golds[one.query].add(one.text_id)
    known = [one for one in pairs if one.query not in held and one.text_id not in away]
    ids = {one.text_id for one in known}
    asked = [(one, frozenset(golds[one])) for one in order if one in held and golds[one] & ids]
    gone = [one for one in order if one in held and golds[one] <= away]
    return Task(corpus, 0, draw, known, asked[:ASKED], gone[:ASKED])


def intents() -> Iterator[Task]:
    """HWU64 and StackOverflow."""
    folder = places.DATA / "intents"
    for name in ("hwu64", "stackoverflow"):
        pairs = labelled_pairs(folder / f"{name}_train.tsv")
        for size in SIZES:
            for draw in range(3 if size <= 5 else 2 if size <= 10 else 1):
                yield parted(name, pairs, size, draw)
        yield held_out(name, pairs, 0)


def shop() -> Iterator[Task]:
    """What the owner of a shop wrote."""
    pairs = labelled_pairs(places.DATA / "intents" / "sofmattress_train.tsv")
    for size in (1, 2, 5):
        for draw in range(3):
            yield parted("sofmattress", pairs, size, draw)
    for draw in range(5):
        yield held_out("sofmattress", pairs, draw)


def covid() -> Iterator[Task]:
    """An FAQ, and what users asked."""
    folder = places.DATA / "faq"
    faq = labelled_pairs(folder / "covid_faq.tsv")
    pairs = [*faq, *labelled_pairs(folder / "covid_train.tsv")]
    yield parted("covid", pairs, 1, 0, frozenset(one.query for one in faq))
    for size in (1, 2, 5):
        for draw in range(1, 3):
            yield parted("covid", pairs, size, draw)
    for draw in range(5):
        yield held_out("covid", pairs, draw)


def insurance() -> Iterator[Task]:
    """Answers that several questions have, in English and in Chinese."""
    folder = places.DATA / "insuranceqa"
    with gzip.open(folder / "train.jsonl.gz", "rt", encoding="utf-8") as file:
        questions = [json.loads(line) for line in file]
    for name, language in (("insurance", "en"), ("insurance_zh", "zh")):
        with gzip.open(folder / f"answers.{language}.tsv.gz", "rt", encoding="utf-8") as file:
            texts = dict(line.rstrip("\n").split("\t", 1) for line in file)
        pairs = [Pair(one[language], texts[own], text_id=own) for one in questions for own in one["answers"]]
        yield from _one_each(name, pairs, draws=2)


def _one_each(name: str, pairs: Iterable[Pair], draws: int) -> Iterator[Task]:
    """Some answers with one known question; of those with several, others are asked."""
    own: dict[str, dict[str, Pair]] = defaultdict(dict)
    for one in pairs:
        own[one.text_id][one.query] = one
    for draw in range(draws):
        names = sorted(own, key=lambda one: (len(own[one]) < 2, digest(f"{draw}", one)))
        several = [one for one in names if len(own[one]) > 1][: ENTRIES // 2]
        chosen = [*several, *[one for one in names if len(own[one]) < 2][: ENTRIES - len(several)]]
        yield parted(name, [pair for one in chosen for pair in own[one].values()], 1, draw)


def semeval() -> Iterator[Task]:
    """Forum questions: the related question is known, with its body as the text; the new one is asked."""
    rows = []
    for part in ("part1_fromcsv", "part2"):
        path = places.DATA / "semeval-cqa" / f"subtaskB_train_{part}.jsonl"
        rows += [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    for draw in range(2):
        asked: dict[str, set[str]] = defaultdict(set)
        known = {}
        for one in rows:
            known[one["rid"]] = one["r_body"].strip()
            asked[one["q_body"].strip()] |= {one["rid"]} if one["label"] != "Irrelevant" else set()
        order = sorted(asked, key=lambda one: digest(f"{draw}", one))
        away = set(order[: len(order) // 5])
        ids = {one["rid"] for one in rows if one["q_body"].strip() not in away and known[one["rid"]]}
        ids = set(sorted(ids, key=lambda one: digest(f"{draw}", one))[:ENTRIES])
        pairs = [Pair(known[one], known[one], text_id=one) for one in sorted(ids)]
        first: dict[str, str] = {}
        for pair in pairs:
            first.setdefault(pair.query, pair.text_id)
        same = {pair.text_id: first[pair.query] for pair in pairs}
        pairs = [pair for pair in pairs if first[pair.query] == pair.text_id]
        right = {one: frozenset(same[name] for name in asked[one] if name in same) for one in order if one not in away}
        yield Task("semeval", 1, draw, pairs, [(one, own) for one, own in right.items() if own], sorted(away))


def paraphrases() -> Iterator[Task]:
    """One sentence is known, its paraphrase is asked."""
    msrp = places.DATA / "msrp" / "msr_paraphrase_train.txt"
    found = {
        "msrp": [(one["#1 String"], one["#2 String"]) for one in rows_of(msrp) if one["Quality"] == "1"],
        "atec": [
            (one["sentence1"], one["sentence2"])
            for one in rows_of(places.DATA / "pairs" / "atec_train.tsv")
            if one["label"] == "1"
        ],
    }
    for name, both in found.items():
        for draw in range(2):
            chosen = sorted(dict(both).items(), key=lambda one: digest(f"{draw}", *one))[:ENTRIES]
            chosen = [one for n, one in enumerate(chosen) if one[0] not in {own for _, own in chosen[:n]}]
            away = len(chosen) // 5
            pairs = [Pair(one, one, text_id=f"{n:04}") for n, (one, _) in enumerate(chosen) if n >= away]
            asked = [(other, frozenset([f"{n:04}"])) for n, (_, other) in enumerate(chosen) if n >= away]
            yield Task(name, 1, draw, pairs, asked, [other for _, other in chosen[:away]])


def fields() -> Iterator[Task]:
    """HWU64 without some of its fields: questions of another kind, by the same people."""
    pairs = labelled_pairs(places.DATA / "intents" / "hwu64_train.tsv")
    every = sorted({_field(one) for one in pairs})
    for size in (*SIZES[:-1], 0):
        for draw in range(2 if 0 < size < 20 else 1):
            away = set(sorted(every, key=lambda one: digest(f"field {draw}", one))[: len(every) // 4])
            gone = [one.query for one in pairs if _field(one) in away]
            kept = [one for one in pairs if _field(one) not in away]
            name = "hwu64_fields"
            task = parted(name, kept, size, draw, part=0) if size else held_out(name, kept, draw, part=0)
            yield task._replace(gone=sorted(gone, key=lambda one: digest(f"{draw}", one))[:ASKED])


def _field(pair: Pair) -> str:
    return pair.text_id.split("_")[0].split(" ")[0]


def small() -> Iterator[Task]:
    """What a new user tries first: a few answers with a few questions. Others of the corpus have no answer here."""
    intents, faq = places.DATA / "intents", places.DATA / "faq"
    found = {name: labelled_pairs(intents / f"{name}_train.tsv") for name in ("hwu64", "stackoverflow", "sofmattress")}
    found["covid"] = labelled_pairs(faq / "covid_faq.tsv", faq / "covid_train.tsv")
    for name, pairs in found.items():
        counts = Counter(one.text_id for one in pairs)
        for size in (1, 2, 3, 6):
            for draw, entries in enumerate((10, 20, 15)):
                names = [one for one, count in sorted(counts.items()) if count > size]
                kept = set(sorted(names, key=lambda one: digest(f"small {draw} {size}", one))[:entries])
                yield _of_some(f"{name}_small", pairs, kept, size, draw)


def _of_some(corpus: str, pairs: Sequence[Pair], kept: set[str], size: int, draw: int) -> Task:
    """A collection of these answers; of several questions an answer has one more or fewer now and then."""
    order = sorted(pairs, key=lambda one: digest(f"s{draw}", one.query))
    golds: dict[str, set[str]] = defaultdict(set)
    counts: dict[str, int] = defaultdict(int)
    known: dict[tuple[str, str], Pair] = {}
    for one in order:
        golds[one.query].add(one.text_id)
        counts[one.text_id] += 1
        more = int(digest("more", one.text_id)[:6], 16) % 3 - 1 if size > 1 else 0
        if one.text_id in kept and counts[one.text_id] <= size + more:
            known[one.query, one.text_id] = one
    spent = {question for question, _ in known}
    free = [one for one in golds if one not in spent]
    asked = [(one, frozenset(golds[one])) for one in free if golds[one] <= kept][: ASKED // 2]
    gone = [one for one in free if not golds[one] & kept][: ASKED // 2]
    return Task(corpus, size, draw, list(known.values()), asked, gone)


def tasks() -> Iterator[Task]:
    """All of them."""
    for some in (intents, shop, covid, insurance, semeval, paraphrases):
        yield from some()
    for some in (fields, small):
        yield from (task for task in some() if task.asked and task.gone)

"""The candidate lists that the papers' tables measure on: train, development and test pairs of each task.

The data sets are no part of the project; `data` is the folder that holds them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from experiments.corpora import (
    insuranceqa_answers,
    read_citations,
    read_cqa,
    read_insuranceqa,
    read_msrp,
    read_reuters,
    read_semeval,
    read_trecqa,
    read_wikiqa,
)
from experiments.corpora.insuranceqa import Language, Split
from experiments.corpora.subsets import both_labels
from matchloom.data.grouping import grouped_lists
from matchloom.data.identity import both_sides, normalize_text, with_ids
from matchloom.data.negatives import mine_negatives
from matchloom.data.pydocs import read_pydocs
from matchloom.data.splits import group_texts, split_by_group
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vectors import WordVectors, read_vectors
from matchloom.types import Pair


class PaperTask(NamedTuple):
    """Lists to train on, choose on and report, and how their texts are read."""

    train: list[Pair]
    development: list[Pair]
    test: list[Pair]
    tokenizer: Tokenizer
    collection: list[str]  # the texts that lexical scorers take their statistics from
    vectors: WordVectors | None  # None: skip-gram on the training texts
    protocol: str


def _texts(pairs: list[Pair]) -> list[str]:
    return sorted({pair.text for pair in pairs})


def cqa(data: Path, seed: int) -> PaperTask:
    """The papers' QA protocol on the cqa corpus: 4 of the BM25 top 1,000 of the true answer, 8:1:1 by question."""
    positives = [pair._replace(group="") for pair in read_cqa(data / "cqa" / "cqa_5_50.tsv.gz")]
    pairs = list(mine_negatives(positives, count=4, top=1000, seed=0, progress=True))
    train, development, test = split_by_group(pairs, parts=(8, 1, 1), seed=0)
    protocol = f"{len(positives)} questions without duplicates, 4 negatives from the BM25 top 1,000, 8:1:1 by question"
    return PaperTask(train, development, test, Tokenizer(), _texts(positives), None, protocol)


def insuranceqa(data: Path, seed: int) -> PaperTask:
    """InsuranceQA English, answers cut to 50 words, first gold answer, 4 of the BM25 top 1,000 of it."""
    pool = list(insuranceqa_answers(data / "insuranceqa", truncate=Tokenizer(max_words=50)).values())
    train = insurance_lists(data, "train", "en", 4, "bm25", pool)
    development = insurance_lists(data, "valid", "en", 4, "bm25", pool)
    test = insurance_lists(data, "test", "en", 4, "bm25", pool)
    protocol = (
        "English, answers cut to 50 words, its own splits, first gold answer, 4 negatives from the BM25 top 1,000"
    )
    return PaperTask(train, development, test, Tokenizer(), sorted(set(pool)), None, protocol)


def cntn_english(data: Path, seed: int) -> PaperTask:
    """CNTN's Experiment I on InsuranceQA English."""
    return _experiment_one(data, "en")


def cntn_chinese(data: Path, seed: int) -> PaperTask:
    """CNTN's Experiment I on InsuranceQA Chinese."""
    return _experiment_one(data, "zh")


def cntn_english_near(data: Path, seed: int) -> PaperTask:
    """The same with negatives that a search would find: where Okapi stands as low as in the paper."""
    return _experiment_one(data, "en", near=True, anew=True)


def cntn_chinese_near(data: Path, seed: int) -> PaperTask:
    """The same in Chinese."""
    return _experiment_one(data, "zh", near=True, anew=True)


def cntn_english_near_lists(data: Path, seed: int) -> PaperTask:
    """The same with ten negatives for each training question that are drawn once, as those of Experiment I."""
    return _experiment_one(data, "en", near=True)


def cntn_english_glove(data: Path, seed: int) -> PaperTask:
    """Experiment I with word vectors from Wikipedia, as in the paper; the others have skip-gram of their texts."""
    task = _experiment_one(data, "en")
    known = {word for part in task[:3] for text in both_sides(part) for word in task.tokenizer(text)}
    vectors = glove(data)
    rows = [row for row, word in enumerate(vectors.words) if word in known]  # what stands nowhere never moves
    vectors = WordVectors([vectors.words[row] for row in rows], vectors.matrix[rows])
    return task._replace(vectors=vectors, protocol=f"{task.protocol}, GloVe 100")


NEAR = 100  # answers of a search that negatives are drawn from


def cntn_english_hundred(data: Path, seed: int) -> PaperTask:
    """Experiment I with a hundred corrupted answers for each training question, so that an epoch can draw others."""
    return _experiment_one(data, "en", wrong=100)


def _experiment_one(
    data: Path, language: Language, *, near: bool = False, anew: bool = False, wrong: int = 10
) -> PaperTask:
    """Answers cut to 50 words, first gold answer; 10 corrupted answers to learn from, or `wrong`, 5 to choose from.

    A corrupted answer is a right answer of another question of the same split, as in the paper: an answer is then
    wrong in some lists and right in others, and knowing it by heart helps nobody. `near` takes them from the answers of
    the collection that BM25 puts first for the question. With `anew` all positive pairs of training questions are given
    and no negatives, which training then draws anew in every epoch.
    """
    tokenizer, folder = Tokenizer(KINDS[language], max_words=50), data / "insuranceqa"
    collection = list(insuranceqa_answers(folder, language=language, truncate=tokenizer).values()) if near else None
    drawn = (
        f"of the {NEAR} answers that BM25 puts first for the question" if near else "random answers of other questions"
    )

    def lists(split: Split, count: int) -> list[Pair]:
        return insurance_lists(data, split, language, count, "query" if near else "random", collection, top=NEAR)

    if anew:
        train = read_insuranceqa(folder, "train", language=language, gold="all", truncate=tokenizer)
        learnt = (
            f"5 for development and test, {drawn}; for training 10, drawn anew in every epoch for all right answers"
        )
    else:
        train = lists("train", wrong)
        learnt = f"{drawn}, {wrong} for training, 5 for development and test"
    protocol = f"{KINDS[language]}, answers cut to 50 words, its own splits, first gold answer, negatives: {learnt}"
    tokenizer = Tokenizer(KINDS[language])
    return PaperTask(train, lists("valid", 5), lists("test", 5), tokenizer, _texts(train), None, protocol)


KINDS: dict[Language, str] = {"en": "english", "zh": "chinese"}


def insurance_lists(
    data: Path,
    split: Split,
    language: Language,
    count: int,
    source: str,
    pool: list[str] | None = None,
    *,
    top: int = 1000,
) -> list[Pair]:
    """The first gold answer of each question with its negatives; no gold answer of a question is drawn for it."""
    folder, tokenizer = data / "insuranceqa", Tokenizer(KINDS[language], max_words=50)
    gold = read_insuranceqa(folder, split, language=language, gold="all", truncate=tokenizer)
    first = {(p.query_id, p.text) for p in read_insuranceqa(folder, split, language=language, truncate=tokenizer)}
    words = Tokenizer(KINDS[language])
    mined = mine_negatives(gold, count=count, source=source, top=top, seed=0, tokenizer=words, pool=pool, progress=True)
    kept: list[Pair] = []
    while one := list(islice(mined, count + 1)):  # a positive among its negatives
        if any(pair.label == 1 and (pair.query_id, pair.text) in first for pair in one):
            kept += one
    return kept


def trecqa(data: Path, seed: int) -> PaperTask:
    """TREC-QA: train on TRAIN-ALL, choose on DEV, report on TEST."""
    parts = [read_trecqa(data / "trecqa" / f"{name}.tsv") for name in ("TRAIN-ALL", "DEV", "TEST")]
    return _sentences(
        data, parts, "TRAIN-ALL, chosen on clean DEV (65 questions), reported on clean TEST (68 questions)"
    )


def wikiqa(data: Path, seed: int) -> PaperTask:
    """WikiQA: its own parts."""
    parts = [read_wikiqa(data / "wikiqa" / f"WikiQASent-{name}.txt") for name in ("train", "dev", "test")]
    return _sentences(data, parts, "its own parts, chosen on dev, reported on the 237 test questions with both labels")


def _sentences(data: Path, parts: list[list[Pair]], protocol: str) -> PaperTask:
    """Answer sentences with GloVe vectors; what chooses are the development questions with both labels."""
    train, development, test = parts
    words = Tokenizer("whitespace", max_words=60)
    return PaperTask(train, both_labels(development), test, words, _texts(train), glove(data), f"{protocol}, GloVe 100")


@cache
def glove(data: Path) -> WordVectors:
    """GloVe vectors of 100 dimensions, read once."""
    return read_vectors(data / "glove" / "glove.6B.100d.subset.txt.gz", progress=True)


FIFTHS = 5


def semeval(data: Path, seed: int) -> PaperTask:
    """SemEval-2016 Task 3B: the seed holds out a fifth of the training questions to choose on; its dev set is the test.

    Seeds 0 to 4 hold out each training question once.
    """
    folder = data / "semeval-cqa"
    judged = [
        pair for part in ("part1_fromcsv", "part2") for pair in read_semeval(folder / f"subtaskB_train_{part}.jsonl")
    ]
    fifths = split_by_group(judged, parts=(1,) * FIFTHS, seed=0)
    train = [pair for n, part in enumerate(fifths) if n != seed % FIFTHS for pair in part]
    protocol = (
        "trained on four fifths of the 267 training questions, chosen on the fifth that the seed holds out, "
        "reported on all 50 dev questions, GloVe 100"
    )
    return PaperTask(
        train,
        fifths[seed % FIFTHS],
        read_semeval(folder / "subtaskB_dev.jsonl"),
        Tokenizer(),
        _texts(judged),
        glove(data),
        protocol,
    )


def reuters(data: Path, seed: int) -> PaperTask:
    """Sentence completion: 4 of the 1,000 second clauses nearest to the true one by cosine, 8:1:1 by story.

    The two collections share sentences: each counts once, in the story that has it first, so that no sentence stands
    in two parts.
    """
    folder = data / "reuters"
    found: dict[tuple[str, str], Pair] = {}
    for name in ("reuters21578.tar.gz", "reuters_c50.tar.gz"):
        for pair in read_reuters(folder / name):
            found.setdefault(
                (normalize_text(pair.query), normalize_text(pair.text)), pair._replace(group=f"{name} {pair.group}")
            )
    positives = list(with_ids(pair._replace(query_id="", text_id="") for pair in found.values()))
    pairs = list(mine_negatives(positives, count=4, source="cosine", top=1000, seed=0, progress=True))
    train, development, test = split_by_group(pairs, parts=(8, 1, 1), seed=0)
    protocol = (
        f"{len(positives)} sentences of Reuters-21578 and C50, clauses of 8 to 28 words, 4 negatives from the 1,000 "
        "second clauses nearest to the true one by cosine of TF-IDF, 8:1:1 by story, GloVe 100"
    )
    return PaperTask(train, development, test, Tokenizer(), _texts(positives), glove(data), protocol)


CITED_WORDS = 32  # of an abstract: networks over all pairs of words cost its square


def citations(data: Path, seed: int) -> PaperTask:
    """Citation matching: two abstracts drawn at random for each cited one, 8:1:1 by citing paper, pair by pair."""
    tokenizer = Tokenizer(max_words=CITED_WORDS)
    positives = read_citations(data / "citations")
    pool = sorted({text for pair in positives for text in (pair.query, pair.text)})
    mined = mine_negatives(positives, count=2, source="random", seed=0, pool=pool, progress=True)
    train, development, test = split_by_group(list(mined), parts=(8, 1, 1), seed=0)
    protocol = (
        f"{len(positives)} citations among {len(pool)} papers, 2 abstracts drawn at random for each, the first "
        f"{CITED_WORDS} words of an abstract, 8:1:1 by citing paper"
    )
    return PaperTask(train, development, test, tokenizer, _texts(positives), None, protocol)


def msrp(data: Path, seed: int) -> PaperTask:
    """Paraphrases: the official split; the seed holds out a tenth of the training pairs to choose on."""
    folder = data / "msrp"
    judged, test = (read_msrp(folder / f"msr_paraphrase_{part}.txt") for part in ("train", "test"))
    train, development = split_by_group(group_texts(judged), parts=(9, 1), seed=seed)
    protocol = (
        f"official split, a tenth of the {len(judged)} training pairs held out by the seed to choose on, GloVe 100"
    )
    return PaperTask(train, development, test, Tokenizer(), _texts(judged), glove(data), protocol)


def pydocs(data: Path, seed: int) -> PaperTask:
    """The embedded corpus with grouped lists; the seed draws groups and split."""
    positives = read_pydocs()
    pairs = grouped_lists(positives, seed=seed)
    train, development, test = split_by_group(pairs, parts=(8, 1, 1), seed=seed)
    protocol = f"{len(positives)} docstrings, grouped lists of 5, 8:1:1 by group, groups and split drawn by the seed"
    return PaperTask(train, development, test, Tokenizer(), _texts(positives), None, protocol)


TASKS: dict[str, Callable[[Path, int], PaperTask]] = {
    "cqa": cqa,
    "insuranceqa": insuranceqa,
    "cntn_english": cntn_english,
    "cntn_chinese": cntn_chinese,
    "cntn_english_near": cntn_english_near,
    "cntn_chinese_near": cntn_chinese_near,
    "cntn_english_near_lists": cntn_english_near_lists,
    "cntn_english_glove": cntn_english_glove,
    "cntn_english_hundred": cntn_english_hundred,
    "trecqa": trecqa,
    "wikiqa": wikiqa,
    "semeval": semeval,
    "reuters": reuters,
    "citations": citations,
    "msrp": msrp,
    "pydocs": pydocs,
}

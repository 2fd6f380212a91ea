"""`matchloom demo`: the whole way once, from texts that every Python has to ranked and explained answers."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import mean, stdev
from typing import Annotated

import typer

from matchloom import TrainConfig, evaluate, explain, train
from matchloom.cli.printing import console, note, table
from matchloom.cli.reading import make_folder
from matchloom.data.corpora.pydocs import python_version, read_pydocs
from matchloom.data.formats import write_pairs
from matchloom.data.grouping import grouped_lists, split_by_group
from matchloom.encoders import WordEmbedding
from matchloom.evaluation import Report
from matchloom.explanation import render_html
from matchloom.files import atomic_write
from matchloom.matcher import Matcher
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vectors import WordVectors, train_vectors
from matchloom.types import Pair

MEASURES = ("P@1", "RR")
# By development figures of some fifteen settings: small, because there are only some 2,300 questions to learn from.
ARGUMENTS = {"hidden": 25, "slices": 2, "k": 3, "lexical": True}
SETTINGS = {"optimizer": "adam", "learning_rate": 0.001, "epochs": 10, "patience": 2}


def command(
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where the matcher, the lists and the page are written.")
    ] = Path("runs/demo"),
    seeds: Annotated[int, typer.Option(min=1, help="How often to draw the lists, the split and the model.")] = 3,
) -> None:
    """Try everything once, on Python's own documentation.

    It takes about two minutes. The pairs are summaries and descriptions of the standard library, in lists of five
    that leak nothing: a scorer that ignores the query gets P@1 .200. MV-LSTM is trained with slices for exact
    matches and compared with scorers that need no training; then a few matches are explained. The last draw's
    matcher and lists stay in FOLDER.

    \b
    Example:
      matchloom demo --seeds 1
    """
    start = time.perf_counter()
    make_folder(out)
    positives = read_pydocs()
    print(f"{len(positives):,} pairs (summary, description) from the documentation of Python {python_version()}.")
    reports = []
    for seed in range(seeds):
        lists = grouped_lists(positives, seed=seed)
        training, development, test = split_by_group(lists, seed=seed)
        matcher = _train(training, development, out, seed)
        reports.append(_evaluate(matcher, test, training, [pair.text for pair in positives]))
        value = reports[-1].values["P@1"]
        best = matcher.training["best"]
        note(f"Seed {seed}: {best['epoch']} epochs, test P@1 {value:.3f}, {time.perf_counter() - start:.0f} s so far.")
    for name, part in (("train", training), ("dev", development), ("test", test)):
        write_pairs(out / f"{name}.tsv", part)
    _compare(reports)
    _explain(matcher, test, out)
    print(f"\nDone in {time.perf_counter() - start:.0f} seconds. The matcher is in {out}. Next:")
    print(f'  matchloom rank {out} "read a file line by line" {out}/test.tsv --explain')
    print(f"  matchloom evaluate {out} {out}/test.tsv")
    print(
        "With a file of your own (columns query and text, and label if some texts are wrong: 1 for right, 0 for wrong):"
    )
    print("  matchloom mine mine.tsv --out lists.tsv       # adds wrong texts, if there are none")
    print("  matchloom train lists.tsv --out runs/mine --set lexical=true")


def _train(training: list[Pair], development: list[Pair], out: Path, seed: int) -> Matcher:
    words = Tokenizer()
    texts = sorted({pair.query for pair in training} | {pair.text for pair in training})
    vectors = train_vectors([words(text) for text in texts], dimensions=50, epochs=10, seed=seed, progress=True)
    config = TrainConfig(seed=seed, **SETTINGS)  # type: ignore[arg-type]
    return train(training, development, arguments=ARGUMENTS, config=config, vectors=vectors, folder=out, progress=True)


def _evaluate(matcher: Matcher, test: list[Pair], training: list[Pair], collection: list[str]) -> Report:
    # Soft coverage gets the vectors that training ended with: there are no others without a download.
    encoder = matcher.model.encoder
    assert isinstance(encoder, WordEmbedding)
    vectors = WordVectors(matcher.vocab.words, encoder.vectors()[2:])
    return evaluate(matcher, test, measures=MEASURES, vectors=vectors, collection=collection)


def _compare(reports: list[Report]) -> None:
    figures = table("", *MEASURES, "", right=MEASURES)
    rows: dict[str, list[dict[str, float]]] = {"MV-LSTM with exact matches": [report.values for report in reports]}
    notes: dict[str, str] = {}
    for report in reports:
        beside = [(one.name, one.note, one.measured.values) for one in report.baselines]
        beside += [(one.name, one.note, one.measured.values) for one in report.probes]
        for name, about, values in beside:
            rows.setdefault(name, []).append(values)
            notes[name] = about
    for name, found in rows.items():
        cells = []
        for measure in MEASURES:
            column = [values[measure] for values in found]
            spread = f" ±{stdev(column):.3f}" if len(column) > 1 else ""
            cells.append(f"{mean(column):.3f}{spread}")
        figures.add_row(name, *cells, notes.get(name, ""))
    questions = sum(report.subset.kept for report in reports)
    print(f"\nTest lists of five, {questions:,} questions over {len(reports)} draws of lists, split and model:\n")
    console().print(figures)
    leaks = sorted({warning for report in reports for warning in report.warnings if "leak" in warning})
    for warning in leaks:
        print(f"! {warning}")


def _explain(matcher: Matcher, test: list[Pair], out: Path) -> None:
    texts = sorted({pair.text for pair in test})
    candidates = matcher.encode(texts)
    right = sorted((pair for pair in test if pair.label), key=lambda pair: (len(pair.query) + len(pair.text), pair))
    explained = []
    for pair in right:
        best = matcher.rank(pair.query, candidates, top=1)[0]
        # Matches that more than shared words have made are the ones worth a look.
        if best.text == pair.text and len(pair.text.split()) > 12:
            explained.append(explain(matcher, pair.query, best.text))
        if len(explained) == 3:
            break
    print(f"\nRanked first of all {len(texts)} test descriptions, and why:")
    for one in explained[:2]:
        print()
        console().print(one)
    if explained:
        with atomic_write(out / "explained.html") as file:
            file.write(render_html(explained))
        print(f"\n{len(explained)} matches with their whole interaction maps: open {out / 'explained.html'}")

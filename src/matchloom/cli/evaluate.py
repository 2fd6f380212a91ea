"""`matchloom evaluate`: figures, with all that is needed to believe them."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from matchloom import evaluate
from matchloom.cli.options import (
    CollectionOption,
    MeasuresOption,
    PairsArgument,
    ScorerArgument,
    ScorerTokenizerOption,
    SeedOption,
    VectorsOption,
)
from matchloom.cli.printing import console, note, print_json, table
from matchloom.cli.reading import read_all, read_texts, texts_of, tokenizer_of, vectors_for
from matchloom.cli.scorers import load_scorer
from matchloom.data.against_all import against_all
from matchloom.data.formats import write_qrels, write_run
from matchloom.data.ids import both_sides
from matchloom.evaluation import Difference, Report, compare_runs
from matchloom.files import atomic_write, write_lines
from matchloom.fitting import Fitted, is_fitted
from matchloom.types import MatchloomError, Pair


def command(
    scorer: ScorerArgument,
    pairs: PairsArgument,
    measures: MeasuresOption = "AP RR P@1 nDCG@10",
    subset: Annotated[
        str,
        typer.Option(
            help="Which questions count: both (those with both labels), positive (those with a right text) or all."
        ),
    ] = "both",
    no_baselines: Annotated[bool, typer.Option("--no-baselines", help="Leave out baselines and blind probes.")] = False,
    against: Annotated[
        str | None,
        typer.Option(metavar="SCORER", help="Compare with this scorer, with a significance test.", show_default=False),
    ] = None,
    against_all_of: Annotated[
        Path | None,
        typer.Option(
            "--against-all",
            metavar="FILE",
            help="Rank every question against all texts of this file; a file without wrong texts is ranked so anyway.",
            show_default=False,
        ),
    ] = None,
    vectors: VectorsOption = None,
    collection: CollectionOption = None,
    tokenizer: ScorerTokenizerOption = None,
    per_query: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write each question's figures as TSV.", show_default=False)
    ] = None,
    run: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a TREC run.", show_default=False)] = None,
    qrels: Annotated[Path | None, typer.Option(metavar="FILE", help="Write TREC qrels.", show_default=False)] = None,
    json: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write everything as JSON; - for the screen.", show_default=False)
    ] = None,
    seed: SeedOption = 0,
) -> None:
    """Measure a scorer on labelled pairs.

    The table also has baselines, which the scorer should beat, and blind probes, which should be at chance.
    Baselines: random, the order of the file, IDF overlap, BM25 plain and stemmed, and soft coverage if there are
    vectors. Blind probes: the scorer with the questions shuffled, and text length alone; if one is above chance,
    the lists give the answer away. Ties, questions left out and anything else that changes a figure are reported
    below the table. Pairs that are all right are ranked against all their texts, or a fitted folder's answers, or
    those of --against-all: the figure that a user meets. --against adds a paired randomisation test over the questions.

    \b
    Examples:
      matchloom evaluate runs/faq data/test.tsv
      matchloom evaluate runs/faq data/test.tsv --against bm25_stemmed --measures "P@1 RR"
      matchloom evaluate bm25 data/test.tsv --run bm25.run --qrels test.qrels
    """
    cut = tokenizer_of(tokenizer)
    found = _judged(read_all(pairs), scorer, against_all_of, seed)
    texts = texts_of(found) if collection is None else read_texts(collection)  # the same for scorer and baselines
    word_vectors = vectors_for(vectors, both_sides(found) if vectors else (), cut)

    def measure(name: str, baselines: bool) -> Report:
        chosen = load_scorer(name, lambda: texts, tokenizer=cut, vectors=word_vectors, seed=seed)
        made = evaluate(
            chosen,
            found,
            measures=measures.replace(",", " ").split(),
            subset=subset,
            baselines=baselines,
            vectors=word_vectors,
            tokenizer=None if tokenizer is None else cut,
            collection=texts,
            seed=seed,
            progress=True,
        )
        if run is not None and name == scorer:
            write_run(run, made.subset.pairs, chosen.score(made.subset.pairs, progress=True), _one_word(chosen.name))
        return made

    report = measure(scorer, not no_baselines)
    other = None if against is None else measure(against, False)
    compared = None if other is None else compare_runs(report.measured, other.measured, seed=seed)
    if qrels is not None:
        write_qrels(qrels, report.subset.pairs)
    if per_query is not None:
        _write_per_query(per_query, report)
    if json is not None:
        content = report.to_dict()
        if other is not None and compared is not None:
            tests = {name: result._asdict() for name, result in compared.items()}
            content["against"] = {"scorer": against, "values": other.to_dict()["values"], "tests": tests}
        if json == "-":
            print_json(content)
            return
        with atomic_write(json) as file:
            file.write(dumps(content, ensure_ascii=False, allow_nan=False) + "\n")
    console().print(report)
    if other is not None and compared is not None:
        _show_comparison((scorer, report), (against or "", other), compared)


def _judged(pairs: list[Pair], scorer: str, collection: Path | None, seed: int) -> list[Pair]:
    """The candidate lists to rank: the file's own, or every question against all texts of a collection."""
    wrong = any(pair.label is not None and pair.label <= 0 for pair in pairs)
    if collection is None and wrong:
        unlabelled = sum(pair.label is None for pair in pairs)
        if unlabelled:
            raise MatchloomError(f"{unlabelled} of {len(pairs)} pairs have no label; give every one, or none at all")
        return pairs
    texts: list[Pair | str] = []
    if collection is not None:
        texts += read_texts(collection)
    elif is_fitted(Path(scorer)):
        answers = Fitted.load(scorer).answers
        texts += (
            []
            if answers is None
            else [Pair("", text, text_id=name) for text, name in zip(answers.texts, answers.ids, strict=True)]
        )
    made = against_all(pairs, texts, seed=seed)
    questions, asked = len({pair.query_id for pair in made}), len({pair.query_id for pair in pairs})
    drawn = f" ({questions:,} of {asked:,}, so that it ends)" if questions < asked else ""
    note(f"Ranking {questions:,} questions{drawn} against all {len(made) // questions:,} texts.")
    return made


def _show_comparison(first: tuple[str, Report], second: tuple[str, Report], compared: dict[str, Difference]) -> None:
    (name, report), (other_name, other) = first, second  # as the user called them: two matchers may share a model
    shown = table("measure", name, other_name, "difference", "p", right=(name, other_name, "difference", "p"))
    for measure, result in compared.items():
        values = (f"{each.values[measure]:.4f}" for each in (report, other))
        shown.add_row(measure, *values, f"{result.difference:+.4f}", f"{result.p:.4f}")
    printer = console()
    printer.print()
    printer.print(shown)
    printer.print(f"p: the chance of such a difference if both were equally good, over {report.subset.kept} questions")


def _write_per_query(path: Path, report: Report) -> None:
    queries = {pair.query_id: " ".join(pair.query.split()) for pair in report.subset.pairs}
    rows = [["query_id", *report.values, "query"]]
    for query_id, values in report.per_query.items():
        rows.append(
            [query_id, *("" if value != value else f"{value:.6g}" for value in values.values()), queries[query_id]]
        )
    write_lines(path, (("\t".join(row) + "\n").encode() for row in rows))


def _one_word(name: str) -> str:
    return "_".join(name.split()) or "scorer"

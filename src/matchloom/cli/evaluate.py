"""`matchloom evaluate`: figures, with all that is needed to believe them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast

import typer

import matchloom
from matchloom.artifact import kind_of as kind_of_folder
from matchloom.basics.files import atomic_write, write_lines
from matchloom.cli.batches import folder_of, refuse_with_engine, refuse_without_engine
from matchloom.cli.options import (
    AddressOption,
    CollectionOption,
    ColumnsOption,
    EngineOption,
    MeasuresOption,
    PairsArgument,
    ScorerArgument,
    ScorerTokenizerOption,
    SeedOption,
    VectorsOption,
)
from matchloom.cli.printing import console, note, print_json, table
from matchloom.cli.reading import parse_columns, read_all, read_texts, texts_of, tokenizer_of, vectors_for
from matchloom.cli.scorers import load_scorer
from matchloom.data.identity import both_sides, count_known, questions_of
from matchloom.types import MatchloomError, Pair, Scorer

if TYPE_CHECKING:
    from matchloom import Collection
    from matchloom.evaluation import AnswerabilityReport, Difference, LabelledReport, Report

    AnyReport: TypeAlias = Report | LabelledReport

_MEASURES = "AP RR P@1 nDCG@10"


def command(
    scorer: ScorerArgument,
    pairs: PairsArgument,
    measures: MeasuresOption = _MEASURES,
    subset: Annotated[
        str,
        typer.Option(
            help="Which questions count: both (those with both labels), positive (those with a positive) or all."
        ),
    ] = "both",
    no_baselines: Annotated[bool, typer.Option("--no-baselines", help="Skip baselines and blind probes.")] = False,
    against: Annotated[
        str | None,
        typer.Option(metavar="SCORER", help="Compare with this scorer, with a significance test.", show_default=False),
    ] = None,
    full_ranking_of: Annotated[
        Path | None,
        typer.Option(
            "--full-ranking",
            metavar="FILE",
            help="Rank every question against all texts of this file. Always so for a file without negatives.",
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
    kind: Annotated[
        str | None,
        typer.Option(help="lists or pairs. Default: detected from the file.", show_default=False),
    ] = None,
    columns: ColumnsOption = None,
    seed: SeedOption = 0,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="With --engine: the folder for ids, labels and scores.", show_default=False),
    ] = None,
    engine: EngineOption = None,
    address: AddressOption = None,
) -> None:
    """Measure a scorer on labelled pairs.

    The table also has baselines, which the scorer should beat, and blind probes, which should be at chance.
    Baselines: random, the order of the file, IDF overlap, BM25 plain and stemmed, and soft coverage if there are
    vectors. Blind probes: the scorer with the questions shuffled, and text length alone; if one is above chance,
    the lists give the answer away. Ties, questions that do not count and anything else that changes a figure are
    reported below the table. If all pairs are positive, each question is ranked against all texts of the file, the
    answers of a fitted folder, or the texts of --full-ranking, as in real use. --against adds a paired randomisation
    test over questions.

    Independent labelled pairs, such as paraphrases, are not lists. They are measured all together, by average
    precision and AUC, and, where SCORER has a threshold (fitted to such pairs, or trained with cross_entropy), by
    accuracy and F1.

    For a collection of answers it also measures whether the collection detects questions without an answer: those
    whose answer is empty or no_answer. The figures are AUROC of questions with an answer against those without; how
    many of those without are refused where 95% of the others are kept; the expected calibration error of
    probabilities; and how many answers are right if only the most probable ones are given.

    With --engine PAIRS is a Parquet file or a folder of them, which may hold more pairs than memory. They are scored
    shard by shard into the folder --out, which keeps ids, labels and scores; the lists are then measured in batches.
    Baselines and blind probes are skipped.

    \b
    Examples:
      matchloom evaluate runs/faq data/test.tsv
      matchloom evaluate runs/faq data/test.tsv --against bm25_stemmed --measures "P@1 RR"
      matchloom evaluate bm25 data/test.tsv --run bm25.run --qrels test.qrels
      matchloom evaluate runs/faq shards --engine ray --out scores
    """
    if engine is not None:
        given = {"against": against, "full-ranking": full_ranking_of, "vectors": vectors, "per-query": per_query}
        refuse_with_engine(**given, run=run, qrels=qrels, kind=kind)
        where = None if collection is None else str(collection)
        from matchloom.batch.measuring import MeasureWork, evaluate_shards

        work = MeasureWork(scorer, where, tokenizer or "english", parse_columns(columns), seed)
        made = evaluate_shards(
            work,
            pairs,
            folder_of(out),
            measures=measures.replace(",", " ").split(),
            subset=subset,
            engine=engine,
            address=address,
            progress=True,
        )
        _print((scorer, made), None, {}, json)
        return
    refuse_without_engine(address, out=out)
    from matchloom.data.formats import write_qrels, write_run
    from matchloom.evaluation import compare_runs

    tokenize = tokenizer_of(tokenizer)
    read, knows = _answerable(scorer, read_all(pairs, columns=columns))
    independent = _is_independent(read, kind) and full_ranking_of is None
    found = read if independent else _judged(read, scorer, full_ranking_of, columns, seed)
    # The same for scorer and baselines.
    texts = texts_of(found) if collection is None else read_texts(collection, columns)
    word_vectors = vectors_for(vectors, both_sides(found) if vectors else (), tokenize)

    def load(name: str) -> Scorer:
        return load_scorer(name, lambda: texts, tokenizer=tokenize, vectors=word_vectors, seed=seed)

    if independent:
        files = {"--run": run, "--qrels": qrels, "--per-query": per_query}
        files["--measures"] = None if measures == _MEASURES else Path(measures)
        _evaluate_pairs(
            load,
            found,
            (scorer, against),
            files,
            json,
            baselines=not no_baselines,
            tokenizer=None if tokenizer is None else tokenize,
            collection=texts,
            seed=seed,
        )
        return

    def measure(name: str, baselines: bool) -> Report:
        chosen = load(name)
        made = matchloom.evaluate(
            chosen,
            found,
            measures=measures.replace(",", " ").split(),
            subset=subset,
            baselines=baselines,
            vectors=word_vectors,
            tokenizer=None if tokenizer is None else tokenize,
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
    _print((scorer, report), None if other is None else (against or "", other), compared or {}, json, knows)


def _answerable(scorer: str, pairs: list[Pair]) -> tuple[list[Pair], AnswerabilityReport | None]:
    """The pairs that have an answer; of a collection of answers also whether it knows when it has none."""
    from matchloom.data.unanswerable import is_unanswerable
    from matchloom.evaluation import evaluate_answers

    if kind_of_folder(scorer) != "collection" or any(not pair.is_positive for pair in pairs):
        return pairs, None
    collection = cast("Collection", matchloom.load(scorer))
    known = count_known(pairs, chain.from_iterable(collection.entries.questions))
    if known:
        note(
            f"{known:,} of {len(questions_of(pairs)):,} questions of the file are known to {scorer}: of these the "
            "figures say how well they are remembered, and nothing of new questions."
        )
    report = evaluate_answers(collection, pairs)
    return [pair for pair in pairs if not is_unanswerable(pair)], report


def _is_independent(pairs: list[Pair], kind: str | None) -> bool:
    """Whether the pairs are no lists; a few questions may repeat by chance, in a file of lists nearly all do."""
    from matchloom.data.kinds import PAIRS, kind_of

    if kind not in (None, "lists", "pairs"):
        raise MatchloomError(f"--kind {kind!r} is unknown; choose lists or pairs", code="unknown_name")
    labels = {pair.is_labelled_positive for pair in pairs}
    if kind is not None or len(labels) < 2 or any(pair.label is None for pair in pairs):
        return kind == "pairs"
    found = kind_of(pairs)
    return found.name == PAIRS and found.pairs < 2 * found.queries


def _evaluate_pairs(
    load: Callable[[str], Scorer],
    pairs: list[Pair],
    names: tuple[str, str | None],
    files: dict[str, Path | None],
    json: str | None,
    **options: Any,
) -> None:
    from matchloom.evaluation import Difference, evaluate_pairs, paired_randomisation

    wrong = [name for name, given in files.items() if given is not None]
    if wrong:
        raise MatchloomError(
            f"{wrong[0]} is for candidate lists, and these are independent labelled pairs, which have AP, AUC, "
            "accuracy and F1; leave it out, or say --kind lists",
            code="conflict",
        )
    seed = options["seed"]
    report = evaluate_pairs(load(names[0]), pairs, progress=True, **options)
    other, compared = None, {}
    if names[1] is not None:
        other = evaluate_pairs(load(names[1]), pairs, progress=True, **{**options, "baselines": False})
        for name in report.each.keys() & other.each.keys():
            p = paired_randomisation(report.each[name], other.each[name], seed=seed)
            compared[name] = Difference(report.values[name] - other.values[name], p)
    ordered = {name: compared[name] for name in report.values if name in compared}
    _print((names[0], report), None if other is None else (names[1] or "", other), ordered, json)


def _print(
    first: tuple[str, AnyReport],
    second: tuple[str, AnyReport] | None,
    compared: dict[str, Difference],
    json: str | None,
    knows: AnswerabilityReport | None = None,
) -> None:
    """The report and what it is compared with, as JSON into a file or onto the screen, or as tables."""
    report = first[1]
    if json is not None:
        content = report.to_dict()
        if second is not None:
            tests = {name: result._asdict() for name, result in compared.items()}
            content["against"] = {"scorer": second[0], "values": second[1].to_dict()["values"], "tests": tests}
        if knows is not None:
            content["answerability"] = knows.to_dict()
        if json == "-":
            print_json(content)
            return
        with atomic_write(json) as file:
            file.write(dumps(content, ensure_ascii=False, allow_nan=False) + "\n")
    console().print(report)
    if second is not None:
        _show_comparison(first, second, compared)
    if knows is not None:
        console().print()
        console().print(knows)


def _judged(pairs: list[Pair], scorer: str, collection: Path | None, columns: str | None, seed: int) -> list[Pair]:
    """The candidate lists to rank: the file's own, or every question against all texts of a collection."""
    from matchloom.data.full_ranking import full_ranking

    wrong = any(not pair.is_positive for pair in pairs)
    if collection is None and wrong:
        unlabelled = sum(pair.label is None for pair in pairs)
        if unlabelled:
            raise MatchloomError(
                f"{unlabelled} of {len(pairs)} pairs have no label; give every one, or none at all", code="bad_labels"
            )
        return pairs
    texts: list[Pair | str] = []
    if collection is not None:
        texts += read_texts(collection, columns)
    elif kind_of_folder(scorer) == "collection":
        entries = cast("Collection", matchloom.load(scorer)).entries
        texts += [Pair("", text, text_id=name) for text, name in zip(entries.texts, entries.ids, strict=True)]
    made = full_ranking(pairs, texts, seed=seed)
    questions, asked = len({pair.query_id for pair in made}), len({pair.query_id for pair in pairs})
    drawn = f" ({questions:,} of {asked:,}, so that it ends)" if questions < asked else ""
    note(f"Ranking {questions:,} questions{drawn} against all {len(made) // questions:,} texts.")
    return made


def _show_comparison(
    first: tuple[str, AnyReport], second: tuple[str, AnyReport], compared: dict[str, Difference]
) -> None:
    from matchloom.evaluation import Report

    (name, report), (other_name, other) = first, second  # as the user called them: two matchers may share a model
    shown = table("measure", name, other_name, "difference", "p", right=(name, other_name, "difference", "p"))
    for measure, result in compared.items():
        values = (f"{each.values[measure]:.4f}" for each in (report, other))
        shown.add_row(measure, *values, f"{result.difference:+.4f}", f"{result.p:.4f}")
    printer = console()
    printer.print()
    printer.print(shown)
    over = f"{report.subset.kept} questions" if isinstance(report, Report) else f"{report.pairs:,} pairs"
    printer.print(f"p: the probability of such a difference if both were equally good, over {over}")


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

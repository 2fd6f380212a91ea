"""`matchloom doctor`: what is wrong with a run file or a collection, and what it does; and what this machine has."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import matchloom
from matchloom.artifact import kind_of
from matchloom.basics.parallel import usable_cores
from matchloom.cli.options import (
    MeasuresOption,
    MovedOption,
    SeedOption,
    place,
)
from matchloom.cli.printing import console, print_json, table
from matchloom.kernels.native import status
from matchloom.types import MatchloomError

if TYPE_CHECKING:
    from matchloom.evaluation import Finding

_PACKAGES = (
    "torch",
    "numpy",
    "bm25s",
    "ir-measures",
    "pytrec-eval-terrier",
    "gensim",
    "rjieba",
    "pyarrow",
    "typer",
    "rich",
)
_OPTIONAL = ("matplotlib",)
_FLAGS = ("avx2", "avx512f", "amx_tile", "asimd", "neon")


def command(
    run: Annotated[
        Any,
        typer.Argument(
            parser=place,
            metavar="RUN",
            help="A TREC run file, or the folder of a collection, or the URI of an archive.",
            show_default=False,
        ),
    ] = None,
    qrels: Annotated[
        Path | None, typer.Argument(metavar="QRELS", help="A run's judgements.", show_default=False)
    ] = None,
    measures: MeasuresOption = "AP RR P@1 nDCG@10",
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    seed: SeedOption = 0,
    repair: Annotated[
        bool, typer.Option("--repair", help="Restore the newest undamaged version of a damaged archive.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Make every vector of an archive again, not those of 1,000 pairs.")
    ] = False,
    matcher: MovedOption = None,
    system: Annotated[bool, typer.Option("--system", help="Show versions, cores and threads instead.")] = False,
) -> None:
    """Check a run file or a collection for problems.

    In a run it looks for ties, constant scores, an order that follows the labels, missing queries, NaN and duplicate
    ids. For each problem it reports the figure with and without it. A run has lines of 'query_id Q0 text_id rank score
    tag', qrels lines of 'query_id 0 text_id label'; 'matchloom evaluate' writes both with --run and --qrels.

    In a collection it compares every file and every change since the fit with its checksum, and reads every entry. In a
    LanceDB archive it reads every file and every row, and compares files with the digests recorded when they were
    written, counts with those of the table, vectors with those that the matcher makes of the texts, and indices with
    the rows. The exit code is 0 if nothing is damaged, else 1. --repair copies the newest undamaged version of an
    archive into a new table, reports what is lost, and moves the damaged files to a folder inside the archive.

    \b
    Examples:
      matchloom doctor system.run test.qrels
      matchloom doctor faq
      matchloom doctor faq.archive --repair
      matchloom doctor --system
    """
    if system:
        _print_pairs(system_facts(), json)
        return
    if run is not None and qrels is None and _is_folder(run):
        _look_at_collection(run, matcher, repair, every, json)
        return
    if run is None or qrels is None:
        raise MatchloomError(
            "give a run and its judgements: matchloom doctor RUN QRELS (or the folder of a collection, or --system)",
            code="conflict",
        )
    from matchloom.evaluation import audit

    findings = audit(run, qrels, measures.replace(",", " ").split(), seed=seed)
    if json:
        print_json([_plain(finding) for finding in findings])
        return
    shown = table("", "")
    shown.show_header = False
    for finding in findings:
        shown.add_row(finding.kind, finding.text)
    if len(findings) == 1:
        shown.add_row("no problem", "no ties, no missing queries, no NaN, no duplicate ids")
    console().print(shown)


def _is_folder(path: Path | str) -> bool:
    try:
        return isinstance(path, str) or path.is_dir()
    except OSError:  # too long for a name
        return False


def _look_at_collection(folder: Path | str, matcher: Path | None, repair: bool, every: bool, json: bool) -> None:
    """Print what was found; the exit code says whether the collection is whole now."""
    mended = None
    if kind_of(folder) == "collection":
        if repair:
            raise MatchloomError(
                f"--repair is for LanceDB archives; copy {folder} again, or fit it again", code="not_supported"
            )
        checkup = matchloom.Collection.check(folder)
    else:
        from matchloom.search.lance.collection import LanceCollection

        if repair:
            mended = LanceCollection.repair(folder, progress=True)
            checkup = mended.checkup
        else:
            checkup = LanceCollection.check(folder, matcher, every_vector=every, progress=True)
    if json:
        repaired = {} if mended is None else {"repaired": mended.version, "pairs": mended.pairs, "lost": mended.lost}
        print_json({**checkup.to_dict(), **repaired})
    else:
        shown = table("", "", "")
        shown.show_header = False
        for finding in checkup.findings:
            shown.add_row(finding.what, "whole" if finding.whole else "DAMAGED", finding.text)
        printer = console()
        printer.print(shown)
        printer.print(checkup.verdict if mended is None else str(mended), soft_wrap=True)
    if not checkup.whole and mended is None:
        raise typer.Exit(1)


def system_facts() -> dict[str, str]:
    """Versions, cores, threads and what is there."""
    import torch

    facts = {
        "matchloom": version("matchloom"),
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "cores": f"{os.cpu_count()}, of which {usable_cores()} may be used",
        "threads of torch": str(torch.get_num_threads()),
        "processor flags": _flags() or "none of interest, or unknown",
        "cuda": "available" if torch.cuda.is_available() else "not available",
        "native kernels": status(),
    }
    for package in (*_PACKAGES, *_OPTIONAL):
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "missing (optional)" if package in _OPTIONAL else "missing"
    return facts


def _flags() -> str:
    try:
        flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    except OSError:
        return ""
    return " ".join(flag for flag in _FLAGS if flag in flags)


def _print_pairs(facts: dict[str, str], json: bool) -> None:
    if json:
        print_json(facts)
        return
    shown = table("", "")
    shown.show_header = False
    for name, fact in facts.items():
        shown.add_row(name, fact)
    console().print(shown)


def _plain(finding: Finding) -> dict[str, object]:
    figures = {
        way: {name: None if value != value else value for name, value in row.items()}
        for way, row in finding.figures.items()
    }
    return {"kind": finding.kind, "text": finding.text, "figures": figures}

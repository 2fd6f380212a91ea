"""One page of all tables that have results: published beside ours, and all that is needed to read them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from experiments.reproduction.figures import PLOTS
from experiments.reproduction.results import Place, Results, read_results
from experiments.reproduction.summary import (
    best_row,
    commits,
    leaks,
    order_lines,
    probe_lines,
    table_rows,
    tie_lines,
)
from experiments.reproduction.tables import PaperTable, read_table, table_names

HEAD = """# Results

Each table has our figures beside the published ones: means over seeds with their deviations, p of the difference from a
row by a paired randomisation test over queries, the minutes of a run. One command repeats each row.
"""
_SUMMARY = """## Summary

For each table the system with the best development figure, and its test figure, by the table's first measure. If a
blind probe is not at chance, right texts can partly be recognised without their question, and every figure of that
table is too high. A probe that was measured and is not listed was at chance.
"""
_LEAK = """
**Not at chance: {probes}.** Right texts can partly be recognised without their question, so every figure of this table
is higher than it should be."""
_TRIALS = """## Trials

What was tried before a setting was chosen: development figures only; the test pairs were not used.
"""


def results_page(
    folder: Path, drawn: Collection[str], head: str = HEAD, others: Sequence[str] = (), first: str = ""
) -> str:
    """The page of a folder of results.

    Args:
        folder: What `reproduce` has written.
        drawn: The plots that are in the folder `figures` beside the page.
        head: What the page begins with.
        others: Sections that come behind the tables and before the trials.
        first: A section that comes before the tables, if there are any.
    """
    found = [(table, done) for table in map(read_table, table_names()) if (done := _results(folder, table))]
    tables = [table_section(table, done, drawn) for table, done in found if not table.is_trial]
    trials = [table_section(table, done, drawn, "###") for table, done in found if table.is_trial]
    sections = [
        *([first] if first and (tables or others) else []),
        *tables,
        *others,
        *([_TRIALS] if trials else []),
        *trials,
    ]
    summary = [summary_section([(table, done) for table, done in found if not table.is_trial])] if tables else []
    return "\n".join([head, *summary, *([contents(sections)] if sections else []), *sections])


def summary_section(found: Sequence[tuple[PaperTable, Results]]) -> str:
    """One line for each table."""
    rows = []
    for table, done in found:
        best = best_row(table, done)
        if best is not None:
            name, development, test, seeds = best
            probes = ", ".join(leaks(table, done))
            figures = [f"{development:.3f}", f"{test:.3f}", str(seeds)]
            rows.append([_link(table.title), table.measures[0], name, *figures, probes])
    head = ["table", "measure", "best by development", "dev", "test", "seeds", "probes that are not at chance"]
    return "\n".join([_SUMMARY, *markdown(head, *rows), ""])


def contents(sections: Sequence[str]) -> str:
    """Links to all sections."""
    titles = [line for section in sections for line in section.splitlines() if re.match("###? ", line)]
    listed = (title.partition(" ") for title in titles)
    return "\n".join(
        ["## Contents\n", *(f"{'  ' * (len(level) - 2)}- {_link(title)}" for level, _, title in listed), ""]
    )


def _link(title: str) -> str:
    """To a section of the page, as GitHub names it."""
    kept = re.sub(r"[^\w\- ]", "", title.lower())
    return f"[{title}](#{kept.replace(' ', '-')})"


def _results(folder: Path, table: PaperTable) -> Results | None:
    done = read_results(Place(folder, table.name).results)
    return done if any(done["systems"].get(row.name) for row in table.rows) else None


def table_section(table: PaperTable, done: Results, drawn: Collection[str] = (), level: str = "##") -> str:
    """One published table beside ours."""
    needs = " --data DIR" if table.folders else ""
    lines = [f"{level} {table.title}\n", f"`matchloom reproduce {table.name}{needs}`: {done['protocol']}.\n"]
    lines += markdown(*table_rows(table, done))
    if table.kind == "pairs":
        lines.append("\nThe threshold was chosen on the development pairs, so the figures on these are too high.")
    lines += _titled("Order, by the first measure:", order_lines(table, done))
    lines += _titled("Tied scores, whose order decides:", tie_lines(table, done))
    note = table.note.strip()
    if note:
        compared = any(row.published or row.published_development is not None for row in table.rows)
        lines.append(("\n**Differences, and their likely reasons**\n\n" if compared else "\n") + note)
    for plot in PLOTS:
        # A note may have it where it speaks of it.
        if plot.results == table.name and plot.name in drawn and f"figures/{plot.name}.png" not in note:
            lines.append(f"\n![{plot.caption}](figures/{plot.name}.png)")
    lines += _titled("Blind probes, which should be at chance, means over seeds:", probe_lines(table, done))
    if probes := leaks(table, done):
        lines.append(_LEAK.format(probes=" and ".join(probes)))
    sizes = ", ".join(f"{part} {count:,}" for part, count in done["sizes"].items())
    machine = ", ".join(f"{key} {value}" for key, value in done["machine"].items())
    lines.append(f"\nPairs: {sizes}. {machine}. Commits {', '.join(commits(table, done))}.\n")
    return "\n".join(lines)


def _titled(title: str, lines: list[str]) -> list[str]:
    return [f"\n{title}\n", *lines] if lines else []


def markdown(head: list[str], *rows: list[str]) -> list[str]:
    """The lines of a table."""
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *("| " + " | ".join(row) + " |" for row in rows)]

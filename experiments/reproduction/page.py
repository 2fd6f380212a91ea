"""One page of all tables that have results: published beside ours, and all that is needed to read them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from experiments.reproduction.figures import PLOTS
from experiments.reproduction.results import Place, Results, read_results
from experiments.reproduction.summary import commits, order_lines, probe_lines, table_rows, tie_lines
from experiments.reproduction.tables import PaperTable, read_table, table_names

HEAD = """# Results

Each table has our figures beside the published ones: means over seeds with their deviations, p of the difference to a
row by a paired randomisation test over queries, the minutes of a run. Every row is a command away.
"""
_TRIALS = """## Trials

What was tried before a setting was chosen: development figures alone, nobody has looked at the test pairs.
"""


def results_page(folder: Path, drawn: Collection[str], head: str = HEAD, others: Sequence[str] = ()) -> str:
    """The page of a folder of results.

    Args:
        folder: What `reproduce` has written.
        drawn: The plots that are in the folder `figures` beside the page.
        head: What the page begins with.
        others: Sections that come behind the tables and before the trials.
    """
    found = [(table, done) for table in map(read_table, table_names()) if (done := _results(folder, table))]
    tables = [table_section(table, done, drawn) for table, done in found if not table.is_trial]
    trials = [table_section(table, done, drawn, "###") for table, done in found if table.is_trial]
    return "\n".join([head, *tables, *others, *([_TRIALS] if trials else []), *trials])


def _results(folder: Path, table: PaperTable) -> Results | None:
    done = read_results(Place(folder, table.name).results)
    return done if any(done["systems"].get(row.name) for row in table.rows) else None


def table_section(table: PaperTable, done: Results, drawn: Collection[str] = (), level: str = "##") -> str:
    """One published table beside ours."""
    needs = " --data DIR" if table.folders else ""
    lines = [f"{level} {table.title}\n", f"`matchloom reproduce {table.name}{needs}`: {done['protocol']}.\n"]
    lines += markdown(*table_rows(table, done))
    if table.kind == "pairs":
        lines.append("\nThe threshold was chosen on the development pairs, whose own figures it therefore flatters.")
    lines += _titled("Order, by the first measure:", order_lines(table, done))
    lines += _titled("Tied scores, whose order decides:", tie_lines(table, done))
    note = table.note.strip()
    if note:
        compared = any(row.published or row.published_development is not None for row in table.rows)
        lines.append(("\n**Where we differ, and why we think so**\n\n" if compared else "\n") + note)
    for plot in PLOTS:
        # A note may have it where it speaks of it.
        if plot.results == table.name and plot.name in drawn and f"figures/{plot.name}.png" not in note:
            lines.append(f"\n![{plot.caption}](figures/{plot.name}.png)")
    lines += _titled("Blind probes, which must stay at chance, means over seeds:", probe_lines(table, done))
    sizes = ", ".join(f"{part} {count:,}" for part, count in done["sizes"].items())
    machine = ", ".join(f"{key} {value}" for key, value in done["machine"].items())
    lines.append(f"\nPairs: {sizes}. {machine}. Commits {', '.join(commits(table, done))}.\n")
    return "\n".join(lines)


def _titled(title: str, lines: list[str]) -> list[str]:
    return [f"\n{title}\n", *lines] if lines else []


def markdown(head: list[str], *rows: list[str]) -> list[str]:
    """The lines of a table."""
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *("| " + " | ".join(row) + " |" for row in rows)]

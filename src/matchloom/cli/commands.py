"""The commands by name: where each is, its line in the list, and how its help ends.

A command's file is imported when it is called, and imports the library in its functions: help need not wait for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_command

from matchloom.cli.experiments import experiment

PAIRS_FILE = (
    "A pairs file is TSV, CSV, JSONL, JSON, Parquet, .xlsx, .ods, Markdown, HTML, .zip or a folder of these; "
    "'matchloom import' shows how it is read. The text formats may end with .gz. Its columns, in any order: query and "
    "text; optionally label (1 or yes: the text is right for the query, 0 or no: wrong), query_id (pairs with the same "
    "one are one list), text_id, and group (pairs of one group stay on one side of a split). Other columns are kept "
    "with the answers of a collection. Common names such as question and answer, sentence1 and sentence2, query and "
    "passage or is_duplicate are understood. Two or three columns without a header are query, text and label."
)
_TRAINED = "SCORER is a folder that 'matchloom fit', 'train' or 'trans-lm' made,"
_LEXICAL = "or one of random, bm25, bm25_stemmed, overlap, soft_coverage (which needs --vectors)."
SCORER = f"{_TRAINED} a TREC run file, {_LEXICAL}"
RERANKER = f"{_TRAINED} {_LEXICAL}"  # a run knows its own pairs only


class Command(NamedTuple):
    """One command: its module and function, the first line of its help, and what its help ends with."""

    home: str
    about: str
    epilog: str | None = None


# The groups in which `matchloom --help` and docs/commands.md show the commands, what a newcomer needs first.
GROUPS = {
    "Answer questions": {
        "fit": Command(
            "matchloom.cli.fit:command", "Choose the best system for a file of pairs, and measure it.", PAIRS_FILE
        ),
        "search": Command("matchloom.cli.search:command", "Find the answers to a question, and show why.", RERANKER),
        "add": Command("matchloom.cli.add:command", "Add questions and answers to a collection.", PAIRS_FILE),
        "remove": Command("matchloom.cli.remove:command", "Remove answers from a collection by their ids."),
        "refit": Command("matchloom.cli.refit:command", "Learn from what was added and removed since the last fit."),
        "serve": Command("matchloom.cli.serve:command", "Serve a page for people and an API for programs."),
        "publish": Command(
            "matchloom.cli.publish:command", "Publish a collection at a URI, from which replicas serve."
        ),
        "mcp": Command("matchloom.cli.mcp:command", "Let agents search a collection (Model Context Protocol)."),
        "index": Command(
            "matchloom.cli.index:command", "Build a collection without learning or measuring.", PAIRS_FILE
        ),
        "tune": Command(
            "matchloom.cli.tune:command",
            "Choose alpha, the weight of similar questions.",
            f"{RERANKER}\n\n{PAIRS_FILE}",
        ),
        "demo": Command("matchloom.cli.demo:command", "Try everything once, on Python's own documentation."),
    },
    "Look closer": {
        "rank": Command("matchloom.cli.rank:command", "Rank the texts of a file for a query.", SCORER),
        "score": Command("matchloom.cli.score:command", "Score the pairs of a file.", f"{SCORER}\n\n{PAIRS_FILE}"),
        "explain": Command("matchloom.cli.explain:command", "Show why a text got its score.", SCORER),
        "evaluate": Command(
            "matchloom.cli.evaluate:command", "Measure a scorer on labelled pairs.", f"{SCORER}\n\n{PAIRS_FILE}"
        ),
        "compare": Command(
            "matchloom.cli.compare:command", "Train several models on the same data and compare.", PAIRS_FILE
        ),
        "report": Command("matchloom.cli.report:command", "Show a training or fit, also while it runs."),
        "card": Command("matchloom.cli.card:command", "Write a card into a folder: what it is, and how good."),
        "doctor": Command("matchloom.cli.doctor:command", "Check a run file or a collection for problems."),
    },
    "Train": {
        "train": Command("matchloom.cli.train:command", "Train a matcher on pairs.", PAIRS_FILE),
        "models": Command("matchloom.cli.models:command", "List models and lexical scorers, or describe one model."),
        "encoders": Command("matchloom.cli.encoders:command", "List, add or use pretrained encoders."),
        "vectors": Command("matchloom.cli.vectors:command", "Train word vectors on your own texts.", PAIRS_FILE),
        "trans-lm": Command(
            "matchloom.cli.trans_lm:command", "Learn which words of a text answer which words of a query.", PAIRS_FILE
        ),
        "export": Command("matchloom.cli.export:command", "Write a matcher as ONNX graphs, which run without torch."),
    },
    "Data": {
        "import": Command("matchloom.cli.import_:command", "Show how a file or folder is read, and write it as pairs."),
        "check": Command("matchloom.cli.check:command", "Check a pairs file for problems.", PAIRS_FILE),
        "split": Command("matchloom.cli.split:command", "Split a pairs file into train, dev and test.", PAIRS_FILE),
        "mine": Command("matchloom.cli.mine:command", "Add negatives to positive pairs.", PAIRS_FILE),
        "encode": Command("matchloom.cli.encode:command", "Write sentence vectors of the texts in Parquet files."),
        "corpus": Command("matchloom.cli.corpus:command", "Write a known corpus as pairs files."),
        "reproduce": Command("experiments.cli.reproduce:command", "Repeat a published table or experiment."),
    },
}
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}


def load(name: str) -> Any:
    """The command of this name, imported now."""
    module, function = COMMANDS[name].home.split(":")
    part, _, rest = module.partition(".")
    home = experiment(rest) if part == "experiments" else import_module(module)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    alone.command(name, epilog=COMMANDS[name].epilog)(getattr(home, function))
    return get_command(alone)


class Commands(TyperGroup):
    """The group that is the command `matchloom`. Its contexts are typer's or click's, by typer's version."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]  # their names, for "did you mean"

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command that was called; None makes the error of an unknown one."""
        return load(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list in `matchloom --help`."""
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, command.about) for name, command in group.items()])

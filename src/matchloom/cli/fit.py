"""`matchloom fit`: the whole afternoon in one command."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import matchloom
from matchloom.cli.options import ColumnsOption, SeedOption
from matchloom.cli.printing import console, note, say
from matchloom.cli.reading import parse_columns, tokenizer_of

if TYPE_CHECKING:
    from matchloom import Fitted


def command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Pairs files.", show_default=False)],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write; made if need be.", show_default=False)],
    test: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Pairs to measure on; else a fifth of the questions is held out.", show_default=False
        ),
    ] = None,
    feedback: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Judgements of answers, as 'matchloom serve' keeps them.", show_default=False
        ),
    ] = None,
    minutes: Annotated[float, typer.Option(help="How long it may take.")] = 10.0,
    kind: Annotated[
        str | None,
        typer.Option(help="answers, lists or pairs, where it should not be told from the file.", show_default=False),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="A language, such as german or chinese, or whitespace; else told from the texts.",
            show_default=False,
        ),
    ] = None,
    columns: ColumnsOption = None,
    encoder: Annotated[
        str,
        typer.Option(
            metavar="ENCODER",
            help="A pretrained encoder that may be used: a folder, or a name that 'matchloom encoders' lists; auto is "
            "the first of these, none is none.",
        ),
    ] = "auto",
    tune: Annotated[
        bool,
        typer.Option(
            "--tune/--no-tune",
            help="Tune the encoder on your questions, where time allows; kept where held-out questions are better "
            "for it.",
        ),
    ] = True,
    seed: SeedOption = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier fit wrote there.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a fit that was stopped, with the same files and settings.")
    ] = False,
) -> None:
    """Make the best of a file of pairs, and say how good it is.

    It finds out what the file is: questions with their answers (an answer may have many questions), judged candidate
    lists, or independent labelled pairs. It tries a short list of systems beside the baselines that you would have used
    instead, chooses on development questions ranked against every answer (or each question's own candidates), measures
    once on test questions, and keeps what it chose, with a report page; of questions with answers it has then learnt
    from every one. DIR is a SCORER for rank, score, explain and evaluate, and what 'matchloom search' searches in.

    Where each answer has one question, a held-out question can only be found by the answer's text, and that is what the
    figures are of; in use answers have their questions, too. Questions that people asked (--test) tell more.

    Where 'matchloom encoders' lists a pretrained encoder, it is tried, too, and the table tells what it gains. Where
    answers have several questions, or the file has labelled pairs, its last layers then learn from them for some
    minutes; --no-tune leaves that out.

    With --feedback it learns at the end from thumbs up and down, if held-out questions are not worse for it; what that
    means is told by 'matchloom refit'. The figures are of the files alone.

    Ctrl-C keeps the best so far. What was measured stays in DIR: --resume goes on from there, also after a kill.

    \b
    Examples:
      matchloom fit faq.tsv --out faq
      matchloom fit faq.tsv --feedback feedback.jsonl --out faq --overwrite
      matchloom fit faq.tsv rephrased.tsv --test new.tsv --out faq --minutes 5
      matchloom search faq "I forgot my password" --top 3 --explain
    """
    tokenize = None if tokenizer is None else tokenizer_of(tokenizer)
    fitted = matchloom.fit(
        *files,
        out=out,
        test=test,
        feedback=feedback,
        kind=kind,
        minutes=minutes,
        tokenizer=tokenize,
        columns=parse_columns(columns),
        encoder=None if encoder == "none" else encoder,
        tune=tune,
        seed=seed,
        overwrite=overwrite,
        resume=resume,
        on_note=note,
    )
    printer = console()
    printer.print(fitted.report)
    _say_what_next(fitted, out)


def _say_what_next(fitted: Fitted, out: Path) -> None:
    say(f"\nThe report: {out / 'report.html'}. Next:")
    asked = next((one.question for one in fitted.report.best), "your question")
    if fitted.kind == "answers":
        say("  " + shlex.join(["matchloom", "search", str(out), asked, "--top", "3", "--explain"]))
        say("  " + shlex.join(["matchloom", "serve", str(out), "--writable"]))
    else:
        say("  " + shlex.join(["matchloom", "rank", str(out), asked, "candidates.txt", "--explain"]))

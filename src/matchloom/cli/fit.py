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
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder to write; created if needed.", show_default=False)
    ],
    test: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Pairs to measure on. Default: a fifth of the questions is held out.",
            show_default=False,
        ),
    ] = None,
    feedback: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Judgements of answers, as 'matchloom serve' keeps them.", show_default=False
        ),
    ] = None,
    minutes: Annotated[float, typer.Option(help="The time limit, in minutes.")] = 10.0,
    kind: Annotated[
        str | None,
        typer.Option(help="answers, lists or pairs. Default: detected from the file.", show_default=False),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="A language, such as german or chinese, or whitespace. Default: detected.",
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
            help="Tune the encoder on your questions, if there is time; kept if it improves held-out questions.",
        ),
    ] = True,
    seed: SeedOption = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier fit wrote there.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a stopped fit, with the same files and settings.")
    ] = False,
) -> None:
    """Choose the best system for a file of pairs, and measure it.

    It detects the kind of the file: questions with their answers (an answer may have many questions), judged candidate
    lists, or independent labelled pairs. It tries a short list of systems and simple baselines. It chooses one on
    development questions, ranked against every answer (or against each question's own candidates), measures it once on
    test questions, and saves it with a report page. A collection of answers finally learns from all questions. DIR is a
    SCORER for rank, score, explain and evaluate, and 'matchloom search' searches in it.

    If each answer has one question, a held-out question can be found only by the answer's text, and that is what the
    figures measure. In use, answers have their questions, too. Questions that people asked (--test) tell more.

    If 'matchloom encoders' lists a pretrained encoder, it is tried, too, and the table shows what it gains. If answers
    have several questions, or the file has labelled pairs, the encoder's last layers are then tuned on them for some
    minutes; --no-tune skips that.

    With --feedback it finally learns from thumbs up and down, if the figures of held-out questions do not get worse;
    'matchloom refit --help' explains this. The reported figures are those of the files alone.

    Ctrl-C keeps the best system so far. Measurements stay in DIR; --resume continues from them, also after a kill.

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

"""`matchloom serve`: a page for people and an API for programs."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated, Any

import typer

from matchloom.cli.options import SnapshotKeyOption
from matchloom.cli.printing import note
from matchloom.types import MatchloomError

_REFIT = 30.0  # seconds after the last change


def command(
    folders: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FOLDER...",
            help="What 'fit', 'train' or 'index' made, or a URI of 'publish'; NAME=FOLDER gives it another name.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on; any but loopback needs a key.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8000,
    key_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Requests need a key of this file (lines KEY, NAME KEY or NAME KEY ask). Or set MATCHLOOM_API_KEY.",
            show_default=False,
        ),
    ] = None,
    writable: Annotated[bool, typer.Option("--writable", help="Let clients change collections and archives.")] = False,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="Another site whose pages may send questions, such as https://shop.example; may be repeated.",
            show_default=False,
        ),
    ] = None,
    feedback: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where thumbs up and down are saved, for 'refit --feedback'. Default: feedback.jsonl here.",
            show_default=False,
        ),
    ] = None,
    no_feedback: Annotated[
        bool, typer.Option("--no-feedback", help="Do not save thumbs up and down, unless --feedback names a file.")
    ] = False,
    title: Annotated[str | None, typer.Option(help="Title of the page for users.", show_default=False)] = None,
    logo: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A picture beside the title: SVG, PNG.", show_default=False),
    ] = None,
    accent: Annotated[
        str | None,
        typer.Option(metavar="COLOUR", help="Colour of the page's buttons, such as #0a6e5c.", show_default=False),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A TOML file with title, intro, logo, accent, accent_dark, contact, examples of the page.",
            show_default=False,
        ),
    ] = None,
    no_desk: Annotated[bool, typer.Option("--no-desk", help="Do not serve the owners' desk at /desk.")] = False,
    log_questions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Save questions for the desk's inbox, up to a limit; a click deletes them. Default: not saved.",
            show_default=False,
        ),
    ] = None,
    audit: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where each change is logged, with user and time. Default: audit.jsonl here, with --writable.",
            show_default=False,
        ),
    ] = None,
    watch: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Follow this file: refit when it changes, and use the new fit if it is not worse. Needs --writable.",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Also show the progress of trainings and fits in this folder.", show_default=False
        ),
    ] = None,
    poll: Annotated[
        float, typer.Option(min=0.1, max=3600.0, help="Seconds between two checks for a new version at a URI.")
    ] = 5.0,
    max_stale: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=1.0,
            help="/ready fails if a copy could not be checked for updates for so long. Default: it never fails.",
            show_default=False,
        ),
    ] = None,
    copies: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where copies of published collections are kept. Default: matchloom/replicas in the cache folder.",
            show_default=False,
        ),
    ] = None,
    snapshot_key: SnapshotKeyOption = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="How many processes to serve with.")] = 1,
    threads: Annotated[int, typer.Option(min=1, max=64, help="How many requests a process works on at a time.")] = 2,
    no_refit: Annotated[
        bool, typer.Option("--no-refit", help="Do not refit a collection automatically after changes.")
    ] = False,
    queue: Annotated[int, typer.Option(min=1, help="How many requests may run or wait; further ones get 503.")] = 256,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds until a request ends with 503.")] = 10.0,
    max_body: Annotated[int, typer.Option(min=1000, help="Most bytes of a request.")] = 2_000_000,
    max_texts: Annotated[int, typer.Option(min=1, max=10_000, help="Most candidates or pairs of a request.")] = 1_000,
    max_words: Annotated[int, typer.Option(min=1, help="Most words of a text.")] = 2_000,
    quiet: Annotated[bool, typer.Option("--quiet", help="Log errors only.")] = False,
) -> None:
    """Serve a page for people and an API for programs.

    FOLDER is what 'matchloom fit' or 'matchloom index' made, or a matcher of 'matchloom train'; several may be served,
    each under its own name. At the page / users ask, compare systems and see why; programs use /v1 (see /openapi.json,
    docs/service.md, and matchloom.client for Python). /health reports whether the process is alive, /ready whether all
    is loaded, /metrics has figures for Prometheus. Logs are JSON on standard error, a line for each request, and hold
    no texts.

    Only this machine can reach the service, unless --host names another address, which needs a key. When a folder was
    trained or fitted again, POST /v1/reload or SIGHUP loads it without a dropped request; a broken folder is refused.
    On SIGTERM and Ctrl-C the service finishes accepted requests.

    With --writable clients can add and remove entries; confirmed changes are on the disk. Half a minute after the last
    change, or five minutes after the first of many, a collection is refitted in the background, and the new fit is used
    if it is not worse. --workers N serves with N processes over the same files; each finds what the others write.
    Limits and figures then hold for each process.

    A URI of 'matchloom publish' is served from a copy on this disk, which follows the newest version there. A new
    version is pulled in the background, verified, and used without a dropped request; if it is damaged, it is refused
    and the old copy stays. /v1/systems and /metrics report which version is served, and since when the service could
    not check for newer ones.

    /desk is for the owners of a collection: entries, questions that wait for an answer, quality, refits. It is open to
    this machine, or with a key that is not limited to asking; changes need --writable.

    \b
    Examples:
      matchloom serve faq
      matchloom serve faq --writable --log-questions questions.jsonl
      matchloom serve faq --writable --watch faq.csv
      matchloom serve faq tickets=data/tickets.archive --writable --port 8080
      MATCHLOOM_API_KEY=$(cat key) matchloom serve faq --host 0.0.0.0
      matchloom serve s3://bucket/faq --max-stale 60
      matchloom serve --runs runs
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until everything is loaded there is nothing to read anew
    from matchloom.publishing.snapshot import read_key
    from matchloom.service import Limits, create_app
    from matchloom.service.desk.desk import DeskOptions
    from matchloom.service.following import FollowOptions
    from matchloom.service.keys import read_keys
    from matchloom.service.logs import log_to_stderr
    from matchloom.service.look import read_look
    from matchloom.service.server import bind, is_loopback, run
    from matchloom.service.systems import Folder, Shelf

    if not folders and runs is None:
        raise MatchloomError("nothing to serve; give a folder that 'matchloom fit' made, or --runs DIR", code="no_data")
    keys = read_keys(key_file)
    if not is_loopback(host) and not keys:
        raise MatchloomError(
            f"serving on {host} needs a key, since other machines can reach it: write one into a file for --key-file, "
            "or set MATCHLOOM_API_KEY",
            code="conflict",
        )
    if watch is not None and not writable:
        raise MatchloomError("--watch changes the collection; it needs --writable", code="conflict")
    if watch is not None and not watch.is_file():
        raise MatchloomError(f"--watch {watch}: there is no such file", code="missing")
    limits = Limits(
        body=max_body,
        texts=max_texts,
        words=max_words,
        waiting=queue,
        seconds=timeout,
        threads=threads,
        workers=workers,
    )
    signed = read_key(snapshot_key)
    served = [Folder.of(folder, copies, signed) for folder in folders or []]
    replica = next((one.replica for one in served if one.replica is not None), None)
    if writable and replica is not None:
        raise MatchloomError(
            f"{replica.uri} is served from a read-only copy; change the published folder instead",
            code="conflict",
        )
    options: dict[str, Any] = {
        "limits": limits,
        "keys": keys,
        "writable": writable,
        "feedback": feedback if feedback is not None or no_feedback else Path("feedback.jsonl"),
        "runs": runs,
        "refit": None if no_refit else _REFIT,
        "origins": tuple(allow_origin or ()),
        "desk": DeskOptions(
            on=not no_desk,
            audit=audit if audit is not None or not writable else Path("audit.jsonl"),
            questions=log_questions,
            watch=watch,
        ),
        "follow": FollowOptions(poll, max_stale),
        "look": read_look(page, title=title, logo=logo, accent=accent),
    }
    app = create_app(served, **options) if workers == 1 else None
    listening = bind(host, port)
    address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}/"
    log_to_stderr(quiet=quiet)
    note(f"Loading; then {address} answers. Ctrl-C ends it.")
    if app is not None:
        run(app, listening, when_ready=lambda: note(f"Ready: {address}"))
        return
    from matchloom.service.origins import Origins
    from matchloom.service.workers import Served, run_workers

    Shelf(served)  # names that are given twice are refused here, and so are origins that are none
    Origins(options["origins"])
    run_workers(Served(served, options, quiet), listening, workers, when_ready=lambda: note(f"Ready: {address}"))

"""`matchloom publish`: a collection as an immutable snapshot, which replicas serve."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from matchloom.cli.options import FolderArgument, SnapshotKeyOption
from matchloom.cli.printing import note, print_json
from matchloom.types import MatchloomError


def command(
    folder: FolderArgument,
    uri: Annotated[
        str,
        typer.Argument(
            metavar="URI",
            help="Where to publish: a path, file://, s3://, gs:// or abfs://, used for nothing else.",
            show_default=False,
        ),
    ],
    every: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0.1,
            help="Keep running: every SECONDS publish what has changed, until Ctrl-C.",
            show_default=False,
        ),
    ] = None,
    keep: Annotated[int, typer.Option(min=1, help="How many of the newest versions to keep there.")] = 10,
    again: Annotated[
        bool, typer.Option("--again", help="Send every file, also those that exist there: repairs a damaged store.")
    ] = False,
    snapshot_key: SnapshotKeyOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print what was published as JSON, a line each.")] = False,
) -> None:
    """Publish a collection at a URI, from which replicas serve.

    The command publishes an immutable version of FOLDER as it is now. 'matchloom serve URI' on any number of machines
    pulls the newest version and follows later ones. Searches and changes of FOLDER continue meanwhile. Files that exist
    there already are not sent again: a version with a few more entries costs a few kilobytes. The switch to the new
    version is the last step: if anything fails before, the previous version stays. Credentials of an object store come
    from its usual variables (AWS_ACCESS_KEY_ID and so on); it needs the extra parquet, which brings pyarrow.

    \b
    Examples:
      matchloom publish faq s3://bucket/faq
      matchloom publish faq /mnt/shared/faq --every 5
    """
    from matchloom.publishing.publish import Published, publish
    from matchloom.publishing.snapshot import read_key

    key = read_key(snapshot_key)

    def show(done: Published) -> None:
        if json:
            print_json(done._asdict())
        elif done.new:
            note(f"Version {done.version} at {done.uri}: {done.files} files, {done.bytes:,} bytes, {done.sent:,} sent.")
        else:
            note(f"Version {done.version} at {done.uri} is what {folder} holds; nothing to publish.")

    show(publish(folder, uri, keep=keep, again=again, key=key, progress=not json))
    while every is not None:
        time.sleep(every)
        try:
            done = publish(folder, uri, keep=keep, key=key)
        except MatchloomError as error:
            note(f"Not published: {error}")  # a store that does not answer now may answer soon
        else:
            if done.new:
                show(done)

"""`matchloom mcp`: a collection as tools for agents."""

from __future__ import annotations

from typing import Annotated

import typer

from matchloom.cli.options import FolderArgument

_HOST = "127.0.0.1"


def command(
    folder: FolderArgument,
    http: Annotated[
        bool, typer.Option("--http", help="Serve streamable HTTP on this machine instead of standard input.")
    ] = False,
    port: Annotated[int, typer.Option(min=1, max=65535, help="With --http: the port.")] = 8001,
    writable: Annotated[bool, typer.Option("--writable", help="Let agents add questions and answers.")] = False,
) -> None:
    """Let agents search a collection (Model Context Protocol).

    An agent gets the tools search and explain, and with --writable also add; it can do nothing else. The protocol runs
    over standard input and output, for programs that start this command themselves, or with --http at
    http://127.0.0.1:8001/mcp, for this machine only. Added entries are found at once by every process, also by
    'matchloom serve'. It needs the extra mcp.

    \b
    Examples:
      matchloom mcp faq
      matchloom mcp faq --http --port 8001 --writable
    """
    from matchloom.cli.printing import note
    from matchloom.integrations.mcp import make_server, run_http, run_pipes

    server = make_server(folder, writable=writable)
    if http:
        note(f"Agents reach {folder} at http://{_HOST}:{port}/mcp")
        run_http(server, _HOST, port)
    else:
        run_pipes(server)

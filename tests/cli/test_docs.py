"""The page of commands says what the commands say."""

from __future__ import annotations

from pathlib import Path

from matchloom.cli.docs import commands_page
from tests.cli.test_main import COMMANDS

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"


def test_the_page_is_up_to_date() -> None:
    remedy = "run: python -m matchloom.cli.docs > docs/commands.md"
    assert PAGE.read_text(encoding="utf-8") == commands_page(), remedy


def test_every_command_and_option_is_on_the_page() -> None:
    page = commands_page()
    for name, command in COMMANDS.items():
        section = page.partition(f"## matchloom {name}\n")[2].partition("\n## ")[0]
        assert "```sh\nmatchloom " in section, f"{name} has no example"
        for parameter in command.params:
            shown = parameter.opts[0] if parameter.param_type_name == "option" else parameter.metavar
            if parameter.name != "help":
                assert f"| `{shown}" in section, f"{shown} of {name} is missing"
                assert parameter.help in section

"""The page of commands says what the commands say."""

from __future__ import annotations

from pathlib import Path

import pytest

from matchloom.cli.docs import PAGES, commands_page, models_page
from matchloom.models import MODELS, model_arguments
from tests.cli.test_main import COMMANDS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_up_to_date(page: str) -> None:
    assert (DOCS / page).read_text(encoding="utf-8") == PAGES[page](), "run: make docs"


def test_every_model_and_argument_is_on_the_page() -> None:
    page = models_page()
    for name in MODELS:
        section = page.partition(f"## {name}\n")[2].partition("\n## ")[0]
        assert "Departures" in section, f"{name} does not list its departures from the paper"
        assert all(f"| `{argument}` |" in section for argument in model_arguments(name))


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

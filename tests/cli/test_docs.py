"""The page of commands says what the commands say."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import matchloom
from matchloom.cli.docs import PAGES, api_page, commands_page, models_page
from matchloom.cli.docstrings import documented, is_made_by_callers, parameters, public_methods
from matchloom.cli.man import man_page
from matchloom.models import MODELS, model_arguments
from tests.cli.test_main import COMMANDS

PUBLIC = {name: getattr(matchloom, name) for name in matchloom.__all__ if name != "MODELS"}
CALLED: dict[str, Any] = {
    name: thing for name, thing in PUBLIC.items() if not inspect.isclass(thing) or is_made_by_callers(thing)
}
for owner, thing in PUBLIC.items():
    if inspect.isclass(thing):
        CALLED |= {f"{owner}.{name}": m for name, m in public_methods(thing) if inspect.isfunction(m)}

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


def test_every_command_and_option_is_in_the_manual_page() -> None:
    page = man_page()
    for name, command in COMMANDS.items():
        hyphened = name.replace("-", "\\-")
        section = re.split(rf'\.SS "matchloom {re.escape(hyphened)}[ "]', page)[1].partition("\n.S")[0]
        assert f"\n.nf\nmatchloom {hyphened}" in section, f"{name} has no example"
        for option in (one for one in command.params if one.param_type_name == "option" and one.name != "help"):
            shown = option.opts[0].replace("-", "\\-")
            assert f'.BI "{shown}' in section, f"{shown} of {name} is missing"


def test_no_line_of_the_manual_page_is_a_macro_by_accident() -> None:
    ours = (".TH ", ".SH ", ".SS ", ".BI ", ".B ", ".I ", ".PP", ".TP", ".RS", ".RE", ".nf", ".fi")
    lines = man_page().splitlines()
    assert all(line.startswith(ours) for line in lines if line.startswith((".", "'")))
    assert all(lines), "an empty line"


def test_every_argument_of_a_public_function_has_its_line() -> None:
    for name, called in CALLED.items():
        told = documented(called).arguments
        assert list(told) == [one.name for one in parameters(called)], f"the Args: of {name}"
        assert all(told.values()), f"the Args: of {name}"


def test_every_argument_of_a_model_has_its_line() -> None:
    for name, model in MODELS.items():
        told = documented(model).arguments
        missing = [argument for argument in model_arguments(name) if not told.get(argument)]
        assert not missing, f"the Args: of {name}"


def test_an_args_section_is_read() -> None:
    def example(first: int, second: int) -> None:
        """Do it.

        Args:
            first: One: or
                another.
            second: Two.

        >>> example(1, 2)
        """

    said = documented(example)
    assert said.text == "Do it.\n\n>>> example(1, 2)"
    assert said.arguments == {"first": "One: or another.", "second": "Two."}
    assert documented(DOCS).arguments == {}


def test_every_public_name_is_on_the_page() -> None:
    page = api_page()
    assert all(f"\n## {name}\n" in page for name in matchloom.__all__)
    assert "### Collection.search\n" in page

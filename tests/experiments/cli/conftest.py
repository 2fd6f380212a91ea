"""The commands' own fixtures."""

from tests.cli.conftest import corpus, run, trained

__all__ = ["corpus", "run", "trained"]

"""Where figures come from, as the package has it."""

from __future__ import annotations

from matchloom.reproduction.provenance import commit

__all__ = ["commit"]

"""Structured logs: one line of JSON for each event, to standard error. Texts and keys are never among it."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

from matchloom.basics.screen import escaped_json

LOG = logging.getLogger("matchloom.service")


class JsonLines(logging.Formatter):
    """A record as one line of JSON; what was given as `extra={"fields": {...}}` stands beside it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return escaped_json(json.dumps(line, ensure_ascii=False, default=str))


def say(event: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Log an event with its fields."""
    LOG.log(level, event, extra={"fields": fields})


def log_to_stderr(*, quiet: bool = False) -> None:
    """Set up the logs of a serving process, the server's own included; `quiet` leaves out what went well."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("matchloom", "uvicorn", "uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.WARNING if quiet or name != "matchloom" else logging.INFO)

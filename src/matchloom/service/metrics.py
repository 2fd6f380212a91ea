"""Figures for Prometheus, in a registry of this service's own: two services in one process do not mix."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
CONTENT_TYPE = CONTENT_TYPE_LATEST


class Metrics:
    """What is counted. Labels hold the name of a route and never a path or a text: their number stays small."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        made: dict[str, Any] = {"registry": self.registry, "namespace": "matchloom"}
        self.requests: Counter = Counter("requests", "Answered requests.", ["route", "status"], **made)
        self.seconds: Histogram = Histogram(
            "request_seconds", "Time from a request's first line to its answer.", ["route"], buckets=_SECONDS, **made
        )
        self.batch: Histogram = Histogram(
            "batch_requests", "Score requests that one call of the library answered.", buckets=_SIZES, **made
        )
        self.waiting: Gauge = Gauge("waiting_requests", "Accepted requests without an answer yet.", **made)
        self.rejected: Counter = Counter("rejected", "Refused requests.", ["code"], **made)
        self.vanished: Counter = Counter("vanished", "Requests whose client disconnected before the answer.", **made)
        self.reloads: Counter = Counter("reloads", "Reloads of systems.", ["result"], **made)
        self.refits: Counter = Counter("refits", "Refits of collections in the background.", ["result"], **made)
        self.pulls: Counter = Counter("pulls", "Published versions that a replica tried to pull.", ["result"], **made)
        self.version: Gauge = Gauge("replica_version", "The published version that is served.", ["system"], **made)
        self.stale: Gauge = Gauge(
            "replica_stale_seconds",
            "Seconds since the served version was last confirmed as the newest.",
            ["system"],
            **made,
        )
        self.feedback: Counter = Counter("feedback", "Thumbs up or down.", ["label"], **made)

    def page(self) -> bytes:
        """All figures as Prometheus reads them."""
        return generate_latest(self.registry)

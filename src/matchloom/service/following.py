"""A served copy follows what is published: it is pulled aside, tried, and swapped in without a dropped request.

The store is asked in a thread of its own, which nobody waits for: a slow store makes a copy older and no request
slower. How old it may be is shown, and bounded where `/ready` is to refuse a copy that is older.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from matchloom.publishing.replica import Replica
from matchloom.service.logs import say
from matchloom.service.metrics import Metrics
from matchloom.service.systems import Folder, Reloaded
from matchloom.types import MatchloomError

Reload = Callable[[list[str]], Coroutine[Any, Any, Reloaded]]


class FollowOptions(NamedTuple):
    """How a copy follows."""

    poll: float = 5.0  # seconds between two looks at the store
    most_stale: float | None = None  # seconds from which on `/ready` refuses


class Following:
    """Looks at the store of one system; `look` is one look."""

    def __init__(self, name: str, replica: Replica, metrics: Metrics) -> None:
        self.name = name
        self.replica = replica
        self._metrics = metrics
        self.newest: int = 0
        self.problem: str | None = None
        self._known = time.monotonic()  # when what is served was last known to be the newest
        self._served = (0, 0.0)  # version, and when it was published
        self._refused = ("", "")  # a snapshot that could be pulled and not be served, and why
        metrics.stale.labels(name).set_function(lambda: self.stale)
        metrics.version.labels(name).set_function(lambda: self._served[0])

    @property
    def stale(self) -> float:
        """Seconds since when the served version is not known to be the newest."""
        return time.monotonic() - self._known

    def about(self) -> dict[str, Any]:
        """What a client is told."""
        version, published = self._served
        return {
            "uri": self.replica.uri,
            "version": version,
            "newest": self.newest,
            "published": published,
            "stale_seconds": round(self.stale, 3),
            "problem": self.problem,
        }

    def serves(self) -> None:
        """The copy is served from now on."""
        assert self.replica.copy is not None
        self._served = self.replica.copy.version, self.replica.copy.published
        self.newest = max(self.newest, self._served[0])

    def look(self, swap: Callable[[], str | None]) -> None:
        """Ask the store once, and take what is new; `swap` serves the copy, or says why it cannot be served."""
        asked = time.monotonic()
        before = self.replica.copy
        try:
            newest = self.replica.newest()
            self.newest = newest.version
            if newest.sha256 == self._refused[0]:
                raise MatchloomError(self._refused[1], code="damaged")  # the same again would end the same
            if newest.version != self._served[0]:
                self.replica.pull(newest)
                why = swap()
                if why is not None:
                    self.replica.copy, self._refused = before, (newest.sha256, why)  # the one before goes on
                    raise MatchloomError(why, code="damaged")
                self.serves()
                self._metrics.pulls.labels("taken").inc()
                say("pulled", system=self.name, version=newest.version)
        except Exception as error:  # whatever a store, a disk or a snapshot does, what is served goes on
            told = " ".join(str(error).split()) or type(error).__name__
            if told != self.problem:
                self._metrics.pulls.labels("refused").inc()
                say("not pulled", level=logging.WARNING, system=self.name, why=told)
            self.problem = told
        else:
            self.problem, self._known = None, asked


class Follower:
    """All systems that follow a store."""

    def __init__(self, folders: list[Folder], options: FollowOptions, metrics: Metrics, reload: Reload) -> None:
        self.options = options
        self._reload = reload
        self.all = {one.name: Following(one.name, one.replica, metrics) for one in folders if one.replica is not None}
        self._end = threading.Event()

    def start(self) -> None:
        """Follow, from when everything was read once; called in the running loop."""
        loop = asyncio.get_running_loop()
        for one in self.all.values():
            one.serves()
            threading.Thread(target=self._follow, args=(one, loop), name=f"follow-{one.name}", daemon=True).start()

    def stop(self) -> None:
        """No further look; one that goes on is not waited for."""
        self._end.set()

    def too_stale(self) -> Following | None:
        """A system that is older than it may be."""
        most = self.options.most_stale
        return next((one for one in self.all.values() if most is not None and one.stale > most), None)

    def _follow(self, one: Following, loop: asyncio.AbstractEventLoop) -> None:
        def swap() -> str | None:
            done = asyncio.run_coroutine_threadsafe(self._reload([one.name]), loop).result()
            return done.refused.get(one.name)

        wait = 0.0  # a copy that was here before the store answered is looked after at once
        while not self._end.wait(wait):
            one.look(swap)
            wait = self.options.poll

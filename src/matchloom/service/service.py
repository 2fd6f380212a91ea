"""The service apart from HTTP's routes: what is served, who works, what is counted and kept."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from matchloom.service.batching import Batcher
from matchloom.service.desk.desk import Desk, DeskOptions
from matchloom.service.feedback import FeedbackFile
from matchloom.service.following import Follower, FollowOptions
from matchloom.service.keys import Keys
from matchloom.service.limits import Limits
from matchloom.service.logs import say
from matchloom.service.metrics import Metrics
from matchloom.service.once import Onces
from matchloom.service.pauses import collect_when_idle, give_back_freed
from matchloom.service.problems import Refused, unknown
from matchloom.service.refits import Refits
from matchloom.service.systems import BM25, Folder, Reloaded, ServedSystem, Shelf
from matchloom.service.working import Workers

if TYPE_CHECKING:
    from matchloom.search.collection import Collection
    from matchloom.search.lance.collection import LanceCollection


class _Next(NamedTuple):
    """A reload that has not begun: of what, and who waits for it."""

    names: set[str]
    done: asyncio.Future[Reloaded]


class Service:
    """Everything that outlives a request."""

    def __init__(
        self,
        folders: Sequence[Folder],
        *,
        limits: Limits,
        keys: Keys,
        writable: bool,
        feedback: Path | None,
        runs: Path | None,
        refit: float | None = None,
        desk: DeskOptions | None = None,
        follow: FollowOptions | None = None,
    ) -> None:
        self.limits = limits
        self.keys = keys
        self.writable = writable
        self.runs = runs
        self.shelf: Shelf = Shelf(folders)
        self.metrics: Metrics = Metrics()
        self.workers: Workers = Workers(limits, self.metrics)
        self.feedback: FeedbackFile | None = None if feedback is None else FeedbackFile(feedback)
        self.refits: Refits = Refits(self.shelf, self.metrics, refit if writable else None, feedback)
        self.desk: Desk = Desk(desk or DeskOptions(), self.shelf, self.refits, feedback)
        self.follower: Follower = Follower(list(folders), follow or FollowOptions(), self.metrics, self.reload)
        self.onces: Onces = Onces()
        self.failure: Exception | None = None
        self.when_ready: Callable[[], None] = lambda: None
        self.when_failed: Callable[[], None] = lambda: None
        self.when_reloaded: Callable[[], None] = lambda: None  # because a client asked for it
        self._batchers: dict[str, tuple[ServedSystem, Batcher]] = {}
        self._writers: dict[str, tuple[ServedSystem, LanceCollection]] = {}
        self._aside = ThreadPoolExecutor(1, "matchloom-load")  # reads folders; whoever ends the service has another
        self._reloading: asyncio.Task[None] | None = None
        self._next: _Next | None = None  # what is to be read anew when that is done
        self._loading: asyncio.Task[None] | None = None
        self._watching: list[asyncio.Task[None]] = []

    # ---- a life

    def start(self) -> None:
        """Begin to read what is served; requests are told to come again until it is there."""
        self._loading = asyncio.create_task(self._load())

    async def _load(self) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(self._aside, self.shelf.load)
        except Exception as error:
            self.failure = error
            say("cannot start", level=logging.ERROR, why=" ".join(str(error).split()))
            self.when_failed()
        else:
            say("ready", systems=list(self.shelf.systems))
            self._watching = [
                asyncio.create_task(self.refits.watch()),
                asyncio.create_task(collect_when_idle(lambda: self.workers.is_idle)),
                asyncio.create_task(give_back_freed()),
            ]
            self.desk.start()
            self.follower.start()
            self.when_ready()

    async def stop(self) -> None:
        """Finish what was accepted."""
        if self._loading is not None:
            await asyncio.wait({self._loading})
        for task in self._watching:
            task.cancel()
        self.desk.stop()
        self.follower.stop()
        if self._next is not None:
            self._next.done.cancel()
        with ThreadPoolExecutor(1, "matchloom-end") as ending:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(ending, self.refits.close)
            await loop.run_in_executor(ending, self.workers.close)
        self._aside.shutdown(wait=False, cancel_futures=True)
        say("stopped")

    async def reload(self, names: Sequence[str] = ()) -> Reloaded:
        """Read systems anew, aside from everything else. All who ask while it is being done get one more, together."""
        for name in names:
            if name not in self.shelf.folders:
                raise unknown("system", name, list(self.shelf.folders))
        if not self.shelf.ready:
            raise self.not_ready()
        if self._next is None:
            self._next = _Next(set(), asyncio.get_running_loop().create_future())
        coming = self._next
        coming.names.update(names or self.shelf.folders)
        if self._reloading is None:
            self._reloading = asyncio.create_task(self._reload())
        done = await asyncio.shield(coming.done)
        asked = set(names or self.shelf.folders)
        return Reloaded(
            [one for one in done.taken if one in asked], {n: w for n, w in done.refused.items() if n in asked}
        )

    async def _reload(self) -> None:
        """One after the other, until nobody asks any more."""
        loop = asyncio.get_running_loop()
        try:
            while self._next is not None:
                coming, self._next = self._next, None
                names = [name for name in self.shelf.folders if name in coming.names]
                done = await loop.run_in_executor(self._aside, self.shelf.reload, names)
                for name in done.taken:
                    self.metrics.reloads.labels("taken").inc()
                    say("reloaded", system=name, generation=self.shelf.systems[name].generation)
                for name, why in done.refused.items():
                    self.metrics.reloads.labels("refused").inc()
                    say("reload refused", level=logging.WARNING, system=name, why=why)
                if not coming.done.done():
                    coming.done.set_result(done)
        finally:
            self._reloading = None

    # ---- what requests ask for

    def not_ready(self) -> Refused:
        """What is told before everything was read."""
        return Refused(503, "loading", "the systems are being loaded; try again in a second", retry=1)

    def about(self, system: ServedSystem) -> dict[str, Any]:
        """What a client is told of a system."""
        following = self.follower.all.get(system.name)
        return {
            **system.about(writable=self.writable),
            "replica": None if following is None else following.about(),
        }

    def system(self, name: str | None) -> ServedSystem:
        """The system of this name, or the first one."""
        if not self.shelf.ready:
            raise self.not_ready()
        found = self.shelf.find(name)
        if found is None:
            raise unknown("system", name or "", list(self.shelf.systems))
        return found

    def system_or_bm25(self, name: str | None) -> ServedSystem | None:
        """None for BM25 over given candidates."""
        return None if name == BM25 else self.system(name)

    def by(self, name: str | None) -> ServedSystem | str | None:
        """What ranks in a system's place, if anything does."""
        return name if name is None or name == BM25 else self.system(name)

    def batcher(self, system: ServedSystem) -> Batcher:
        """The queue of a system's scorer; a system that was read anew has a new one."""
        held = self._batchers.get(system.name)
        if held is None or held[0] is not system:
            assert system.scorer is not None  # it was asked for before
            held = (system, Batcher(system.scorer.score, self.workers, self.metrics))
            self._batchers[system.name] = held
        return held[1]

    def answers(self, name: str) -> ServedSystem:
        """A system with answers of its own, in either store."""
        system = self.system(name)
        if not system.searches:
            raise unknown("collection", name, [one.name for one in self.shelf.systems.values() if one.searches])
        return system

    def writable_answers(self, name: str) -> tuple[ServedSystem, Callable[[], Any]]:
        """The same, if it may be written, and how to open it for writing (which may block)."""
        system = self.answers(name)
        if not self.writable:
            raise Refused(403, "read_only", "this service was started without --writable")

        def opened() -> Collection | LanceCollection:  # in the thread that writes
            if system.collection is not None:
                system.collection.patience = self.workers.seconds_left()
                return system.collection
            held = self._writers.get(name)
            if held is None or held[0] is not system:
                assert system.index is not None
                from matchloom.search.lance.collection import LanceCollection  # only an archive needs it

                held = self._writers[name] = (system, LanceCollection.open(system.path, system.index.matcher))
            return held[1]

        return system, opened

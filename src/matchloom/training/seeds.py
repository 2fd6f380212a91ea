"""One training with several seeds: the same pairs and held-out questions, a folder each, and the best of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from matchloom.artifact import holds
from matchloom.data.formats import PairsLike
from matchloom.data.token_cache import TokenCache
from matchloom.matcher import Matcher
from matchloom.models import Argument, Kind
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vectors import WordVectors, read_vectors
from matchloom.training.config import TrainConfig
from matchloom.training.prepare import Prepared, prepare
from matchloom.training.run import check_folder, train
from matchloom.training.team import joined, own_device
from matchloom.types import MatchloomError, Pair


class Trained(NamedTuple):
    """What came of it: a matcher and a folder for each seed, the settings, and the pairs, or of a stream some."""

    matchers: dict[int, Matcher]
    folders: dict[int, Path]
    config: TrainConfig
    pairs: list[Pair]
    development: list[Pair] | None

    def best(self, seed: int) -> dict[str, Any]:
        """The best epoch of a seed, as its log has it."""
        found: dict[str, Any] = self.matchers[seed].training["best"]
        return found

    @property
    def chosen(self) -> int:
        """The seed with the highest development measure."""
        return max(self.matchers, key=lambda seed: (self.best(seed).get(self.config.measure, 0.0), -seed))


def train_seeds(
    pairs: PairsLike,
    development: PairsLike | None = None,
    *,
    folder: Path,
    seeds: int = 1,
    model: Kind | None = None,
    arguments: Mapping[str, Argument] | None = None,
    encoder: Path | str | None = None,
    paper: bool = False,
    columns: Mapping[str, str] | None = None,
    vectors: WordVectors | Path | str = "skip-gram",
    dimensions: int = 50,
    tokenizer: Tokenizer | None = None,
    cache: Path | str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    device: str = "cpu",
    on_seed: Callable[[int, Path, TrainConfig], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    progress: bool = False,
    settings: Mapping[str, Any] | None = None,
    **options: Any,
) -> Trained:
    """Train so many seeds, from that of the settings on, in folder/seed-0 and so on; one in the folder itself.

    Questions are held out once, by the first seed. See `train` for the arguments; `options` are passed on to it, and
    `on_seed` is called with each seed, its folder and the settings.
    """
    if seeds < 1:
        raise MatchloomError(f"seeds must be at least 1, found {seeds}", code="bad_value")
    first = int((settings or {}).get("seed", TrainConfig().seed))
    numbers = range(first, first + seeds)
    folders = {seed: folder if seeds == 1 else folder / f"seed-{seed}" for seed in numbers}
    device = own_device(device)
    with joined(device) as team:
        resumes = {seed: team.begin(own, resume, overwrite) for seed, own in folders.items()}

        def make() -> Prepared:
            for seed, own in folders.items():
                check_folder(own, resume=resumes[seed][0], overwrite=resumes[seed][1])
            return prepare(
                pairs,
                development,
                model=model,
                arguments=arguments,
                encoder=encoder,
                paper=paper,
                columns=columns,
                dimensions=dimensions,
                tokenizer=tokenizer,
                cache=cache,
                folder=folder,
                device=device,
                settings=settings,
                on_note=on_note,
                progress=progress,
            )

        found = team.agree(make)
        if encoder is None and isinstance(vectors, str | Path) and str(vectors) not in ("skip-gram", "random"):
            vectors = read_vectors(vectors, progress=progress)  # once for all seeds
        matchers = {}
        for seed, own in folders.items():
            if on_seed is not None:
                on_seed(seed, own, found.config)
            matchers[seed] = train(
                found.pairs,  # type: ignore[arg-type]
                found.development,
                model=found.model,
                arguments=found.arguments,
                encoder=encoder,
                config=replace(found.config, seed=seed),
                hold_out=0,
                vectors=vectors,
                dimensions=dimensions,
                tokenizer=tokenizer,
                folder=own,
                resume=resumes[seed][0] and (seeds == 1 or holds(own, "checkpoint")),
                overwrite=resumes[seed][1],
                device=device,
                progress=progress,
                **options,
            )
        some = found.pairs.sample if isinstance(found.pairs, TokenCache) else found.pairs
        return Trained(matchers, folders, found.config, some, found.development)

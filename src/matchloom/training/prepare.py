"""What is decided before a training begins: settings, pairs, held-out questions; what cannot be is refused at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from weakref import finalize

import torch

from matchloom.basics.progress import track
from matchloom.data.formats import PairsLike, as_pairs, read_pairs
from matchloom.data.formats.shards import Shards, find_shards
from matchloom.data.identity import in_order, with_ids
from matchloom.data.kinds import positives_only
from matchloom.data.reader import Reader
from matchloom.data.splits import hold_out as hold_out_pairs
from matchloom.data.token_cache import TokenCache, open_cache
from matchloom.data.tokenized import Rows
from matchloom.encoders.library import find_encoder
from matchloom.encoders.transformer import Transformer
from matchloom.encoders.word_embedding import WordEmbedding
from matchloom.evaluation.measures import measure
from matchloom.models import Argument, Kind, build_model, model_name, model_training, published_settings
from matchloom.models.own import check_scores
from matchloom.text.tokenize import Tokenizer
from matchloom.text.vocab import Vocab
from matchloom.training.collection import nearest
from matchloom.training.config import TrainConfig
from matchloom.training.development import independent, suited
from matchloom.types import MatchloomError, Pair

HOLD_OUT = 0.1  # of the questions, where no development pairs are given
MAX_WORDS = 200
TOKENS = "tokens"  # the folder of a token cache
_HEAD = 10_000  # pairs of a stream that tell what it holds


class Prepared(NamedTuple):
    """All that a training needs to know but for its seed, words and folder."""

    model: Kind
    arguments: dict[str, Argument]
    config: TrainConfig
    pairs: list[Pair] | TokenCache
    development: list[Pair] | None


def prepare(
    pairs: PairsLike,
    development: PairsLike | None,
    *,
    model: Kind | None,
    arguments: Mapping[str, Argument] | None,
    encoder: Path | str | None,
    config: TrainConfig | None = None,
    paper: bool,
    hold_out: float = HOLD_OUT,
    columns: Mapping[str, str] | None,
    dimensions: int,
    tokenizer: Tokenizer | None,
    cache: Path | str | None,
    folder: Path | None,
    device: str,
    settings: Mapping[str, Any] | None,
    on_note: Callable[[str], None] | None,
    progress: bool,
) -> Prepared:
    """Decide, and say what was decided. Settings are refused before any pair is read. See `train` for the arguments."""
    arguments, settings, say = arguments or {}, settings or {}, on_note or (lambda line: None)
    tokenizer, cache = tokenizer or Tokenizer(max_words=MAX_WORDS), cache or (folder and folder / TOKENS)
    kind, free = model or default_model(encoder), config is None and "loss" not in settings
    own, chosen = settings_of(kind, arguments, config, settings, paper=paper, pretrained=encoder is not None)
    if encoder is not None:
        find_encoder(encoder)
    probe, name = build_model(kind, own, WordEmbedding(9, dimensions), seed=0), model_name(kind)
    if not isinstance(kind, str):
        check_scores(name, probe)
    _check_device(device)
    if config is None:
        _say_settings(name, chosen, settings, say)
    graded = chosen.loss == "squared_error"
    chosen_by = None if development is None else _read(development, columns, graded, progress)
    shards = find_shards(pairs, columns)
    training: list[Pair] | TokenCache
    if isinstance(pairs, TokenCache):
        training = pairs
    elif shards is not None and len(shards) > chosen.window:
        head = list(islice(shards.chain(lambda path: read_pairs(path, columns=columns, graded=graded)), _HEAD))
        if free:
            chosen = _suited(chosen, head, say)
        training = stream(
            shards,
            tokenizer,
            None if cache is None else Path(cache),
            encoder=encoder,
            columns=columns,
            graded=graded,
            hold_out=hold_out if chosen_by is None else 0.0,
            progress=progress,
        )
        _say_stream(shards, training, chosen, chosen_by is None, say)
        if chosen_by is None and training.development:
            chosen_by = in_order(with_ids(training.development))
    else:
        training = _read(pairs, columns, graded, progress)
        if not training:
            raise MatchloomError(
                "there are no pairs to train on; an iterator, as read_pairs returns, can be read only once",
                code="no_data",
            )
        if free:
            chosen = _suited(chosen, training, say)
        if chosen_by is None and hold_out:
            training, chosen_by = set_aside(training, hold_out, chosen.seed, say)
    if independent(chosen, chosen_by):  # what ranks lists says nothing of these
        chosen = replace(chosen, measure="AP")
        say(
            "Independent labelled pairs: the AP over all that are held out chooses the epoch, and they give the "
            "matcher its threshold."
        )
    elif chosen_by is not None:  # a wrong measure is refused now, not after the first epoch
        judged = [Pair("", "", 1.0, "q"), Pair("", "", 0.0, "q")] if positives_only(chosen_by) else chosen_by
        measure(judged, [0.0] * len(judged), [chosen.measure])
    return Prepared(kind, own, chosen, training, chosen_by)


def stream(
    shards: Shards,
    tokenizer: Tokenizer,
    cache: Path | None,
    *,
    encoder: Path | str | None,
    columns: Mapping[str, str] | None,
    graded: bool,
    hold_out: float,
    progress: bool,
) -> TokenCache:
    """The tokens of shards that are read as a stream, from their folder or newly made."""
    if not 0 <= hold_out < 1:
        raise MatchloomError(f"hold_out must be between 0 and 1, or 0 for none, found {hold_out}", code="bad_value")
    reader = Reader(tokenizer, Vocab([], [], [], 0))
    if encoder is not None:
        reader = Transformer.load(find_encoder(encoder)).reader(tokenizer, reader.vocab)

    def near(
        asked: Sequence[str], texts: Sequence[str], relevant: Sequence[Rows], words: Callable[[str], list[str]]
    ) -> list[Rows]:
        return nearest(asked, texts, relevant, words)[0]

    temporary = None
    if cache is None:
        temporary = TemporaryDirectory(prefix="matchloom-tokens-")
        cache = Path(temporary.name)
    found = open_cache(
        shards, cache, reader, near, columns=columns, graded=graded, hold_out=hold_out, progress=progress
    )
    if temporary is not None:
        finalize(found, temporary.cleanup)
    return found


def _say_stream(
    shards: Shards, cache: TokenCache, config: TrainConfig, held_out: bool, say: Callable[[str], None]
) -> None:
    say(
        f"{len(shards):,} pairs in {len(shards.shards)} shards are read as a stream, {config.window:,} in memory at a "
        f"time; their tokens are in {cache.folder}."
    )
    if held_out and cache.development:
        say(
            f"No development pairs (--dev): {len(cache.development):,} pairs (drawn by content) are held out to choose "
            "the best epoch."
        )


def _suited(config: TrainConfig, pairs: Sequence[Pair], say: Callable[[str], None]) -> TrainConfig:
    found = suited(config, pairs)
    if found is not config:
        say("No query has both a positive and a negative: trained as independent pairs, with the loss cross_entropy.")
    return found


def set_aside(
    pairs: list[Pair], part: float, seed: int, say: Callable[[str], None]
) -> tuple[list[Pair], list[Pair] | None]:
    """Training and development pairs, with a word about what is held out."""
    training, development = hold_out_pairs(pairs, part, seed)
    if development is not None:
        kept, aside = (len({pair.query_id or pair.query for pair in part}) for part in (training, development))
        against = ", ranked against the whole collection" if positives_only(development) else ""
        say(
            f"No development pairs (--dev): {aside} of {kept + aside} questions (drawn by seed {seed}) are held out to "
            f"choose the best epoch{against}."
        )
    return training, development


def default_model(encoder: Path | str | None) -> str:
    """The model that is trained where none is named."""
    return "mv_lstm" if encoder is None else "late_interaction"


def settings_of(
    model: Kind,
    arguments: Mapping[str, Argument],
    config: TrainConfig | None,
    changes: Mapping[str, Any],
    *,
    paper: bool = False,
    pretrained: bool = False,
) -> tuple[dict[str, Argument], TrainConfig]:
    """The model's arguments and all settings of its training: a config, or what suits the model, and changes on top.

    What suits a pretrained encoder goes before what suits the model: it has by far the most to lose.
    """
    unknown = [name for name in changes if name not in TrainConfig.__dataclass_fields__]
    if unknown:
        known = ", ".join(TrainConfig.__dataclass_fields__)
        raise MatchloomError(
            f"{unknown[0]!r} is no argument of train and no setting of TrainConfig, which has {known}",
            code="unknown_name",
        )
    published, training = published_settings(model) if paper else ({}, dict(model_training(model)))
    if config is not None:
        return {**published, **arguments}, replace(config, **changes)
    if pretrained:
        training |= Transformer.trained_with
    return {**published, **arguments}, TrainConfig(**{**training, **changes})


def _read(source: PairsLike, columns: Mapping[str, str] | None, graded: bool, progress: bool) -> list[Pair]:
    if isinstance(source, str | Path):
        found = read_pairs(source, columns=columns, graded=graded)
        return in_order(track(found, f"Reading {Path(source).name}", show=progress))
    return in_order(as_pairs(source, columns=columns, graded=True))


def _say_settings(model: str, config: TrainConfig, given: Mapping[str, Any], say: Callable[[str], None]) -> None:
    """Name the settings that suit the model and differ from the usual ones."""
    plain, own = TrainConfig().as_dict(), config.as_dict()
    said = ", ".join(f"{name} {own[name]}" for name in own if own[name] != plain[name] and name not in given)
    if said:
        say(f"{model} is trained with settings of its own: {said}; options override them.")


def _check_device(name: str) -> None:
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise MatchloomError(f"device {name!r} cannot be used ({reason}); cpu always can", code="bad_value") from None

"""The models by name: the one place to add one. A model is its file, its line here and its test."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

import torch

from matchloom.encoders.base import Encoder
from matchloom.encoders.word_embedding import WordEmbedding
from matchloom.models.arc_i import ARCI
from matchloom.models.arc_ii import ARCII
from matchloom.models.base import PairModel
from matchloom.models.cnn_mlp import CNNMLP
from matchloom.models.cntn import CNTN
from matchloom.models.cross_encoder import CrossEncoder
from matchloom.models.deep_match import DeepMatch
from matchloom.models.ensemble import Ensemble
from matchloom.models.knrm import KNRM
from matchloom.models.late_interaction import LateInteraction
from matchloom.models.lstm_rnn import bi_lstm_rnn, lstm_rnn
from matchloom.models.m2s_net import M2SNet
from matchloom.models.match_pyramid import MatchPyramid
from matchloom.models.match_srnn import bi_match_srnn, match_srnn
from matchloom.models.multi_gran_cnn import MultiGranCNN
from matchloom.models.mv_lstm import MVLSTM
from matchloom.models.nbow_mlp import NBOWMLP
from matchloom.models.own import check_built, check_class, own_name
from matchloom.models.rae import RAE
from matchloom.models.sentence_bert import SentenceBERT
from matchloom.types import MatchloomError

Argument = int | float | str | bool
Kind = str | type[PairModel]  # a name of `MODELS`, or a class of the user's own
ENSEMBLE_SIZE = "ensemble_size"  # for every model: how many networks of it, whose scores are averaged (ensemble.py)

MODELS: dict[str, Callable[..., PairModel]] = {
    "mv_lstm": MVLSTM,
    "lstm_rnn": lstm_rnn,
    "bi_lstm_rnn": bi_lstm_rnn,
    "match_srnn": match_srnn,
    "bi_match_srnn": bi_match_srnn,
    "m2s_net": M2SNet,
    "knrm": KNRM,
    "arc_i": ARCI,
    "arc_ii": ARCII,
    "match_pyramid": MatchPyramid,
    "multi_gran_cnn": MultiGranCNN,
    "deep_match": DeepMatch,
    "cntn": CNTN,
    "nbow_mlp": NBOWMLP,
    "cnn_mlp": CNNMLP,
    "rae": RAE,
    "late_interaction": LateInteraction,
    "sentence_bert": SentenceBERT,
    "cross_encoder": CrossEncoder,
}


def model_name(kind: Kind) -> str:
    """The name of a model: that of `MODELS`, or the module and name of a class of the user's own."""
    if isinstance(kind, str):
        return kind
    check_class(kind)
    return next((name for name, made in MODELS.items() if made is kind), own_name(kind))


def _maker(kind: Kind) -> Callable[..., PairModel]:
    name = model_name(kind)
    if isinstance(kind, str) and name not in MODELS:
        raise MatchloomError(f"model {name!r} is unknown; choose one of {', '.join(MODELS)}", code="unknown_name")
    return MODELS[kind] if isinstance(kind, str) else kind


def model_arguments(kind: Kind) -> dict[str, Argument]:
    """The arguments of a model with their defaults."""
    parameters = inspect.signature(_maker(kind)).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def all_arguments(kind: Kind) -> dict[str, Argument]:
    """What may be given to a model: its own arguments, and the size of an ensemble."""
    return {**model_arguments(kind), ENSEMBLE_SIZE: 1}


def model_training(kind: Kind) -> Mapping[str, Argument]:
    """The settings of `TrainConfig` with which a model's authors trained it, where they differ from the defaults."""
    return getattr(_maker(kind), "trained_with", {})


def published_settings(kind: Kind) -> tuple[dict[str, Argument], dict[str, Argument]]:
    """The arguments of a model, and the settings of `TrainConfig`, that are its paper's and not the defaults."""
    known = model_arguments(kind)
    published = {**model_training(kind), **build_model(kind, {}, WordEmbedding(3, 2), seed=0).published}
    arguments = {key: value for key, value in published.items() if key in known}
    return arguments, {key: value for key, value in published.items() if key not in known}


def sentence_vector_models() -> list[str]:
    """The models that make one vector of a text."""
    probe = WordEmbedding(3, 2)
    return [name for name in MODELS if build_model(name, {}, probe, seed=0).sentence_vectors]


def build_model(kind: Kind, arguments: Mapping[str, Argument], encoder: Encoder, *, seed: int) -> PairModel:
    """A new model; its parameters are drawn from the seed. Unknown arguments and wrong types are refused."""
    name, make, known = model_name(kind), _maker(kind), all_arguments(kind)
    for key, value in arguments.items():
        if key not in known:
            raise MatchloomError(f"{name} has no argument {key!r}; it takes {', '.join(known)}", code="unknown_name")
        if type(value) is not type(known[key]):
            expected = type(known[key]).__name__
            raise MatchloomError(
                f"argument {key} of {name} is a {expected} (default {known[key]!r}), found {value!r}", code="wrong_type"
            )
        if isinstance(value, int) and not isinstance(value, bool) and value < 1:
            raise MatchloomError(f"argument {key} of {name} must be at least 1, found {value}", code="bad_value")
    own = {key: value for key, value in arguments.items() if key != ENSEMBLE_SIZE}
    count = int(arguments.get(ENSEMBLE_SIZE, 1))
    if count > 1 and encoder.vocabulary is None:
        raise MatchloomError(
            "ensemble_size is for networks over word vectors; over a pretrained encoder leave it out", code="conflict"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        members = [check_built(name, make(encoder, **own)) for _ in range(count)]
    return members[0] if count == 1 else Ensemble(members)

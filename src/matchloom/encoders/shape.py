"""How large a BERT-like transformer is: what its config.json says, in one vocabulary for all families."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from matchloom.types import MatchloomError

ACTIVATIONS = {"gelu": "none", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh"}  # which approximation of GELU
FAMILIES = ("bert", "roberta", "xlm-roberta", "distilbert")
# DistilBERT has its own words for the same things.
_DISTILBERT = {
    "hidden_size": "dim",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim",
    "hidden_act": "activation",
    "hidden_dropout_prob": "dropout",
}
_MOST = 4_000_000_000  # numbers of a table: what claims more is no encoder but a damaged file


@dataclass(frozen=True)
class Shape:
    """The sizes of a transformer.

    `first` is the position of a text's first piece: RoBERTa counts from behind the id of its padding.
    """

    vocabulary: int
    positions: int
    size: int
    layers: int
    heads: int
    inner: int
    first: int
    epsilon: float
    activation: str
    dropout: float

    def __post_init__(self) -> None:
        for name in ("vocabulary", "positions", "size", "layers", "heads", "inner"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise MatchloomError(
                    f"{name} of the encoder must be a whole number above 0, found {value!r}", code="bad_value"
                )
        if self.size % self.heads:
            raise MatchloomError(
                f"{self.size} numbers do not divide among the encoder's {self.heads} heads", code="bad_value"
            )
        if max(self.vocabulary, self.positions, self.layers * self.inner) * self.size > _MOST:
            raise MatchloomError(
                f"an encoder of {self.vocabulary:,} pieces and {self.size:,} numbers is too large", code="too_large"
            )
        if type(self.first) is not int or not 0 <= self.first <= self.positions - 3:
            raise MatchloomError(f"the first of {self.positions} positions cannot be {self.first!r}", code="bad_value")
        if not isinstance(self.activation, str) or self.activation not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise MatchloomError(
                f"activation {self.activation!r} of the encoder is none of those known: {known}", code="not_supported"
            )
        for name in ("epsilon", "dropout"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not 0 <= value < 1:
                raise MatchloomError(f"{name} of the encoder must be from 0 to 1, found {value!r}", code="bad_value")

    @property
    def most_pieces(self) -> int:
        """How many pieces of a text have a position, its two marks included."""
        return self.positions - self.first

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Shape:
        """What a config.json says; one of another family, or with relative positions, is refused."""
        family = config.get("model_type")
        if family not in FAMILIES:
            raise MatchloomError(
                f"model_type {family!r} is none of those that can be read: {', '.join(FAMILIES)}", code="not_supported"
            )
        if config.get("position_embedding_type", "absolute") != "absolute" or config.get("sinusoidal_pos_embds"):
            raise MatchloomError(
                "positions of this kind cannot be read, only absolute ones that were learnt", code="not_supported"
            )
        padding = config.get("pad_token_id", 1)
        if "roberta" in family and type(padding) is not int:
            raise MatchloomError(f"pad_token_id must be a whole number, found {padding!r}", code="bad_value")
        names = _DISTILBERT if family == "distilbert" else {}

        def value(name: str, default: Any = None) -> Any:
            return config.get(names.get(name, name), default)

        missing = [
            n for n in ("vocab_size", "hidden_size", "num_hidden_layers", "intermediate_size") if value(n) is None
        ]
        if missing:
            raise MatchloomError(f"{names.get(missing[0], missing[0])} is missing", code="missing")
        return cls(
            vocabulary=config["vocab_size"],
            positions=value("max_position_embeddings", 512),
            size=value("hidden_size"),
            layers=value("num_hidden_layers"),
            heads=value("num_attention_heads"),
            inner=value("intermediate_size"),
            first=padding + 1 if "roberta" in family else 0,
            epsilon=value("layer_norm_eps", 1e-12),
            activation=value("hidden_act", "gelu"),
            dropout=value("hidden_dropout_prob", 0.1),
        )

    def as_dict(self) -> dict[str, Any]:
        """The sizes as they are saved with a matcher."""
        return asdict(self)

"""How a model is trained, in one frozen place."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from matchloom.types import MatchloomError

LOSSES = ("hinge", "softmax", "cross_entropy", "squared_error")
COMPARING = ("hinge", "softmax")  # losses that set a positive against negatives of the same query
OPTIMIZERS = ("adagrad", "adadelta", "adam", "adamw")


@dataclass(frozen=True)
class TrainConfig:
    """The settings of a run. The defaults are those of MV-LSTM's authors where they gave them.

    A model that others suit better says so in `trained_with`; `train` without a config takes that.

    Args:
        loss: hinge over (query, positive text, negative text), softmax over a positive and its negatives;
            cross_entropy or squared_error on single pairs.
        margin: By how much a positive text should win (hinge).
        optimizer: adagrad, adadelta, adam or adamw (whose weight decay is no part of the gradient, and of everything).
        learning_rate: Learning rate of the optimizer; 0.03 is MV-LSTM's on question answering.
        encoder_rate: Learning rate of the word vectors or the pretrained encoder; 0: the same as of all else.
        layers: How many of a pretrained encoder's last layers learn; 0 for all.
        layer_decay: Learning rate of each of the encoder's layers, as a part of the rate of the layer above it; above
            0, at most 1.
        epsilon: Added to the root that a step is divided by (adagrad, adam, adamw); 0 for torch's own. What is touched
            for the first time moves by the whole learning rate with torch's 1e-10, however small its gradient is; the
            toolkit of MV-LSTM's authors has 0.1.
        warmup: Over this part of the run the learning rates rise from 0. Linear decay to 0 follows, and the last epoch
            is kept. 0: constant learning rates.
        batch: Triples of query, positive and negative (hinge, softmax) or pairs in one step; with `positives` pairs.
        negatives: Negative texts drawn for each positive one in an epoch, all of them where there are no more (hinge,
            softmax): from the query's list, or from the whole collection where only positives are given.
        positives: A question is one example, with at most this many of its positives, drawn anew in every epoch, and
            its negatives, half of which share most words with it (where lists are given; hinge, softmax). 0: every
            positive is an example of its own.
        in_batch: Where only positives are given, the texts of a batch's other questions are negatives, too, unless
            they are positives. They are encoded anyway; a batch is then worked on as a whole.
        questions: Where only positives are given, two questions of one answer are a positive pair, too.
        mine_every: Where only positives are given: after every so many epochs the matcher itself ranks the collection
            for each question, and what it ranks highest and is no positive becomes the near half of the negatives. 0:
            the nearest by BM25 throughout.
        window: Pairs that are in memory at a time where a folder of Parquet shards holds more than these; fewer are
            read as a whole.
        epochs: Maximum number of epochs.
        patience: Stop after this many epochs without a better development measure.
        check_every: Check the development pairs after this many steps, and at an epoch's end; 0: at the end alone.
        measure: What chooses the best epoch on the development pairs, by its ir-measures name.
        clip: Maximum norm of the gradient; 0 for no limit.
        weight_decay: L2 penalty on what the model says: all parameters but the word vectors, or of M2S-Net U alone.
        freeze_vectors: Keep the word vectors, or the pretrained encoder, as they are.
        seed: Seed of the parameters, the order, the draws and the held-out questions.
        workers: Shards of each batch that are worked on side by side, or torch's threads for a model that must see a
            batch as a whole; it decides the last digits of the result.
    """

    loss: str = "hinge"
    margin: float = 1.0
    optimizer: str = "adagrad"
    learning_rate: float = 0.03
    encoder_rate: float = 0.0
    layers: int = 0
    layer_decay: float = 1.0
    epsilon: float = 0.0
    warmup: float = 0.0
    batch: int = 128
    negatives: int = 4
    positives: int = 0
    in_batch: bool = False
    questions: bool = True
    mine_every: int = 0
    window: int = 100_000
    epochs: int = 20
    patience: int = 3
    check_every: int = 0
    measure: str = "RR"
    clip: float = 5.0
    weight_decay: float = 0.0
    freeze_vectors: bool = False
    seed: int = 0
    workers: int = 2

    def __post_init__(self) -> None:
        for name, choices in (("loss", LOSSES), ("optimizer", OPTIMIZERS)):
            if getattr(self, name) not in choices:
                raise MatchloomError(
                    f"{name} {getattr(self, name)!r} is unknown; choose one of {', '.join(choices)}",
                    code="unknown_name",
                )
        if not 0 <= self.seed < 2**32:
            raise MatchloomError(f"seed must be from 0 to {2**32 - 1}, found {self.seed}", code="bad_value")
        for name in ("batch", "negatives", "window", "epochs", "patience", "workers"):
            if getattr(self, name) < 1:
                raise MatchloomError(f"{name} must be at least 1, found {getattr(self, name)}", code="bad_value")
        for name in ("learning_rate", "margin"):
            if not getattr(self, name) > 0:
                raise MatchloomError(f"{name} must be above 0, found {getattr(self, name)}", code="bad_value")
        if not 0 < self.layer_decay <= 1:
            raise MatchloomError(
                f"layer_decay must be above 0 and at most 1, found {self.layer_decay}", code="bad_value"
            )
        if not self.warmup < 1:
            raise MatchloomError(f"warmup is a part of the run, from 0 to 1, found {self.warmup}", code="bad_value")
        least_zero = ("encoder_rate", "layers", "epsilon", "warmup", "positives", "clip", "weight_decay")
        for name in (*least_zero, "check_every", "mine_every"):
            if not getattr(self, name) >= 0:
                raise MatchloomError(f"{name} must not be below 0, found {getattr(self, name)}", code="bad_value")

    def as_dict(self) -> dict[str, int | float | str | bool]:
        """The settings as they are saved with a matcher."""
        return asdict(self)

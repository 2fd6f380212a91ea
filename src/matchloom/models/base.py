"""The one base class: what a model owes to training, the matcher and explanations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from matchloom.batches import PairBatch, Texts
from matchloom.data.tokenized import TokenizedTexts
from matchloom.encoders.base import Encoder
from matchloom.layers.features import PairFeatures
from matchloom.types import Trace

Settings = Mapping[str, int | float | str | bool]

# For convolutions under tanh or relu: AdaGrad's first steps, each as long as the rate, saturate them or shut them.
ADAM: Settings = {"optimizer": "adam", "learning_rate": 0.001}


class PairModel(nn.Module, ABC):
    """A network that scores pairs of texts. What it asks of the batch and of training is said by these attributes.

    needs_lexical     fill the batch's lexical fields
    needs_features    fill the batch's features with this feature set
    trains_embedding  False: training leaves the encoder alone; it takes no part in the score, or is wanted fixed
    sentence_vectors  `encode` makes one vector of a text, for `Matcher.vectors` and archives
    stored_positions  `encode` makes int8 positions of a text which say all that `match` needs, for archives
    reads_together    nothing is encoded of a text alone: both are read as one
    batch_coupled     a score in training depends on the whole batch (batch normalisation): training then does not split
                      a batch among workers, and mixes lengths in it
    draws_at_random   a step draws at random (dropout): training then does not split a batch either
    max_words         it reads so many words of a text and no more; None: all
    trained_with      settings of `TrainConfig` that suit it better than the defaults: its authors', or others where
                      these are not known or let it learn little
    least_words       its ONNX graphs take texts padded to at least so many words
    not_exported      why no ONNX graph can be made of it; empty: one can
    single_precision  where the native kernels serve, its scores are computed by them and not in double precision
    published         its paper's arguments and settings where the defaults are others (`train(paper=True)`)
    """

    needs_lexical = False
    needs_features = ""
    trains_embedding = True
    sentence_vectors = False
    stored_positions = False
    reads_together = False
    batch_coupled = False
    draws_at_random = False
    max_words: int | None = None
    least_words = 1
    not_exported = ""
    single_precision = False
    single = False  # set in the copy that scores; see float64_copy.py
    trained_with: ClassVar[Settings] = {}
    published: ClassVar[Settings] = {}
    encoder: Encoder

    @abstractmethod
    def encode(self, texts: Texts) -> Tensor:
        """Represent each text on its own, first dimension N; a text that occurs in many pairs is encoded once.

        A model whose two sides differ reads left texts here, and right ones in `encode_right`.
        """

    def encode_right(self, texts: Texts) -> Tensor:
        """Represent texts of the right side: as those of the left, unless a model says otherwise."""
        return self.encode(texts)

    @abstractmethod
    def match(self, left: Tensor, right: Tensor, batch: PairBatch) -> Tensor:
        """Scores (B,) of the pairs of a batch from the encodings of its left and right texts."""

    @abstractmethod
    def trace(self, batch: PairBatch) -> list[Trace]:
        """Why each pair got its score, from the same interactions that `match` uses."""

    def fit_features(self, features: Tensor) -> None:
        """See the features of all training pairs, (pairs, F), once before the first step."""
        for layer in self.modules():
            if isinstance(layer, PairFeatures):
                layer.fit(features)

    def pretrain(
        self, left: TokenizedTexts, right: TokenizedTexts, pairs: NDArray[np.int64], seed: int, progress: bool
    ) -> None:
        """See the training texts once before the first step, for models that learn something from them without a task.

        `pairs` holds for each training pair its row of `left`, its row of `right`, and 1 where it is a match, else 0.
        What is learnt must live in parameters and buffers, changed in place and of a shape that arguments and
        vocabulary alone decide: they are what a matcher saves and what a resumed run goes on with. This does nothing.
        """

    def unrounded(self) -> PairModel:
        """The same model with the same weights, but for what it rounds to score or store: what others may run."""
        return self

    def size(self) -> int:
        """How many parameters it has beside its encoder."""
        return sum(parameter.numel() for parameter in self.own_parameters())

    def decayed(self) -> list[nn.Parameter]:
        """The parameters that weight decay pulls towards 0: all but the encoder's."""
        return self.own_parameters()

    def own_parameters(self) -> list[nn.Parameter]:
        """All parameters but the encoder's."""
        return [parameter for name, parameter in self.named_parameters() if not name.startswith("encoder.")]

    def outputs(self, batch: PairBatch) -> list[Tensor]:
        """What the loss of a step reads: the scores, or those of each member of an ensemble."""
        return [self(batch)]

    def forward(self, batch: PairBatch) -> Tensor:
        """Match each pair of the batch. Returns scores (B,)."""
        return self.match(self.encode(batch.left), self.encode_right(batch.right), batch)

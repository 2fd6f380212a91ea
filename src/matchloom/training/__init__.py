"""From labelled pairs to a matcher: losses, one frozen configuration, one plain loop."""

from matchloom.training.config import TrainConfig
from matchloom.training.run import train

__all__ = ["TrainConfig", "train"]

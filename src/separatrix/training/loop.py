"""Where `train` was; it is in `alone`."""

from separatrix.training.alone import Trained, train

__all__ = ["Trained", "train"]

"""A model of which the layers are known and some sizes are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from separatrix.core.errors import ConfigError
from separatrix.stacks.mechanisms import Mechanism

Part = Mechanism | type[Mechanism]
"""A mechanism with its sizes, or the class alone where sizes are unknown."""


@dataclass(frozen=True)
class Outline:
    """The layers of a model, first layer first, and the names of the sizes nobody gave, such as
    "mamba2.state" or "dtype".
    """

    layers: tuple[tuple[Part, ...], ...]
    missing: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[tuple[Part, ...]]:
        return iter(self.layers)

    def counted(self) -> list[tuple[tuple[Part, ...], int]]:
        """The distinct layers, each with how often it stands in the stack."""
        return list(Counter(self.layers).items())


class UnknownSizes(ConfigError):
    """A file leaves sizes open. The message names them and how to supply them; `outline` is what
    is known.
    """

    def __init__(self, message: str, outline: Outline) -> None:
        super().__init__(message)
        self.outline = outline

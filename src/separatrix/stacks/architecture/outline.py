"""A model of which the layers are known and some sizes are not: it can be drawn and counted, but
not judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from separatrix.core.errors import ConfigError
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Mechanism

Part = Mechanism | type[Mechanism]
"""A mechanism with its sizes, or the class alone where sizes are unknown."""


@dataclass(frozen=True)
class Outline:
    """The layers of a model, first layer first, and the names of the sizes nobody gave, such as
    "mamba2.state" or "dtype".
    """

    layers: tuple[tuple[Part, ...], ...]
    name: str
    missing: tuple[str, ...]
    shapes: tuple[tuple[Part, ...], ...] = ()
    """As `layers`, but with the sizes of mechanisms of which the number format alone is unknown:
    they tell numbers, never bits.
    """
    notes: tuple[str, ...] = ()
    vocabulary: int | None = None
    context: int | None = None
    like: str | None = None
    """The preset that has the sizes, where one is known."""

    def __str__(self) -> str:
        return self.name

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[tuple[Part, ...]]:
        return iter(self.layers)

    def counted(self) -> list[tuple[tuple[Part, ...], int]]:
        """The distinct layers, each with how often it stands in the stack."""
        return list(Counter(self.layers).items())

    @property
    def known(self) -> Architecture | None:
        """The layers and heads of which every size is known, or None if there are none."""
        return _whole(self.layers)

    @property
    def shaped(self) -> Architecture | None:
        """The layers and heads of which everything but the number format is known, to count
        numbers, or None if there are none.
        """
        return _whole(self.shapes)

    @property
    def unsized(self) -> set[type[Mechanism]]:
        """The mechanisms of which some size is unknown."""
        return {part for layer in self.layers for part in layer if isinstance(part, type)}

    @property
    def shapeless(self) -> set[type[Mechanism]]:
        """The mechanisms of which more than the number format is unknown."""
        return {part for layer in self.shapes for part in layer if isinstance(part, type)}


def _whole(layers: tuple[tuple[Part, ...], ...]) -> Architecture | None:
    kept = [tuple(part for part in layer if isinstance(part, Mechanism)) for layer in layers]
    found = tuple(layer for layer in kept if layer)
    return Architecture(found) if found else None


class UnknownSizes(ConfigError):
    """A file leaves sizes open. The message names them and how to supply them; `outline` is what
    is known.
    """

    def __init__(self, message: str, outline: Outline) -> None:
        super().__init__(message)
        self.outline = outline

"""A model of which the layers are known and some sizes are not: it can be drawn and counted, but not judged."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.architecture.mechanisms import Mechanism
from separatrix.errors import ConfigError

Part = Mechanism | type[Mechanism]
"""A mechanism with its sizes, or the class alone where sizes are unknown."""


@dataclass(frozen=True)
class Outline:
    """The layers of a model, first layer first, and the names of the sizes nobody gave, such as "mamba2.state" or "dtype"."""

    layers: tuple[tuple[Part, ...], ...]
    name: str
    missing: tuple[str, ...]
    notes: tuple[str, ...] = ()
    vocabulary: int | None = None
    context: int | None = None

    def __str__(self) -> str:
        return self.name

    def __len__(self) -> int:
        return len(self.layers)


class UnknownSizes(ConfigError):
    """A file leaves sizes open. The message names them and how to supply them; `outline` is what is known."""

    def __init__(self, message: str, outline: Outline) -> None:
        super().__init__(message)
        self.outline = outline

"""A layer as a file describes it: a mechanism whose sizes are known, or unknown and named.
Nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from separatrix.stacks.mechanisms import Mechanism, check_size_names


@dataclass(frozen=True)
class Unknown:
    """A size that the file does not give; `looked_for` says under which fields. Reckoning with
    it gives an unknown size again.
    """

    looked_for: tuple[str, ...]

    def _with(self, other: Size) -> Unknown:
        return Unknown(
            tuple(
                dict.fromkeys(
                    (*self.looked_for, *(other.looked_for if isinstance(other, Unknown) else ()))
                )
            )
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = (
        _with
    )


Size = int | Unknown
Value = int | str | bool | None | Unknown


@dataclass(frozen=True, eq=False)
class Draft:
    """A mechanism with the sizes a file gives. Raises UnknownNameError for a size the mechanism
    does not have.
    """

    cls: type[Mechanism]
    sizes: Mapping[str, Value] = field(default_factory=dict[str, Value])

    def __post_init__(self) -> None:
        check_size_names(self.cls, self.sizes)

    @property
    def unknown(self) -> dict[str, Unknown]:
        """The sizes that are not known, by name."""
        return {name: value for name, value in self.sizes.items() if isinstance(value, Unknown)}


@dataclass(frozen=True)
class Reading:
    """What a family's reader finds: drafts for every layer (more than one: side by side), and
    the assumptions made.
    """

    layers: tuple[tuple[Draft, ...], ...]
    notes: tuple[str, ...] = ()

    def mapped(self, change: Callable[[Draft], Draft]) -> Reading:
        """The same with each draft changed; layers that share one share it afterwards too."""
        made = {id(draft): draft for layer in self.layers for draft in layer}
        made = {key: change(draft) for key, draft in made.items()}
        layers = tuple(tuple(made[id(draft)] for draft in layer) for layer in self.layers)
        return Reading(layers, self.notes)

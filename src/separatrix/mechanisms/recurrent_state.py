"""A recurrent state with a number format of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.mechanisms.base import LayerKind, number_format


@dataclass(frozen=True, kw_only=True)
class Stateful:
    """The number format of a recurrent state.

    It stands beside `Mechanism` among the bases of a class.
    """

    group: ClassVar[LayerKind] = "recurrent"

    state_format: str | None = number_format(
        None, "number format of the recurrent state; format if not given"
    )

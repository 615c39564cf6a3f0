"""A recurrent state with a number format of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from separatrix.core.numbers.formats import NumberFormat, summed_in
from separatrix.stacks.mechanisms.base import (
    LayerKind,
    Mechanism,
    Reach,
    number_format,
    positions_field,
)


@dataclass(frozen=True, kw_only=True)
class Stateful(Mechanism):
    """The number format of a recurrent state, and what rounding to it after every token does."""

    group: ClassVar[LayerKind] = "recurrent"
    stages: ClassVar[int] = 1
    """How many kinds of its numbers stand still one after the other: a running maximum does before
    what it scales.
    """

    state_format: str | None = number_format(
        None, "number format of the recurrent state; format if not given"
    )

    positions: str = positions_field()

    @property
    def tokens_mixed(self) -> int:
        """K of Theorem P: the tokens that what is added to the state, and its decay, come from."""
        return max(1, self.sizes().get("conv", 0))

    @property
    def reach(self) -> Reach:
        return Reach(before=self.tokens_mixed - 1)

    @property
    def settles_after(self) -> int | None:
        """2^p - 1 steps of each kind of number, after the K - 1 tokens that its inputs take
        (theory.md, section 10).
        """
        if not self.is_monotone:
            return None
        return self.stages * ((1 << self.state_p) - 1) + self.tokens_mixed - 1

    @property
    def rounded_to(self) -> str | None:
        stored = NumberFormat(self.state_format or self.format)
        return stored.name if stored.bits < NumberFormat(summed_in(self.format)).bits else None

    def roundings(self, t: int) -> int:
        """How often a number of the state may be rounded while t tokens are read."""
        return t

    def drift(self, t: int) -> str | None:
        if self.rounded_to is None:
            return None
        # a sum of 2^digits like numbers takes in no further one: half a unit of its last digit
        # is lost
        most = 1 << NumberFormat(self.rounded_to).digits
        if self.roundings(t) < most:
            return None
        return (
            f"the state is rounded to {self.rounded_to} after every token, and a sum of {most:,}"
            " like numbers takes in no more"
        )

    def assumptions(self) -> tuple[str, ...]:
        if self.rounded_to is None:
            return super().assumptions()
        return (
            *super().assumptions(),
            (
                f"step-by-step decoding: the state is rounded to {self.rounded_to} after every"
                f" token; a parallel form that carries {summed_in(self.format)} between tokens is"
                " another model"
            ),
        )

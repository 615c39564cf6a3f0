"""The angles of rotary position embeddings (RoPE) as balls: base, rotated dimensions and scaling.

Source: Su et al. 2021, arXiv 2104.09864; scalings as transformers computes them: linear (Chen et
al. 2023, arXiv 2306.15595), yarn (Peng et al. 2023, arXiv 2309.00071), llama3 (Llama 3.1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property

from flint import arb, ctx

from separatrix.core.errors import SizeError, SpecError

SCALINGS = {
    "linear": "linear_FACTOR",
    "llama3": "llama3_FACTOR_LOW_HIGH_LENGTH",
    "yarn": "yarn_FACTOR_FAST_SLOW_LENGTH",
    "yarnexact": "yarnexact_FACTOR_FAST_SLOW_LENGTH",
    "proportional": "proportional_DIMS",
}
"""How each kind of scaling is written: its name and integers, joined by underscores. LENGTH is the
context before scaling; yarnexact does not round the range of its ramp to whole pairs (gpt-oss);
proportional has the first angles of a rotation of DIMS numbers (Gemma 4)."""
LARGEST_NUMBER = 10**12
_BITS = 128


@dataclass(frozen=True)
class Rotation:
    """What turns queries and keys: pair r of `dims` / 2 pairs turns by angle r for each token."""

    base: int
    dims: int
    """Rotated numbers of a query or key; even."""
    scaling: str | None = None
    """As in `SCALINGS`, or None."""

    def __post_init__(self) -> None:
        if self.dims < 2 or self.dims % 2:
            raise SizeError(f"{self.dims} rotated dimensions; rotation turns pairs of dimensions")
        if self.base < 2:
            raise SizeError(f"the base of a rotation is {self.base}; it must be at least 2")
        check_scaling(self.scaling)
        if (
            str(self.scaling).startswith("proportional")
            and self.dims > _scaling(self.scaling)[1][0]
        ):
            raise SizeError(f"{self.dims} rotated dimensions are more than those of {self.scaling}")

    @property
    def angles(self) -> tuple[arb, ...]:
        """The angle of each pair, in radians per token; enclosures of relative width about
        2^-100."""
        return _angles(self)

    @cached_property
    def frequencies(self) -> tuple[float, ...]:
        """The same, each rounded to a float64."""
        return tuple(map(float, self.angles))

    def __str__(self) -> str:
        scaled = f", scaled by {self.scaling}" if self.scaling else ""
        return f"base {self.base:,}, {self.dims:,} dimensions{scaled}"


def check_scaling(text: object) -> None:
    """Raises SpecError for anything but None and a text that is a scaling."""
    if text is not None:
        _scaling(text)


def _scaling(text: object) -> tuple[str, tuple[int, ...]]:
    """The kind of a scaling and its numbers."""
    kind, *numbers = str(text).split("_")
    way = SCALINGS.get(kind)
    if (
        way is None
        or len(numbers) != way.count("_")
        or not all(re.fullmatch(r"[1-9][0-9]{0,12}", number) for number in numbers)
        or any(int(number) > LARGEST_NUMBER for number in numbers)
    ):
        raise SpecError(
            f"rope_scaling is {str(text)[:60]!r}; write one of {', '.join(SCALINGS.values())}, with"
            " positive integers"
        )
    sizes = tuple(map(int, numbers))
    if kind == "llama3" and sizes[1] > sizes[2]:
        raise SpecError(f"rope_scaling is {text}; LOW must not be more than HIGH")
    return kind, sizes


@cache
def _angles(rotation: Rotation) -> tuple[arb, ...]:
    with ctx.workprec(_BITS):
        pairs = rotation.dims // 2
        plain = [arb(rotation.base) ** (arb(-r) / pairs) for r in range(pairs)]
        if rotation.scaling is None:
            return tuple(plain)
        kind, sizes = _scaling(rotation.scaling)
        if kind == "linear":
            return tuple(angle / sizes[0] for angle in plain)
        if kind == "proportional":
            return tuple(arb(rotation.base) ** (arb(-2 * r) / sizes[0]) for r in range(pairs))
        if kind == "llama3":
            return tuple(_llama3(angle, *sizes) for angle in plain)
        ramp = _ramp(rotation, *sizes[1:], whole=kind == "yarn")
        return tuple(
            angle / sizes[0] * part + angle * (1 - part)
            for angle, part in zip(plain, ramp, strict=True)
        )


def _llama3(angle: arb, factor: int, low: int, high: int, length: int) -> arb:
    """Long waves are slowed by the factor, short ones kept, those between interpolated."""
    turns = length * angle / (2 * arb.pi())
    if turns > high:
        return angle
    if turns < low:
        return angle / factor
    kept = (turns - low) / (high - low)
    return (1 - kept) * angle / factor + kept * angle


def _ramp(rotation: Rotation, fast: int, slow: int, length: int, *, whole: bool) -> list[arb]:
    """How far each pair is slowed, from 0 (it turns more than `fast` times in the length) to 1."""

    def pair_that_turns(times: int) -> arb:
        return (
            rotation.dims
            * (arb(length) / (times * 2 * arb.pi())).log()
            / (2 * arb(rotation.base).log())
        )

    first = pair_that_turns(fast)
    last = pair_that_turns(slow)
    if whole:
        first = first.floor()
        last = last.ceil()
    first = arb.max(first, arb(0))
    last = arb.min(last, arb(rotation.dims - 1))
    # balls of equal numbers overlap, and are not known to be equal
    if first.overlaps(last):
        last += arb("0.001")
    return [
        arb.max(arb(0), arb.min(arb(1), (r - first) / (last - first)))
        for r in range(rotation.dims // 2)
    ]

"""Theorem S: layers that read multiply what they fetch, so that products of any finite monoid are
followed up to the product of their fan-ins.
"""

from __future__ import annotations

from itertools import groupby

from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.formats import DIGITS
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.weights import Mlp
from separatrix.stacks.mechanisms import Full
from separatrix.tasks import Modular, Parity, Task
from separatrix.tasks.tracking import tracked
from separatrix.theory.base import number
from separatrix.theory.solves.fan_in import (
    ASSUMED_WIDTH,
    Reader,
    Step,
    mlp_of,
    numbers_of,
    readers,
    slotted,
    steps,
)
from separatrix.theory.solves.room import WIDE, Construction, Room
from separatrix.theory.solves.states import SATURATED
from separatrix.theory.words import Words, counted_as

DIVIDES_LAST = (
    "weights of exp(0) = 1 are summed up in fp32 and divide once, in the end, as in FlashAttention;"
    " a softmax that is written out first rounds every weight"
)
SPACING = 256
"""Counts that one output in bf16 tells apart."""
MOST_HALF = 1 << 20
"""Letters up to which sums of the thresholds of bf16 are exact in fp32."""
FIRST = "a start token stands before the letters"
LAST = "a token of its own behind the letters asks; the weights are for this n"


def products(architecture: Architecture, task: Task) -> Room | None:
    moved = tracked(task)
    if moved is None:
        return None
    points = moved.things
    n = task.length

    def multiplied(found: dict[int, Reader], said: str) -> Room | None:
        return _multiplied(architecture, n, points, found, said)

    return (
        multiplied(readers(architecture, points, n, blank=True), FIRST)
        or _counted(architecture, task)
        # which bring every token the same letters, also one that asks
        or multiplied(readers(architecture, points, n, blank=True, convolutions=True), FIRST)
        or multiplied(slotted(architecture, points, n), SATURATED)
        or multiplied(readers(architecture, points, n, blank=False), LAST)
    )


class TheoremS(Construction):
    @property
    def cited(self) -> str:
        return f"Theorem {self.key}"

    def told(
        self, verdict: Verdict, task: Task, architecture: Architecture, *, thought: bool = False
    ) -> Words:
        numbers = verdict.numbers
        if "channels" in numbers:
            return Words(
                f"one full layer (layer {numbers['layer'] + 1}) counts by equal weights",
                "The average over all tokens says how many ones there are, if the kernel divides"
                " once, in the end.",
            )
        used = [numbers[f"maps_{i}"] for i in range(1, numbers["layers"] + 1)]
        of = f"its own MLP of {number(numbers['width'])}"
        if not numbers["width_stated"]:
            of = f"an MLP of {number(numbers['width'])} (assumed)"
        asked = "" if numbers["every_prefix"] else ", asked by a token of its own"
        return Words(
            f"{counted_as(len(used), 'layer')} of {len(architecture)} multiply"
            f" {_in_turn(used)}, within {of}{asked}",
            "Each layer fetches products of stretches of letters by their offset, and multiplies"
            f" them: up to {number(numbers['letters'])} letters.",
        )


def _multiplied(
    architecture: Architecture, n: int, points: int, found: dict[int, Reader], said: str
) -> Room | None:
    """By what these layers fetch of n letters; `said` tells the form."""
    mlp = mlp_of(architecture)
    first = said != LAST
    taken, product = steps(architecture, found, points, mlp, n if first else n + 1)
    if product < n + (not first):
        return None
    sentence = (
        f"{_layers(taken, architecture)} multiply {_in_turn([step.words for step in taken])}, which"
        f" is enough for {number(product - (not first))} letters; "
        + ("every token holds the product so far" if first else "a token behind them asks")
    )
    numbers = {
        "points": points,
        **numbers_of(mlp),
        "letters": product - (not first),
        "every_prefix": int(first),
        "layers": len(taken),
        "score": max(step.reader.score for step in taken),
    }
    for place, step in enumerate(taken, 1):
        numbers |= {f"layer_{place}": step.reader.layer, f"maps_{place}": step.words}
    sources = dict.fromkeys(step.reader.rests_on for step in taken if step.reader.rests_on)
    return Room(sentence, numbers, (*sources, said, width_said(mlp)))


def _counted(architecture: Architecture, task: Task) -> Room | None:
    known = architecture.positions in ("embedded", "none")
    if not known or not isinstance(task, Parity | Modular):
        return None
    n = task.length
    for index, layer in enumerate(architecture):
        for part in layer:
            if not isinstance(part, Full) or part.accumulator_bits < 32:
                continue
            channels = part.kv * part.dv
            if part.format in WIDE:
                most = (1 << DIGITS["fp32"]) - 1
                said = f"fp32 tells c/n apart up to {most:,}"
            elif part.format == "bf16":
                most = channels_reach(n, channels)
                said = f"{channels:,} value channels in bf16 tell {n:,} counts apart"
            else:
                continue
            if n <= most:
                return Room(
                    f"one full layer (layer {index + 1}) of equal weights counts: {said}",
                    {"layer": index, "channels": channels},
                    (DIVIDES_LAST, *([FIRST] if part.format == "bf16" else [])),
                )
    return None


def channels_reach(n: int, channels: int) -> int:
    """Up to how many bits value channels in bf16 tell every count apart from the next, behind a
    start token, if n bits are asked for.

    Channel j holds c - T_j, T_j = n b_j + s_j: b_j, a multiple of 2^-d, goes with every letter and
    s_j with the start token. Sums are multiples of 2^-d below n, exact while n 2^d <= 2^24. s_j
    stays within n 2^-(d+1), where numbers of eight digits are at most n 2^-(d+9) off, or exact
    where n is so many times 128. Divided by n + 1 and rounded, c - T_j and the next are apart while
    both are within 128 of 0: one unit in the last place is below 1/(n+1) there.
    """
    if n > MOST_HALF:
        return 0
    d = min(7, 24 - (n - 1).bit_length())
    off = 0 if n % (128 << d) == 0 else -(-n // (1 << (d + 9)))
    return channels * (SPACING - 2 * off)


def width_said(mlp: Mlp) -> str:
    where = "in every layer" if mlp.every else "in the layers that mix no tokens"
    if mlp.stated:
        return f"an MLP of {mlp.width:,} units {where} (the file)"
    return (
        f"an MLP of {mlp.width:,} units {where} (assumed: {ASSUMED_WIDTH} times the heads' width)"
    )


def _in_turn(used: list[int]) -> str:
    runs = [words for words, _ in groupby(used)]
    if len(runs) == 1:
        return f"{runs[0]} maps{' each' if len(used) > 1 else ''}"
    first, *later = runs
    return f"{first} maps each, then {', '.join(map(str, later))}"


def _layers(taken: list[Step], architecture: Architecture) -> str:
    brought = sum(not step.reader.rests_on for step in taken)
    windows = sum(step.reader.window is not None for step in taken) - brought
    kinds = ((windows, "window"), (brought, "short convolution"))
    of = ", ".join(counted_as(number, kind) for number, kind in kinds if number)
    return f"{counted_as(len(taken), 'layer')} of {len(architecture)}{f' ({of})' if of else ''}"

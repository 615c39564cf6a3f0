"""The asymptotic lower bounds of [CPW] and [Ye26], with the n at which they would bite."""

from __future__ import annotations

from collections.abc import Callable

from flint import arb, ctx, fmpz

from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.formats import NumberFormat
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Mechanism
from separatrix.tasks import SeqComp, Task
from separatrix.theory.base import NEITHER, Theorem
from separatrix.theory.words import TOLD

MOST_WRITTEN = 4096
"""Exponents of two up to this are multiplied out."""


def hdp(architecture: Architecture) -> int:
    """The largest heads * head dimension * bits per number of any layer with memory."""
    return max((sum(map(_bits, layer)) for layer, _ in architecture.counted()), default=0)


def _bits(part: Mechanism) -> int:
    sizes = part.sizes()
    width = sizes.get("heads", 1) * (sizes.get("head_dim") or sizes.get("width") or 0)
    return width * max(NumberFormat(name).bits for name in part.formats)


def log2_of(base: int, exponent: int) -> str:
    """log2 of base^(2^exponent): an integer where the base is a power of two, else the middle of a
    ball; a formula where that is too long to write.
    """
    if exponent > MOST_WRITTEN:
        return f"log2({base}) x 2^{exponent}"
    if base & (base - 1) == 0:
        return str((base.bit_length() - 1) << exponent)
    with ctx.workprec(64 + exponent):
        return (arb(fmpz(base)).log() / arb.const_log2() * arb(2) ** exponent).str(8, radius=False)


class Asymptotic(Theorem):
    """One of these bounds."""

    shows = NEITHER

    def __init__(
        self, key: str, bound: Callable[[Architecture, int], tuple[int, int] | None]
    ) -> None:
        """`bound`: of a stack and so many functions, how many steps defeat it if Hdp <=
        n^(2^-exponent), and this exponent; None where it says nothing.
        """
        self.bound = bound
        for name, value in ({"key": key} | TOLD[key]._asdict()).items():
            setattr(self, name, value)

    @property
    def cited(self) -> str:
        paper, number = self.key.split("-")
        return f"[{paper}, Theorem {number}]"

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        found = self.bound(architecture, task.L) if isinstance(task, SeqComp) else None
        if found is None:
            return None
        steps, exponent = found
        base = hdp(architecture)
        digits = log2_of(base, exponent)
        short = digits if len(digits) <= 40 or not digits.isdigit() else f"10^{len(digits) - 1}"
        sentence = (
            "asymptotic, nothing is shown at this size: its bound needs Hdp <="
            f" n^(2^-{exponent}), and with Hdp = {base:,} it would bite at n ="
            f" {base:,}^(2^{exponent}), that is log2 n = {'about ' * (short != digits)}{short}"
        )
        numbers = {"Hdp": base, "exponent": exponent, "steps": steps}
        return self.verdict(architecture, task, "OPEN", sentence, log2_n=digits, numbers=numbers)


def chen_peng_wu(architecture: Architecture, functions: int) -> tuple[int, int] | None:
    memory = architecture.remembering
    parts = [part for layer, _ in memory for part in layer]
    layers = sum(times for _, times in memory)
    full = all(part.group == "full" and not part.fed_bits(1 << 20) for part in parts)
    return (layers, 4 * layers) if full and 1 <= layers <= functions else None


def ye_et_al(architecture: Architecture, functions: int) -> tuple[int, int] | None:
    parts = [part for layer, _ in architecture.counted() for part in layer]
    recurrent = [part.group == "recurrent" and part.name != "loglinear" for part in parts]
    steps = len(architecture.reading) + 1
    covered = all(
        known or part.name in ("full", "mla", "mlp")
        for known, part in zip(recurrent, parts, strict=True)
    )
    by_layers = all(len(layer) == 1 for layer in architecture)
    if not (covered and by_layers and any(recurrent) and 2 <= steps <= functions):
        return None
    return (steps, 4 * steps + 2) if len(architecture) <= 2 ** (3 * steps**2) else None

"""The asymptotic lower bounds of [CPW] and [Ye26], with the n at which they would bite."""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb, ctx, fmpz

from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.formats import NumberFormat
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Mechanism
from separatrix.tasks import SeqComp, Task
from separatrix.theory.base import NEITHER, Theorem

MOST_WRITTEN = 4096
"""Exponents of two up to this are multiplied out."""


def hdp(architecture: Architecture) -> int:
    """The largest heads * head dimension * bits per number of any layer with memory."""
    return max((sum(map(_bits, layer)) for layer, _ in architecture.counted()), default=0)


def _bits(part: Mechanism) -> int:
    sizes = part.sizes()
    width = sizes.get("heads", 1) * (sizes.get("head_dim") or sizes.get("width") or 0)
    return width * max(NumberFormat(name).bits for name in part.formats)


@dataclass(frozen=True)
class Bite:
    """n = base^(2^exponent)."""

    base: int
    exponent: int

    @property
    def log2(self) -> str:
        """log2 n: an integer where the base is a power of two, else a decimal enclosure's
        midpoint; a formula where that is too long to write.
        """
        if self.exponent > MOST_WRITTEN:
            return f"log2({self.base}) x 2^{self.exponent}"
        # log2 n = 2^exponent log2 base: a shift where the base is a power of two
        if self.base & (self.base - 1) == 0:
            return str((self.base.bit_length() - 1) << self.exponent)
        with ctx.workprec(64 + self.exponent):
            return (arb(fmpz(self.base)).log() / arb.const_log2() * (arb(2) ** self.exponent)).str(
                8, radius=False
            )

    def __str__(self) -> str:
        return f"{self.base:,}^(2^{self.exponent})"


class _Asymptotic(Theorem):
    shows = NEITHER

    @property
    def cited(self) -> str:
        paper, number = self.key.split("-")
        return f"[{paper}, Theorem {number}]"

    def _vacuous(
        self, architecture: Architecture, task: SeqComp, steps: int, exponent: int
    ) -> Verdict:
        bite = Bite(hdp(architecture), exponent)
        sentence = (
            "asymptotic, nothing is shown at this size: its bound needs Hdp <="
            f" n^(2^-{exponent}), and with Hdp = {bite.base:,} it would bite at n ="
            f" {bite}, that is log2 n = {_short(bite.log2)}"
        )
        numbers = {"Hdp": bite.base, "exponent": exponent, "steps": steps}
        return self.verdict(architecture, task, "OPEN", sentence, log2_n=bite.log2, numbers=numbers)


def _short(digits: str) -> str:
    return digits if len(digits) <= 40 or not digits.isdigit() else f"about 10^{len(digits) - 1}"


class ChenPengWu(_Asymptotic):
    key = "CPW-1.1"

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        memory = architecture.remembering
        full = all(
            part.group == "full" and not part.fed_bits(1 << 20)
            for layer, _ in memory
            for part in layer
        )
        layers = sum(times for _, times in memory)
        if not isinstance(task, SeqComp) or not full or not 1 <= layers <= task.L:
            return None
        return self._vacuous(architecture, task, layers, 4 * layers)


class YeEtAl(_Asymptotic):
    key = "Ye26-1.1"

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, SeqComp) or any(len(layer) > 1 for layer in architecture):
            return None
        parts = [part for layer, _ in architecture.counted() for part in layer]
        full = len(architecture.reading)
        covered = all(
            part.name in ("full", "mla", "mlp")
            or (part.group == "recurrent" and part.name != "loglinear")
            for part in parts
        )
        if (
            not covered
            or not 1 <= full <= task.L - 1
            or len(architecture) > 2 ** (3 * (full + 1) ** 2)
        ):
            return None
        if not any(part.group == "recurrent" for part in parts):
            return None
        return self._vacuous(architecture, task, full + 1, 4 * (full + 1) + 2)

"""Parity and the number of ones modulo m: a full layer that weighs all bits alike, whose average
tells the number of ones, and an MLP behind it, evaluated for every number of ones.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from separatrix.core.errors import CheckFailed
from separatrix.mixers.full import FullMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, Layer, derived
from separatrix.proofs.derivations.parts.live_parts import Head, Live, live_of
from separatrix.proofs.derivations.parts.reading import CHUNK, logit_leads
from separatrix.proofs.derivations.parts.stream import Embedded
from separatrix.proofs.entries import entry
from separatrix.proofs.machine import Enclosure, above, add_once, slack
from separatrix.proofs.softmax import even_share
from separatrix.tasks import Modular, Parity


def derive(task: Parity | Modular, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of the one layer. Raises CheckFailed where the weights do not bear it out."""
    (part,) = live_of(model, 1, placed=False)
    where = part.where
    head = part.softmax_head(FullMixer)
    bits = Embedded.of(model, task.n, arithmetic).tokens(slice(0, 2))
    if head.asked(bits, None, where).size.any():
        raise CheckFailed(f"{where}: a query is not 0, so that not every bit weighs the same")
    # a score is 0 times a number, which must be one
    head.keys(bits, None, where)
    share, averages = _averages(task.n, part, head, head.values(bits, where))
    base = bits.hull()
    due = np.arange(task.n + 1) % task.answers
    rows = max(1, CHUNK // max(1, model.config.hidden))
    found: list[np.ndarray] = []
    for start in range(0, task.n + 1, rows):
        some = slice(start, start + rows)
        written = head.written(averages.rows(some), base, where)
        x = add_once(base.repeated(len(written.mid)), written, f"{where}, its sum")
        found.append(logit_leads(model, part.after_mlp(x), due[some]))
    leads = np.concatenate(found)
    worst = int(leads.argmin())
    if not leads[worst] > 0:
        raise CheckFailed(
            f"{worst:,} ones: answer {due[worst]} has not the largest logit, or rounding may take"
            " it away"
        )
    said = entry(part.place, counts="ones", keys=task.n, weight_error=share, closest_count=worst)
    layer = Layer(said, "layers", 0, head.value_numbers, (*head.assumes, "exp(0) = 1"))
    return derived(arithmetic, [layer], Fraction(float(leads[worst])))


def _averages(n: int, part: Live, head: Head, values: Enclosure) -> tuple[Fraction, Enclosure]:
    """By what share of itself the average of n bits may be off, and a row for every number of ones.
    `values`: those of 0 and of 1. Raises CheckFailed where these are not 0 and a power of two.
    """
    (used,) = np.nonzero(values.mid[1])
    one = float(values.mid[1].sum())
    if values.spread.any() or values.mid[0].any() or len(used) != 1 or np.frexp(one)[0] != 0.5:
        raise CheckFailed(f"{part.where}: the values of the bits are not 0 and a power of two")
    arithmetic = values.arithmetic
    gap = -Fraction(max(head.rivals, default=-1024.0))
    share = even_share(n, len(head.rivals), gap, arithmetic)
    if not 8 * n * arithmetic.tiny <= one <= arithmetic.large / n:
        raise CheckFailed(f"{part.where}: an average may be too small or too large for a number")
    mid = np.zeros((n + 1, values.mid.shape[1]))
    mid[:, used[0]] = np.arange(n + 1) * one / n
    # our own quotient is rounded, too
    off = mid * (above(share) + slack(1)) if share else 0 * mid
    return share, values.like(mid, 0 * mid).wider(off).stored()


DERIVATIONS = tuple(
    Derivation(name=f"counted-{task.name}", task=task, derive=derive) for task in (Parity, Modular)
)

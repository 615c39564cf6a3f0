"""What rows of the experiment `capacity` say in words: laws, orders, spreads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import median

from separatrix.experiments.base import claimed, grouped
from separatrix.practice.capacity import Best, best, bits_learned, facts, numbers
from separatrix.practice.table import Row

FORMAT = "bf16"
"""In which states are rounded after every token when tested once more."""
FITS = 1.25
"""A law that is off by at most this factor is said to fit."""
LEFT_BEHIND = 0.1
"""A seed with less than this share of the best one's bits has learned next to nothing."""
TRAINED_BITS = 32
"""Of a number of the state in the format that is trained in."""


@dataclass(frozen=True, kw_only=True)
class Law:
    """facts = c x numbers / log2 V, fitted to the best of each size, by the mean of logarithms."""

    c: float
    """Bits per number."""
    residuals: tuple[tuple[Best, float], ...]
    """Each best with how many times the fitted bits it holds."""

    @property
    def factor(self) -> float:
        """The most that a size is off, above or below."""
        return max(max(ratio, 1 / ratio) for _, ratio in self.residuals)


def law(rows: Iterable[Row]) -> Law | None:
    """The law of one mechanism's rows; None with fewer than two sizes at which anything was
    learned.
    """
    sizes: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        sizes.setdefault((numbers(row), facts(row).values), []).append(row)
    found = [one for one in map(best, sizes.values()) if one is not None and one.learned.low > 0]
    if len(found) < 2:
        return None
    held = [log(per_number(one)) for one in found]
    c = exp(sum(held) / len(held))
    return Law(c=c, residuals=tuple((one, per_number(one) / c) for one in found))


def per_number(one: Best) -> float:
    """Bits per number; 0 where the interval reaches down to none."""
    return one.learned.bits / numbers(one.row) if one.learned.low > 0 else 0.0


def rounded_bits(one: Best) -> float:
    """Bits of the same model with its state rounded after every token, at least."""
    rounded = one.trial.rounded(FORMAT)
    if rounded is None:
        return one.learned.bits
    return max(0.0, one.learned.bits - facts(one.row).number * (rounded.bits - one.trial.bits))


def allowed(row: Row) -> int:
    """Bits that the state holds in the format that it is trained in: Theorem A's allowance."""
    return TRAINED_BITS * numbers(row)


def said(every: Sequence[Row]) -> tuple[str, ...]:
    """All findings, from rows with three seeds; what contradicts expectation first."""
    rows = [row for row in every if claimed([row])]
    if not rows:
        return ()
    return (
        *law_said(rows),
        *order_said(rows),
        *seeds_said(rows),
        *optimisers_said(rows),
        *format_said(rows),
        allowed_said(rows),
    )


def law_said(rows: Sequence[Row]) -> list[str]:
    """Whether facts = c x numbers / log2 V fits, mechanism by mechanism: facts by place."""
    said: list[str] = []
    for name, of in grouped(rows, lambda row: str(row.labels["mechanism"])).items():
        placed = [row for row in of if row.labels["by"] == "place"]
        fitted = law(placed)
        if fitted is None:
            continue
        worst, ratio = max(fitted.residuals, key=lambda one: abs(log(one[1])))
        fits = "fits" if fitted.factor <= FITS else "does not fit"
        said.append(
            f"{name}: facts = c x numbers / log2 V {fits} {len(fitted.residuals)} sizes: with c ="
            f" {fitted.c:.2f} they are off by a factor of up to {fitted.factor:.2f}, most at"
            f" {numbers(worst.row)} numbers and V = {facts(worst.row).values} ({ratio:.2f} times"
            f" the fitted bits).{_trained_unlike(placed)}"
        )
    return said


def _trained_unlike(rows: Sequence[Row]) -> str:
    """A sentence where the best of more optimisers stands for one size than for another."""
    tried: dict[tuple[int, int], set[str]] = {}
    for row in rows:
        size = (numbers(row), facts(row).values)
        tried.setdefault(size, set()).add(str(row.labels["optimiser"]))
    if all(one == next(iter(tried.values())) for one in tried.values()):
        return ""
    return " The best of all optimisers counts, and not every size was trained with each."


def order_said(rows: Sequence[Row]) -> list[str]:
    """Who learned most and least per number, of those that were asked and trained alike."""
    said: list[str] = []
    for question, of in grouped(rows, asked_said).items():
        found = {str(row.labels["mechanism"]): best([row]) for row in of}
        learned = {name: one for name, one in found.items() if one is not None and per_number(one)}
        if len(learned) < 3:
            continue
        ranked = sorted(learned, key=lambda name: -per_number(learned[name]))
        told = ", ".join(f"{name} {per_number(learned[name]):.2f}" for name in ranked)
        failed = [name for name in found if name not in learned]
        nothing = f"; {', '.join(failed)} failed to train, which is no limit" if failed else ""
        said.append(f"Bits per number, at least, of {question}: {told}{nothing}.")
    return said


def asked_said(row: Row) -> str:
    """What a row was asked, and how it was trained."""
    listed = facts(row)
    by = row.labels["by"]
    return f"{listed.number} facts of {listed.values} by {by}, {row.labels['optimiser']}"


def seeds_said(rows: Sequence[Row]) -> list[str]:
    """How far apart the seeds of one row lie."""
    learned = [sorted(bits_learned(row, trial).bits for trial in row.trials) for row in rows]
    known = [bits for bits in learned if bits[-1] > 0]
    if not known:
        return []
    stuck = sum(bits[0] < LEFT_BEHIND * bits[-1] for bits in known)
    shares = median(bits[0] / bits[-1] for bits in known)
    return [
        f"Of three or more seeds at the best rate, the least holds {shares:.0%} of the best one's"
        f" bits in the median row, and in {stuck} of {len(known)} rows less than"
        f" {LEFT_BEHIND:.0%}: what is not learned in this budget is no limit."
    ]


def optimisers_said(rows: Sequence[Row]) -> list[str]:
    """Which optimiser found more, where both trained the same."""
    more: dict[str, list[str]] = {"muon": [], "adamw": []}
    for row in rows:
        if row.labels["optimiser"] != "adamw":
            continue
        same = {name: row.labels[name] for name in row.labels if name != "optimiser"}
        other = next(
            (each for each in rows if each.labels == {**same, "optimiser": "muon"}),
            None,
        )
        one, two = best([row]), best([other] if other is not None else [])
        if one is None or two is None:
            continue
        won = "adamw" if one.learned.bits > two.learned.bits else "muon"
        ratio = one.learned.bits / max(two.learned.bits, 1e-9)
        more[won].append(f"{row.labels['mechanism']} ({ratio:.2f} times)")
    if not more["muon"] and not more["adamw"]:
        return []
    return [
        "AdamW's best against Muon's, bits: more for"
        f" {', '.join(more['adamw']) or 'none'}; less for {', '.join(more['muon']) or 'none'}."
    ]


def format_said(rows: Sequence[Row]) -> list[str]:
    """What rounding the state after every token costs."""
    kept: dict[float, Best] = {}
    for row in rows:
        chosen = best([row])
        if chosen is None or chosen.trial.rounded(FORMAT) is None or chosen.learned.low <= 0:
            continue
        kept[rounded_bits(chosen) / chosen.learned.bits] = chosen
    if not kept:
        return []
    least = min(kept)
    row = kept[least].row
    return [
        f"With states rounded to {FORMAT} after every token, the best models keep"
        f" {median(kept):.1%} of their bits (median of {len(kept)} rows), at least {least:.1%}"
        f" ({row.labels['mechanism']}, {numbers(row)} numbers)."
    ]


def allowed_said(rows: Sequence[Row]) -> str:
    """How far Theorem A's allowance lies from what was learned."""
    ratios = [
        allowed(row) / chosen.learned.bits
        for row in rows
        if (chosen := best([row])) is not None and chosen.learned.low > 0
    ]
    if not ratios:
        return "No row learned anything in this budget; that is a fact about the budget."
    return (
        f"Theorem A allows 32 bits per number in fp32: {min(ratios):.0f} to {max(ratios):.0f} times"
        " what was learned. No accuracy here comes near what is proved impossible."
    )

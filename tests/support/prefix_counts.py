"""How many prefixes tasks tell apart, by theory.md, section 3: each an exact integer at any size,
whatever the tasks say of themselves.

Two prefixes are equivalent when every continuation has the same answer after both. For promise
tasks, where not every continuation is allowed, the count is the size of the largest set of prefixes
that are told apart two by two. `tests/quality/test_counts.py` counts all of them by brute force.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from separatrix.core.errors import SizeError
from separatrix.core.numbers.binomials import Binomial, BinomialSum
from separatrix.core.numbers.counts import Count, Exact, Power, Product
from separatrix.tasks.dyck import stack_classes


@dataclass(frozen=True)
class PrefixCount:
    """One row of the table: `count` takes the sizes named in `sizes`."""

    title: str
    sizes: tuple[str, ...]
    count: Callable[[Mapping[str, int]], Count]

    def __call__(self, **sizes: int) -> Count:
        """The number of classes at these sizes. Raises SizeError for sizes that are missing,
        unknown, not positive, or admit no prefix.
        """
        if set(sizes) != set(self.sizes):
            raise SizeError(
                f"{self.title}: sizes are {', '.join(self.sizes)}; given are"
                f" {', '.join(sizes) or 'none'}"
            )
        for name, value in sizes.items():
            if type(value) is not int or value < 1:
                raise SizeError(
                    f"{self.title}: {name} is {value!r}; it must be an integer of at least 1"
                )
        return self.count(sizes)


def _choose(upper: int, lower: int, what: str) -> Binomial:
    if lower > upper:
        raise SizeError(f"there are no {lower:,} different {what} among {upper:,}; choose fewer")
    return Binomial(upper, lower)


_ROWS: tuple[tuple[str, str, Callable[[Mapping[str, int]], Count]], ...] = (
    ("eva", "n V", lambda s: Power(s["V"], s["n"])),
    ("equality", "n", lambda s: Power(2, s["n"])),
    ("disjointness", "n", lambda s: Power(2, s["n"])),
    (
        "two-sum",
        "n M",
        lambda s: _choose((s["M"] - 1) // 2, s["n"], "values of the half range"),
    ),
    ("match2-distinct", "n M", lambda s: _choose(s["M"], s["n"], "values")),
    ("match2", "n M", lambda s: BinomialSum(s["M"], min(s["n"], s["M"]))),
    (
        "recall-distinct",
        "n K V",
        lambda s: Product((_choose(s["K"], s["n"], "keys"), Power(s["V"], s["n"]))),
    ),
    ("recall", "n K V", lambda s: BinomialSum(s["K"], min(s["n"], s["K"]), s["V"])),
    ("recall-promise", "n V", lambda s: Power(s["V"], s["n"])),
    ("counting", "n", lambda s: Exact(s["n"] + 1)),
    # stars and bars: V counts of at least 0 that add up to n
    ("counting-queried", "n V", lambda s: Binomial(s["n"] + s["V"] - 1, s["V"] - 1)),
    ("dyck-valid", "k D n", lambda s: stack_classes(k=s["k"], D=s["D"], t=s["n"], dead=False)),
    ("dyck", "k D n", lambda s: stack_classes(k=s["k"], D=s["D"], t=s["n"], dead=True)),
)
COUNTS = {key: PrefixCount(key, tuple(sizes.split()), count) for key, sizes, count in _ROWS}
"""Key -> count, in the order of the table."""

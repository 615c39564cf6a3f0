"""From integers that are chosen to certified parameters of Theorems VI and VII: y_1 and the Y_l are
nearly the largest that their conditions allow.
"""

from __future__ import annotations

import numpy as np

from separatrix.errors import SizeError
from separatrix.theory.fails.many_prices import Choice, Sizes, prices
from separatrix.theory.fails.many_proof import Parameters, conditions
from separatrix.theory.fails.many_relaxed import first_values, spread_values, with_first
from separatrix.theory.fails.spelling import Spelling
from separatrix.theory.inequalities import certainly
from separatrix.theory.search.logs import Logs

_SHARES = (48, 44, 40, 34, 26)
"""Values that floats propose are lowered by their 2^-48 part, 2^-44 part, .., until certified."""


def certified(ahead: int, s: Sizes, choice: Choice[int], spelling: Spelling) -> Parameters | None:
    """Parameters of Theorem VI (`ahead` = 0, whose Delta_1 is then y_1) or VII (1), every condition
    certified; None where none are found.
    """
    for lowered, share in enumerate(_SHARES):
        try:
            # floats propose, and may overflow
            with np.errstate(all="ignore"):
                found = _proposed(ahead, s, choice, spelling, share, lowered)
        except SizeError:
            return None
        needed = conditions(ahead, s, found, spelling)
        if all(certainly(one) for one in (needed.first, *needed.spread)):
            return found if certainly(needed.last) else None
    return None


def _proposed(
    ahead: int, s: Sizes, choice: Choice[int], spelling: Spelling, share: int, lowered: int
) -> Parameters:
    """Parameters whose y_1 and Y_l are the largest in floats, lowered a little; SizeError where
    they are out of range.
    """

    def below(value: Logs, most: int) -> int:
        # the estimates are of y - 1
        whole = value.whole() + 1
        return max(1, min(most, whole - (whole >> share) - lowered))

    y_1 = below(
        first_values(ahead, s, _real(choice), spelling),
        min(choice.part, choice.x * choice.contents[0]) if ahead else choice.part,
    )
    if not ahead:
        choice = with_first(choice, y_1)
    real = _real(choice)
    asked = choice.G * choice.n[0] * y_1
    hits: list[int] = []
    for level, bits in enumerate(prices(ahead, s, choice, spelling)[:-1], 2):
        bins = choice.values(level - 1) * (choice.G if level == 2 else 1)
        value = spread_values(real, level, Logs.of(asked), Logs.of(bits))
        hits.append(below(value, bins))
        asked = hits[-1] * (choice.g if level == 2 else choice.n[level - 1])
    return Parameters(
        m=choice.m,
        n_1=choice.n[0],
        further=choice.n[1:],
        part=choice.part,
        G=choice.G,
        g=choice.g,
        t=choice.t,
        x=choice.x,
        contents=choice.contents,
        y_1=y_1,
        hit=tuple(hits),
        flags=choice.flags,
    )


def _real(choice: Choice[int]) -> Choice[Logs]:
    """The same choice for formulas in floats."""
    part, G, g, t, x, m = (
        Logs.of(value) for value in (choice.part, choice.G, choice.g, choice.t, choice.x, choice.m)
    )
    n = tuple(Logs.of(value) for value in choice.n)
    return Choice(m, n, part, G, g, t, x, tuple(map(Logs.of, choice.contents)), choice.flags)

"""What a theorist sees: a protocol, its adversary, and the two inputs side by side; the example
of docs/theory.md.
"""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import pytest
from adversaries.iv_adversary import adversary_iv
from adversaries.two_readings import TwoReadings, TwoReadingsSizes

from separatrix import protocols
from separatrix.core.errors import SizeError
from separatrix.protocols import (
    Collision,
    OneReading,
    OneReadingSizes,
    adversary_iii,
    check_collision,
    enough,
    one_reading_solver,
    random_tables,
    side_by_side,
)

THEORY = Path(__file__).parents[3] / "docs" / "theory.md"
ONE = OneReadingSizes(m=2, n_1=3, t=2, caches_0=3, reads=8, caches_1=5)
TWO = TwoReadingsSizes(m=2, n_1=3, t=2, reads_1=2, reads_2=4)


def test_the_example_of_theory_md_prints_what_stands_there() -> None:
    found = re.search(
        r"```python\n(.*?from separatrix\.protocols.*?)```\n\n```text\n(.*?)```",
        THEORY.read_text(encoding="utf-8"),
        re.DOTALL,
    )
    assert found is not None
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(found[1], {})
    assert printed.getvalue() == found[2]


def test_every_public_name_is_there_and_documented() -> None:
    assert protocols.__all__ == sorted(protocols.__all__)
    for name in protocols.__all__:
        assert getattr(protocols, name).__doc__


def test_adversaries_choose_the_first_parameters_that_hold() -> None:
    one = OneReading(ONE, random_tables(5))
    r = ONE.failing()
    assert r is not None
    assert adversary_iii(one) == adversary_iii(one, r=r)
    two = TwoReadings(TWO, random_tables(5))
    named = TWO.failing()
    assert named is not None
    r, q, g = named
    found = adversary_iv(two)
    assert found == adversary_iv(two, r=r, q=q, g=g)
    check_collision(two, found)


def test_where_the_theorem_says_nothing_the_adversary_says_so() -> None:
    full = enough(ONE, "rows")
    with pytest.raises(SizeError, match=r"Theorem III .*fewer values"):
        adversary_iii(one_reading_solver(full, "rows"))
    large = replace(TWO, reads_2=6**6)
    with pytest.raises(SizeError, match="Theorem IV holds with no r, q, g"):
        adversary_iv(TwoReadings(large, random_tables(0)))
    with pytest.raises(SizeError, match="2, None, None"):
        adversary_iv(TwoReadings(TWO, random_tables(0)), r=2)


def test_two_prompts_side_by_side() -> None:
    """By hand: m = 2, n_1 = 1, z_2 = (0, 1) or (1, 1), z_1 = (0, 0), z_0 = 1: i_1 = 0, so the
    answers are 0 and 1.
    """
    line = OneReading(OneReadingSizes(m=2, n_1=1, t=1), random_tables(0))
    collision = Collision((0, 1, 0, 0, 1, 0), (1, 1, 0, 0, 1, 0), (0, 0, 0), 1, (0, 1))
    *table, said = side_by_side(line, collision).splitlines()
    assert "answers 1, " in said
    assert table == [
        "z_2     z_1   z_0   w   right answer",
        "[0] 1   0 0   1     0   0",
        "[1] 1   0 0   1     0   1",
    ]

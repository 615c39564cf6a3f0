"""Mixers that pretend: each is caught by the law that is named for it, and the honest one beneath
them by none.
"""

from __future__ import annotations

import jaxtyping
import pytest
from support.cheats import (
    FURTHER,
    SEVEN,
    UNSEEN,
    GrowsLate,
    InAClosure,
    InAGlobalTable,
    SummaryOnSelf,
    Sums,
    made,
)

from separatrix.core.errors import SizeError
from separatrix.mixers.laws import LAWS, LawBroken, broken_laws

CAUGHT = SEVEN | FURTHER
_LONG = {"long", "cache"}
"""Laws of thousands of steps."""
_QUICK = {*SEVEN, InAGlobalTable}
"""Caught in `make test`, where their law is no long one; the others by `make test-slow`."""
_STUMBLE = {SummaryOnSelf, InAClosure, GrowsLate}
"""These find nothing where they look for what they kept, or too much, and raise an error: another
kind of being caught.
"""


@pytest.fixture(autouse=True)
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of steps, in which a user has no shapes checked either."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.mark.parametrize(
    ("cheat", "law"),
    [
        pytest.param(
            cheat,
            law,
            marks=[] if cheat in _QUICK and law not in _LONG else [pytest.mark.slow],
        )
        for cheat, law in CAUGHT.items()
    ],
)
def test_every_cheat_is_caught(cheat: type[Sums], law: str) -> None:
    mixer = made(cheat)
    errors = (AttributeError, KeyError, SizeError) if cheat in _STUMBLE else LawBroken
    with pytest.raises(errors):
        LAWS[law](mixer)


@pytest.mark.slow
@pytest.mark.parametrize("cheat", UNSEEN)
def test_what_no_law_sees(cheat: type[Sums]) -> None:
    """As docs/own-mixer.md says; a law that sees one of them moves it among the caught."""
    assert broken_laws(made(cheat)) == set()


@pytest.mark.slow
def test_the_honest_mixer_keeps_every_law() -> None:
    assert broken_laws(made(Sums)) == set()

"""Mixers that pretend: each is caught by the law that is named for it, and the honest one beneath
them by none.
"""

from __future__ import annotations

import re
from typing import Any

import jaxtyping
import pytest
from support.cheats import (
    FURTHER,
    SEVEN,
    UNSEEN,
    GrowsLate,
    InAGlobalTable,
    SharedWrongBackward,
    Sums,
    WrongStepInFloat32,
    made,
)
from support.fed_cheats import CAUGHT as FED
from support.fed_cheats import (
    MONOTONE,
    FlipsAtOneToken,
    LeaksAtOddLengths,
    LeaksAtOneToken,
    LeaksAtZeros,
    LeaksInHalfAtPlaces,
    OneWay,
)
from support.further_cheats import CAUGHT as LATER
from support.further_cheats import Chooses, FlipsFarOn, FlipsOneNumber
from support.quick_laws import broken_laws
from support.trained_cheats import CAUGHT as TRAINED
from support.trained_cheats import UNSEEN as UNTRAINED
from support.trained_cheats import HonestInCopies

from separatrix.core.errors import SizeError
from separatrix.mixers.laws import LAWS, LawBroken, asking, fed, monotone
from separatrix.mixers.laws import inputs as drawn_inputs
from separatrix.mixers.laws.fed import Fed, holds_on_prompts, holds_when_fed
from separatrix.mixers.plugins.check import check

CAUGHT = SEVEN | FURTHER | FED | LATER | TRAINED | dict.fromkeys(MONOTONE, "monotone")
_LONG = {"cache"}
"""Of thousands of steps."""
_QUICK = {*SEVEN, *FED, *MONOTONE, *LATER, *TRAINED, InAGlobalTable} - {FlipsFarOn, FlipsOneNumber}
"""Caught in `make test`, where their law is no long one; the others by `make test-slow`."""
_STUMBLE = {GrowsLate}
"""It finds too much where it looks for what it kept, and raises an error: another kind of being
caught.
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
    mixer = made(cheat, 16 if cheat in FED | LATER else 4)
    errors = (AttributeError, KeyError, SizeError) if cheat in _STUMBLE else LawBroken
    with pytest.raises(errors):
        LAWS[law](mixer)


def test_who_says_how_it_is_copied_is_refused() -> None:
    with pytest.raises(SizeError, match="HonestInCopies"):
        check(made(HonestInCopies))


@pytest.mark.slow
@pytest.mark.parametrize("cheat", [*UNSEEN, *UNTRAINED])
def test_what_no_law_sees(cheat: type[Sums]) -> None:
    """As docs/own-mixer.md says; a law that sees one of them moves it among the caught."""
    assert broken_laws(made(cheat)) == set()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("cheat", [*FED, *MONOTONE, *LATER, *TRAINED])
def test_other_seeds_catch_them_too(cheat: type[Sums], seed: int) -> None:
    with asking(seed=seed), pytest.raises(LawBroken):
        LAWS[CAUGHT[cheat]](made(cheat, 16))


@pytest.mark.slow
def test_one_token_that_no_law_draws_is_not_seen() -> None:
    """As docs/own-mixer.md says."""
    assert broken_laws(made(LeaksAtOneToken)) == set()
    assert broken_laws(made(FlipsAtOneToken), ["monotone"]) == set()
    assert broken_laws(made(OneWay), ["monotone"]) == set()


def prompts_of(mixer: Any, tokens: int) -> Fed:
    """Normal tokens, and in every prompt one that the laws draw by no chance."""
    x = drawn_inputs(mixer, 3, tokens)
    x[:, 4] = 0.3125
    said = [["rare" if place == 4 else str(place) for place in range(tokens)] for _ in x]
    return Fed(x, said)


@pytest.mark.parametrize(
    ("cheat", "tokens", "said"),
    [
        (LeaksAtOneToken, 9, "tokens 0 1 2 3 rare: outputs of forward and step differ"),
        # the length of the prompts
        (LeaksAtOddLengths, 251, "T=251"),
        (FlipsAtOneToken, 9, "token rare repeated: the map of number 0"),
        (WrongStepInFloat32, 9, "step in float32"),
        (SharedWrongBackward, 9, ""),
        (Sums, 9, ""),
        (OneWay, 9, ""),
        (OneWay, 1, ""),
    ],
)
def test_prompts_show_what_drawn_tokens_do_not(
    cheat: type[Sums], tokens: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixer = made(cheat)
    monkeypatch.setattr(monotone, "MOST", 1 << 12)
    monkeypatch.setattr(fed, "TOKENS_REPEATED", 40)
    whole = prompts_of(mixer, max(tokens, 5))
    prompts = Fed(whole.x[:, :tokens], whole.said)
    if not said:
        holds_on_prompts(mixer, prompts)
        return
    with pytest.raises(LawBroken, match=re.escape(said)):
        holds_on_prompts(mixer, prompts)


def told(cheat: type[Sums], seed: int) -> str:
    with asking(seed=seed), pytest.raises(LawBroken) as caught:
        holds_when_fed(made(cheat))
    return str(caught.value)


@pytest.mark.slow
def test_a_seed_repeats_what_was_drawn_and_the_fewest_tokens_are_shown() -> None:
    first = told(LeaksAtZeros, 5)
    assert told(LeaksAtZeros, 5) == first != told(LeaksAtZeros, 6)
    # one row, with one of the zeros that leak
    shown = first.partition("tokens ")[2].partition(":")[0].split()
    assert "batch 1," in first
    assert shown.count("0") == 1
    assert len(shown) <= 12
    assert "from 51 on" in told(LeaksInHalfAtPlaces, 5) or "from 115 on" in told(
        LeaksInHalfAtPlaces, 5
    )


@pytest.mark.slow
@pytest.mark.parametrize("honest", [Sums, Chooses])
def test_honest_mixers_keep_every_law(honest: type[Sums]) -> None:
    assert broken_laws(made(honest)) == set()

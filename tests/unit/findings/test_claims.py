"""Claims that hold leave no trace; all others fail the page."""

from __future__ import annotations

from fractions import Fraction

import pytest
from support.each import each
from support.toy_experiment import table

from separatrix.core.errors import CheckFailed, SpecError, UnknownNameError
from separatrix.findings.claims import Claims
from separatrix.findings.results import of_table

CELLS = {
    "full": (100, 110, 120),
    "linear": (None, None, None),
    "near": (115, 200, None),
}


def filled(text: str, stop_at: float = 0.995) -> str:
    p: dict[frozenset[str], tuple[Fraction, str]] = {
        frozenset(("full", "linear")): (Fraction(1, 20), "full")
    }
    claims = Claims(of_table(table(CELLS, stop_at=stop_at)), p, "toy.md")
    return claims.fill("\n" * 6 + text, {"table": "| a |"})


@each(
    "claim",
    [
        'median("full") > median("linear")',
        'steps("full") < steps("linear") and solved("full") == 3',
        'solved("full") == seeds("full") == 3',
        'median("near") == 0.998 and seeds("near") > solved("near")',
        'p("full", "linear") <= 0.05',
        'p("linear", "full") == 1',
    ],
)
def test_what_holds_leaves_no_trace(claim: str) -> None:
    assert filled(f"So it is. {{{{{claim}}}}}\nAnd on.") == "So it is.\nAnd on."


def test_numbers_are_printed() -> None:
    text = '{{solved("near")}} of {{seeds("near")}}; {{steps("full")}}, {{steps("linear")}};'
    assert filled(text) == "2 of 3; 110, more than all;"
    assert filled('{{median("full")}} {{table}}') == "99.8 % | a |"


@pytest.mark.parametrize(
    "claim",
    [
        'median("full") < median("linear")',
        'steps("full") < steps("near") and solved("near") == 3',
        'solved("near") == 3',
        # it is shown, of the other one
        'p("linear", "full") <= 0.05',
    ],
)
def test_a_claim_that_the_rows_do_not_bear_fails_the_page(claim: str) -> None:
    with pytest.raises(CheckFailed, match=r"toy\.md:8: .*do not bear"):
        filled(f"One line.\nIt is so. {{{{{claim}}}}}")


@each(
    "claim, told",
    [
        ('steps("ful") < 100', "unknown cell 'ful'"),
        ("solved(full) == 3", "says nothing"),
        ('p("linear", "near") < 1', "was not named before"),
        ('p("full", "near") < 1', "the contrast is open"),
        ('mean("full") > 0', "says nothing"),
        ('solved("full") == 3 or True', "says nothing"),
        ('solved("full") and steps("full") < 900', "a number is no claim"),
        ("True", "says nothing"),
        ("3 > 2", "whatever was measured"),
        ("8", "whatever was measured"),
        ('median("full") >', "cannot be read"),
        ('__import__("os").system("true") == 0', "says nothing"),
        ('[x for x in "ab"] == 1', "says nothing"),
        ('"full" in "linear"', "says nothing"),
        ('steps("full") - 1 < 100', "says nothing"),
    ],
)
def test_what_is_no_claim_is_told(claim: str, told: str) -> None:
    with pytest.raises((SpecError, UnknownNameError), match=told) as error:
        filled(f"It is so. {{{{{claim}}}}}")
    assert "toy.md:7" in str(error.value)


def test_a_missing_cell_fails_even_where_it_would_not_count() -> None:
    with pytest.raises(UnknownNameError, match="'ful'"):
        filled('{{solved("full") == 2 and solved("ful") == 3}}')


def test_grey_feeds_no_sentence() -> None:
    with pytest.raises(SpecError, match="'full' is grey"):
        filled('{{solved("full") == 3}}', stop_at=0.99)


def test_a_finding_without_a_claim_is_refused() -> None:
    with pytest.raises(SpecError, match=r"toy\.md:8: a finding without"):
        filled("Now:\n- Full is better.")
    assert filled('- Full is better. {{solved("full") == 3}}') == "- Full is better."

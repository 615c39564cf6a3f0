"""What a message about an unknown name suggests, and what is kept of an error's message."""

from __future__ import annotations

import pytest
from support.each import each

from separatrix.core.errors import UnknownNameError, first_line

KNOWN = ("full", "gdn", "eva", "mamba2", "window")


@each(
    "name, suggested",
    [
        *(("Full", "full"), ("GDN", "gdn"), ("Eva", "eva"), ("MAMBA2", "mamba2")),
        *(("windov", "window"), ("Windov", "window"), ("gnd", "gdn")),
    ],
)
def test_the_nearest_name_is_suggested_whatever_its_capitals(name: str, suggested: str) -> None:
    error = UnknownNameError.of("mechanism", name, KNOWN)
    assert str(error) == f"unknown mechanism '{name}'. Did you mean '{suggested}'?"


@pytest.mark.parametrize("name", ["", "zzzzzz", "0"])
def test_where_nothing_is_near_the_names_are_listed(name: str) -> None:
    said = str(UnknownNameError.of("mechanism", name, KNOWN, where=" here", listing="all of them"))
    listed = "eva, full, gdn, mamba2, window"
    assert said == f"unknown mechanism '{name}' here. Known: {listed}. `all of them` lists all."


def test_the_first_line_of_an_error() -> None:
    assert first_line(ValueError("one\ntwo")) == "one"
    assert first_line(ValueError("x" * 200)) == "x" * 120
    assert first_line(NotImplementedError()) == ""

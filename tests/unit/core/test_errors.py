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


@each(
    "name, suggested",
    [
        *(
            ("jamba", "'jamba-1.5-mini' or 'jamba-v0.1'"),
            ("JAM", "'jamba-1.5-mini' or 'jamba-v0.1'"),
        ),
        *(("jamba-1.5-mino", "'jamba-1.5-mini'"), ("mamba", "'mamba2' or 'mamba2-2.7b'")),
    ],
)
def test_all_names_that_begin_so_come_before_the_nearest(name: str, suggested: str) -> None:
    known = ("jamba-v0.1", "jamba-1.5-mini", "mamba2", "mamba2-2.7b", "yamba")
    assert f"Did you mean {suggested}?" in str(UnknownNameError.of("model", name, known))
    # of many the first four, and two letters begin too many
    said = str(UnknownNameError.of("model", "fact", [f"fact-{i}" for i in range(9)]))
    assert said.endswith("Did you mean 'fact-0' or 'fact-1' or 'fact-2' or 'fact-3'?")
    assert "Known: " in str(UnknownNameError.of("model", "ja", known))


@pytest.mark.parametrize("name", ["", "zzzzzz", "0"])
def test_where_nothing_is_near_the_names_are_listed(name: str) -> None:
    said = str(UnknownNameError.of("mechanism", name, KNOWN, where=" here", listing="all of them"))
    listed = "eva, full, gdn, mamba2, window"
    assert said == f"unknown mechanism '{name}' here. Known: {listed}. `all of them` lists all."


def test_the_first_line_of_an_error() -> None:
    assert first_line(ValueError("one\ntwo")) == "one"
    assert first_line(ValueError("x" * 200)) == "x" * 120
    assert first_line(NotImplementedError()) == ""

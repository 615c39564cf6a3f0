"""The table of mechanisms: its formulas give the declared sizes, it names every mechanism, and
docs/mechanisms.md is what the code writes.
"""

from __future__ import annotations

import re
from dataclasses import fields
from math import floor, log2
from typing import Any

import pytest
from support.console import ROOT
from support.each import each
from support.tools import loaded

from separatrix.cli.report.mechanisms import describe, growth, mathematics, rows
from separatrix.core.errors import UnknownNameError
from separatrix.mixers import MIXERS
from separatrix.stacks.mechanisms import MECHANISMS, Mechanism

SIZES: list[dict[str, Any]] = [
    {},
    {
        "heads": 6,
        "kv_heads": 2,
        "key_heads": 3,
        "groups": 3,
        "head_dim": 10,
        "value_dim": 7,
        "size": 9,
        "block": 5,
        "topk": 3,
        "latent": 11,
    }
    | {
        "rope_dim": 4,
        "width": 13,
        "state": 5,
        "hidden": 17,
        "conv": 4,
        "ratio": 3,
        "shifts": 2,
        "householders": 3,
        "normaliser": False,
    },
]


def _made(cls: type[Mechanism], sizes: dict[str, Any]) -> Mechanism:
    known = {f.name for f in fields(cls)} - ({"conv"} if cls.name != "shortconv" else set())
    known -= {"topk", "block"} if cls.name in ("compressed", "indexed", "nsa") else set()
    return cls(**{name: value for name, value in sizes.items() if name in known})


def _value(formula: str, mechanism: Mechanism, t: int) -> int:
    names: dict[str, Any] = mechanism.sizes() | {
        "t": t,
        "min": min,
        "max": max,
        "floor": floor,
        "log2": log2,
    }
    for size, value in (("kv_heads", "kv"), ("value_dim", "dv"), ("feature_dim", "feature_dim")):
        names[size] = getattr(mechanism, value, None)
    if names.get("width", 0) is None:
        names["width"] = mechanism.inner_width
    if names.get("hidden", 0) is None:
        names["hidden"] = names["width"]
    return eval(re.sub(r"(?<=[\w)]) (?=[\w(])", "*", formula), {"__builtins__": {}}, names)


@each("sizes", SIZES)
@each("name", MECHANISMS)
def test_the_formulas_give_the_declared_numbers(name: str, sizes: dict[str, Any]) -> None:
    mechanism = _made(MECHANISMS[name], sizes)
    facts = mechanism.facts
    assert facts is not None
    for t in (1, 2, 3, 4, 5, 63, 64, 65, 1000, 1 << 20):
        assert _value(facts.carried, mechanism, t) == sum(
            item.bits.numbers for item in mechanism.cache(t)
        ), f"t={t}"
    assert _value(facts.read, mechanism, 1) * mechanism.p == mechanism.read_bits()


def test_every_mechanism_is_listed_and_built_where_the_table_says_so() -> None:
    assert [row["name"] for row in rows()] == list(MECHANISMS)
    assert all(cls.facts is not None and cls.facts.elsewhere for cls in MECHANISMS.values())
    assert {row["name"] for row in rows() if row["mixer"] == "yes"} == set(MIXERS)
    assert all(mathematics(name) for name in MIXERS)


@pytest.mark.skipif(not (ROOT / "tools").exists(), reason="belongs to a checkout")
def test_the_page_is_up_to_date() -> None:
    whole = (ROOT / "docs" / "mechanisms.md").read_text(encoding="utf-8")
    assert whole == loaded("pages").mechanisms_page(), "write it again: tools/pages.py mechanisms"


@each(
    "name, grows",
    [
        ("gdn", "constant"),
        ("loglinear", "log t"),
        ("full", "t"),
        ("sparse", "t"),
        ("window", "constant"),
    ],
)
def test_growth(name: str, grows: str) -> None:
    assert growth(MECHANISMS[name]()) == grows


def test_one_mechanism_is_explained_by_its_recurrence_and_sizes() -> None:
    parts = dict(describe("gdn"))
    assert "S_{i,j-1} (I - b_ij k_ij k_ij^T) + b_ij v_ij k_ij^T" in parts["gdn: Gated DeltaNet"]
    assert "heads head_dim value_dim" in " ".join(parts.values())
    assert "2412.06464" in parts["source"]
    with pytest.raises(UnknownNameError, match="'gdn'"):
        describe("gnd")

"""Layouts scaled down: ratio and placement stay, what cannot be scaled is told."""

from __future__ import annotations

import pytest

from separatrix.core.errors import SizeError, SpecError
from separatrix.findings.scaling import left_out, scaled
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.resolve import resolve


def small(*texts: str) -> list[str]:
    return [one.spec for one in scaled({text: resolve(text) for text in texts}).values()]


def kinds(text: str) -> list[str]:
    return [layer[0].name for layer in Architecture.parse(text)]


@pytest.mark.parametrize("name", ["gdn*3 + full", "full + gdn*3", "gdn + full*2 + gdn"])
def test_ratio_and_placement_stay(name: str) -> None:
    first, second = small(f"({name})*12 @ heads=16", "(gdn*7 + full)*6 @ heads=16")
    assert kinds(first) == kinds(f"({name})*2")
    assert kinds(second) == kinds("gdn*7 + full")


def test_few_layers_stay_as_they_are() -> None:
    """Also where nothing repeats, and where depths differ."""
    first, second = small("gdn*2 + full + gdn*10", "full*3")
    assert kinds(first) == kinds("gdn*2 + full + gdn*10")
    assert len(kinds(second)) == 3


def test_sizes_are_those_of_the_rule() -> None:
    first, second = small("gdn(heads=32,head_dim=128,negative=true,conv=9)*2", "full(heads=64)*2")
    assert first == "gdn*2 @ conv=4, head_dim=4, heads=1, negative=true"
    assert second == "full*2 @ head_dim=16, heads=2"


def test_what_is_left_out_is_named() -> None:
    found = left_out(resolve("qwen3-next-80b"))
    assert {"kv_heads", "rope", "qk_norm", "gate", "positions"} <= set(found)
    assert not {"heads", "head_dim", "conv", "negative"} & set(found)
    assert left_out(Architecture.parse("gdn(conv=4) + full @ positions=none")) == []


def test_places_stay_none_where_none_were_taken() -> None:
    first, _ = small("gdn @ positions=none", "full")
    assert Architecture.parse(first).positions == "none"


@pytest.mark.parametrize(
    ("texts", "error", "told"),
    [
        (
            ("gdn*47 + full", "full*48"),
            SizeError,
            "full 48, full.48 1. fit together in 48",
        ),
        (("(gdn*4 + full)*12", "(gdn*11 + full)*5"), SizeError, "fit together in 60 only"),
        (("gdn*24", "full*48"), SizeError, "layers: gdn.24 24, full.48 48"),
        (("gdn @ heads=2", "gdn @ heads=4"), SpecError, "layout at this size"),
        (("moba", "full"), SpecError, "is scaled; those that"),
    ],
)
def test_what_cannot_be_scaled_is_told(
    texts: tuple[str, ...], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        small(*texts)

"""How stacks are laid out, in the words of experiments."""

from __future__ import annotations

from fractions import Fraction

import pytest

from separatrix.architecture.presets import preset
from separatrix.practice.shape import Shape, title


@pytest.mark.parametrize(
    ("spec", "full", "kinds", "beside", "place"),
    [
        ("full*3", 3, (), "none", "all"),
        ("gdn*2", 0, ("gdn",), "none", "none"),
        ("gdn + full*2", 2, ("gdn",), "before", "last"),
        ("full*2 + gdn", 2, ("gdn",), "after", "first"),
        ("full + gdn + full", 2, ("gdn",), "between", "spread"),
        ("gdn + full*2 + gdn", 2, ("gdn",), "before", "middle"),
        ("gdn + full + gdn", 1, ("gdn",), "before", "middle"),
        ("(gdn*3 + full)*2", 2, ("gdn",), "before", "spread"),
        ("full + gdn*6 + full*2", 3, ("gdn",), "between", "elsewhere"),
        # every other layer of the first six, and none of the forty behind them
        ("(full + gdn)*3 + gdn*40", 3, ("gdn",), "between", "elsewhere"),
        ("gdn*20 + full + gdn + full", 2, ("gdn",), "before", "elsewhere"),
        ("mlp + rglru*2 + window + mlp", 0, ("rglru", "window"), "none", "none"),
        ("gdn + gdn(negative=true) + full", 1, ("gdn", "gdn(negative=true)"), "before", "last"),
    ],
)
def test_layers_are_counted_and_placed(
    spec: str, full: int, kinds: tuple[str, ...], beside: str, place: str
) -> None:
    shape = Shape.of_text(spec)
    assert shape is not None
    assert (shape.full, shape.kinds, shape.beside, shape.place) == (full, kinds, beside, place)


@pytest.mark.parametrize("spec", ["mla", "gdn + sparse", "full|gdn", "mlp*2"])
def test_what_no_experiment_lays_out_has_no_shape(spec: str) -> None:
    assert Shape.of_text(spec) is None


def test_a_released_model() -> None:
    shape = Shape.of(preset("qwen3-next-80b"))
    assert shape is not None
    assert (shape.layers, shape.bounded, shape.ratio) == (48, 36, Fraction(3))
    assert (shape.kind, shape.beside, shape.place) == ("gdn", "before", "spread")


def test_kinds_have_the_titles_of_mechanisms() -> None:
    assert title("gdn") == "Gated DeltaNet"
    assert title("gdn(negative=true)") == "Gated DeltaNet (negative=true)"
    assert title("somebodys_own") == "somebodys_own"

"""The grid by hand, and what a quantised run is."""

from __future__ import annotations

import math

import pytest
import torch
from support.each import each

from separatrix.core.errors import SizeError, SpecError
from separatrix.models.caches import (
    Grid,
    border_distance,
    cache_codes,
    cache_digest,
    exact,
    margin,
    quantise_cache,
    run,
    selection_gap,
)
from separatrix.models.model import Cache, Model, ModelConfig, build
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Eva

EVERY = [
    "linear",
    "linear(normaliser=false)",
    "gdn",
    "window(size=3)",
    "loglinear",
    "sparse(block=2, topk=1)",
    "full",
    "gdn + full|linear",
]


def _model(spec: str, *, n: int = 6, seed: int = 0) -> Model:
    return exact(
        build(
            Architecture.parse(f"{spec} @ heads=1, head_dim=2"), Eva(n=n, V=n), width=4, seed=seed
        )
    )


def test_two_bits_have_the_levels_minus_two_to_one() -> None:
    x = torch.tensor([-9.0, -1.6, -1.4, -0.4, 0.4, 0.6, 5.0], dtype=torch.float64)
    assert Grid(2, 0).round(x).tolist() == [-2, -2, -1, 0, 0, 1, 1]
    assert Grid(2, 0).codes(x).tolist() == [-2, -2, -1, 0, 0, 1, 1]


def test_borders_lie_halfway_between_levels_and_nowhere_else() -> None:
    x = torch.tensor([-9.0, -1.6, 0.4, 0.5, 5.0], dtype=torch.float64)  # borders -1.5, -0.5, 0.5
    assert Grid(2, 0).border_distance(x).tolist() == pytest.approx(
        [7.5, 0.1, 0.1, 0.0, 4.5], abs=1e-12
    )


def test_one_bit_and_a_step_of_a_half() -> None:
    x = torch.tensor([-3.0, -0.3, -0.2, 7.0], dtype=torch.float64)  # levels -1/2 and 0, border -1/4
    assert Grid(1, -1).round(x).tolist() == [-0.5, -0.5, 0.0, 0.0]
    assert Grid(1, -1).border_distance(x).tolist() == pytest.approx(
        [2.75, 0.05, 0.05, 7.25], abs=1e-12
    )


def test_what_is_not_finite_stays_so_and_is_on_the_border() -> None:
    x = torch.tensor([math.nan, math.inf, -math.inf], dtype=torch.float64)
    assert not Grid(3, 0).round(x).isfinite().any()
    assert Grid(3, 0).border_distance(x).tolist() == [0, 0, 0]


@each("grid", [Grid(1, 0), Grid(3, -1), Grid(32, -64), Grid(12, 64)])
def test_text_and_back(grid: Grid) -> None:
    assert Grid.parse(str(grid)) == grid


@each(
    "text",
    [
        "p3",
        "p0:step=2^0",
        "p03:step=2^0",
        "p3:step=2^-0",
        "p3:step=0.5",
        "p3:step=2^1 ",
        "bf16",
        "",
        "p٣:step=2^0",
    ],
)
def test_bad_texts(text: str) -> None:
    with pytest.raises(SpecError, match="for example p3"):
        Grid.parse(text)


@pytest.mark.parametrize("text", ["p33:step=2^0", "p3:step=2^65", "p3:step=2^-65"])
def test_sizes_out_of_range(text: str) -> None:
    with pytest.raises(SizeError, match="1 to 32 bits"):
        Grid.parse(text)


@pytest.mark.parametrize("spec", EVERY)
def test_a_fine_grid_changes_nothing(spec: str) -> None:
    model = _model(spec)
    tokens = torch.randint(6, (3, 7), generator=torch.Generator().manual_seed(0))
    fine = run(model, tokens, Grid(32, -26))
    assert torch.allclose(fine.logits, model(tokens), atol=1e-4)  # steps of 1.5e-8, well inside


@pytest.mark.parametrize("spec", EVERY)
def test_every_carried_number_is_on_the_grid(spec: str) -> None:
    grid = Grid(3, -1)
    tokens = torch.randint(6, (4, 5), generator=torch.Generator().manual_seed(1))
    after = run(_model(spec), tokens, grid)
    numbers = torch.cat(
        [x.flatten() for states in after.cache for state in states for x in state.values()]
    )
    assert set(numbers.tolist()) <= {k / 2 for k in range(-4, 4)}
    assert cache_codes(after.cache, grid).shape == (4, numbers.numel() // 4)
    assert (
        float(border_distance(after.cache, grid).min()) >= 0.25 - 1e-12
    )  # levels stand half a step from the borders


def test_a_run_can_be_cut_anywhere() -> None:
    model = _model("gdn")
    grid = Grid(4, -2)
    tokens = torch.randint(6, (2, 7), generator=torch.Generator().manual_seed(2))
    whole = run(model, tokens, grid)
    first = run(model, tokens[:, :3], grid)
    rest = run(model, tokens[:, 3:], grid, after=first, seen=3)
    assert torch.equal(whole.logits, rest.logits)
    assert torch.equal(whole.border, rest.border)
    assert (rest.border <= first.border).all()


def test_only_the_named_tensors_are_rounded() -> None:
    cache: Cache = [[{"a": torch.full((1, 2), 0.3), "b": torch.full((1, 2), 0.3)}]]
    rounded = quantise_cache(cache, Grid(2, 0), names=frozenset({"b"}))[0][0]
    assert rounded["a"].tolist() == [[pytest.approx(0.3)] * 2]
    assert rounded["b"].tolist() == [[0, 0]]
    assert cache_codes([[rounded]], Grid(2, 0), names=frozenset({"b"})).shape == (1, 2)


def test_the_digest_depends_on_every_level_and_on_the_shape() -> None:
    grid = Grid(3, 0)

    def digest(*rows: list[float]) -> str:
        return cache_digest([[{"S": torch.tensor([rows], dtype=torch.float64)}]], grid)

    assert (
        len(
            {
                digest([0, 1], [2, 3]),
                digest([0, 1], [2, -3]),
                digest([0, 1, 2, 3]),
                digest([1, 0], [2, 3]),
            }
        )
        == 4
    )
    assert digest([0, 1]) == digest([0.2, 0.9])


def test_margin() -> None:
    assert margin(torch.tensor([1.0, 4.0, 2.5])) == 1.5
    assert margin(torch.tensor([1.0, math.nan])) == 0
    assert margin(torch.tensor([1.0])) == math.inf


def test_float32_is_refused() -> None:
    model = build(Architecture.parse("gdn @ heads=1, head_dim=2"), Eva(n=4, V=4))
    with pytest.raises(SizeError, match="float64"):
        run(model, torch.zeros(1, 2, dtype=torch.long), Grid(3, 0))


@pytest.mark.parametrize(("topk", "gap"), [(1, 3.0), (2, 0.5), (3, math.inf)])
def test_selection_gap_by_hand(topk: int, gap: float) -> None:
    config = ModelConfig(
        architecture=f"sparse(block=2, topk={topk}) @ heads=1, head_dim=2",
        vocabulary=3, length=7, answers=2, width=2, hidden=0, norm=False, bos=False,
    )  # fmt: skip
    model = Model(config).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.embed.weight[1] = torch.tensor([1.0, 2.0])
        model.get_parameter("blocks.0.mixers.0.q.weight").copy_(torch.eye(2))
    keys = torch.tensor(
        [[[[1.5, 0.0], [0.0, 2.5], [0.0, 1.0]]]], dtype=torch.float64
    )  # scores 1.5, 5, 2: gaps 3 and 0.5
    assert selection_gap(model, 1, [[{"compressed_keys": keys}]], 6) == gap


def test_selection_gap_needs_one_sparse_layer() -> None:
    with pytest.raises(SizeError, match="one layer of sparse"):
        selection_gap(_model("gdn"), 0, [[{}]], 0)

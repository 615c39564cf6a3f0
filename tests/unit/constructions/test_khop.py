"""k-hop induction in floor(log2 k) + 2 full layers: right on every prompt of small sizes, hops that
lead nowhere included, and on random and adversarial ones of larger sizes.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.construction_tools import every, wrong
from support.each import each
from support.task_cases.khop import hopped

from separatrix.constructions import Built, construct
from separatrix.constructions.khop import spaces
from separatrix.constructions.parts.built import built as recorded
from separatrix.core.errors import SizeError
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import KHop, parse_task
from separatrix.theory import THEOREMS


def random(n: int, V: int, k: int) -> KHop:
    return KHop(n=n, V=V, k=k, shift="random")


def mistakes(built: Built, tokens: np.ndarray) -> list[list[int]]:
    assert isinstance(built.task, KHop)
    return wrong(built, tokens, np.array([hopped(built.task, row) for row in tokens.tolist()]))


@pytest.mark.parametrize(
    ("n", "V", "k"),
    [
        (2, 2, 1),
        (6, 2, 1),
        (8, 2, 3),
        (6, 3, 2),
        *(pytest.param(7, 3, k, marks=pytest.mark.slow) for k in range(1, 8)),
        pytest.param(12, 2, 5, marks=pytest.mark.slow),
        pytest.param(6, 4, 3, marks=pytest.mark.slow),
    ],
)
def test_every_prompt_is_answered_right(n: int, V: int, k: int) -> None:
    built = construct(random(n, V, k))
    # k.bit_length() is floor(log2 k) + 1
    assert (built.record.name, built.record.sizes["layers"]) == ("khop", k.bit_length() + 1)
    assert not mistakes(built, every([V] * n))


@pytest.mark.parametrize(
    ("n", "V", "k"),
    [
        (63, 5, 6),
        (33, 9, 2),
        *(pytest.param(*size, marks=pytest.mark.slow) for size in [(90, 10, 7), (64, 3, 12)]),
        pytest.param(200, 2, 64, marks=pytest.mark.slow),
    ],
)
def test_random_and_adversarial_prompts(n: int, V: int, k: int) -> None:
    built = construct(random(n, V, k))
    rng = np.random.default_rng(n)
    drawn = random(n, V, k).sample(60, rng).tokens
    few = rng.integers(0, 2, size=(20, n))
    rare = np.ones((20, n), np.int64)
    rows = np.arange(20)
    # the letter of the end occurs once more, at every kind of distance
    rare[rows, rng.integers(0, n - 1, size=20)] = 0
    rare[:, -1] = 0
    order = np.stack([np.arange(n) % V, np.arange(n)[::-1] % V, np.full(n, V - 1)])
    tokens = np.concatenate([drawn, few, rare, order])
    assert not mistakes(built, tokens)
    assert len(set(built.task.answer(tokens).tolist())) > 2 or V == 2


@pytest.mark.slow
def test_the_sizes_of_the_grid() -> None:
    task = parse_task("khop:n=1024,V=32,k=16")
    assert isinstance(task, KHop)
    assert not mistakes(construct(task), task.sample(20, np.random.default_rng(1)).tokens)


def test_the_gaps_that_its_docstring_derives() -> None:
    """32 from place to place, exactly; 64 between a place, the start token and another place."""
    layers = construct(random(12, 3, 5)).record.proof["layers"]
    assert [entry["score_gap"] for entry in layers] == ["32", "64", "64", "64"]
    assert [entry["fetches"] for entry in layers] == [
        "the latest earlier token of the same letter",
        "what 1 hop leads to",
        "what 2 hops lead to",
        "what 4 hops lead to",
    ]
    assert layers[0]["score_error"] == "0"


@each(
    "stack, message",
    [
        ("full(heads=4)", "full layer"),
        ("full(heads=3)*4", "with 4 heads, each with keys of its own"),
        ("full(heads=4, kv_heads=1)*4", "keys of its own"),
        ("full(heads=4, head_dim=6)*4", "head_dim >= 7"),
        ("full(heads=4, positions=none)*4", "positions"),
    ],
)
def test_a_stack_that_cannot_hold_it_is_refused(stack: str, message: str) -> None:
    architecture = Architecture.parse(stack)
    task = random(12, 3, 5)
    with pytest.raises(SizeError, match=message):
        construct(task, architecture)
    assert THEOREMS["k-hop"].judge(architecture, task) is None


def test_the_theorem_is_silent_where_scores_are_not_exact() -> None:
    wide = Architecture.parse("full(heads=32, head_dim=64)*8")
    assert THEOREMS["k-hop"].judge(wide, random(65_536, 32, 5)) is not None
    assert THEOREMS["k-hop"].judge(wide, KHop(n=1 << 22, V=32, k=5)) is None


@pytest.mark.parametrize(
    ("name", "row", "space", "value"),
    [
        # a place that is taken for another, a letter for another, a start token that wins nothing
        ("position.weight", 5, "place", -1.0),
        ("position.weight", 5, "before", 1.0),
        ("position.weight", 0, "start", 0.0),
        ("embed.weight", 1, "letter", -1.0),
        # a start token that is found, and one that has a letter
        ("position.weight", 0, "one", 1.0),
        ("embed.weight", 3, "letter", 1.0),
        ("head.weight", 1, "letter_3", -2.0),
    ],
)
def test_edited_weights_are_refused(name: str, row: int, space: str, value: float) -> None:
    task = random(12, 3, 3)
    model = construct(task).model
    place = spaces(task)[space].start
    tensor = model.get_parameter(name)
    assert float(tensor[row, place]) != value
    tensor[row, place] = value
    with pytest.raises(SizeError, match="not proved"):
        recorded(task, model, name="khop")


@pytest.mark.parametrize(
    ("layer", "name"), [(0, "q.weight"), (1, "k.weight"), (2, "v.weight"), (2, "o.weight")]
)
def test_a_layer_without_one_of_its_maps_is_refused(layer: int, name: str) -> None:
    task = random(6, 3, 3)
    model = construct(task).model
    model.get_parameter(f"blocks.{layer}.mixers.0.{name}").zero_()
    with pytest.raises(SizeError, match="not proved"):
        recorded(task, model, name="khop")

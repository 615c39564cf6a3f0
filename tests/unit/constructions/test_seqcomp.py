"""SeqComp in L+1 full layers, or L full layers behind a recurrent one: right on every input of
small sizes, on random ones at n >= 4,096.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.construction_tools import every, wrong
from support.each import each

from separatrix.constructions import construct
from separatrix.constructions.seqcomp import carried
from separatrix.core.errors import SizeError
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import SeqComp

SMALL = [(1, 2, ()), (1, 4, ()), (2, 2, (1,)), (2, 2, (2,)), (2, 3, (1,)), (3, 2, (1, 1))]
CARRIERS = [
    "linear(feature=identity, normaliser=false)",
    "linear(feature=relu)",
    "linear(feature=identity)",
    "linear",
    "linear(heads=2, key_heads=1, head_dim=3)",
    "gdn(heads=2, key_heads=1, head_dim=4)",
]


def follow(L: int, m: int, branching: tuple[int, ...], prompt: list[int]) -> int:
    """The answer by the definition: z_L row by row, ..., z_1, z_0, w with w_1 counting fastest."""
    sizes = [m]
    for number in branching:
        sizes.append(sizes[-1] * number)
    tables = {}
    at = 0
    for level in range(L, 0, -1):
        tables[level] = prompt[at : at + sizes[level - 1]]
        at += sizes[level - 1]
    z_0, w = prompt[at:]
    i = tables[1][z_0]
    for level in range(2, L + 1):
        w, part = divmod(w, branching[level - 2])
        i = tables[level][part * sizes[level - 2] + i]
    return i


def every_prompt(L: int, m: int, branching: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    sizes = [m]
    for number in branching:
        sizes.append(sizes[-1] * number)
    ranges = [sizes[level - 1] for level in range(L, 0, -1) for _ in range(sizes[level - 1])]
    tokens = every([*ranges, m, int(np.prod(branching, dtype=int))])
    return tokens, np.array([follow(L, m, branching, row) for row in tokens.tolist()])


@pytest.mark.parametrize(("L", "m", "branching"), SMALL)
def test_every_input_is_answered_right(L: int, m: int, branching: tuple[int, ...]) -> None:
    built = construct(SeqComp(L=L, m=m, branching=branching))
    assert built.record.name == "seqcomp"
    assert built.record.sizes["layers"] == L + 1
    assert not wrong(built, *every_prompt(L, m, branching))


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize(("L", "m", "branching"), [(1, 3, ()), (2, 2, (1,)), (3, 2, (1, 1))])
def test_a_recurrent_layer_saves_a_full_one(
    carrier: str, L: int, m: int, branching: tuple[int, ...]
) -> None:
    built = construct(
        SeqComp(L=L, m=m, branching=branching), Architecture.parse(f"{carrier} + full*{L}")
    )
    assert built.record.name == "carried"
    assert not wrong(built, *every_prompt(L, m, branching))


def test_the_default_stack_of_the_carried_form() -> None:
    built = carried.build(SeqComp(L=2, m=2, branching=(2,)))
    assert [layer[0].name for layer in built.model.architecture] == ["linear", "full", "full"]
    assert not wrong(built, *every_prompt(2, 2, (2,)))


@pytest.mark.parametrize(
    ("L", "m", "branching"),
    [(2, 5, (3,)), (3, 3, (2, 3)), (3, 2, (5, 1)), (4, 2, (1, 3, 2)), (8, 2, (1,) * 7)],
)
def test_random_inputs_of_odd_shapes(L: int, m: int, branching: tuple[int, ...]) -> None:
    task = SeqComp(L=L, m=m, branching=branching)
    tokens = task.sample(300, np.random.default_rng(3)).tokens
    assert not wrong(
        construct(task), tokens, np.array([follow(L, m, branching, row) for row in tokens.tolist()])
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "stack",
    [
        pytest.param("linear(heads=1) + full*2 @ head_dim=13, heads=1", marks=pytest.mark.slow),
        "gdn(heads=1) + full*2 @ head_dim=13, heads=1",
    ],
)
def test_the_carried_form_on_random_inputs_beyond_4096(stack: str) -> None:
    size = SeqComp(L=2, m=1366, branching=(2,))
    assert size.length >= 4096
    built = construct(size, Architecture.parse(stack))
    assert built.record.name == "carried"
    tokens = size.sample(30, np.random.default_rng(4)).tokens
    assert not wrong(
        built, tokens, np.array([follow(2, 1366, (2,), row) for row in tokens.tolist()]), batch=2
    )


def test_adversarial_functions() -> None:
    """Constants, identities, reversals, and tables whose neighbours in address hold the
    complement.
    """
    task = SeqComp(L=2, m=64, branching=(4,))
    rng = np.random.default_rng(5)
    tokens = []
    for w in range(4):
        for z_0 in (0, 63, int(rng.integers(64))):
            for f in (np.arange(64), np.arange(64)[::-1], np.full(64, 63), np.zeros(64, int)):
                i = f[z_0]
                near = np.full(256, 255)
                near[w * 64 + i] = 0
                for g in (np.arange(256), np.arange(256)[::-1], near, 255 - near):
                    tokens.append(np.concatenate([g, f, [z_0, w]]))
    array = np.array(tokens)
    assert not wrong(
        construct(task), array, np.array([follow(2, 64, (4,), row) for row in array.tolist()])
    )


def test_the_proof_has_an_entry_per_fetch() -> None:
    layers = construct(SeqComp(L=3, m=4, branching=(2, 3))).record.proof["layers"]
    assert [entry["fetches"] for entry in layers] == ["z_0", "i_1", "i_2", "i_3"]
    assert [entry["queries"] for entry in layers] == [1, 4, 8, 24]  # entries of z_1, z_2, z_3
    assert all(entry["score_gap"] == "32" for entry in layers)


@each(
    "architecture, message",
    [
        ("full*2", "full layer"),
        ("full*2", "a bounded one"),
        ("full*2 + gdn", "a bounded one"),
        ("lightning(rotated=true) + full*2", "a bounded one"),
        ("gdn(value_dim=1) + full*2", "hands on 3 bits"),
        ("gdn(state_format=bf16) + full*2", "numbers of at least 32"),
        ("linear + full", "full layer"),
        ("full(head_dim=3)*3", "head_dim >= 5"),
    ],
)
def test_a_stack_that_cannot_hold_it_is_refused(architecture: str, message: str) -> None:
    with pytest.raises(SizeError, match=message):
        construct(SeqComp(L=2, m=8, branching=(2,)), Architecture.parse(architecture))

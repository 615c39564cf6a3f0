"""Eva in one block-sparse layer: right on every input of small sizes, wherever x stands among
the blocks; refused when its choice is not proved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from support.construction_tools import every, wrong
from support.each import each
from torch import Tensor

from separatrix.checks.verify.construction import verify_construction
from separatrix.constructions import construct
from separatrix.constructions.retrieval import sparse_retrieval
from separatrix.core.errors import CheckFailed, SizeError
from separatrix.core.evidence.canonical import sha256
from separatrix.mixers.sparse import SparseMixer
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Eva

STACKS = [
    "sparse(block=1, topk=1)",
    "sparse(block=2, topk=1)",
    "sparse(block=2, topk=3)",
    "sparse(block=4, topk=1)",
    "sparse(block=64)",
    "gdn + sparse(block=2, topk=1, heads=4, kv_heads=2) + linear",
    "window|sparse(block=2, topk=1) + full(head_dim=1)",
]


SIZES = [(1, 2), (3, 3), (4, 4), (5, 3), (6, 2), (8, 2)]
FAST = {*((stack, (1, 2)) for stack in STACKS), *((stack, (5, 3)) for stack in STACKS[:4])}
"""The smallest, and one with an open block."""


@pytest.mark.parametrize(
    ("n", "V", "stack"),
    [
        pytest.param(
            *size,
            stack,
            marks=[] if (stack, size) in FAST else [pytest.mark.slow],
            id=f"{size[0]}-{size[1]}-{stack}",
        )
        for number, size in enumerate(SIZES)
        for place, stack in enumerate(STACKS)
        if (stack, size) in FAST or (number + place) % 3 == 0
    ],
)
def test_every_input_is_answered_right_and_proved(
    stack: str, n: int, V: int, tmp_path: Path
) -> None:
    tokens = every([V] * n + [n])
    built = sparse_retrieval.build(Eva(n=n, V=V), Architecture.parse(stack))
    assert not wrong(built, tokens, tokens[np.arange(len(tokens)), tokens[:, -1]])
    built.save_weights(tmp_path)
    assert verify_construction(built.record, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("n", [4096, 5000])
def test_random_and_adversarial_inputs_at_thousands(n: int) -> None:
    """The other entries hold the complement; x in the first, a middle, the last complete and the
    open block.
    """
    built = sparse_retrieval.build(
        Eva(n=n, V=4096), Architecture.parse("sparse(block=64, topk=1) @ heads=1")
    )
    rng = np.random.default_rng(9)
    tokens = rng.integers(4096, size=(200, n + 1))
    tokens[:, -1] = rng.integers(n, size=200)
    for row, x in enumerate([0, 63, 64, n // 64 * 64 - 1, min(n // 64 * 64, n - 1), n - 1, 2048]):
        tokens[row] = 4095 - 77
        tokens[row, x], tokens[row, -1] = 77, x
    assert not wrong(built, tokens, tokens[np.arange(len(tokens)), tokens[:, -1]], batch=5)


def test_the_pooled_keys_are_those_derived_by_hand() -> None:
    built = sparse_retrieval.build(
        Eva(n=4, V=2), Architecture.parse("sparse(block=2, topk=1) @ heads=1, head_dim=3")
    )
    (mixer,) = [m for m in built.model.modules() if isinstance(m, SparseMixer)]
    embedded = built.model._embed(torch.tensor([[0, 1, 0, 1, 2]]))
    _, keys, values = mixer._qkv(mixer._project(embedded))
    pooled = mixer._pooled({"keys": keys, "values": values})
    # (low bit 0 on average, high bit of the block, tag) times s = 4
    assert pooled["compressed_keys"][0, 0].tolist() == [[0, -4, 4], [0, 4, 4]]
    (layer,) = built.record.proof["layers"]
    assert (layer["block_gap"], layer["score_gap"]) == ("32", "32")


def test_a_full_layer_is_used_where_there_is_one() -> None:
    assert construct(Eva(n=4, V=4), Architecture.parse("sparse + full")).record.name == "retrieval"
    assert (
        construct(Eva(n=4, V=4), Architecture.parse("sparse + gdn")).record.name
        == "sparse-retrieval"
    )
    assert (
        sparse_retrieval.build(Eva(n=100, V=4)).record.architecture
        == Architecture.parse("sparse(heads=1, head_dim=8, block=16, topk=1)").spec
    )


@each("stack", ["sparse(block=12)", "sparse(head_dim=3)", "sparse @ fp8", "gdn*3"])
def test_a_stack_that_cannot_hold_it_is_refused(stack: str) -> None:
    with pytest.raises(
        SizeError,
        match=r"sparse layer .*head_dim >= 5",
    ):
        construct(Eva(n=16, V=4), Architecture.parse(stack))


def _shift(tensors: dict[str, Tensor], name: str, place: tuple[int, ...], value: float) -> None:
    tensors[f"blocks.0.mixers.0.{name}"][place] = value


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda t: _shift(t, "pool_v", (0,), 2.0**126), "overflow"),
        (lambda t: _shift(t, "mix", (0,), 0.0), "proof recorded"),
        (lambda t: _shift(t, "pool_k", (0,), 0.0), "proof recorded|choice of blocks"),
        (lambda t: _shift(t, "pool_k", (1,), -0.25), "choice of blocks|proof recorded"),
        (lambda t: t["blocks.0.mixers.0.pool_k"].mul_(-1), "of blocks: block . scores"),
        (lambda t: t["blocks.0.mixers.0.pool_k"].mul_(2.0**-130), "pool_k.* normal number"),
        (lambda t: t["blocks.0.mixers.0.pool_k"].mul_(2**-20), "proof recorded"),
        (lambda t: t["blocks.0.mixers.0.pool_k"].fill_(4.0), "proof recorded"),
        (lambda t: t["position.weight"][0].copy_(t["position.weight"][1]), "scores no less"),
    ],
)
def test_other_poolings_and_gates_are_refused(
    edit: Callable[[dict[str, Tensor]], object], message: str, tmp_path: Path
) -> None:
    built = sparse_retrieval.build(
        Eva(n=16, V=4), Architecture.parse("sparse(block=4, topk=1) @ heads=1, head_dim=5")
    )
    tensors = {name: tensor.clone() for name, tensor in built.model.state_dict().items()}
    edit(tensors)
    data = safetensors.torch.save(tensors)
    name = f"sparse-retrieval-{sha256(data)[:12]}.safetensors"
    (tmp_path / name).write_bytes(data)
    with pytest.raises(CheckFailed, match=message):
        verify_construction(
            replace(built.record, weights=name, weights_sha256=sha256(data)), tmp_path
        )


def test_sparse_weights_are_not_taken_for_full_ones(tmp_path: Path) -> None:
    built = sparse_retrieval.build(
        Eva(n=8, V=4), Architecture.parse("sparse(block=2, topk=1) @ heads=1")
    )
    built.save_weights(tmp_path)
    name = built.record.weights.replace("sparse-retrieval", "retrieval")
    (tmp_path / built.record.weights).rename(tmp_path / name)
    with pytest.raises(CheckFailed, match="full attention"):
        verify_construction(replace(built.record, name="retrieval", weights=name), tmp_path)

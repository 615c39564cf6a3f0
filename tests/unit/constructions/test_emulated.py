"""Arithmetic of p bits: rounding against PyTorch's own formats, sums by hand, and whole stacks
against float32.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from separatrix.constructions import construct
from separatrix.constructions.emulated import ORDERS, Emulated, Order, wrong_in
from separatrix.core.errors import SizeError
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import BF16, FP64, arithmetic
from separatrix.proofs.derivations.parts.derivation import due
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task

TASK = parse_task("eva:n=6,V=4")


def emulated(name: str, order: Order = "sequential") -> Emulated:
    return Emulated(construct(TASK).model, arithmetic(name), order)


def test_numbers_round_as_bfloat16_and_float32_do() -> None:
    """p16 has the digits and exponents of bfloat16, p32 those of float32."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=5000) * 2.0 ** rng.integers(-100, 100, size=5000)
    # beyond what float32 and bfloat16 hold, and below their normal numbers
    numbers = np.concatenate([numbers, [0.0, -0.0, 1e39, -1e39, 1e-39, np.inf, -np.inf]])
    for name, format in (("p16", torch.bfloat16), ("p32", torch.float32)):
        rounded = torch.from_numpy(numbers).to(format).double().numpy()
        rounded = np.where(np.abs(rounded) < 2.0**-126, 0.0, rounded)
        assert np.array_equal(emulated(name)._rounded(numbers), rounded)


def test_sums_of_ones_by_hand() -> None:
    """Four digits: 16 + 1 is 16 again (a tie, which may go to 18 once), in a row; in pairs 40 is
    exact: 1, 2, 4, 8, 16 + 16 + 8. Of 1,000 ones pairs lose only what ties may.
    """
    ones = np.ones((1, 40))
    assert emulated("p12")._summed(ones)[0] in (16.0, 18.0)
    assert emulated("p12", "pairwise")._summed(ones)[0] == 40.0
    # a list, over dimensions: the same orders
    assert emulated("p12", "pairwise")._added([np.ones(1)] * 40)[0] == 40.0
    assert 900 <= emulated("p12", "pairwise")._summed(np.ones((1, 1000)))[0] <= 1100


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("spec", "bos"),
    [("full @ heads=1, head_dim=4", False), ("full*2 @ heads=4, head_dim=3", True)],
)
def test_stacks_agree_with_float32(order: Order, spec: str, bos: bool) -> None:
    """p32 is float32: logits of any weights differ by a few roundings."""
    made = construct(TASK).model.config
    config = type(made)(
        **{**made.to_json(), "architecture": Architecture.parse(spec).spec, "bos": bos}
    )
    model = Model(config).reset(torch.Generator().manual_seed(4))
    tokens = TASK.sample(20, np.random.default_rng(1)).tokens
    with torch.no_grad():
        every = model.every(torch.from_numpy(tokens)).double().numpy()
    whole = every[:, -1:]
    found = Emulated(model, arithmetic("p32"), order).logits(tokens)
    places = np.tile([0, 3], (20, 1))
    some = Emulated(model, arithmetic("p32"), order).logits(tokens, places)
    assert np.abs(some - every[:, [0, 3]]).max() < 1e-4 * np.abs(whole).max()
    assert np.abs(found - whole).max() < 1e-4 * np.abs(whole).max()
    assert (np.abs(Emulated(model, arithmetic("p14"), order).logits(tokens) - whole) > 1e-4).any()


def test_what_is_not_emulated_is_refused() -> None:
    model = construct(TASK).model
    for narrow in (FP64, BF16, arithmetic("p40")):
        with pytest.raises(SizeError, match=narrow.name):
            Emulated(model, narrow, "pairwise")
    other = construct(TASK, Architecture.parse("gdn + full @ head_dim=8")).model
    with pytest.raises(SizeError, match="gdn"):
        Emulated(other, arithmetic("p20"), "pairwise").logits(
            TASK.sample(1, np.random.default_rng(0)).tokens
        )


def test_a_coarse_format_is_caught() -> None:
    """M = 200 values on a circle are closer than bfloat16 tells apart: a neighbour is
    2 pi^2 / M^2 = 2^-11 further. Float32 and p28 carry them.
    """
    task = parse_task("twosum:n=3,M=200")
    model = construct(task, kind="match2").model
    x = np.arange(200)
    tokens = np.stack([-x - 1, -x - 1, -x - 1, x], 1) % 200
    for name in ("bf16", "p16"):
        wrong = wrong_in(model, arithmetic(name), task, tokens)
        assert wrong is not None
        assert (wrong.right, wrong.answer) in ((0, 1), (1, 0))
        assert task.answer(np.array([wrong.tokens]))[0] == wrong.right
    for name in ("fp32", "p28"):
        assert wrong_in(model, arithmetic(name), task, tokens) is None


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("seqcomp:L=2,m=2,n_1=2,thought=pairs", "bf16"),
        ("seqcomp:L=2,m=2,n_1=2,thought=pairs", "p16"),
        ("mqar:vocab_size=8,input_seq_len=12,num_kv_pairs=2", "fp32"),
    ],
)
def test_one_wrong_token_of_many_is_caught(spec: str, name: str) -> None:
    """All that is written, and every question asked, is compared: a head that never says the last
    token of some prompt fails there, and says another.
    """
    task = parse_task(spec)
    prompts = task.asked.sample(20, np.random.default_rng(0)).tokens
    model = construct(task).model
    assert wrong_in(model, arithmetic(name), task, prompts) is None
    last = int(due(task, prompts)[3, -1])
    with torch.no_grad():
        assert model.head.bias is not None
        model.head.bias[last] = -1000.0
    wrong = wrong_in(model, arithmetic(name), task, prompts)
    assert wrong is not None
    assert wrong.right == last != wrong.answer
    assert wrong.right in due(task, np.array([wrong.tokens]))
    assert re.search(r", answer [123]$", wrong.how)

"""Recall with the question before the facts: which recurrences can wait for a key, and that what
they keep is kept bit for bit.
"""

from __future__ import annotations

import pytest
import torch
from support.each import each

from separatrix.cards import card
from separatrix.core.evidence.records import Verdict
from separatrix.mixers import Mixer, mixer
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.resolve import preset
from separatrix.stacks.mechanisms import MECHANISMS
from separatrix.tasks import Recall
from separatrix.theory import judge, recheck

VALUE, WRITES, ONE = range(3)
"""What a token holds: a number, whether it overwrites, and 1."""


def _delta(layer: Mixer) -> None:
    """One key for all; b = sigmoid(128) where a token writes, else sigmoid(-128); no decay."""
    for name in ("q.weight", "k.weight"):
        layer.get_parameter(name)[0, ONE] = 1.0
    b = layer.get_parameter("b.weight")
    b[:, ONE] = -128.0
    b[0, WRITES] = 256.0
    for name in ("a.bias", "a.up.bias"):
        if name in dict(layer.named_parameters()):
            layer.get_parameter(name).fill_(-128.0)


def _mamba2(layer: Mixer) -> None:
    """A step of 128 where a token writes, else softplus(-128) = 0."""
    for name in ("q.weight", "k.weight"):
        layer.get_parameter(name)[0, ONE] = 1.0
    layer.get_parameter("dt.weight")[0, WRITES] = 256.0
    layer.get_parameter("dt.bias").fill_(-128.0)


def _mamba(layer: Mixer) -> None:
    layer.get_parameter("v.weight")[1, WRITES] = 1.0
    layer.get_parameter("v.weight")[2, ONE] = 1.0
    layer.get_parameter("b.weight")[0, 2] = 1.0
    layer.get_parameter("c.weight")[0, 2] = 1.0
    layer.get_parameter("dt.down.weight")[0, 1] = 1.0
    layer.get_parameter("dt.up.weight")[0, 0] = 256.0
    layer.get_parameter("dt.up.bias").fill_(-128.0)


def _rglru(layer: Mixer) -> None:
    """r and g are 1 where a token writes, else 0."""
    layer.get_parameter("v.weight")[1, WRITES] = 1.0
    layer.get_parameter("rate").fill_(64.0)
    for name in ("r", "g"):
        layer.get_parameter(f"{name}.weight")[0, 1] = 256.0
        layer.get_parameter(f"{name}.bias").fill_(-128.0)


@pytest.mark.parametrize(
    ("spec", "write"),
    [
        ("deltanet(heads=1, head_dim=2)", _delta),
        pytest.param("gdn(heads=1, head_dim=2)", _delta, marks=pytest.mark.slow),
        pytest.param("kda(heads=1, head_dim=2)", _delta, marks=pytest.mark.slow),
        pytest.param(
            "deltaproduct(heads=1, head_dim=2, negative=false)", _delta, marks=pytest.mark.slow
        ),
        ("mamba2(heads=1, head_dim=2, state=1)", _mamba2),
        pytest.param("mamba(width=4, state=1)", _mamba, marks=pytest.mark.slow),
        ("rglru(width=2)", _rglru),
    ],
)
def test_what_is_kept_stays_bit_for_bit_until_it_is_overwritten(spec: str, write: object) -> None:
    mechanism = Architecture.parse(spec).only
    assert mechanism is not None
    assert mechanism.latched
    layer = mixer(mechanism, width=3).requires_grad_(False)
    for parameter in layer.parameters():
        parameter.zero_()
    layer.get_parameter("v.weight")[0, VALUE] = 1.0
    layer.get_parameter("o.weight")[0, 0] = 1.0
    assert callable(write)
    write(layer)
    x = torch.randn(1, 400, 3, generator=torch.Generator().manual_seed(1))
    x[:, :, WRITES] = 0.0
    x[:, [0, 240], WRITES] = 1.0
    x[:, :, ONE] = 1.0
    states = layer.init_state(1)
    found: list[float] = []
    for t in range(400):
        y, states = layer.step(x[:, t], states, t)
        found.append(float(y[0, 0]))
    assert len(set(found[:240])) == len(set(found[240:])) == 1
    assert found[0] / float(x[0, 0, VALUE]) == pytest.approx(found[240] / float(x[0, 240, VALUE]))
    assert found[0] != 0.0


def test_every_mechanism_that_keeps_is_tried_above() -> None:
    every = {name for name, kind in MECHANISMS.items() if _latched(kind())}
    assert every == {"deltanet", "gdn", "kda", "deltaproduct", "mamba2", "mamba", "rglru"}


def _latched(mechanism: object) -> int:
    return getattr(mechanism, "latched", 0)


def asked(stack: Architecture, n: int = 1000, K: int = 128_256, V: int = 128_256) -> Verdict:
    verdict = judge(stack, Recall(n=n, K=K, V=V, question="first"))[0]
    recheck(verdict)
    return verdict


def test_about_35_bits_whatever_n() -> None:
    """2^17 = 131,072: 17 bits of a key, 17 of a value."""
    stack = preset("mamba2-2.7b")
    for n in (2, 1000, 10**6):
        verdict = asked(stack, n, K=128_256 if n < 10**6 else 2 * 10**6)
        assert (verdict.status, verdict.theorem) == ("SOLVABLE", "question-first")
        assert verdict.numbers["answer_bits"] == 17
    assert asked(stack).numbers["key_bits"] == 17


@each(
    "spec, solvable",
    [
        # a key, the token before, and room for a value: each a layer
        ("gdn(conv=4)*3", True),
        ("gdn(conv=4)*2", False),
        ("deltanet + shortconv + deltanet", True),
        # every key overwrites whether it matched
        ("deltanet*3", True),
        ("deltanet*2", False),
        # without embeddings one layer more tells the first token
        ("gdn(conv=4, positions=none)*3", False),
        ("gdn(conv=4, positions=none)*4", True),
        # 17 bits of a key in 2 heads of 8
        ("gdn(conv=4, heads=2, head_dim=8)*3", False),
        ("gdn(conv=4, heads=3, head_dim=8)*3", True),
        # fixed decays, and none at all
        ("retnet + shortconv + retnet", False),
        ("linear + shortconv + linear", False),
        ("gdn(conv=4, format=int8)*3", False),
    ],
)
def test_what_it_takes(spec: str, solvable: bool) -> None:
    assert (asked(Architecture.parse(spec)).status == "SOLVABLE") == solvable


def test_what_bounds_a_cache_says_nothing_where_the_question_is_known() -> None:
    """A state of a few bits fails recall; asked before, nothing is proved against it."""
    stack = Architecture.parse("gdn*2 @ heads=1, head_dim=2, bf16")
    last = judge(stack, Recall(n=1000, K=2000, V=64))[0]
    assert last.status == "FAILS"
    assert judge(stack, Recall(n=1000, K=2000, V=64, question="first"))[0].status == "OPEN"


def test_windows_that_forget_say_nothing_where_the_question_is_known() -> None:
    """2^19 pairs are far more than Theorem R's 90,292 with the question behind them."""
    stack = preset("recurrentgemma-2b")
    last = Recall(n=2**19, K=2**19, V=256_000)
    assert judge(stack, last)[0].theorem == "R"
    assert judge(stack, last)[0].status == "FAILS"
    first = Recall(n=2**19, K=2**19, V=256_000, question="first")
    assert first.table() is None
    assert {verdict.status for verdict in judge(stack, first)} == {"SOLVABLE"}


def test_a_row_of_its_own_says_what_a_known_question_takes() -> None:
    # 2^18 >= 256,000: 18 bits each
    for name, bits in (("recurrentgemma-2b", 18), ("gdn*3 @ head_dim=64", 16), ("llama-3.1-8b", 0)):
        stack = Architecture.parse(name) if "*" in name else preset(name)
        found = [line for line in card(stack, 131_072) if line.key == "question-first"]
        # of a key and of an answer, and whether there is one
        assert [f"{2 * bits + 1} bits" in line.text for line in found] == [True][:bits]

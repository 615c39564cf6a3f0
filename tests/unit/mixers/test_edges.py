"""Values by hand and edge cases of the mixers: division by 0, ties, borders of blocks and
buckets, keys of length 0.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import jaxtyping
import pytest
import torch
from torch import Tensor

from separatrix.errors import SizeError
from separatrix.laws import close, drawn, inputs, stream
from separatrix.mechanisms import mechanism
from separatrix.mixers import Mixer, mixer
from separatrix.mixers.ops.fenwick import levels


def _with(m: Mixer, **weights: list[list[float]] | list[float]) -> Mixer:
    """The mixer with some parameters (dots written as __) set."""
    m = m.double()
    parameters = dict(m.named_parameters())
    with torch.no_grad():
        for name, value in weights.items():
            parameters[name.replace("__", ".")].copy_(torch.tensor(value, dtype=torch.float64))
    return m


def _one_head(name: str, **sizes: Any) -> Mixer:
    """Width 2, one head of dimension 1: q and k read the first coordinate, v the second, which
    is written back.
    """
    m = mixer(mechanism(name, heads=1, head_dim=1, **sizes), width=2)
    return _with(
        drawn(m), q__weight=[[1, 0]], k__weight=[[1, 0]], v__weight=[[0, 1]], o__weight=[[0], [1]]
    )


def _tokens(*pairs: tuple[float, float]) -> Tensor:
    return torch.tensor([pairs], dtype=torch.float64)


@torch.no_grad()
def _both(m: Mixer, x: Tensor) -> list[float]:
    """The second coordinate of every output, the same by both forms."""
    y, (steps, _) = m(x), stream(m, x)
    close(steps, y, "forms")
    return y[0, :, 1].tolist()


def test_linear_defines_zero_over_zero_as_zero() -> None:
    # relu features: the first two keys are negative, so Z = 0 there; then phi(q) phi(k) v / phi(q)
    # phi(k) = v; last a query of 0
    m = _one_head("linear", feature="relu")
    assert _both(m, _tokens((-1, 5), (-2, 7), (3, 11), (-1, 13))) == [0, 0, 11, 0]


def test_linear_identity_may_divide_by_a_negative_sum_and_by_a_sum_of_zero() -> None:
    # k = q = 2, -2, -1: <q, Z> = 4, 0, 1; S q = 2*1*2 = 4; 0 at the second by definition; (2*1 -
    # 2*3 - 1*5)(-1) = 9 over (2-2-1)(-1) = 1
    m = _one_head("linear", feature="identity")
    assert _both(m, _tokens((2, 1), (-2, 3), (-1, 5))) == [1, 0, 9]


def test_linear_zero_over_zero_has_finite_gradients() -> None:
    m = _one_head("linear", feature="relu")
    x = _tokens((-1, 5), (-2, 7)).requires_grad_()
    (gradient,) = torch.autograd.grad(m(x).sum(), x)
    assert gradient.isfinite().all()


def test_linear_taylor_by_hand() -> None:
    # s = q k: at the second token 2*1 = 2 and 2*2 = 4; weights 1 + s + s^2/2 = 5 and 13
    m = _one_head("linear", feature="taylor", normaliser=False)
    assert _both(m, _tokens((1, 1), (2, 10))) == pytest.approx([2.5, 5 * 1 + 13 * 10])


def test_gdn_overwrites_the_value_of_a_key() -> None:
    # a = 1 and b = 1 to within e^-40: the second value under one key replaces the first
    m = _with(_one_head("gdn"), a__weight=[[0, 0]], a__bias=[-40], rate=[0], b__weight=[[40, 0]])
    assert _both(m, _tokens((1, 5), (1, 7))) == pytest.approx([5, 7], abs=1e-12)


def test_gdn_decays_what_it_does_not_overwrite() -> None:
    # a = 1/2, b = sigmoid(0) = 1/2, k = 0 at the second token: S = 1/2 * 3 = 1.5, then 0.75, read
    # with q = 0, then key 1 again
    m = _with(_one_head("gdn"), a__weight=[[0, 0]], a__bias=[0], rate=[0], b__weight=[[0, 0]])
    # third: S = 1/2 * 0.75 * (1 - 1/2) + 1/2 * 4 = 2.1875
    assert _both(m, _tokens((1, 3), (0, 9), (1, 4))) == pytest.approx([1.5, 0, 2.1875])


def test_gdn_keys_of_length_zero_have_finite_gradients() -> None:
    m = _one_head("gdn")
    x = _tokens((0, 5), (0, 7)).requires_grad_()
    (gradient,) = torch.autograd.grad(m(x).sum(), x)
    assert gradient.isfinite().all()


def test_gdn_gates_start_near_one() -> None:
    m = mixer(mechanism("gdn", heads=64, head_dim=1), width=4)
    m.reset(torch.Generator().manual_seed(0))
    forgotten = 1 - torch.exp(
        -torch.nn.functional.softplus(dict(m.named_parameters())["a.bias"].detach().double())
    )
    assert 0.9e-3 < forgotten.min() < 3e-3
    assert 3e-2 < forgotten.max() < 1.01e-1


def test_levels_by_hand() -> None:
    # six tokens before token 6 = 4 + 2: tokens 0..3 in the bucket of bit 2, tokens 4 and 5 in that
    # of bit 1, itself level 0
    place = torch.arange(7)
    assert levels(torch.tensor(6), place).tolist() == [3, 3, 3, 3, 2, 2, 0]
    assert levels(torch.tensor(5), place[:6]).tolist() == [3, 3, 3, 3, 1, 0]
    assert levels(torch.tensor(1 << 31), torch.tensor(0)).item() == 32


@torch.no_grad()
def test_loglinear_slots_are_the_binary_digits_of_t() -> None:
    # identity features, keys 1: the state of a bucket is the sum of its values; six tokens leave 6
    # = 110 in binary
    m = _one_head("loglinear")
    x = _tokens(*((1, 2.0**i) for i in range(7)))
    _, state = stream(m, x[:, :6])
    assert state["S"].flatten().tolist() == [0, 16 + 32, 1 + 2 + 4 + 8]
    _, state = stream(m, x)
    assert state["S"].flatten().tolist() == [64, 16 + 32, 1 + 2 + 4 + 8]


def test_loglinear_refuses_tokens_beyond_its_levels() -> None:
    m = _one_head("loglinear")
    with pytest.raises(SizeError, match="enough for 2\\^31 tokens"):
        m.step(
            torch.zeros(1, 2, dtype=torch.float64),
            {"S": torch.zeros(1, 32, 1, 1, 1, dtype=torch.float64)},
            1 << 31,
        )


@torch.no_grad()
def test_window_as_long_as_the_input_is_full_attention() -> None:
    x = inputs(drawn(mixer(mechanism("full", heads=2, head_dim=3), width=6)), 2, 50)
    full, window = (
        drawn(mixer(mechanism(name, heads=2, head_dim=3), width=6)) for name in ("full", "window")
    )
    close(window(x), full(x), "window of 128 tokens")


@torch.no_grad()
def test_sparse_that_opens_every_block_is_full_attention() -> None:
    x = inputs(drawn(mixer(mechanism("full", heads=2, head_dim=3), width=6)), 2, 50)
    full, sparse = (
        drawn(mixer(mechanism(name, heads=2, head_dim=3), width=6)) for name in ("full", "sparse")
    )
    sparse.load_state_dict(
        full.state_dict()
        | {
            "pool_k": sparse.pool_k,
            "pool_v": sparse.pool_v,
            "mix": torch.full((2,), -100.0),
        }
    )
    close(sparse(x), full(x), "50 tokens in at most 4 blocks of 32")


def test_sparse_takes_the_earlier_of_equal_blocks() -> None:
    # blocks of one token, all keys 0, so all scores are equal: tokens read = block 0 and the token
    # itself, averaged
    m = _with(_one_head("sparse", block=1, topk=1), pool_k=[1], pool_v=[1], mix=[-1000])
    assert _both(m, _tokens((0, 2), (0, 100), (0, 4), (0, 8))) == [2, 51, 3, 5]


def test_sparse_block_is_open_to_its_last_token_and_compressed_after() -> None:
    # keys 0 make every softmax a mean; lambda = 1: only compressed values; a block of 2 has pooled
    # value 3 v_0 + v_1
    m = _with(_one_head("sparse", block=2, topk=1), pool_k=[1, 1], pool_v=[3, 1], mix=[1000])
    assert _both(m, _tokens((0, 1), (0, 10), (0, 5), (0, 7), (0, 9))) == [
        0,
        0,
        13,
        13,
        (13 + 22) / 2,
    ]


def test_sparse_reads_the_best_block() -> None:
    # pooled keys 1, 3, 2 against queries of 1; k = 1 opens the second block; scores inside it are 0
    # and 60: its second value wins
    m = _with(
        _one_head("sparse", block=2, topk=1), pool_k=[0.5, 0.05], pool_v=[0.5, 0.5], mix=[-1000]
    )
    x = _tokens((2, 1), (0, 2), (0, 3), (60, 4), (4, 5), (0, 6), (1, 7))
    with torch.no_grad():
        assert m(x)[0, -1, 1].item() == pytest.approx(4, abs=1e-12)
    assert len(_both(m, x)) == 7


def test_sparse_window_is_a_third_equal_share() -> None:
    # keys 0 make every softmax a mean; pooled value 3 v_0 + v_1 = 13; shares 1/3 each; the window
    # holds two tokens
    m = _with(
        _one_head("sparse", block=2, topk=1, window=2),
        pool_k=[1, 1],
        pool_v=[3, 1],
        mix=[0],
        mix_window=[0],
    )
    wanted = [(0 + 1 + 1) / 3, (0 + 5.5 + 5.5) / 3, (13 + 16 / 3 + 7.5) / 3, (13 + 23 / 4 + 6) / 3]
    assert _both(m, _tokens((0, 1), (0, 10), (0, 5), (0, 7))) == pytest.approx(wanted)


def test_sparse_gates_need_not_add_up_to_one() -> None:
    # the gates of both branches are sigmoid(1000 v) = 1: their outputs are added up
    m = _with(
        _one_head("sparse", block=2, topk=1, gates=True),
        pool_k=[1, 1],
        pool_v=[3, 1],
        g__weight=[[0, 1000], [0, 1000]],
    )
    assert _both(m, _tokens((0, 1), (0, 10), (0, 5))) == pytest.approx([1, 5.5, 13 + 16 / 3])


def test_moba_takes_the_earlier_of_equal_blocks() -> None:
    # blocks of one token, all keys 0: tokens read = block 0 and the token itself, averaged
    assert _both(_one_head("moba", block=1, topk=1), _tokens((0, 2), (0, 100), (0, 4), (0, 8))) == [
        2,
        51,
        3,
        5,
    ]


def test_moba_reads_the_block_with_the_best_mean() -> None:
    # mean keys 1 and 1.5 against a query of ln 2: the second block, keys 0 and 3, and the token
    # itself with key ln 2: e^<q, k> = 1, 8, 2^ln 2
    own = 2 ** math.log(2)
    m = _one_head("moba", block=2, topk=1)
    with torch.no_grad():
        y = m(_tokens((2, 100), (0, 100), (0, 1), (3, 2), (math.log(2), 5)))[0, -1, 1].item()
    assert y == pytest.approx((1 * 1 + 8 * 2 + own * 5) / (1 + 8 + own))


def test_indexed_takes_the_earlier_of_equal_tokens_and_not_always_the_token_itself() -> None:
    # index keys 0: all scores are 0; keys 0: the mean of the first two tokens
    m = _with(_one_head("indexed", topk=2, index_dim=1), index_k__weight=[[0, 0]])
    assert _both(m, _tokens((0, 2), (0, 100), (0, 4), (0, 8))) == [2, 51, 51, 51]


def test_indexed_leaves_negative_products_out_before_it_weighs_them() -> None:
    # index query 1 (second coordinate), weight -1, index keys 3, -5, 1: scores -3, 0, -1, so the
    # second token; then the third, -1, before -3
    m = _with(
        _one_head("indexed", topk=1, index_dim=1),
        index_q__weight=[[0, 1]],
        index_k__weight=[[1, 0]],
        index_w__weight=[[0, -1]],
    )
    m = _with(m, q__weight=[[0, 0]])
    assert _both(m, _tokens((3, 1), (-5, 1), (1, 1))) == [1, 1, 1]
    two = _with(
        _one_head("indexed", topk=2, index_dim=1),
        index_q__weight=[[0, 1]],
        index_k__weight=[[1, 0]],
        index_w__weight=[[0, -1]],
    )
    assert _both(_with(two, q__weight=[[0, 0]]), _tokens((3, 1), (-5, 9), (1, 4))) == [
        1,
        5,
        (9 + 4) / 2,
    ]


def test_chunked_forgets_at_the_border() -> None:
    # keys 0 make every softmax a mean over the token's chunk of 2
    assert _both(
        _one_head("chunked", size=2), _tokens((0, 1), (0, 10), (0, 5), (0, 7), (0, 9))
    ) == [1, 5.5, 5, 6, 9]


@torch.no_grad()
def test_chunked_carries_tokens_it_does_not_see() -> None:
    m = _one_head("chunked", size=2)
    _, state = stream(m, _tokens((0, 1), (0, 10), (0, 5)))
    assert state["values"].flatten().tolist() == [10, 5]


@torch.no_grad()
def test_mla_step_does_not_need_the_keys() -> None:
    m = drawn(
        mixer(mechanism("mla", heads=2, head_dim=3, value_dim=5, latent=4, rope_dim=2), width=6)
    )
    _, state = stream(m, inputs(m, 1, 7))
    assert {name: tuple(tensor.shape) for name, tensor in state.items()} == {
        "latents": (1, 7, 4),
        "rotated": (1, 7, 2),
    }
    assert (
        state["latents"].square().mean(-1).sub(1).abs().max() < 1e-4
    )  # the latent is kept after its norm


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda m: m(torch.zeros(1, 0, 2, dtype=torch.float64)),
            "x has 1 sequences of 0 tokens; it needs at least 1 of each",
        ),
        (lambda m: m(torch.zeros(0, 3, 2, dtype=torch.float64)), "x has 0 sequences of 3 tokens"),
        (lambda m: m(torch.zeros(1, 3, 2)), "x is torch.float32, the parameters are torch.float64"),
        (
            lambda m: m.step(torch.zeros(1, 2, dtype=torch.float64), m.init_state(1), -1),
            "t is -1; it counts the tokens before",
        ),
        (
            lambda m: m.step(torch.zeros(1, 2, dtype=torch.float64), m.init_state(1), 1),
            "after t=1 tokens it must be",
        ),
        (
            lambda m: m.step(torch.zeros(1, 2, dtype=torch.float64), {}, 0),
            "state holds nothing; it must hold keys, values",
        ),
    ],
)
def test_bad_input_names_the_argument(call: Any, says: str) -> None:
    with pytest.raises(SizeError, match=says) as caught:
        call(_one_head("full"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["rwkv", "gdn", "kda", "gla", "mlstm", "full", "sparse"])
def test_autocast(name: str) -> None:
    m = mixer(mechanism(name, heads=2, head_dim=4), width=8)
    m.reset(torch.Generator().manual_seed(0))
    x = torch.randn(1, 70, 8, generator=torch.Generator().manual_seed(1))
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        y = m(x)
    assert y.isfinite().all()
    assert (y - m(x)).abs().max() < 0.2 * m(x).abs().max()


@pytest.mark.parametrize("name", ["mamba2", "gdn", "deltaproduct", "gla", "kda", "hgrn2", "rwkv"])
@torch.no_grad()
def test_float32_forms_agree_under_strong_gates(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        jaxtyping.config, "jaxtyping_disable", True
    )  # many steps; shapes are checked in the other tests
    # gates drawn far from their start: decays from 1 down to e^-1000 in one chunk
    sizes: dict[str, Any] = {"head_dim": 4, "state": 4} if name == "mamba2" else {"head_dim": 4}
    m = mixer(mechanism(name, heads=2, **sizes), width=8)
    generator = torch.Generator().manual_seed(0)
    m.reset(generator)
    for parameter in (
        p for k, p in m.named_parameters() if k.split(".")[0] in ("a", "b", "dt", "rate", "w")
    ):
        parameter.add_(2 * torch.randn(parameter.shape, generator=generator))
    x = torch.randn(1, 300, 8, generator=generator)
    exact = copy.deepcopy(m).double()(x.double())
    for found in (m(x), stream(m, x)[0]):
        assert (found - exact).abs().max() < 1e-4 * exact.abs().max()

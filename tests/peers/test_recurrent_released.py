"""Recurrent mixers and short convolutions against transformers' layers: their drawn weights, copied
into our mixers.

Where the layers differ from ours by definition, and how each is matched:
- transformers multiplies the queries of the delta rule, at unit length, by d^-1/2; ours does not.
  The output norm takes the factor out again but for its epsilon, so ours is theirs times d. It is
  Qwen3-Next's, 1e-6; OLMo Hybrid and Kimi Linear, at 1e-5, are set to it.
- unit length: x / sqrt(|x|^2 + 1e-6) there, x / max(|x|, 1e-6) here: theirs is called with epsilon
  0. What the epsilon changes is shown below.
- Mamba-2, MiniMax and RecurrentGemma have a tail of their own (norm over all heads, gate): it is
  cut off, their heads' outputs go through our output map. Biases of their convolutions, and of
  RecurrentGemma's input map, are 0: ours have none.
- Mamba, Falcon Mamba and Jamba have a gate silu(z): z is made 1. Biases of their maps and
  convolutions are 0: ours have none but the step size's.
- RecurrentGemma leaves out sqrt(1 - a^2) at place 0 and has block-diagonal gates: places count from
  1 here, our gates have 0 off the blocks.
- MiniMax puts SiLU on q, k and v: our convolution of kernel 1 with weight 1 does just that. Its
  first layer decays by 1.00001 times ours.
- xLSTM caps the gates at 15 tanh(z / 15) and adds 1e-6 to the denominator: cap 10^6 and epsilon 0
  here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from support.peer_tools import (
    RELATIVE,
    agree,
    agree_in_steps,
    differ_when_perturbed,
    draw,
    filled,
    gap,
    ours,
    released,
    same,
    tokens,
)
from torch import Tensor, nn

from separatrix.mixers import Mixer

WIDTH = 12
HEADS = 4
KEY_HEADS = 2
DIM = 6
VALUE = 5
CONV = 4
EPSILON = 1e-6
GDN = {
    "heads": HEADS,
    "key_heads": KEY_HEADS,
    "head_dim": DIM,
    "value_dim": VALUE,
    "conv": CONV,
    "gate": "silu",
}
Layer = Callable[..., Tensor]
"""Outputs (b, t, w) of tokens x, with an optional cache and the number of tokens in it."""


def kernel(layer: Any) -> Tensor:
    return layer.weight[:, 0]


@pytest.fixture
def no_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unit length without an epsilon, in the layers that have it."""
    for model in ("olmo_hybrid", "qwen3_next", "kimi_linear"):
        modeling, _ = released(model)
        monkeypatch.setattr(
            modeling,
            "l2norm",
            lambda x, dim=-1, eps=0.0, theirs=modeling.l2norm: theirs(x, dim, 0.0),
        )


def inside(
    layer: nn.Module, part: nn.Module, output: Tensor, call: Layer, *, after: bool = False
) -> Layer:
    """What enters (or leaves) a part of a layer, heads side by side, through this output map."""
    seen: list[Tensor] = []
    part.register_forward_hook(
        lambda _, inputs, result: seen.append(torch.as_tensor(result if after else inputs[0]))
    )

    def heads(x: Tensor, cache: Any = None, start: int = 0) -> Tensor:
        call(x, cache, start)
        return seen.pop().reshape(*x.shape[:2], -1) @ output.T

    return heads


def olmo_hybrid() -> tuple[Mixer, Layer, Any]:
    """Gated DeltaNet with negative eigenvalues, convolution, norm and gate."""
    modeling, configuration = released("olmo_hybrid")
    config = configuration.OlmoHybridConfig(
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        num_hidden_layers=2,
        layer_types=["linear_attention", "full_attention"],
        linear_num_key_heads=KEY_HEADS,
        linear_num_value_heads=HEADS,
        linear_key_head_dim=DIM,
        linear_value_head_dim=VALUE,
        linear_conv_kernel_dim=CONV,
    )
    layer: Any = draw(modeling.OlmoHybridGatedDeltaNet(config, 0))
    layer.o_norm.variance_epsilon = EPSILON
    m = filled(
        "gdn",
        GDN | {"negative": True},
        width=WIDTH,
        q__weight=layer.q_proj.weight,
        k__weight=layer.k_proj.weight,
        v__weight=layer.v_proj.weight,
        o__weight=layer.o_proj.weight,
        conv__weight=kernel(layer.conv1d),
        a__weight=layer.a_proj.weight,
        a__bias=layer.dt_bias,
        b__weight=layer.b_proj.weight,
        rate=layer.A_log,
        norm=layer.o_norm.weight,
        gate__weight=layer.g_proj.weight,
    )
    return (
        m,
        lambda x, cache=None, start=0: layer(x, cache_params=cache),
        modeling.DynamicCache(config=config),
    )


def qwen3_next() -> tuple[Mixer, Layer, Any]:
    """Gated DeltaNet, its maps stored key head by key head."""
    modeling, configuration = released("qwen3_next")
    config = configuration.Qwen3NextConfig(
        hidden_size=WIDTH,
        num_hidden_layers=2,
        layer_types=["linear_attention", "full_attention"],
        linear_num_key_heads=KEY_HEADS,
        linear_num_value_heads=HEADS,
        linear_key_head_dim=DIM,
        linear_value_head_dim=VALUE,
        linear_conv_kernel_dim=CONV,
    )
    layer: Any = draw(modeling.Qwen3NextGatedDeltaNet(config, 0))
    shared = HEADS // KEY_HEADS
    q, k, v, z = layer.in_proj_qkvz.weight.unflatten(0, (KEY_HEADS, -1)).split(
        [DIM, DIM, shared * VALUE, shared * VALUE], 1
    )
    b, a = layer.in_proj_ba.weight.unflatten(0, (KEY_HEADS, -1)).split(shared, 1)
    m = filled(
        "gdn",
        GDN,
        width=WIDTH,
        q__weight=q.flatten(0, 1),
        k__weight=k.flatten(0, 1),
        v__weight=v.flatten(0, 1),
        gate__weight=z.flatten(0, 1),
        a__weight=a.flatten(0, 1),
        b__weight=b.flatten(0, 1),
        o__weight=layer.out_proj.weight,
        conv__weight=kernel(layer.conv1d),
        a__bias=layer.dt_bias,
        rate=layer.A_log,
        norm=layer.norm.weight,
    )
    return (
        m,
        lambda x, cache=None, start=0: layer(x, cache_params=cache),
        modeling.DynamicCache(config=config),
    )


def kimi_linear() -> tuple[Mixer, Layer, Any]:
    """Kimi Delta Attention; its gate goes through head_dim numbers, ours is the product of the
    two maps.
    """
    modeling, configuration = released("kimi_linear")
    config = configuration.KimiLinearConfig(
        hidden_size=WIDTH,
        num_hidden_layers=2,
        layer_types=["linear_attention", "full_attention"],
        linear_num_heads=HEADS,
        linear_head_dim=DIM,
        linear_conv_kernel_dim=CONV,
        rms_norm_eps=EPSILON,
    )
    layer: Any = draw(modeling.KimiLinearDeltaAttention(config, 0))
    decay = layer.forget_gate
    m = filled(
        "kda",
        {"heads": HEADS, "head_dim": DIM, "conv": CONV, "gate": "sigmoid"},
        width=WIDTH,
        q__weight=layer.q_proj.weight,
        k__weight=layer.k_proj.weight,
        v__weight=layer.v_proj.weight,
        o__weight=layer.o_proj.weight,
        conv__weight=kernel(layer.conv1d),
        a__down__weight=decay.f_a_proj.weight,
        a__up__weight=decay.f_b_proj.weight,
        a__up__bias=decay.dt_bias,
        rate=decay.A_log.flatten(),
        b__weight=layer.b_proj.weight,
        norm=layer.o_norm.weight,
        gate__weight=layer.g_b_proj.weight @ layer.g_a_proj.weight,
    )
    return (
        m,
        lambda x, cache=None, start=0: layer(x, cache_params=cache),
        modeling.DynamicCache(config=config),
    )


def mamba2() -> tuple[Mixer, Layer, Any]:
    """SSD with two groups of heads, up to its norm."""
    modeling, configuration = released("mamba2")
    config = configuration.Mamba2Config(
        hidden_size=WIDTH,
        expand=2,
        num_heads=HEADS,
        head_dim=DIM,
        state_size=VALUE,
        n_groups=2,
        num_hidden_layers=1,
        conv_kernel=CONV,
        use_conv_bias=False,
        chunk_size=32,
    )
    layer: Any = draw(modeling.Mamba2Mixer(config, 0))
    inner = HEADS * DIM
    state = 2 * VALUE
    _, v, k, q, step = layer.in_proj.weight.split([inner, inner, state, state, HEADS])
    conv_v, conv_k, conv_q = kernel(layer.conv1d).split([inner, state, state])
    m = filled(
        "mamba2",
        {"heads": HEADS, "head_dim": DIM, "state": VALUE, "groups": 2, "conv": CONV},
        width=WIDTH,
        q__weight=q,
        k__weight=k,
        v__weight=v,
        o__weight=layer.out_proj.weight,
        conv__weight=torch.cat([conv_q, conv_k, conv_v]),
        dt__weight=step,
        dt__bias=layer.dt_bias,
        rate=layer.A_log,
        skip=layer.D,
    )
    heads = inside(
        layer,
        layer.norm,
        layer.out_proj.weight,
        lambda x, cache, start: layer(x, cache_params=cache),
    )
    return m, heads, modeling.DynamicCache(config=config)


def mamba() -> tuple[Mixer, Layer, Any]:
    """The selective scan."""
    modeling, configuration = released("mamba")
    config = configuration.MambaConfig(
        hidden_size=WIDTH,
        expand=2,
        state_size=VALUE,
        time_step_rank=3,
        num_hidden_layers=1,
        conv_kernel=CONV,
        use_conv_bias=False,
        use_bias=True,
    )
    return _selective(modeling.MambaMixer(config, 0), modeling.DynamicCache(config=config))


def falcon_mamba() -> tuple[Mixer, Layer, Any]:
    """The selective scan with norms that have no weights."""
    modeling, configuration = released("falcon_mamba")
    config = configuration.FalconMambaConfig(
        hidden_size=WIDTH,
        expand=2,
        state_size=VALUE,
        time_step_rank=3,
        num_hidden_layers=1,
        conv_kernel=CONV,
        use_conv_bias=False,
        use_bias=True,
    )
    layer = modeling.FalconMambaMixer(config, 0, initialize_mixer_weights=False)
    return _selective(layer, modeling.DynamicCache(config=config), read=torch.ones(VALUE))


def jamba() -> tuple[Mixer, Layer, Any]:
    """The selective scan with norms: the weights of B's and C's are one."""
    modeling, configuration = released("jamba")
    config = configuration.JambaConfig(
        hidden_size=WIDTH,
        mamba_expand=2,
        mamba_d_state=VALUE,
        mamba_dt_rank=3,
        mamba_d_conv=CONV,
        mamba_conv_bias=False,
        mamba_proj_bias=True,
        num_hidden_layers=1,
        attn_layer_period=2,
        attn_layer_offset=1,
        use_mamba_kernels=False,
    )
    layer: Any = draw(modeling.JambaMambaMixer(config, 0))
    read = layer.b_layernorm.weight * layer.c_layernorm.weight
    scaled = layer.dt_proj.weight * layer.dt_layernorm.weight
    cache = modeling.DynamicCache(config=config)
    return _selective(layer, cache, read=read, step=scaled, drawn=True)


def _selective(
    layer: Any,
    cache: Any,
    *,
    read: Tensor | None = None,
    step: Tensor | None = None,
    drawn: bool = False,
) -> tuple[Mixer, Layer, Any]:
    """A layer whose gate is silu(1) whatever comes in, which is made a part of the output map."""
    if not drawn:
        draw(layer)
    channels = layer.intermediate_size
    with torch.no_grad():
        layer.in_proj.weight[channels:] = 0
        layer.in_proj.bias[:channels] = 0
        layer.in_proj.bias[channels:] = 1
        layer.out_proj.bias.zero_()
    down, b, c = layer.x_proj.weight.split([layer.time_step_rank, VALUE, VALUE])
    norms = {} if read is None else {"read": read}
    m = filled(
        "mamba",
        {"width": channels, "state": VALUE, "conv": CONV, "rank": 3, "norms": bool(norms)},
        width=WIDTH,
        v__weight=layer.in_proj.weight[:channels],
        o__weight=layer.out_proj.weight * nn.functional.silu(torch.tensor(1.0)),
        b__weight=b,
        c__weight=c,
        conv__weight=kernel(layer.conv1d),
        dt__down__weight=down,
        dt__up__weight=layer.dt_proj.weight if step is None else step,
        dt__up__bias=layer.dt_proj.bias,
        rate=layer.A_log,
        skip=layer.D,
        **norms,
    )
    return m, lambda x, cache=None, start=0: layer(x, cache_params=cache), cache


def minimax() -> tuple[Mixer, Layer, Any]:
    """Lightning attention of a first layer, up to its norm; several of its blocks of 32 tokens."""
    modeling, configuration = released("minimax")
    config = configuration.MiniMaxConfig(
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        head_dim=DIM,
        num_hidden_layers=2,
        layer_types=["linear_attention", "full_attention"],
        block_size=32,
    )
    layer: Any = draw(modeling.MiniMaxLightningAttention(config, 0))
    q, k, v = (
        part.flatten(0, 1) for part in layer.qkv_proj.weight.unflatten(0, (HEADS, -1)).split(DIM, 1)
    )
    m = filled(
        "lightning",
        {"heads": HEADS, "head_dim": DIM, "conv": 1},
        width=WIDTH,
        q__weight=q,
        k__weight=k,
        v__weight=v,
        o__weight=layer.out_proj.weight,
        conv__weight=torch.ones(3 * HEADS * DIM, 1),
    )

    def call(x: Tensor, cache: Any, start: int) -> Tensor:
        return layer(x, position_embeddings=None, attention_mask=None, past_key_values=cache)

    return m, inside(layer, layer.norm, layer.out_proj.weight, call), modeling.MiniMaxCache()


def recurrent_gemma() -> tuple[Mixer, Layer, Any]:
    """RG-LRU with its convolution, places counted from 1. The layer itself keeps the cache."""
    modeling, configuration = released("recurrent_gemma")
    config = configuration.RecurrentGemmaConfig(
        hidden_size=WIDTH, num_attention_heads=HEADS, lru_width=WIDTH, conv1d_width=CONV
    )
    layer: Any = draw(modeling.RecurrentGemmaRecurrentBlock(config, 0))
    for bias in (layer.linear_x.bias, layer.conv_1d.bias):
        nn.init.zeros_(bias)
    gates = layer.rg_lru
    m = filled(
        "rglru",
        {"width": WIDTH, "conv": CONV},
        width=WIDTH,
        v__weight=layer.linear_x.weight,
        o__weight=layer.linear_out.weight,
        conv__weight=kernel(layer.conv_1d),
        r__weight=torch.block_diag(*gates.recurrent_gate_weight.transpose(1, 2)),
        r__bias=gates.recurrent_gate_bias.flatten(),
        g__weight=torch.block_diag(*gates.input_gate_weight.transpose(1, 2)),
        g__bias=gates.input_gate_bias.flatten(),
        rate=gates.recurrent_param,
    )

    def call(x: Tensor, cache: Any, start: int) -> Any:
        places = torch.arange(1 + start, 1 + start + x.shape[1])[None]
        return layer(x, position_ids=places, attention_mask=None, use_cache=cache is not None)

    return m, inside(layer, layer.rg_lru, layer.linear_out.weight, call, after=True), "its own"


def xlstm() -> tuple[Mixer, Layer, Any]:
    """mLSTM, up to its norm. The cache is a list of the layer's one state."""
    modeling, configuration = released("xlstm")
    config = configuration.xLSTMConfig(
        hidden_size=24,
        num_heads=HEADS,
        num_hidden_layers=1,
        chunk_size=32,
        autocast_kernel_dtype="float32",
        eps=0.0,
        gate_soft_cap=1e6,
    )
    layer: Any = draw(modeling.xLSTMLayer(config))
    m = filled(
        "mlstm",
        {"heads": HEADS, "head_dim": 3, "value_dim": 6},
        width=24,
        q__weight=layer.q.weight * 3**-0.5,
        k__weight=layer.k.weight,
        v__weight=layer.v.weight,
        o__weight=layer.out_proj.weight,
        f__weight=layer.fgate_preact.weight,
        f__bias=layer.fgate_preact.bias,
        i__weight=layer.igate_preact.weight,
        i__bias=layer.igate_preact.bias,
    )

    def call(x: Tensor, cache: Any, start: int) -> Any:
        y, state = layer(x, cache[0] if cache else None)
        if cache is not None:
            cache[:] = [state]
        return y

    return m, inside(layer, layer.multihead_norm, layer.out_proj.weight, call), []


def lfm2() -> tuple[Mixer, Layer, Any]:
    """The gated short convolution."""
    modeling, configuration = released("lfm2")
    config = configuration.Lfm2Config(
        hidden_size=WIDTH, num_attention_heads=HEADS, num_hidden_layers=1, layer_types=["conv"]
    )
    layer: Any = draw(modeling.Lfm2ShortConv(config, 0))
    b, c, v = layer.in_proj.weight.chunk(3)
    m = filled(
        "shortconv",
        {"width": WIDTH, "conv": 3},
        width=WIDTH,
        v__weight=v,
        b__weight=b,
        c__weight=c,
        o__weight=layer.out_proj.weight,
        conv__weight=kernel(layer.conv),
    )
    return (
        m,
        lambda x, cache=None, start=0: layer(x, past_key_values=cache),
        modeling.DynamicCache(config=config),
    )


LAYERS = {
    f.__name__: f
    for f in (
        *(olmo_hybrid, qwen3_next, kimi_linear, mamba, falcon_mamba, jamba, mamba2),
        *(minimax, recurrent_gemma, xlstm, lfm2),
    )
}


@pytest.mark.usefixtures("no_epsilon")
@pytest.mark.parametrize("model", LAYERS)
def test_released(model: str) -> None:
    m, layer, cache = LAYERS[model]()
    agree(m, layer)
    agree_in_steps(m, layer, cache)


@pytest.mark.usefixtures("no_epsilon")
@pytest.mark.parametrize("model", LAYERS)
def test_a_changed_weight_is_seen(model: str) -> None:
    m, layer, _ = LAYERS[model]()
    differ_when_perturbed(m, layer)


@pytest.mark.usefixtures("no_epsilon")
@pytest.mark.parametrize("model", ["olmo_hybrid", "qwen3_next", "kimi_linear"])
@torch.no_grad()
def test_the_epsilon_of_the_norm_is_seen(model: str) -> None:
    m, layer, _ = LAYERS[model]()
    x = 0.1 * tokens(WIDTH)  # small values, so that the epsilon counts
    same(m(x), layer(x), "small values")
    vars(m)["epsilon"] = EPSILON
    assert gap(m(x), layer(x)) > RELATIVE


def test_channel_mixing_of_rwkv() -> None:
    """Version 6 has that of RWKV-4, whose mu weighs the token itself, ours that before."""
    modeling, configuration = released("rwkv")
    config = configuration.RwkvConfig(hidden_size=WIDTH, intermediate_size=7 * WIDTH // 2)
    layer: Any = draw(modeling.RwkvFeedForward(config))
    sizes = {"heads": HEADS, "head_dim": DIM, "width": WIDTH, "version": 6, "shifts": 2}
    mixing: Any = ours("rwkv", sizes, width=WIDTH).get_submodule("mixing")
    with torch.no_grad():
        mixing.mu[0] = 1 - layer.time_mix_key.flatten()
        mixing.mu[1] = 1 - layer.time_mix_receptance.flatten()
        for mine, theirs in (
            (mixing.k, layer.key),
            (mixing.v, layer.value),
            (mixing.r, layer.receptance),
        ):
            mine.weight.copy_(theirs.weight)
        x = tokens(WIDTH)
        same(mixing(x, nn.functional.pad(x[:, :-1], (0, 0, 1, 0))), layer(x)[0], "channel mixing")

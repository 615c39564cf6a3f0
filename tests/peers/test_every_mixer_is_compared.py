"""Which mechanism is compared with what, and why not where it is not.

What every comparison is: the same weights, float32, 1e-5 of the largest number, T = 1, 5, 64, 130,
batch 2, value heads of another dimension than key heads where the peer has such; with the state
carried from token 70 on where the peer has a state; and a change of any one parameter by 1e-3 is
seen. "Not there": the peer has no such mechanism. How functions that differ by definition are
matched stands in the tests' heads.
"""

from __future__ import annotations

from separatrix.mixers import MIXERS

COMPARED: dict[str, tuple[str, str]] = {
    # name: (flash-linear-attention's naive operator, transformers' layer)
    "full": (
        "attn, with sink",
        "llama (RoPE, GQA); gpt_oss (sink); qwen3, olmo2 (QK-norm); gemma2 (softcap); qwen3_next"
        " (QK-norm, output gate)",
    ),
    "fox": ("forgetting_attn", "not there"),
    "mla": (
        "not there: its layer needs flash-attn",
        "deepseek_v3 (RoPE), without its latent of queries",
    ),
    "window": (
        "attn, with window and sink",
        "mistral (RoPE, GQA); gpt_oss (sink); gemma2 (softcap)",
    ),
    "chunked": ("not there", "llama4 (RoPE, GQA), without its norms of queries and keys"),
    "indexed": ("dsa, indexer and attention", "deepseek_v32, up to its norms and rotation"),
    "dsa": ("not there: dsa has no latents", "deepseek_v32"),
    "linear": ("linear_attn (elu, relu, identity); based (taylor)", "not there"),
    "retnet": ("retention", "not there"),
    "lightning": (
        "simple_gla at fixed decays; lightning_attn itself has CUDA kernels only",
        "minimax",
    ),
    "gla": ("gla", "not there"),
    "hgrn2": ("gla at k = 1 - f, as fla's layer calls it", "not there"),
    "mamba": ("not there: its layer calls mamba_ssm", "mamba; falcon_mamba, jamba (norms)"),
    "mamba2": (
        "simple_gla at k = D B",
        "mamba2, up to its norm (bamba, nemotron_h and zamba2 have the same scan)",
    ),
    "deltanet": ("delta_rule", "not there"),
    "gdn": ("gated_delta_rule", "qwen3_next; olmo_hybrid (negative eigenvalues)"),
    "deltaproduct": ("gated_delta_product", "not there"),
    "kda": ("kda", "kimi_linear"),
    "rwkv": (
        "generalized_delta_rule/dplr; rwkv7 itself has CUDA kernels only; rwkv6 (version 6)",
        "not there: rwkv is RWKV-4, whose channel mixing is version 6's",
    ),
    "mlstm": ("not there", "xlstm, up to its norm"),
    "rglru": ("hgrn, the same recurrence", "recurrent_gemma from place 1 on"),
    "loglinear": (
        "log_linear_attn (over linear attention and Mamba-2); over Gated DeltaNet"
        " gated_delta_rule level by level",
        "not there",
    ),
    "automaton": ("not there", "not there: a machine that is written, not trained"),
    "shortconv": (
        "convolutions have CUDA kernels only",
        "lfm2; convolutions inside of mixers: mamba2, qwen3_next, kimi_linear, ...",
    ),
    "sparse": (
        "nsa: selection and compression; its window by attn; the whole needs triton and flash-attn",
        "not there",
    ),
    "nsa": (
        "nsa, the whole of it, at one set of keys and values and means; overlap and MLP by"
        " definition in tests/unit/mixers/test_nsa.py",
        "not there",
    ),
    "moba": (
        "moba; plain softmaxes in the place of its kernels, which run on CUDA only",
        "not there",
    ),
}


def test_every_mixer_has_its_line() -> None:
    assert set(MIXERS) == set(COMPARED)

"""Released models against the table of the design (hf_configs.md) and the hand-worked card
figures (ux.md); skipped where the files are absent.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from support.each import each
from support.hf_configs import SHARED, released

from separatrix.core.errors import UnknownNameError
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.hf import from_config, read_config
from separatrix.stacks.architecture.outline import UnknownSizes
from separatrix.stacks.architecture.resolve import preset
from separatrix.stacks.architecture.settings import Settings

MIB = 8 * 2**20


def test_recurrentgemma_card_figures() -> None:
    cache = preset("recurrentgemma-2b").cache(8192)
    assert (cache["state"].total, cache["convolution"].total, cache["window"].total) == (
        1_474_560,
        2_211_840,
        134_217_728,
    )
    assert (
        preset("recurrentgemma-2b").cache_bits(8192)
        == preset("recurrentgemma-2b").cache_bits(10**9)
        == 137_904_128
    )


def test_nemotron_nano_states_the_format_of_its_state() -> None:
    """52 layers, 23 Mamba-2 of 64 heads x 64 x 128, 6 attention, 23 expert layers (counted in
    its pattern by hand).
    """
    model = read_config(released("nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16.json"))
    symbols = "".join(layer[0].symbol for layer in model)
    assert symbols == "m-m-mf-m-m-mf-m-m-mf-m-m-mf-m-m-mf-m-m-m-mf-m-m-m-m-"
    assert (symbols.count("m"), symbols.count("f"), symbols.count("-")) == (23, 6, 23)
    assert model.cache(100)["state"].numbers == 23 * 64 * 64 * 128
    assert model.cache(100)["kv"].total == 100 * 6 * 2 * 2 * 128 * 16
    assert not any(
        note.startswith("recurrent state") and "(assumed)" in note for note in model.notes
    )


class Released(NamedTuple):
    layers: int
    full: int
    recurrent: int
    numbers: int
    state_mib: str
    kv_bytes: int
    channels: int
    """Convolution channels, by the formulas of hf_configs.md from the fields of the file."""
    pattern: str


ROWS = {
    "Qwen--Qwen3-Next-80B-A3B-Thinking": Released(
        48, 12, 36, 524_288, "73.7", 24_576, 2 * 16 * 128 + 32 * 128, "g g g f " * 12
    ),
    "Qwen--Qwen3.5-27B": Released(
        64, 16, 48, 786_432, "146.8", 65_536, 2 * 16 * 128 + 48 * 128, "g g g f " * 16
    ),
    "moonshotai--Kimi-Linear-48B-A3B": Released(
        27, 7, 20, 524_288, "41.4", 8_064, 3 * 32 * 128, "k k k a " * 6 + "k k a"
    ),
    "MiniMaxAI--MiniMax-Text-01": Released(
        80, 10, 70, 1_048_576, "280", 40_960, 0, "y y y y y y y f " * 10
    ),
    "ai21labs--Jamba-v0.1": Released(
        32, 4, 28, 131_072, "15.3", 16_384, 8192, "b b b b f b b b " * 4
    ),
    "Zyphra--Zamba2-7B": Released(
        81,
        13,
        81,
        458_752,
        "145.2",
        372_736,
        7168 + 2 * 2 * 64,
        "m m m m m m f|m m m m m f|m " + "m m m m m f|m " * 11 + "m m m",
    ),
    "tiiuae--Falcon-H1-7B": Released(
        44, 44, 44, 786_432, "132.9", 45_056, 3072 + 2 * 256, "f|m " * 44
    ),
    "nvidia--Nemotron-H-8B-Base-8K": Released(
        52,
        4,
        24,
        1_048_576,
        "97.4",
        16_384,
        8192 + 2 * 8 * 128,
        " ".join("m-m-m-mf" + "-m-m-m-m-mf" * 3 + "-m-m-m-m-m-"),
    ),
    "ibm-granite--granite-4.0-h-tiny": Released(
        40,
        4,
        36,
        393_216,
        "54.7",
        8_192,
        3072 + 2 * 128,
        "m m m m m f " + "m m m m m m m m m f " * 3 + "m m m m",
    ),
    "google--recurrentgemma-2b": Released(26, 0, 18, 2_560, "0.44", 0, 2560, "r r w " * 8 + "r r"),
}
"""All rows of "Released models to agree with" in hf_configs.md, with what the table does not say
worked out by hand.
"""


def from_shared(name: str, settings: Settings | None = None) -> Architecture:
    return read_config(released(f"{name}.json"), settings=settings)


@each("name", ROWS)
def test_all_rows_of_the_table(name: str) -> None:
    row = ROWS[name]
    model = from_shared(name)
    assert ["|".join(part.symbol for part in layer) for layer in model] == row.pattern.split()
    recurrent = [part for layer in model for part in layer if part.group == "recurrent"]
    assert (len(model), len(model.reading), len(recurrent)) == (row.layers, row.full, row.recurrent)
    for part in recurrent:
        state, convolution = part.cache(100)
        assert state.bits.parts == ((row.numbers, 32),)
        assert convolution.bits.total == 3 * row.channels * 16
    cache = model.cache(100_000)
    digits = len(row.state_mib.partition(".")[2])
    state_mib = sum(cache[kind].total for kind in ("state", "convolution") if kind in cache) / MIB
    assert f"{state_mib:.{digits}f}" == row.state_mib
    kv = cache["kv"].total if "kv" in cache else 0
    assert kv == 100_000 * 8 * row.kv_bytes


def test_kimi_k3_counts_from_one_and_ends_with_two_full_layers() -> None:
    """93 layers: full are 4, 8, .., 92 and 93; 69 of KDA, 96 heads x 128 x 128; MLA of 512 + 64
    numbers per token.
    """
    model = from_shared("moonshotai--Kimi-K3")
    assert model.reading == (*range(3, 92, 4), 92)
    assert "".join(layer[0].symbol for layer in model) == "kkka" * 23 + "a"
    cache = model.cache(1000)
    assert cache["state"].parts == ((69 * 96 * 128 * 128, 32),)
    assert cache["convolution"].total == 69 * 3 * 3 * 96 * 128 * 16
    assert cache["kv"].total == 1000 * 24 * 576 * 16
    assert model.context == 1_048_576


MAMBA2_GEOMETRY = [
    "mamba2.heads=80",
    "mamba2.head_dim=64",
    "mamba2.state=128",
    "mamba2.groups=1",
    "mamba2.conv=4",
    "dtype=bf16",
]


def test_native_mamba2_names_what_its_file_leaves_open() -> None:
    with pytest.raises(UnknownSizes) as caught:
        from_shared("state-spaces--mamba2-2.7b")
    sizes = tuple(text.partition("=")[0] for text in MAMBA2_GEOMETRY[:-1])
    assert caught.value.outline.missing == sizes
    assert len(caught.value.outline) == 64
    assert {part.name for layer in caught.value.outline.layers for part in layer} == {"mamba2"}
    for text in MAMBA2_GEOMETRY[:-1]:
        assert f"--set {text.partition('=')[0]}=" in str(caught.value)


def test_native_mamba2_with_its_geometry_by_hand() -> None:
    """d_inner = 2 x 2560 = 80 x 64; 64 layers of 5120 x 128 numbers, 5120 + 2 x 128 channels of
    3 columns.
    """
    model = from_shared("state-spaces--mamba2-2.7b", Settings.parse(MAMBA2_GEOMETRY))
    cache = model.cache(1000)
    assert (len(model), model.reading, model.vocabulary) == (64, (), 50_277)
    assert cache["state"].parts == ((64 * 5120 * 128, 32),)
    assert cache["convolution"].total == 64 * 3 * (5120 + 256) * 16
    assert any(note.startswith("set by hand: mamba2.heads = 80") for note in model.notes)
    with pytest.raises(UnknownNameError, match="mamba2"):
        from_shared(
            "state-spaces--mamba2-2.7b", Settings.parse([*MAMBA2_GEOMETRY, "mamba.state=128"])
        )


def test_every_recurrent_file_at_hand_is_in_a_test() -> None:
    if not SHARED.is_dir():
        pytest.skip("the shared files are not at hand")
    tested = {
        *ROWS,
        "moonshotai--Kimi-K3",
        "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
        "state-spaces--mamba2-2.7b",
    }
    assert tested <= {path.stem for path in SHARED.glob("*.json")}


PUBLISHED = {
    "falcon-h1-7b": (7.59, None),
    "gemma-3-27b": (27, None),
    "granite-4.0-h-small": (32, 9),
    "kimi-k3": (2_800, 104),
    "kimi-linear-48b": (49, 3),
    "lfm2-1.2b": (1.17, None),
    "minimax-m2.7": (230, 10),
    "minimax-text-01": (456, 45.9),
    "nemotron-h-56b": (56, None),
    "nemotron-h-8b": (8.1, None),
    "olmo-hybrid-7b": (7.43, None),
    "qwen3.5-35b-a3b": (35, 3),
    "smallthinker-21b": (21, 3),
    # two blocks of attention and an MLP in 13 layers
    "zamba2-7b": (7.36, None),
}
"""Weights, and those of a token, in thousand millions, as the releases' own pages say them."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_weights_are_those_that_were_published(name: str) -> None:
    found = preset(name).weights
    assert found is not None
    total, active = PUBLISHED[name]
    assert found.total == pytest.approx(total * 1e9, rel=0.01)
    # some count the head, and some do not
    if active is not None:
        counted = (found.read(1), found.read(1) - found.head)
        assert min(abs(one - active * 1e9) for one in counted) < 0.045 * active * 1e9


FROM_PAGES: dict[str, dict[str, Any]] = {
    "EXAONE-3.5-7.8B": {
        **{"model_type": "exaone", "hidden_size": 4096, "intermediate_size": 14_336},
        **{"num_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8},
        **{"head_dim": 128, "vocab_size": 102_400, "tie_word_embeddings": False},
    },
    "GLM-4-9B": {
        **{"model_type": "chatglm", "hidden_size": 4096, "ffn_hidden_size": 13_696},
        **{"num_layers": 40, "num_attention_heads": 32, "multi_query_attention": True},
        **{"multi_query_group_num": 2, "kv_channels": 128, "vocab_size": 151_552},
    },
    "DBRX": {
        **{"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40},
        **{"vocab_size": 100_352, "attn_config": {"clip_qkv": 8, "kv_n_heads": 8}},
        "ffn_config": {"ffn_hidden_size": 10_752, "moe_num_experts": 16, "moe_top_k": 4},
    },
    "Hunyuan-Large": {
        **{"model_type": "hunyuan", "hidden_size": 6400, "intermediate_size": 18_304},
        **{"num_hidden_layers": 64, "num_attention_heads": 80, "num_key_value_heads": 8},
        **{"attention_head_dim": 80, "num_experts": 16, "moe_topk": 1, "num_shared_expert": 1},
        **{"use_cla": True, "cla_share_factor": 2, "vocab_size": 129_024},
        **{"use_mixed_mlp_moe": True, "tie_word_embeddings": True},
    },
    # lists of one size for all layers
    "Hunyuan-A13B": {
        **{"model_type": "hunyuan_v1_moe", "hidden_size": 4096, "intermediate_size": 3072},
        **{"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8},
        **{"head_dim": 128, "num_experts": 64, "moe_topk": [8] * 32, "vocab_size": 128_167},
        **{"num_shared_expert": [1] * 32, "moe_intermediate_size": [3072] * 32},
        "tie_word_embeddings": True,
    },
    # 256 experts more that do nothing
    "LongCat-Flash": {
        **{"model_type": "longcat_flash", "hidden_size": 6144, "ffn_hidden_size": 12_288},
        **{"num_layers": 28, "num_attention_heads": 64, "q_lora_rank": 1536, "kv_lora_rank": 512},
        **{"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "moe_topk": 12},
        **{"n_routed_experts": 512, "zero_expert_num": 256, "expert_ffn_hidden_size": 2048},
        "vocab_size": 131_072,
    },
    "SmallThinker-4B": {
        **{"model_type": "smallthinker", "hidden_size": 1536, "moe_ffn_hidden_size": 768},
        **{"num_hidden_layers": 32, "num_attention_heads": 12, "num_key_value_heads": 2},
        **{"head_dim": 128, "moe_num_primary_experts": 32, "moe_num_active_primary_experts": 4},
        **{"vocab_size": 151_936, "sliding_window_layout": [0] * 32, "sliding_window_size": 4096},
    },
    # its class reads no experts
    "Hunyuan-7B": {
        **{"model_type": "hunyuan_v1_dense", "hidden_size": 4096, "intermediate_size": 14_336},
        **{"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8},
        **{"head_dim": 128, "num_experts": 1, "moe_topk": 1, "vocab_size": 128_167},
        "tie_word_embeddings": True,
    },
    "Ling-mini-2.0": {
        **{"model_type": "bailing_moe", "hidden_size": 2048, "intermediate_size": 5120},
        **{"num_hidden_layers": 20, "num_attention_heads": 16, "num_key_value_heads": 4},
        **{"head_dim": 128, "num_experts": 256, "num_experts_per_tok": 8, "vocab_size": 157_184},
        **{"moe_intermediate_size": 512, "num_shared_experts": 1, "first_k_dense_replace": 1},
    },
    "Ring-flash-linear-2.0": {
        **{"model_type": "bailing_moe_linear", "hidden_size": 4096, "intermediate_size": 9216},
        **{"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 4},
        **{"head_dim": 128, "num_experts": 256, "num_experts_per_tok": 8, "layer_group_size": 8},
        **{"moe_intermediate_size": 1024, "num_shared_experts": 1, "first_k_dense_replace": 1},
        "vocab_size": 157_184,
    },
    # queries and outputs of its attention are experts, too
    "JetMoE-8B": {
        **{"model_type": "jetmoe", "hidden_size": 2048, "intermediate_size": 5632},
        **{"num_hidden_layers": 24, "num_key_value_heads": 16, "kv_channels": 128},
        **{"num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32_000},
    },
    # 14 layers read the keys and values of another, and have no maps for them
    "Hymba-1.5B": {
        **{"model_type": "hymba", "hidden_size": 1600, "intermediate_size": 5504},
        **{"num_hidden_layers": 32, "num_attention_heads": 25, "num_key_value_heads": 5},
        **{"sliding_window": 1024, "global_attn_idx": [0, 15, 31], "mamba_inner_layernorms": True},
        **{"mamba_expand": 2, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_dt_rank": 100},
        **{"num_memory_tokens": 128, "tie_word_embeddings": True, "vocab_size": 32_001},
        "kv_reuse_group": [[i, i + 1] for i in (*range(1, 15, 2), *range(17, 31, 2))],
    },
    # no latents, whatever stands in their fields
    "DeepSeek-OCR": {
        "model_type": "deepseek_vl_v2",
        "language_config": {
            **{"architectures": ["DeepseekV2ForCausalLM"], "hidden_size": 1280, "use_mla": False},
            **{"intermediate_size": 6848, "moe_intermediate_size": 896, "num_hidden_layers": 12},
            **{"n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6},
            **{"num_attention_heads": 10, "num_key_value_heads": 10, "first_k_dense_replace": 1},
            **{"kv_lora_rank": None, "q_lora_rank": None, "qk_nope_head_dim": 0},
            **{"qk_rope_head_dim": 0, "v_head_dim": 0, "vocab_size": 129_280},
        },
    },
}
SAID = {
    "EXAONE-3.5-7.8B": (7.8, 7.8),
    "GLM-4-9B": (9.4, 9.4),
    "DBRX": (132, 36),
    "Hunyuan-Large": (389, 52),
    "Hunyuan-A13B": (80.4, 12.7),
    "LongCat-Flash": (560, None),
    "SmallThinker-4B": (4.03, None),
    "Hunyuan-7B": (7.5, 7.5),
    "Ling-mini-2.0": (16.26, 1.43),
    "Ring-flash-linear-2.0": (104, 7.4),
    "JetMoE-8B": (8.52, None),
    "Hymba-1.5B": (1.52, 1.52),
    "DeepSeek-OCR": (2.93, None),
}
"""As their pages say it; the embedding among those of a token."""


@pytest.mark.parametrize("name", FROM_PAGES)
def test_weights_of_files_that_are_no_presets(name: str) -> None:
    found = from_config(FROM_PAGES[name]).weights
    assert found is not None
    total, active = SAID[name]
    assert found.total == pytest.approx(total * 1e9, rel=0.005)
    if active is not None:
        met = (found.read(1) + found.embedding) / 1e9
        assert met == pytest.approx(active, rel=0.015)


def test_weights_that_are_met_again_are_stored_once() -> None:
    """Ouro-1.4B by hand: 24 layers of 4 maps of 2,048 x 2,048 and 3 of 2,048 x 5,632; 4 passes."""
    file = {
        **{"model_type": "ouro", "hidden_size": 2048, "intermediate_size": 5632},
        **{"num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16},
        **{"total_ut_steps": 4, "vocab_size": 49_152, "dtype": "bfloat16"},
    }
    found = from_config(file).weights
    assert found is not None
    stack, head = 24 * (4 * 2048**2 + 3 * 2048 * 5632), 49_152 * 2048
    assert (found.total, found.read(1)) == (stack + 2 * head, 4 * stack + head)
    assert found.stored == 16 * found.total


def test_what_stands_beside_hunyuan_s_experts() -> None:
    """3 x 6400 x 18,304 weights in each of 64 layers, where a switch says so; nothing where an MLP
    is all that there is.
    """
    file = FROM_PAGES["Hunyuan-Large"]
    each = 64 * 3 * 6400 * 18_304

    def total(**changes: object) -> int:
        found = from_config(file | changes).weights
        assert found is not None
        return found.total

    assert total() - total(use_mixed_mlp_moe=False) == each
    assert total() - total(num_experts=1) == 16 * each + 64 * 16 * 6400


def test_a_released_file_of_four_bit_experts() -> None:
    """Kimi K3: bytes as scales of 32 numbers of four bits, in experts alone; the rest bf16."""
    found = preset("kimi-k3").weights
    assert found is not None
    experts = 92 * 896 * 3 * 3_584 * 3_072
    assert found.stored == experts * 17 // 4 + (found.total - experts) * 16
    assert read_config(released("moonshotai--Kimi-K3.json")).weights == found


@pytest.mark.parametrize(
    ("name", "units"),
    [
        # half of what the file says, two thirds of it, and one expert that all take beside those
        # of a narrower latent
        *(("recurrentgemma-2b", 15_360 // 2), ("lfm2-1.2b", 12_288 * 2 // 3)),
        ("kimi-k3", 2 * 3_072),
    ],
)
def test_units_of_an_mlp_are_those_that_its_class_has(name: str, units: int) -> None:
    found = preset(name).mlp
    assert found is not None
    assert (found.width, found.stated) == (units, True)

"""What serving costs: figures derived by hand from the sizes of released models."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from support.each import each

from separatrix.cards.costs import Serving, costs
from separatrix.core.errors import ConfigError, SeparatrixError, SizeError, UnknownNameError
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.hf import from_config, read_config
from separatrix.stacks.architecture.released import PRESETS
from separatrix.stacks.architecture.resolve import preset
from separatrix.stacks.architecture.settings import Settings

MIB = 8 * 2**20
GIB = 1024 * MIB
PLAIN = Serving()


def test_qwen3_next_by_hand() -> None:
    """12 full layers of 2 key-value heads of 256 + 256 numbers in bf16: 24,576 bytes per token. 36
    delta layers of 32 heads of 128 x 128 numbers in fp32: 72 MiB; the last 3 inputs of 8,192
    channels in bf16: 1.7 MiB; together 73.7 MiB.
    """
    here = costs(preset("qwen3-next-80b"), 262_144, Serving(80 * GIB, 40 * GIB, 8)).here(262_144)
    states = 36 * 32 * 128 * 128 * 4
    buffers = 36 * (2 * 16 * 128 + 32 * 128) * 3 * 2
    assert f"{(states + buffers) / 2**20:.1f}" == "73.7"
    assert here.fetched == here.kept == 8 * (262_144 * 24_576 + states + buffers)
    # 16 heads score and weigh 256 numbers each: 4 operations per number; the delta rule takes 7
    # of each number of its state, the convolution of 4 tokens 8 of each channel
    attention = 12 * 16 * 256 * 4
    recurrent = 36 * (7 * 32 * 128 * 128 + 8 * (2 * 16 * 128 + 32 * 128))
    assert here.decode == attention * 262_144 + recurrent
    assert here.prefill == attention * (262_144 * 262_145 // 2) + recurrent * 262_144
    assert here.prefill_each == Fraction(attention * 262_145, 2) + recurrent
    # 40 GiB over 6 GiB and 73.7 MiB
    assert here.sequences == 40 * 1024 * 2**20 // (6 * 2**30 + states + buffers) == 6
    # 8 tokens choose 80 of 512 experts of 3 maps at the most
    known = preset("qwen3-next-80b").weights
    assert known is not None
    unchosen = 48 * (512 - 80) * 3 * 2048 * 512
    rows = 151_936 * 2048
    assert known.read(8) == known.total - unchosen - rows
    assert here.weights == Fraction(5 * GIB * known.read(8), known.total)


def test_llama_by_hand_and_with_fp8() -> None:
    """32 layers of 8 key-value heads of 128 + 128 numbers: 131,072 bytes per token in bf16, half in
    fp8. 32 heads of 128 numbers.
    """
    full = costs(preset("llama-3.1-8b"), 131_072, Serving(80 * GIB, 16 * GIB))
    assert full.here(131_072).kept == full.here(131_072).fetched == 8 * 131_072 * 131_072
    assert full.here(131_072).decode == 32 * 32 * 128 * 4 * 131_072
    assert full.here(131_072).sequences == 4
    assert full.longest == 64 * 2**30 // 131_072 == 524_288
    narrow = preset("llama-3.1-8b", settings=Settings.parse(["kv=fp8"]))
    half = costs(narrow, 131_072, Serving(80 * GIB, 16 * GIB, 4))
    assert half.here(131_072).kept == 8 * 65_536 * 131_072
    assert half.here(131_072).sequences == 8
    # four sequences of 64 GiB in all
    assert half.longest == 16 * 2**30 // 65_536
    assert half.here(131_072).decode == full.here(131_072).decode


def test_windows_latents_and_sparse_layers_by_hand() -> None:
    """Mistral reads 4,096 tokens of 8 heads of 128 + 128 numbers in 32 layers. DeepSeek-V3 reads a
    latent of 512 and a rotated key of 64 numbers in 61; V3.2 2,048 of them, and a key of 128
    numbers of its indexer for every token.
    """
    t = 131_072
    mistral = costs(preset("mistral-7b-v0.1"), t, PLAIN).here(t)
    assert mistral.fetched == 32 * 4096 * 8 * 256 * 16
    latent = costs(preset("deepseek-v3"), t, PLAIN).here(t)
    assert latent.fetched == latent.kept == 61 * t * 576 * 16
    # decoding in latents: 128 heads, 512 + 64 numbers scored and 512 summed; a prompt is read with
    # keys of 128 + 64 and values of 128 numbers
    assert latent.decode == 61 * 128 * 2 * (576 + 512) * t
    assert latent.prefill == 61 * 128 * 2 * (192 + 128) * (t * (t + 1) // 2)
    chosen = costs(preset("deepseek-v3.2"), t, PLAIN).here(t)
    assert chosen.kept == 61 * t * (576 + 128) * 16
    assert chosen.fetched == 61 * (2048 * 576 + 128 * t) * 16


def test_keys_of_an_earlier_layer_are_read_again_and_kept_once() -> None:
    sizes = "heads=4, head_dim=8, bf16"
    both = costs(Architecture.parse(f"full + reused*3 @ {sizes}"), 1000, PLAIN).here(1000)
    assert both.kept == 1000 * 4 * 16 * 16
    assert both.fetched == 4 * both.kept


def test_contexts_stand_around_the_one_asked() -> None:
    stack = Architecture.parse("full")
    assert [cost.context for cost in costs(stack, 4096, PLAIN).at] == [256, 4096, 65_536]
    assert [cost.context for cost in costs(stack, 3, PLAIN).at] == [3, 48]
    assert [cost.context for cost in costs(stack, 10**12, PLAIN).at] == [10**12 // 16, 10**12]


@each(
    "memory, weights, batch, said",
    [
        ("80", None, 1, "memory: '80' has no unit"),
        ("80GiBs", None, 1, "'80GiBs' has the unknown unit 'GiBs'"),
        ("80gib", None, 1, "did you mean 'GiB'"),
        ("80GiB", "16", 1, "weights: '16' has no unit"),
        ("80GiB", "80GiB", 1, "of 80.0 GiB leave nothing of 80.0"),
        ("80GiB", "1TiB", 1, "leave nothing"),
        ("-1GiB", None, 1, "no amount of memory"),
        ("0GiB", None, 1, "out of range"),
    ],
)
def test_bad_sizes_are_one_line(
    memory: str | None, weights: str | None, batch: int, said: str
) -> None:
    with pytest.raises(SeparatrixError, match=said) as error:
        Serving.parse(memory, weights, batch)
    assert "\n" not in str(error.value)


def test_keys_and_values_get_a_format_of_their_own() -> None:
    model = preset("qwen3-next-80b", settings=Settings.parse(["kv=p4"]))
    assert {part.p for layer in model for part in layer if part.group == "full"} == {4}
    assert {part.p for layer in model for part in layer if part.group == "recurrent"} == {16}
    assert any(note.endswith("kv = p4") for note in model.notes)
    assert not [note for note in model.notes if note.startswith("keys and values")]
    with pytest.raises(UnknownNameError, match="no layer "):
        preset("mamba-2.8b", settings=Settings.parse(["kv=fp8"]))
    with pytest.raises(SeparatrixError, match="'fp9'"):
        Settings.parse(["kv=fp9"])
    # a size by name wins
    both = preset("llama-3.1-8b", settings=Settings.parse(["kv=fp8", "full.format=p4"]))
    assert both.only is None
    assert {part.p for layer in both for part in layer} == {4}


def test_weights_of_released_models_by_hand() -> None:
    """Llama 3.1 8B: 8,030,261,248 parameters are published, 65 norms of 4,096 among them. The
    published 671 G and 37 G active of DeepSeek-V3, 80 G and 3 G of Qwen3-Next (without embeddings
    and head), 20.9 G and 3.6 G of gpt-oss-20b.
    """
    llama = preset("llama-3.1-8b").weights
    assert llama is not None
    assert llama.total == 8_030_261_248 - 65 * 4096
    each = 4096 * (4096 + 1024 + 1024 + 4096) + 3 * 4096 * 14_336
    assert llama.operations(head=False) == 2 * 32 * each
    assert llama.operations(head=True) == 2 * (32 * each + 4096 * 128_256)
    for name, total, active in (
        ("deepseek-v3", 671, 37),
        ("qwen3-next-80b", 80, None),
        ("gpt-oss-20b", 21, 4),
    ):
        known = preset(name).weights
        assert known is not None
        assert round(known.total / 10**9) == total
        assert active is None or round(known.read(1) / 10**9) == active
    qwen = preset("qwen3-next-80b").weights
    assert qwen is not None
    assert round((qwen.read(1) - qwen.head) / 10**9) == 3


def test_a_head_that_no_file_tells_of_is_said_to_be_assumed() -> None:
    """SmallThinker's class ties it: 389 million weights fewer than with a head of its own."""
    config = PRESETS["smallthinker-21b"]["config"]
    silent, tied, own = (
        from_config(config | said).weights
        for said in ({}, {"tie_word_embeddings": True}, {"tie_word_embeddings": False})
    )
    assert silent is not None
    assert tied is not None
    assert own is not None
    assert (bool(silent.assumed), tied.assumed, own.assumed) == (True, "", "")
    assert own.total - silent.total == silent.head == 151_936 * 2560


def test_weights_of_the_file_are_taken_off_the_memory() -> None:
    """16,059,990,016 bytes of weights in bf16 leave 69,839,355,904 of 80 GiB: four caches of 128k
    tokens, 16 GiB each.
    """
    llama = preset("llama-3.1-8b")
    found = costs(llama, 131_072, Serving(80 * GIB))
    room = 80 * 2**30 - 2 * (8_030_261_248 - 65 * 4096)
    assert found.serving.room == 8 * room
    assert found.here(131_072).sequences == room // 2**34 == 4
    assert found.longest == room // 131_072
    # read: all but the embedding, of which a row is looked up
    assert found.here(131_072).weights == 16 * (8_030_261_248 - 65 * 4096 - 4096 * 128_256)
    # 148 GiB do not fit, which is no mistake of whoever asks
    large = costs(preset("qwen3-next-80b"), 4096, Serving(80 * GIB))
    assert (large.here(4096).sequences, large.longest) == (0, 0)


def test_quantised_weights_by_hand() -> None:
    """Llama 3.1 8B: 6,979,321,856 weights of maps and MLPs, 1,050,673,152 of embedding and head."""
    config = dict(PRESETS["llama-3.1-8b"]["config"])
    wide, rest = 32 * (4096 * 10_240 + 3 * 4096 * 14_336), 2 * 4096 * 128_256
    ints = {"weights": {"num_bits": 4, "type": "int", "group_size": 128}}
    floats = {"weights": {"num_bits": 4, "type": "float", "group_size": 16}}
    several = {"weights": {"num_bits": 8, "type": "float"}}
    for said, bits in (
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, 4 + 20 / 128),
        ({"quant_method": "awq", "bits": 4, "group_size": 64}, 4 + 20 / 64),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, 8),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 8 + 32 / 128**2),
        ({"quant_method": "fp8", "weight_block_size": [1, 128]}, 8 + 32 / 128),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 4.5),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 8),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 4.5),
        # only experts are so, and there are none
        ({"quant_method": "mxfp4"}, 16),
        ({"quant_method": "compressed-tensors", "config_groups": {"group_0": floats}}, 4 + 8 / 16),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}}}, 8),
        ({"quant_method": "compressed-tensors", "config_groups": {"group_0": ints}}, 4 + 16 / 128),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": ints, "group_1": several},
            },
            8,
        ),
    ):
        known = from_config(config | {"quantization_config": said}).weights
        assert known is not None
        assert known.stored == wide * bits + 16 * rest, said
    blocks = [{"quant_method": "fp8", "weight_block_size": of} for of in ([0, 128], [128], "128")]
    for strange in (
        *({"quant_method": "gptq", "bits": "4"}, {"quant_method": "gptq"}, {}, []),
        *({"quant_method": "gptq", "bits": 4, "group_size": of} for of in (0, 128.0, "128", True)),
        *({"quant_method": "fp8", "ignore": of} for of in ("lm_head", {}, 3, True)),
        *blocks,
    ):
        known = from_config(config | {"quantization_config": strange}).weights
        assert known is not None
        assert known.stored is None
    flash = PRESETS["deepseek-v4-flash"]["config"]
    narrow, wide = (from_config(flash | {"expert_dtype": of}).weights for of in ("fp4", "fp8"))
    assert narrow is not None
    assert wide is not None
    assert narrow.bits is not None
    assert wide.bits == narrow.bits._replace(experts=narrow.bits.mlps)
    for strange in ("int3", 4, True, ["fp4"]):
        known = from_config(flash | {"expert_dtype": strange}).weights
        assert known is not None
        assert known.bits is None


def test_quantised_releases_are_as_large_as_published() -> None:
    """DeepSeek-V3: 671 G in fp8, of which 1.9 G in bf16; gpt-oss-20b: 13,761,264,768 bytes, with
    biases and norms; Llama-3.1-405B-FP8 leaves attention in bf16.
    """
    for name, published, off in (
        *(("deepseek-v3", 672.9e9, 1e-3), ("gpt-oss-20b", 13.761e9, 2e-3)),
        ("mamba-2.8b", 11_073_541_120, 1e-3),
    ):
        known = preset(name).weights
        assert known is not None
        assert known.stored == pytest.approx(8 * published, rel=off)
    attention = [f"model.layers.{layer}.self_attn.q_proj" for layer in range(33)]
    for kept, maps in (
        *((attention, 16), (attention[:1], 8 + 8 / 32), (attention[32:], 8)),
        *((["re:.*self_attn.*"], 16), (["model.layers.*.self_attn"], 16)),
        # as Qwen3-Next-80B-FP8 has them
        (["model.layers.0.linear_attn.conv1d", "model.layers.0.post_attention_layernorm"], 8),
        (["model.layers.0.mlp.shared_expert_gate"], 8),
    ):
        said = {"quant_method": "fbgemm_fp8", "modules_to_not_convert": [*kept, "lm_head"]}
        file = PRESETS["llama-3.1-8b"]["config"] | {"quantization_config": said}
        known = from_config(file).weights
        assert known is not None
        assert known.bits == (maps, 8, 8, 16), kept
    # mlx-community/Meta-Llama-3.1-8B-Instruct-4bit: 4.52 GB, embedding and head among them
    for said, stored in (
        ({"group_size": 64, "bits": 4}, 4.517e9),
        ({"group_size": 64, "bits": 4, "mode": "mxfp4"}, None),
        ({"group_size": 64, "bits": 4, "lm_head": {"bits": 8}}, None),
        # half of the weights are gone, and where they were is kept
        ({"quant_method": "compressed-tensors", "format": "marlin-24", **GROUPS}, None),
    ):
        known = from_config(PRESETS["llama-3.1-8b"]["config"] | {"quantization": said}).weights
        assert known is not None
        assert known.stored == (None if stored is None else pytest.approx(8 * stored, rel=1e-3))


GROUPS = {"config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 128}}}}


def test_weights_beside_a_file_are_taken_off(tmp_path: Path) -> None:
    """What an index or the only file of a checkpoint weighs wins over what sizes make."""
    config, index = tmp_path / "config.json", tmp_path / "model.safetensors.index.json"
    config.write_text(json.dumps(PRESETS["bamba-9b-fp8"]["config"]))
    assert costs(read_config(config), 4096, Serving(80 * GIB)).serving.weights is None
    (tmp_path / "model.safetensors").write_bytes(b"x" * 1000)
    assert read_config(tmp_path).weight_bits == 8000
    index.write_text(json.dumps({"metadata": {"total_size": 11_073_541_120.0}}))
    found = costs(read_config(tmp_path), 4096, Serving(80 * GIB))
    assert (found.serving.told, found.serving.weights) == ("files", 8 * 11_073_541_120)
    for wrong in ("1", 0, -1, 1.5, True, 10**40, float("inf")):
        index.write_text(json.dumps({"metadata": {"total_size": wrong}}))
        with pytest.raises(ConfigError, match="total_size"):
            read_config(tmp_path)
    index.write_text("{")
    with pytest.raises(ConfigError, match="not JSON"):
        read_config(tmp_path)
    for silent in ({}, {"metadata": {}}, [], {"metadata": 3}):
        index.write_text(json.dumps(silent))
        assert read_config(tmp_path).weight_bits is None


def test_files_that_tell_no_weights_are_left_as_they_are() -> None:
    assert preset("bamba-9b-fp8").weights is None
    assert Architecture.parse("full").weights is None
    quantised = dict(PRESETS["llama-3.1-8b"]["config"]) | {
        "quantization_config": {"quant_method": "brand_new", "bits": 4}
    }
    known = from_config(quantised).weights
    assert known is not None
    assert known.bits is known.stored is None
    # nothing is said of sequences where nothing is known to be left for them
    found = costs(from_config(quantised), 4096, Serving(80 * GIB))
    assert found.longest is found.here(4096).sequences is None
    assert found.serving.weights is None
    without = {k: v for k, v in quantised.items() if k != "intermediate_size"}
    assert from_config(without).weights is None
    assert costs(from_config(without), 4096, Serving(80 * GIB)).untold.startswith(
        "'intermediate_size' is missing"
    )
    strange = dict(PRESETS["qwen3-next-80b"]["config"]) | {"num_experts_per_tok": 600}
    assert from_config(strange).weights is None


def test_an_engine_takes_its_share_of_each_card() -> None:
    """Llama-3.1-8B in 16 bits: 16 KiB a token and card on eight of them, 15.0 GiB of weights."""
    settings = Settings.parse(["engine=vllm", "tp=8", "utilisation=0.5"])
    serving = Serving.parse("40GiB", "16GiB", 1, settings)
    assert serving.room == 20 * GIB - 2 * GIB
    found = costs(preset("llama-3.1-8b"), 4096, serving)
    fit = {t: 18 * 2**30 // (t * 16 * 2**10) for t in (8 << 10, 32 << 10, 128 << 10)}
    assert dict(found.table) == fit
    assert found.longest == 18 * 2**30 // (16 * 2**10)
    assert Serving.parse("40GiB", None, 1, Settings.parse(["engine=vllm"])).usable == 36 * GIB
    with pytest.raises(SizeError, match="memory"):
        Serving.parse(None, None, 1, Settings.parse(["utilisation=0.5"]))
    with pytest.raises(SizeError, match=r"5\.0 GiB too little"):
        Serving.parse("10GiB", "15GiB", 1, Settings.parse(["engine=transformers"]))


def test_an_engine_reads_files_of_wider_numbers_in_its_own() -> None:
    """Mamba-2.8B is released in fp32, 10.3 GiB of weights: an engine of 16 bits holds half."""
    whole = costs(preset("mamba-2.8b"), 4096, Serving.parse("40GiB", None))
    settings = Settings.parse(["engine=vllm"])
    half = costs(preset("mamba-2.8b"), 4096, Serving.parse("40GiB", None, 1, settings))
    assert whole.serving.weights == 2 * (half.serving.weights or 0) == 88_550_277_120
    given = costs(preset("mamba-2.8b"), 4096, Serving.parse("40GiB", "10GiB", 1, settings))
    assert given.serving.weights == 10 * GIB
    # weights and caches are halved alike
    assert whole.meets == half.meets


def test_caches_that_all_cards_hold_meet_their_weights_sooner() -> None:
    """Eight cards divide heads of Qwen3-8B, and its weights; latents of DeepSeek-V3 they do not."""
    for name, sooner in (("qwen3-8b", 1), ("deepseek-v3", 8)):
        model = preset(name)
        one, eight = (
            costs(
                model, 4096, Serving.parse("900GiB", None, 1, Settings.parse(["engine=vllm", tp]))
            )
            for tp in ("tp=1", "tp=8")
        )
        known, fetched = model.weights, one.here(4096).fetched
        assert known is not None
        assert fetched is not None
        for found, times in ((one, 1), (eight, sooner)):
            assert found.meets is not None
            for batch, ahead in ((found.meets, True), (found.meets - 1, False)):
                read = (known.stored or 0) * known.share(batch)
                assert (batch * times * fetched >= read) is ahead


def test_weights_read_are_weighed_in_their_own_bits() -> None:
    """Of gpt-oss-20b a token meets all maps and the head, in bf16, and 4 of 32 experts, in MXFP4:
    its 3.6 G weights take 3.7 GB. As a share of all 13.8 GB, for most of which 4.25 bits are
    taken, they would be 2.4 GB.
    """
    maps = 24 * (2 * 2880 * 64 * 64 + 2 * 2880 * 8 * 64)
    routers = 24 * 32 * 2880
    expert, head = 3 * 2880 * 2880, 201_088 * 2880
    read = {
        chosen: 16 * (maps + routers + head) + Fraction(17, 4) * 24 * chosen * expert
        for chosen in (4, 8, 32)
    }
    assert round(read[4] / (8 * 10**8)) == 37
    for batch, chosen in ((1, 4), (2, 8), (9, 32)):
        here = costs(preset("gpt-oss-20b"), 4096, Serving(batch=batch)).here(4096)
        assert here.weights is not None
        assert round(here.weights * batch) == round(read[chosen])
    # at 131,072 tokens one cache of 3 GiB is read less than 3.7 GB, two more than 5 GB
    assert costs(preset("gpt-oss-20b"), 131_072, Serving()).meets == 2
    # given by hand they are shared out alike
    given = costs(preset("gpt-oss-20b"), 4096, Serving(weights=10**9)).here(4096)
    assert given.weights is not None
    assert given.weights / 10**9 == read[4] / (read[32] + 16 * head)


def test_where_caches_are_read_as_much_as_weights() -> None:
    """A dense model reads all weights for each batch, one with experts more for a larger one."""
    stack = Architecture.parse("full(heads=1, head_dim=8) @ fp16")
    # 32 bytes a token: 100 tokens of 7 sequences are 22,400 bytes
    found = costs(stack, 100, Serving(memory=GIB, weights=8 * 22_400))
    assert found.meets == 7
    assert costs(stack, 100, Serving(memory=GIB, weights=8 * 22_401)).meets == 8
    assert costs(stack, 100, Serving(memory=GIB)).meets is None
    moe = preset("gpt-oss-20b")
    known = moe.weights
    assert known is not None
    assert known.stored is not None
    found = costs(moe, 4096, Serving(memory=80 * GIB))
    assert found.meets is not None
    fetched = found.here(4096).fetched
    assert fetched is not None
    for batch, more in ((found.meets, True), (found.meets - 1, False)):
        read = known.stored * known.share(batch)
        assert (batch * fetched >= read) is more
    assert costs(moe, 4096, Serving(memory=8 * GIB)).table == ()

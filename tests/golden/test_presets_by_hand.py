"""Every preset against counts worked out by hand from the published facts, and against the
shared file of the same model where it is at hand.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest
from support.each import each
from support.hf_configs import SHARED
from support.unplaced import unplaced

from separatrix.cards import card_facts
from separatrix.cli.report.card import card_json
from separatrix.stacks.architecture.hf import read_config
from separatrix.stacks.architecture.outline import UnknownSizes
from separatrix.stacks.architecture.released import PRESETS
from separatrix.stacks.architecture.resolve import preset
from separatrix.stacks.architecture.settings import Settings


class Row(NamedTuple):
    """Layers by kind; numbers in the largest recurrent state of a layer (None: no recurrence);
    KV bytes per token over full layers, 16 bits.
    """

    total: int
    full: int
    windowed: int
    indexed: int
    recurrent: int
    other: int
    numbers: int | None
    kv_bytes: int


ROWS = {
    "bamba-9b-fp8": Row(
        32, 3, 0, 0, 29, 0, 128 * 64 * 128, 3 * 2 * 8 * 128 * 2
    ),  # 1,048,576; 12,288
    "codestral-mamba-7b": Row(64, 0, 0, 0, 64, 0, 128 * 64 * 128, 0),  # 1,048,576
    "deepseek-v3": Row(61, 61, 0, 0, 0, 0, None, 61 * (512 + 64) * 2),  # 70,272
    "deepseek-v3.2": Row(
        61, 0, 0, 61, 0, 0, None, 0
    ),  # indexed layers: 61 * (512 + 64 + 128) * 2 = 85,888
    "deepseek-v4-flash": Row(43, 0, 2, 41, 0, 0, None, 0),  # 21 of ratio 4, 20 of ratio 128
    "deepseek-v4-pro": Row(61, 0, 0, 61, 0, 0, None, 0),  # 30 of ratio 4, 31 of ratio 128
    "delta-net-1.3b": Row(24, 0, 0, 0, 24, 0, 16 * 128 * 128, 0),  # 262,144
    "falcon-h1-7b": Row(
        44, 44, 0, 0, 44, 0, 24 * 128 * 256, 44 * 2 * 2 * 128 * 2
    ),  # parallel 44; 786,432; 45,056
    "falcon-mamba-7b": Row(64, 0, 0, 0, 64, 0, 8192 * 16, 0),  # 131,072
    "gemma-2-9b": Row(42, 21, 21, 0, 0, 0, None, 21 * 2 * 8 * 256 * 2),  # 172,032
    "gemma-3-27b": Row(62, 10, 52, 0, 0, 0, None, 10 * 2 * 16 * 128 * 2),  # 81,920
    "gemma-4-26b-a4b": Row(
        30, 5, 25, 0, 0, 0, None, 5 * 2 * 2 * 512 * 2
    ),  # 20,480 (10,240 if keys = values were stored once)
    "gla-1.3b": Row(24, 0, 0, 0, 24, 0, 4 * 256 * 512, 0),  # 524,288
    "glm-5": Row(
        78, 0, 0, 78, 0, 0, None, 0
    ),  # indexed layers: 78 * (512 + 64 + 128) * 2 = 109,824
    "gpt-oss-20b": Row(24, 12, 12, 0, 0, 0, None, 12 * 2 * 8 * 64 * 2),  # 24,576
    "granite-4.0-h-small": Row(
        40, 4, 0, 0, 36, 0, 128 * 64 * 128, 4 * 2 * 8 * 128 * 2
    ),  # 1,048,576; 16,384
    "granite-4.0-h-tiny": Row(
        40, 4, 0, 0, 36, 0, 48 * 64 * 128, 4 * 2 * 4 * 128 * 2
    ),  # 393,216; 8,192
    "jamba-1.5-mini": Row(32, 4, 0, 0, 28, 0, 8192 * 16, 4 * 2 * 8 * 128 * 2),  # 131,072; 16,384
    "jamba-v0.1": Row(32, 4, 0, 0, 28, 0, 8192 * 16, 4 * 2 * 8 * 128 * 2),  # 131,072; 16,384
    "kimi-k3": Row(93, 24, 0, 0, 69, 0, 96 * 128 * 128, 24 * (512 + 64) * 2),  # 1,572,864; 27,648
    "kimi-linear-48b": Row(
        27, 7, 0, 0, 20, 0, 32 * 128 * 128, 7 * (512 + 64) * 2
    ),  # 524,288; 8,064
    "lfm2-1.2b": Row(
        16, 6, 0, 0, 0, 0, None, 6 * 2 * 8 * 64 * 2
    ),  # and 10 of group convolution; 12,288
    "llama-3.1-8b": Row(32, 32, 0, 0, 0, 0, None, 32 * 2 * 8 * 128 * 2),  # 131,072
    "llama-4-scout": Row(
        48, 12, 36, 0, 0, 0, None, 12 * 2 * 8 * 128 * 2
    ),  # windowed = chunked 8192; 49,152
    "mamba-2.8b": Row(64, 0, 0, 0, 64, 0, 5120 * 16, 0),  # 81,920
    "mamba2-2.7b": Row(64, 0, 0, 0, 64, 0, 80 * 64 * 128, 0),  # 655,360
    "mimo-v2-flash": Row(48, 9, 39, 0, 0, 0, None, 9 * 4 * (192 + 128) * 2),  # 23,040
    "minimax-m2.7": Row(62, 62, 0, 0, 0, 0, None, 62 * 2 * 8 * 128 * 2),  # 253,952
    "minimax-m3": Row(60, 3, 0, 57, 0, 0, None, 3 * 2 * 4 * 128 * 2),  # 6,144
    "minimax-text-01": Row(
        80, 10, 0, 0, 70, 0, 64 * 128 * 128, 10 * 2 * 8 * 128 * 2
    ),  # 1,048,576; 40,960
    "mistral-7b-v0.1": Row(32, 0, 32, 0, 0, 0, None, 0),
    "nemotron-3-nano-30b": Row(
        52, 6, 0, 0, 23, 23, 64 * 64 * 128, 6 * 2 * 2 * 128 * 2
    ),  # 524,288; 6,144
    "nemotron-3-super-120b": Row(
        88, 8, 0, 0, 40, 40, 128 * 64 * 128, 8 * 2 * 2 * 128 * 2
    ),  # 1,048,576; 8,192
    "nemotron-h-56b": Row(
        118, 10, 0, 0, 54, 54, 256 * 64 * 256, 10 * 2 * 8 * 128 * 2
    ),  # 4,194,304; 40,960
    "nemotron-h-8b": Row(
        52, 4, 0, 0, 24, 24, 128 * 64 * 128, 4 * 2 * 8 * 128 * 2
    ),  # 1,048,576; 16,384
    "olmo-hybrid-7b": Row(
        32, 8, 0, 0, 24, 0, 30 * 96 * 192, 8 * 2 * 30 * 128 * 2
    ),  # 552,960; 122,880
    "qwen2.5-7b": Row(28, 28, 0, 0, 0, 0, None, 28 * 2 * 4 * 128 * 2),  # 57,344
    "qwen3-8b": Row(36, 36, 0, 0, 0, 0, None, 36 * 2 * 8 * 128 * 2),  # 147,456
    "qwen3-next-80b": Row(
        48, 12, 0, 0, 36, 0, 32 * 128 * 128, 12 * 2 * 2 * 256 * 2
    ),  # 524,288; 24,576
    "qwen3.5-27b": Row(
        64, 16, 0, 0, 48, 0, 48 * 128 * 128, 16 * 2 * 4 * 256 * 2
    ),  # 786,432; 65,536
    "qwen3.5-35b-a3b": Row(
        40, 10, 0, 0, 30, 0, 32 * 128 * 128, 10 * 2 * 2 * 256 * 2
    ),  # 524,288; 20,480
    "recurrentgemma-2b": Row(26, 0, 8, 0, 18, 0, 2560, 0),
    "retnet-1.3b": Row(24, 0, 0, 0, 24, 0, 8 * 256 * 512, 0),  # 1,048,576
    "rwkv-4-7b-pile": Row(
        32, 0, 0, 0, 32, 0, 3 * 4096 + 2 * 4096, 0
    ),  # 20,480: 12,288 of WKV and two token shifts
    "smallthinker-21b": Row(52, 13, 39, 0, 0, 0, None, 13 * 2 * 4 * 128 * 2),  # 26,624
    "step-3.7-flash": Row(45, 12, 33, 0, 0, 0, None, 12 * 2 * 8 * 128 * 2),  # 49,152
    "xlstm-7b": Row(32, 0, 0, 0, 32, 0, 8 * (256 * 512 + 256 + 1), 0),  # 1,050,632
    "zamba2-7b": Row(
        81, 13, 0, 0, 81, 0, 112 * 64 * 64, 13 * 2 * 32 * 224 * 2
    ),  # parallel 13; 458,752; 372,736
}


class Places(NamedTuple):
    """Base, rotated numbers of a head (all: its size) and scaling of the layers that rotate, by
    kind of layer, and how many attention layers do not.
    """

    full: tuple[int, int, str | None] | None = None
    windowed: tuple[int, int, str | None] | None = None
    indexed: tuple[int, int, str | None] | None = None
    without: int = 0


_LLAMA3 = "llama3_8_1_4_8192"
_YARN = "yarn_40_32_1_4096"
_V4 = (160_000, 64, "yarn_16_32_1_65536")
_OSS = (150_000, 64, "yarnexact_32_32_1_4096")
PLACES = {
    "bamba-9b-fp8": Places(full=(10_000, 64, None)),  # half of 128
    "deepseek-v3": Places(full=(10_000, 64, _YARN)),
    "deepseek-v3.2": Places(indexed=(10_000, 64, _YARN)),
    "deepseek-v4-flash": Places(windowed=(10_000, 64, None), indexed=_V4),
    "deepseek-v4-pro": Places(indexed=_V4),
    "falcon-h1-7b": Places(full=(10**11, 128, None)),
    "gemma-2-9b": Places(full=(10_000, 256, None), windowed=(10_000, 256, None)),
    "gemma-3-27b": Places(full=(10**6, 128, "linear_8"), windowed=(10_000, 128, None)),
    # a quarter of 512
    "gemma-4-26b-a4b": Places(full=(10**6, 128, "proportional_512"), windowed=(10_000, 256, None)),
    "glm-5": Places(indexed=(10**6, 64, None)),
    "gpt-oss-20b": Places(full=_OSS, windowed=_OSS),
    "granite-4.0-h-small": Places(without=4),
    "granite-4.0-h-tiny": Places(without=4),
    "jamba-1.5-mini": Places(without=4),
    "jamba-v0.1": Places(without=4),
    "kimi-k3": Places(without=24),
    "kimi-linear-48b": Places(without=7),
    "lfm2-1.2b": Places(full=(10**6, 64, None)),
    "llama-3.1-8b": Places(full=(500_000, 128, _LLAMA3)),
    "llama-4-scout": Places(windowed=(500_000, 128, "llama3_16_1_1_8192"), without=12),
    # 0.334 of 192, rounded down
    "mimo-v2-flash": Places(full=(5 * 10**6, 64, None), windowed=(10_000, 64, None)),
    "minimax-m2.7": Places(full=(5 * 10**6, 64, None)),
    "minimax-m3": Places(full=(5 * 10**6, 64, None), indexed=(5 * 10**6, 64, None)),
    "minimax-text-01": Places(full=(10**7, 64, None)),
    "mistral-7b-v0.1": Places(windowed=(10_000, 128, None)),
    "nemotron-3-nano-30b": Places(without=6),
    "nemotron-3-super-120b": Places(without=8),
    "nemotron-h-56b": Places(without=10),
    "nemotron-h-8b": Places(without=4),
    "olmo-hybrid-7b": Places(without=8),
    "qwen2.5-7b": Places(full=(10**6, 128, None)),
    "qwen3-8b": Places(full=(10**6, 128, None)),
    # a quarter of 256
    "qwen3-next-80b": Places(full=(10**7, 64, None)),
    "qwen3.5-27b": Places(full=(10**7, 64, None)),
    "qwen3.5-35b-a3b": Places(full=(10**7, 64, None)),
    "recurrentgemma-2b": Places(windowed=(10_000, 128, None)),  # half of 256
    "smallthinker-21b": Places(windowed=(1_500_000, 128, None), without=13),
    # half of 128 in full layers
    "step-3.7-flash": Places(
        full=(5 * 10**6, 64, "llama3_2_1_32_131072"), windowed=(10_000, 128, None)
    ),
    "zamba2-7b": Places(full=(10_000, 224, None)),  # 2 x 3,584 / 32
}
"""From the released files and, where these leave it to the model's code, from that code."""
CONVOLUTIONS = {"lfm2-1.2b": 10}
PARALLEL = {"falcon-h1-7b": 44, "zamba2-7b": 13}
FILES = {
    "deepseek-v3.2": "deepseek-ai--DeepSeek-V3.2.json",
    "deepseek-v4-flash": "deepseek-ai--DeepSeek-V4-Flash.json",
    "falcon-h1-7b": "tiiuae--Falcon-H1-7B.json",
    "gemma-4-26b-a4b": "google--gemma-4-26B-A4B.json",
    "glm-5": "zai-org--GLM-5.json",
    "gpt-oss-20b": "openai--gpt-oss-20b.json",
    "granite-4.0-h-tiny": "ibm-granite--granite-4.0-h-tiny.json",
    "jamba-v0.1": "ai21labs--Jamba-v0.1.json",
    "kimi-k3": "moonshotai--Kimi-K3.json",
    "kimi-linear-48b": "moonshotai--Kimi-Linear-48B-A3B.json",
    "llama-3.1-8b": "meta-llama--Meta-Llama-3.1-8B.json",
    "llama-4-scout": "meta-llama--Llama-4-Scout-17B-16E-Instruct.json",
    "mamba2-2.7b": "state-spaces--mamba2-2.7b.json",
    "mimo-v2-flash": "XiaomiMiMo--MiMo-V2-Flash.json",
    "minimax-m3": "MiniMaxAI--MiniMax-M3.json",
    "minimax-text-01": "MiniMaxAI--MiniMax-Text-01.json",
    "nemotron-3-nano-30b": "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16.json",
    "nemotron-h-8b": "nvidia--Nemotron-H-8B-Base-8K.json",
    "qwen3-next-80b": "Qwen--Qwen3-Next-80B-A3B-Thinking.json",
    "qwen3.5-27b": "Qwen--Qwen3.5-27B.json",
    "recurrentgemma-2b": "google--recurrentgemma-2b.json",
    "step-3.7-flash": "stepfun-ai--Step-3.7-Flash.json",
    "zamba2-7b": "Zyphra--Zamba2-7B.json",
}
TRIMMED = {
    "falcon-h1-7b",
    "minimax-text-01",
    "step-3.7-flash",
    "zamba2-7b",
}
"""Files that were cut down to sizes and do not say positions."""
OPEN = {
    "mamba2-2.7b": (
        [
            f"mamba2.{size}"
            for size in ("heads=80", "head_dim=64", "state=128", "groups=1", "conv=4")
        ]
    ),
}
"""What these files leave open, as the release states it elsewhere."""


def test_every_preset_has_a_row_and_there_are_enough() -> None:
    assert set(PRESETS) == set(ROWS)
    assert len(PRESETS) >= 24


@each("name", ROWS)
def test_presets_agree_with_the_counts_by_hand(name: str) -> None:
    row = ROWS[name]
    model = preset(name)
    # what the theorems say of them is tried elsewhere
    card = card_json(card_facts(model, 4096, lines=()))
    expected = {
        "total": row.total,
        "full": row.full,
        "windowed": row.windowed,
        "indexed": row.indexed,
        "recurrent": row.recurrent,
    }
    expected |= {
        "convolution": CONVOLUTIONS.get(name, 0),
        "parallel": PARALLEL.get(name, 0),
        "other": row.other,
    }
    assert card["layers"] == expected
    assert len(card["pattern"]) == row.total
    assert max(card["cache"]["recurrent_numbers"].values(), default=None) == row.numbers
    if not row.indexed:
        assert card["cache"]["kv_bytes_per_token"] == row.kv_bytes
    assert model.assumptions
    assert json.loads(json.dumps(card, allow_nan=False)) == card


def test_every_preset_with_attention_says_its_positions() -> None:
    attends = {
        name
        for name in PRESETS
        if any("rope" in part.sizes() for layer in preset(name) for part in layer)
    }
    assert attends == set(PLACES)


@each("name", PLACES)
def test_positions_agree_with_the_released_files(name: str) -> None:
    model = preset(name)
    found: dict[str, set[tuple[int, int, str | None]]] = {}
    without = 0
    for part in (part for layer in model for part in layer if "rope" in part.sizes()):
        if part.rotation is None:
            without += 1
        else:
            turned = (part.rotation.base, part.rotation.dims, part.rotation.scaling)
            found.setdefault(part.group, set()).add(turned)
    row = PLACES[name]
    by_kind = {"full": row.full, "windowed": row.windowed, "indexed": row.indexed}
    assert found == {kind: {turned} for kind, turned in by_kind.items() if turned}
    assert without == row.without
    # no preset learns positions: what its tokens know comes from rotations and states
    assert model.positions == "none"
    assert {part.seen_positions for layer in model for part in layer} <= {None, "none"}


def test_no_preset_without_attention_has_positions() -> None:
    for name in PRESETS.keys() - PLACES.keys():
        said = {part.seen_positions for layer in preset(name) for part in layer}
        assert said == {"none"}, name


def test_every_shared_file_has_a_preset() -> None:
    if not SHARED.is_dir():
        pytest.skip("the shared files are not at hand")
    assert {path.name for path in SHARED.glob("*.json")} == set(FILES.values())


@pytest.mark.parametrize("name", FILES)
def test_the_released_file_reads_as_its_preset(name: str) -> None:
    path = SHARED / FILES[name]
    if not path.is_file():
        pytest.skip(f"the shared file {FILES[name]} is not at hand")
    if name in OPEN:
        with pytest.raises(UnknownSizes) as caught:
            read_config(path)
        assert [text.split("=")[0] for text in OPEN[name]] == list(caught.value.outline.missing)
    read = read_config(path, settings=Settings.parse(OPEN.get(name, [])))
    if name in TRIMMED:
        assert read != preset(name)
        assert unplaced(read) == unplaced(preset(name))
    else:
        assert read == preset(name)

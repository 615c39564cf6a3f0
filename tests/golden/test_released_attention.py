"""Released models of softmax attention alone: layers by kind and bytes worked out by hand from
their files; skipped where those are absent.
"""

from __future__ import annotations

from typing import NamedTuple

from support.each import each
from support.hf_configs import released

from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.hf import read_config
from separatrix.stacks.architecture.settings import Settings


class Released(NamedTuple):
    pattern: str
    kv_bytes: int
    """Per token, over the layers that read the whole prompt, 16 bits per number."""
    window_bytes: int
    """After many tokens."""


FILES = {
    "meta-llama--Meta-Llama-3.1-8B": Released("f" * 32, 32 * 2 * 8 * 128 * 2, 0),
    "meta-llama--Llama-4-Scout-17B-16E-Instruct": Released(
        "cccf" * 12, 12 * 2 * 8 * 128 * 2, 36 * 8192 * 2 * 8 * 128 * 2
    ),
    "google--gemma-4-26B-A4B": Released(
        "wwwwwf" * 5, 5 * 2 * 2 * 512 * 2, 25 * 1024 * 2 * 8 * 256 * 2
    ),
    "openai--gpt-oss-20b": Released("wf" * 12, 12 * 2 * 8 * 64 * 2, 12 * 128 * 2 * 8 * 64 * 2),
    "XiaomiMiMo--MiMo-V2-Flash": Released(
        "fwwww" + "fwwwww" * 7 + "f", 9 * 4 * (192 + 128) * 2, 39 * 128 * 8 * (192 + 128) * 2
    ),
    "stepfun-ai--Step-3.7-Flash": Released(
        "fwww" * 11 + "f", 12 * 2 * 8 * 128 * 2, 33 * 512 * 2 * 8 * 128 * 2
    ),
    "MiniMaxAI--MiniMax-M3": Released("fff" + "i" * 57, (60 * 2 * 4 * 128 + 57 * 128) * 2, 0),
    "deepseek-ai--DeepSeek-V3.2": Released("D" * 61, 61 * (512 + 64 + 128) * 2, 0),
    "zai-org--GLM-5": Released("D" * 78, 78 * (512 + 64 + 128) * 2, 0),
}


def model(name: str) -> Architecture:
    settings = Settings.parse(["dtype=bf16"]) if name.startswith("openai") else None
    return read_config(released(f"{name}.json"), settings=settings)


@each("name", FILES)
def test_layers_and_bytes(name: str) -> None:
    read = model(name)
    by_hand = FILES[name]
    assert "".join(layer[0].symbol for layer in read) == by_hand.pattern
    cache = read.cache(100_000)
    assert cache["kv"].total == 100_000 * 8 * by_hand.kv_bytes
    assert (cache["window"].total if "window" in cache else 0) == 8 * by_hand.window_bytes


def test_gpt_oss_does_not_name_its_number_format() -> None:
    read = read_config(released("openai--gpt-oss-20b.json"))
    assert len(read) == 24
    assert any(note.startswith("number format bf16 (assumed)") for note in read.notes)
    # 12 full layers of 2 x 8 x 64 numbers in two bytes
    assert read.cache(10**6)["kv"].total == 8 * 10**6 * 12 * 2 * 8 * 64 * 2


def test_deepseek_v4_compresses_by_4_and_by_128_in_turn() -> None:
    """44 ratios for 43 layers, the last of multi-token prediction. 128,000 tokens: 32,000 entries
    of 512 + 128 in 21 layers, 1,000 of 512 in 20; windows of 128 vectors everywhere; 7 tokens wait
    with content and gate, twice, index key too, or 127 with content and gate.
    """
    read = model("deepseek-ai--DeepSeek-V4-Flash")
    assert "".join(layer[0].symbol for layer in read) == "ww" + "z" * 41
    assert [layer[0].sizes().get("ratio", 0) for layer in read] == [0, 0] + [4, 128] * 20 + [4]
    cache = read.cache(128_000)
    assert cache["kv"].numbers == 21 * 32_000 * 640 + 20 * 1_000 * 512
    assert cache["window"].numbers == 43 * 128 * 512 + 21 * 7 * 2 * 2 * 640 + 20 * 127 * 2 * 512
    assert any("multi-token prediction" in note for note in read.notes)


def test_what_an_indexer_reads() -> None:
    sizes = [
        model(name).layers[5][0].sizes()
        for name in ("deepseek-ai--DeepSeek-V3.2", "zai-org--GLM-5", "MiniMaxAI--MiniMax-M3")
    ]
    assert [(s["topk"], s.get("block", 1), s["index_dim"], s["index_heads"]) for s in sizes] == [
        (2048, 1, 128, 64),
        (2048, 1, 128, 32),
        (16, 128, 128, 4),
    ]


def test_assumed_patterns_are_noted() -> None:
    assert any(
        "every 4 layers (assumed)" in note
        for note in model("meta-llama--Llama-4-Scout-17B-16E-Instruct").notes
    )

"""Released models against the table of the design (hf_configs.md) and the hand-worked card figures (ux.md); skipped where the files are absent."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hf_configs import RELEASED, released

from separatrix.architecture import Architecture
from separatrix.architecture.hf import read_config
from separatrix.architecture.presets import preset

MIB = 8 * 2**20


class Row(NamedTuple):
    layers: int
    full: int
    recurrent: int
    other: int
    numbers: int
    state_mib: float
    kv_bytes: int


TABLE = {
    "qwen3-next-80b": Row(48, 12, 36, 0, 524_288, 73.7, 24_576),
    "nemotron-h-8b": Row(52, 4, 24, 24, 1_048_576, 97.4, 16_384),
    "recurrentgemma-2b": Row(26, 0, 18, 8, 2_560, 0.44, 0),
}
PATTERNS = {
    "qwen3-next-80b": "gggf" * 12,
    "nemotron-h-8b": "m-m-m-mf-m-m-m-m-mf-m-m-m-m-mf-m-m-m-m-mf-m-m-m-m-m-",
    "recurrentgemma-2b": "rrwrrwrrwrrwrrwrrwrrwrrwrr",
}


@pytest.fixture(params=TABLE)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=["preset", "file"])
def model(request: pytest.FixtureRequest, name: str) -> Architecture:
    return preset(name) if request.param == "preset" else read_config(released(RELEASED[name]))


def test_agrees_with_the_table(model: Architecture, name: str) -> None:
    row = TABLE[name]
    symbols = "".join(layer[0].symbol for layer in model)
    assert symbols == PATTERNS[name]
    recurrent = [layer[0] for layer in model if layer[0].name in ("gdn", "mamba2", "rglru")]
    assert (len(model), len(model.reading), len(recurrent)) == (row.layers, row.full, row.recurrent)
    assert len(model) - row.full - row.recurrent == row.other
    for part in recurrent:
        state = next(item for item in part.cache(100) if item.kind == "state")
        assert state.bits.parts == ((row.numbers, 32),)
    cache = model.cache(100_000)
    digits = 2 if row.state_mib < 1 else 1
    assert round((cache["state"].total + cache["convolution"].total) / MIB, digits) == row.state_mib
    kv = cache["kv"].total if "kv" in cache else 0
    assert kv == 100_000 * 8 * row.kv_bytes


def test_recurrentgemma_card_figures() -> None:
    cache = preset("recurrentgemma-2b").cache(8192)
    assert (cache["state"].total, cache["convolution"].total, cache["window"].total) == (1_474_560, 2_211_840, 134_217_728)
    assert preset("recurrentgemma-2b").cache_bits(8192) == preset("recurrentgemma-2b").cache_bits(10**9) == 137_904_128


def test_qwen_at_its_context_needs_six_gib_of_keys_and_values() -> None:
    model = preset("qwen3-next-80b")
    assert model.context == 262_144
    assert model.cache(262_144)["kv"].total == 6 * 1024 * MIB


def test_every_preset_equals_its_file(name: str) -> None:
    read, known = read_config(released(RELEASED[name])), preset(name)
    assert read == known
    assert (read.vocabulary, read.context, read.notes) == (known.vocabulary, known.context, known.notes)


def test_nemotron_nano_states_the_format_of_its_state() -> None:
    """52 layers, 23 Mamba-2 of 64 heads x 64 x 128, 6 attention, 23 expert layers (counted in its pattern by hand)."""
    model = read_config(released("nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16.json"))
    symbols = "".join(layer[0].symbol for layer in model)
    assert symbols == "m-m-mf-m-m-mf-m-m-mf-m-m-mf-m-m-mf-m-m-m-mf-m-m-m-m-"
    assert (symbols.count("m"), symbols.count("f"), symbols.count("-")) == (23, 6, 23)
    assert model.cache(100)["state"].numbers == 23 * 64 * 64 * 128
    assert model.cache(100)["kv"].total == 100 * 6 * 2 * 2 * 128 * 16
    assert not any(note.startswith("recurrent state") and "(assumed)" in note for note in model.notes)

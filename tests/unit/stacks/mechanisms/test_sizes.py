"""Declared sizes of the mechanisms that no mixer streams yet, worked out by hand from theory.md,
section 1, and hf_configs.md's tables.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.each import each

from separatrix.core.errors import SizeError
from separatrix.mixers import mixer
from separatrix.stacks.architecture import MECHANISMS, Architecture, mechanism
from separatrix.stacks.mechanisms.softmax import Accumulating


def numbers(name: str, t: int, kind: str, **sizes: Any) -> int:
    return sum(item.bits.numbers for item in mechanism(name, **sizes).cache(t) if item.kind == kind)


@each(
    "name, sizes, state, convolution",
    [
        (
            "gdn",
            {"heads": 32, "key_heads": 16, "head_dim": 128, "conv": 4},
            32 * 128 * 128,
            3 * (2 * 16 * 128 + 32 * 128),
        ),
        ("kda", {"heads": 32, "head_dim": 128, "conv": 4}, 524_288, 3 * 3 * 32 * 128),
        ("lightning", {"heads": 64, "head_dim": 128}, 1_048_576, 0),
        ("retnet", {"heads": 2, "head_dim": 4, "value_dim": 6}, 48, 0),
        ("gla", {"heads": 2, "head_dim": 3, "value_dim": 6}, 36, 0),
        ("deltanet", {"heads": 2, "head_dim": 3, "conv": 4}, 18, 3 * 3 * 6),
        ("hgrn2", {"heads": 16, "head_dim": 128}, 2048 * 128, 0),
        ("mlstm", {"heads": 8, "head_dim": 256, "value_dim": 512}, 8 * (256 * 512 + 256 + 1), 0),
        ("rwkv", {"heads": 32, "head_dim": 64, "width": 2048, "shifts": 1}, 32 * 64 * 64 + 2048, 0),
        ("rwkv4", {"width": 768}, 5 * 768, 0),
        ("mamba", {"width": 8192, "state": 16, "conv": 4}, 131_072, 3 * 8192),
        (
            "mamba2",
            {"heads": 128, "head_dim": 64, "state": 128, "groups": 8, "conv": 4},
            1_048_576,
            3 * (8192 + 2 * 8 * 128),
        ),
        ("rglru", {"width": 2560, "conv": 4}, 2560, 3 * 2560),
        ("shortconv", {"width": 2048, "conv": 3}, 0, 2 * 2048),
    ],
)
def test_recurrent_state_and_convolution(
    name: str, sizes: dict[str, int], state: int, convolution: int
) -> None:
    assert numbers(name, 1000, "state", **sizes) == state
    assert numbers(name, 1000, "convolution", **sizes) == convolution


@each(
    "name, sizes, per_token",
    [
        ("mla", {"heads": 32, "head_dim": 128, "latent": 512, "rope_dim": 64}, 576),
        ("dsa", {"heads": 128, "latent": 512, "rope_dim": 64, "index_dim": 128, "topk": 2048}, 704),
        (
            "indexed",
            {
                "heads": 64,
                "kv_heads": 4,
                "head_dim": 128,
                "index_dim": 128,
                "topk": 16,
                "block": 128,
            },
            2 * 4 * 128 + 128,
        ),
        ("full", {"heads": 16, "kv_heads": 2, "head_dim": 256}, 2 * 2 * 256),
    ],
)
def test_keys_and_values_per_token(name: str, sizes: dict[str, int], per_token: int) -> None:
    assert numbers(name, 1000, "kv", **sizes) == 1000 * per_token


def test_a_window_whose_keys_are_its_values_stores_them_once() -> None:
    """DeepSeek-V4: one vector of 512 numbers per token; transformers' cache lets keys and values
    point to the same storage.
    """
    assert (
        numbers("window", 1000, "window", heads=64, kv_heads=1, head_dim=512, size=128, shared=True)
        == 128 * 512
    )
    assert (
        numbers("window", 1000, "window", heads=64, kv_heads=1, head_dim=512, size=128)
        == 128 * 2 * 512
    )
    with pytest.raises(SizeError, match="has one dimension"):
        mechanism("window", head_dim=8, value_dim=4, shared=True)
    shared = mechanism("window", heads=1, head_dim=8, size=9, shared=True)
    with pytest.raises(SizeError, match="shared=true"):
        mixer(shared, width=8)
    # the carrying construction needs keys that tell places and values that tell bits
    assert mechanism("window", heads=1, head_dim=8, size=9).carries(8)
    assert not shared.carries(8)


def test_compressed_entries_window_and_waiting_tokens() -> None:
    sparse = {
        "heads": 64,
        "head_dim": 512,
        "ratio": 4,
        "topk": 512,
        "index_dim": 128,
        "size": 128,
        "overlap": True,
    }
    assert numbers("compressed", 1002, "kv", **sparse) == 250 * (512 + 128)
    # 128 raw latents; 4 tokens of the last entry and 3 of the open one wait with content and gate,
    # each for two entries, for the indexer too
    assert numbers("compressed", 1002, "window", **sparse) == 128 * 512 + 7 * 2 * 2 * (512 + 128)
    heavy = {"heads": 64, "head_dim": 512, "ratio": 128, "size": 128}
    assert numbers("compressed", 1002, "kv", **heavy) == 7 * 512
    assert numbers("compressed", 1002, "window", **heavy) == 128 * 512 + 127 * 2 * 512


def test_read_bits() -> None:
    assert (
        mechanism(
            "mla",
            heads=2,
            head_dim=8,
            latent=16,
            format="bf16",
            accumulator="bf16",
            running_max=False,
        ).read_bits()
        == 2 * 17 * 16
    )
    assert (
        mechanism("mla", heads=2, head_dim=8, value_dim=20, latent=16, format="bf16").read_bits()
        == 2 * 22 * 32
    )
    tokens = mechanism("dsa", heads=4, latent=20, rope_dim=4, index_dim=8, topk=5, format="bf16")
    assert tokens.read_bits() == 5 * (32 + 24 * 16)  # theory.md: k (1 + d_c) numbers
    blocks = mechanism(
        "indexed",
        heads=4,
        head_dim=8,
        index_dim=8,
        topk=5,
        block=16,
        format="bf16",
    )
    assert blocks.read_bits() == 4 * 5 * (8 + 3) * 32
    assert mechanism(
        "compressed", heads=4, head_dim=8, ratio=4, topk=5, index_dim=2, format="bf16"
    ).read_bits() == 5 * (32 + 8 * 16)
    assert (
        mechanism("compressed", heads=4, head_dim=8, ratio=4, format="bf16").read_bits()
        == 4 * 10 * 32
    )


def test_open_blocks_and_windows_are_owed_at_a_cut() -> None:
    assert (
        mechanism("sparse", heads=1, head_dim=2, block=4, format="p8").open_bits(100) == 3 * 4 * 8
    )
    assert mechanism("sparse", heads=1, head_dim=2, block=4, format="p8").open_bits(2) == 2 * 4 * 8
    assert (
        mechanism("indexed", heads=1, head_dim=2, index_dim=3, topk=1, format="p8").open_bits(100)
        == 0
    )
    assert (
        mechanism(
            "indexed", heads=1, head_dim=2, index_dim=3, topk=1, block=4, format="p8"
        ).open_bits(100)
        == 3 * 7 * 8
    )
    # 4 + 4 - 2 tokens whose blocks may still be chosen or a longer window, beside the window and
    # the 3 tokens that wait for their block; keys and values of two numbers of 8 bits each
    for window, tokens in ((3, 6 + 3 + 3), (9, 9 + 9 + 3)):
        sizes = f"block=4, stride=4, selected=4, topk=3, window={window}, format=p8"
        ((part,),) = Architecture.parse(f"nsa({sizes}) @ heads=1, head_dim=2").layers
        assert part.open_bits(100) == tokens * 2 * 2 * 8
    heavy = mechanism("compressed", heads=1, head_dim=2, ratio=4, size=3, format="p8")
    assert (
        heavy.open_bits(100)
        == (3 * 2 + 3 * 2 * 2) * 8
        == Architecture(((heavy,),)).groups(100)[1].inside
    )


@each("name", MECHANISMS)
def test_caches_grow_and_operations_are_counted(name: str) -> None:
    part = mechanism(name)
    lengths = [0, 1, 2, 3, 31, 32, 33, 127, 128, 129, 1000]
    carried = [part.cache_bits(t) for t in lengths]
    assert carried == sorted(carried)
    assert [part.flops(t) for t in lengths[1:]] == sorted(part.flops(t) for t in lengths[1:])
    assert (part.cache_bits(2**40) > part.cache_bits(2**39)) == (
        (part.reading and name != "reused") or name == "loglinear"
    )
    assert (part.read_bits() > 0) == part.reading


def test_operations_by_hand() -> None:
    assert mechanism("full", heads=2, head_dim=3, value_dim=5).flops(10) == 10 * 2 * (2 * 3 + 2 * 5)
    assert mechanism("window", heads=2, head_dim=3, size=4).flops(10) == 4 * 2 * (2 * 3 + 2 * 3)
    assert (
        mechanism("linear", heads=1, head_dim=3, normaliser=False).flops(10) == 2 * 9 + 2 * 9
    )  # update, read
    assert (
        mechanism("gdn", heads=1, head_dim=3).flops(10) == 9 + 3 * 2 * 9
    )  # decay; erase, write, read
    assert mechanism("shortconv", width=7, conv=3).flops(10) == 2 * 3 * 7
    assert (
        Architecture.parse("(gdn*3 + full)*2 @ heads=1, head_dim=3").flops(10) == 6 * 63 + 2 * 120
    )


def test_an_indexer_needs_both_sizes() -> None:
    with pytest.raises(SizeError, match="an indexer needs both"):
        mechanism("compressed", topk=5)


def test_a_running_maximum_is_read_too() -> None:
    """784 = (9 + 4 x 10) x 16 without, 864 = (10 + 4 x 11) x 16 with one more number in each
    accumulator, 1,728 = (10 + 4 x 11) x 32 unless said otherwise.
    """
    sparse = mechanism("sparse", heads=1, head_dim=8, format="bf16")
    assert sparse.read_bits() == 1728
    narrow = replace(sparse, accumulator="bf16")
    assert narrow.read_bits() == 864
    assert replace(narrow, running_max=False).read_bits() == 784


@each("name", ["full", "mla", "sparse", "moba", "window", "chunked"])
def test_sums_are_of_32_bits_at_least_unless_said_otherwise(name: str) -> None:
    """FlashAttention's accumulators are float32 with a running maximum, whatever is stored."""
    for stored in ("bf16", "fp16", "fp8", "int8", "p16", "p1", "fp32"):
        part = mechanism(name, format=stored)
        assert isinstance(part, Accumulating)
        assert (part.accumulator_bits, part.running_max) == (32, True)
        assert part.formats == {stored, "fp32"}
        assert "32 bits" in part.assumptions()[0]
        assert "running maximum" in part.assumptions()[0]
    wide = mechanism(name, format="fp64")
    assert isinstance(wide, Accumulating)
    assert wide.accumulator_bits == 64
    assert wide.formats == {"fp64"}


def test_narrower_sums_are_called_so() -> None:
    """A verdict about sums that nothing here keeps says it."""
    usual = "this is less than the mixers here and FlashAttention keep (32 bits and a running"
    for part in (
        mechanism("full", format="bf16", accumulator="bf16"),
        mechanism("full", format="bf16", running_max=False),
    ):
        (text,) = part.assumptions()
        assert usual in text
    assert usual not in mechanism("full", accumulator="fp64").assumptions()[0]


def test_a_token_shift_is_as_wide_as_the_heads_where_nothing_else_is_said() -> None:
    assert numbers("rwkv", 5, "state", heads=32, head_dim=64, shifts=2) == 32 * 64 * 64 + 2 * 2048


@pytest.mark.parametrize(
    ("name", "sizes", "said"),
    [
        ("full", {"rope": True, "head_dim": 7}, "7 rotated dimensions"),
        ("full", {"rope": True, "head_dim": 8, "rope_dim": 10}, "more than head_dim=8"),
        ("compressed", {"rope": True, "head_dim": 8, "rope_dim": 10}, "more than head_dim=8"),
        ("mla", {"rope_dim": 7}, "7 rotated dimensions"),
        # refused as it is made, not when somebody asks what turns
        ("mla", {"rope_dim": 8, "rope_base": 1}, "base of a rotation is 1"),
        ("dsa", {"rope_dim": 80, "index_dim": 64}, "index_dim=64 is less"),
    ],
)
def test_a_rotation_that_none_can_be_is_refused(
    name: str, sizes: dict[str, Any], said: str
) -> None:
    with pytest.raises(SizeError, match=said):
        mechanism(name, **sizes)

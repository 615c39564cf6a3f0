"""What theory, cards, design and reports ask of a mechanism, and what its class answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from support.each import each

from separatrix.cards.memory import rows
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import MECHANISMS, mechanism
from separatrix.stacks.mechanisms.base import Head, HeadShape, OpenedBlocks, Varied

DIAGONAL = {
    *("linear", "lightning", "retnet", "gla", "hgrn2", "mlstm"),
    *("mamba", "mamba2", "rglru", "rwkv4"),
}


def test_the_diagonal_recurrences_and_rwkv_up_to_version_6() -> None:
    # version 7 overwrites along a key
    assert [mechanism("rwkv", version=v).diagonal for v in (6, 7)] == [True, False]
    assert {name for name in MECHANISMS if mechanism(name).diagonal} == DIAGONAL
    card = Architecture.parse("rwkv(version=6)*2")
    assert all(part.diagonal for layer in card for part in layer)


@each(
    "name, sizes, most",
    [
        ("gdn", {"head_dim": 4, "value_dim": 6}, 6),
        ("window", {"head_dim": 4, "size": 2}, 4),
        ("window", {"head_dim": 4, "size": 1}, 0),
        ("window", {"head_dim": 4, "size": 9, "shared": True}, 0),
        ("shortconv", {"width": 5, "conv": 2}, 5),
        ("shortconv", {"width": 5, "conv": 1}, 0),
        ("rglru", {"width": 5}, 5),
        ("mamba", {"width": 5, "state": 2}, 5),
        ("mamba2", {"head_dim": 3, "state": 9}, 3),
        ("rwkv4", {"width": 5}, 0),
        ("full", {"head_dim": 4}, 0),
        ("sparse", {"head_dim": 4}, 0),
    ],
)
def test_bits_handed_to_the_next_token(name: str, sizes: dict[str, Any], most: int) -> None:
    part = mechanism(name, **sizes)
    assert [bits for bits in range(1, 12) if part.carries(bits)] == list(range(1, most + 1))


@pytest.mark.parametrize("sizes", [{"format": "p8"}, {"state_format": "int8"}])
def test_nothing_is_handed_on_in_formats_without_exact_signs(sizes: dict[str, str]) -> None:
    assert mechanism("gdn", state_format="bf16").carries(1)
    assert not mechanism("gdn", **sizes).carries(1)


def test_formats_are_those_of_every_number() -> None:
    assert mechanism("gdn", format="bf16").formats == {"bf16"}
    assert mechanism("gdn", format="bf16", state_format="fp32").formats == {"bf16", "fp32"}
    assert mechanism("full", format="bf16", accumulator="p20").formats == {"bf16", "p20"}
    assert mechanism("full", format="bf16").formats == {"bf16", "fp32"}


def test_heads_that_retrieve() -> None:
    full = mechanism("full", head_dim=8, value_dim=3, format="bf16")
    assert full.retrieval_head == Head(8, 3, "bf16")
    # how it finds a token under rotation is for the theory to say
    assert mechanism("full", rope=True).retrieval_head is not None
    assert mechanism("full", softcap=50).retrieval_head is None
    assert mechanism("full", bounded=True).retrieval_head is None
    assert mechanism("fox", head_dim=8, value_dim=3).retrieval_head == Head(8, 3, "fp32")
    assert mechanism("fox", softcap=50).retrieval_head is None
    assert mechanism("fox", gate_format="p8").retrieval_head is None
    assert not mechanism("window", softcap=50).carries(1)
    assert not mechanism("window", bounded=True).carries(1)
    assert mechanism("window").carries(1)
    assert mechanism("full", accumulator="p8").retrieval_head is None
    others = set(MECHANISMS) - {"full", "fox", "mla"}
    assert all(MECHANISMS[name]().retrieval_head is None for name in others)
    head = mechanism("mla", head_dim=8, value_dim=8, latent=10).retrieval_head
    assert head is not None
    assert head.has_room(6, 4)
    assert not head.has_room(6, 5)
    assert not head.has_room(9, 1)
    assert not head.has_room(1, 9)


def test_heads_that_open_blocks() -> None:
    sizes = {"heads": 4, "kv_heads": 2, "head_dim": 8, "block": 16, "topk": 3, "format": "bf16"}
    sparse = mechanism("sparse", window=5, **sizes)
    assert sparse.opened_blocks == OpenedBlocks(4, 16, 3, 2 * 16 * 16, 5)
    assert mechanism("moba", **sizes).opened_blocks == OpenedBlocks(4, 16, 3, 2 * 8 * 16)
    for name in ("sparse", "moba"):
        assert mechanism(name, conv=3, **sizes).opened_blocks is None
    assert {name for name, cls in MECHANISMS.items() if cls().opened_blocks} == {"sparse", "moba"}


@each("name", MECHANISMS)
def test_keys_and_values_grow_by_the_stride(name: str) -> None:
    part = MECHANISMS[name]()
    grown = [
        sum(item.bits.numbers for item in part.cache(n * part.cache_stride) if item.kind == "kv")
        # beyond the first block, which may be longer than the stride
        for n in range(10, 16)
    ]
    assert [after - grown[0] for after in grown] == [n * (grown[1] - grown[0]) for n in range(6)]


def test_growth_per_token_counts_the_mean_keys_of_moba() -> None:
    stack = Architecture.parse("moba(block=8, heads=1, head_dim=4, format=bf16)")
    (keys_values,) = rows(stack, 1000)
    assert keys_values.per_token == 16 * (4 + 4) + 16 * 4 / 8


def test_sizes_that_design_varies() -> None:
    def varied(name: str, **sizes: Any) -> Mapping[Varied, str]:
        return mechanism(name, **sizes).varied_sizes()

    assert varied("gdn") == {"state": "head_dim"}
    assert varied("mamba2") == varied("mamba") == {"state": "state"}
    assert varied("window") == varied("chunked") == {"window": "size"}
    assert varied("sparse") == {"block": "block", "topk": "topk"}
    assert varied("indexed") == {"topk": "topk"}
    assert varied("indexed", block=4) == {"topk": "topk", "block": "block"}
    assert varied("compressed") == varied("full") == varied("mlp") == {}
    assert varied("compressed", topk=4, index_dim=8) == {"topk": "topk"}
    for name, cls in MECHANISMS.items():
        assert set(varied(name).values()) <= set(cls().sizes())


def test_another_key_dimension_leaves_the_values_alone() -> None:
    assert mechanism("gdn", head_dim=8).resized(head_dim=16) == mechanism(
        "gdn", head_dim=16, value_dim=8
    )
    same = mechanism("gdn", head_dim=8)
    assert same.resized(head_dim=8) == same
    assert mechanism("window").resized(size=7) == mechanism("window", size=7)


def test_heads_as_a_model_has_them() -> None:
    assert mechanism("full", heads=8, kv_heads=2, head_dim=16).head_shape == HeadShape(8, 16, 2)
    assert mechanism("gdn", heads=8, head_dim=16).head_shape == HeadShape(8, 16)
    assert mechanism("mamba2", heads=8, head_dim=64).head_shape == HeadShape(4, 128)
    assert mechanism("mlp").head_shape == HeadShape(1, 128)


def test_words_on_cards() -> None:
    assert mechanism("full").card_title == "full"
    assert mechanism("window", size=2048).card_title == "windowed (2,048)"
    assert mechanism("gdn").card_title == "Gated DeltaNet"


def test_one_mechanism_alone() -> None:
    assert Architecture.parse("sparse").only == mechanism("sparse")
    assert Architecture.parse("sparse*2").only is None
    assert Architecture.parse("sparse|window").only is None

"""What mechanisms compute and read for a token, and what they keep, at every length."""

from __future__ import annotations

from typing import Any

from support.each import each

from separatrix.stacks.architecture.released import PRESETS
from separatrix.stacks.architecture.resolve import preset
from separatrix.stacks.mechanisms import MECHANISMS, Mechanism, mechanism

LENGTHS = (*range(1, 70), 1000, 12_345, 10**7 + 3)
PARTS: list[Mechanism] = [
    *map(mechanism, MECHANISMS),
    *(mechanism(name, conv=4) for name, cls in MECHANISMS.items() if "conv" in cls().sizes()),
    mechanism("compressed", ratio=3, overlap=True, size=5),
    mechanism("compressed", ratio=3, topk=2, index_heads=2, index_dim=3),
    mechanism("window", size=4, shared=True),
    *{part for name in PRESETS for layer, _ in preset(name).counted() for part in layer},
]


def test_what_is_kept_is_the_cache_at_every_length() -> None:
    for part in PARTS:
        kept = part.kept()
        assert [kept.at(t) for t in LENGTHS] == [part.cache_bits(t) for t in LENGTHS], part


def test_amounts_never_shrink() -> None:
    for part in PARTS:
        for amount in (part.work(), part.prefill_work(), part.kept(), part.fetched()):
            found = [amount.at(t) for t in LENGTHS]
            assert found == sorted(found), part


# numbers of 8 bits, 4 heads of 3 + 3 numbers over 2 key-value heads: a token keeps 12 numbers
@each(
    "name, sizes, t, numbers",
    [
        ("full", {}, 100, 12 * 100),
        ("window", {"size": 7}, 100, 12 * 7),
        ("window", {"size": 7, "shared": True}, 100, 6 * 7),
        ("chunked", {"size": 7}, 100, 12 * 7),
        # keys of an earlier layer are read, and kept there
        ("reused", {}, 100, 12 * 100),
        ("reused_window", {"size": 7}, 100, 12 * 7),
        # 25 blocks; two heads share keys and choose 3 blocks each; the open block
        ("sparse", {"block": 4, "topk": 3}, 100, 12 * (25 + 2 * 3 * 4 + 4)),
        ("sparse", {"block": 4, "topk": 3, "window": 9}, 100, 12 * (25 + 28 + 9)),
        # blocks of 4 every 2 tokens: at 4, 6, ..., 100; a group shares its choice
        (
            "nsa",
            {"block": 4, "stride": 2, "selected": 2, "topk": 5, "window": 9},
            100,
            12 * (49 + 10 + 9),
        ),
        # mean keys of 25 blocks of 2 heads, and the blocks
        ("moba", {"block": 4, "topk": 3}, 100, 6 * 25 + 12 * 28),
        # an indexer's key of every token, and one choice for all heads
        ("indexed", {"topk": 5, "index_dim": 2}, 100, 2 * 100 + 12 * 5),
        # of blocks each of its own heads makes one, for a group of heads
        ("indexed", {"topk": 5, "index_dim": 2, "block": 3}, 100, 2 * 100 + 12 * 15),
        (
            "indexed",
            {"topk": 5, "index_dim": 2, "block": 3, "index_heads": 4},
            100,
            2 * 100 + 12 * 2 * 15,
        ),
    ],
)
def test_what_is_read_is_not_what_is_kept(
    name: str, sizes: dict[str, Any], t: int, numbers: int
) -> None:
    part = mechanism(name, heads=4, kv_heads=2, head_dim=3, format="p8", **sizes)
    assert part.fetched().at(t) == 8 * numbers


def test_latents_are_read_once_for_all_heads() -> None:
    sizes = {"heads": 4, "head_dim": 3, "latent": 5, "rope_dim": 2, "format": "p8"}
    latent = mechanism("mla", **sizes)
    assert latent.fetched().at(100) == latent.cache_bits(100) == 8 * 7 * 100
    # decoding meets latents, of 5 numbers twice and 2 rotated ones; a prompt meets keys and values
    assert latent.work().at(100) == 2 * 4 * (5 + 5 + 2) * 100
    assert latent.prefill_work().at(100) == 2 * 4 * (3 + 2 + 3) * 100
    chosen = mechanism("dsa", topk=6, index_dim=2, **sizes)
    assert chosen.fetched().at(100) == 8 * (7 * 6 + 2 * 100)


def test_states_are_read_whole_and_entries_as_chosen() -> None:
    state = mechanism("gdn", heads=2, head_dim=3, conv=4, format="p8", state_format="p16")
    # 2 matrices of 9 numbers; the last 3 inputs of 2 x 3 channels of q, k and v
    assert state.fetched().at(100) == 16 * 18 + 8 * 3 * 18
    sizes = {"heads": 4, "head_dim": 3, "ratio": 4, "size": 7, "format": "p8"}
    chosen = mechanism("compressed", topk=5, index_heads=1, index_dim=2, **sizes)
    assert chosen.fetched().at(100) == 8 * (2 * 25 + 3 * 5 + 3 * 7)
    assert mechanism("compressed", **sizes).fetched().at(100) == 8 * (3 * 25 + 3 * 7)


def test_buckets_of_log_linear_attention_are_counted_by_powers_of_two() -> None:
    part = mechanism("loglinear", heads=1, head_dim=2, format="p8")
    assert [part.fetched().at(t) // (8 * 4) for t in (1, 2, 3, 4, 2**20)] == [1, 2, 2, 3, 21]

"""Layers whose indexer chooses tokens for all heads at once read as full ones do, one token at a
time: real layers of DeepSeek sparse attention that choose two tokens of hundreds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

from separatrix.core.numbers.selection import selection_lead
from separatrix.mixers import Mixer
from separatrix.mixers import mixer as mixer_for
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.theory import judge, recheck
from separatrix.theory.solves.places import full_heads

SIZES = "heads=2, head_dim=32, value_dim=16, latent=48, rope_dim=32, index_heads=2, index_dim=64"
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
STILL = 32
"""The first number of the indexer that no rotation turns."""


def empty(width: int, queries: str, format: str) -> tuple[Mixer, Mapping[str, Tensor]]:
    spec = f"dsa({SIZES}, topk=2, positions=none, {queries} format={format})"
    part = Architecture.parse(spec).only
    assert part is not None
    mixer = mixer_for(part, width=width).requires_grad_(False)
    weights = dict(mixer.named_parameters())
    for weight in weights.values():
        weight.zero_()
    return mixer, weights


def asking(weights: Mapping[str, Tensor], numbers: list[int]) -> list[int]:
    """Where maps of queries find these numbers of the stream: in a latent, or there."""
    if "a.weight" not in weights:
        return numbers
    for place, number in enumerate(numbers):
        weights["a.weight"][place, number] = 1
    return list(range(len(numbers)))


def by_offset(
    mixer: Mixer, weights: Mapping[str, Tensor], one: int, start: int, back: int, tokens: int
) -> float:
    """Writes both queries for the token so many places back; the largest score of a head."""
    rotation = mixer.mechanism.rotation
    assert rotation is not None
    lead = selection_lead(rotation, tokens, mixer.mechanism.format, normed=True)
    assert lead is not None
    assert lead.holds
    half = rotation.dims // 2
    first = torch.tensor(rotation.frequencies, dtype=torch.float64)
    shares = lead.ratio ** torch.arange(half, dtype=torch.float64)
    shares /= shares.sum()
    turn = first * back
    query = torch.cat([shares * turn.cos(), -shares * turn.sin()]).float()
    score = 2 * (math.log(tokens + 1) + 17) / (lead.gap - lead.rounding)
    (at,) = asking(weights, [one])
    # a latent of one number is normed to the root of how many there are
    scale = 32**0.5 if "a.weight" in weights else 1.0
    for map_, rows, size in (("q", slice(32, 64), score), ("index_q", slice(0, 32), 1.0)):
        weights[f"{map_}.weight"][rows, at] = query * size / scale
    weights["r.weight"][:half, one] = 1
    # the start token's key has no rotation to lead by
    weights["r.weight"][:, start] = -weights["r.weight"][:, one]
    weights["index_norm.bias"][:half] = 1
    weights["index_w.weight"][0, one] = 1
    return score * (1 - (lead.gap - lead.rounding) / 2)


@torch.no_grad()
@pytest.mark.parametrize("format", ["fp32", "bf16"])
@pytest.mark.parametrize("queries", ["", "query_latent=32,"])
@pytest.mark.parametrize("back", [1, 150])
def test_the_token_at_an_offset_and_a_start_token_are_chosen(
    format: str, queries: str, back: int
) -> None:
    """Every token reads the one so many places back; where there is none, the start token, whose
    values are 0.
    """
    generator = torch.Generator().manual_seed(back)
    dtype, bits, tokens = DTYPES[format], 8, 400
    x = torch.zeros(3, tokens, 2 + bits)
    x[..., 0] = 1
    x[:, 0, 1] = 1
    x[:, 1:, 2:] = 2.0 * torch.randint(2, (3, tokens - 1, bits), generator=generator) - 1
    mixer, weights = empty(2 + bits, queries, format)
    score = by_offset(mixer, weights, 0, 1, back, tokens)
    # the latent holds what is read, and the start token's number, which unturned numbers ask for
    for number in range(bits):
        weights["c.weight"][number, 2 + number] = 1
        weights["v.weight"][number, number] = 1
        weights["o.weight"][2 + number, number] = 1
    weights["c.weight"][bits, 1] = 1
    (at,) = asking(weights, [0])
    scale = 32**0.5 if queries else 1.0
    weights["k.weight"][0, bits] = 1
    weights["q.weight"][0, at] = score / 48**0.5 / scale
    # the indexer likes the start token more than any other, so that it is always one of two
    for number, sign in ((STILL, 1.0), (STILL + 1, -1.0)):
        weights["index_k.weight"][number, 1] = sign
        weights["index_norm.weight"][number] = 1
        weights["index_q.weight"][number, at] = sign / scale
    y = mixer.to(dtype)(x.to(dtype))[..., 2:].float()
    assert torch.equal(y[:, 1 + back :].sign(), x[:, 1 : tokens - back, 2:])
    assert y[:, 1 + back :].abs().min() > 2
    assert y[:, : 1 + back].abs().max() < 0.1


@torch.no_grad()
@pytest.mark.parametrize("format", ["fp32", "bf16"])
@pytest.mark.parametrize("queries", ["", "query_latent=32,"])
def test_the_token_with_some_contents_is_chosen(format: str, queries: str) -> None:
    """Tokens hold a key and a payload; each asks for a key that one earlier token has. Keys are
    told in the indexer beside their negatives, behind its LayerNorm.
    """
    generator = torch.Generator().manual_seed(5)
    dtype, bits, tokens = DTYPES[format], 9, 400
    keys = torch.stack([torch.randperm(tokens, generator=generator) for _ in range(3)])
    code = 2.0 * (torch.arange(512)[:, None] >> torch.arange(bits) & 1) - 1
    places = (torch.rand(3, tokens, generator=generator) * torch.arange(tokens)).long()
    asked = keys.gather(1, places)
    payload = 2.0 * torch.randint(2, (3, tokens, 6), generator=generator) - 1
    x = torch.cat([torch.ones(3, tokens, 1), code[keys], code[asked], payload], -1)
    mixer, weights = empty(x.shape[-1], queries, format)
    at = asking(weights, [1 + bits + b for b in range(bits)])
    for b in range(bits):
        weights["c.weight"][b, 1 + b] = 1
        weights["k.weight"][b, b] = 1
        weights["q.weight"][b, at[b]] = 16
        for number, sign in ((STILL + 2 * b, 1.0), (STILL + 2 * b + 1, -1.0)):
            weights["index_k.weight"][number, 1 + b] = sign
            weights["index_norm.weight"][number] = 1
            weights["index_q.weight"][number, at[b]] = sign
    weights["index_w.weight"][0, 0] = 1
    for number in range(6):
        weights["c.weight"][bits + number, 1 + 2 * bits + number] = 1
        weights["v.weight"][number, bits + number] = 1
        weights["o.weight"][number, number] = 1
    y = mixer.to(dtype)(x.to(dtype))[..., :6].float()
    assert torch.equal(y.sign(), payload.gather(1, places[..., None].expand(-1, -1, 6)))


def test_what_an_indexer_does_not_tell_stays_open() -> None:
    """One choice for all heads: no two tokens at once. Bits stand beside their negatives, so that
    64 dimensions of which 32 turn compare 16; queries of few numbers ask for no offset.
    """
    for spec, task, status in (
        (f"dsa({SIZES}, positions=none)*2", "recall:n=300,K=1024,V=64", "SOLVABLE"),
        # 10 bits and 2 tags, of 16 and of 10
        (f"dsa({SIZES}, positions=none, query_latent=10)*2", "recall:n=300,K=1024,V=64", "OPEN"),
        (f"dsa({SIZES}, positions=none)*2", "recall:n=300,K=30000,V=64", "OPEN"),
        (f"dsa({SIZES}, positions=none)*2", "equality:n=200", "SOLVABLE"),
        (f"dsa({SIZES}, positions=none, topk=1)*2", "equality:n=200", "OPEN"),
        # two tokens before, and digits of a place, take several heads of one layer
        (f"dsa({SIZES}, positions=none)*2", "cgram:n=100,V=16,c=2", "OPEN"),
        (f"dsa({SIZES}, positions=none)*40", "khop:n=128,V=16,k=4", "OPEN"),
        (f"dsa({SIZES}, positions=none)*9", "parity:n=512", "SOLVABLE"),
        (f"dsa({SIZES}, positions=none)*8", "parity:n=512", "OPEN"),
        # its indexer turns nothing
        ("indexed(rope=true, head_dim=64, positions=none, topk=16)*9", "parity:n=512", "OPEN"),
        (f"dsa({SIZES}, positions=none)", "eva:n=300,V=16", "SOLVABLE"),
        ("indexed(rope=true, head_dim=64, positions=none, topk=16)", "eva:n=300,V=16", "OPEN"),
        ("indexed(rope=true, head_dim=64, positions=none, topk=512)", "eva:n=300,V=16", "SOLVABLE"),
    ):
        stack = Architecture.parse(spec)
        assert not any(one.choice for one in full_heads(stack))
        verdicts = judge(stack, parse_task(task))
        for verdict in verdicts:
            recheck(verdict)
        assert {v.status for v in verdicts} == {status}, (spec, task, verdicts)

"""Full layers without rotations count places by equal weights behind a start token: every average
in bf16 up to 2^20 tokens, and two real layers in turn.
"""

from __future__ import annotations

import pytest
import torch

from separatrix.mixers import mixer as mixer_for
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.theory import judge, recheck
from separatrix.theory.solves.places import MOST_CHANNELS, MOST_COUNTED, STEP, averaging
from separatrix.theory.solves.room import SEEN_WHOLE


def test_few_places_in_a_row_look_alike_and_a_second_average_tells_these() -> None:
    t = torch.arange(MOST_COUNTED + 2, dtype=torch.float64)
    first = (1 / (t.float() + 1)).bfloat16()
    _, alike = torch.unique_consecutive(first, return_counts=True)
    ends = alike.cumsum(0)
    assert (alike[:-1] <= ends[:-1] / 128 + 2).all()
    for tokens in (2, 100, 4096, 131_072, MOST_COUNTED):
        assert len(first[: tokens + 1].unique()) <= 128 * (tokens + 1).bit_length() + 1
    # in fp32 no two look alike
    single = 1 / (t.float() + 1)
    assert (single[1:] < single[:-1]).all()
    # no channel falls with the count k, and one rises from each to the next
    k = torch.arange(1, STEP * MOST_CHANNELS + 1)
    rises = torch.zeros(len(k) - 1, dtype=torch.bool)
    for number in range(1, MOST_CHANNELS + 1):
        most = torch.tensor(float(STEP * number), dtype=torch.bfloat16)
        assert int(most) == STEP * number
        y = ((k - int(most)).float() / (k + 1).float()).bfloat16()
        assert (y[1:] >= y[:-1]).all()
        rises |= y[1:] > y[:-1]
    assert rises.all()


@torch.no_grad()
@pytest.mark.parametrize("options", ["", "gate=sigmoid,", "sink=true,"])
def test_two_layers_in_bf16_tell_every_place(options: str) -> None:
    tokens, bits, channels = 900, 12, 2
    spec = f"full(heads=1, head_dim=16, value_dim=4, {options} positions=none, format=bf16)"
    part = Architecture.parse(spec).only
    assert part is not None
    width = 2 + bits
    one, two = (mixer_for(part, width=width).requires_grad_(False) for _ in range(2))
    for mixer in (one, two):
        for weight in mixer.parameters():
            weight.zero_()
    weights = dict(one.named_parameters()), dict(two.named_parameters())
    for each in weights:
        if options.startswith("sink"):
            each["sink"].fill_(-1e4)
    # a gate with a map of 0 is a half, which the output map takes back
    whole = 2.0 if options.startswith("gate") else 1.0
    x = torch.zeros(1, tokens + 1, width)
    x[:, 1:, 0] = 1
    x[:, 0, 1] = 1
    weights[0]["v.weight"][0, 1] = 1
    weights[0]["o.weight"][0, 0] = whole
    y = one.bfloat16()(x.bfloat16())[0, :, 0]
    # the same of every prompt; weights that are divided first round once more than the quotient
    assert torch.allclose(y.float(), 1 / torch.arange(1, tokens + 2).float(), rtol=2.0**-7)
    assert (y[1:] <= y[:-1]).all()
    values, code = y.unique(return_inverse=True)
    assert len(values) <= 1 << bits
    x[0, 1:, 2:] = 2.0 * (code[1:, None] >> torch.arange(bits) & 1) - 1
    for b in range(bits):
        weights[1]["q.weight"][b, 2 + b] = 16
        weights[1]["k.weight"][b, 2 + b] = 16
    weights[1]["q.weight"][bits, 0] = 16
    weights[1]["k.weight"][bits, 1] = 16 * bits
    for number in range(channels):
        weights[1]["v.weight"][number, 0] = 1
        weights[1]["v.weight"][number, 1] = -STEP * (number + 1)
        weights[1]["o.weight"][number, number] = whole
    y = two.bfloat16()(x.bfloat16())[0, 1:, :channels]
    # the place in its run, counted from 1
    start = torch.cat([torch.tensor([True]), code[2:] != code[1:-1]])
    first = torch.arange(tokens)[start][start.cumsum(0) - 1]
    k = torch.arange(tokens) - first + 1
    assert k.max() <= STEP * channels
    for j in range(channels):
        told = (k - STEP * (j + 1)).float() / (k + 1).float()
        assert torch.allclose(y[:, j].float(), told, rtol=2.0**-7, atol=2.0**-20)
    found = torch.cat([code[1:, None].float(), y.float()], 1)
    assert len(found.unique(dim=0)) == tokens


def test_how_far_full_layers_count() -> None:
    for spec, index, tokens, layers in (
        ("full*3 @ positions=none", 2, 5000, (0,)),
        ("full*3 @ positions=none", 0, 5000, ()),
        ("full*3 @ positions=none, bf16", 2, 5000, (0, 1)),
        ("full*3 @ positions=none, bf16", 1, 5000, ()),
        ("full*3 @ positions=none, bf16, value_dim=1", 2, 5000, (0, 1)),
        # 41 tokens alike are one channel, 97 are two
        ("full*3 @ positions=none, bf16, value_dim=1", 2, 12_200, ()),
        ("full*3 @ positions=none, bf16, head_dim=12", 2, 5000, (0, 1)),
        ("full*3 @ positions=none, bf16, head_dim=11", 2, 5000, ()),
        ("full*3 @ positions=none, fp16", 2, 5000, ()),
        ("full*3 @ positions=none, rope=true", 2, 5000, ()),
        ("full*3 @ positions=alibi", 2, 5000, ()),
        ("full*3 @ positions=none, softcap=30", 2, 5000, ()),
        ("full*3 @ positions=none, qk_norm=head", 2, 5000, ()),
        ("full*3 @ positions=none, accumulator=bf16", 2, 5000, ()),
        ("full*3 @ positions=none", 2, MOST_COUNTED + 1, ()),
        ("(full + gdn)*3 @ positions=none, bf16, head_dim=32", 5, 5000, (0, 2)),
    ):
        assert averaging(Architecture.parse(spec), index, tokens) == layers, (spec, index)


def test_what_rests_on_places_that_full_layers_count() -> None:
    """Without positions a layer or two more do what embeddings of places do, but digit by digit."""
    for spec, task, status in (
        ("full(positions=none)*2", "eva:n=500,V=16", "SOLVABLE"),
        ("full(positions=none)", "eva:n=500,V=16", "OPEN"),
        ("full(positions=none)*3 @ bf16", "eva:n=500,V=16", "SOLVABLE"),
        ("full(positions=none)*3", "copying:n=64,V=16", "SOLVABLE"),
        ("full(positions=none)*2", "copying:n=64,V=16", "OPEN"),
        ("full(positions=none)*3", "equality:n=100", "SOLVABLE"),
        ("full(positions=none)*2", "equality:n=100", "OPEN"),
        ("full(positions=none)*3", "recall:n=300,K=1024,V=64", "SOLVABLE"),
        ("full(positions=none, rope=true) + full(positions=none)", "copying:n=64,V=16", "OPEN"),
        ("full(positions=none)*4", "dyck:n=64,k=2,D=8", "SOLVABLE"),
        ("full(positions=none)*3", "dyck:n=64,k=2,D=8", "OPEN"),
        ("full(positions=none)*6", "permutation:n=64,k=5", "SOLVABLE"),
    ):
        verdicts = judge(Architecture.parse(spec), parse_task(task))
        for verdict in verdicts:
            recheck(verdict)
        assert {v.status for v in verdicts} == {status}, (spec, task, verdicts)


def test_a_start_token_has_its_place_in_windows_too() -> None:
    """65 tokens fill a chunk or a window, and the start token is one more."""
    for spec, task, status in (
        ("chunked(size=65, positions=none)*2", "eva:n=64,V=16", "OPEN"),
        ("chunked(size=66, positions=none)*2", "eva:n=64,V=16", "SOLVABLE"),
        ("window(size=65, positions=none)*2", "eva:n=64,V=16", "OPEN"),
        ("full(positions=none) + chunked(size=65, positions=none)", "eva:n=64,V=16", "OPEN"),
        ("full(positions=none) + chunked(size=66, positions=none)", "eva:n=64,V=16", "SOLVABLE"),
        # which rotations alone do not need
        ("window(size=65, rope=true, positions=none)", "eva:n=64,V=16", "SOLVABLE"),
        ("full(accumulator=p32, positions=none) + full(positions=none)", "eva:n=64,V=16", "OPEN"),
        ("full(accumulator=p32, positions=none)", "parity:n=64", "OPEN"),
    ):
        verdicts = judge(Architecture.parse(spec), parse_task(task))
        assert {v.status for v in verdicts} == {status}, (spec, task, verdicts)
    stack = Architecture.parse("gdn + full(positions=none)*4")
    (verdict,) = judge(stack, parse_task("seqcomp:L=2,n=64"))
    assert any(said.startswith("positions: ") for said in verdict.assumptions)
    # and a long stack is judged in no time
    long = Architecture.parse("full(positions=none, format=fp16)*3000")
    assert not averaging(long, len(long), 500)
    assert len(long.equal_weights) == 0


def test_windows_that_just_hold_a_prompt_serve_what_takes_no_token_beside_it() -> None:
    """One token more is needed for a start token alone: full layers that would count with one
    beside are no hindrance.
    """
    whole = "window(size=65, rope=true, positions=none)"
    for spec, task, status in (
        (f"full(positions=none) + {whole}", "eva:n=64,V=16", "SOLVABLE"),
        (f"{whole}*3 + full(positions=none)", "seqcomp:L=2,m=31,n_1=1", "SOLVABLE"),
        ("full + window(size=65)", "copying:n=32,V=16", "SOLVABLE"),
        ("window(size=64)*2", "copying:n=32,V=16", "OPEN"),
        (f"{whole}*2", "equality:n=32", "SOLVABLE"),
        (f"{whole.replace('65', '64')}*2", "equality:n=32", "OPEN"),
        (whole.replace("65", "64"), "parity:n=64", "SOLVABLE"),
        (f"{whole.replace('65', '64')} @ bf16", "parity:n=64", "OPEN"),
    ):
        stack = Architecture.parse(spec)
        verdicts = judge(stack, parse_task(task))
        assert {v.status for v in verdicts} == {status}, (spec, task, verdicts)
        for verdict in verdicts:
            recheck(verdict)
            assert (SEEN_WHOLE in verdict.assumptions) == (status == "SOLVABLE")

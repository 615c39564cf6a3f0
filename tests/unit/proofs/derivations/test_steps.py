"""The evaluators of a head's options: what mixers with drawn weights compute lies within them, and
what none covers is refused.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.each import each

from separatrix.core.errors import CheckFailed
from separatrix.core.numbers.rotary import Rotation
from separatrix.mixers import mixer
from separatrix.mixers.base.mixer import DTYPES
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.proofs.arithmetic import arithmetic
from separatrix.proofs.derivations.parts.compared import at_any_distance
from separatrix.proofs.derivations.parts.steps import Step, Where, own_group, steps
from separatrix.proofs.machine import Enclosure, Scores
from separatrix.stacks.architecture import Architecture

WIDTH = 5
TOKENS = 7


def drawn(spec: str, seed: int = 0) -> SoftmaxMixer:
    """One head's mixer, with kernels of the newest token only."""
    torch.manual_seed(seed)
    (part,) = Architecture.parse(f"{spec} @ heads=1, head_dim=6").layers[0]
    made = mixer(part, width=WIDTH)
    assert isinstance(made, SoftmaxMixer)
    with torch.no_grad():
        for name, tensor in made.named_parameters():
            tensor.copy_(torch.randn_like(tensor))
            if name == "conv.weight":
                tensor[:, :-1] = 0
    return made.requires_grad_(False)


def within(real: np.ndarray, held: Enclosure) -> bool:
    return bool(((held.low <= real) & (real <= held.high)).all())


def behind(found: tuple[Step, ...], kind: str, rows: Enclosure, places: Where) -> Enclosure:
    for step in found:
        rows = step.mapped(kind, rows, places, "here")  # pyright: ignore[reportArgumentType]
    return rows


@each(
    "spec",
    [
        "full",
        "full(conv=3)",
        "full(qk_norm=head)",
        "full(qk_norm=each)",
        "full(qk_norm=all)",
        "full(rope=true)",
        "full(rope=true, rope_dim=4)",
        "full(conv=2, qk_norm=all, rope=true, rope_dim=2, rope_scaling=linear_4)",
    ],
)
@each("format", ["fp32", "fp64", "bf16", "fp16"])
@each("seed", range(2))
def test_queries_keys_and_values_lie_within(spec: str, format: str, seed: int) -> None:
    rounding = arithmetic(format)
    made = drawn(spec, seed).to(DTYPES[format])
    x = torch.randn(1, TOKENS, WIDTH).to(DTYPES[format])
    projected = made.q(x), made.k(x), made.v(x)
    computed = dict(zip("qkv", made._qkv(made._project(x)), strict=True))
    found = steps(made, 0, "layer 1")
    places = np.arange(TOKENS)
    for kind, given in zip("qkv", projected, strict=True):
        whole = Enclosure.point(given[0].double().numpy(), rounding)
        real = computed[kind][0, 0].double().numpy()
        alone = behind(found, kind, whole, places)
        assert within(real, alone)
        # a norm rounds three times, by a unit each
        sharp = 40 * float(rounding.stored) + 1e-5
        assert float(alone.rad.max()) <= sharp * max(1.0, float(alone.size.max()))
        # at any place
        assert within(real, behind(found, kind, whole.hull(), None))


@each("spec", ["full(rope=true, rope_base=90)", "full(rope=true, rope_dim=2, qk_norm=head)"])
@each("format", ["fp32", "fp64", "bf16", "fp16"])
@each("most", [1, 6, 90, 700])
def test_scores_lie_within_wherever_both_tokens_stand(spec: str, format: str, most: int) -> None:
    """Slow pairs and fast ones, from one place to the whole prompt between the two."""
    made = drawn(f"{spec}", most).to(DTYPES[format])
    x = torch.randn(TOKENS, 1, 1, WIDTH).to(DTYPES[format])
    x[0] = 0
    rows = [
        Enclosure.point(part(x)[:, 0, 0].double().numpy(), arithmetic(format))
        for part in (made.q, made.k)
    ]
    found = steps(made, 0, "layer 1")
    queries, keys = (
        behind(found, kind, one, "apart") for kind, one in zip("qk", rows, strict=True)
    )
    scores = Scores(keys, queries.used, "here").of(queries)
    errors = scores.errors(queries)[:, None]
    top = at_any_distance(queries.mid, keys.mid, made.mechanism.rotation, most, arithmetic(format))
    rng = np.random.default_rng(most)
    pairs = [(0, most), (most, most), *np.sort(rng.integers(most + 1, size=(4, 2))).tolist()]
    for first, last in pairs:
        q, k = (
            torch.stack([_at(made, row, place)[kind] for row in x]).to(DTYPES[format])
            for kind, place in ((0, last), (1, first))
        )
        summed = torch.promote_types(q.dtype, torch.float32)
        real = (q.to(summed) @ k.to(summed).T).double().numpy()
        assert (real <= top.queries @ top.keys.T + errors).all()
        assert (real.diagonal() >= top.own - errors[:, 0]).all()


def test_keys_that_are_alike_but_for_the_end_of_float64_are_one_value() -> None:
    """A norm in float64 leaves them so: 8,192 codes of 13 bits had 68 values in a pair."""
    rotation = Rotation(90, 2)
    rng = np.random.default_rng(0)
    keys = rng.choice([-1.0, 1.0], (200, 2)) * 6.27 * (1 + rng.random((200, 2)) * 2.0**-48)
    queries = rng.standard_normal((200, 2))
    told = at_any_distance(queries, keys, rotation, 1, arithmetic("fp32"))
    apart = np.outer(queries[:, 0], keys[:, 0]) + np.outer(queries[:, 1], keys[:, 1])
    most = told.queries @ told.keys.T
    assert told.keys.shape[1] < 64
    assert (apart <= most).all()
    assert (told.own <= apart.diagonal()).all()
    with pytest.raises(CheckFailed, match="200 values in one pair"):
        at_any_distance(
            queries, keys * (1 + rng.random((200, 2)) / 8), rotation, 1, arithmetic("fp32")
        )


def _at(made: SoftmaxMixer, row: torch.Tensor, place: int) -> list[torch.Tensor]:
    """A token's query and key at a place."""
    rows = torch.cat([torch.zeros(1, place, WIDTH).to(row), row], 1)
    return [part[0, 0, -1] for part in made._qkv(made._project(rows))[:2]]


@each("spec", ["full(gate=sigmoid)", "full(gate=head)"])
@each("format", ["fp32", "bf16", "fp16"])
def test_gated_outputs_lie_within(spec: str, format: str) -> None:
    made = drawn(spec).to(DTYPES[format])
    assert made.gate is not None
    x = torch.randn(TOKENS, WIDTH).to(DTYPES[format])
    y = torch.randn(TOKENS, 6).to(DTYPES[format])
    real = (made.gate(x).sigmoid() * y).double().numpy()
    (step,) = steps(made, 0, "layer 1")
    outputs, inputs = (
        Enclosure.point(rows.double().numpy(), arithmetic(format)) for rows in (y, x)
    )
    assert within(real, step.given(outputs.hull(), inputs.hull(), "here"))
    first = slice(0, 1)
    one = step.given(outputs.rows(first), inputs.rows(first), "here")
    assert within(real[:1], one)
    assert float(one.rad.max()) < 16 * float(arithmetic(format).stored) + 1e-5


def test_the_score_of_a_sink() -> None:
    made = drawn("full(sink=true)")
    (step,) = steps(made, 0, "layer 1")
    assert made.sink is not None
    assert step.rival == made.sink[0].double().item()


def test_what_has_no_evaluator_is_refused() -> None:
    with pytest.raises(CheckFailed, match="full with softcap"):
        steps(drawn("full(softcap=30)"), 0, "layer 1")
    made = drawn("full(conv=3)")
    assert made.conv is not None
    made.conv.weight[3, 1] = 2.0**-120
    with pytest.raises(CheckFailed, match="mixes tokens"):
        steps(made, 0, "layer 1")
    with pytest.raises(CheckFailed, match="not zero"):
        own_group(np.array([[0.0], [1.0]]), 0, 4, "its norm")

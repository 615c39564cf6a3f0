"""Enclosures of the residual stream, of averages and of leads: the model's own numbers lie within
them, and by hand they are no smaller than they must be.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch

from separatrix.constructions import Built, construct
from separatrix.core.errors import CheckFailed
from separatrix.proofs.arithmetic import FP32
from separatrix.proofs.derivations import seqcomp
from separatrix.proofs.derivations.parts.chain import full_fetch
from separatrix.proofs.derivations.parts.live_parts import live_parts
from separatrix.proofs.derivations.parts.queries import Queries, Wanted, winning
from separatrix.proofs.derivations.parts.reading import averaged, readout
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.derivations.seqcomp import carry
from separatrix.proofs.machine import Enclosure, Scores
from separatrix.proofs.softmax import mixing
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Eva, SeqComp

TASK = SeqComp(L=2, m=3, branching=(2,))


@pytest.mark.parametrize("carrier", [None, "gdn", "linear", "linear(feature=identity)"])
def test_the_stream_holds_what_the_model_computes(carrier: str | None) -> None:
    stack = None if carrier is None else f"{carrier} + full*2 @ heads=1, head_dim=6, value_dim=4"
    kind = "seqcomp" if carrier is None else "carried"
    built = construct(TASK, None if stack is None else Architecture.parse(stack), kind)
    # positions differ in what no head reads: the views by token and by place both hold it
    built.model.position.weight[1, 0] += 0.25
    batch = TASK.sample(60, np.random.default_rng(2))
    tokens = torch.from_numpy(batch.tokens)
    stream = Stream.of(built.model, TASK.length, TASK.w_values)
    hops = seqcomp.hops(TASK)
    with torch.inference_mode():
        x = built.model._embed(tokens)
        value = np.zeros(len(tokens), np.int64)
        holds(stream, x.double().numpy(), batch.tokens, value)
        for number, part in enumerate(live_parts(built.model)):
            hop = hops[number]
            if number == 2:
                break
            if carrier and number == 0:
                at_z0 = Stream.of(built.model, TASK.position_z0 + 1, TASK.m).last
                stream = carry(stream, part, hop, TASK.position_z0, at_z0).stream
            else:
                stream = full_fetch(stream, part, hop).stream
            x = built.model.blocks[number](x)
            place = np.asarray(hop.place(hop.part[batch.tokens[:, -1]], value))
            value = batch.tokens[np.arange(len(tokens)), place]
            holds(stream, x.double().numpy(), batch.tokens, value)


def holds(stream: Stream, x: np.ndarray, tokens: np.ndarray, value: np.ndarray) -> None:
    within(x, stream.by_place.low, stream.by_place.high)
    within(x, stream.by_token.low[tokens], stream.by_token.high[tokens])
    last = tokens[:, -1]
    field = stream.field.used
    low = np.where(field, stream.field.low[value], stream.last.low[last])
    high = np.where(field, stream.field.high[value], stream.last.high[last])
    within(x[:, -1], low, high)
    row = stream.at_last()
    within(x[:, -1], row.low, row.high)


def within(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    assert (low <= x).all()
    assert (x <= high).all()


def test_an_average_is_off_by_mixing_and_by_what_is_flushed() -> None:
    value = Enclosure.point(np.array([[1.0, 2.0**-126, 0.0]]))
    seen = Enclosure(np.zeros((1, 3)), np.array([[4.0, 2.0**-126, 0.0]]))
    found = averaged(value, seen, 9, Fraction(1, 7), "layer 1")
    exact = float(mixing(9, Fraction(1, 7)))
    assert found.rad[0, 0] == pytest.approx(4 * exact, rel=1e-6)
    assert found.rad[0, 0] >= 4 * exact
    # nine weights, products and sums may each be flushed
    assert found.rad[0, 1] >= 27 * 2.0**-126
    assert found.rad[0, 2] == 0
    with pytest.raises(CheckFailed, match="sum of"):
        averaged(value, Enclosure.point(np.full((1, 3), 2.0**124)), 9, Fraction(0), "layer 1")


def test_scores_of_other_positions_may_not_overflow_either() -> None:
    """Position 0 asks with 2^126: infinity there would be no number in the next layer."""
    built = construct(Eva(n=4, V=3))
    part = live_parts(built.model)[0]
    column = int(part.full_head().q[0].nonzero()[0][0])
    built.model.position.weight[0, column] = 2.0**123
    stream = Stream.of(built.model, 5, 4)
    hop = Wanted("f(x)", 3, np.arange(4), lambda x, before: x)
    with pytest.raises(CheckFailed, match="overflow"):
        full_fetch(stream, part, hop)


def test_what_a_query_is_off_by_counts_as_keys_differ() -> None:
    """Keys that agree in 1,000 and differ by 1, a query of 1 in both, off by 1/4 and 1/8: of this
    1/8 is left, and two roundings of each score; sizes whose digits fit are rounded all the same.
    """
    queries = Queries.alone(Enclosure(np.ones((1, 2)), np.array([[0.25, 0.125]])))
    keys = Enclosure.point(np.array([[1000.0, 0.0], [1000.0, 1.0]]))
    lead = queries.lead(Scores(keys, queries.used, "scores"), Wanted.each("x", np.array([1])))
    assert lead is not None
    assert (lead.gap, lead.rival) == (1.0, 0)
    assert lead.error == pytest.approx(2 * float(FP32.summed) * 1251.125, rel=1e-6)
    assert lead.least == pytest.approx(0.875 - 2 * lead.error, abs=1e-6)


def test_a_lead_counts_the_errors_of_both_scores() -> None:
    """One query, 3 (1/8 off) and 2 (1/4 off); keys 1 and 0."""
    queries = Queries.alone(Enclosure(np.array([[3.0, 2.0]]), np.array([[0.125, 0.25]])))
    keys = Enclosure.point(np.array([[1.0, 1.0], [0.0, 0.0]]))
    scores = Scores(keys, queries.used, "scores")
    hop = Wanted("x", 1, np.array([0]), lambda part, before: 0 * (part + before))
    lead = queries.lead(scores, hop)
    assert lead is not None
    assert (lead.gap, lead.rival) == (5.0, 1)
    # two roundings of 3 1/8 and of 2 1/4
    error = 0.375 + 2 * float(FP32.summed) * 5.375
    assert lead.error == pytest.approx(error, rel=1e-9)
    assert lead.least == pytest.approx(5 - 2 * error, rel=1e-9)
    assert winning(lead, "x: position") == lead
    with pytest.raises(CheckFailed, match="by rounding"):
        winning(replace(lead, least=0.0), "x: position")
    with pytest.raises(CheckFailed, match="position 1 scores no less"):
        winning(replace(lead, gap=0.0), "x: position")


def read_out(built: Built, off: float, other: float) -> float:
    """The margin for codes +-1 that are `off` off, and last tokens of which one writes `other` into
    the coordinate of the first bit.
    """
    head = built.model.head.weight.double().numpy()
    field = Enclosure(np.sign(head), np.abs(np.sign(head)) * off)
    last = np.zeros((2, head.shape[1]))
    column = int((head == 0).all(0).argmax())
    built.model.head.weight[0, column] = 1.0
    last[1, column] = other
    row = Enclosure.point(np.zeros((1, head.shape[1])))
    stream = Stream(
        by_place=row,
        by_token=row,
        last=Enclosure.point(last),
        field=field,
        parts=np.zeros(1, np.int64),
    )
    return float(readout(built.model, stream.rows()))


@pytest.mark.parametrize(("off", "other", "margin"), [(0.0, 0.0, 2.0), (0.125, 0.0, 1.75)])
def test_the_margin_counts_what_logits_do_not_share(
    off: float, other: float, margin: float
) -> None:
    """Two bits: codes that differ in one bit lead by 2, of which that bit takes 2 off."""
    built = construct(Eva(n=2, V=4))
    assert read_out(built, off, other) == pytest.approx(margin, abs=1e-5)


def test_every_last_token_counts() -> None:
    """One of two last tokens takes 1/2 from the first answer."""
    assert read_out(construct(Eva(n=2, V=4)), 0.0, -0.5) == pytest.approx(1.5, abs=1e-5)

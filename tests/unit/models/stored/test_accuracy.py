"""How often a model answers right: counted against the definition, on a stream that repeats."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import separatrix as sx
from separatrix.core.errors import SizeError
from separatrix.models.model import Model
from separatrix.models.stored.accuracy import fits, numbers_of, prompt_stream, reads, tally
from separatrix.tasks.base.task import NO_ANSWER

EVA = sx.parse_task("eva:n=4,V=4")


def drawn(text: str, task: sx.tasks.Task) -> Model:
    return sx.build(sx.Architecture.parse(text), task, width=8, seed=3)


MQAR = "mqar:input_seq_len=16,num_kv_pairs=2,vocab_size=8"


@pytest.mark.parametrize("text", [pytest.param("eva:n=4,V=4", marks=pytest.mark.slow), MQAR])
def test_counts_are_those_of_the_definition(text: str) -> None:
    task = sx.parse_task(text)
    model = drawn("full @ heads=1, head_dim=8", task)
    rng = prompt_stream(7)
    correct = right = due = 0
    bits: list[list[float]] = []
    for number in (256, 44):
        batch = task.sample(number, rng)
        with torch.no_grad():
            every = model.every(torch.from_numpy(batch.tokens)).double()
        for tokens, answers, logits in zip(*batch, every, strict=True):
            asked = {len(tokens) - 1: answers} if not task.several else dict(enumerate(answers))
            wanted = {place: int(one) for place, one in asked.items() if one != NO_ANSWER}
            found = [int(logits[place].argmax()) == one for place, one in wanted.items()]
            shares = {place: logits[place].softmax(-1)[one] for place, one in wanted.items()}
            correct += all(found)
            right += sum(found)
            due += len(found)
            bits.append([-math.log2(share) for share in shares.values()])
    assert 0 < correct < 300
    told = tally(model, task, 300, prompt_stream(7))
    assert (told.correct, told.right, told.due) == (correct, right, due)
    assert told.bits == pytest.approx(sum(map(sum, bits)) / due, rel=1e-6)
    squares = [(sum(one) / len(one)) ** 2 for one in bits]
    assert told.bits_squares == pytest.approx(sum(squares) / 300, rel=1e-6)


@pytest.mark.parametrize("name", ["bf16", pytest.param("fp16", marks=pytest.mark.slow)])
def test_states_rounded_when_tested_are_those_of_a_plain_loop(name: str) -> None:
    """Token by token, with the recurrent state rounded after each: the layers beside it and the
    inputs of a convolution are as they were.
    """
    task = sx.parse_task(MQAR)
    model = drawn("gdn(conv=3) + full + linear @ heads=1, head_dim=8", task)
    plain = tally(model, task, 60, prompt_stream(0))
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[name]
    tokens, targets = task.sample(60, prompt_stream(0))
    cache = model.init_cache(60)
    bits = 0.0
    right = 0
    for place in range(task.length):
        for states in cache:
            for state in states:
                state |= {k: state[k].to(dtype).float() for k in ("S", "Z") if k in state}
        with torch.no_grad():
            logits, cache = model.step(torch.from_numpy(tokens[:, place]), cache, place)
        due = targets[:, place] != NO_ANSWER
        wanted = torch.from_numpy(targets[due, place])
        each = logits[torch.from_numpy(due)]
        right += int((each.argmax(-1) == wanted).sum())
        bits -= float(each.double().log_softmax(-1).gather(1, wanted[:, None]).sum())
    told = tally(model, task, 60, prompt_stream(0), rounded=name)
    assert told.right == right
    assert told.bits * told.due * math.log(2) == pytest.approx(bits, rel=1e-6)
    # a rounding of a state is seen, and small
    assert 1e-7 < abs(told.bits - plain.bits) < 1e-2
    assert tally(model, task, 60, prompt_stream(0)) == plain
    # without a recurrent layer, nothing is rounded
    full = drawn("full + window(size=4) @ heads=1, head_dim=8", task)
    alike = [tally(full, task, 60, prompt_stream(0), rounded=name) for name in ("", "bf16")]
    assert replace(alike[1], close=0, close_answers=0) == replace(
        alike[0], close=0, close_answers=0
    )


def test_numbers_that_are_not_finite_are_wrong_and_stay_out_of_sums() -> None:
    model = drawn("full @ heads=1, head_dim=8", EVA)
    with torch.no_grad():
        model.head.bias[0] = float("inf")
    told = tally(model, EVA, 100, prompt_stream(0))
    assert math.isfinite(told.bits_squares)
    assert told.bits > 1e30


def test_prompts_run_in_small_batches_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model = drawn("full @ heads=1, head_dim=8", EVA)
    whole = tally(model, EVA, 300, prompt_stream(0))
    monkeypatch.setattr("separatrix.models.stored.accuracy.MOST_NUMBERS", 7 * numbers_of(model, 5))
    small = tally(model, EVA, 300, prompt_stream(0))
    # sums of float32 depend on the batch
    logs = {
        name: pytest.approx(getattr(whole, name), rel=1e-6) for name in ("bits", "bits_squares")
    }
    assert vars(small) == vars(whole) | logs


def test_what_rounding_may_turn_is_close() -> None:
    model = drawn("full @ heads=1, head_dim=8", EVA)
    assert tally(model, EVA, 300, prompt_stream(0)).close == 0
    with torch.no_grad():
        model.head.weight.zero_()
        model.head.bias.zero_()
    alike = tally(model, EVA, 300, prompt_stream(0))
    # every answer has the same logit, and the first of them is taken
    assert alike.close == 300
    assert 50 < alike.right == alike.correct < 100
    assert alike.bits == pytest.approx(2)


def test_streams_differ_by_seed_and_by_size() -> None:
    streams = [prompt_stream(0), prompt_stream(1), prompt_stream(0, 1), prompt_stream(0, 2)]
    streams.append(np.random.default_rng([0, 1]))
    assert len({int(stream.integers(1 << 62)) for stream in streams}) == 5


def test_tasks_that_a_model_cannot_read() -> None:
    longer = sx.parse_task("eva:n=6,V=8")
    model = drawn("full @ heads=1, head_dim=8", longer)
    reads(model, longer, longer)
    for other, said in (
        ("eva:n=6,V=9", "V=9"),
        ("eva:n=7,V=8", "places for 7"),
        ("parity:n=4", "parity"),
    ):
        with pytest.raises(SizeError, match=said):
            reads(model, longer, sx.parse_task(other))


def test_sizes_that_do_not_fit() -> None:
    model = drawn("full @ heads=1, head_dim=8", EVA)
    fits(model, EVA)
    for other in ("eva:n=5,V=4", "eva:n=4,V=5", "eva:n=3,V=3"):
        with pytest.raises(SizeError, match="does not fit"):
            fits(model, sx.parse_task(other))

"""How often a model answers right: counted against the definition, on a stream that repeats."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import separatrix as sx
from separatrix.errors import SizeError
from separatrix.model import Model
from separatrix.stored.accuracy import count_correct, fits, numbers_of, prompt_stream, reads, tally
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
    expected = 0
    for number in (256, 44):
        for tokens, due in zip(*task.sample(number, rng), strict=True):
            with torch.no_grad():
                answers = model.every(torch.from_numpy(tokens[None]))[0].argmax(-1).numpy()
            if task.several:
                expected += bool((answers == due)[due != NO_ANSWER].all())
            else:
                expected += bool(answers[-1] == due)
    assert 0 < expected < 300
    assert count_correct(model, task, 300, prompt_stream(7)) == expected


def test_prompts_run_in_small_batches_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model = drawn("full @ heads=1, head_dim=8", EVA)
    whole = tally(model, EVA, 300, prompt_stream(0))
    monkeypatch.setattr("separatrix.stored.accuracy.MOST_NUMBERS", 7 * numbers_of(model, 5))
    assert tally(model, EVA, 300, prompt_stream(0)) == whole


def test_what_rounding_may_turn_is_close() -> None:
    model = drawn("full @ heads=1, head_dim=8", EVA)
    assert tally(model, EVA, 300, prompt_stream(0)).close == 0
    with torch.no_grad():
        model.head.weight.zero_()
        model.head.bias.zero_()
    alike = tally(model, EVA, 300, prompt_stream(0))
    # every answer has the same logit, and the first of them is taken
    assert alike.close == 300
    assert 50 < alike.right < 100


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

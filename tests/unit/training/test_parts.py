"""Parts of the engine: schedules, streams of prompts, the layout of parameters, the probe."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import separatrix.training.probe as probe
from separatrix.models.model import build
from separatrix.models.stored.run import Run
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.tasks.base.task import NO_ANSWER
from separatrix.tasks.labels import asked, most_asked
from separatrix.training.engine import rate
from separatrix.training.step import Step, layout
from separatrix.training.stream import Prompts, Streams

MQAR = "mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=3"


def test_schedules() -> None:
    # 1000 steps warm up over 50; the middle of the rest is step 525, its end 1000
    expected = {
        "cosine": (0.02, 1.0, 0.55, 0.1),
        "linear": (0.02, 1.0, 0.55, 0.1),
        "constant": (0.02, 1.0, 1.0, 1.0),
    }
    for schedule, rates in expected.items():
        assert tuple(rate(schedule, step, 1000) for step in (0, 50, 525, 1000)) == pytest.approx(
            rates
        )
    # 10 steps of warm-up, then a third of the way: 0.1 + 0.9 (1 + cos 60 degrees) / 2
    assert rate("cosine", 10 + 10, 40) == pytest.approx(0.775)
    # a warm-up in steps is the same whatever N is
    for steps in (400, 9_600):
        assert [rate("constant", step, steps, 50) for step in (0, 24, 49, 50)] == [0.02, 0.5, 1, 1]


def test_streams_are_those_of_the_seeds_however_they_are_cut() -> None:
    """Every member reads its own seed's stream, batch after batch, as a plain loop would."""
    run = Run(architecture="full", task=MQAR, seed=0, steps=700, batch=3)
    streams = Streams(run, [5, 9, 5], torch.device("cpu"))
    task = parse_task(MQAR)
    plain = {seed: np.random.default_rng([seed, 1]) for seed in (5, 9)}
    for step in range(690):
        if step == 3:
            streams.keep([9, 5])
        drawn = streams.next()
        batches = {seed: task.sample(3, rng) for seed, rng in plain.items()}
        for member, seed in enumerate([5, 9, 5] if step < 3 else [9, 5]):
            assert (drawn.tokens[member].numpy() == batches[seed].tokens).all()
            assert drawn.places is not None
            for row, targets in enumerate(batches[seed].targets):
                places = np.flatnonzero(targets != NO_ANSWER)
                assert (drawn.places[member, row].numpy() == places).all()
                assert (drawn.answers[member, row].numpy() == targets[places]).all()


def test_a_batch_in_which_nothing_is_asked_has_no_loss() -> None:
    task = parse_task(MQAR)
    model = build(Architecture.parse("full @ heads=1, head_dim=4"), task, width=4)
    own = layout(model, muon=False)
    tokens = torch.from_numpy(task.sample(6, np.random.default_rng(0)).tokens).view(2, 3, -1)
    answers = torch.tensor([[[NO_ANSWER]] * 3, [[1], [NO_ANSWER], [2]]])
    rows = torch.stack([own.row(model)] * 2)
    step = Step(model, own, rows, [Run(architecture="full", task=MQAR, seed=0)] * 2)
    prompts = Prompts(tokens, torch.zeros_like(answers), answers)
    loss, accuracy = step.losses(step.rows, prompts)
    # the member beside it is asked twice, and its mean is over these
    assert (loss[0], accuracy[0]) == (0, 0)
    assert loss[1] > 0
    assert accuracy[1] in (0, 0.5, 1)


def test_how_often_a_prompt_asks() -> None:
    for text, most in (
        ("parity:n=9", 1),
        ("parity:n=9,queries=all", 9),
        ("parity:n=9,queries=2", 2),
        (MQAR, 3),
        # from half of the text on
        ("copying:n=6,V=8", 6),
    ):
        assert most_asked(parse_task(text)) == most


def test_prompts_that_are_asked_less_often_are_filled_up() -> None:
    targets = np.array([[-1, 4, -1, 5], [7, -1, -1, -1], [-1, -1, -1, -1]])
    places, answers = asked(parse_task(MQAR), targets)
    assert answers.tolist() == [[4, 5], [7, -1], [-1, -1]]
    assert places is not None
    assert places[0].tolist() == [1, 3]
    assert places[1, 0] == 0


def test_a_layout_has_every_parameter_once() -> None:
    architecture = Architecture.parse("full + gdn*1 @ heads=2, head_dim=4")
    model = build(architecture, parse_task(MQAR), width=8, seed=1)
    for muon in (True, False):
        chosen = layout(model, muon=muon)
        row = chosen.row(model)
        views = chosen.views(row)
        own = dict(model.named_parameters())
        assert set(views) == set(own)
        assert all((views[name] == own[name]).all() for name in own)
        assert chosen.numbers == sum(part.numel() for part in own.values()) == len(row)
        # embeddings and head decay but are no hidden matrices
        decaying = sum(own[name].numel() for name in own if own[name].dim() >= 2)
        hidden = sum(own[name].numel() for names in chosen.wide.values() for name in names)
        assert chosen.decayed + hidden == decaying
        assert hidden == (chosen.numbers - chosen.plain if muon else 0)
        for name in ("embed.weight", "position.weight", "head.weight"):
            assert views[name].storage_offset() < chosen.decayed
        again = build(architecture, parse_task(MQAR), width=8, seed=2)
        chosen.write(row, again)
        assert all(
            (a == b).all() for a, b in zip(model.parameters(), again.parameters(), strict=True)
        )
        stacked = chosen.views(torch.stack([row, 2 * row]))
        assert all((stacked[name][1] == 2 * own[name]).all() for name in own)
        start = chosen.plain
        for (shorter, longer), names in chosen.wide.items():
            for name in names:
                # all of them wide, one after another
                matrix = own[name] if own[name].shape == (shorter, longer) else own[name].mT
                assert (row[start:][: shorter * longer].view(shorter, longer) == matrix).all()
                start += shorter * longer


def test_settings_are_as_they_were_after_training(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = torch.get_num_threads()
    precision = torch.get_float32_matmul_precision()
    monkeypatch.setattr(probe, "onednn_is_accurate", lambda: True)
    try:
        torch.set_num_threads(2)
        with probe.quick_cpu("cpu"):
            assert torch.get_num_threads() == 1
            assert torch.get_float32_matmul_precision() == "medium"
        assert torch.get_num_threads() == 2
        assert torch.get_float32_matmul_precision() == precision
        # float32 is float32 on a GPU, too
        with probe.quick_cpu("cuda"):
            assert torch.get_float32_matmul_precision() == precision
    finally:
        torch.set_num_threads(threads)


def test_products_of_half_precision_fail_the_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a CPU where the same setting means bfloat16."""
    plain = torch.Tensor.__matmul__

    def rough(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if a.dtype == torch.float32:
            return plain(a.bfloat16(), b.bfloat16()).float()
        return plain(a, b)

    monkeypatch.setattr(torch.Tensor, "__matmul__", rough)
    assert not probe.onednn_is_accurate.__wrapped__()
    assert torch.get_float32_matmul_precision() == "highest"

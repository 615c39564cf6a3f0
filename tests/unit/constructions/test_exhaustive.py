"""Constructions answer every input of small sizes in every stack they fit, whatever else stands in
it, in the parallel form and token by token.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.construction_tools import wrong
from support.task_cases import CASES

from separatrix.constructions import construct
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Eva, Task, parse_task
from separatrix.tasks.base.task import Tokens


def every_input(task: Task) -> tuple[Tokens, Tokens]:
    """All prompts of a task and their answers, by its definition."""
    case = CASES[task.name]
    prompts = case.all_instances(task)
    return np.array(prompts), np.array([case.by_hand(task, list(prompt)) for prompt in prompts])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("eva:n=2,V=33", "retrieval"),
        ("eva:n=6,V=4", "retrieval"),
        ("seqcomp:L=1,m=5", "seqcomp"),
        ("seqcomp:L=3,m=2,n_1=1,n_2=2", "seqcomp"),
        ("seqcomp:L=4,m=2,n_1=1,n_2=1,n_3=1", "seqcomp"),
        ("twosum:n=4,M=5", "match2"),
        ("equality:n=9", "equality"),
        ("twosum:n=5,M=10,form=decision", "pairs"),
        ("twosum:n=8,M=4,form=decision", "pairs"),
        ("twosum:n=4,M=11", "match2-bits"),
        ("twosum:n=7,M=4", "match2-bits"),
    ],
)
def test_every_input_of_larger_sizes(text: str, kind: str) -> None:
    task = parse_task(text)
    assert not wrong(construct(task, kind=kind), *every_input(task))


@pytest.mark.parametrize(
    ("text", "stack"),
    [
        ("eva:n=4,V=4", "linear*3 + full @ heads=1, head_dim=8"),
        ("eva:n=4,V=4", "full + gdn @ heads=1, head_dim=8"),
        ("eva:n=4,V=4", "full*3 @ heads=4, head_dim=3"),
        ("eva:n=4,V=4", "full(kv_heads=1) @ heads=2, head_dim=8"),
        ("eva:n=4,V=4", "window + full(value_dim=2) + mlp + loglinear @ head_dim=3"),
        ("eva:n=4,V=4", "full|linear @ heads=2, head_dim=8"),
        ("eva:n=4,V=4", "gdn|full + sparse @ heads=2, head_dim=8"),
        ("eva:n=3,V=3", "sparse(block=2, topk=1) + full(heads=4, kv_heads=2) + window(size=3)"),
        ("twosum:n=3,M=5", "linear*3 + full @ heads=1, head_dim=8"),
        ("twosum:n=3,M=4", "full + gdn + linear @ heads=2, head_dim=3"),
        ("twosum:n=3,M=6", "linear|full @ heads=1, head_dim=4"),
        ("twosum:n=3,M=4", "(full|window(size=2))*2"),
        ("twosum:n=3,M=6", "linear + full @ positions=none, head_dim=4"),
        ("twosum:n=3,M=6,form=decision", "full + mlp + gdn + full @ positions=none"),
        ("twosum:n=3,M=6,form=decision", "full*3 @ heads=2, head_dim=5"),
        ("seqcomp:L=2,m=2,n_1=2", "full*5 @ heads=2, head_dim=4"),
        ("seqcomp:L=2,m=2,n_1=2", "full + gdn + full + linear + full @ heads=1, head_dim=4"),
        ("seqcomp:L=2,m=2,n_1=1", "full|window + full*2 @ heads=1, head_dim=4"),
        ("seqcomp:L=2,m=2,n_1=1", "(full|linear + gdn)*3"),
        ("equality:n=3", "linear + full + gdn + full(head_dim=2, value_dim=1)"),
        ("equality:n=3", "full|window(size=2) + full(kv_heads=1) @ heads=2, head_dim=4"),
        # heads with options
        ("twosum:n=3,M=6,form=decision", "full(rope=true, rope_dim=4, conv=3)*2 @ head_dim=8"),
        ("twosum:n=3,M=6,form=decision", "full(gate=sigmoid, sink=true)*2 @ positions=none"),
        ("equality:n=3", "full(rope=true, rope_dim=4, gate=sigmoid) + fox @ head_dim=8"),
    ],
)
def test_layers_that_are_not_used_add_nothing(text: str, stack: str) -> None:
    task = parse_task(text)
    architecture = Architecture.parse(stack)
    built = construct(task, architecture)
    assert built.record.architecture == architecture.spec == built.model.config.architecture
    assert not wrong(built, *every_input(task))


@pytest.mark.parametrize(
    "text",
    ["eva:n=5,V=4", "seqcomp:L=2,m=3,n_1=2", "seqcomp:L=3,m=2,n_1=2,n_2=2", "twosum:n=9,M=12"],
)
def test_token_by_token_gives_the_same_answers(text: str) -> None:
    task = parse_task(text)
    model = construct(task).model
    batch = task.sample(256, np.random.default_rng(5))
    tokens = torch.from_numpy(batch.tokens)
    cache = model.init_cache(256)
    logits = torch.empty(0)
    with torch.inference_mode():
        for t in range(task.length):
            logits, cache = model.step(tokens[:, t], cache, t)
        assert torch.equal(model.every(tokens)[:, -1].argmax(-1), logits.argmax(-1))
    assert (logits.argmax(-1).numpy() == batch.targets).all()


def test_the_answers_do_not_come_from_the_sampler() -> None:
    """A broken weight is noticed: without its last address bit, the head answers some input
    wrongly.
    """
    task = Eva(n=4, V=4)
    built = construct(task)
    position = built.model.position.weight
    varies = [c for c in range(position.shape[1]) if len(position[: task.n, c].unique()) > 1]
    assert len(varies) == 2  # ceil(log2 4) address bits
    position[:, varies[-1]] = 0.0
    assert wrong(built, *every_input(task))

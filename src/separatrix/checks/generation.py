"""What a model of a construction answers: at once, or after the tokens that it writes itself."""

from __future__ import annotations

import torch
from torch import Tensor

from separatrix.model import Model
from separatrix.tasks import Task, Thought
from separatrix.tasks.base.task import Tokens


def prompts_of(task: Task) -> Task:
    """The task whose prompts are given: of a chain of thought the one that is thought about."""
    return task.asked if task.stepwise else task


def due(task: Task, prompts: Tokens) -> Tokens:
    """What the model is to give: shape (batch, tokens), the answer last."""
    return task.due_after(prompts) if isinstance(task, Thought) else task.answer(prompts)[:, None]


def given(model: Model, prompts: Tokens, tokens: int) -> tuple[Tokens, Tensor]:
    """The ids with the largest logits, (batch, tokens), each but the last one written behind the
    prompt before the next is asked for; and which rows had finite logits only.
    """
    read = torch.from_numpy(prompts)
    finite = torch.ones(len(prompts), dtype=torch.bool)
    found: list[Tensor] = []
    for _ in range(tokens):
        logits = model(torch.cat([read, *(one[:, None] for one in found)], 1)).float()
        finite &= logits.isfinite().all(-1)
        # argmax of NaN is the place of the NaN
        found.append(logits.argmax(-1))
    return torch.stack(found, 1).numpy(), finite

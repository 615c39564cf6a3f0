"""What a model of a construction answers: at once, or after the tokens that it writes itself."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from separatrix.model import Model
from separatrix.tasks import Task, Thought
from separatrix.tasks.base.task import NO_ANSWER, Tokens


def prompts_of(task: Task) -> Task:
    """The task whose prompts are given: of a chain of thought the one that is thought about."""
    return task.asked if task.stepwise else task


def due(task: Task, prompts: Tokens) -> Tokens:
    """What the model is to give: shape (batch, tokens), the answer last."""
    return task.due_after(prompts) if isinstance(task, Thought) else task.answer(prompts)[:, None]


def asked_at(task: Task, prompts: Tokens) -> tuple[Tokens, Tokens]:
    """Where answers are due within prompts that ask several questions, and the right ones; both
    (batch, questions).
    """
    targets = task.answer(prompts)
    rows, places = np.nonzero(targets != NO_ANSWER)
    shape = (len(prompts), -1)
    return places.reshape(shape), targets[rows, places].reshape(shape)


def given_at(model: Model, prompts: Tokens, places: Tokens) -> tuple[Tokens, Tensor]:
    """The answers with the largest logits at these places (batch, questions), and which rows had
    finite logits only.
    """
    logits = model.at(torch.from_numpy(prompts), torch.from_numpy(places)).float()
    return logits.argmax(-1).numpy(), logits.isfinite().all(-1).all(-1)


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

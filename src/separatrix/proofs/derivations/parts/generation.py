"""What a model of a construction answers: at once, after several tokens, or after the tokens that
it writes itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed, SizeError
from separatrix.models.model import Model
from separatrix.models.stored.accuracy import MOST_NUMBERS, numbers_of
from separatrix.tasks import Task, Thought
from separatrix.tasks.base.task import NO_ANSWER, Tokens

Logits = Callable[[Tokens, Tokens | None], NDArray[np.floating]]
"""Logits (batch, k, answers) of prompts at some places (batch, k), or after the last token
alone.
"""


def prompts_of(task: Task) -> Task:
    """The task whose prompts are given: of a chain of thought the one that is thought about."""
    return task.asked if task.stepwise else task


def instances(task: Task, tokens: Tokens) -> NDArray[np.bool_]:
    """Which rows are instances of a task: of what the oracle refuses each half is asked again."""
    try:
        task.answer(tokens)
    except SizeError:
        if len(tokens) == 1:
            return np.zeros(1, np.bool_)
        half = len(tokens) // 2
        return np.concatenate([instances(task, tokens[:half]), instances(task, tokens[half:])])
    return np.ones(len(tokens), np.bool_)


def due(task: Task, prompts: Tokens) -> Tokens:
    """What the model is to give, (batch, answers): the tokens that it writes, the last one last;
    the answers to several questions, in their order; or one answer.
    """
    if isinstance(task, Thought):
        return task.due_after(prompts)
    right = task.answer(prompts)
    if not task.several:
        return right[:, None]
    return right[right != NO_ANSWER].reshape(len(prompts), -1)


def given(logits: Logits, task: Task, prompts: Tokens) -> tuple[Tokens, NDArray[np.bool_]]:
    """The ids with the largest logits, of the shape of what is due; and which rows had finite
    logits only. Each token that is written stands behind the prompt before the next is asked for.
    """
    if not task.stepwise:
        return _largest(logits(prompts, _asked(task, prompts)))
    finite = np.ones(len(prompts), np.bool_)
    read = prompts
    for _ in range(due(task, prompts[:1]).shape[1]):
        found, numbers = _largest(logits(read, None))
        finite &= numbers
        read = np.concatenate([read, found], 1)
    return read[:, prompts.shape[1] :], finite


def logits_of(model: Model) -> Logits:
    """Those of the model, as PyTorch computes them."""

    def logits(prompts: Tokens, places: Tokens | None) -> NDArray[np.floating]:
        with torch.inference_mode():
            tokens = torch.from_numpy(prompts)
            if places is None:
                return model(tokens)[:, None].double().numpy()
            return model.at(tokens, torch.from_numpy(places)).double().numpy()

    return logits


def all_right(logits: Logits, task: Task, tokens: Tokens, batch: int, how: str) -> None:
    """Raises CheckFailed, naming the input, where an answer is wrong; `batch` inputs at a time."""
    for start in range(0, len(tokens), batch):
        some = tokens[start : start + batch]
        wanted = due(task, some)
        found, finite = given(logits, task, some)
        wrong = np.flatnonzero((found != wanted).any(1) | ~finite)
        if len(wrong):
            said = found[wrong[0]].tolist()
            raise CheckFailed(
                f"input {some[wrong[0]].tolist()[:20]}{how} is answered"
                f" {said if len(said) > 1 else said[0]}, which is wrong"
            )


def at_once(model: Model, task: Task) -> int:
    """Inputs of a task that a model reads at a time."""
    return max(1, MOST_NUMBERS // numbers_of(model, task.length))


def _asked(task: Task, prompts: Tokens) -> Tokens | None:
    """Where answers are due within prompts that ask several questions, (batch, questions)."""
    if not task.several:
        return None
    _, places = np.nonzero(task.answer(prompts) != NO_ANSWER)
    return places.reshape(len(prompts), -1)


def _largest(logits: NDArray[np.floating]) -> tuple[Tokens, NDArray[np.bool_]]:
    # argmax of NaN is the place of the NaN
    return logits.argmax(-1), np.asarray(np.isfinite(logits).all((1, 2)), np.bool_)

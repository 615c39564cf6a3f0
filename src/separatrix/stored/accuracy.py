"""How often a model answers right, on prompts of a stream that anyone can draw again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from separatrix.caches import LEAST_FLOAT32_MARGIN
from separatrix.errors import SizeError
from separatrix.model import Model
from separatrix.tasks.base.task import NO_ANSWER, Task
from separatrix.tasks.resized import unreadable

DRAWN = 256
"""Prompts drawn at once: whatever model is asked, the stream gives the same ones."""
MOST_NUMBERS = 1 << 24
"""Numbers that the prompts run at once may take, roughly."""


@dataclass(frozen=True)
class Tally:
    """Prompts by how they are answered; where several answers are due, all of them count."""

    right: int
    close: int
    """Those, right or wrong, whose least lead is so small that another machine's rounding might
    turn it.
    """


def prompt_stream(seed: int, longer: int = 0) -> np.random.Generator:
    """The stream of test prompts of a run: of its task, or of the `longer`-th of its further sizes.

    Training draws from the stream 1 of the same seed, so that no test prompt is one of its draws.
    """
    return np.random.default_rng([seed, 2, longer] if longer else [seed, 2])


def evaluation_stream(seed: int) -> np.random.Generator:
    """The stream of prompts that a model is asked afterwards: none of its training or its test."""
    return np.random.default_rng([seed, 1 << 31])


def fits(model: Model, task: Task) -> None:
    """Raises SizeError when the model's sizes are not those of the task."""
    config = model.config
    if (config.vocabulary, config.answers) != (
        task.vocabulary,
        task.answers,
    ) or config.length < task.length:
        raise SizeError(
            f"a model of {config.vocabulary} token ids, {config.answers} answers and prompts of up"
            f" to {config.length} tokens does not fit {task.spec}, which has {task.vocabulary},"
            f" {task.answers} and {task.length}; build it for this task"
        )


def count_correct(
    model: Model, task: Task, total: int, rng: np.random.Generator, *, device: str = "cpu"
) -> int:
    """Fresh instances, of `total`, whose answers the model gets right; where several are due,
    all of them.
    """
    return tally(model, task, total, rng, device=device).right


@torch.no_grad()
def tally(
    model: Model, task: Task, total: int, rng: np.random.Generator, *, device: str = "cpu"
) -> Tally:
    """How the model answers `total` fresh instances. On one machine the same count every time."""
    with _plainly():
        return _tally(model, task, total, rng, device)


def _tally(model: Model, task: Task, total: int, rng: np.random.Generator, device: str) -> Tally:
    at_once = max(1, min(DRAWN, MOST_NUMBERS // numbers_of(model, task.length)))
    right = 0
    close = 0
    for start in range(0, total, DRAWN):
        batch = task.sample(min(DRAWN, total - start), rng)
        for first in range(0, len(batch.tokens), at_once):
            some = slice(first, first + at_once)
            tokens = torch.from_numpy(batch.tokens[some]).to(device)
            targets = torch.from_numpy(batch.targets[some]).to(device)
            found, lead = _answered(model, task, tokens, targets)
            right += int(found.sum())
            close += int((lead.abs() <= LEAST_FLOAT32_MARGIN).sum())
    return Tally(right, close)


def _answered(
    model: Model, task: Task, tokens: torch.Tensor, targets: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Which prompts (b,) are answered right, and by how much the right answer leads the best other
    one, at the place where it leads least.
    """
    logits = model.every(tokens) if task.several else model(tokens)[:, None]
    due = targets if task.several else targets[:, None]
    asked = due != NO_ANSWER
    right = (logits.argmax(-1) == due) | ~asked
    place = due.clamp(min=0)[..., None]
    others = logits.scatter(-1, place, float("-inf")).amax(-1)
    lead = torch.where(asked, logits.gather(-1, place)[..., 0] - others, float("inf"))
    return right.all(1), lead.amin(1)


def reads(model: Model, own: Task, task: Task) -> None:
    """Raises SizeError where a model made for the task `own` cannot read `task`: ids that stand for
    something else or that it lacks, or prompts longer than it has places for.
    """
    trouble = unreadable(task, own)
    if trouble:
        raise SizeError(trouble)
    if task.length > model.config.length:
        raise SizeError(
            f"{task.spec} has prompts of {task.length:,} tokens; this model has places for"
            f" {model.config.length:,}: train one that has them, with --longer"
        )


@contextmanager
def _plainly() -> Iterator[None]:
    """One thread, and float32 products as PyTorch has them by default: both change roundings, and
    whoever counts again counts so.
    """
    threads = torch.get_num_threads()
    precision = torch.get_float32_matmul_precision()
    if threads != 1:
        torch.set_num_threads(1)
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(precision)
        if threads != 1:
            torch.set_num_threads(threads)


def numbers_of(model: Model, tokens: int) -> int:
    """Roughly, the numbers that one prompt takes while a model runs."""
    parts = [part for layer in model.architecture for part in layer]
    widest = max(part.inner_width for part in parts)
    heads = max(getattr(part, "heads", 1) for part in parts)
    return tokens * max(model.config.width, widest, heads * tokens)

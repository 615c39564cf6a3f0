"""How often a model answers right, on prompts of a stream that anyone can draw again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from math import fsum, log
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

from separatrix.core.errors import SizeError
from separatrix.mixers.base.mixer import DTYPES
from separatrix.models.caches import LEAST_ALIKE, LEAST_FLOAT32_MARGIN
from separatrix.models.model import Model
from separatrix.tasks.base.task import NO_ANSWER, Task, Tokens
from separatrix.tasks.labels import asked, most_asked
from separatrix.tasks.resized import unreadable

DRAWN = 256
"""Prompts drawn at once: whatever model is asked, the stream gives the same ones."""
MOST_NUMBERS = 1 << 24
"""Numbers that the prompts run at once may take, roughly."""
_LARGEST = torch.finfo(torch.float32).max
"""-log p where it is no finite number."""


@dataclass(frozen=True)
class Tally:
    """How prompts are answered: each as a whole, and every answer due in them by itself."""

    correct: int
    """Prompts of which every answer is right."""
    right: int
    """Answers right."""
    due: int
    bits: float
    """Mean of -log2 p(right answer) over all answers due."""
    bits_squares: float
    """Mean over prompts of the square of a prompt's own mean of -log2 p."""
    close: int
    """Prompts, right or wrong, in which a lead is so small that another machine's rounding might
    turn it.
    """
    close_answers: int
    """Answers whose lead is as small."""


def margin(rounded: str = "") -> float:
    """The largest lead that another machine's rounding might turn: with rounded states, that may
    make one rounding more or less.
    """
    return LEAST_ALIKE if rounded else LEAST_FLOAT32_MARGIN


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


@torch.no_grad()
def tally(
    model: Model,
    task: Task,
    total: int,
    rng: np.random.Generator,
    *,
    device: str = "cpu",
    rounded: str = "",
) -> Tally:
    """How the model answers `total` fresh instances. On one machine the same numbers every time.

    With `rounded`, a number format such as "bf16", what recurrent layers carry is rounded to it
    after every token; keys, values and other stored inputs are not.
    """
    each = max(numbers_of(model, task.length), most_asked(task) * task.answers)
    at_once = max(1, min(DRAWN, MOST_NUMBERS // each))
    found: list[_Answers] = []
    with _plainly(), model.storing_states(DTYPES[rounded]) if rounded else nullcontext():
        for start in range(0, total, DRAWN):
            batch = task.sample(min(DRAWN, total - start), rng)
            for first in range(0, len(batch.tokens), at_once):
                tokens, targets = (
                    x[first : first + at_once] for x in (batch.tokens, batch.targets)
                )
                found.append(_answers(model, task, tokens, targets, device, margin(rounded)))
    right, due, bits, close = (torch.cat(parts) for parts in zip(*found, strict=True))
    answers = int(due.sum())
    # sums that do not depend on how many prompts ran at once
    means = bits / due.clamp(min=1)
    return Tally(
        correct=int((right == due).sum()),
        right=int(right.sum()),
        due=answers,
        bits=fsum(bits.tolist()) / max(1, answers),
        bits_squares=fsum(means.square().tolist()) / len(means),
        close=int((close > 0).sum()),
        close_answers=int(close.sum()),
    )


class _Answers(NamedTuple):
    """Of each prompt (b,): answers right, answers due, the sum of -log2 p of the right ones in
    float64, and how many answers have a small lead.
    """

    right: torch.Tensor
    due: torch.Tensor
    bits: torch.Tensor
    close: torch.Tensor


def _answers(
    model: Model, task: Task, tokens: Tokens, targets: Tokens, device: str, least: float
) -> _Answers:
    read = torch.from_numpy(tokens).to(device)
    places, answers = asked(task, targets)
    wanted = torch.from_numpy(answers).to(device)
    if places is None:
        logits = model(read)[:, None]
    else:
        logits = model.at(read, torch.from_numpy(places).to(device))
    due = wanted != NO_ANSWER
    place = wanted.clamp(min=0)[..., None]
    ours = logits.gather(-1, place)[..., 0]
    lead = ours - logits.scatter(-1, place, float("-inf")).amax(-1)
    nats = -F.log_softmax(logits, -1).gather(-1, place)[..., 0].double()
    # of numbers that are not finite nothing is right, and a sum must stay a number
    nats = nats.nan_to_num(nan=_LARGEST, posinf=_LARGEST)
    right = (logits.argmax(-1) == wanted) & due
    close = (lead.abs() <= least) & due
    return _Answers(
        right.sum(1).cpu(),
        due.sum(1).cpu(),
        ((nats / log(2)) * due).sum(1).cpu(),
        close.sum(1).cpu(),
    )


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
            f" {model.config.length:,}: train one that has them, with --set longer=n=..."
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

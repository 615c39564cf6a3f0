"""The prompts of a training, made on the fly: a stream for each seed, drawn several batches at
once.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from separatrix.models.stored.run import Run
from separatrix.tasks.base.task import Task
from separatrix.tasks.labels import asked

_ROWS = 2048
"""Prompts drawn at once, where they are short."""
_TOKENS = 1 << 19
"""Tokens drawn at once, at most."""
TRAINING = 1
"""Which of a seed's streams is trained on; those of tests are others."""


class Prompts(NamedTuple):
    """A batch for each member."""

    tokens: Tensor
    """(members, batch, length)."""
    places: Tensor | None
    """(members, batch, asked): where answers are read. None: after the last token."""
    answers: Tensor
    """(members, batch, asked), with NO_ANSWER where a prompt asks less often than others."""


class Streams:
    """The streams of a pack's seeds, all at the same step."""

    def __init__(self, run: Run, seeds: Sequence[int], device: torch.device) -> None:
        self.device = device
        self.batch = run.batch
        self.steps = run.steps
        self.stretches = run.stretches
        self.ahead = max(1, min(_ROWS // run.batch, _TOKENS // (run.batch * run.length)))
        self.seeds = list(seeds)
        self._generators = {
            seed: np.random.default_rng([seed, TRAINING]) for seed in dict.fromkeys(seeds)
        }
        self._step = 0
        self._begin()

    def task_at(self, step: int) -> tuple[Task, int]:
        """The task of a step, which counts from 0, and the step at which it ends."""
        ends = list(accumulate(count for _, count in self.stretches))
        place = min(bisect(ends, step), len(ends) - 1)
        return self.stretches[place][0], ends[place]

    def next(self) -> Prompts:
        """The prompts of the next step."""
        self._go_on()
        if self._drawn is None:
            self._draw()
        assert self._drawn is not None
        at = self._step - self._first
        self._step += 1
        tokens, places, answers = self._drawn
        return Prompts(tokens[at], None if places is None else places[at], answers[at])

    def keep(self, seeds: Sequence[int]) -> None:
        """Goes on with these members only, named by their seeds."""
        state = self.state()
        self.seeds = list(seeds)
        self._generators = {seed: self._generators[seed] for seed in dict.fromkeys(seeds)}
        self.restore(state)

    def state(self) -> dict[str, Any]:
        """Where the streams are, as plain numbers: the generators at the start of what is drawn
        together, and how much of it is used.
        """
        self._go_on()
        return {
            "step": self._step,
            "first": self._first,
            "generators": {str(seed): state for seed, state in self._before.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Inverse of `state`, for the same run and some of its seeds."""
        self._step = int(state["first"])
        for seed, generator in self._generators.items():
            generator.bit_generator.state = state["generators"][str(seed)]
        self._begin()
        self._step = int(state["step"])

    def _go_on(self) -> None:
        # what was drawn together is used up
        if self._step == self._first + self._length < self.steps:
            self._begin()

    def _begin(self) -> None:
        """The next steps to draw at once begin here; they are drawn when they are needed."""
        self._first = self._step
        _, end = self.task_at(self._first)
        self._length = max(0, min(self.ahead, end - self._first))
        self._before = {
            seed: generator.bit_generator.state for seed, generator in self._generators.items()
        }
        self._drawn: tuple[Tensor, Tensor | None, Tensor] | None = None

    def _draw(self) -> None:
        task, _ = self.task_at(self._first)
        drawn = {
            seed: task.sample(self._length * self.batch, generator)
            for seed, generator in self._generators.items()
        }
        rows = [drawn[seed] for seed in self.seeds]
        # all members together, so that each has as many places
        places, answers = asked(task, np.concatenate([each.targets for each in rows]))
        self._drawn = (
            self._stacked(np.concatenate([each.tokens for each in rows])),
            None if places is None else self._stacked(places),
            self._stacked(answers),
        )

    def _stacked(self, rows: NDArray[np.int64]) -> Tensor:
        """Rows of all members one after another -> (steps, members, batch, ...)."""
        shape = (len(self.seeds), self._length, self.batch, *rows.shape[1:])
        stacked = torch.from_numpy(rows).view(shape).transpose(0, 1).contiguous()
        return stacked.to(self.device)

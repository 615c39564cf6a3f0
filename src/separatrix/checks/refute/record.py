"""Results of a search: the one when nothing was found, and a found failure as a
certificate.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from time import monotonic
from typing import Any, Literal

import torch
from torch import nn

from separatrix.core.errors import SizeError
from separatrix.core.evidence.records import Certificate
from separatrix.models.caches import LEAST_BORDER, LEAST_MARGIN, Grid, RoundedRun, margin
from separatrix.models.model import Model
from separatrix.models.stored.accuracy import fits as sizes_fit
from separatrix.stacks.architecture import Architecture
from separatrix.tasks.base.task import Task, Tokens

Progress = Callable[[int, int], None]
"""Called with (tried, most tries)."""


SAFETY = 10.0
"""What is found keeps this many times the distance that a checker asks for."""


def silent(tried: int, most: int) -> None:
    """A progress callback that shows nothing."""


@dataclass(frozen=True, kw_only=True)
class NotFound:
    """A search that ended without a witness. It proves nothing: another seed or a larger budget
    may find one.
    """

    what: str
    """What was looked for."""
    tried: int
    space: str
    """Of how many things `tried` is a part, in words."""
    budget: float
    """Seconds allowed."""

    def __str__(self) -> str:
        return (
            f"no {self.what} found: {self.tried:,} tried of {self.space}, within {self.budget:g} s;"
            " this proves nothing"
        )


class Clock:
    """Whether a search may go on: fewer than `most` tries and less than `seconds` since it
    began. The first batch always runs.
    """

    def __init__(self, seconds: float, most: int, progress: Progress) -> None:
        if not seconds > 0 or most < 1:
            raise SizeError(
                f"a search within {seconds:g} s and {most} tries; both must be positive"
            )
        self.seconds = seconds
        self.most = most
        self.progress = progress
        self.start = monotonic()
        self.tried = 0

    def runs(self) -> bool:
        return self.tried < self.most and (
            self.tried == 0 or monotonic() - self.start < self.seconds
        )

    def count(self, tries: int) -> None:
        self.tried += tries
        self.progress(min(self.tried, self.most), self.most)


def certificate(
    form: Literal["collision", "block_swap", "two_runs", "wrong_answer"],
    model: Model,
    task: Task,
    *,
    grid: Grid | None,
    inputs: Sequence[Tokens],
    answers: Sequence[int],
    output: int,
    details: dict[str, Any],
) -> Certificate:
    """The record, with the model's weights inside. `inputs` are prompts (length,)."""
    return Certificate(
        architecture=Architecture.parse(model.config.architecture).spec,
        task=task.spec,
        form=form,
        model=model.config.to_json(),
        weights=embed_weights(model),
        cache_format=None if grid is None else str(grid),
        inputs=[[int(token) for token in prompt] for prompt in inputs],
        answers=[int(answer) for answer in answers],
        output=output,
        details=details,
    )


def embed_weights(model: nn.Module) -> dict[str, Any]:
    """Every parameter as base64 of its little-endian float32 numbers, float64 where the model
    holds those.
    """
    embedded = {}
    for name, tensor in model.state_dict().items():
        wide = tensor.dtype == torch.float64
        array = tensor.detach().cpu().to(torch.float64 if wide else torch.float32).numpy()
        data = base64.b64encode(array.astype("<f8" if wide else "<f4").tobytes()).decode()
        embedded[name] = {
            "dtype": "float64" if wide else "float32",
            "shape": list(array.shape),
            "data": data,
        }
    return embedded


def fits(model: Model, task: Task) -> None:
    """Raises SizeError when the model's sizes are not those of the task, or the task has answers
    at several places.
    """
    if task.several:
        raise SizeError(
            f"{task.spec}: answers are due at several places; refute a model on a task with one"
            " answer, after the last token"
        )
    sizes_fit(model, task)


def decoding(model: Model) -> Model:
    """A copy on the CPU, in float32 where the model is narrower, that rounds states as declared."""
    weight = model.head.weight
    dtype = torch.float64 if weight.dtype == torch.float64 else torch.float32
    copy = deepcopy(model).to(device="cpu", dtype=dtype)
    copy.exact_state = True
    return copy


def scientific(x: float) -> str:
    """A measured distance as it is recorded: four significant digits."""
    return f"{x:.3e}"


def agreement(ends: list[RoundedRun]) -> dict[str, str] | None:
    """The smallest border distance and the margin of runs with one output; None if the outputs
    differ or rounding could change them.
    """
    border = min(float(one.border.min()) for one in ends)
    gap = margin(ends[0].logits[0])
    if (
        not torch.equal(ends[0].logits, ends[1].logits)
        or border < SAFETY * LEAST_BORDER
        or gap < SAFETY * LEAST_MARGIN
    ):
        return None
    return {"border_distance": scientific(border), "margin": scientific(gap)}

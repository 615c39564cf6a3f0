"""Results of a search: the one when nothing was found, and a found failure as a
certificate.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Literal

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from separatrix.core.errors import SizeError
from separatrix.core.evidence.records import Certificate
from separatrix.core.numbers.amounts import format_bytes
from separatrix.models.caches import LEAST_BORDER, LEAST_MARGIN, Grid, RoundedRun, margin
from separatrix.models.model import Model, ModelConfig
from separatrix.models.stored.accuracy import fits as sizes_fit
from separatrix.stacks.architecture import Architecture
from separatrix.tasks.base.task import Task, Tokens

Progress = Callable[[int, int], None]
"""Called with (tried, most tries)."""


SAFETY = 10.0
"""What is found keeps this many times the distance that a checker asks for."""


MEMORY = 8 << 30
"""Bytes that a search takes at most, unless it is told otherwise."""
COST = 1 << 32
"""Most numbers times tokens of a batch: a fraction of a second of one core."""
_GRACE = 0.5
"""Seconds that a batch may take beyond the budget."""
_FIXED = 16
"""Bytes of a parameter: of the model, of its float32 copy and of its float64 one."""
_COPIES = 6
"""Copies of a number that are alive at once."""


class Expired(Exception):
    """The time of a search is over in the middle of a batch."""


class _Timed(TorchFunctionMode):
    """Looks at the clock before each call of torch, on this thread alone."""

    def __init__(self, check: Callable[[], None]) -> None:
        super().__init__()
        self.check = check

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        # `no_grad` ends with such a call, and has to end
        if func is not torch._C._set_grad_enabled:
            self.check()
        return func(*args, **(kwargs or {}))


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
        over = "" if self.tried else ", too few for a first batch"
        return (
            f"no {self.what} found: {self.tried:,} tried of {self.space}, within {self.budget:g} s"
            f"{over}; this proves nothing"
        )


@dataclass(kw_only=True)
class Search:
    """What a search may take, all together, and how far it is. The first batch always begins."""

    seconds: float = 60.0
    tries: int = 1 << 20
    seed: int = 0
    memory: int = MEMORY
    """Bytes."""
    progress: Progress = silent
    start: float = 0.0
    """By the clock; 0: now."""
    tried: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.start = self.start or monotonic()
        if not self.seconds > 0 or self.tries < 1:
            raise SizeError(
                f"a search within {self.seconds:g} s and {self.tries} tries; both must be positive"
            )

    def runs(self) -> bool:
        return self.tried < self.tries and (
            self.tried == 0 or monotonic() - self.start < self.seconds
        )

    def check(self) -> None:
        """Between the tokens of a batch. Raises Expired."""
        self.progress(min(self.tried, self.tries), self.tries)
        if monotonic() - self.start > self.seconds + _GRACE:
            raise Expired

    def timed(self) -> _Timed:
        """Inside it `check` comes before each call of torch: for what is long with few of them, as
        making a large model is. Steps of small ones would take twice as long.
        """
        return _Timed(self.check)

    def count(self, tries: int) -> None:
        self.tried += tries
        self.progress(min(self.tried, self.tries), self.tries)

    def at_once(self, model: Model, tokens: int, most: int, *, runs: int = 1) -> int:
        """How many prompts of so many tokens a batch of so many runs holds, on every machine
        alike.
        """
        parameters = sum(weight.numel() for weight in model.parameters())
        fixed, each = bytes_of(model.config, parameters, tokens)
        # a number that is carried is rounded and compared after each token
        numbers = parameters + each // 2
        return max(1, min(most, COST // (numbers * tokens * runs), (self.memory - fixed) // each))

    def not_found(self, what: str, space: str) -> NotFound:
        return NotFound(what=what, tried=self.tried, space=space, budget=self.seconds)


def bytes_of(config: ModelConfig, parameters: int, tokens: int) -> tuple[int, int]:
    """About how much memory a search takes, of a model and of a prompt of a batch."""
    architecture = Architecture.parse(config.architecture)
    parts = [part for layer in architecture for part in layer if part.mixes_tokens]
    carried = sum(part.cache_bits(tokens) // part.p for part in parts)
    inner = max((part.inner_width for part in parts), default=0)
    scores = max((getattr(part, "heads", 1) for part in parts), default=0) * tokens
    spread = tokens * (config.width + config.hidden + 3 * inner + scores)
    return _FIXED * parameters, _COPIES * max(8 * carried, 4 * spread)


def check_memory(config: ModelConfig, parameters: int, tokens: int, memory: int) -> None:
    """Raises SizeError where a model and one prompt of so many tokens take more."""
    needs = sum(bytes_of(config, parameters, tokens))
    if needs > memory:
        raise SizeError(
            f"a search takes about {format_bytes(8 * needs)} for this model and prompts of"
            f" {tokens:,} tokens, and may take {format_bytes(8 * memory)}: give more memory"
        )


def certificate(
    form: Literal["collision", "block_swap", "two_runs", "wrong_answer"],
    model: Model,
    task: Task,
    *,
    inputs: Tokens,
    output: int,
    details: dict[str, Any],
    grid: Grid | None = None,
) -> Certificate:
    """The record, with the model's weights inside. `inputs` are prompts (1 or 2, length)."""
    return Certificate(
        architecture=Architecture.parse(model.config.architecture).spec,
        task=task.spec,
        form=form,
        model=model.config.to_json(),
        weights=embed_weights(model),
        cache_format=None if grid is None else str(grid),
        inputs=inputs.tolist(),
        answers=task.answer(inputs).tolist(),
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
    # four significant digits of what is measured
    return {"border_distance": f"{border:.3e}", "margin": f"{gap:.3e}"}

"""How many floating-point operations a training takes, from declared sizes; needs no torch.

A multiply-add counts 2. Per prompt of T tokens, with the start token T + 1:

    maps     2 for each weight of a mixer's maps, token by token
    mixing   what mechanisms declare (`Mechanism.flops`), their convolutions included
    mlp      4 width hidden for each layer and token
    head     2 width answers for each token of the prompt

Looking embeddings up, norms, softmaxes and activations are not counted, and neither is what an
optimiser does. A step of training takes 3 times the forward pass (Kaplan et al. 2020, arXiv
2001.08361). Every token goes through every layer here, as in other people's counts: a trainer that
skips what nothing asks for does less.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from separatrix.core.errors import SizeError
from separatrix.models.stored.run import Run
from separatrix.stacks.mechanisms import Mechanism
from separatrix.tasks import Task

FORWARD_AND_BACKWARD = 3
"""Of a step, in forward passes."""
_SUMMED = 4096
"""Tokens of a module of one's own that are counted one by one; longer prompts in as many equal
stretches.
"""


class Flops(NamedTuple):
    """Operations of a forward pass over one prompt."""

    maps: int
    mixing: int
    mlp: int
    head: int

    @property
    def total(self) -> int:
        return sum(self)


def forward_flops(run: Run, parameters: int, task: Task | None = None) -> Flops:
    """Of one prompt of the run's task, or of another that its model reads, by a model of so many
    parameters. Raises SizeError for fewer than the model has beside its mixers.
    """
    task = run.trained if task is None else task
    stack = run.stack
    tokens = task.length + 1
    parts = [(part, times) for layer, times in stack.counted() for part in layer]
    convolved = sum(_convolution_weights(part) * times for part, times in parts)
    maps = parameters - _beside_mixers(run) - convolved
    if maps < 0:
        raise SizeError(
            f"{parameters:,} parameters: a model of {run.architecture} on {run.task} has"
            f" {parameters - maps:,} beside the maps of its mixers"
        )
    return Flops(
        maps=2 * maps * tokens,
        mixing=sum(_mixing(part, tokens) * times for part, times in parts),
        mlp=4 * run.width * run.hidden * len(stack) * tokens,
        head=2 * run.width * task.answers * task.length,
    )


def training_flops(run: Run, parameters: int) -> int:
    """Of all steps that the run allows, each stage of its curriculum at its own sizes."""
    return FORWARD_AND_BACKWARD * sum(
        run.batch * count * forward_flops(run, parameters, task).total
        for task, count in run.stretches
    )


def _beside_mixers(run: Run) -> int:
    """Parameters of embeddings, norms, MLPs and head."""
    task = run.trained
    width = run.width
    layers = len(run.stack)
    places = run.length + 1 if run.stack.positions == "embedded" else 0
    mlp = 2 * width * run.hidden + run.hidden + width if run.hidden else 0
    norms = (2 * layers + 1) * width
    head = (width + 1) * task.answers
    return (task.vocabulary + 1 + places) * width + layers * mlp + norms + head


def _convolution_weights(part: Mechanism) -> int:
    """Of a short convolution, which carries all inputs of its kernel but the last."""
    kernel = part.sizes().get("conv", 0)
    if kernel < 2:
        return 0
    carried = [item.bits for item in part.cache(kernel) if item.kind == "convolution"]
    return sum(bits.numbers for bits in carried) // (kernel - 1) * kernel


@lru_cache(maxsize=1024)
def _mixing(part: Mechanism, tokens: int) -> int:
    """Of all tokens, the first seeing itself alone."""
    if not part.mixes_tokens:
        return 0
    if part.grows_as_told:
        return part.work().total(tokens)
    if tokens <= _SUMMED:
        return sum(part.flops(t) for t in range(1, tokens + 1))
    # the middle of each stretch stands for all of it
    ends = [tokens * number // _SUMMED for number in range(_SUMMED + 1)]
    return sum((end - start) * part.flops((start + 1 + end) // 2) for start, end in pairwise(ends))

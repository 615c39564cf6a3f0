"""Searches for concrete failures of a model. What they find is a certificate that
`separatrix.checks.verify` checks without them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
import torch

from separatrix.checks.refute.blocks import swap_blocks
from separatrix.checks.refute.collide import collide
from separatrix.checks.refute.record import (
    MEMORY,
    Expired,
    NotFound,
    Progress,
    Search,
    check_memory,
    fits,
    silent,
)
from separatrix.checks.refute.two_runs import two_runs
from separatrix.checks.refute.wrong import wrong_answer
from separatrix.core.errors import SizeError, UnknownNameError
from separatrix.core.evidence.records import Certificate
from separatrix.core.numbers.formats import FORMATS, NumberFormat
from separatrix.models.caches import (
    MESSAGES,
    Grid,
    cache_codes,
    carried,
    carried_bits,
    declaring,
    exact,
    run,
)
from separatrix.models.model import Model, build, parameter_count, trained_config
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.resolve import Stack, stack_of
from separatrix.tasks import Task, TwoSum, task_of
from separatrix.tasks.base.task import Tokens

__all__ = [
    "Method",
    "NotFound",
    "Search",
    "chosen",
    "collide",
    "refute",
    "swap_blocks",
    "two_runs",
    "wrong_answer",
]

Method = Literal["auto", "collision", "block_swap", "two_runs", "wrong_answer"]
LEAST_WIDTH = 8
"""Width of a drawn model whose heads suggest a narrower one: its norm needs room to keep tokens
apart.
"""
_MOST_TOKENS = 1 << 12
"""Longest prompts of which two runs are tried unasked: they are decoded token by token."""


def refute(
    subject: Model | Stack,
    task: Task | str,
    *,
    budget: float = 60.0,
    tries: int = 1 << 20,
    seed: int = 0,
    cache_format: str | None = None,
    method: Method = "auto",
    memory: int = MEMORY,
    progress: Progress = silent,
) -> Certificate | NotFound:
    """A concrete failure of a model, or NotFound, which proves nothing. Of an architecture, or what
    names one, a model drawn from `seed` is refuted.

    `budget` is in seconds, `memory` in bytes. `cache_format` is pN, or a grid such as
    "p3:step=2^-1"; by default the pN that the architecture declares; with another, the certificate
    is about the model's weights in the stack that declares that one. With pN alone the step is the
    power of two that keeps most drawn prefixes apart. The method "auto" is a collision of caches
    for bounded layers rounded to pN, a block swap for one pN sparse layer on 2-Sum per query, and
    for everything else a wrong answer; before that, where two runs of tokens are prompts of the
    task, two of them.

    Raises SizeError, SpecError, UnknownNameError for a method that does not apply, sizes that do
    not fit, a model that needs more memory, or a bad format.
    """
    method = chosen(method)
    task = task_of(task)
    architecture = subject.architecture if isinstance(subject, Model) else stack_of(subject)
    bits = _bits(architecture, cache_format)
    search = Search(seconds=budget, tries=tries, seed=seed, memory=memory, progress=progress)
    try:
        with search.timed():
            known = isinstance(subject, Model)
            model = subject if known else _drawn(architecture, task, seed, memory)
    except Expired:
        return search.not_found("failure", f"the inputs of {task.spec}")
    if method == "auto":
        part, runs = architecture.only, task.two_runs()
        sparse = part is not None and part.compresses_blocks and part.plain
        if bits is not None and not architecture.reading:
            method = "collision"
        elif bits is not None and sparse and isinstance(task, TwoSum) and task.form == "query":
            method = "block_swap"
        else:
            method = "wrong_answer"
            if runs is not None and not runs.end and task.length <= _MOST_TOKENS:
                found = two_runs(model, task, replace(search, progress=silent))
                if isinstance(found, Certificate):
                    return found
    if method == "two_runs":
        return two_runs(model, task, search)
    if method == "wrong_answer":
        return wrong_answer(model, task, search)
    if bits is None:
        raise SizeError(
            f"'{architecture.spec}': a {method.replace('_', ' ')} needs cached numbers of few bits;"
            " give cache_format, e.g. p4"
        )
    fits(model, task)
    # a certificate is about the stack that stores its numbers so
    model = declaring(model, bits)
    if cache_format is not None and ":" in cache_format:
        grid = Grid.parse(cache_format)
    else:
        some = search.at_once(model, task.prefix_length, 256, runs=8)
        drawn = task.sample(some, np.random.default_rng(seed))
        prefixes = drawn.tokens[:, : task.prefix_length]
        names = MESSAGES if method == "block_swap" else None
        try:
            grid = fit_grid(model, prefixes, bits=bits, names=names, check=search.check)
        except Expired:
            return search.not_found(f"step of p{bits}", "the powers of two")
    by = collide if method == "collision" else swap_blocks
    return by(model, task, grid, search)


_FINEST = 12
"""Powers of two below the coarsest step that are tried: a state that grows by small additions
needs a fine one.
"""


def fit_grid(
    model: Model,
    prefixes: Tokens,
    *,
    bits: int,
    names: frozenset[str] | None,
    check: Callable[[], None],
) -> Grid:
    """The grid whose step, a power of two, keeps most of the prefixes (number, cut) apart; the
    coarsest of equally good ones. With `names` these of the carried tensors alone are rounded.

    `check` is called after each token. Raises SizeError for more than 32 bits, and what `check`
    raises.
    """
    copy = exact(model)
    tokens = torch.from_numpy(prefixes)
    # fine and wide enough to see how large the carried numbers are
    wide = Grid(32, -16)
    largest = max(
        (
            float(x.abs().max())
            for _, x in carried(run(copy, tokens, wide, names=names, check=check).cache, names)
            if x.numel()
        ),
        default=1.0,
    )
    # largest < 2^e, and 2^bits levels on both sides of 0 reach 2^(bits - 1) steps
    coarsest = math.frexp(largest or 1.0)[1] - max(0, bits - 1)
    grids = [Grid(bits, coarsest - finer) for finer in range(_FINEST)]

    def apart(grid: Grid) -> int:
        cache = run(copy, tokens, grid, names=names, check=check).cache
        return len(cache_codes(cache, grid, names=names).unique(dim=0))

    return max(grids, key=apart)


def chosen(method: str) -> Method:
    """The method of a name. Raises UnknownNameError."""
    for known in get_args(Method):
        if method == known:
            return known
    raise UnknownNameError.of("method", str(method), get_args(Method))


def _bits(architecture: Architecture, cache_format: str | None) -> int | None:
    """Bits per cached number: of the format given, or the largest that the layers declare; None
    where one is a floating-point format.
    """
    if cache_format is not None:
        if ":" in cache_format:
            return Grid.parse(cache_format).bits
        if cache_format in FORMATS:
            raise SizeError(
                f"cache format '{cache_format}' has no uniform levels; give pN, the number of bits"
                " per cached number"
            )
        return NumberFormat(cache_format).bits
    declared = carried_bits(architecture)
    return None if None in declared else max(filter(None, declared), default=None)


def _drawn(architecture: Architecture, task: Task, seed: int, memory: int) -> Model:
    width = max(LEAST_WIDTH, *(part.inner_width for layer in architecture for part in layer))
    config = trained_config(
        architecture.spec, task, width=width, hidden=2 * width, length=task.length
    )
    check_memory(config, parameter_count(config), task.length, memory)
    return build(architecture, task, width=width, seed=seed, exact_state=True)

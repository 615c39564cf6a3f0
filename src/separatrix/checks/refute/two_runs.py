"""Two runs of tokens, a^j b^(m-j) and a^(j+1) b^(m-j-1), with different right answers: what a
recurrence that only moves one way cannot tell apart once both runs are long (Theorem P), and most
models much earlier.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice

import numpy as np
import torch

from separatrix.checks.refute.record import Expired, NotFound, Search, certificate, decoding, fits
from separatrix.core.errors import SizeError
from separatrix.core.evidence.records import Certificate
from separatrix.models.caches import LEAST_ALIKE, decoded, margin, same_states
from separatrix.models.model import Model
from separatrix.tasks.base.layout import TwoRuns, in_runs
from separatrix.tasks.base.task import Task, Tokens

BATCH = 8
"""Pairs of prompts that are decoded together."""
MOST = 32
"""Pairs tried at most: runs that meet in the middle, at the quarters, at the eighths, ..."""


def two_runs(
    model: Model,
    task: Task,
    search: Search,
) -> Certificate | NotFound:
    """Two prompts that the model, decoding token by token with its states rounded as declared,
    answers alike though their right answers differ; of eight tried together rather two that leave
    one and the same state behind.

    Raises SizeError for a model that does not fit the task, and for a task of which no such prompts
    are known.
    """
    fits(model, task)
    runs = task.two_runs()
    if runs is None:
        raise SizeError(
            f"{task.spec}: no two prompts of two runs with different answers are known; search a"
            " wrong answer instead"
        )
    search = replace(search, tries=min(search.tries, MOST))
    pairs = _pairs(task, runs)
    batch = search.at_once(model, task.length, BATCH)
    with suppress(Expired):
        with search.timed():
            model = decoding(model)
        while search.runs() and (
            some := list(islice(pairs, min(batch, search.tries - search.tried)))
        ):
            search.count(len(some))
            tried = np.stack(some)
            ends = [decoded(model, torch.from_numpy(tried[:, i]), search.check) for i in (0, 1)]
            (first, one), (second, other) = ends
            alike = (first.argmax(-1) == second.argmax(-1)).numpy()
            equal = same_states(one, other).numpy()
            # equal states first
            for prompts in np.concatenate([tried[alike & equal], tried[alike & ~equal]]):
                found = _confirmed(model, task, prompts, search)
                if found is not None:
                    return found
    return search.not_found(
        "two runs of tokens answered alike",
        f"the {2 * runs.m:,} pairs of two runs, either token first",
    )


def _pairs(task: Task, runs: TwoRuns) -> Iterator[Tokens]:
    """Pairs (2, length) with different right answers, those first whose runs meet in the middle:
    of either token first.
    """
    seen: set[int] = set()
    # numerators of the halves, quarters, eighths, ... of the runs
    places = [runs.j]
    for power in range(1, runs.m.bit_length() + 1):
        places += [(2 * odd + 1) * runs.m >> power for odd in range(1 << power - 1)]
        if len(places) > 4 * MOST:
            break
    for j in places:
        if j in seen or not 0 <= j < runs.m:
            continue
        seen.add(j)
        for one in (runs._replace(j=j), runs._replace(a=runs.b, b=runs.a, j=j)):
            prompts = one.prompts()
            try:
                answers = task.answer(prompts)
            except SizeError:
                # no instances: the order of a and b may matter
                continue
            if answers[0] != answers[1]:
                yield prompts


def _confirmed(model: Model, task: Task, prompts: Tokens, search: Search) -> Certificate | None:
    """The certificate, if the model answers both prompts alike by a safe margin, each alone."""
    ends = [decoded(model, torch.from_numpy(prompt[None]), search.check) for prompt in prompts]
    outputs = {int(logits[0].argmax()) for logits, _ in ends}
    if len(outputs) > 1 or min(margin(logits[0].double()) for logits, _ in ends) < 2 * LEAST_ALIKE:
        return None
    equal = bool(same_states(*(cache for _, cache in ends))[0])
    return certificate(
        "two_runs",
        model,
        task,
        inputs=prompts,
        output=outputs.pop(),
        details={
            "first": in_runs(prompts[0].tolist()),
            "second": in_runs(prompts[1].tolist()),
            "equal_state": equal,
        },
    )

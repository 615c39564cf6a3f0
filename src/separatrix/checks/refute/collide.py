"""Birthday search: two prefixes that leave one cache, and a continuation after which their right
answers differ.

Theorem I counts: with fewer caches than classes of prefixes such a pair exists. Drawn prefixes find
one after about the square root of the number of caches that are reached. The model must answer both
prompts alike, so it answers one of them wrongly.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

import numpy as np
import torch

from separatrix.checks.refute.record import (
    SAFETY,
    Expired,
    NotFound,
    Search,
    agreement,
    certificate,
    fits,
)
from separatrix.core.errors import SizeError
from separatrix.core.evidence.records import Certificate
from separatrix.models.caches import LEAST_BORDER, Grid, cache_codes, cache_digest, exact, run
from separatrix.models.model import Model
from separatrix.tasks.base.task import Task, Tokens

BATCH = 512


def collide(
    model: Model,
    task: Task,
    grid: Grid,
    search: Search,
) -> Certificate | NotFound:
    """Two prompts with one cache and two answers, for a model whose carried numbers are rounded to
    the grid.

    The first prefixes differ in their first token only, then in the first two, four, ..., so that
    what a model forgets shows early. Raises SizeError for a model that does not fit the task, has a
    reading layer (its cache grows with the prompt), or carries nothing.
    """
    fits(model, task)
    if model.architecture.reading:
        layer = model.architecture.reading[0]
        names = "|".join(part.name for part in model.architecture.layers[layer])
        raise SizeError(
            f"layer {layer + 1} of '{model.architecture.spec}' ({names}) keeps every token, so"
            " prefixes leave no equal caches; a collision needs bounded layers only; search a"
            " wrong answer instead"
        )
    rng = np.random.default_rng(search.seed)
    # 1, 2, 4, ... places that may differ, and last the whole prefix
    cuts = [
        min(1 << power, task.prefix_length)
        for power in range((task.prefix_length - 1).bit_length() + 1)
    ]
    holders: dict[bytes, tuple[int, int]] = {}
    kept: list[Tokens] = []
    batch = search.at_once(model, task.prefix_length, BATCH)
    with suppress(Expired):
        with search.timed():
            copy = exact(model)
        while search.runs():
            prefixes = _prefixes(
                task, min(batch, search.tries - search.tried), cuts[len(kept) % len(cuts)], rng
            )
            kept.append(prefixes)
            after = run(copy, torch.from_numpy(prefixes), grid, check=search.check)
            search.count(len(prefixes))
            codes = cache_codes(after.cache, grid).numpy()
            if not codes.shape[1]:
                raise SizeError(
                    f"'{model.architecture.spec}' carries nothing from token to token; search a"
                    " wrong answer instead"
                )
            for row in np.flatnonzero(after.border.numpy() >= SAFETY * LEAST_BORDER):
                # a hash table finds equal caches without comparing all pairs
                held, other = holders.setdefault(codes[row].tobytes(), (len(kept) - 1, int(row)))
                first = kept[held][other]
                second = prefixes[row]
                if np.array_equal(first, second):
                    continue
                found = witness(model, copy, task, first, second, grid=grid, rng=rng, search=search)
                if found is not None:
                    return found
                if not search.runs():
                    break
    classes = task.prefix_classes()
    space = "all prefixes" if classes is None else f"{classes} classes of prefixes"
    return search.not_found("two prefixes with one cache", space)


def witness(
    model: Model,
    copy: Model,
    task: Task,
    first: Tokens,
    second: Tokens,
    *,
    grid: Grid,
    rng: np.random.Generator,
    search: Search,
) -> Certificate | None:
    """The certificate of two prefixes, run one by one; None if no continuation tried separates
    them safely.
    """
    cut = len(first)
    runs = [
        run(copy, torch.from_numpy(prefix[None]), grid, check=search.check)
        for prefix in (first, second)
    ]
    digests = {cache_digest(one.cache, grid) for one in runs}
    # a prefix may round otherwise alone than in a batch, and a checker runs it alone
    if len(digests) > 1:
        return None
    for ending, *_ in islice(separating(task, first, second, rng), 8):
        ends = [
            run(copy, torch.from_numpy(ending[None]), grid, after=one, seen=cut, check=search.check)
            for one in runs
        ]
        details = agreement(ends)
        if details is None:
            continue
        codes = cache_codes(runs[0].cache, grid)
        return certificate(
            "collision",
            model,
            task,
            grid=grid,
            inputs=np.stack([np.append(prefix, ending) for prefix in (first, second)]),
            output=int(ends[0].logits[0].argmax()),
            details={
                "prefix_length": cut,
                "cache_bits": codes.shape[1] * grid.bits,
                "cache_sha256": digests.pop(),
                **details,
            },
        )
    return None


_DRAWS = 64
"""Instances drawn per prompt token and answer: a continuation that one in length * answers hits
is missed with probability e^-64.
"""
_MOST_DRAWS = 1 << 15
_MOST_TOKENS = 1 << 22


def separating(
    task: Task, first: Tokens, second: Tokens, rng: np.random.Generator
) -> Iterator[tuple[Tokens, int, int]]:
    """Continuations after which two prefixes (cut,) have different right answers, with these
    answers; none if they may be equivalent.

    The endings of drawn instances are tried, in a drawn order; every one the oracle accepts after
    both prefixes.
    """
    most = min(_MOST_DRAWS, _MOST_TOKENS // task.length)
    draws = max(1, min(most, _DRAWS * max(task.length, task.answers)))
    endings = np.unique(task.sample(draws, rng).tokens[:, len(first) :], axis=0)
    # they come sorted: a drawn order favours no kind of ending
    endings = rng.permutation(endings)
    answers = []
    for prefix in (first, second):
        try:
            answers.append(task.answer(np.hstack([np.tile(prefix, (len(endings), 1)), endings])))
        # the oracle refuses some prompt, and with it the whole batch
        except SizeError:
            return
    for place in np.flatnonzero(answers[0] != answers[1]):
        yield endings[place], int(answers[0][place]), int(answers[1][place])


def _prefixes(task: Task, number: int, cut: int, rng: np.random.Generator) -> Tokens:
    """Different prefixes of drawn instances; from place `cut` on they share the tokens of one of
    them.
    """
    prefixes = task.sample(number, rng).tokens[:, : task.prefix_length].copy()
    prefixes[:, cut:] = prefixes[0, cut:]
    return np.unique(prefixes, axis=0)

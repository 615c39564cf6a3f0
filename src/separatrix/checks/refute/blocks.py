"""The adversary of Theorem II on one sparse layer: two blocks with one message and different sets,
swapped where nobody looks.

A block is known to the query by its message (one compressed key and value per key-value head,
rounded to p bits) unless it is opened. Two contents of one block with one message, of which only
the first holds the value v, are found by a birthday search. The query asks for -v, and no other
token is v. The other blocks are drawn until the block is not opened: then both prompts have one
output and two answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

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
from separatrix.models.caches import (
    LEAST_BORDER,
    LEAST_MARGIN,
    MESSAGES,
    Grid,
    cache_codes,
    cache_digest,
    exact,
    run,
    selection_gap,
    sparse_blocks,
)
from separatrix.models.model import Model
from separatrix.tasks import Task, TwoSum
from separatrix.tasks.base.task import Tokens

BATCH = 256
FILLINGS = 16
"""Drawn contents of the other blocks per pair of twins."""
PAIRS = 8
"""Pairs of twins tried per batch."""


def swap_blocks(
    model: Model,
    task: Task,
    grid: Grid,
    search: Search,
) -> Certificate | NotFound:
    """Two prompts of 2-Sum per query that differ in one block, which sends one message and is not
    opened, and have different answers.

    Raises SizeError for a model that does not fit the task, another architecture than one layer of
    sparse heads, another task, or sizes at which every block is opened.
    """
    fits(model, task)
    part = sparse_blocks(model)
    if not isinstance(task, TwoSum) or task.form != "query":
        raise SizeError(
            f"{task.spec}: a block swap needs 2-Sum per query, twosum:n=...,M=...,form=query;"
            " search a wrong answer instead"
        )
    bos = int(model.config.bos)
    blocks = (task.prefix_length + bos) // part.block
    if blocks <= part.topk:
        raise SizeError(
            f"{task.spec} fills {blocks} blocks of {part.block} tokens and topk={part.topk} opens"
            " them all; use a larger n"
        )
    rng = np.random.default_rng(search.seed)
    batch = search.at_once(model, task.length, BATCH)
    with suppress(Expired):
        with search.timed():
            copy = exact(model)
        while search.runs():
            slot = int(rng.integers(blocks))
            # a start token takes one place of the first block
            place = slice(max(0, slot * part.block - bos), (slot + 1) * part.block - bos)
            sets = task.sample(1 + min(batch, search.tries - search.tried), rng).tokens[
                :, : task.prefix_length
            ]
            contents = np.unique(sets[1:, place], axis=0)
            search.count(len(contents))
            for first, second in _twins(copy, sets[0], contents, place, grid, rng, search):
                # a value in one of the twins only: the query for it has two right answers
                for v in rng.permutation(np.setxor1d(first, second)):
                    found = _swap(
                        model, copy, task, (first, second), int(v), slot, place, grid, rng
                    )
                    if found is not None:
                        return found
                if not search.runs():
                    break
    return search.not_found("two blocks with one message", f"{task.vocabulary}^{part.block} blocks")


def _twins(
    copy: Model,
    base: Tokens,
    contents: Tokens,
    place: slice,
    grid: Grid,
    rng: np.random.Generator,
    search: Search,
) -> Iterator[tuple[Tokens, Tokens]]:
    """Pairs of contents of the block with one message and different sets, at most PAIRS, the
    closest to a border left out.
    """
    prompts = np.tile(base, (len(contents), 1))
    prompts[:, place] = contents
    after = run(copy, torch.from_numpy(prompts), grid, names=MESSAGES, check=search.check)
    codes = cache_codes(after.cache, grid, names=MESSAGES).numpy()
    # close to a rounding border another machine may round the other way
    safe = after.border.numpy() >= SAFETY * LEAST_BORDER
    holders: dict[bytes, int] = {}
    pairs = 0
    for row in rng.permutation(np.flatnonzero(safe)):
        # the first content with a message stays; later ones are compared with it
        other = holders.setdefault(codes[row].tobytes(), int(row))
        if set(contents[row]) != set(contents[other]):
            yield contents[other], contents[row]
            pairs += 1
            if pairs == PAIRS:
                return


def _swap(
    model: Model,
    copy: Model,
    task: TwoSum,
    twins: tuple[Tokens, Tokens],
    v: int,
    slot: int,
    place: slice,
    grid: Grid,
    rng: np.random.Generator,
) -> Certificate | None:
    """The certificate that asks for the partner of v, or None if the block is opened, or the
    margins are thin, under every filling.
    """
    cut = task.prefix_length
    fillings = task.sample(FILLINGS, rng).tokens
    # no token outside the twins may be v, or the answer would not hang on them
    others = np.setdiff1d(np.unique(fillings[:, :cut]), [v])
    if not len(others):
        return None
    fillings[:, :cut] = np.where(
        fillings[:, :cut] == v, rng.choice(others, (FILLINGS, cut)), fillings[:, :cut]
    )
    fillings[:, cut:] = -v % task.M
    for filling in fillings:
        prompts = np.stack([filling, filling])
        prompts[0, place], prompts[1, place] = twins
        try:
            answers = task.answer(prompts)
        # a filling that the oracle does not accept is no instance
        except SizeError:
            continue
        if answers[0] == answers[1]:
            continue
        before = [
            run(copy, torch.from_numpy(prompt[None, :cut]), grid, names=MESSAGES)
            for prompt in prompts
        ]
        digests = {cache_digest(one.cache, grid, names=MESSAGES) for one in before}
        rest = torch.from_numpy(filling[None, cut:])
        ends = [run(copy, rest, grid, names=MESSAGES, after=one, seen=cut) for one in before]
        details = agreement(ends)
        gap = min(selection_gap(copy, int(filling[cut]), one.cache, cut) for one in before)
        if len(digests) > 1 or details is None or gap < SAFETY * LEAST_MARGIN:
            continue
        numbers = cache_codes(before[0].cache, grid, names=MESSAGES).shape[1]
        blocks = (cut + model.config.bos) // sparse_blocks(model).block
        return certificate(
            "block_swap",
            model,
            task,
            grid=grid,
            inputs=prompts,
            output=int(ends[0].logits[0].argmax()),
            details={
                "block": slot,
                "blocks": blocks,
                "message_bits": numbers // blocks * grid.bits,
                "messages_sha256": digests.pop(),
                "selection_gap": f"{gap:.3e}",
                **details,
            },
        )
    return None

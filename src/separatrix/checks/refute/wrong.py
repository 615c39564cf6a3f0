"""Wrong answers: drawn inputs, then small changes to those that the model is least sure of."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import torch

from separatrix.checks.refute.record import Expired, NotFound, Search, certificate, decoding, fits
from separatrix.core.errors import SizeError
from separatrix.core.evidence.records import Certificate
from separatrix.models.caches import LEAST_FLOAT32_MARGIN, decoded, exact, margin
from separatrix.models.model import Model
from separatrix.tasks.base.task import Task, Tokens

BATCH = 256
"""Most inputs at once."""
POOL = 32
"""Inputs kept for change: those whose right answer leads least."""


def wrong_answer(
    model: Model,
    task: Task,
    search: Search,
) -> Certificate | NotFound:
    """One input that the model answers wrongly, in its own number format and in float64 alike, and
    by a safe margin.

    Raises SizeError for a model that does not fit the task.
    """
    fits(model, task)
    rng = np.random.default_rng(search.seed)
    pool = np.empty((0, task.length), np.int64)
    most = search.at_once(model, task.length, BATCH)
    with suppress(Expired), search.timed():
        model = decoding(model)
        copy = exact(model)
        while search.runs():
            batch = min(most, search.tries - search.tried)
            drawn = task.sample(batch, rng).tokens
            change = len(pool) and search.tried % (2 * most)
            tokens = _changed(pool, drawn, rng) if change else drawn
            try:
                answers = task.answer(tokens)
            except SizeError:
                tokens = drawn
                answers = task.answer(drawn)
            leads = _leads(model, tokens, answers)
            search.count(batch)
            order = np.argsort(leads, kind="stable")
            for row in order[: np.count_nonzero(leads < -LEAST_FLOAT32_MARGIN)]:
                found = _confirmed(model, copy, task, tokens[row], int(answers[row]), search)
                if found is not None:
                    return found
            pool = np.concatenate([tokens[order[: POOL // 2]], pool])[:POOL]
    return search.not_found("input answered wrongly", f"the inputs of {task.spec}")


@torch.no_grad()
def _leads(model: Model, tokens: Tokens, answers: Tokens) -> np.ndarray:
    """By how much the right answer's logit leads the best other one; negative where the model is
    wrong, nan never.
    """
    logits = model(torch.from_numpy(tokens)).double()
    right = torch.from_numpy(answers)[:, None]
    lead = logits.gather(1, right)[:, 0] - logits.scatter(1, right, float("-inf")).amax(1)
    # a model that answers nan is no witness: such inputs go last
    return torch.where(lead.isnan(), torch.inf, lead).numpy()


def _changed(pool: Tokens, drawn: Tokens, rng: np.random.Generator) -> Tokens:
    """Members of the pool in which a few tokens, or a run of them, are those of another
    instance.
    """
    children = pool[rng.integers(len(pool), size=len(drawn))]
    length = drawn.shape[1]
    start = rng.integers(length, size=len(drawn))
    span = rng.integers(1, 1 + max(1, length // 4), size=len(drawn))
    place = np.arange(length)
    taken = (place >= start[:, None]) & (place < (start + span)[:, None])
    return np.where(taken, drawn, children)


@torch.no_grad()
def _confirmed(
    model: Model, copy: Model, task: Task, prompt: Tokens, answer: int, search: Search
) -> Certificate | None:
    """The certificate, if the model is safely wrong on this input alone, and its float64 copy,
    token by token, answers the same. Raises Expired.
    """
    tokens = torch.from_numpy(prompt[None])
    own = model(tokens)[0].double()
    logits, _ = decoded(copy, tokens, search.check)
    output = int(logits[0].argmax())
    gap = margin(logits[0])
    if (
        output == answer
        or int(own.argmax()) != output
        or min(gap, margin(own)) < 2 * LEAST_FLOAT32_MARGIN
    ):
        return None
    details = {"margin": f"{gap:.3e}"}
    return certificate(
        "wrong_answer", model, task, inputs=prompt[None], output=output, details=details
    )

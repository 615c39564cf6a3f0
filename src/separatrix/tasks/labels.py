"""Where a batch of prompts asks, and what is right there: as answers, and as labels that training
code for language models takes, token ids and -100 where none is due.

`labels=tokens` in a task's text asks for the latter: with mqar the two arrays are those of
Zoology's generator, input ids and labels.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from separatrix.core.errors import UnknownNameError
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.task import NO_ANSWER, Batch, Task, Tokens

Asked = tuple[Tokens | None, Tokens]


_LOOKED_AT = 16
"""Prompts that tell how often a task asks: most ask equally often in each."""


@lru_cache(maxsize=1024)
def most_asked(task: Task) -> int:
    """In how many places of a prompt answers are due: the most among a few prompts."""
    if not task.several:
        return 1
    drawn = task.sample(_LOOKED_AT, np.random.default_rng(0))
    return int((drawn.targets != NO_ANSWER).sum(1).max())


def asked(task: Task, targets: Tokens) -> Asked:
    """Places (rows, k) of answers, None where all are last, and these, filled with NO_ANSWER."""
    if not task.several:
        return None, targets[:, None]
    due = targets != NO_ANSWER
    most = int(due.sum(1).max())
    # the places that are due first, in their order
    places = np.argsort(~due, axis=1, kind="stable")[:, : max(1, most)]
    return places, np.take_along_axis(targets, places, 1)


IGNORED = -100
"""The label of a place where no answer is due: what losses of PyTorch ignore unless told."""
LABELS = "labels=tokens"


class Labelled(NamedTuple):
    """Both (batch, length): `labels[row, place]` is the id due after `input_ids[row, place]`."""

    input_ids: Tokens
    labels: Tokens


def token_labels(task: Task, batch: Batch, *, as_answers: bool = False) -> Labelled:
    """A batch of a task with its answers as token ids, in place: the label stands where its answer
    is due, shifted by nothing. With `as_answers` labels are the numbers of the answers themselves,
    as constructed models give them.
    """
    tokens, targets = batch
    labels = np.full(tokens.shape, IGNORED, np.int64)
    due = targets != NO_ANSWER
    if not task.several:
        labels[:, -1] = targets if as_answers else task.label_ids(targets)
    else:
        labels[due] = targets[due] if as_answers else task.label_ids(targets[due])
    return Labelled(tokens, labels)


def label_vocabulary(task: Task) -> int:
    """How many ids a model needs for prompts and labels."""
    last = np.array([task.answers - 1])
    return max(task.vocabulary, int(task.label_ids(last)[0]) + 1)


def split_labels(text: str) -> tuple[str, bool]:
    """A task's text without `labels=tokens`, and whether it stood there, or UnknownNameError."""
    name, colon, rest = text.partition(":")
    parts = [part for part in rest.split(",") if colon]
    asked = [part.partition("=")[2].strip() for part in parts if part.strip().startswith("labels=")]
    for labels in asked:
        if labels != "tokens":
            raise UnknownNameError.of("labels", labels, ("tokens",))
    kept = [part for part in parts if not part.strip().startswith("labels=")]
    return f"{name}:{','.join(kept)}" if kept else name, bool(asked)

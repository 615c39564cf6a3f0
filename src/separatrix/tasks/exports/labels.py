"""Rows of a task of tokens as input ids and labels, ready for training code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.tasks import Task
from separatrix.tasks.base.task import Batch
from separatrix.tasks.exports.source import Column, Rows
from separatrix.tasks.exports.tokens import TokenSource
from separatrix.tasks.labels import IGNORED, LABELS, label_vocabulary, token_labels


class LabelSource(TokenSource):
    """Input ids and labels alone: what a model trains on, and nothing to read."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.spec = f"{task.spec},{LABELS}"
        self.largest = max(self.largest, label_vocabulary(task))
        self.columns = (
            Column(
                "input_ids",
                "ints",
                f"the {task.length:,} tokens, integers from 0 to {task.vocabulary - 1:,}",
            ),
            Column(
                "labels",
                "ints",
                "the token id due after each token, below"
                f" {label_vocabulary(task):,}, or {IGNORED} where none is due",
            ),
        )

    def sizes(self) -> dict[str, Any]:
        return super().sizes() | {
            "labels": {"ids": label_vocabulary(self.task), "ignored": IGNORED},
        }

    def _columns(
        self,
        tokens: NDArray[np.int64],
        targets: NDArray[np.int64],
        answers: NDArray[np.int64],
        ends: NDArray[np.int64],
    ) -> Rows:
        return dict(token_labels(self.task, Batch(tokens, targets))._asdict())

"""The prefix classes of a task of which a count is known."""

from __future__ import annotations

from separatrix.core.numbers.counts import Count
from separatrix.tasks import Task


def counted_classes(task: Task) -> Count:
    """`task.prefix_classes()`; AssertionError where no count is known."""
    count = task.prefix_classes()
    assert count is not None, task.spec
    return count

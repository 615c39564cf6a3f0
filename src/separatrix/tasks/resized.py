"""A task with some of its sizes changed, so that a model of the one can read the other."""

from __future__ import annotations

from separatrix.errors import SizeError, SpecError
from separatrix.tasks import Task, parse_task
from separatrix.tasks.base.sizes import read_sizes


def resized(task: Task, text: str) -> tuple[Task, str]:
    """The task with the sizes that a text such as "n=64,K=8" names, and these in canonical words.

    Raises SpecError, UnknownNameError or SizeError for sizes the task has not, and SizeError where
    they change its vocabulary or answers.
    """
    sizes = read_sizes(f"{task.name}:{text.strip()}", type(task).usage)
    if not sizes:
        raise SpecError(f"'{text[:60]}' names no size; write one such as 'n=64'")
    other = parse_task(
        f"{task.name}:{','.join(f'{k}={v}' for k, v in (task.sizes() | sizes).items())}"
    )
    if (other.vocabulary, other.answers) != (task.vocabulary, task.answers):
        raise SizeError(
            f"{other.spec} has {other.vocabulary:,} token ids and {other.answers:,} answers,"
            f" {task.spec} has {task.vocabulary:,} and {task.answers:,}: one model cannot read both"
        )
    return other, ",".join(f"{name}={value}" for name, value in sizes.items())

"""Tasks for a context: sizes that follow from it are filled in, and what does not fit is
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from separatrix.core.errors import SeparatrixError, SizeError, UnknownNameError
from separatrix.core.numbers.amounts import LONGEST_CONTEXT, check_context
from separatrix.core.numbers.first_size import first_size
from separatrix.tasks import TASKS, Eva, Task, parse_task
from separatrix.tasks.base.described import add_sizes, name_of, read_sizes

_COMPOSITIONS = ("seqcomp", "seqcomp-forward")


def used_tokens(task: Task) -> int:
    """Tokens of the context a task takes where its sizes are given: its prompt, of Eva the facts
    alone, whose question is the next token.
    """
    return task.n if isinstance(task, Eva) else task.length


def check_fits(task: Task, context: int) -> None:
    """Raises SizeError for a task that is longer than the context."""
    if used_tokens(task) > context:
        raise SizeError(
            f"task '{task.spec}' takes {used_tokens(task):,} tokens, the context is {context:,};"
            f" give smaller sizes or a longer --context, or leave {_growing(task.name)} out to fill"
            " the context"
        )


def task_for_context(text: str, context: int) -> Task:
    """The task of a text such as "seqcomp:L=3" or "eva:V=50000" at a context of that many tokens.

    A missing n (m of seqcomp) becomes the largest that fits; missing n_l of seqcomp are 1, and
    recall has as many keys and values as facts, where it does not say. Raises
    what `parse_task` raises, and SizeError for a task that does not fit.
    """
    check_context(context)
    name = name_of(text)
    if name not in TASKS:
        parse_task(text)
        raise UnknownNameError.of("task", name, TASKS, listing="separatrix list tasks")
    given = read_sizes(text.rstrip(" ,:"), TASKS[name].usage)
    if name in _COMPOSITIONS and "n" not in given and "form" not in given:
        steps = given.get("L")
        # a wrong L is refused when the whole text is read
        branches = range(1, min(steps, 100)) if isinstance(steps, int) else ()
        names = (f"n_{level}" for level in branches)
        text = add_sizes(text, (f"{size}=1" for size in names if size not in given))
    grows = _growing(name)
    if grows in given or "n" in given:
        task = parse_task(text)
        check_fits(task, context)
        return task
    alike = [size for size in ("K", "V") if name == "recall" and size not in given]
    return _largest(text, [grows, *alike], context)


def _growing(name: str) -> str:
    return parse_task(f"{name}:{TASKS[name].grid[0]}").family().grows


def _largest(text: str, sizes: Sequence[str], context: int) -> Task:
    """The task with the largest value of these sizes that fits in the context."""

    def at(value: int) -> Task:
        """The task at that size, or one below where only even sizes exist."""
        try:
            return parse_task(add_sizes(text, [f"{size}={value}" for size in sizes]))
        except SizeError:
            return parse_task(add_sizes(text, [f"{size}={value - 1}" for size in sizes]))

    def beyond(value: int) -> bool:
        try:
            # as on a capability card, the question fits as well
            return at(value).length > context
        except SizeError:
            return True

    # tasks differ in their smallest size
    tried = (*range(1, 65), *(1 << power for power in range(7, 40)))
    smallest = next((value for value in tried if not _raises(lambda value=value: at(value))), 1)
    least = at(smallest)
    first = first_size(beyond, smallest, limit=10 * LONGEST_CONTEXT)
    if first is None or first == smallest:
        raise SizeError(
            f"task '{text}' does not fit in a context of {context:,} tokens: with {sizes[0]} ="
            f" {least.sizes()[sizes[0]]} it takes {least.length:,}; give a longer --context or"
            " smaller sizes"
        )
    return at(first - 1)


def _raises(read: Callable[[], Task]) -> bool:
    try:
        read()
    except SeparatrixError:
        return True
    return False

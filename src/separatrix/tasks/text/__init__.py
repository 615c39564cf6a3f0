"""Tasks in natural language: composition told as text, for models that read words."""

from __future__ import annotations

from separatrix.core.errors import UnknownNameError
from separatrix.tasks.base.described import name_of, read_sizes, without_preset
from separatrix.tasks.text.base import TextItem as TextItem
from separatrix.tasks.text.base import TextTask as TextTask
from separatrix.tasks.text.haystack import Needles as Needles
from separatrix.tasks.text.haystack import Variables as Variables
from separatrix.tasks.text.multihop import MultiHop as MultiHop

TEXT_TASKS: dict[str, type[TextTask]] = {task.name: task for task in (MultiHop, Needles, Variables)}


def parse_text_task(text: str) -> TextTask:
    """The task of "multihop:k=2,n=20". Raises UnknownNameError, SpecError or SizeError."""
    name = name_of(text)
    if name not in TEXT_TASKS:
        raise UnknownNameError.of("text task", name, TEXT_TASKS)
    kind = TEXT_TASKS[name]
    return kind.from_sizes(read_sizes(without_preset(text, kind.grid), kind.usage))

"""The tasks as a table and one by one; no torch."""

from __future__ import annotations

from separatrix.cli.report.theorems import works
from separatrix.core.errors import UnknownNameError
from separatrix.tasks import TASKS, Task, Thought, parse_any_task, usage
from separatrix.tasks.base.described import name_of, presets
from separatrix.tasks.questions import ASKED, QUESTIONS
from separatrix.tasks.text import TEXT_TASKS, TextTask

NOTE = "`separatrix list tasks NAME` tells sizes, sampler, chance and source"
SPARED = ("sizes", "source")


def rows() -> list[dict[str, str]]:
    """One row per task, texts in natural language last."""
    return [
        {"name": name, "asks": cls.title, "sizes": _usage(name), "source": cls.source}
        for name, cls in every().items()
    ]


def every() -> dict[str, type[Task] | type[TextTask]]:
    """All tasks by name, of tokens and then of words."""
    return {**TASKS, **TEXT_TASKS}


def _usage(name: str) -> str:
    return usage(name) if name in TASKS else every()[name].usage


def describe(name: str) -> list[tuple[str, str]]:
    """(heading, text) pairs of one task. Raises UnknownNameError."""
    name = name_of(name)
    known = every() | {Thought.name: Thought}
    if name not in known:
        raise UnknownNameError.of("task", name, known, listing="separatrix list tasks")
    cls = known[name]
    words = cls.words
    chains = [one for one, kind in TASKS.items() if kind.thoughts]
    written = f"; thought={'|'.join(cls.thoughts)}" if cls.thoughts else ""
    shifts = (f"{shift}: {text}" for shift, text in cls.shifts.items())
    sizes = [_size(f"{name}:{text}") for text in cls.grid]
    called = [f"{name}:{one} is {size}" for one, size in presets(cls.grid or ("",)).items() if size]
    places = "several tokens" if cls.several else "the last token"
    several = QUESTIONS[name].words if name in QUESTIONS else None
    parts = [
        (f"{name}: {cls.title}", words.definition),
        (
            "written as" if cls is Thought else "sizes",
            f"{Thought.usage if cls is Thought else _usage(name)}{written}",
        ),
        ("composition tasks", ", ".join(chains) if cls is Thought else ""),
        ("drawn", words.drawn),
        ("answers", cls.due or f"due after {places}; the loss is taken there"),
        ("prefix classes", words.counted),
        ("shifts (shift=...)", "\n".join(shifts)),
        ("from easy to hard", "\n".join(sizes)),
        ("presets", "\n".join(called)),
        (
            "several answers per prompt (queries=...)",
            f"{several.definition}\n\n{several.drawn}" if several else "",
        ),
        ("prefix classes with several answers", several.counted if several else ""),
        (
            "with several answers",
            "\n".join(_size(f"{name}:{text}") for text in ASKED.get(name, ())),
        ),
        ("source", words.origin),
        ("works", works(words.origin)),
    ]
    return [(heading, text) for heading, text in parts if text]


def _size(text: str) -> str:
    """A task's text, how large its instances are, its chance, and what must be told apart."""
    task = parse_any_task(text)
    # a long fraction in four digits
    chance = str(task.chance) if len(str(task.chance)) <= 9 else f"{float(task.chance):.4f}"
    facts = [*task.extent, f"chance {chance}", task.told_apart]
    return f"{task.spec}   {', '.join(filter(None, facts))}"

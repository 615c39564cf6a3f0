"""The tasks as a table, one by one, and as the page docs/tasks.md, all from the code; no torch."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from fractions import Fraction

from separatrix.errors import UnknownNameError
from separatrix.tasks import AUDITED, PROBES, TASKS, Composition, Task, Thought, parse_task
from separatrix.tasks.functions.composed import Functions
from separatrix.tasks.text import TEXT_TASKS, TextTask, parse_any_task, parse_text_task

_THOUGHT = "thought-the-chain-of-a-composition-task-value-by-value-then-the-answer"
"""Anchor of the page's last section."""
_ABOUT = f"""\
A composition task takes `thought=values`, some `thought=pairs`: the [chain of values](#{_THOUGHT}) is written out.
Sources in brackets, theory.md and its sections are those of [theory.md](theory.md); [here] marks what is derived in this project; [Aro24] is Arora
and others, *Zoology*, arXiv 2312.04927.

The audit of a task tries shortcuts on its first three sizes: the accuracy of each on 4,000 instances (fitted to 4,000 others), and the level p it may
reach. A standard error is sqrt(p (1 - p) / 4,000): 0.008 at p = 1/2, 0.005 at p = 1/8. A probe that is more than three of them above its level is tried
again with four times as many fresh instances, and is a leak only if it is above again; none here is. Leaks of less than about 2 % in a task answered
yes or no need more instances to be seen: `separatrix audit TASK --fitted 40000 --tested 40000`. The level is chance, unless no way of drawing could
avoid more; then the task says why. What each looks at:"""

Measured = Callable[[str], Mapping[str, float]]
"""Accuracy of every probe on the task of a text."""
UNMEASURED = "?"


def rows() -> list[dict[str, str]]:
    """One row per task, texts in natural language last."""
    listed: list[type[Task] | type[TextTask]] = [*TASKS.values(), *TEXT_TASKS.values()]
    return [
        {"name": cls.name, "asks": cls.title, "sizes": cls.usage, "source": cls.source}
        for cls in listed
    ]


def grid(name: str) -> list[str]:
    """Task texts from easy to hard."""
    return [f"{name}:{sizes}" for sizes in (TASKS | TEXT_TASKS)[name].grid]


def describe(name: str) -> list[tuple[str, str]]:
    """(heading, text) pairs of one task. Raises UnknownNameError."""
    name = name.partition(":")[0].strip()
    if name in TEXT_TASKS:
        return _describe_text(TEXT_TASKS[name])
    if name == Thought.name:
        return _describe_thought()
    if name not in TASKS:
        raise UnknownNameError.of(
            "task", name, [*TASKS, *TEXT_TASKS, Thought.name], listing="separatrix tasks"
        )
    cls = TASKS[name]
    parts = [
        (f"{name}: {cls.title}", _module_doc(cls)),
        ("sizes", f"{cls.usage}{_chains(cls)}"),
        ("drawn", inspect.getdoc(cls) or ""),
        (
            "answers",
            (
                "due after several tokens; the loss is taken there"
                if cls.several
                else "due after the last token; the loss is taken there"
            ),
        ),
        ("prefix classes", _joined(inspect.getdoc(cls.prefix_classes) or "")),
    ]
    if cls.shifts:
        parts.append(
            (
                "shifts (shift=...)",
                "\n".join(f"{shift}: {text}" for shift, text in cls.shifts.items()),
            )
        )
    parts.append(("from easy to hard", "\n".join(_size(parse_task(text)) for text in grid(name))))
    return [*parts, ("source", cls.source)]


def _describe_text(cls: type[TextTask]) -> list[tuple[str, str]]:
    return [
        (f"{cls.name}: {cls.title}", _module_doc(cls)),
        ("sizes", cls.usage),
        ("drawn", inspect.getdoc(cls) or ""),
        (
            "answers",
            "due after the prompt; with style=steps the sentences of the chain stand before it",
        ),
        ("prefix classes", "none counted: prompts in words have no fixed length"),
        (
            "from easy to hard",
            "\n".join(
                f"{text}   chance {fraction(parse_text_task(text).chance)}"
                for text in grid(cls.name)
            ),
        ),
        ("source", cls.source),
    ]


def _describe_thought() -> list[tuple[str, str]]:
    composed = [name for name, cls in TASKS.items() if issubclass(cls, Composition)]
    return [
        (f"{Thought.name}: {Thought.title}", _module_doc(Thought)),
        ("written as", Thought.usage),
        ("composition tasks", ", ".join(composed)),
        ("drawn", "as the task is, with its chain behind the prompt"),
        (
            "answers",
            (
                "due after the prompt's last token and after every written token; the loss is taken"
                " there"
            ),
        ),
        ("prefix classes", _joined(inspect.getdoc(Thought.prefix_classes) or "")),
        ("source", Thought.source),
    ]


def _chains(cls: type[Task]) -> str:
    """How the chain of thought of a composition task is asked for."""
    forms = (
        "values|pairs"
        if issubclass(cls, Functions)
        else "values"
        if issubclass(cls, Composition)
        else ""
    )
    return f"; thought={forms}" if forms else ""


def _size(task: Task) -> str:
    count = task.prefix_classes()
    classes = (
        ""
        if count is None
        else f", log2 of the prefix classes after {task.prefix_length:,} tokens {count.log2_str(5)}"
    )
    return (
        f"{task.spec}   {task.length:,} tokens of {task.vocabulary:,} ids, {task.answers:,}"
        f" answers, chance {fraction(task.chance)}{classes}"
    )


def fraction(value: Fraction) -> str:
    """A probability for people: 1/8, or four digits where the fraction is long."""
    text = str(value)
    return text if len(text) <= 9 else f"{float(value):.4f}"


def page(measured: Measured | None = None) -> str:
    """docs/tasks.md; without measurements it has a `?` where an accuracy stands."""
    lines = [
        "# The tasks",
        "",
        (
            "Written by `separatrix tasks --markdown` from the code; a test compares. One task:"
            " `separatrix tasks show seqcomp`; a few instances:"
        ),
        (
            "`separatrix tasks sample seqcomp:L=2,n=16`; its audit: `separatrix audit seqcomp`;"
            " files: [export](tasks-export.md)."
        ),
        "",
        "| task | asks | sizes |",
        "|---|---|---|",
        *(
            f"| [{row['name']}](#{_anchor(row)}) | {_cell(row['asks'])} | {_cell(row['sizes'])} |"
            for row in rows()
        ),
        "",
        *_ABOUT.splitlines(),
        "",
        *(f"- {probe}: {text}" for probe, text in PROBES.items()),
    ]
    for name in [*(row["name"] for row in rows()), Thought.name]:
        (title, text), *parts = describe(name)
        lines += ["", f"## {title}", "", "```text", text, "```", ""]
        for heading, content in parts:
            lines += (
                ["", f"{heading}:", "", "```text", content, "```"]
                if "\n" in content
                else [f"- {heading}: {content}"]
            )
        if name != Thought.name:
            lines += ["", *_audit(name, measured)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def _audit(name: str, measured: Measured | None) -> list[str]:
    """The audit's table: an accuracy and the level it may reach, for every probe at every size."""
    texts = grid(name)[:AUDITED]
    found = [{} if measured is None else measured(text) for text in texts]
    lines = [
        f"| accuracy of level | {' | '.join(text.partition(':')[2] for text in texts)} |",
        f"|---|{'---|' * len(texts)}",
    ]
    for probe in PROBES:
        cells = []
        for text, accuracies in zip(texts, found, strict=True):
            accuracy = f"{accuracies[probe]:.3f}" if probe in accuracies else UNMEASURED
            cells.append(f"{accuracy} of {float(_level(text, probe)):.3f}")
        lines.append(f"| {probe} | {' | '.join(cells)} |")
    return lines


def _level(text: str, probe: str) -> Fraction:
    task = parse_any_task(text)
    return task.level(probe) if isinstance(task, Task) else task.chance


def without_measurements(text: str) -> str:
    """The page with a `?` for every accuracy, as `page()` writes it."""
    return re.sub(r"\d\.\d{3}(?= of \d\.\d{3})", UNMEASURED, text)


def _module_doc(cls: type) -> str:
    module = inspect.getmodule(cls)
    return inspect.getdoc(module) or "" if module is not None else ""


def _anchor(row: dict[str, str]) -> str:
    """GitHub's anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", f"{row['name']}: {row['asks']}".lower()).replace(" ", "-")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _joined(text: str) -> str:
    """A docstring's paragraphs, each in one line."""
    return "\n".join(" ".join(part.split()) for part in text.split("\n\n"))

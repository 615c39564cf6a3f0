"""The tasks as a table, one by one, and as the page docs/tasks.md, all from the code; no torch."""

from __future__ import annotations

from fractions import Fraction

from separatrix.cli.report.parts import paged, section, slug
from separatrix.core.errors import UnknownNameError
from separatrix.tasks import (
    AUDITED,
    PROBES,
    SHORTCUTS,
    TASKS,
    Task,
    Thought,
    parse_any_task,
    usage,
)
from separatrix.tasks.base.described import name_of, wrapped
from separatrix.tasks.measured import best_rule, level, measured, rules, stated
from separatrix.tasks.questions import ASKED, QUESTIONS
from separatrix.tasks.text import TEXT_TASKS, TextTask

NOTE = "`separatrix list tasks NAME` tells sizes, sampler, chance and source"
NARROW = "; a wider terminal lists sizes"
_WIDE = ("sizes", "source")
_THOUGHT = "thought-the-chain-of-a-composition-task-value-by-value-then-the-answer"
"""Anchor of the page's last section."""
_ABOUT = f"""\
A composition task takes `thought=values`, some `thought=pairs`: the
[chain of values](#{_THOUGHT})
is written out. Sources in brackets, theory.md and its sections are those of
[theory.md](theory.md); [here] marks what is derived in this project; [Aro24] is Arora and others,
*Zoology*, arXiv 2312.04927.

Some tasks take `queries=all` or `queries=k`: many answers per prompt, which is what makes training
quick. Chance, levels and audits are those of a single answer, a uniform one of those due, and so is
the ceiling of Theorem A; what it costs to answer all of a prompt is more.

`labels=tokens` in the text of a task of tokens makes `task NAME sample` and `export` give input
ids and labels: the token id due after each token, -100 where none is. For mqar these are the arrays
of Zoology's generator. (In Python: `separatrix.tasks.labels.token_labels(task, batch)`.)

One call draws what several do: `sample(1000, rng)` are two calls of `sample(500, rng)`.

The audit of a task tries shortcuts on its first three sizes: the accuracy of each on 4,000
instances (fitted to 4,000 others), and the level p it may reach. A standard error is sqrt(p (1 - p)
/ 4,000): 0.008 at p = 1/2, 0.005 at p = 1/8. A probe that is more than three of them above its
level is tried again with four times as many fresh instances, and is a leak only if it is above
again; none here is. Nine times of ten this finds a gain of 0.035 in a task answered yes or no that
one value of a token tells, of 0.053 spread over 64 values, of 0.082 over 512; with 40,000 and
40,000 (`separatrix task TASK audit --number 40000`) 0.011, 0.017 and 0.026. That is
for a token whose place is known: among many places the right one must be found too, and the gain of
0.053 was found 7 times of 10 among 11 places, 6 of 10 among 63; that for eight answers, 0.056, 8 of
10 among 3. Boosted trees on raw tokens are held to the levels of every task at one size.

The level of a probe is chance, unless no way of drawing could avoid more: then the task says why.
Of some rules nobody has derived it; theirs is what they were measured to reach, and 0.01. A second
table has the best rule at every size, and the largest level of all rules tried: an accuracy above
it is more than any of them has. Shifts promise no level. All numbers of both tables are in one
file, `src/separatrix/tasks/levels.json`, which `tools/levels.py` measures with seed 0 (on fewer
prompts where they are long; none are tried beyond 4,096 tokens or 1,024 answers). What each
looks at:"""


def rows() -> list[dict[str, str]]:
    """One row per task, texts in natural language last."""
    return [
        {"name": name, "asks": cls.title, "sizes": _usage(name), "source": cls.source}
        for name, cls in every().items()
    ]


def brief(wide: bool) -> list[dict[str, str]]:
    """The same, without sizes and sources where a terminal is narrow."""
    return [{k: v for k, v in row.items() if wide or k not in _WIDE} for row in rows()]


def every() -> dict[str, type[Task] | type[TextTask]]:
    """All tasks by name, of tokens and then of words."""
    return {**TASKS, **TEXT_TASKS}


def grid(name: str) -> list[str]:
    """Task texts from easy to hard."""
    return [f"{name}:{sizes}" for sizes in every()[name].grid]


def asked(name: str) -> list[str]:
    """The same with several answers per prompt."""
    return [f"{name}:{sizes}" for sizes in ASKED.get(name, ())]


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
    written = f"; thought={'|'.join(cls.thoughts)}" if cls.thoughts else ""
    shifts = (f"{shift}: {text}" for shift, text in cls.shifts.items())
    sizes = [_size(parse_any_task(text)) for text in (grid(name) if cls.grid else ())]
    parts = [
        (f"{name}: {cls.title}", words.definition),
        (
            "written as" if cls is Thought else "sizes",
            f"{Thought.usage if cls is Thought else _usage(name)}{written}",
        ),
        ("composition tasks", ", ".join(_with_chains()) if cls is Thought else ""),
        ("drawn", words.drawn),
        ("answers", cls.due),
        ("prefix classes", words.counted),
        ("shifts (shift=...)", "\n".join(shifts)),
        ("from easy to hard", "\n".join(sizes)),
        *_questions(name),
        ("source", words.origin),
    ]
    return [(heading, text) for heading, text in parts if text]


def _questions(name: str) -> list[tuple[str, str]]:
    """What `queries=` makes of a task, where it takes it."""
    if name not in QUESTIONS:
        return []
    words = QUESTIONS[name].words
    return [
        ("several answers per prompt (queries=...)", f"{words.definition}\n\n{words.drawn}"),
        ("prefix classes with several answers", words.counted),
        ("with several answers", "\n".join(_size(parse_any_task(text)) for text in asked(name))),
    ]


def _with_chains() -> list[str]:
    return [name for name, cls in TASKS.items() if cls.thoughts]


def _size(task: Task | TextTask) -> str:
    """A task's text, how large its instances are, its chance, and what must be told apart."""
    facts = [*task.extent, f"chance {fraction(task.chance)}", task.told_apart]
    return f"{task.spec}   {', '.join(filter(None, facts))}"


def fraction(value: Fraction) -> str:
    """A probability for people: 1/8, or four digits where the fraction is long."""
    text = str(value)
    return text if len(text) <= 9 else f"{float(value):.4f}"


def page() -> str:
    """docs/tasks.md."""
    lines = [
        "# The tasks",
        "",
        "Written by `separatrix list tasks --markdown` from the code; a test compares. One task:",
        "`separatrix list tasks seqcomp`; a few instances:",
        "`separatrix task seqcomp:L=2,n=16 sample`; its audit: `separatrix task seqcomp audit`;",
        "files:",
        "[export](tasks-export.md).",
        "",
        "| task | asks | sizes |",
        "|---|---|---|",
        *(
            f"| [{one['name']}](#{slug(': '.join((one['name'], one['asks'])))})"
            f" | {_cell(one['asks'])} | {_cell(one['sizes'])} |"
            for one in rows()
        ),
        "",
        *_ABOUT.splitlines(),
        "",
        *(f"- {probe}: {text}" for probe, text in PROBES.items()),
        "",
        "and, of single tasks,",
        "",
        *(f"- {probe}: {text}" for probe, text in SHORTCUTS.items()),
    ]
    for name in [*every(), Thought.name]:
        lines += section(describe(name), wrapped)
        if name != Thought.name:
            lines += ["", *_audit(name)]
    return paged(lines)


def _audit(name: str) -> list[str]:
    """The audit's tables: every probe at the first sizes, the best one at every size and shift."""
    texts = list(measured(name))
    first = texts[:AUDITED]
    lines = [
        f"| accuracy of level | {' | '.join(text.partition(':')[2] for text in first)} |",
        f"|---|{'---|' * len(first)}",
    ]
    for probe in (*PROBES, *every()[name].shortcuts):
        cells = (_reached(text, probe) if probe in rules(text) else "-" for text in first)
        lines.append(f"| {probe} | {' | '.join(cells)} |")
    lines += ["", "| size | best rule | accuracy of level | level of all |", "|---|---|---|---|"]
    lines += [_best(text) for text in texts]
    return lines


def _best(text: str) -> str:
    """The rule that is right most often, its accuracy and level, and the largest of all levels."""
    best, most = best_rule(text), level(parse_any_task(text))
    cells = "none tried | too large | -"
    if best is not None:
        end = f"{best.accuracy:.3f} | -"
        cells = f"{best.name} | {end if most is None else _reached(text, best.name, most)}"
    return f"| `{text.partition(':')[2]}` | {cells} |"


def _reached(text: str, probe: str, *more: Fraction) -> str:
    """What a probe reached, of what it may."""
    may = [stated(parse_any_task(text), probe), *more]
    return f"{rules(text)[probe]:.3f} of {' | '.join(f'{float(each or 1):.3f}' for each in may)}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")

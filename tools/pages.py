"""Writes the pages of docs/ that tell of every task and mechanism, from what the code says of them.

.venv/bin/python tools/pages.py [tasks] [mechanisms]
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path

from separatrix.cli.report import mechanisms, tasks
from separatrix.cli.report.mechanisms import SIZES, maths
from separatrix.core.document.markdown import slug
from separatrix.core.evidence.atomic import write_atomic
from separatrix.stacks.architecture import MECHANISMS
from separatrix.tasks import AUDITED, PROBES, SHORTCUTS, Thought, parse_any_task
from separatrix.tasks.base.described import wrapped
from separatrix.tasks.measured import best_rule, level, measured, rules, stated

DOCS = Path(__file__).resolve().parent.parent / "docs"
_COMMON = "Sizes of several mechanisms"
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


def tasks_page() -> str:
    """docs/tasks.md."""
    lines = [
        "# The tasks",
        "",
        "Written by `tools/pages.py` from the code; a test compares. One task:",
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
            for one in tasks.rows()
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
    for name in [*tasks.every(), Thought.name]:
        lines += section(tasks.describe(name), wrapped)
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
    for probe in (*PROBES, *tasks.every()[name].shortcuts):
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


def mechanisms_page() -> str:
    """docs/mechanisms.md: sizes of several mechanisms stand before all of them, what a family
    shares at the first of it.
    """
    table = mechanisms.brief(wide=True)
    names = list(table[0])
    lines = [
        "# The mechanisms",
        "",
        (
            "Written by `tools/pages.py` from the code; a test compares. One"
            " mechanism: `separatrix list mechanisms gdn`."
        ),
        "",
        f"{mechanisms.NOTE[0].upper()}{mechanisms.NOTE[1:]}.",
        "",
        f"| {' | '.join(names)} |",
        f"|{'---|' * len(names)}",
        *(f"| {' | '.join(row.values())} |" for row in table),
    ]
    told = {name: mechanisms.describe(name) for name in MECHANISMS}
    counts = Counter(line for parts in told.values() for line in dict(parts)[SIZES].split("\n"))
    common = [line for line, count in counts.items() if count > 2]
    lines += ["", f"## {_COMMON}", "", "```text", *common, "```"]
    firsts: dict[str, str] = {}
    for name, ((title, text), *parts) in told.items():
        sizes = dict(parts)[SIZES].split("\n")
        shared = ", ".join(line.partition(" ")[0] for line in sizes if line in common)
        own = "\n".join(line for line in sizes if line not in common)
        parts = [(head, own if head == SIZES else said) for head, said in parts]
        parts.insert(1, ("sizes as others have them", f"[{shared}](#{slug(_COMMON)})"))
        for family in maths(name)[1]:
            first = firsts.setdefault(family, title)
            if first != title and family in text:
                text = text.replace(family, "").strip() or f"{MECHANISMS[name].title}."
                parts.insert(0, ("the family's maths", f"[{first}](#{slug(first)})"))
        lines += section([(title, text), *((head, said) for head, said in parts if said)])
    return paged(lines)


def section(described: Iterable[tuple[str, str]], wrapped: Callable[[str], str] = str) -> list[str]:
    """An explanation as a section of a page: its first text in a block, then a list; what has
    several lines is a block of its own.
    """
    (title, text), *parts = described
    lines = ["", f"## {title}", "", "```text", wrapped(text), "```", ""]
    for heading, content in parts:
        if "\n" not in content:
            lines.append(f"- {heading}: {content}")
            continue
        # lines of sizes and shifts stand as they are: one line each is what makes them a list
        block = wrapped(content) if "\n\n" in content else content
        lines += ["", f"{heading}:", "", "```text", block, "```"]
    return lines


def paged(lines: Iterable[str]) -> str:
    """The lines as a file, no two blank ones in a row."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


PAGES = {"tasks": tasks_page, "mechanisms": mechanisms_page}

if __name__ == "__main__":
    for page in sys.argv[1:] or PAGES:
        write_atomic(DOCS / f"{page}.md", PAGES[page]())

"""Writes the pages of docs/ that list all tasks and mechanisms, from what the code says of them;
what it says of one is a page of the site (tools/website.py).

.venv/bin/python tools/pages.py [tasks] [mechanisms]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

from separatrix.cli.report import mechanisms, tasks
from separatrix.core.evidence.folder import write_atomic
from separatrix.tasks.audits.probes import PROBE, words_of
from separatrix.tasks.audits.run import standard_error
from separatrix.tasks.audits.shortcuts import SHORTCUTS

DOCS = Path(__file__).resolve().parent.parent / "docs"
WRITTEN = "<!-- written by tools/pages.py; a test compares -->"
_FITTED = 4000
"""Instances that an audit fits to, and as many that it judges on."""
_ERRORS = [f"{standard_error(Fraction(1, k), _FITTED):.3f}" for k in (2, 8)]
_TWO, _MORE, _EIGHT = (0.035, 0.053, 0.082), (0.011, 0.017, 0.026), (0.023, 0.056, 0.098)
"""Gains that an audit finds nine times of ten, told by 1, 64 and 512 values of a token: of two
answers, of two on ten times as many instances, and of eight (benchmarks/audits.py; a test
compares).
"""
_SPREADS = f"spread over 64 values, of {_TWO[2]} over 512"
_ABOUT = f"""\
A composition task takes `thought=values`, some `thought=pairs`: the
chain of values (`separatrix list tasks thought`) is written out. Sources in brackets, theory.md and
its sections are those of [theory.md](theory.md); [here] marks what is derived in this project;
[Aro24] is Arora and others, *Zoology*, arXiv 2312.04927.

Some tasks take `queries=all` or `queries=k`: many answers per prompt, which is what makes training
quick. Chance, levels and audits are those of a single answer, a uniform one of those due, and so is
the ceiling of Theorem A; what it costs to answer all of a prompt is more.

`labels=tokens` in the text of a task of tokens makes `task NAME sample` and `export` give input
ids and labels: the token id due after each token, -100 where none is. For mqar these are the arrays
of Zoology's generator. (In Python: `separatrix.tasks.labels.token_labels(task, batch)`.)

One call draws what several do: `sample(1000, rng)` are two calls of `sample(500, rng)`.

The audit of a task tries shortcuts on its first three sizes: the accuracy of each on {_FITTED:,}
instances (fitted to {_FITTED:,} others), and the level p it may reach. A standard error is
sqrt(p (1 - p) / {_FITTED:,}): {_ERRORS[0]} at p = 1/2, {_ERRORS[1]} at p = 1/8. A probe that is
more than three of them above its level is tried again with four times as many fresh instances, and
is a leak only if it is above again; none here is. Nine times of ten this finds a gain of {_TWO[0]}
in a task answered yes or no that one value of a token tells, of {_TWO[1]} {_SPREADS};
with {10 * _FITTED:,} and {10 * _FITTED:,} (`separatrix task TASK audit --number {10 * _FITTED}`)
{_MORE[0]}, {_MORE[1]} and {_MORE[2]}. That is for a token whose place is known: among many places
the right one must be found too, and the gain of {_TWO[1]} was found 7 times of 10 among 11 places,
6 of 10 among 63; that for eight answers, {_EIGHT[1]}, 8 of 10 among 3. Boosted trees on raw tokens
are held to the levels of every task at one size.

The level of a probe is chance, unless no way of drawing could avoid more: then the task says why.
Of some rules nobody has derived it; theirs is what they were measured to reach, and 0.01. A second
table has the best rule at every size, and the largest level of all rules tried. That is the level
of the task wherever one number is printed: the most that the rules below may reach, each of which
looks at what its line says and at nothing else. A rule that does part of the task itself may stand
above, for parts of a look-up come as near to all of it as one likes: of recall:n=8,K=16,V=4 the
value most frequent among the keys of the query's parity is right in 0.377, the level is 0.286.
Counts may do anything where counting is the task; there, what they reached stands for it. Shifts
promise no level. All numbers of both tables are in one file, `src/separatrix/tasks/levels.json`,
which `tools/levels.py FILE` measures with seed 0 (on fewer prompts where they are long; none are
tried beyond 4,096 tokens or 1,024 answers). What each looks at:"""


def tasks_page() -> str:
    """docs/tasks.md."""
    lines = [
        "# The tasks",
        "",
        WRITTEN,
        "",
        "One task: `separatrix list tasks seqcomp`; a few instances:",
        "`separatrix task seqcomp:L=2,n=16 sample`; its audit: `separatrix task seqcomp audit`;",
        "files: [export](tasks-export.md). On the site (`make site`) a name leads to its",
        "page, with its audit.",
        "",
        "| task | asks | sizes |",
        "|---|---|---|",
        *(
            f"| {one['name']} | {_cell(one['asks'])} | {_cell(one['sizes'])} |"
            for one in tasks.rows()
        ),
        "",
        *_ABOUT.splitlines(),
        "",
        *(f"- {probe}: {words_of(look)}" for probe, look in PROBE.items()),
        "",
        "and, of single tasks,",
        "",
        *(f"- {probe}: {text}" for probe, text in SHORTCUTS.items()),
    ]
    return paged(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def mechanisms_page() -> str:
    """docs/mechanisms.md."""
    table = mechanisms.cells()
    names = list(table[0])
    lines = [
        "# The mechanisms",
        "",
        WRITTEN,
        "",
        "One mechanism: `separatrix list mechanisms gdn`; on the site (`make site`) a name leads",
        "to its page.",
        "",
        f"{mechanisms.NOTE[0].upper()}{mechanisms.NOTE[1:]}.",
        "",
        f"| {' | '.join(names)} |",
        f"|{'---|' * len(names)}",
        *(f"| {' | '.join(row.values())} |" for row in table),
    ]
    return paged(lines)


def paged(lines: Iterable[str]) -> str:
    """The lines as a file, no two blank ones in a row."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


PAGES = {"tasks": tasks_page, "mechanisms": mechanisms_page}

if __name__ == "__main__":
    for page in sys.argv[1:] or PAGES:
        write_atomic(DOCS / f"{page}.md", PAGES[page]())

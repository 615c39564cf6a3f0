"""Draws the figures of docs/theory.md from the verdicts of the program: who fails at which n, and
who solves; and README's, with the seeds of the study beside them.

    .venv/bin/python tools/figures.py          writes docs/images/*.svg
    .venv/bin/python tools/figures.py depth    one of them

All of them take a minute on one core.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import log10
from pathlib import Path

from separatrix.cli.report import charts
from separatrix.core.document.plot import (
    FAILS,
    INK,
    LINE,
    MUTED,
    SOLVES,
    VIOLET,
    Axis,
    Dot,
    Drawing,
    Mark,
    Stroke,
    Words,
    log_axis,
    named,
    share_axis,
)
from separatrix.core.numbers.accuracy import WHOLE, highest_accuracy, stored_accuracy
from separatrix.core.numbers.counts import Power
from separatrix.findings.results import checked_lines, of_lines
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.resolve import preset
from separatrix.tasks import parse_task
from separatrix.theory import judge

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
SOLID, DASHED, DOTTED = "", "7 4", "2 3"
_LABEL_GAP = 0.038
_ROOM = 250
"""Pixels for labels on the right."""
_DIGITS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def powers(value: float) -> str:
    """1,000, then powers of ten as people write them."""
    if value < 9_999:
        return f"{value:,g}"
    power = round(log10(value))
    return f"10{str(power).translate(_DIGITS)}"


@dataclass(frozen=True)
class Line:
    """A line by its points, with a label where it ends."""

    label: str
    points: Sequence[tuple[float, float]]
    colour: str
    dash: str = SOLID


@dataclass(frozen=True)
class Axes:
    """What stands on the axes; `top` and `floor` bound the upright one."""

    x: str
    y: str
    floor: float
    top: float
    share: bool = False


def chart(
    title: str,
    below: Sequence[str],
    axes: Axes,
    lines: Sequence[Line],
    marks: Iterable[tuple[float, float, str]] = (),
    levels: Iterable[tuple[float, str]] = (),
    solved: str = "",
) -> Drawing:
    """A drawing of lines on logarithmic axes (shares stand on a linear one), of single marks, of
    levels drawn across, and along the upper edge of what is solved at every n below it.
    """
    first = min(x for line in lines for x, _ in line.points)
    last = max(x for line in lines for x, _ in line.points)
    x = log_axis(axes.x, first, last, powers, most=9)
    y = (
        share_axis(axes.y)
        if axes.share
        else log_axis(axes.y, axes.floor, axes.top, powers, most=9, grid=True)
    )
    drawn: list[Mark] = []
    levels = list(levels)
    drawn += [Stroke([(first, at), (last, at)], MUTED, DOTTED, 1.5) for at, _ in levels]
    drawn += [Stroke(line.points, line.colour, line.dash) for line in lines]
    ends = [(line.points[-1][1], line.label, line.colour) for line in lines if line.label]
    # the names of levels keep their distance from those of lines
    drawn += named(last, y, [*ends, *((at, label, MUTED) for at, label in levels)], _LABEL_GAP)
    if solved:
        drawn.append(Stroke([(first, y.high), (last, y.high)], SOLVES, width=3))
        drawn.append(Words(first, y.high, solved, SOLVES, right=8, below=17, bold=False))
    for a, b, label in marks:
        drawn.append(Dot(a, b))
        drawn.append(Words(a, b, label, right=7, below=13, bold=False))
    return Drawing(x=x, y=y, marks=drawn, room=_ROOM, title=title, below=below)


def first_failure(stack: str | Architecture, task: str, key: str = "") -> int | None:
    """The n at which a theorem (the first of all, where none is named) shows failure of a stack on
    tasks of this kind.
    """
    model = Architecture.parse(stack) if isinstance(stack, str) else stack
    among = (lambda theorem: theorem.key == key) if key else None
    found = [verdict.n for verdict in judge(model, parse_task(task), among=among) if verdict.n]
    return min(found, default=None)


def solves(stack: str, task: str, said: str) -> str:
    """`said`, where a construction solves the task in the stack; an error where none does."""
    found = judge(Architecture.parse(stack), parse_task(task))[0]
    if found.status != "SOLVABLE":
        raise SystemExit(f"error: {stack} on {task} is {found.status}, and the figure says solved")
    return said


def curve(points: Iterable[tuple[float, int | None]]) -> list[tuple[float, float]]:
    """The points at which there is an n."""
    return [(x, float(n)) for x, n in points if n is not None]


def bounded() -> Drawing:
    """Theorem I: n against the bits of the cache."""
    stacks = [Architecture.parse(f"linear @ heads=1, head_dim={2**e}") for e in range(3, 16)]
    asked = {
        "equality of two strings": ("equality:n=2", INK, SOLID),
        "recall of one of n facts": ("eva:n=2,V=50000", FAILS, SOLID),
        "2-Sum per query": ("twosum:n=2,M=2048,form=query", VIOLET, DASHED),
        "composition, 2 steps": ("seqcomp:L=2,m=2,n_1=1", SOLVES, DASHED),
    }
    lines = [
        Line(
            label,
            curve((stack.cache_bits(1), first_failure(stack, task, "I")) for stack in stacks),
            colour,
            dash,
        )
        for label, (task, colour, dash) in asked.items()
    ]
    named = ("mamba2-2.7b", "recurrentgemma-2b")
    far = 10**6
    marks = [
        (
            float(preset(name).cache_bits(far)),
            float(first_failure(preset(name), "eva:n=2,V=50000", "I") or 0),
            name,
        )
        for name in named
    ]
    return chart(
        "Bounded caches: the first n that fails",
        [
            "a stack without full or sparse layers fails on and above its line (Theorem I), with or"
            " without chain of thought;",
            "facts of 50,000 values, 2-Sum modulo 1,024 n",
        ],
        Axes("bits of cache, all layers together", "first n that fails", 10, 1e11),
        lines,
        marks,
        solved=solves(
            "full @ heads=1, head_dim=64",
            f"eva:n={10**11},V=50000",
            "solved up to here: recall by one full layer of 64 dimensions",
        ),
    )


def blocks() -> Drawing:
    """Theorem II: n against how many blocks are opened."""
    opened = (1, 2, 4, 8, 16, 32, 64, 128, 256)
    colours = {64: INK, 128: VIOLET, 256: FAILS, 1024: SOLVES}
    lines = [
        Line(
            f"blocks of {block:,} tokens",
            curve(
                (
                    k,
                    first_failure(
                        f"sparse(block={block}, topk={k}) @ heads=1, head_dim=64, bf16",
                        "twosum:n=65536,M=67108864,form=query",
                        "II",
                    ),
                )
                for k in opened
            ),
            colour,
            dash,
        )
        for (block, colour), dash in zip(
            colours.items(), (SOLID, DASHED, SOLID, DASHED), strict=True
        )
    ]
    return chart(
        "Block compression: the first n at which one sparse layer fails 2-Sum",
        [
            "messages of 2,048 bits (a key and a value of 64 numbers in bf16); values modulo"
            " 1,024 n; fails on and above its line",
            "(Theorem II)",
        ],
        Axes("blocks that are opened", "first n that fails", 100, 9e8),
        [line for line in lines if line.points],
        solved=solves(
            "full @ heads=1, head_dim=64, bf16",
            f"twosum:n={9 * 10**8},M={9 * 10**8 * 1024},form=query",
            "solved up to here: by one full layer of 64 dimensions",
        ),
    )


PURE = {
    # reading layers -> steps and theorem, label, colour
    1: (2, "III", "1 full layer, 2 steps", INK),
    2: (2, "IV", "2 full layers, 2 steps", FAILS),
    3: (3, "VII", "3 full layers, 3 steps", SOLVES),
    4: (4, "VII", "4 full layers, 4 steps", VIOLET),
}
MIXED = {
    1: (2, "III", "1 and recurrent ones, 2 steps", INK),
    2: (3, "VI", "2 and recurrent ones, 3 steps", FAILS),
    3: (4, "VI", "3 and recurrent ones, 4 steps", SOLVES),
}


def depth() -> Drawing:
    """Theorems III to VII: n against h."""
    lines = []
    for table, dash, stack in (
        (PURE, SOLID, lambda R: f"full*{R}"),
        (MIXED, DASHED, lambda R: f"(linear + full)*{R} + linear"),
    ):
        for R, (steps, key, label, colour) in table.items():
            task = f"seqcomp:L={steps},m=2" + "".join(f",n_{i}=1" for i in range(1, steps))
            points = []
            for p in (1, 2, 4, 8, 16, 32):
                sizes = f"heads=1, head_dim=16, p{p}, accumulator=p{p}, running_max=false"
                points.append((17 * p, first_failure(f"{stack(R)} @ {sizes}", task, key)))
            lines.append(Line(label, curve(points), colour, dash))
    return chart(
        "Depth: prompts at which stacks fail composition",
        [
            "the smallest n found; solid: full layers alone; dashed: a linear layer of 16 h bits"
            " before, between and after them",
            "(Theorems III, IV, VI, VII); R full layers solve R - 1 steps at every n, and R steps"
            " with a bounded layer before the second",
        ],
        Axes("h: bits that one token reads of the past in a full layer", "n", 10, 1e56),
        [line for line in lines if line.points],
        solved=solves(
            "linear + full*4 @ heads=1, head_dim=256",
            f"seqcomp:L=4,m={10**14},n_1={10**14},n_2={10**14},n_3={10**14}",
            "solved up to here: 4 steps, by 4 full layers behind a recurrent one",
        ),
        levels=[(float(2**20), "2²⁰ tokens"), (1e12, "10¹² tokens: out of reach")],
    )


STATES = (
    *("recurrentgemma-2b", "mamba2-2.7b", "xlstm-7b", "qwen3-8b", "qwen3-next-80b"),
    *("kimi-linear-48b", "deepseek-v3"),
)
"""Presets of docs/models.md: without a growing cache, with one in every layer, and between."""


def states() -> Drawing:
    """Bits that a context needs, and bits that presets keep of it."""
    return charts.states({name: preset(name) for name in STATES})


def accuracy() -> Drawing:
    """Theorem A: accuracy against the number of facts."""
    V = 50_000
    stacks = {"delta-net-1.3b": INK, "mamba2-2.7b": FAILS, "recurrentgemma-2b": SOLVES}
    counts = [round(10 ** (6 + e / 24)) for e in range(0, 73)]
    lines = []
    for name, colour in stacks.items():
        model = preset(name)
        C = model.cache_bits(10**6)
        most = [(N, highest_accuracy(Power(V, N), N, V, C) / WHOLE) for N in counts]
        kept = [(N, stored_accuracy(N, V, C) / WHOLE) for N in counts]
        lines += [Line(name, most, colour), Line("", kept, colour, DASHED)]
    return chart(
        "Accuracy on random facts of 50,000 values",
        [
            "solid: no weights answer a larger share of random questions, with or without chain of"
            " thought (Theorem A);",
            "dashed: what storing as many facts as fit, and guessing the others, reaches; one full"
            " layer reaches 100 %",
        ],
        Axes("facts in the prompt", "accuracy", 0, 1, share=True),
        lines,
    )


def tracking() -> Drawing:
    """Theorem P: n against the bits of a state's number."""
    lines = []
    for layers, colour, dash in ((1, INK, SOLID), (8, FAILS, DASHED), (48, VIOLET, SOLID)):
        points = [
            (
                p,
                first_failure(
                    f"gla*{layers} @ heads=1, head_dim=16, p{p}, positions=none", "parity:n=2", "P"
                ),
            )
            for p in (2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32)
        ]
        lines.append(Line(f"{layers} GLA layer{'s' * (layers > 1)}", curve(points), colour, dash))
    return chart(
        "State tracking: the first n at which recurrences that only move one way fail parity",
        [
            "no positions, step by step, whatever the width (Theorem P); products of two"
            " permutations fail at the same n;",
            "fails on and above its line",
        ],
        Axes("bits of each number of the state", "first n that fails", 1, 1e12),
        lines,
        solved=solves(
            "deltanet(negative=true) @ heads=1, head_dim=16, bf16",
            f"parity:n={10**12}",
            "solved up to here: by one DeltaNet layer with negative eigenvalues",
        ),
    )


TRAINED = {
    # cell of the study -> what its layers are
    "recall-gdn-8-none-cheap": "8 small layers, none full",
    "recall-gdn-8-1-start-cheap": "the first of 8 full",
    "recall-gdn-8-1-end-cheap": "the last of 8 full (7:1)",
    "recall-gdn-8-2-spread-cheap": "two of 8 full (3:1)",
    "recall-gdn-8-all-cheap": "all 8 full",
}
RELEASED = {
    # preset -> values of a fact of one token (its vocabulary), label
    "mamba2-2.7b": (50_277, "Mamba-2 2.7B: none full"),
    "recurrentgemma-2b": (256_000, "RecurrentGemma 2B: windows"),
    "qwen3-next-80b": (151_936, "Qwen3-Next 80B: 12 of 48 full"),
}
STUDY = IMAGES.parent.parent / "research" / "study" / "rows.jsonl"
ANSWERS = {"weights do it": SOLVES, "not known": LINE, "no weights do it": FAILS}
SEEN = ("trained: solved", "trained: not solved in 3,000 steps")
_FACTS, _MOST, _CONTEXT = 16, 10**9, 262_144


def borders(stack: Architecture, values: int) -> tuple[int, int]:
    """Of facts of so many values, one of them asked: up to how many a construction recalls them,
    and from how many on no weights do; 16 and 10^9 where nothing is known.
    """

    def said(n: int, status: str) -> bool:
        found = judge(stack, parse_task(f"eva:n={n},V={values}"))
        return any(verdict.status == status for verdict in found)

    low, high = _FACTS - 1, _MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if said(middle, "SOLVABLE") else (low, middle)
    known, high = max(low, _FACTS), _MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if said(middle, "FAILS") else (middle, high)
    return known, high


def facts() -> Drawing:
    """How many facts: what weights can, what none can, and what seeds of the study found."""
    cells = of_lines(checked_lines(STUDY)).cells
    stacks = [
        (label, Architecture.parse(cells[name].stack), _FACTS, cells[name])
        for name, label in TRAINED.items()
    ]
    stacks += [(label, preset(name), values, None) for name, (values, label) in RELEASED.items()]
    marks: list[Mark] = []
    for row, (label, stack, values, cell) in enumerate(stacks):
        ends = (_FACTS, *borders(stack, values), _MOST)
        for (answer, colour), low, high in zip(ANSWERS.items(), ends, ends[1:], strict=False):
            if low < high:
                marks.append(Stroke([(low, row), (high, row)], colour, "", 30, answer))
        for place, seed in enumerate(cell.seeds if cell else ()):
            across, down = place % 2, place // 2
            at = row + (down + 1) / (len(cell.seeds) // 2 + 1) - 0.5 if cell else row
            told = f"{label}, seed {seed.seed}: {SEEN[not seed.solved]}"
            shape = "circle" if seed.solved else "triangle"
            marks.append(Dot(9 + 3 * across, at, INK, told, shape, 3, not seed.solved))
    marks.append(Stroke([(_CONTEXT, -0.5), (_CONTEXT, len(stacks) - 0.5)], INK, DASHED, 1.5))
    ticks = [(float(row), label) for row, (label, *_) in enumerate(stacks)]
    title = "facts in the prompt, one of them asked for"
    return Drawing(
        x=log_axis(title, 7, _MOST, powers, most=9, at=[10.0**e for e in range(1, 10)]),
        y=Axis("", len(stacks) - 0.5, -0.5, ticks, log=False),
        marks=marks,
        height=44 * len(stacks),
        title="How many facts can a stack recall?",
        below=[
            "bars: theorems, for all weights (a fact is one of 16 values in small stacks, one token"
            " in released ones):",
            "blue: weights do it; grey: not known; orange: no weights do it; dashed: 262,144, the"
            " context of Qwen3-Next;",
            "marks: every seed of small stacks trained on 16 facts; filled: solved; hollow: not"
            " solved in 3,000 steps",
        ],
    )


FIGURES: dict[str, Callable[[], Drawing]] = {
    "bounded": bounded,
    "blocks": blocks,
    "depth": depth,
    "accuracy": accuracy,
    "tracking": tracking,
    "facts": facts,
    "states": states,
}
"""Name of the file -> its drawing."""


def main(names: Sequence[str]) -> None:
    for name in names or FIGURES:
        if name not in FIGURES:
            raise SystemExit(f"error: there is no figure '{name}'; there are {', '.join(FIGURES)}")
        drawing = FIGURES[name]()
        path = IMAGES / f"{name}.svg"
        path.unlink(missing_ok=True)
        drawing.write(path)
        print(f"{path.relative_to(IMAGES.parent.parent)}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])

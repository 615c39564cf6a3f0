"""How accurately one (B, k)-sparse layer answers 2-Sum, against what its messages can hold."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import log2
from typing import Any, ClassVar

from separatrix.architecture import Architecture
from separatrix.experiments.base import Cell, Experiment, Line, ShownTable, cell, claimed
from separatrix.experiments.saying import ahead, percent
from separatrix.experiments.showing import share
from separatrix.practice.table import Label, Row, Scale, Table
from separatrix.report.runs import NONE
from separatrix.tasks import Questions
from separatrix.theory.fails.ii_block_messages import BlockSizes, TheoremII
from separatrix.training.run import Run

QUESTIONS = 8
HEADS = 2
RATES = (5e-3, 1e-2)
LOAD = "bits of a block's message / (B log n)"
"""What Theorem II's closed form compares with a constant."""


class SparseCapacity(Experiment):
    """One sparse layer on 2-Sum with several questions a prompt, against the bits of a block's
    message; full attention with heads as wide stands beside it.
    """

    name = "sparse-capacity"
    title = "Sparse capacity"
    question = (
        "How accurately does one (B, k)-sparse layer answer 2-Sum, against the size of its blocks,"
        " the bits of a block's message and the blocks it opens?"
    )
    says = (
        "Theorem II: where a block of B tokens can leave more traces than 2^c messages, with T"
        " blocks and k opened, one such layer fails 2-Sum; so c = Omega(B log n). It is a statement"
        " about the worst prompt: it bounds no accuracy. The dimension of heads also limits scores,"
        " in full attention as well, which stands beside for that reason."
    )
    labels: ClassVar[dict[str, str]] = {
        "block": "B, tokens of a block; 0 for full attention",
        "opened": "k, blocks that each head opens",
        "head_dim": "d of each of the heads: a message has one key and one value of d numbers each",
        "n": "values before the questions",
        "kind": "sparse or full",
    }
    x = "head_dim"
    x_title = "dimension of each head"
    series = ("kind", "block", "opened", "n")

    def cells(self, scale: Scale) -> tuple[Cell, ...]:
        if scale == "smoke":
            stacks = [(4, 1, 4, 16), (0, 0, 4, 16)]
            return tuple(_cell(*one, steps=60, batch=32, width=32, seeds=1) for one in stacks)
        if scale == "laptop":
            stacks = [
                *((block, 1, d, 16) for block in (2, 4) for d in (4, 8, 16, 32)),
                (2, 2, 16, 16),
                *((0, 0, d, 16) for d in (4, 8, 16, 32)),
            ]
            return tuple(_cell(*one, steps=300, batch=64, width=32, seeds=3) for one in stacks)
        stacks = [
            *(
                (block, k, d, n)
                for n in (32, 64, 128)
                for block in (4, 8, 16)
                for k in (1, 2)
                for d in (4, 8, 16, 32)
            ),
            *((0, 0, d, n) for n in (32, 64, 128) for d in (4, 8, 16, 32)),
        ]
        return tuple(_cell(*one, steps=4000, batch=128, width=64, seeds=5) for one in stacks)

    def line_of(self, row: Row) -> str:
        n = f", n = {row.labels['n']}" if row.labels["n"] != 16 else ""
        if row.labels["kind"] == "full":
            return f"full attention{n}"
        return f"B = {row.labels['block']}, k = {row.labels['opened']}{n}"

    def lines(self, table: Table) -> tuple[Line, ...]:
        """Chance, and below which message Theorem II excludes each layer: far left of all."""
        chance = {float(row.chance) for row in table.rows}
        found = [
            Line(label="chance", points=((x, height),), dash=(2, 3), text="Dotted: chance.")
            for height in sorted(chance)
            for x in (load(table.rows[0]) or 1,)
        ]
        return (*found, *(Line(label="Theorem II", text=text) for text in excluded(table.rows)))

    def figures(self, table: Table) -> dict[str, dict[str, Any]]:
        """Accuracy against the load c / (B log n), and against the dimension of heads."""
        from separatrix.experiments.drawing import Series, chart, colours, marks, places

        found: dict[str, dict[str, Any]] = {}
        for end, title, value in (
            ("load", LOAD, load),
            ("head-dim", self.x_title, lambda row: int(row.labels["head_dim"])),
        ):
            rows = [row for row in table.rows if value(row) is not None]
            if not rows:
                continue
            names = list(dict.fromkeys(self.line_of(row) for row in rows))
            lines = self.lines(replace(table, rows=tuple(rows)))
            at = places([int(value(row) or 0) for row in rows])
            level = [
                replace(line, points=tuple((x, float(rows[0].chance)) for x in at.at))
                if line.label == "chance"
                else line
                for line in lines
            ]
            below = " ".join(
                [
                    self.question,
                    "Each point is a seed with its 95 % interval; lines go through the medians.",
                    *dict.fromkeys(line.text for line in lines if line.text),
                ]
            )
            found[end] = chart(
                f"{self.title}: right answers against {title}",
                textwrap.wrap(below, 100),
                x_title=title,
                at=at,
                series=[
                    Series(
                        name=name,
                        marks=tuple(
                            mark
                            for row in rows
                            if self.line_of(row) == name
                            for mark in marks(row, int(value(row) or 0))
                        ),
                    )
                    for name in names
                ],
                lines=level,
                colours=colours(names),
            )
        return found

    def tables(self, table: Table) -> list[ShownTable]:
        shown = ShownTable(
            title="Messages, and those that Theorem II excludes",
            columns=("layer", "d", "c, bits", "c / (B log n)", "Theorem II: fails below", "median"),
            rows=tuple(
                (
                    self.line_of(row),
                    str(row.labels["head_dim"]),
                    NONE if (found := sizes(row)) is None else f"{found.c:,}",
                    NONE if (loaded := load(row)) is None else f"{loaded:,}",
                    _fails_below(found),
                    share(row.median),
                )
                for row in table.rows
            ),
        )
        return [shown, *super().tables(table)]

    def findings(self, table: Table) -> tuple[str, ...]:
        rows = [row for row in table.rows if claimed([row])]
        lines = {name: _line(self, rows, name) for name in map(self.line_of, rows)}
        return (
            *_against(lines),
            *_collapse(self, rows),
            *_blocks(self, rows),
            *_opened(rows),
            *_beside_full(rows),
            *_far_from(rows),
        )


def _cell(
    block: int, opened: int, d: int, n: int, *, steps: int, batch: int, width: int, seeds: int
) -> Cell:
    sparse = f"sparse(heads={HEADS}, head_dim={d}, block={block}, topk={opened})"
    labels: dict[str, Label] = {
        "kind": "sparse" if block else "full",
        "block": block,
        "opened": opened,
        "head_dim": d,
        "n": n,
    }
    stack = sparse if block else f"full(heads={HEADS}, head_dim={d})"
    return asked(labels, stack, n=n, steps=steps, batch=batch, width=width, seeds=seeds)


def asked(
    labels: dict[str, Label],
    stack: str,
    *,
    n: int,
    steps: int,
    batch: int,
    width: int,
    seeds: int,
) -> Cell:
    """A stack on 2-Sum with several questions a prompt."""
    return cell(
        labels,
        Run(
            architecture=stack,
            task=f"twosum:n={n},M={3 * n},queries={QUESTIONS}",
            seed=0,
            steps=steps,
            batch=batch,
            width=width,
            hidden=64,
            tested=512,
            stop_at=2.0,
        ),
        seeds=seeds,
        rates=RATES,
    )


def sizes(row: Row) -> BlockSizes | None:
    """What Theorem II counts of the row's layer and task asked once; None for full attention."""
    task = row.task.task if isinstance(row.task, Questions) else row.task
    return TheoremII().sizes(Architecture.parse(row.run["architecture"]), task)


def load(row: Row) -> int | None:
    """c / (B log2 n), rounded; None for full attention, which has no messages."""
    found = sizes(row)
    return None if found is None else round(found.c / (found.B * log2(int(row.labels["n"]))))


def least_message(found: BlockSizes) -> int | None:
    """The fewest bits of a message at which Theorem II no longer says that the layer fails; None
    where its heads together can open every block, of which the theorem says nothing.
    """
    if found.k >= found.T:
        return None
    bits = 0
    while (sign := replace(found, c=bits).compare()) is not None and sign.positive:
        bits += 1
    return bits


def _fails_below(found: BlockSizes | None) -> str:
    least = None if found is None else least_message(found)
    return NONE if least is None else f"{least:,} bits"


def excluded(rows: Sequence[Row]) -> list[str]:
    """What Theorem II leaves of these layers, in a sentence."""
    covered = [
        (one.c, least)
        for row in rows
        if (one := sizes(row)) is not None and (least := least_message(one)) is not None
    ]
    if not covered:
        return []
    fails = sum(c < least for c, least in covered)
    if fails:
        return [f"Theorem II says of {fails} of {len(covered)} sparse layers that they fail."]
    times = min(Fraction(c, least) for c, least in covered)
    return [
        f"Theorem II excludes none of them: the messages have at least {float(times):,.0f} times"
        " the bits below which it does."
    ]


def _line(experiment: SparseCapacity, rows: Sequence[Row], name: str) -> list[Row]:
    of_it = [row for row in rows if experiment.line_of(row) == name]
    return sorted(of_it, key=lambda row: int(row.labels["head_dim"]))


def _against(lines: dict[str, list[Row]]) -> Iterator[str]:
    """Where a longer message gave less, beyond what seeds differ by."""
    for name, rows in lines.items():
        for one, other in pairwise(rows):
            if ahead(one, other):
                yield (
                    f"Against expectation: of {name}, heads of {one.labels['head_dim']} dimensions"
                    f" answer better ({percent(one.median)}) than those of"
                    f" {other.labels['head_dim']} ({percent(other.median)})."
                )


def _collapse(experiment: SparseCapacity, rows: Sequence[Row]) -> Iterator[str]:
    """Whether layers of one load are alike, whatever their B and n; those that open one block."""
    found: dict[int, list[Row]] = {}
    for row in rows:
        loaded = load(row)
        if loaded is not None and row.labels["opened"] == 1:
            found.setdefault(loaded, []).append(row)
    shared = {loaded: alike for loaded, alike in found.items() if len(alike) > 1}
    if not shared:
        return
    gaps = {
        loaded: max(row.median for row in alike) - min(row.median for row in alike)
        for loaded, alike in shared.items()
    }
    apart = {loaded for loaded, alike in shared.items() if _some_ahead(alike)}
    widest = max(gaps, key=lambda loaded: gaps[loaded])
    ends = sorted(shared[widest], key=lambda row: row.median)
    said = (
        f"furthest apart at {widest:,} bits per B log n, where {experiment.line_of(ends[0])} gives"
        f" {percent(ends[0].median)} and {experiment.line_of(ends[-1])} {percent(ends[-1].median)}"
    )
    spread = max(row.median for row in rows) - min(row.median for row in rows)
    if not apart and max(gaps.values()) < spread / 4:
        yield f"Accuracies lie on one curve against c / (B log n): {said}."
    else:
        yield (
            f"No collapse onto c / (B log n): at {len(apart)} of {len(shared)} loads that several"
            f" layers share every seed of one is ahead of every seed of another; {said}."
        )


def _some_ahead(rows: Sequence[Row]) -> bool:
    return any(ahead(one, other) for one in rows for other in rows)


def _blocks(experiment: SparseCapacity, rows: Sequence[Row]) -> Iterator[str]:
    """Blocks of two sizes with as long messages: as many of them opened, or as many tokens."""
    found = [row for row in rows if row.labels["kind"] == "sparse"]
    for named, alike in (("as many blocks", _as_many_blocks), ("as many tokens", _as_many_tokens)):
        pairs = [
            (one, other)
            for one in found
            for other in found
            if int(one.labels["block"]) < int(other.labels["block"]) and alike(one) == alike(other)
        ]
        if not pairs:
            continue
        small = sum(ahead(one, other) for one, other in pairs)
        large = sum(ahead(other, one) for one, other in pairs)
        one, other = max(pairs, key=lambda pair: abs(pair[0].median - pair[1].median))
        yield (
            f"With messages as long and {named} opened, smaller blocks are ahead in {small} of"
            f" {len(pairs)} pairs and larger ones in {large}; furthest apart with heads of"
            f" {one.labels['head_dim']} dimensions: {percent(one.median)}"
            f" ({experiment.line_of(one)}) and {percent(other.median)}"
            f" ({experiment.line_of(other)})."
        )


def _as_many_blocks(row: Row) -> tuple[Label, ...]:
    return row.labels["n"], row.labels["head_dim"], row.labels["opened"]


def _as_many_tokens(row: Row) -> tuple[Label, ...]:
    tokens = int(row.labels["block"]) * int(row.labels["opened"])
    return row.labels["n"], row.labels["head_dim"], tokens


def _opened(rows: Sequence[Row]) -> Iterator[str]:
    """What opening more blocks gives."""
    by_labels = {
        tuple(row.labels[name] for name in ("n", "block", "head_dim", "opened")): row
        for row in rows
    }
    pairs = [
        (row, more)
        for (n, block, d, k), row in by_labels.items()
        if (more := by_labels.get((n, block, d, 2 * int(k)))) is not None and block
    ]
    for one, more in pairs:
        verb = "answers better than" if ahead(more, one) else "is not told apart from"
        if ahead(one, more):
            verb = "answers worse than"
        yield (
            f"Opening {more.labels['opened']} blocks of {one.labels['block']} tokens with heads of"
            f" {one.labels['head_dim']} dimensions ({percent(more.median)}) {verb} opening"
            f" {one.labels['opened']} ({percent(one.median)})."
        )


def _beside_full(rows: Sequence[Row]) -> Iterator[str]:
    """How far full attention with heads as wide is ahead: what messages cost, not scores."""
    full = {
        (row.labels["n"], row.labels["head_dim"]): row
        for row in rows
        if row.labels["kind"] == "full"
    }
    lost: list[tuple[Fraction, Row, Row]] = []
    for row in rows:
        beside = full.get((row.labels["n"], row.labels["head_dim"]))
        if row.labels["kind"] == "sparse" and beside is not None:
            lost.append((beside.median - row.median, row, beside))
    if not lost:
        return
    _, row, beside = max(lost, key=lambda one: one[0])
    behind = sum(ahead(other, one) for _, one, other in lost)
    yield (
        f"Full attention with heads as wide is ahead of {behind} of {len(lost)} sparse layers;"
        f" most at {row.labels['head_dim']} dimensions, B = {row.labels['block']}:"
        f" {percent(beside.median)} against {percent(row.median)}."
    )
    by_width = sorted(full.values(), key=lambda one: int(one.labels["head_dim"]))
    narrow, wide = by_width[0], by_width[-1]
    if ahead(wide, narrow):
        yield (
            f"Full attention, which has no messages, falls from {percent(wide.median)} to"
            f" {percent(narrow.median)} as its heads narrow from {wide.labels['head_dim']} to"
            f" {narrow.labels['head_dim']} dimensions: part of what narrow heads lose is in their"
            " scores."
        )


def _far_from(rows: Sequence[Row]) -> Iterator[str]:
    found = [row for row in rows if sizes(row) is not None]
    if found:
        yield from (
            f"{text} What training reaches with them says nothing about the bound's tightness."
            for text in excluded(found)
        )

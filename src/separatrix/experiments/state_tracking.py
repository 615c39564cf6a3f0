"""State tracking: which layers follow a state that every token may change, and how far beyond the
lengths that training shows?
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

from separatrix.architecture import Architecture
from separatrix.experiments.base import Cell, Experiment, Line, ShownTable, cell, claimed
from separatrix.experiments.saying import listed, percent, seeds_of, solved_said
from separatrix.experiments.showing import share
from separatrix.practice.longer import by_length
from separatrix.practice.table import Row, Scale, Table
from separatrix.report.runs import NONE
from separatrix.tasks import Permutation, Questions, Task
from separatrix.tasks.functions.tracked import tracked
from separatrix.theory.base import number
from separatrix.theory.fails.p_parity import TheoremP
from separatrix.training.run import Run

LAST = 8
"""Places at the end of a prompt that count: the answers after the first few tokens are trivial."""
_HEADS = "heads=4, head_dim=8"
_WIDTH = "WIDTH"
"""Of the model, where a spec must say it."""
_RECURRENT = (
    f"linear({_HEADS})",
    f"lightning({_HEADS})",
    f"retnet({_HEADS})",
    f"gla({_HEADS})",
    f"hgrn2({_HEADS})",
    f"mlstm({_HEADS})",
    "mamba(width=32, state=8)",
    f"mamba2({_HEADS}, state=8)",
    "rglru(width=64)",
    f"rwkv({_HEADS}, width={_WIDTH}, version=6)",
    f"rwkv({_HEADS}, width={_WIDTH})",
    f"loglinear({_HEADS})",
    f"deltanet({_HEADS})",
    f"gdn({_HEADS})",
    f"kda({_HEADS})",
    f"deltaproduct({_HEADS}, negative=false)",
    f"deltanet({_HEADS}, negative=true)",
    f"gdn({_HEADS}, negative=true)",
    f"kda({_HEADS}, negative=true)",
    f"deltaproduct({_HEADS})",
)
_OF_EACH_KIND = (
    f"mamba2({_HEADS}, state=8)",
    f"gdn({_HEADS})",
    f"gdn({_HEADS}, negative=true)",
)
_FULL = f"full({_HEADS})"


class _Group(NamedTuple):
    """What is tracked, and how it is trained."""

    name: str
    named: str
    sizes: str
    """Of the task, without n."""
    mechanisms: tuple[str, ...]
    layers: int
    rates: tuple[float, ...]
    steps: int
    batch: int
    width: int


_GROUPS = (
    _Group(
        name="parity",
        named="parity of bits",
        sizes="parity:",
        mechanisms=_RECURRENT,
        layers=1,
        rates=(5e-3, 2e-2),
        steps=150,
        batch=32,
        width=32,
    ),
    _Group(
        name="S3",
        named="permutations of three things",
        sizes="permutation:k=3,",
        mechanisms=_RECURRENT,
        layers=1,
        rates=(5e-3, 2e-2),
        steps=250,
        batch=32,
        width=32,
    ),
    _Group(
        name="S5",
        named="exchanges of neighbours among five things",
        sizes="permutation:k=5,shift=swaps,",
        mechanisms=_OF_EACH_KIND,
        layers=2,
        rates=(7e-3, 1.4e-2),
        steps=450,
        batch=64,
        width=64,
    ),
)
_NAMED = {group.name: group.named for group in _GROUPS}


class StateTracking(Experiment):
    """Parity, all of S_3, and S_5 by swaps after an arbitrary first token: asked after every token,
    and measured at the last places of prompts of the trained length, of twice it and of four times.
    """

    name = "state-tracking"
    title = "State tracking"
    question = (
        "Which layers learn to follow a state that every token may change, and do they follow it"
        " in longer prompts than they were trained on?"
    )
    says = (
        "Explicit weights track parity, S_3 and swaps of S_5 at every length in one layer of the"
        " delta rule with negative eigenvalues, with as many reflections per token as a token has"
        " exchanges. Theorem P excludes recurrences that move one way while a token repeats, from"
        " an n on that grows with 2^p; of full attention, and of delta rules without negative"
        " eigenvalues, no theorem here says that they fail."
    )
    labels: ClassVar[dict[str, str]] = {
        "mechanism": "of every layer, with the options that change its recurrence",
        "group": "what is tracked: parity, S3 (all of it) or S5 (by swaps after the first token)",
        "layers": "how many of them stand on each other",
    }
    x = "mechanism"
    x_title = "right answers at the last places"
    series = ("mechanism",)
    panels = ("group",)

    def cells(self, scale: Scale) -> tuple[Cell, ...]:
        if scale == "smoke":
            few = tuple(spec for spec in _RECURRENT if spec.startswith(("gdn", "mamba2")))
            return _cells(_GROUPS[0]._replace(mechanisms=few, steps=100), n=16, seeds=1)
        if scale == "laptop":
            return tuple(one for group in _GROUPS for one in _cells(group, n=16, seeds=3))
        return tuple(
            one
            for group in _GROUPS
            for one in _cells(
                group._replace(mechanisms=_RECURRENT, steps=10 * group.steps, batch=128, width=64),
                n=64,
                seeds=5,
            )
        )

    def lines(self, table: Table) -> tuple[Line, ...]:
        """Chance, and where Theorem P begins, which is far outside of every figure."""
        chance = {float(row.chance) for row in table.rows}
        said = tuple(
            Line(label="chance", points=(("", height),), text="Dotted: chance.")
            for height in sorted(chance)
        )
        found = excluded(table.rows)
        return (*said, Line(label="Theorem P", text=found)) if found else said

    def figures(self, table: Table) -> dict[str, dict[str, Any]]:
        from separatrix.experiments.dots import Dot, dots
        from separatrix.experiments.drawing import slug

        found: dict[str, dict[str, Any]] = {}
        for group in table.values("group"):
            rows = table.where(group=group)
            points = [
                Dot(name=_name(row), series=f"{length:,} tokens", seeds=seeds_of(one))
                for row in rows
                for length, one in by_length(row).items()
            ]
            lines = self.lines(replace(table, rows=tuple(rows)))
            below = textwrap.wrap(
                f"Right answers after the last {LAST} tokens. Each point is a seed; the first"
                " colour is the length that was trained."
                + "".join(f" {line.text}" for line in lines if line.text),
                100,
            )
            found[slug(str(group))] = dots(
                f"{self.title}: {_NAMED[str(group)]}",
                below,
                points,
                x_title=self.x_title,
                chance=float(rows[0].chance),
            )
        return found

    def tables(self, table: Table) -> list[ShownTable]:
        lengths = list(dict.fromkeys(length for row in table.rows for length in by_length(row)))
        shown = ShownTable(
            title=f"Right answers at the last {LAST} places, at longer prompts, and Theorem P",
            columns=(
                "group",
                "mechanism",
                "layers",
                "numbers carried",
                *(f"at {length:,} tokens" for length in lengths),
                "solved",
                "fails for certain",
            ),
            rows=tuple(
                (
                    str(row.labels["group"]),
                    str(row.labels["mechanism"]),
                    str(row.labels["layers"]),
                    f"{row.cache_bits // 32:,}",
                    *(_seeds_shown(by_length(row).get(length)) for length in lengths),
                    f"{last_places(row).solved} of {len(row.trials)}",
                    _from_n(row),
                )
                for row in table.rows
            ),
        )
        return [shown, *super().tables(table)]

    def findings(self, table: Table) -> tuple[str, ...]:
        groups = [str(group) for group in table.values("group")]
        rows = {
            group: [row for row in table.where(group=group) if claimed([row])] for group in groups
        }
        against = [text for group in groups for text in _against(group, rows[group])]
        return (*against, *(text for group in groups for text in _found(group, rows[group])))


def _cells(group: _Group, *, n: int, seeds: int) -> tuple[Cell, ...]:
    stacks = [(spec.replace(_WIDTH, str(group.width)), group.layers) for spec in group.mechanisms]
    # attention reads its inputs only once per layer, so that it has two
    stacks.append((_FULL, 2))
    return tuple(
        cell(
            {"mechanism": _measured_as(spec), "group": group.name, "layers": layers},
            Run(
                architecture=f"{spec}*{layers} @ positions=none",
                task=f"{group.sizes}n={n},queries=all",
                seed=0,
                steps=group.steps,
                batch=group.batch,
                width=group.width,
                hidden=64,
                longer=tuple(_sizes(n)),
                tested=256,
                # every model has all the steps: what stops early follows shorter prompts only
                stop_at=2.0,
            ),
            seeds=seeds,
            rates=group.rates,
        )
        for spec, layers in stacks
    )


def _measured_as(spec: str) -> str:
    return Architecture.parse(spec).layers[0][0].measured_as


def _sizes(n: int) -> list[str]:
    """The last places of prompts of the trained length, of twice it and of four times it."""
    return [f"queries={LAST}", *(f"n={times * n},queries={LAST}" for times in (2, 4))]


def last_places(row: Row) -> Row:
    """The row as it was tested at the last places of prompts of the length trained."""
    return by_length(row)[row.task.length]


def _name(row: Row) -> str:
    layers = row.labels["layers"]
    return f"{row.labels['mechanism']}{f' ({layers} layers)' if layers != 1 else ''}"


def _seeds_shown(row: Row | None) -> str:
    return NONE if row is None else ", ".join(share(one.accuracy) for one in row.trials)


def turns(row: Row) -> bool:
    """Whether its layers can reflect their state as often per token as the task asks for: then
    explicit weights are known, where heads are wide enough.
    """
    task = _alone(row)
    moved = tracked(task)
    assert moved is not None
    swapped = isinstance(task, Permutation) and task.shift == "swaps"
    needed = 1 if swapped else moved.swaps
    return any(
        part.turning is not None and part.turning.reflections >= needed
        for layer in Architecture.parse(row.run["architecture"])
        for part in layer
    )


def _alone(row: Row) -> Task:
    """The task of a row, asked once, after the last token."""
    task = row.task
    return task.task if isinstance(task, Questions) else task


def fails_from(row: Row) -> int | None:
    """The n from which Theorem P says that no weights of this stack follow the state; None where
    it does not apply.
    """
    stack = Architecture.parse(row.run["architecture"])
    found = TheoremP().judge(stack, _alone(row))
    return None if found is None else found.n


def _from_n(row: Row) -> str:
    n = fails_from(row)
    return "no theorem" if n is None else f"from n = {number(n)} (Theorem P)"


def excluded(rows: Sequence[Row]) -> str:
    """Which mechanisms Theorem P excludes and from which n, in a sentence; "" for none."""
    found = {str(row.labels["mechanism"]): n for row in rows if (n := fails_from(row)) is not None}
    if not found:
        return ""
    least, most = min(found.values()), max(found.values())
    until = f", or at the latest {number(most)}," if most > least else ""
    return (
        f"Theorem P: from n = {number(least)}{until} on no weights of {listed(list(found))} follow"
        " it."
    )


def _against(group: str, rows: Sequence[Row]) -> list[str]:
    """What contradicts the expectation that what turns its state over learns it, and nothing
    else.
    """
    found: list[str] = []
    known = [row for row in rows if last_places(row).solved]
    without = [row for row in known if not turns(row)]
    if without:
        found.append(
            f"{_NAMED[group]}: {_with_seeds(without)} learned it at the length trained, without"
            " the reflections that the known construction takes."
        )
    failed = [row for row in rows if turns(row) and not last_places(row).solved]
    if failed:
        steps = failed[0].run["steps"]
        found.append(
            f"{_NAMED[group]}: {_with_medians(failed)} can reflect the state as often as it takes,"
            f" and no seed learned it in {steps:,} steps: that is this training, not what the"
            " layers can do."
        )
    return found


def _found(group: str, rows: Sequence[Row]) -> list[str]:
    """What was learned and how far it carries, and what was not."""
    found: list[str] = []
    learned = [row for row in rows if last_places(row).solved]
    for row in learned:
        (n, here), *longer = by_length(row).items()
        far = " and ".join(f"{percent(one.median)} at {length:,} tokens" for length, one in longer)
        found.append(
            f"{_NAMED[group]}: {solved_said(here)} of {_name(row)} learned it: at the last places"
            f" of {n:,} tokens the median is {percent(here.median)}; of longer prompts, never"
            f" trained, {far}."
        )
    signs = [row for row in rows if not last_places(row).solved and _follows_sign(row)]
    if signs:
        level = percent(sign_alone(signs[0]))
        found.append(
            f"{_NAMED[group]}: every seed of {_with_medians(signs)} answers about as often right as"
            f" who follows the sign alone ({level})."
        )
    rest = [row for row in rows if not last_places(row).solved and not turns(row)]
    if rest:
        best = max(rest, key=lambda row: last_places(row).median)
        found.append(
            f"{_NAMED[group]}: no seed of {listed([_name(row) for row in rest])} learned it; the"
            f" best median is {percent(last_places(best).median)} ({_name(best)}; chance"
            f" {percent(best.chance)}). Failed to train is not cannot"
            + (f": {text}" if (text := excluded(rest)) else ".")
        )
    return found


def sign_alone(row: Row) -> Fraction:
    """How often who follows the sign of the product alone is right; chance where there is none."""
    task = _alone(row)
    return task.level("parities") if "parities" in task.shortcuts else row.chance


def _follows_sign(row: Row) -> bool:
    """Whether every seed lies about where following the sign alone would put it."""
    level = sign_alone(row)
    near = (level - row.chance) / 2
    seen = last_places(row)
    return level - near < seen.least and seen.most < level + near


def _with_seeds(rows: Sequence[Row]) -> str:
    return listed([f"{_name(row)} ({solved_said(last_places(row))})" for row in rows])


def _with_medians(rows: Sequence[Row]) -> str:
    return listed([f"{_name(row)} (median {percent(last_places(row).median)})" for row in rows])

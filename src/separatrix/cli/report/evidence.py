"""What stands behind an answer: theorems, proofs of weights, witnesses and measurements, laid out
for the terminal and the report alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from statistics import median
from typing import Any

from separatrix.cli.report.notation import label, number, where
from separatrix.cli.report.view import task_size
from separatrix.core.document import Cells, Heading, Line, Part, Table
from separatrix.core.document.cells import ends
from separatrix.core.evidence.records import (
    Certificate,
    Construction,
    Evidence,
    Measurement,
    Verdict,
)
from separatrix.core.numbers.accuracy import WHOLE, percent
from separatrix.core.numbers.amounts import format_share
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.tasks.base.layout import in_runs
from separatrix.theory.fails.a_accuracy import trained_ceiling
from separatrix.theory.solves.room import from_one

FORMS = {
    "collision": "Two prompts that leave the same cache and have different answers: the model must"
    " answer one of them wrongly.",
    "block_swap": "Two prompts whose blocks send the same messages and have different answers: the"
    " model must answer one of them wrongly.",
    "two_runs": "Two runs of tokens that differ in one token where they meet: the model answers"
    " both prompts alike, and their right answers differ.",
    "wrong_answer": "A prompt that the model answers wrongly.",
}
SHOWN_WHOLE = 48
"""Prompts up to this many tokens are shown whole."""
_HEAD, _TAIL, _AROUND, _MOST_DIFFERENCES = 6, 4, 3, 32
_METHODS = {"integers": "exact integers", "balls": "ball arithmetic"}


def verdict_parts(record: Verdict) -> list[Part]:
    """The numbers, premises and assumptions of a theorem."""
    numbers = ", ".join(f"{label(key)} {number(n)}" for key, n in from_one(record.numbers).items())
    by = f" bits, by {_METHODS[record.method]}" if record.method else " bits"
    rows = [
        ("failure is shown", where(record.n, record.theorem).strip()),
        ("would bite at", f"log2 n = {record.log2_n}" if record.log2_n else ""),
        ("exact numbers", numbers),
        ("slack", f"{said(record.slack)}{by}" if record.slack else ""),
        ("premises", "\n".join(record.premises)),
        ("assumptions", "\n".join(record.assumptions)),
        ("said by the reader of the model's file", "\n".join(record.notes)),
        ("source", record.source),
    ]
    return [_facts([*rows, *_about(record)])]


def construction_parts(record: Construction) -> list[Part]:
    """Sizes, the proof of each layer, and which file holds the weights."""
    sizes = ", ".join(f"{label(key)} {number(size)}" for key, size in record.sizes.items())
    weights = f"{record.weights} (sha256 {record.weights_sha256[:16]})"
    about = _facts([("sizes", sizes), ("weights", weights), *_about(record)])
    return [*proof_parts(record.proof), about]


def certificate_parts(record: Certificate) -> list[Part]:
    """The prompts, differing tokens in brackets, the right answers and the model's answer."""
    names = ["prompt"] if len(record.inputs) == 1 else ["first", "second"]
    shown: Part = aligned(record.inputs, names)
    if record.form == "two_runs":
        runs = map(in_runs, record.inputs)
        shown = Table(list(zip(names, runs, strict=False)), labels=True)
    right = (
        number(answer) + f" ({name})" * (len(names) > 1)
        for answer, name in zip(record.answers, names, strict=False)
    )
    both = "" if len(record.inputs) == 1 else " to both"
    state = record.details.get("equal_state")
    kept = "both leave the same state behind, so whatever follows is answered alike"
    details = flat("", {k: v for k, v in record.details.items() if k != "equal_state"})
    rows = [
        ("right answer", ", ".join(right)),
        ("the model answers", f"{number(record.output)}{both}"),
        ("state", kept if state else ""),
        ("carried numbers rounded to", record.cache_format or ""),
        *((label(key), said(value)) for key, value in details),
    ]
    return [shown, _facts([*rows, *_about(record)])]


def measurement_parts(records: Sequence[Measurement]) -> list[Part]:
    """Every stack and size in a row, each seed with its interval."""
    columns = ("stack", "n", "solved it", "each seed, 95 % over its prompts", "chance", "budget")
    rows: list[Cells] = []
    for m in records:
        rows.append(
            (
                m.architecture,
                number(task_size(m.task)),
                f"{m.solved} of {len(m.seeds)}",
                "\n".join(_seeds(m.correct, m.total, m.intervals, m.ended)),
                m.chance,
                f"{budget_words(m.budget)}; seeds {', '.join(map(str, m.seeds))}",
            )
        )
        for other in m.longer:
            task, reached = str(other["task"]), [*other["correct"]]
            seeds = "\n".join(_seeds(reached, m.total, other["intervals"]))
            rows.append(("", f"{task}, longer than trained", "", seeds, str(other["chance"]), ""))
    repeats = dict.fromkeys(m.repeats for m in records if m.repeats)
    return [Table(rows, columns), *map(Line, repeats)]


def _seeds(
    correct: Iterable[int],
    total: int,
    intervals: Iterable[Sequence[str]],
    ended: Sequence[str] = (),
) -> Iterator[str]:
    for place, (right, (low, high)) in enumerate(zip(correct, intervals, strict=True)):
        diverged = " diverged" if ended and ended[place] == "diverged" else ""
        yield f"{100 * right / total:.2f} % ({' to '.join(ends(low, high))}){diverged}"


def trained_table(measured: Sequence[tuple[str, Measurement | None]], n: int) -> Table:
    """Stacks trained alike at one n, by name: medians, solved seeds, what no weights exceed."""
    rows: list[Cells] = []
    for name, m in measured:
        if m is None:
            rows.append((name, "not trained", "", ""))
            continue
        ceiling = trained_ceiling(Architecture.parse(m.architecture), parse_task(m.task))
        bounded = ceiling is not None and ceiling.at_most < WHOLE
        most = percent(ceiling.at_most) if ceiling is not None and bounded else ""
        diverged = f", {m.diverged} diverged" if m.diverged else ""
        reached = format_share(Fraction(median(m.correct)) / m.total)
        rows.append((name, reached, f"{m.solved} of {len(m.seeds)}{diverged}", most))
    return Table(rows, (f"n = {n:,}", "median", "solved", "highest"), labels=True)


def proof_parts(proof: Mapping[str, Any]) -> list[Part]:
    """A proof object: a table of its layers, counted from one, and what follows from them."""
    rest = dict(proof)
    parts: list[Part] = []
    rows = [_layer(layer) for layer in rest.pop("layers", [])]
    # a carrier and a head that fetches are told by different numbers: a table for each kind
    for columns, alike in groupby(rows, key=list):
        gap = [Heading()] if parts else []
        cells = [list(row.values()) for row in alike]
        parts += [*gap, Table(cells, columns, labels=True, turns=True)]
    size = rest.pop("exact_up_to", None)
    lines = [Line(f"{label(key)}: {said(value)}") for key, value in flat("", rest)]
    if size is not None:
        lines.append(Line(f"exact for every input of this size, n = {size:,}"))
    return [*parts, Heading(), *lines]


def _layer(layer: Mapping[str, Any]) -> dict[str, str]:
    """A layer of a proof, named first: where it stands, then its numbers."""
    part = f", part {layer['part'] + 1}" if layer.get("part") else ""
    numbers = flat("", {k: v for k, v in layer.items() if k not in ("layer", "part")})
    return {"where": f"layer {layer['layer'] + 1}{part}"} | {
        label(key): said(value) for key, value in numbers
    }


def flat(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What is nested, each with the words that lead to it."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from flat(f"{key} {name}".strip(), inner)
    else:
        yield key, value


def said(value: Any) -> str:
    """A value of a record: numbers with three digits, as the file holds all of them; long lists
    counted.
    """
    if isinstance(value, list):
        return ", ".join(map(said, value)) if len(value) <= 12 else f"{len(value):,} entries"
    if not isinstance(value, str):
        return number(value)
    if len(value) == 64:
        return value[:16]
    bare = value[1:-1].split(" ")[0] if value.startswith("[") and value.endswith("]") else value
    decimal = len(value) > 8 and bare.lstrip("-").replace(".", "").replace("e-", "").isdigit()
    return f"{float(bare):.3g}" if decimal else value


def _facts(rows: Iterable[tuple[str, str]]) -> Table:
    return Table([row for row in rows if row[1]], labels=True, turns=True)


def _about(record: Evidence) -> Iterator[tuple[str, str]]:
    yield "architecture", record.architecture
    # one word of a hundred letters has no room in a terminal
    yield "task", record.task.replace(",", ", ")
    yield "record", record.digest[:16]


def aligned(prompts: Sequence[Sequence[int]], names: Sequence[str]) -> Table:
    """Prompts over one another, token by token, places counted from one, in brackets where they
    differ. Of long ones only the ends and the surroundings of the first 32 differences are kept.
    """
    places = range(max(map(len, prompts), default=0))
    tokens = [[prompt[i] if i < len(prompt) else None for prompt in prompts] for i in places]
    differ = [i for i in places if len(set(tokens[i])) > 1]
    kept = set(places)
    if len(places) > SHOWN_WHOLE:
        kept = {*places[:_HEAD], *places[-_TAIL:]}
        kept |= {i + d for i in differ[:_MOST_DIFFERENCES] for d in range(-_AROUND, _AROUND + 1)}
    columns = ["place"]
    rows = [[name] for name in names]
    for shown, some in groupby(places, key=lambda i: i in kept):
        hidden = list(some)
        if not shown and len(hidden) > 2:
            left = sum(i in differ for i in hidden)
            columns.append(f"{len(hidden):,} left out{f', {left:,} differ' if left else ''}")
            for row in rows:
                row.append("...")
            continue
        for i in hidden:
            columns.append(f"{i + 1:,}")
            for row, token in zip(rows, tokens[i], strict=True):
                text = "-" if token is None else str(token)
                row.append(f"[{text}]" if len(set(tokens[i])) > 1 else text)
    return Table(rows, columns, labels=True, turns=True)


_BUDGET = ("steps", "steps_done", "batch", "optimiser", "learning_rate", "curriculum", "parameters")


def budget_words(budget: Mapping[str, Any]) -> str:
    """What a training run was allowed and took, in a few words."""
    told = ((label(name), budget[name]) for name in _BUDGET if budget.get(name))
    return "; ".join(f"{name} {said(value)}" for name, value in told)

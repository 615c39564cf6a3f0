"""How often a checkpoint answered, beside what is proved of its stack: read from folders that
`task NAME evaluate --out` and lm-evaluation-harness have written, size by size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from separatrix.core.document import Document, Line, Table
from separatrix.core.document.cells import accuracy, ends, guessed
from separatrix.core.document.plot import (
    DASHED,
    FAILS,
    INK,
    MUTED,
    SOLVES,
    Dot,
    Drawing,
    Stroke,
    log_axis,
    share_axis,
)
from separatrix.core.errors import EvidenceError, SeparatrixError
from separatrix.core.evidence.bundles import read_json
from separatrix.core.evidence.canonical import canonical, json_object, sha256
from separatrix.core.numbers.accuracy import WHOLE, percent
from separatrix.core.numbers.wilson import wilson
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.hf import from_config
from separatrix.stacks.architecture.resolve import resolve
from separatrix.tasks import Task, parse_any_task
from separatrix.tasks.measured import MEANT, level
from separatrix.tasks.text import TextTask
from separatrix.theory import judge
from separatrix.theory.judge import graded

OWN = "answers.json"
"""What `evaluate --out` writes of a run; the replies stand beside it, a line each."""
_RIGHT = ("exact_match,answer", "acc,none", "exact_match,none")
_WEIGHED = "_logprob"
"""How the harness's tasks end that weigh the right answer of NAME, behind as many questions."""
_MOST = 1 << 26
"""Bytes of a file of results, and samples of a task."""
_MEANT = {
    "proved": "of the stack in the model's config.json and the task with a token for each value,"
    " for any weights",
    "level": MEANT,
    "above": "accuracy less level, in points",
    "credit": "the share that is right of what is asked for",
    "log p": "of the right answer, in nats",
}
"""What columns mean whose names do not say it."""
_COLOURS = {"FAILS": FAILS, "SOLVABLE": SOLVES}


@dataclass(frozen=True)
class Answered:
    """One task asked of one model: prompts of which every answer is right, of how many."""

    task: Task | TextTask
    model: str
    architecture: Architecture | None
    """None where nothing describes the model."""
    manner: str
    """How it was asked."""
    right: int
    total: int
    log_probability: float | None = None
    """Mean over the prompts, of the right answer, in nats."""
    seed: int | None = None
    credit: float | None = None
    """Mean over the prompts of the share that is right, where several things are asked for."""

    def to_json(self) -> dict[str, Any]:
        """The row with what is proved of it."""
        best = level(self.task)
        above = None if best is None else float(Fraction(self.right, self.total) - best)
        return {
            "task": self.task.spec,
            # of the task's own prompts, one for each value
            "tokens": self.task.length if isinstance(self.task, Task) else None,
            "model": self.model,
            "manner": self.manner,
            "right": self.right,
            "total": self.total,
            "interval": list(wilson(self.right, self.total)),
            "log_probability": self.log_probability,
            "credit": self.credit,
            "chance": str(self.task.chance),
            "level": None if best is None else str(best),
            "above_level": above,
            "seed": self.seed,
            "proved": self.proved(),
        }

    def proved(self) -> dict[str, Any] | None:
        """The strongest verdict on the stack and the task, and the most of random questions that
        any weights answer; None of a task in words and of a model that nothing describes.
        """
        if self.architecture is None or not isinstance(self.task, Task):
            return None
        found = judge(self.architecture, self.task)[0]
        grade = graded(self.architecture, self.task)
        most = None if grade is None else grade.numbers["ceiling_millionths"]
        return {
            "status": found.status,
            "theorem": found.theorem,
            "statement": found.statement,
            "assumptions": list(found.assumptions),
            "ceiling_millionths": most,
        }


def _named(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["model"], row["task"].partition(":")[0]


def document(rows: Sequence[dict[str, Any]], notes: Sequence[str] = ()) -> Document:
    """A table for each model, what else is said, and what the columns mean."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((*_named(row), row["manner"]), []).append(row)
    parts: list[Line | Table] = []
    shown: set[str] = set()
    for (model, name, manner), own in groups.items():
        sizes = [row["task"].partition(":")[2].split(",") for row in own]
        alike = [size for size in sizes[0] if all(size in of for of in sizes)]
        # names from files, whose line breaks would write lines of their own
        parts.append(Line(" ".join(f"{name}:{','.join(alike)}, {manner}: {model}".split())))
        cells = [_cells(row) for row in own]
        for of, cell in zip(sizes, cells, strict=True):
            cell[""] = " ".join(size for size in of if size not in alike)
        columns = [name for name in cells[0] if any(cell[name] for cell in cells)]
        shown.update(columns)
        parts.append(Table([[cell[name] or "-" for name in columns] for cell in cells], columns))
    failing = {row["task"]: row["proved"] for row in rows if _proved(row).startswith("FAILS")}
    parts += [Line(f"{task}: {said['statement']}") for task, said in failing.items()]
    parts += map(Line, notes)
    meant = "; ".join(f"{name}: {text}" for name, text in _MEANT.items() if name in shown)
    parts.append(Line(f"{meant}{'. ' * bool(meant)}Accuracies are measured."))
    return Document(*parts)


def _cells(row: Mapping[str, Any]) -> dict[str, str]:
    """The columns; a column in which no row has anything to say is left out."""
    best, credit, weight = row["level"], row["credit"], row["log_probability"]
    low, high = ends(*row["interval"])
    return {
        "": "",
        "tokens": "" if row["tokens"] is None else f"{row['tokens']:,}",
        "proved": _proved(row),
        "chance": guessed(Fraction(row["chance"])),
        "level": "" if best is None else guessed(Fraction(best)),
        "accuracy": f"{accuracy(row['right'], row['total'])} of {row['total']:,}",
        "95 % interval": f"{low} to {high}",
        "above": "" if best is None else f"{100 * row['above_level']:+.1f}",
        "credit": "" if credit in (None, row["right"] / row["total"]) else f"{credit:.3f}",
        "log p": "" if weight is None else f"{weight:.2f}",
    }


def _ceiling(row: Mapping[str, Any]) -> int | None:
    """The most of random questions that any weights answer, in millionths, where not all."""
    most = (row["proved"] or {}).get("ceiling_millionths")
    return None if most is None or most >= WHOLE else most


def _proved(row: Mapping[str, Any]) -> str:
    if row["proved"] is None:
        return ""
    most = _ceiling(row)
    best = "" if most is None else f", at most {percent(most)}"
    return f"{row['proved']['status']} ({row['proved']['theorem']}{best})"


def drawing(rows: Sequence[dict[str, Any]]) -> Drawing | None:
    """Accuracy over tokens: a dot with its interval for each size, the level below, and the most
    that any weights answer. None where no row has tokens.
    """
    there = sorted((row for row in rows if row["tokens"]), key=lambda row: row["tokens"])
    if not there:
        return None
    marks: list[Stroke | Dot] = []
    lines: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in there:
        x, share = float(row["tokens"]), row["right"] / row["total"]
        lines.setdefault(_named(row), []).append((x, share))
        colour = _COLOURS.get(_proved(row).partition(" ")[0], INK)
        low, high = map(float, row["interval"])
        told = f"{row['model']}, {row['task']}: {row['right']} of {row['total']}, {_proved(row)}"
        marks += [Stroke([(x, low), (x, high)], colour, told=told), Dot(x, share, colour, told)]
        most = _ceiling(row)
        crosses = {"level": row["level"], "at most, for any weights": most and most / WHOLE}
        for what, height in crosses.items():
            if height is not None:
                told = f"{what}: {row['task']}"
                marks.append(Dot(x, float(Fraction(height)), MUTED, told, "cross", 3.5))
    marks += [Stroke(line, MUTED, DASHED, 1) for line in lines.values()]
    sizes = sorted({float(row["tokens"]) for row in there})
    axis = log_axis("tokens of a prompt", sizes[0] / 1.2, sizes[-1] * 1.2, at=sizes)
    below = [
        "dots: measured, with 95 % intervals; orange where no weights do it, blue where weights are"
        " proved to exist",
        "crosses: what the best simple rule reaches, and the most that any weights answer",
    ]
    title = ", ".join(f"{task} by {model}" for model, task in lines)
    return Drawing(x=axis, y=share_axis(), marks=marks, title=title, below=below)


def read_results(folder: Path) -> list[Answered]:
    """What a folder holds of either kind. Raises EvidenceError, naming the file, for one that holds
    none, and for a file that was edited or cut off.
    """
    if not folder.is_dir():
        raise EvidenceError(f"{folder}: no such folder")
    found = [_own(path) for path in sorted(folder.rglob(OWN))]
    for path in sorted(folder.rglob("results_*.json")):
        found += _of_harness(path)
    if not found:
        raise EvidenceError(
            f"{folder}: no results in it: neither {OWN}, which `task NAME evaluate FOLDER --out"
            " DIR` writes, nor results_*.json of lm-evaluation-harness (--output_path DIR) with a"
            " task of separatrix"
        )
    return found


def _loaded(path: Path) -> dict[str, Any]:
    if path.is_file() and path.stat().st_size > _MOST:
        raise EvidenceError(f"{path}: more than {_MOST:,} bytes")
    data = json_object(read_json(path))
    if data is None:
        raise EvidenceError(f"{path}: holds no JSON object")
    return data


def sealed(data: Mapping[str, Any]) -> dict[str, Any]:
    """A record of results with the hash of all its fields."""
    return {**data, "sha256": sha256(canonical(dict(data)))}


def _own(path: Path) -> Answered:
    data = _loaded(path)
    said = data.pop("sha256", None)
    if said != sha256(canonical(data)):
        raise EvidenceError(f"{path}: its hash does not fit: the file was edited or damaged")
    config, task = data.pop("config"), parse_any_task(data.pop("task"))
    architecture = None if config is None else described(config, data["model"])
    return Answered(task=task, architecture=architecture, **data)


def described(config: Any, name: str) -> Architecture | None:
    """The stack of a config.json, or of a spec; None where it is not read."""
    try:
        return resolve(config) if isinstance(config, str) else from_config(config, name)
    except SeparatrixError:
        # of what the library does not read nothing is proved
        return None


def _of_harness(path: Path) -> Iterator[Answered]:
    data = _loaded(path)
    parts = (json_object(data.get(key)) or {} for key in ("results", "configs", "n-samples"))
    results, configs, counts = parts
    model = _model_of(data)
    architecture = described(model, model)

    def of(name: str) -> dict[str, Any]:
        return json_object(configs.get(name)) or {}

    for name, scores in results.items():
        shots, answers = of(name).get("num_fewshot"), name.removesuffix(_WEIGHED)
        spec = (json_object(of(name).get("metadata")) or {}).get("spec")
        told = answers != name and answers in results and of(answers).get("num_fewshot") == shots
        if told or not isinstance(spec, str):
            # what is told beside the answers of NAME, and a task of someone else
            continue
        many = (json_object(counts.get(name)) or {}).get("effective")
        share = next((scores[key] for key in _RIGHT if key in (json_object(scores) or {})), None)
        if type(many) is not int or not 0 < many < _MOST or not isinstance(share, int | float):
            raise EvidenceError(
                f"{path}: {name} has no accuracy, or no number of samples beside it"
            )
        right = round(min(1.0, share) * many)
        if not 0 <= right <= many or abs(share * many - right) > 1e-3 * many:
            raise EvidenceError(f"{path}: {name}: {share} of {many} is no number of right answers")
        manner = f"{name} in lm-evaluation-harness, {shots or 0} solved questions first"
        if of(beside := f"{name}{_WEIGHED}").get("num_fewshot") == shots:
            scores = {**(json_object(results.get(beside)) or {}), **scores}
        part, weight = scores.get("credit,answer"), scores.get("log_probability,none")
        yield Answered(
            parse_any_task(spec),
            model,
            architecture,
            manner,
            right,
            many,
            weight if isinstance(weight, int | float) and weight <= 0 else None,
            credit=part if isinstance(part, int | float) and 0 <= part <= 1 else None,
        )


def _model_of(data: Mapping[str, Any]) -> str:
    given = (json_object(data.get("config")) or {}).get("model_args")
    if isinstance(given, str):
        pairs = (part.partition("=") for part in given.split(","))
        given = {name.strip(): value.strip() for name, _, value in pairs}
    named = (json_object(given) or {}).get("pretrained") or data.get("model_name")
    return named if isinstance(named, str) and named else "a model without a name"

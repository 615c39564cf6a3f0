"""`separatrix task NAME evaluate FOLDER` for checkpoints of transformers, and `separatrix task
results DIR...`: measured accuracies beside what is proved.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from math import fsum, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from separatrix.cards.answered import (
    OWN,
    Answered,
    described,
    document,
    drawing,
    read_results,
    sealed,
)
from separatrix.cli.commands.evidence import CONSTRUCTED
from separatrix.cli.options import Asked
from separatrix.cli.printing import Told
from separatrix.core.document.plot import check_plot
from separatrix.core.errors import ConfigError, EvidenceError, OutputError, SizeError, SpecError
from separatrix.core.evidence.canonical import canonical, json_object
from separatrix.core.evidence.folder import write_atomic
from separatrix.core.evidence.records import Construction, from_envelope
from separatrix.core.progress import bar
from separatrix.stacks.architecture.file import load_json
from separatrix.stacks.architecture.resolve import resolve
from separatrix.tasks import Task
from separatrix.tasks.base.described import file_name
from separatrix.tasks.exports.asking import asking
from separatrix.tasks.exports.source import instruction
from separatrix.tasks.labels import label_vocabulary, token_labels
from separatrix.tasks.text import TextTask

if TYPE_CHECKING:
    from separatrix.models.released import Released, Reply

IN_WORDS, IN_IDS, SHOTS = 200, 2048, 4
"""Questions of each size in words and in token ids, and solved ones before each in words, unless
told otherwise.
"""
_REPLIES = "replies.jsonl"
_FEW_WORDS = 1 << 17
_MOST_REPLACED = 256
"""Values that words stand for, at most: each is told above the questions."""
_SAID = """
    numbers words stand for what more than one token answer answers with the alone write steps then
    line input question think or either neither nor not no unknown none if wrong incorrect so thus
    therefore hence and final
"""
"""What questions say beside the task, and what makes a reply unclear."""


def is_released(folder: str) -> bool:
    """Whether a text names the folder of a checkpoint that transformers loads without this
    package's classes. A construction is asked in its own way where transformers is not there.
    """
    where = Path(folder).expanduser()
    try:
        data = json_object(load_json(where / "config.json"))
    except (ConfigError, OSError, ValueError):
        return False
    if data is None or data.get("model_type") == "separatrix":
        return False
    return find_spec("transformers") is not None or not (where / CONSTRUCTED).exists()


def evaluate(
    folder: str, tasks: Sequence[Task | TextTask], asked: Asked, shots: int | None, *, whole: bool
) -> Told:
    """Asks a checkpoint every task: its accuracy beside what is proved of it. With --out replies
    are kept, and the same command goes on from them; `whole`: whether values of several tokens each
    are written as words of one.
    """
    from separatrix.models.released import Released

    where, out, seed = Path(folder).expanduser(), asked.out, asked.seed
    config = load_json(where / "config.json")
    released = Released.load(where)
    words = released.tokenizer is not None
    record = record_of(folder)
    architecture = resolve(record.architecture) if record else described(config, folder)
    if shots is not None and not words:
        raise SpecError(
            f"{folder}: the folder has no tokenizer, so that token ids are asked, and no solved"
            " questions stand before them; leave --rows out"
        )
    if whole and not words:
        raise SpecError(
            f"{folder}: the folder has no tokenizer, which tells tokens; leave --tokens out"
        )
    total = asked.number or (IN_WORDS if words else IN_IDS)
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    with bar("asking", shown=not asked.as_json, unit=" questions") as advance:
        for done, task in enumerate(tasks):
            if words:
                split, instead = _values(released, task, whole)
                given = SHOTS if shots is None else shots
                manner, ask = _in_words(released, task, given, total, seed, instead)
                notes += split
            else:
                manner, ask = _in_ids(released, task, record is not None, config, total, seed)
            header = {
                "task": task.spec,
                "model": folder,
                "manner": manner,
                "total": total,
                "seed": seed,
                "config": config if record is None else record.architecture,
            }
            with _kept(out, task, header) as (replies, keep):
                for k, reply in ask([k for k in range(total) if k not in replies]):
                    replies[k] = reply
                    keep(k, reply)
                    advance(done * total + len(replies), len(tasks) * total)
            found = Answered(
                task,
                folder,
                architecture,
                manner,
                sum(reply.right for reply in replies.values()),
                total,
                _mean([reply.log_probability for reply in replies.values()]),
                seed,
                _mean([reply.credit for reply in replies.values()]),
            )
            rows.append(found.to_json())
            if out is not None:
                counted = ("right", "log_probability", "credit")
                own = header | {name: getattr(found, name) for name in counted}
                path = out / file_name(task.spec) / OWN
                write_atomic(path, canonical(sealed(own)) + "\n")
    return Told(rows, document(rows, list(dict.fromkeys(notes))))


def record_of(folder: str) -> Construction | None:
    """The construction whose checkpoint a folder holds: its stack and its task are what the
    checkpoint was made for.
    """
    from separatrix.models.stored.plain_file import plain_json

    path = Path(folder).expanduser() / CONSTRUCTED
    if not path.exists():
        return None
    record = from_envelope(plain_json(path))
    if not isinstance(record, Construction):
        raise EvidenceError(f"{path}: holds a {record.kind}, not a construction")
    return record


def _mean(values: Sequence[float]) -> float | None:
    """None where one is no number: of logits that are none."""
    return fsum(values) / len(values) if all(map(isfinite, values)) else None


Asking = Callable[[Sequence[int]], Iterator[tuple[int, "Reply"]]]
"""What asks the questions of these numbers."""


def _in_words(
    released: Released,
    task: Task | TextTask,
    shots: int,
    total: int,
    seed: int,
    instead: Mapping[str, str],
) -> tuple[str, Asking]:
    made = asking(task, shots=shots, number=total, seed=seed, instead=instead)
    released.check(made)
    how = "by log-probability" if made.questions[0].choices else "greedily"
    others = f", {len(instead):,} values as words of one token" if instead else ""
    return (
        f"asked in words {how}, {shots} solved questions first{others}",
        lambda left: released.answered(made, left),
    )


def _in_ids(
    released: Released,
    task: Task | TextTask,
    constructed: bool,
    config: Mapping[str, Any],
    total: int,
    seed: int,
) -> tuple[str, Asking]:
    from separatrix.models.stored.accuracy import evaluation_stream

    if not isinstance(task, Task):
        raise SpecError(f"{task.spec}: a task in words needs a tokenizer in the model's folder")
    batch = task.sample(total, evaluation_stream(seed))
    start = config.get("bos_token_id") if constructed else None
    labelled = token_labels(task, batch, as_answers=constructed)
    ids = max(task.vocabulary, task.answers) if constructed else label_vocabulary(task)
    released.fits(ids, task.length + (start is not None))
    return (
        "asked in token ids, answers as the construction gives them"
        if constructed
        else "asked in token ids, answers as labels=tokens gives them",
        lambda left: released.answered_in_ids(labelled, start, left),
    )


def _values(
    released: Released, task: Task | TextTask, whole: bool
) -> tuple[list[str], dict[str, str]]:
    """What is said of values that are not one token each, and the words that are written instead
    where that is asked for. Raises SizeError where there are too few of these.
    """
    if not isinstance(task, Task) or task.asked.vocabulary > _FEW_WORDS:
        return [], {}
    words = list(map(task.asked.word, range(task.asked.vocabulary)))
    more = released.split_values(words)
    if not more:
        return [], {}
    said = (
        f"{task.name}: {len(more):,} of its {len(words):,} values are not one token each for this"
        f" tokenizer, such as {more[0]}"
    )
    if not whole:
        proved = "what is proved counts one token for each (--tokens one writes words instead)"
        return [f"{said}; {proved}"], {}
    # none that stands above the questions
    told = f"{task.definition} {instruction(task.asked)} {_SAID}".lower()
    others = released.whole_words(_MOST_REPLACED, set(re.findall("[a-z]+", told)))
    if len(others) < len(more):
        raise SizeError(
            f"{said}; its words can stand for {len(others):,} at most: ask smaller sizes, or leave"
            " --tokens out"
        )
    instead = dict(zip(more, others, strict=False))
    return [f"{said}; words stand for them, {others[0]} for {more[0]}"], instead


@contextmanager
def _kept(
    out: Path | None, task: Task | TextTask, header: Mapping[str, Any]
) -> Generator[tuple[dict[int, Reply], Callable[[int, Reply], None]], None, None]:
    """The replies of an earlier run of the same, and what keeps one more. Raises OutputError where
    those of another run stand there.
    """
    if out is None:
        yield {}, lambda number, reply: None
        return

    def keep(number: int, reply: Reply) -> None:
        file.write(json.dumps({"number": number, **reply._asdict()}) + "\n")
        file.flush()

    path = out / file_name(task.spec) / _REPLIES
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        there = _there(path, header)
        file = path.open("a", encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from None
    with file:
        yield there, keep


def _there(path: Path, header: Mapping[str, Any]) -> dict[int, Reply]:
    """The replies of a file that begins with this header, which is written where there is none; a
    last line that was cut off is left out, and asked again.
    """
    from separatrix.models.released import Reply

    first = canonical(dict(header))
    try:
        lines = path.read_text("utf-8").split("\n") if path.exists() else [first, ""]
        if lines[0] != first:
            raise OutputError(
                f"{path}: replies of another run stand here (another model, seed, number or"
                " manner); choose another place with --out"
            )
        there = {line.pop("number"): Reply(**line) for line in map(json.loads, lines[1:-1])}
        for number, reply in there.items():
            kinds = [*map(type, (number, *reply))] == [int, bool, str, float, float]
            if not (kinds and 0 <= number < header["total"] and 0 <= reply.credit <= 1):
                raise ValueError
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise EvidenceError(f"{path}: a line was edited or damaged; remove the file") from None
    write_atomic(path, "\n".join(lines[:-1]) + "\n")
    return there


def results(folders: Sequence[str], *, out: Path | None) -> Told:
    """Accuracies of folders of results beside what is proved, and as a picture."""
    if not folders:
        raise SpecError("results takes folders: separatrix task results DIR [DIR ...]")
    if out is not None:
        check_plot(out)
    where = (Path(folder).expanduser() for folder in folders)
    rows = [row.to_json() for folder in where for row in read_results(folder)]
    if out is not None:
        drawn = drawing(rows)
        if drawn is None:
            raise SpecError("these results have no task of tokens; nothing to draw over sizes")
        drawn.write(out)
    return Told(rows, document(rows))

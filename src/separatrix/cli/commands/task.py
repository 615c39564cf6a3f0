"""`separatrix task NAME [sample|audit|export|evaluate]`: one task, and what is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from separatrix.cli.commands.listing import explained
from separatrix.cli.options import Asked, command, pairs, used
from separatrix.cli.printing import Answer, Told, rows_table
from separatrix.cli.report.tasks import describe
from separatrix.core.document import Document, Heading, Line, Plot
from separatrix.core.document.cells import accuracy, guessed, interval
from separatrix.core.errors import SeparatrixError, SizeError, SpecError, UnknownNameError
from separatrix.core.evidence.folder import new_folder
from separatrix.core.numbers.amounts import parse_context
from separatrix.core.numbers.wilson import wilson, wilson_of_answers
from separatrix.core.progress import bar
from separatrix.tasks import Task, parse_any_task, parse_task
from separatrix.tasks.audits import audit, audit_texts, legend, table
from separatrix.tasks.base.described import add_sizes, file_name, name_of
from separatrix.tasks.exports import FORMATS, export, rows_of
from separatrix.tasks.exports.asking import counter, fitted
from separatrix.tasks.labels import LABELS, split_labels, token_labels
from separatrix.tasks.resized import resized
from separatrix.tasks.text import TEXT_TASKS, TextTask
from separatrix.theory.fails.a_accuracy import check_answers

MOST_SHOWN = 1000
DRAWN, PROBED, ASKED = 3, 4000, 2048
"""What --number is for sample, audit and evaluate unless it is given."""
SPLITS = ("train", "validation", "test")


@command
def task(asked: Asked) -> Answer:
    """One task: explained; a few instances; shortcuts tried on it (exit code 1 if one guesses it);
    written as files; or asked of a model in a folder: trained or constructed here, or any causal
    language model of transformers (extra hf). `results` prints such answers, and those of
    lm-evaluation-harness, beside what is proved. Examples: task eva:n=8 sample; task twosum audit;
    task seqcomp:L=3,n=4096 export --format hf --out seqcomp/; task eva:V=16 evaluate trained/
    --n 8,16,32; task results answers/
    """
    name, *others = asked.words
    if name == "results":
        used(asked, "task results", "RESULTS")
        from separatrix.cli.commands.results import results

        return results(others, out=asked.out)
    actions = {"show": _show, "sample": _sample, "audit": _audit, "export": _export}
    if name in (*actions, "evaluate", "explain"):
        action, named = name.removeprefix("explain"), others[0][:60] if others else "NAME"
        raise SpecError(f"the task comes first: separatrix task {named} {action}".rstrip())
    action, *folders = others or ["show"]
    used(asked, f"task {name[:60]} {action[:60]}", action, folders)
    if action == "evaluate":
        return _evaluate(name, folders[0], asked)
    return actions[action](name, asked)


def _show(text: str, asked: Asked) -> Told:
    name, sizes, _ = text.partition(":")
    told = explained(describe(name))
    if sizes:
        parse_any_task(split_labels(text)[0])
    return told


def _sample(text: str, asked: Asked) -> Told:
    """Instances, inputs over targets."""
    import numpy as np

    number = asked.number or DRAWN
    if number > MOST_SHOWN:
        raise SizeError(f"--number {number:,}: sample shows at most {MOST_SHOWN:,}; export them")
    text, labels = split_labels(text)
    made = parse_any_task(text)
    rng = np.random.default_rng(asked.seed)
    if not isinstance(made, Task):
        if labels:
            raise SpecError(f"{made.spec}: a task in words has no token ids; leave {LABELS} out")
        items = made.sample(number, rng)
        told = "\n\n".join(f"{item.prompt} {made.target(item)}" for item in items)
        return Told([item._asdict() for item in items], _drawn(told.split("\n")))
    if made.length > 100_000:
        raise SizeError(
            f"{made.spec}: {made.length:,} tokens are too many to look at; choose smaller sizes, or"
            " export them"
        )
    batch = made.sample(number, rng)
    parts = token_labels(made, batch) if labels else batch
    pairs = list(zip(*(part.tolist() for part in parts), strict=True))
    heads = ("input_ids", "labels") if labels else ("input", "target")
    names = heads if labels else ("tokens", "targets" if made.several else "target")
    data = [dict(zip(names, pair, strict=True)) for pair in pairs]
    if not labels and not made.several:
        pairs = [(row, [-1] * (len(row) - 1) + [own]) for row, own in pairs]

    def shown(answer: int) -> str:
        return "." if answer < 0 and not labels else str(answer)

    lines = (
        line
        for row, own in pairs
        for line in _over((heads[0], [*map(str, row)]), (heads[1], [*map(shown, own)]))
    )
    return Told(data, _drawn([*lines]))


def _drawn(lines: Sequence[str]) -> Document:
    """Lines as they are, however long."""
    return Document(Plot("instances", lines))


def _over(*lines: tuple[str, Sequence[str]]) -> list[str]:
    """Titled rows of words above each other, each word in the column of its position."""
    widths = [max(map(len, column)) for column in zip(*(words for _, words in lines), strict=True)]
    longest = max(len(title) for title, _ in lines)
    return [
        f"{title:<{longest}}  "
        + " ".join(word.rjust(wide) for word, wide in zip(words, widths, strict=True))
        for title, words in lines
    ]


def _audit(text: str, asked: Asked) -> Told:
    """Shortcuts against the level that each may reach."""
    number = PROBED if asked.number is None else asked.number
    if not 100 <= number <= 1_000_000:
        raise SizeError(f"--number {number:,}: audit judges on 100 to 1,000,000 instances")
    texts = audit_texts(text)
    found: list[Any] = []
    with bar(f"auditing {text}", shown=not asked.as_json) as progress:
        for done, one in enumerate(texts):
            progress(done, len(texts))
            found.append(audit(parse_any_task(one), seed=asked.seed, fitted=number, tested=number))
    said = [part for one in found for part in (*table(one).parts, Heading())]
    code = int(any(one.leaks for one in found))
    return Told([one.to_json() for one in found], Document(*said, legend(found[0])), code)


def _export(text: str, asked: Asked) -> Told:
    """Instances as files, each once; of several sizes a folder each, and all of them or none."""
    if asked.format is None or asked.out is None:
        raise SpecError(
            "an export needs --format and --out. For example: separatrix task"
            f" {text}{':easy' * (':' not in text)} export --format hf --out exported/"
        )
    if asked.tokens is not None:
        wanted = _fitted(text, asked)
    else:
        texts = _ladder(text, asked.n)
        wanted = [(one, file_name(one.partition(",labels=")[0]), {}) for one in texts]
    if len({name for _, name, _ in wanted}) < len(wanted):
        raise SpecError("an export names a size twice; each has a folder of its own")
    if len(wanted) == 1:
        (one, _, more), out = wanted[0], asked.out
        return _exported(one, out, out, asked, more)
    with new_folder(asked.out) as folder:
        made = [
            _exported(one, folder / name, asked.out / name, asked, more)
            for one, name, more in wanted
        ]
    lines = [line for one in made for line in one.shown.parts]
    return Told([one.data for one in made], Document(*lines))


def _fitted(text: str, asked: Asked) -> list[tuple[str, str, dict[str, Any]]]:
    """The largest sizes that fit so many tokens: each as text, its folder where there are several,
    and what is told of it.
    """
    numbers, _, tokenizer = asked.tokens.partition(":")
    if not (numbers and tokenizer) or asked.n is not None:
        raise SpecError(
            "--tokens says how many and of which tokenizer, and chooses n itself: separatrix task"
            " needles:easy export --format lm-eval --out needles/ --tokens 32k:FOLDER"
        )
    plain, labels = split_labels(text)
    if labels:
        raise SpecError(f"--tokens counts tokens of questions in words; leave {LABELS} out")
    if asked.format not in FORMATS:
        raise UnknownNameError.of("format", str(asked.format), FORMATS, where=" to export to")
    task = _with_easy_sizes(plain)
    rows = rows_of(FORMATS[asked.format], _rows(asked.rows or []))
    wanted = [parse_context(each, "--tokens") for each in _listed(numbers)]
    count = counter(tokenizer)
    found: list[tuple[str, str, dict[str, Any]]] = []
    for tokens in wanted:
        one, taken = fitted(task, tokens, rows, asked.seed, count)
        told = {"tokens": tokens, "longest": taken, "tokenizer": tokenizer}
        found.append((one.spec, str(tokens), told))
    return found


def _with_easy_sizes(text: str) -> Task | TextTask:
    """The task of a text; where it names no size that grows, those of its easiest one."""
    try:
        return parse_any_task(text)
    except SizeError as error:
        name, _, own = text.partition(":")
        try:
            return parse_any_task(f"{name}:easy,{own}" if own else f"{name}:easy")
        except SeparatrixError:
            raise error from None


def _exported(text: str, out: Path, called: Path, asked: Asked, more: dict[str, Any]) -> Told:
    """One size as the new folder `out`, which is `called` so once all is done."""
    format, seed = asked.format, asked.seed
    text, labels = split_labels(text)
    wanted = parse_any_task(text)
    splits = _rows(asked.rows or [])
    with bar(f"exporting {wanted.spec}", shown=not asked.as_json) as progress:
        made = export(
            wanted,
            format=format,
            out=out,
            splits=splits,
            seed=seed,
            progress=progress,
            labels=labels,
        )
    files = [str(called / path.relative_to(out)) for path in made.paths]
    data = {"task": wanted.spec, "format": format, "rows": made.rows, "files": files}
    told = ", ".join(f"{count:,} {name}" for name, count in made.rows.items())
    lines = [f"{wanted.spec} as {format}: {told}, seed {seed}", *(f"  {file}" for file in files)]
    lines.append(f"sha256  {made.sha256}")
    if more:
        fits = f"{more['longest']:,} of {more['tokens']:,} tokens"
        lines.append(f"the longest question and its answer take {fits}")
    return Told({**data, "sha256": made.sha256, **more}, Document(*map(Line, lines)))


def _rows(texts: Sequence[str]) -> dict[str, int]:
    """Rows by split from texts such as "train=10000". Raises SpecError, UnknownNameError and
    SizeError.
    """
    found = dict(pairs("--rows", texts, SPLITS, "split", "train=1000"))
    for name, count in found.items():
        if not count.isdecimal() or len(count) > 12:
            raise SizeError(f"--rows {name}={count[:20]}: write SPLIT=ROWS, such as {name}=1000")
    return {name: int(count) for name, count in found.items()}


def _evaluate(name: str, folder: str, asked: Asked) -> Answer:
    """The accuracy of a trained or constructed model on fresh prompts, with its 95 % interval and
    chance beside it.
    """
    from separatrix.cli.commands.evidence import from_folder, holds_model
    from separatrix.cli.commands.results import evaluate, is_released, record_of

    if is_released(folder):
        record = record_of(folder)
        if record is not None:
            asks = _made_for(name, asked.n, record.task)
        else:
            # a checkpoint made for no task: sizes but n are given
            asks = [parse_any_task(text) for text in _ladder(name, asked.n)]
        shots = _rows(asked.rows or [])
        if shots.keys() - {"train"}:
            raise SpecError("evaluate takes --rows train=4 (shown solved), --number 20 (asked)")
        if asked.tokens not in (None, "one"):
            raise SpecError("evaluate takes --tokens one: values of several tokens as words of one")
        whole = asked.tokens is not None
        return evaluate(folder, asks, asked, shots.get("train"), whole=whole)
    if not holds_model(folder):
        raise SpecError(
            f"'{folder[:200]}' is no folder of a causal language model (config.json and weights),"
            " nor one that `separatrix train` or `construct` has written"
        )
    if asked.rows or asked.out is not None or asked.tokens is not None:
        raise SpecError(
            "--rows, --out and --tokens are for checkpoints of transformers; leave them out"
        )
    tested = ASKED if asked.number is None else asked.number
    with bar("evaluating", shown=not asked.as_json, unit=" sizes") as advance:
        from separatrix.models.stored.accuracy import evaluation_stream, reads, tally

        found = from_folder(folder)
        tasks = _made_for(name, asked.n, found.task)
        for one in tasks:
            reads(found.model, parse_task(found.task), one)
        data: list[dict[str, Any]] = []
        for one in tasks:
            told = tally(found.model, one, tested, evaluation_stream(asked.seed))
            check_answers(found.model.architecture, one, [(told.right, told.due)], tested)
            data.append(
                {
                    "task": one.spec,
                    "tokens": one.length,
                    "correct": told.correct,
                    "total": tested,
                    "interval": list(wilson(told.correct, tested)),
                    "right": told.right,
                    "due": told.due,
                    "interval_of_answers": list(wilson_of_answers(told.right, told.due, tested)),
                    "bits": told.bits,
                    "chance": str(one.chance),
                    "seed": asked.seed,
                }
            )
            advance(len(data), len(tasks))
    several = any(one.several for one in tasks)
    made = "trained" if found.trained else "constructed"
    head = Line(f"{found.model.architecture.spec}  {made} for  {found.task}")
    return Told(data, Document(head, rows_table([_counted(row, several) for row in data])))


def _made_for(name: str, sizes: str | None, own: str) -> list[Task]:
    """The task at each size n; a bare name is the task at the sizes that the model was made for."""
    task = parse_task(own if name_of(own) == name.casefold() else name)
    return [
        # the same where it has that n already
        task if str(task.sizes().get("n")) == size else resized(task, f"n={size}").task
        for size in _listed(sizes)
    ] or [task]


def _ladder(name: str, sizes: str | None) -> list[str]:
    """A task's text at each size n, which is a haystack's length in words."""
    kind = TEXT_TASKS.get(name_of(name))
    grows = "n" if kind is None else kind.grows
    return [add_sizes(name, [f"{grows}={size}"]) for size in _listed(sizes)] or [name]


def _listed(sizes: str | None) -> list[str]:
    return [] if sizes is None else [size.strip() for size in sizes.split(",")]


def _counted(row: dict[str, Any], several: bool) -> dict[str, str]:
    right, due, tested = row["right"], row["due"], row["total"]
    return {
        "task": row["task"],
        "tokens": f"{row['tokens']:,}",
        "accuracy": accuracy(right, due),
        "right": f"{right:,} of {due:,}",
        "95 % over prompts": interval(right, due, tested),
        **({"whole prompts": accuracy(row["correct"], tested)} if several else {}),
        "chance": guessed(Fraction(row["chance"])),
    }

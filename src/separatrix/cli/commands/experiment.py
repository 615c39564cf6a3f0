"""Experiments, what training finds beside what is proved: listed, shown and trained; and
`separatrix trial`, layouts of one's own, scaled down and trained beside each other.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from separatrix.cards.measured.table import Table as Recorded
from separatrix.cards.measured.table import read
from separatrix.cli.options import Asked, command, engine_free, engine_options, planned, stopped
from separatrix.cli.printing import Answer, Told, show
from separatrix.cli.trials import Trialled, seeds
from separatrix.core.document import Document, Line
from separatrix.core.document.cells import duration
from separatrix.core.errors import CheckFailed, SizeError, SpecError
from separatrix.core.evidence.folder import check_new
from separatrix.core.numbers.amounts import format_bytes
from separatrix.core.progress import bar
from separatrix.findings import experiment
from separatrix.findings.base import Experiment
from separatrix.findings.checking import check
from separatrix.findings.page import data, made, text
from separatrix.findings.picture import write_out
from separatrix.findings.results import of_table
from separatrix.findings.running import run, runs_of
from separatrix.findings.trial import trial as scaled
from separatrix.stacks.architecture.resolve import resolve
from separatrix.training.sweeps.sweep import planned as sweep_planned


def described(name: str, asked: Asked) -> Told:
    """What is recorded of an experiment, every seed and what was contrasted; fails where a claim
    of its page does not hold.
    """
    wanted = experiment(name)
    if asked.check and asked.out is not None:
        raise SpecError("--check and --out ask for different things; give one")
    if asked.seed is not None and not asked.check:
        raise SpecError("--seed says which run --check draws; give both, or neither")
    if (table := read(wanted.name)) is None:
        raise SpecError(
            f"the package holds no results of {wanted.name}; `separatrix train {wanted.name}`"
            " makes them"
        )
    return _check(wanted, table, asked) if asked.check else _told(wanted, table, asked.out)


def train_experiment(name: str, asked: Asked) -> Told:
    """Trains what an experiment asks for and the store does not have, and shows every seed."""
    wanted = experiment(name)
    if asked.dry_run:
        with bar("trying some steps", shown=not asked.as_json):
            found = sweep_planned(runs_of(wanted.cells()), name=wanted.name, **engine_free(asked))
        return planned(wanted.question, found)
    if asked.out is not None:
        # told before hours of training
        check_new(asked.out)
    try:
        table = run(wanted, show=not asked.as_json, **engine_options(asked))
    except KeyboardInterrupt:
        raise stopped(asked.store) from None
    return _told(wanted, table, asked.out)


def _check(wanted: Experiment, table: Recorded, asked: Asked) -> Told:
    with bar(f"training a run of {wanted.name} again", shown=not asked.as_json) as told:
        found, said = check(table, seed=asked.seed, told=told)
    if found == "differs":
        raise CheckFailed(said)
    return Told({"found": found, "said": said}, Document(Line(said)))


def _told(wanted: Experiment, table: Recorded, out: Path | None) -> Told:
    """Every cell and what was contrasted; then a claim that these results do not bear, which fails
    the command.
    """
    results = of_table(table)
    more = [made(table)]
    if out is not None:
        write_out(wanted, table, results, out)
        more.append(f"written to {out}")
    shown = Document(Line(f"{wanted.title}. {wanted.question}"), *seeds(wanted, results, more))
    # last, so that it hides nothing
    return Told(data(wanted, table, results), shown, after=partial(text, wanted, results, {}))


@command
def trial(asked: Asked) -> Answer:
    """Scales layouts down by rules that are printed, trains them to the end with paired seeds, and
    says who solves the task. Interrupted, the same command goes on. Example: trial '(gdn*3 +
    full)*2' 'gdn*7 + full' --task recall --hours 2
    """
    as_json = asked.as_json
    if asked.out is not None:
        # told before hours of training
        check_new(asked.out)
    own = {name: resolve(name) for name in asked.layouts}
    found = scaled(own, asked.task, seeds=asked.seeds, steps=asked.steps)
    with bar("trying some steps", shown=not as_json):
        plan = found.plan(**engine_free(asked))
    memory = found.memory(plan)
    short = found.short(plan, asked.hours)
    time = "not measured" if plan.seconds is None else f"at most about {duration(plan.seconds)}"
    # at which rates the seeds are is not known yet
    runs = f"{plan.runs:,} runs" + (f", at least {plan.ended:,} ended before" * (plan.ended > 0))
    rules = [*found.rules(), f"{runs}; {time}, about {format_bytes(8 * memory)} of memory"]
    if asked.dry_run:
        said = {"rules": found.rules(), "plan": plan.to_json(), "memory": memory, "short": short}
        lines = [*rules, *([short] if short else [])]
        return Told(said, Document(*(Line(f"- {line}") for line in lines)))
    if not as_json:
        # before hours of training
        show(Document(*(Line(f"- {rule}") for rule in rules)))
    if short:
        raise SizeError(short)
    options = engine_options(asked)
    try:
        answer = Trialled.of(found, show=not as_json, imports=asked.imports or (), **options)
    except KeyboardInterrupt:
        raise stopped(asked.store) from None
    if asked.out is not None:
        said = (*answer.rules, *answer.remarks)
        write_out(answer.experiment, answer.table, answer.results, asked.out, *said)
    return answer

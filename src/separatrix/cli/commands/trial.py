"""`separatrix trial`: layouts of one's own, scaled down and trained beside each other."""

from __future__ import annotations

from separatrix.cli.commands.experiment import seeds
from separatrix.cli.options import Asked, Where, command, stopped
from separatrix.cli.printing import Told, show
from separatrix.core.document import Document, Line
from separatrix.core.errors import SizeError
from separatrix.core.progress import bar


@command
def trial(asked: Asked) -> Told:
    """Scales layouts down by rules that are printed, trains them to the end with paired seeds, and
    says who solves the task. Interrupted, the same command goes on. Example: trial '(gdn*3 +
    full)*2' 'gdn*7 + full' --task recall --hours 2
    """
    from separatrix.core.document.cells import duration
    from separatrix.core.evidence.folder import check_new
    from separatrix.core.numbers.amounts import format_bytes
    from separatrix.findings.page import data
    from separatrix.findings.picture import write_out
    from separatrix.findings.results import of_table
    from separatrix.findings.running import with_curves
    from separatrix.findings.trial import trial as scaled
    from separatrix.stacks.architecture.resolve import resolve

    out, as_json = asked.out, asked.as_json
    if out is not None:
        # told before hours of training
        check_new(out)
    where = Where.of(asked)
    own = {name: resolve(name) for name in asked.layouts}
    found = scaled(own, asked.task, seeds=asked.seeds, steps=asked.steps)
    with bar("trying some steps", shown=not as_json):
        plan = found.plan(store=where.store, workers=where.workers, device=where.device)
    memory = found.memory(plan)
    short = found.short(plan, asked.hours)
    time = "not measured" if plan.seconds is None else f"at most about {duration(plan.seconds)}"
    runs = f"{plan.runs:,} runs, {plan.ended:,} of which have ended before"
    rules = [*found.rules(), f"{runs}; {time}, about {format_bytes(8 * memory)} of memory"]
    if where.dry_run:
        said = {"rules": found.rules(), "plan": plan.to_json(), "memory": memory, "short": short}
        lines = [*rules, *([short] if short else [])]
        return Told(said, Document(*(Line(f"- {line}") for line in lines)))
    if not as_json:
        # before hours of training
        show(Document(*(Line(f"- {rule}") for rule in rules)))
    if short:
        raise SizeError(short)
    try:
        options = where.engine_options()
        experiment, table = found.train(show=not as_json, imports=asked.imports or (), **options)
    except KeyboardInterrupt:
        raise stopped(where.store) from None
    results = of_table(table)
    if out is not None:
        write_out(experiment, table, with_curves(experiment, results, where.store), out)
    remarks = found.remarks(table, results)
    said = {"rules": found.rules(), "remarks": remarks}
    shown = Document(*seeds(experiment, results, remarks))
    return Told({**data(experiment, table, results), **said}, shown)

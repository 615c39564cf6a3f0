"""Names that the shell completes: presets, tasks, mechanisms, theorems, experiments. Each takes
what was typed so far.
"""

from __future__ import annotations

from collections.abc import Iterable

from typer import Context


def models(incomplete: str) -> list[str]:
    """Presets; a file or a spec is not completed."""
    from separatrix.stacks.architecture.released import PRESETS

    return _beginning(PRESETS, incomplete)


def tasks(incomplete: str) -> list[str]:
    """Tasks of tokens and of words."""
    from separatrix.tasks import TASKS
    from separatrix.tasks.text import TEXT_TASKS

    return _beginning([*TASKS, *TEXT_TASKS], incomplete)


def mechanisms(incomplete: str) -> list[str]:
    from separatrix.stacks.mechanisms import MECHANISMS

    return _beginning(MECHANISMS, incomplete)


def theorems(incomplete: str) -> list[str]:
    """Keys of theorems, further statements and counts."""
    from separatrix.cli.report.theorems import rows

    return _beginning([row["key"] for row in rows()], incomplete)


def experiments(incomplete: str) -> list[str]:
    from separatrix.findings import EXPERIMENTS

    return _beginning(EXPERIMENTS, incomplete)


def constructions(incomplete: str) -> list[str]:
    from separatrix.constructions import CONSTRUCTIONS

    return _beginning(CONSTRUCTIONS, incomplete)


def trained(incomplete: str) -> list[str]:
    """What `train` takes by name: presets and experiments."""
    return [*models(incomplete), *experiments(incomplete)]


def kinds(incomplete: str) -> list[str]:
    """What `list` lists."""
    return _beginning(_NAMED, incomplete)


def named(context: Context, incomplete: str) -> list[str]:
    """The names of the kind that stands before."""
    complete = _NAMED.get(context.params.get("kind") or "")
    return [] if complete is None else complete(incomplete)


_NAMED = {
    "mechanisms": mechanisms,
    "tasks": tasks,
    "presets": models,
    "theorems": theorems,
    "constructions": constructions,
    "experiments": experiments,
}


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]

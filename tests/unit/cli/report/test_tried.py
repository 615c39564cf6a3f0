"""The trial that `design` names can be run, and is of layouts that it found."""

from __future__ import annotations

import shlex

import pytest

import separatrix as sx
from separatrix.cards.design import DesignResult
from separatrix.cli.report.tried import trial_command
from separatrix.findings.trial import trial
from separatrix.stacks.architecture import Architecture


def result(*tasks: str, **choices: object) -> DesignResult:
    return sx.design(*tasks, context=8192, cache="1GiB", **choices).result  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tasks", "layers"), [(("seqcomp:L=2",), 8), (("eva:V=500", "seqcomp:L=3"), 12)]
)
def test_the_command_names_layouts_of_the_fronts_and_can_be_run(
    tasks: tuple[str, ...], layers: int
) -> None:
    found = result(*tasks, layers=(layers,), bounded=("gdn(conv=4)",))
    _, command, *words = shlex.split(trial_command(found))
    specs, (option, task) = words[:-2], words[-2:]
    assert (command, option) == ("trial", "--task")
    assert 2 <= len(specs) <= 3
    assert task == {"eva": "recall"}.get(found.tasks[0].name, found.tasks[0].name)
    points = [*found.proved, *found.not_excluded]
    own = [
        [part.name for layer in layout.architecture for part in layer]
        for point in points
        for layout in point.layouts
    ]
    for spec in specs:
        stack = Architecture.parse(spec)
        assert [part.name for layer in stack for part in layer] in own
        assert all(
            part.sizes().get("conv", 4) == 4
            for layer in stack
            for part in layer
            if part.name == "gdn"
        )
    trial({spec: Architecture.parse(spec) for spec in specs}, task, seeds=8)


def test_what_no_trial_trains_is_not_named() -> None:
    """A task without a small size, and mechanisms without a rule."""
    assert trial_command(result("twosum:M=4096", layers=(8,))) == ""
    assert trial_command(result("seqcomp:L=2", layers=(8,), bounded=("shortconv",))) == ""

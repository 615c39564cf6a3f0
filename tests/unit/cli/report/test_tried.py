"""The trial that `design` names can be run, and is of layouts that it found."""

from __future__ import annotations

import re
import shlex

import pytest

import separatrix as sx
from separatrix.cards.design.search import DesignResult
from separatrix.cli.report.tried import designed, tried
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
    _, command, *words = shlex.split(tried(found).command)
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
    assert tried(result("twosum:M=4096", layers=(8,))).command == ""
    assert tried(result("seqcomp:L=2", layers=(8,), bounded=("shortconv",))).command == ""


def test_at_8192_tokens_nothing_is_measured_and_at_48_the_studys_rows_are() -> None:
    """The study's gdn has states of 4 x 4, convolutions and negative eigenvalues."""
    own = {"heads": 2, "head_dim": 8, "states": (4,), "bounded": ("gdn(conv=4,negative=true)",)}
    far = designed(result("seqcomp:L=2", layers=(8,), readings=(2,), **own))
    assert all(not one.own and one.nearest for one in far)
    near = sx.design(
        "seqcomp:L=2",
        context=48,
        cache="1MiB",
        layers=(8,),
        readings=(2,),
        **own,  # type: ignore[arg-type]
    )
    first, *_ = designed(near.result)
    # more cells as the study goes on, all of the layout's own
    names = {re.sub(r"-(10000|2400)$", "", cell.name) for cell in first.own}
    assert names == {"compose-gdn-8-2-spread-cheap", "compose-gdn64-8-2-spread-cheap"}
    assert "'full'" not in tried(near.result).command


def test_why_there_is_no_trial_is_said() -> None:
    """Two full layers of 48 repeat after 24, and a trial has 16 layers."""
    found = tried(result("seqcomp:L=2", layers=(48,), readings=(0, 2), places=("even",)))
    assert found.command == ""
    assert "layers" in found.why

"""The answer where no theorem decides, so that no question is left without one."""

from __future__ import annotations

from collections.abc import Mapping

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task
from separatrix.tasks.functions.tracked import tracked
from separatrix.theory.base import NEITHER, Theorem
from separatrix.theory.solves.fan_in import mlp_of, numbers_of, with_mlp
from separatrix.theory.solves.lacking import why_open

BOTH_WAYS = "tokens see later ones (causal=false), and theorems here are about causal attention"


class NothingKnown(Theorem):
    key = "none"
    title = "no theorem here decides it"
    statement = (
        "Neither a bound nor a construction of this program covers the architecture and the task at"
        " this size."
    )
    premises = ()
    source = "this program"
    proof_sketch = "Nothing is claimed."
    shows = NEITHER
    both_ways = True

    @property
    def cited(self) -> str:
        return ""

    def judge(self, architecture: Architecture, task: Task) -> Verdict:
        # a window that sees the whole prompt is full attention
        seen = architecture.within(task.length + 1)
        why = why_open(seen, task) if architecture.causal else BOTH_WAYS
        sentence = f"{self.title}: {why}" if why else self.title
        told = architecture.mlp is not None and tracked(task) is not None
        numbers = numbers_of(mlp_of(architecture)) if told else {}
        return self.verdict(architecture, task, "OPEN", sentence, numbers=numbers)

    def again(self, architecture: Architecture, task: Task, numbers: Mapping[str, int]) -> Verdict:
        """With the width that the verdict states, which the spec does not hold."""
        return self.judge(with_mlp(architecture, numbers), task)

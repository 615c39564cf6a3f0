"""The answer where no theorem decides, so that no question is left without one."""

from __future__ import annotations

from separatrix.architecture import Architecture
from separatrix.evidence.records import Verdict
from separatrix.tasks import Task
from separatrix.theory.base import NEITHER, Theorem
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
        why = why_open(architecture, task) if architecture.causal else BOTH_WAYS
        sentence = f"{self.title}: {why}" if why else self.title
        return self.verdict(architecture, task, "OPEN", sentence)

"""Tasks: what a prompt asks, the oracle that answers it, and how many prefixes must be told
apart.
"""

from __future__ import annotations

from typing import Any

from separatrix.errors import SpecError, UnknownNameError
from separatrix.tasks.base.task import (
    NO_ANSWER,
    PLAIN,
    Batch,
    Composition,
    Family,
    Task,
    read_sizes,
)
from separatrix.tasks.cgram import CGram
from separatrix.tasks.chain_of_thought import Thought
from separatrix.tasks.counting import Counting
from separatrix.tasks.disjointness import Disjointness
from separatrix.tasks.dyck import Dyck
from separatrix.tasks.equality import Equality
from separatrix.tasks.eva import Eva
from separatrix.tasks.index import Index
from separatrix.tasks.istree import IsTree
from separatrix.tasks.khop import KHop
from separatrix.tasks.majority import Majority
from separatrix.tasks.mqar import MQAR
from separatrix.tasks.neighbour import Neighbour
from separatrix.tasks.permutation import Permutation
from separatrix.tasks.qsa import QSA
from separatrix.tasks.recall import Recall
from separatrix.tasks.seqcomp import SeqComp
from separatrix.tasks.seqcomp_forward import SeqCompForward
from separatrix.tasks.state_recall import StateRecall
from separatrix.tasks.threesum import ThreeSum
from separatrix.tasks.twosum import TwoSum

__all__ = [
    "AUDITED",
    "MQAR",
    "NO_ANSWER",
    "PLAIN",
    "PROBES",
    "QSA",
    "TASKS",
    "Batch",
    "CGram",
    "Composition",
    "Counting",
    "Disjointness",
    "Dyck",
    "Equality",
    "Eva",
    "Family",
    "Index",
    "IsTree",
    "KHop",
    "Majority",
    "Neighbour",
    "Permutation",
    "Recall",
    "SeqComp",
    "SeqCompForward",
    "StateRecall",
    "Task",
    "Thought",
    "ThreeSum",
    "TwoSum",
    "parse_task",
]

TASKS: dict[str, type[Task]] = {
    task.name: task
    for task in (
        Eva,
        Index,
        Recall,
        MQAR,
        CGram,
        SeqComp,
        SeqCompForward,
        KHop,
        StateRecall,
        TwoSum,
        ThreeSum,
        Counting,
        Majority,
        Equality,
        Disjointness,
        Dyck,
        Permutation,
        IsTree,
        QSA,
        Neighbour,
    )
}
PROBES: dict[str, str] = {
    "constant": "always the most frequent answer",
    "counts": "how often each token occurs in the prompt (logistic regression)",
    "position": (
        "the token at the best single place but the last, counted from either end of the prompt"
    ),
    "last tokens": (
        "the last tokens, each by itself (logistic regression), and the last two together"
    ),
    "nearest key": (
        "the token behind the latest earlier token whose id is nearest to that of the last one"
        " without being equal"
    ),
}
"""What a shortcut may look at: spelling -> in words. `separatrix.audits` has the probes,
`Task.level` what each may reach.
"""


AUDITED = 3
"""Sizes of a grid that are audited unless told otherwise."""
_IN_WORDS = ("multihop",)
"""Names of `separatrix.tasks.text.TEXT_TASKS`, which stands above this package."""


def parse_task(text: str) -> Task:
    """The task a text describes, such as "eva:n=64,V=64", "seqcomp:L=2,m=8,n_1=4" or
    "twosum:n=32,M=64,form=query".

    "thought=values" on a composition task asks for the whole chain of values, one after the other,
    "thought=pairs" on seqcomp for each with w. "order=forward" on seqcomp is the task
    seqcomp-forward. Raises UnknownNameError, SpecError or SizeError; `parse_task(task.spec) ==
    task`.
    """
    name = text.partition(":")[0].strip()
    if not name:
        raise SpecError(
            "the task is empty; write a task such as 'eva:n=64' or 'seqcomp:L=2,n=64' (`separatrix"
            " tasks` lists all)"
        )
    if name not in TASKS:
        if name in _IN_WORDS:
            raise SpecError(
                f"'{name}' is a task in words: `tasks sample`, `tasks export` and `audit` take it,"
                " and separatrix.tasks.text in Python"
            )
        raise UnknownNameError.of("task", name, TASKS, listing="separatrix tasks")
    sizes = read_sizes(text, TASKS[name].usage)
    thought = sizes.pop("thought", PLAIN)
    task = _kind(name, sizes).from_sizes(sizes)
    return task if thought == PLAIN else Thought(task=task, form=thought)


def _kind(name: str, sizes: dict[str, Any]) -> type[Task]:
    """The class of a task text; takes "order" out of the sizes of a seqcomp."""
    order = sizes.pop("order", "backward") if name == SeqComp.name else "backward"
    if order not in ("backward", "forward"):
        raise SpecError(
            f"{name}: order is '{order}'; it must be backward (the function needed first stands"
            " last) or forward"
        )
    return SeqCompForward if order == "forward" else TASKS[name]

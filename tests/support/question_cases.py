"""Tasks with several answers per prompt, and their answers by the definition: each question is
asked alone, of the case of its task.
"""

from __future__ import annotations

from typing import Any

from separatrix.tasks import NO_ANSWER, Questions
from support.task_cases import CASES

QUESTIONS = [
    "recall:n=3,K=4,V=2,queries=all",
    "recall:n=3,K=4,V=5,queries=2",
    "recall:n=4,K=6,V=3,form=independent,queries=all",
    "recall:n=4,K=4,V=6,form=independent,queries=1,shift=zipf",
    "eva:n=4,V=3,queries=all",
    "eva:n=3,V=5,queries=2",
    "eva:n=9,V=3,shift=local,queries=all",
    "seqcomp:L=2,m=3,n_1=2,queries=all",
    "seqcomp:L=2,m=4,n_1=3,queries=5,split=1,stages=1",
    "seqcomp:L=1,m=3,queries=2",
    "seqcomp:L=3,m=2,n_1=2,n_2=3,queries=all,split=1",
    "seqcomp:L=2,m=4,form=uniform,queries=3",
    "khop:n=30,V=5,k=2,queries=all",
    "khop:n=24,V=4,k=1,queries=3",
    "twosum:n=4,M=67,queries=all",
    "twosum:n=5,M=40,queries=2",
    "parity:n=9,queries=all",
    "parity:n=9,shift=few,queries=3",
    "permutation:n=9,k=3,queries=all",
    "permutation:n=8,k=4,shift=swaps,queries=2",
    "group:n=8,G=C5,queries=all",
    "group:n=8,G=A4,queries=3",
]


def by_hand(task: Questions, prompt: list[int]) -> list[int]:
    """The answer due after each token, -1 where none is."""
    kinds = dict.fromkeys(("eva", "recall", "twosum"), _lookups) | {"seqcomp": _starts}
    asked = kinds.get(task.task.name, _prefixes)(task, prompt)
    return [asked.get(place, NO_ANSWER) for place in range(len(prompt))]


def _alone(task: Any, prompt: list[int]) -> int:
    answer = CASES[task.name].by_hand(task, prompt)
    assert isinstance(answer, int)
    return answer


def _prefixes(task: Questions, prompt: list[int]) -> dict[int, int]:
    due = range(len(prompt) - task.number, len(prompt))
    return {place: _alone(task.task, prompt[: place + 1]) for place in due}


def _lookups(task: Questions, prompt: list[int]) -> dict[int, int]:
    before = prompt[: task.sizes()["n"] * (1 + (task.task.name == "recall"))]
    return {
        place: _alone(task.task, [*before, prompt[place]])
        for place in range(len(before), len(prompt))
    }


def _starts(task: Questions, prompt: list[int]) -> dict[int, int]:
    sizes = task.sizes()
    single: Any = task.task
    functions = prompt[: sum(single.entries(level) for level in range(1, single.L + 1))]
    rest = prompt[len(functions) :]
    answers = {}
    for at, token in enumerate(rest):
        place = len(functions) + at
        if not sizes.get("split"):
            if at:
                answers[place] = _alone(single, [*functions, token, rest[0]])
        elif at % 2:
            answers[place] = _alone(single, [*functions, rest[at - 1], token])
        elif sizes.get("stages"):
            answers[place] = functions[len(functions) - single.m + token]
    return answers

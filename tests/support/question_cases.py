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
    "seqcomp:L=2,m=3,n_1=2,queries=all",
    "seqcomp:L=2,m=4,n_1=3,queries=5,split=1,stages=1",
    "seqcomp:L=1,m=3,queries=2",
    "seqcomp:L=3,m=2,n_1=2,n_2=3,queries=all,split=1",
    "seqcomp:L=2,m=4,form=uniform,queries=3",
    "parity:n=9,queries=all",
    "parity:n=9,shift=few,queries=3",
    "modular:n=9,m=4,queries=all",
    "modular:n=9,m=3,shift=independent,queries=9",
    "permutation:n=9,k=3,queries=all",
    "permutation:n=8,k=4,shift=swaps,queries=2",
    "group:n=8,G=C5,queries=all",
    "group:n=8,G=A4,queries=3",
]


def by_hand(task: Questions, prompt: list[int]) -> list[int]:
    """The answer due after each token, -1 where none is."""
    asked = {"recall": _keys, "seqcomp": _starts}.get(task.task.name, _prefixes)(task, prompt)
    return [asked.get(place, NO_ANSWER) for place in range(len(prompt))]


def _alone(task: Any, prompt: list[int]) -> int:
    answer = CASES[task.name].by_hand(task, prompt)
    assert isinstance(answer, int)
    return answer


def _prefixes(task: Questions, prompt: list[int]) -> dict[int, int]:
    single: Any = task.task
    first = 0 if task.queries == "all" else len(prompt) - int(task.queries)
    return {place: _alone(single, prompt[: place + 1]) for place in range(first, len(prompt))}


def _keys(task: Questions, prompt: list[int]) -> dict[int, int]:
    pairs = prompt[: 2 * task.sizes()["n"]]
    return {
        place: _alone(task.task, [*pairs, prompt[place]])
        for place in range(len(pairs), len(prompt))
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

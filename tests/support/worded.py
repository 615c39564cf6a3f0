"""Questions as they are exported, read back from their words alone, by the rules that stand in
them, and answered by each task's definition.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

from separatrix.tasks import Task
from support.task_cases import CASES

_PAIRS = "()", "[]", "{}", "<>"


def _arrangements(size: int) -> list[str]:
    every = sorted(itertools.permutations(range(size)))
    return [f"[{','.join(map(str, one))}]" for one in every]


def _marked(mark: str, first: Callable[[Any], int]) -> Callable[[Any, str, int], int]:
    """Ids of words with a mark are counted from `first`."""
    return lambda task, word, place: (
        first(task) + int(word.removeprefix(mark)) if word.startswith(mark) else int(word)
    )


def _pairs(task: Any, word: str, place: int) -> int:
    half = task.vocab_size // 2
    return int(word[1:]) if word.startswith("k") else half + int(word)


def _pointers(task: Any, word: str, place: int) -> int:
    if word.startswith("@"):
        return task.V + int(word[1:])
    swaps = list(itertools.combinations(range(task.P), 2))
    if "~" in word:
        one, two = map(int, word.split("~"))
        return task.V + task.n + swaps.index((one, two))
    if word.startswith("?"):
        return task.V + task.n + len(swaps) + int(word[1:])
    return int(word)


def _bracket(task: Any, word: str, place: int) -> int:
    if task.k > len(_PAIRS):
        return int(word[1:]) + task.k * (word[0] == ")")
    kind, way = next((k, p.index(word)) for k, p in enumerate(_PAIRS) if word in p)
    return kind + task.k * way


def _string(task: Any, word: str, place: int) -> int:
    return (1 << task.d) + int(word) if place % 2 else int(word, 2)


def _keyed(task: Any, word: str, place: int) -> int:
    ends = {"x": task.V + task.K, "k": task.V}
    return ends[word[0]] + int(word[1:]) if word[0] in ends else int(word)


def _blanks(signs: str) -> Callable[[Any, str, int], int]:
    """Signs for the ids behind the V values."""
    return lambda task, word, place: task.V + signs.index(word) if word in signs else int(word)


def _fuzzy(task: Any, word: str, place: int) -> int:
    return task.V + task.K if word == "_" else _keyed(task, word, place)


def _element(task: Any, word: str, place: int) -> int:
    return _even(int(task.G[1:])).index(word) if task.G[0] == "A" else int(word)


def _even(size: int) -> list[str]:
    """Arrangements that an even number of exchanges makes: half of all, found from the first."""
    swaps = list(itertools.combinations(range(size), 2))
    known = {tuple(range(size))}
    new = list(known)
    while new:
        met = set()
        for one in new:
            for (a, b), (c, d) in itertools.product(swaps, swaps):
                made = list(one)
                made[a], made[b] = made[b], made[a]
                made[c], made[d] = made[d], made[c]
                met.add(tuple(made))
        new = list(met - known)
        known |= met
    return [f"[{','.join(map(str, one))}]" for one in sorted(known)]


_READ: dict[str, Callable[[Any, str, int], int]] = {
    "index": _marked("@", lambda task: task.V),
    "qsa": _marked("@", lambda task: task.V),
    "recall": _marked("k", lambda task: task.V),
    "mqar": _pairs,
    "state-recall": _pointers,
    "dyck": _bracket,
    "neighbour": _string,
    "noisy-recall": _keyed,
    "fuzzy-recall": _fuzzy,
    "copying": _blanks("|_."),
    "selective-copying": _blanks("_?"),
    "group": _element,
    "permutation": lambda task, word, place: _arrangements(task.k).index(word),
}


def token_of(task: Task, word: str, place: int = 0) -> int:
    """The id of one word; of any task not named above, the word itself."""
    return _READ[task.name](task, word, place) if task.name in _READ else int(word)


def tokens_of(task: Task, prompt: str) -> list[int]:
    """The ids of a question's tokens."""
    found = re.fullmatch(
        r"[^\n]+\n(?:Numbers|Input): ([^\n]+)\n(?:Answer:|Answer step by step:|Write the steps,"
        r"[^\n]+\nAnswer step by step:|Think as long [^\n]+)",
        prompt,
    )
    assert found, prompt
    return [token_of(task, word, place) for place, word in enumerate(found[1].split(" "))]


def answer_in_words(task: Task, prompt: str, *, wrong: bool = False) -> str:
    """The right answer as it is to be written, or another one."""
    tokens = tokens_of(task, prompt)
    # a question that ends early: what would follow does not change the answer due here
    last = task.vocabulary - 1 if task.name == "fuzzy-recall" else tokens[-1]
    rest = [last] * (task.length - len(tokens))
    expected = CASES[task.name].by_hand(task, tokens + rest)
    answer = expected if isinstance(expected, int) else expected[len(tokens) - 1]
    if wrong:
        answer = (answer + 1) % task.answers
    kind, size = task.reply
    if kind == "number":
        return str(answer)
    return (_even(size) if task.name == "group" else _arrangements(size))[answer]

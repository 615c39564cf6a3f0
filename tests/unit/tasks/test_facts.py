"""What tasks declare of the facts they ask for, against what they draw: Theorem A stands on it.

The declaration of every task at tiny sizes is compared with draws: which lists of facts occur, how
often, and whether what is asked and what stands around it depends on them. Then encoders and
decoders are fitted to the draws, and none may beat the ceiling.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations, product
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from support.each import each
from support.task_cases import EXAMPLES

from separatrix.core.numbers.accuracy import WHOLE, highest_accuracy
from separatrix.tasks import NO_ANSWER, TASKS, Batch, Eva, SeqComp, Task, parse_task
from separatrix.tasks.base.layout import Facts
from separatrix.tasks.base.task import Tokens

ROWS = 20_000


class Drawn(NamedTuple):
    """Prompts taken apart: the facts (rows, N), what else the prefix says, which fact is asked for
    (rows,), what follows the prefix, and the right answers (rows,).
    """

    facts: Tokens
    rest: Tokens
    place: Tokens
    after: Tokens
    answers: Tokens


def table(task: Any, batch: Batch) -> Drawn:
    """eva and index: of n entries the last N may be asked for."""
    first = task.n - task.facts().number
    tokens, targets = batch
    asked = tokens[:, -1] - (0 if isinstance(task, Eva) else task.V) - first
    return Drawn(tokens[:, first:-1], tokens[:, :first], asked, tokens[:, -1:], targets)


def pairs(task: Any, batch: Batch) -> Drawn:
    """recall, of questions that ask for a key that is there; of the others nothing is declared."""
    there = batch.targets < task.V
    tokens, targets = batch.tokens[there], batch.targets[there]
    keys = tokens[:, 0:-1:2]
    asked = (keys == tokens[:, -1:]).argmax(1)
    return Drawn(tokens[:, 1:-1:2], keys, asked, tokens[:, -1:], targets)


def queries(task: Any, batch: Batch) -> Drawn:
    """mqar up to its first or last query: what follows is where it stands and its key."""
    tokens, targets = batch
    k = task.num_kv_pairs
    rows = np.arange(len(tokens))
    due = (targets != NO_ANSWER)[:, ::-1].argmax(1)
    at = tokens.shape[1] - 1 - due
    keys = tokens[:, 0 : 2 * k : 2]
    asked = (keys == tokens[rows, at][:, None]).argmax(1)
    values = tokens[:, 1 : 2 * k : 2] - task.first_value
    after = np.where(np.arange(tokens.shape[1]) <= at[:, None], tokens, -1)[:, 2 * k :]
    return Drawn(values, keys, asked, after, targets[rows, at])


def composed(task: Any, batch: Batch) -> Drawn:
    tokens, targets = batch
    N = task.entries(task.L)
    chain = task.chain(tokens)
    asked = tokens[:, task.position_z0]
    if task.L > 1:
        w = task.split_w(tokens[:, task.position_w])
        asked = w[-1] * task.N(task.L - 2) + chain[:, -2]
    return Drawn(tokens[:, :N], tokens[:, :0], asked, tokens[:, N:], targets)


APART: dict[str, Callable[[Any, Batch], Drawn]] = {
    "eva": table,
    "index": table,
    "recall": pairs,
    "mqar": queries,
    "seqcomp": composed,
}
DECLARED = {
    "eva:n=3,V=3": Facts(3, 3),
    "eva:n=4,V=2": Facts(4, 2),
    "eva:n=2,V=6,shift=few": Facts(2, 4),
    "eva:n=3,V=2,shift=few": Facts(3, 2),
    "eva:n=5,V=3,shift=local": Facts(3, 3),
    "eva:n=1,V=3,shift=local": Facts(1, 3),
    "index:n=3,V=3": Facts(3, 3),
    "index:n=2,V=5,shift=few": Facts(2, 4),
    "index:n=4,V=3,shift=local": Facts(2, 3),
    "recall:n=2,K=2,V=3": Facts(2, 3, different=True),
    "recall:n=3,K=4,V=4": Facts(3, 4, different=True),
    "recall:n=2,K=3,V=6,shift=few": Facts(2, 4),
    "recall:n=3,K=3,V=2,shift=few": Facts(3, 2),
    "recall:n=2,K=3,V=3,form=absent": Facts(2, 3, different=True, among="whose key is there"),
    "recall:n=2,K=4,V=5,form=absent,shift=few": Facts(2, 4, among="whose key is there"),
    "mqar:vocab_size=6,input_seq_len=8,num_kv_pairs=2": Facts(2, 3, different=True),
    "mqar:vocab_size=6,input_seq_len=10,num_kv_pairs=2,random_non_queries=0": Facts(
        2, 3, different=True
    ),
    "mqar:vocab_size=8,input_seq_len=12,num_kv_pairs=3,random_non_queries=0": Facts(
        3, 4, different=True
    ),
    "mqar:vocab_size=10,input_seq_len=8,num_kv_pairs=2,shift=few": Facts(2, 4),
    "seqcomp:L=1,m=3": Facts(3, 3),
    "seqcomp:L=2,m=2,n_1=1": Facts(2, 2),
    "seqcomp:L=2,m=2,n_1=2": Facts(4, 4),
    "seqcomp:L=3,m=2,n_1=1,n_2=1": Facts(2, 2),
    "seqcomp:L=2,m=3,n_1=1,thought=values": Facts(3, 3),
    "seqcomp:L=2,m=3,n_1=1,thought=pairs": Facts(3, 3),
}
QUICK = (0, 4, 10, 11, 13, 15, 20)
"""One of every kind, and of every way to draw."""
TEXTS = [
    pytest.param(text, marks=[] if place in QUICK else [pytest.mark.slow], id=text)
    for place, text in enumerate(DECLARED)
]
SILENT = (
    *("eva:n=4,V=4,shift=zipf", "index:n=4,V=4,shift=zipf"),
    *("recall:n=4,K=4,V=4", "recall:n=4,K=8,V=3", "recall:n=4,K=4,V=9,shift=zipf"),
    *("recall:n=4,K=8,V=4,form=absent", "recall:n=4,K=8,V=9,form=absent,shift=zipf"),
    "recall:n=6,K=8,V=9,form=last",
    "mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4,shift=zipf",
    *("seqcomp:L=2,m=4,form=uniform", "seqcomp:L=1,m=4,values=permutations"),
    *(f"seqcomp:L=2,m=4,n_1=1,shift={shift}" for shift in ("zipf", "few", "local")),
    *("seqcomp-forward:L=2,m=4,n_1=1", "seqcomp:L=2,m=4,form=uniform,thought=values"),
)
"""Draws that the theorem does not cover: theory.md, section 9."""


def drawn(text: str, seed: int = 5) -> Drawn:
    task = parse_task(text).asked
    return APART[task.name](task, task.sample(ROWS, np.random.default_rng(seed)))


def cells(*columns: Tokens) -> tuple[NDArray[np.int64], int]:
    """A number for each row that tells rows of these columns apart, and how many there are."""
    rows = np.column_stack(columns) + 1
    # digits of one number, which sorts faster than rows
    base = int(rows.max()) + 1
    assert base ** rows.shape[1] < 1 << 63
    packed = rows @ np.array([base**k for k in range(rows.shape[1])])
    _, which = np.unique(packed, return_inverse=True)
    return which.reshape(-1), int(which.max()) + 1


@pytest.mark.parametrize("text", TEXTS)
def test_facts_are_drawn_as_declared(text: str) -> None:
    declared = DECLARED[text]
    found = drawn(text)
    rows = np.arange(len(found.answers))
    assert found.facts.shape == (len(rows), declared.number)
    assert (found.facts[rows, found.place] == found.answers).all()
    V = range(declared.values)
    N = declared.number
    lists = list(permutations(V, N) if declared.different else product(V, repeat=N))
    assert len(lists) == declared.contents.exact()
    assert {tuple(row) for row in found.facts.tolist()} == set(lists)
    which, number = cells(found.facts, found.place)
    # every list with every place, all equally often
    uniform(np.bincount(which, minlength=number), number)
    assert number == len(lists) * N
    # and so beside all else that the prefix says, and before all else that follows
    listed, many = cells(found.facts)
    for other in (
        np.column_stack((found.rest, found.place)),
        np.column_stack((found.rest, found.after)),
    ):
        around, ways = cells(other)
        if ways * many <= len(rows) // 8:
            joint = np.bincount(around * many + listed, minlength=ways * many)
            expected = np.bincount(around)[:, None] / many * np.ones(many)
            alike(joint, expected.reshape(-1), ways * (many - 1))


def uniform(counts: NDArray[Any], number: int) -> None:
    alike(counts, np.full(number, counts.sum() / number), number - 1)


def alike(counts: NDArray[Any], expected: NDArray[Any], freedom: int) -> None:
    """Pearson's chi-square, five standard deviations."""
    if freedom:
        square = float(((counts - expected) ** 2 / expected).sum())
        assert abs(square - freedom) < 5 * sqrt(2 * freedom) + 5, (square, freedom)


def fitted(found: Drawn, bits: int) -> float:
    """The accuracy of an encoder of the facts into that many bits and of a decoder, both tables
    fitted to one half of the draws, each in turn made best for the other, on the other half; the
    best of several. Both know what else the prefix says.
    """
    listed, many = cells(found.facts, found.rest)
    question, asked = cells(found.rest, found.after)
    answers = int(found.answers.max()) + 1
    caches = 1 << bits
    half = slice(len(listed) // 2)
    best = 0.0
    for seed in range(3):
        code = np.random.default_rng(seed).integers(caches, size=many)
        said = np.zeros((caches, asked), np.int64)
        for _ in range(4):
            votes = (code[listed] * asked + question) * answers + found.answers
            counts = np.bincount(votes[half], minlength=caches * asked * answers)
            said = counts.reshape(caches, asked, answers).argmax(2)
            right = said[:, question] == found.answers
            code = np.stack(
                [np.bincount(listed[half], row[half], minlength=many) for row in right]
            ).argmax(0)
        fresh = said[code[listed], question] == found.answers
        best = max(best, float(fresh[half.stop :].mean()))
    return best


@pytest.mark.parametrize("text", TEXTS)
def test_no_tables_beat_the_ceiling(text: str) -> None:
    found = drawn(text)
    facts = DECLARED[text]
    for bits in (0, 1, 2):
        ceiling = highest_accuracy(facts.contents, facts.number, facts.values, bits) / WHOLE
        reached = fitted(found, bits)
        assert reached <= ceiling + 4 * sqrt(ceiling * (1 - ceiling) / (len(found.answers) // 2))
        # they do find what bits are good for
        assert bits < 2 or reached > 1.25 / facts.values


@each("text", DECLARED)
def test_what_tasks_declare(text: str) -> None:
    assert parse_task(text).facts() == DECLARED[text]


@each("text", SILENT)
def test_other_draws_declare_nothing(text: str) -> None:
    assert parse_task(text).facts() is None


def test_a_zipf_distributed_answer_is_guessed_more_often() -> None:
    """Why: without a bit of cache, more than one of V questions is answered."""
    task = parse_task("eva:n=4,V=16,shift=zipf")
    targets = task.sample(ROWS, np.random.default_rng(3)).targets
    assert (targets == 0).mean() > 2 * highest_accuracy(Facts(4, 16).contents, 4, 16, 0) / WHOLE


def test_only_tasks_of_the_theorem_declare_facts() -> None:
    """Every kind of task, at every example and size of its grid."""
    kinds: set[str] = set()
    texts = [f"{name}:{sizes}" for name, kind in TASKS.items() for sizes in kind.grid]
    for task in (*EXAMPLES, *map(parse_task, texts)):
        if task.facts() is not None:
            kinds.add(task.asked.name)
    assert kinds == set(APART)


@each("n", [2, 3, 5, 16, 17, 10_000, 10_001])
def test_the_entries_that_local_questions_ask_for(n: int) -> None:
    """theory.md: N = ceil(sqrt n)."""
    facts = Eva(n=n, V=7, shift="local").facts()
    assert facts is not None
    assert (facts.number - 1) ** 2 < n <= facts.number**2


def test_of_compositions_the_last_function_is_asked_for() -> None:
    task: Task = SeqComp(L=3, m=5, branching=(2, 3))
    assert task.facts() == Facts(30, 30)
    assert task.prefix_length == 30

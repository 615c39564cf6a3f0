"""Chain of thought: prompts with their chain written behind, in both forms, for every task with
a chain; and what the theory says of them.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from support.each import each
from support.paper_sizes import paper_sizes
from support.task_cases import CASES

from separatrix.core.errors import SeparatrixError, SizeError, SpecError, UnknownNameError
from separatrix.models.stored.run import Run
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import (
    NO_ANSWER,
    PROBES,
    TASKS,
    Composition,
    SeqComp,
    SeqCompForward,
    Task,
    Thought,
    parse_task,
)
from separatrix.tasks.audits import audit
from separatrix.theory.judge import THEOREMS, judge
from separatrix.training.alone import train

COMPOSED = [
    task for case in CASES.values() if issubclass(case.kind, Composition) for task in case.examples
]
WITH_W = [task for task in COMPOSED if isinstance(task, SeqComp | SeqCompForward)]
CHAINS = [
    *(Thought(task=task) for task in COMPOSED),
    *(Thought(task=task, form="pairs") for task in WITH_W),
]


def test_every_task_with_a_chain_is_here() -> None:
    assert {task.name for task in COMPOSED} == {
        name for name, kind in TASKS.items() if issubclass(kind, Composition)
    }
    assert {"seqcomp", "seqcomp-forward", "khop", "state-recall", "permutation"} <= {
        task.name for task in COMPOSED
    }


@each("task", CHAINS)
def test_round_trip_and_shapes(task: Thought) -> None:
    assert parse_task(task.spec) == task
    assert task.spec == f"{task.task.spec},thought={task.form}"
    tokens, targets = task.sample(50, np.random.default_rng(0))
    assert tokens.shape == targets.shape == (50, task.length)
    assert (tokens.dtype, targets.dtype) == (np.int64, np.int64)
    assert 0 <= tokens.min() <= tokens.max() < task.vocabulary
    assert (targets[:, : task.task.length - 1] == NO_ANSWER).all()
    due = targets[:, task.task.length - 1 :]
    assert 0 <= due.min() <= due.max() < task.answers


@each("task", CHAINS)
def test_what_is_written_is_what_was_due(task: Thought) -> None:
    """The prompt is one of the task, each answer stands behind it in the input, and the last is
    the task's own.
    """
    assert isinstance(task.task, Composition)
    tokens, targets = task.sample(200, np.random.default_rng(1))
    n = task.task.length
    assert (tokens[:, n:] == targets[:, n - 1 : -1]).all()
    assert (task.task.answer(tokens[:, :n]) == targets[:, -1]).all()
    assert (task.answer(tokens) == targets).all()
    if task.form == "values":
        assert (task.task.chain(tokens[:, :n]) == targets[:, n - 1 :]).all()


@each("task", CHAINS)
def test_a_wrong_written_token_is_refused(task: Thought) -> None:
    tokens = task.sample(3, np.random.default_rng(2)).tokens
    for place in range(task.task.length, task.length):
        wrong = tokens.copy()
        wrong[1, place] = (wrong[1, place] + 1) % task.vocabulary
        with pytest.raises(SizeError, match=f"the {task.written} tokens"):
            task.answer(wrong)
    with pytest.raises(SizeError, match="shape"):
        task.answer(tokens[:, :-1] if task.written else tokens[:, 1:])
    assert task.answer(np.zeros((0, task.length), np.int64)).shape == (0, task.length)


def test_values_and_pairs_by_hand() -> None:
    """z_2 = (1, 0 | 2, 3), z_1 = (1, 0), z_0 = 0, w = 1: i_1 = 1, i_2 = z_2(1, 1) = 3. Pairs (w,
    i) are 4 + 2w + i: (1, 0) is 6, (1, 1) is 7.
    """
    prompt = [1, 0, 2, 3, 1, 0, 0, 1]
    values = parse_task("seqcomp:L=2,m=2,n_1=2,thought=values")
    pairs = parse_task("seqcomp:L=2,m=2,n_1=2,thought=pairs")
    assert values.answer(np.array([[*prompt, 1]])).tolist() == [[-1] * 7 + [1, 3]]
    assert pairs.answer(np.array([[*prompt, 6, 7]])).tolist() == [[-1] * 7 + [6, 7, 3]]
    assert (values.vocabulary, pairs.vocabulary, values.length, pairs.length) == (4, 8, 9, 10)
    forward = parse_task("seqcomp-forward:L=2,m=2,n_1=2,thought=pairs")
    assert forward.answer(np.array([[0, 1, 1, 0, 1, 0, 2, 3, 6, 7]])).tolist() == [
        [-1] * 7 + [6, 7, 3]
    ]
    alone = parse_task("seqcomp:L=1,m=3,thought=pairs")  # (w, z_0) = 3 + z_0, then z_1(z_0)
    assert alone.answer(np.array([[2, 0, 1, 2, 0, 5]])).tolist() == [[-1, -1, -1, -1, 5, 1]]


def test_pairs_of_three_functions() -> None:
    """All (w, value) have ids of their own, from the first behind the vocabulary on."""
    task = Thought(task=SeqComp(L=3, m=2, branching=(3, 2)), form="pairs")
    ids = {int(task.pair(np.array(w), np.array(value))) for w in range(6) for value in range(6)}
    assert ids == set(range(task.task.vocabulary, task.task.vocabulary + 36))
    assert task.vocabulary == 12 + 36


@each(
    "task",
    [
        Thought(task=task, form=form)
        for task in [*CASES["seqcomp"].tiny, *CASES["seqcomp-forward"].tiny]
        for form in ("values", "pairs")
    ],
)
def test_chance_by_counting(task: Thought) -> None:
    """All instances are equally likely: the most frequent answer over all instances and places."""
    prompts = np.array(CASES[task.task.name].all_instances(task.task))
    written = task._instance(prompts)
    seen = Counter(written.targets[written.targets != NO_ANSWER].tolist())
    assert task.chance == Fraction(max(seen.values()), sum(seen.values()))
    assert (task.answer(written.tokens) == written.targets).all()


SHIFTED = [
    "seqcomp:L=2,m=3,n_1=2,shift=zipf,thought=values",
    "seqcomp:L=2,m=5,n_1=2,shift=zipf,thought=pairs",
    "khop:n=6,V=3,k=2,shift=random,thought=values",
    "khop:n=16,V=4,k=3,thought=values",
    "state-recall:n=7,V=3,K=2,P=4,thought=values",
]


@pytest.mark.parametrize("text", SHIFTED)
def test_the_law_of_each_value(text: str) -> None:
    """The share of every id at every place of the chain, against 40,000 draws; chance is the
    best of their sum.
    """
    task = parse_task(text)
    total = 40_000
    assert isinstance(task, Thought)
    chain = task.task.chain(task.task.sample(total, np.random.default_rng(4)).tokens)
    assert chain is not None
    for step in range(1, task.task.steps + 1):
        law = {token: share for ids, share in task.task.law(step) for token in ids}
        assert sum(law.values()) == 1
        seen = np.bincount(chain[:, step - 1], minlength=max(law) + 1) / total
        for token, share in law.items():
            assert (
                abs(seen[token] - float(share)) <= 4.5 * (float(share * (1 - share)) / total) ** 0.5
            )
    targets = task.sample(total, np.random.default_rng(5)).targets
    best = np.bincount(targets[targets != NO_ANSWER]).max() / (targets != NO_ANSWER).sum()
    assert abs(best - float(task.chance)) < 0.01


@each(
    "text, said",
    [
        ("eva:n=4,thought=values", "there is no chain"),
        ("khop:n=12,V=4,k=2,thought=pairs", "is no w to pair"),
        ("permutation:n=8,k=3,thought=pairs", "write thought=values"),
        ("seqcomp:L=2,n=64,thought=pair", "Did you mean 'pairs'"),
        ("seqcomp:L=2,n=64,thought=values,thought=pairs", "given twice"),
    ],
)
def test_bad_texts(text: str, said: str) -> None:
    with pytest.raises(SeparatrixError, match=said):
        parse_task(text)


def test_it_is_no_task_of_its_own() -> None:
    with pytest.raises(SpecError, match="composition task"):
        Thought.from_sizes({})
    with pytest.raises(SizeError, match="batch"):
        parse_task("seqcomp:L=2,n=64,thought=values").sample(0, np.random.default_rng(0))


RECURRENT = "gdn*2 @ heads=1, head_dim=4, value_dim=4, format=p8, state_format=p8"
COUNTED = [
    "seqcomp:L=2,m=40,n_1=1",
    "seqcomp:L=2,m=9,n_1=1",
    "state-recall:n=99,V=8,K=4,P=5",
    "khop:n=64,V=8,k=1",
]


@each("text", COUNTED)
@each(
    "architecture",
    [RECURRENT, "full*1 @ heads=1, head_dim=1, format=p1", "loglinear*1 @ heads=1, head_dim=1"],
)
def test_theorem_i_says_the_same_with_a_chain(architecture: str, text: str) -> None:
    model = Architecture.parse(architecture)
    plain, thought = (
        THEOREMS["I"].judge(model, parse_task(text + more)) for more in ("", ",thought=values")
    )
    assert (plain is None) == (thought is None)
    if plain is not None and thought is not None:
        assert plain.body() | {"task": ""} == thought.body() | {"task": ""}


def test_theorem_i_speaks_of_some() -> None:
    """The comparison above is not empty: a recurrent stack fails, chain or not."""
    # of composed functions Theorem A says how badly, too
    for text, failing in (
        ("seqcomp:L=2,m=99,n_1=1", ["I", "A"]),
        ("seqcomp:L=2,m=99,n_1=1,thought=pairs", ["I", "A"]),
        ("state-recall:n=99,V=8,K=4,thought=values", ["I"]),
    ):
        assert [
            verdict.theorem
            for verdict in judge(Architecture.parse(RECURRENT), parse_task(text))
            if verdict.status == "FAILS"
        ] == failing


DEEP = {
    "III": (f"full*1 @ {paper_sizes(1, 4, 8)}", 2),
    "IV": (f"full*2 @ {paper_sizes(1, 4, 8)}", 2),
    "V": (f"full*2 @ {paper_sizes(1, 4, 8)}", 3),
}


@each("key", [*DEEP, "I'", "CPW-1.1"])
def test_no_theorem_about_depth_speaks_of_chains_or_of_the_other_order(key: str) -> None:
    """One layer composes any number of functions step by step, or while reading."""
    architecture, steps = DEEP.get(key, (f"full*1 @ {paper_sizes(1, 4, 8)}", 3))
    model = Architecture.parse(architecture)
    text = f"seqcomp:L={steps},m=40" + "".join(f",n_{i}=9" for i in range(1, steps))
    assert THEOREMS[key].judge(model, parse_task(text)) is not None
    forward = text.replace("seqcomp", "seqcomp-forward")
    for other in (*(f"{text},thought={form}" for form in ("values", "pairs")), forward):
        assert THEOREMS[key].judge(model, parse_task(other)) is None
    assert THEOREMS[key].judge(model, parse_task(f"{forward},thought=values")) is None


@pytest.mark.slow
def test_one_layer_learns_to_write_pairs_and_then_answers_by_itself() -> None:
    task = parse_task("seqcomp:L=2,m=3,n_1=1,thought=pairs")
    run = Run(
        architecture="full*1 @ heads=2, head_dim=16",
        optimiser="adamw",
        task=task.spec,
        seed=0,
        steps=300,
        batch=64,
        width=32,
        tested=512,
        learning_rate=1e-2,
    )
    trained = train(run)
    assert trained.outcome.correct >= 500
    assert isinstance(task, Thought)
    prompts, right = task.task.sample(256, np.random.default_rng(9))
    tokens = torch.from_numpy(prompts)
    with torch.no_grad():
        for _ in range(task.written + 1):
            tokens = torch.cat(
                (tokens, trained.model.every(tokens)[:, -1].argmax(-1, keepdim=True)), dim=1
            )
    assert int((tokens[:, -1].numpy() == right).sum()) >= 245


@pytest.mark.parametrize(
    "text", ["seqcomp:L=2,m=4,n_1=2", "khop:n=24,V=4,k=2", "state-recall:n=9,V=3,K=2"]
)
def test_a_family_of_chains_is_the_chains_of_the_family(text: str) -> None:
    inner: Task = parse_task(text)
    family = Thought(task=inner).family()
    own = inner.family()
    assert (family.smallest, family.grows, family.described) == (
        own.smallest,
        own.grows,
        own.described,
    )
    assert family.at(30) == Thought(task=own.at(30))


@each("task", CHAINS)
def test_levels_are_those_of_the_answer_with_the_chain_hidden(task: Thought) -> None:
    assert [task.level(probe) for probe in PROBES] == [task.task.level(probe) for probe in PROBES]


@each("task", CHAINS)
def test_no_audit_of_a_chain(task: Thought) -> None:
    with pytest.raises(SpecError) as refused:
        audit(task, fitted=100, tested=100)
    assert str(refused.value).endswith(f": {task.task.spec}")


@each("form", [[], {}, None, 3])
def test_a_form_that_is_no_word(form: Any) -> None:
    with pytest.raises(UnknownNameError, match="unknown form of thought"):
        Thought(task=SeqComp(L=1, m=3, branching=()), form=form)

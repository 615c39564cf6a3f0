"""Weights of every construction, changed at random and changed again where the proof still holds:
what the checker accepts answers every input right, by at least the margin that it says.

As a script, with a number of changes for each: `PYTHONPATH=src:tests python
tests/quality/test_changed_weights.py 1000`.
"""

from __future__ import annotations

import copy
import itertools
import sys
from math import prod

import numpy as np
import pytest
import torch

from separatrix.constructions import CONSTRUCTIONS, construct
from separatrix.core.errors import CheckFailed, SizeError
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.proofs.derivations.parts.derivation import due, given, logits_of, prompts_of
from separatrix.tasks import Task, parse_task
from separatrix.tasks.base.task import Tokens

TASKS = {
    **dict.fromkeys(("retrieval", "sparse-retrieval", "indexed-retrieval"), "eva:n=4,V=3"),
    **dict.fromkeys(("seqcomp", "carried", "encoder"), "seqcomp:L=2,m=2,n_1=2"),
    "match2": "twosum:n=4,M=5,form=query",
    "match2-bits": "twosum:n=4,M=6,form=query",
    "pairs": "twosum:n=4,M=6,form=decision",
    "equality": "equality:n=6",
    "neighbour": "neighbour:n=4,d=7,V=2",
    "brackets": "dyck:n=6,k=2,D=3",
    "parity": "parity:n=9",
    "modular": "modular:n=6,m=5",
    "permutation": "permutation:n=4,k=3",
    "group": "group:n=3,G=A4",
    "swaps": "permutation:n=8,k=3,shift=swaps",
    "counted-parity": "parity:n=9",
    "counted-modular": "modular:n=6,m=5",
    "multiplied-parity": "parity:n=5",
    "multiplied-modular": "modular:n=8,m=3",
    "multiplied-permutation": "permutation:n=4,k=3",
    "multiplied-group": "group:n=3,G=A4",
    "automaton": "eva:n=4,V=2",
    "thought": "seqcomp:L=2,m=2,n_1=2,thought=pairs",
    "index": "index:n=4,V=3",
    **dict.fromkeys(("recall", "carried-recall"), "recall:n=3,K=4,V=2,form=present"),
    **dict.fromkeys(("mqar", "carried-mqar"), "mqar:vocab_size=4,input_seq_len=6,num_kv_pairs=1"),
    **dict.fromkeys(("cgram", "induction-cgram"), "cgram:n=11,V=4,c=2"),
    "induction-recall": "recall:n=3,K=4,V=2,form=present",
    "induction-mqar": "mqar:vocab_size=4,input_seq_len=6,num_kv_pairs=1",
    "induction-noisy-recall": "noisy-recall:n=2,noise=1,K=3,V=2,N=1",
    "induction-twosum": "twosum:n=4,M=6,form=query",
    "khop": "khop:n=12,V=4,k=2",
    "copying": "copying:n=3,V=2",
    "counting": "counting:n=9,V=2,form=ones",
    "qsa": "qsa:n=4,q=2,V=2,sets=2",
    "question-first": "recall:n=3,K=4,V=3,form=last,question=first",
}
CHANGES = 48
"""Of each construction."""
MOST = 6000
"""Inputs that are run; of more so many are drawn."""


def inputs(name: str, task: Task, rng: np.random.Generator) -> Tokens:
    """Inputs that the claim is about: all of them where they are few."""
    derivation, asked = DERIVATIONS[name], prompts_of(task)
    ids = derivation.ids(task)
    if prod(ids) > MOST:
        tokens = np.concatenate([asked.sample(500, rng).tokens for _ in range(4)])
    else:
        tokens = np.array(list(itertools.product(*map(range, ids))), np.int64)
        if derivation.asked is not None:
            tokens = tokens[derivation.asked(task, tokens)]
    return np.array([prompt for prompt in tokens if _accepted(asked, prompt)])


def _accepted(task: Task, prompt: Tokens) -> bool:
    try:
        task.answer(prompt[None])
    except SizeError:
        return False
    return True


@torch.no_grad()
def changed(model: Model, rng: np.random.Generator) -> Model:
    """A copy in which one to three things differ: one number, or all of a tensor. Now and then
    queries are scaled against keys, or values against outputs, so that little is left of it in real
    numbers.
    """
    other = copy.deepcopy(model)
    heads = [x for x in other.modules() if all(hasattr(x, name) for name in "qkvo")]
    if heads and rng.random() < 0.2:
        head = heads[rng.integers(len(heads))]
        power = 2.0 ** float(rng.integers(-40, 40))
        one, against = ("q", "k") if rng.random() < 0.5 else ("v", "o")
        getattr(head, one).weight.mul_(power)
        getattr(head, against).weight.mul_(1 / power)
    tensors = [x for x in other.parameters() if x.numel()]
    for _ in range(rng.integers(1, 4)):
        tensor = tensors[rng.integers(len(tensors))]
        flat = tensor.view(-1)
        used = torch.nonzero(flat).view(-1)
        often = len(used) > 0 and rng.random() < 0.7
        place = int(used[rng.integers(len(used))] if often else rng.integers(len(flat)))
        match rng.integers(7):
            case 0:
                flat[place] *= float(rng.choice([0.5, 2, -1, 0.9, 1.1, 1.01]))
            case 1:
                flat[place] += float(rng.normal() * 10 ** rng.uniform(-6, 1))
            case 2:
                tensor *= float(rng.choice([0.5, 2, 0.99, 1.01, 1.5]))
            case 3:
                flat[place] = float(rng.choice([0, 1, -1, 4, -4, 1e3, -1e3, 1e30, 1e-30]))
            case 4:
                noise = rng.normal(size=tensor.shape) * 10 ** rng.uniform(-7, -1)
                tensor += torch.from_numpy(noise).to(tensor)
            case 5:
                first, second = rng.integers(tensor.shape[0], size=2)
                tensor[[first, second]] = tensor[[second, first]]
            case _:
                flat[place] = float(flat[rng.integers(len(flat))])
    return other


def _lead(model: Model, tokens: Tokens, wanted: Tokens) -> float:
    """The least by which a right answer's logit leads all others."""
    with torch.inference_mode():
        logits = model(torch.from_numpy(tokens)).double()
    right = torch.from_numpy(wanted)
    lead = logits.gather(1, right)[:, 0] - logits.scatter(1, right, -torch.inf).amax(1)
    return float(lead.min())


def walked(name: str, changes: int, seed: int) -> tuple[int, list[str]]:
    """How many of so many changes are accepted, and what was wrong with these."""
    rng = np.random.default_rng(seed)
    task = parse_task(TASKS[name])
    start = model = construct(task, kind=name).model
    tokens = inputs(name, task, rng)
    wanted = due(task, tokens)
    accepted, wrong = 0, list[str]()
    for number in range(changes):
        other = changed(model, rng)
        try:
            proof = DERIVATIONS[name].proved(task, other, FP32)
        except (CheckFailed, SizeError):
            continue
        accepted += 1
        found, finite = given(logits_of(other), task, tokens)
        lead = _lead(other, tokens, wanted) if wanted.shape[1] == 1 and not task.several else 1e99
        if not (finite.all() and np.array_equal(found, wanted) and float(proof.margin) <= lead):
            wrong.append(f"{name}, change {number}: margin {proof.margin}, lead {lead}")
        # on from what was accepted, and now and then from the beginning
        model = other if rng.random() < 0.5 else model if rng.random() < 0.9 else start
    return accepted, wrong


def test_every_construction_has_a_size() -> None:
    assert {*TASKS} == {*CONSTRUCTIONS} == {*DERIVATIONS}


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_what_is_accepted_is_right(name: str) -> None:
    accepted, wrong = walked(name, CHANGES, seed=len(name))
    assert wrong == []
    assert accepted > 0


def main(changes: int) -> None:
    for name in TASKS:
        accepted, wrong = walked(name, changes, seed=changes)
        print(f"{name}: {accepted:,} of {changes:,} accepted, {len(wrong)} wrong", *wrong, sep="\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))

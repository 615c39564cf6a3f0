"""Tasks at other sizes: what a model made for one size can read, size by size, for every task."""

from __future__ import annotations

import pytest
from support.each import each

from separatrix.core.errors import SeparatrixError, SizeError, SpecError, UnknownNameError
from separatrix.tasks import TASKS, Task, Thought, parse_task
from separatrix.tasks.resized import read_longer, resized, unreadable

READ: dict[str, tuple[str, str]] = {
    "eva:n=8,V=12": ("n=6 n=12 V=8", "n=13 V=13"),
    "index:n=8,V=4": ("n=6", "n=9 V=3 V=5"),
    "recall:n=4,K=8,V=3,form=present": ("n=3 n=6 K=6", "K=9 V=2 V=4"),
    "recall:n=4,K=8,V=3,form=absent": ("n=3 n=6 K=6", "K=9 V=2 V=4"),
    "recall:n=8,K=8,V=3,form=last": ("n=6 n=12 K=6", "K=9 V=2 V=4"),
    "recall:n=4,K=8,V=3,form=independent,queries=all": ("n=3 n=6 K=6 queries=2", "K=9 V=2 V=4"),
    "mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4": (
        "input_seq_len=32 num_kv_pairs=2 random_non_queries=0",
        "vocab_size=14 vocab_size=18",
    ),
    "noisy-recall:n=4,noise=4,K=8,V=2,N=3": (
        "n=3 n=6 noise=2 noise=8 N=2",
        "K=7 K=9 V=3 N=4",
    ),
    "fuzzy-recall:n=8,K=3,V=4,a=3,b=2": ("n=6 n=9 a=4 b=1 b=3", "K=4 K=2 V=3 V=5"),
    "copying:n=8,V=4": ("n=6 n=16", "V=3 V=5"),
    "selective-copying:n=4,T=16,V=4": ("n=3 n=6 T=12 T=32", "V=3 V=5"),
    "cgram:n=26,V=12,c=2": ("n=24 n=30 c=3 V=10", "V=13"),
    "seqcomp:L=3,m=4,n_1=2,n_2=3": ("m=3 n_2=2 L=2 L=1", "m=5 n_1=1 n_1=3 n_2=4"),
    "seqcomp:L=2,m=4,n_1=2,queries=4,split=1": ("m=3 L=1 queries=2 split=0", "m=5 n_1=3"),
    "seqcomp:L=2,m=4,n_1=1": ("m=3 L=1 L=3", "m=5 n_1=2"),
    "seqcomp-forward:L=2,m=4,n_1=2": ("m=3 n_1=1 L=1", "m=5 n_1=3 L=3"),
    "khop:n=64,V=8,k=3": ("n=48 n=128 k=1 k=4", "V=6 V=9"),
    "state-recall:n=8,V=4,K=6,P=5": ("K=4 K=9", "n=7 n=9 V=3 V=5 P=4 P=6"),
    "twosum:n=4,M=11": ("n=3 n=8", "M=10 M=13"),
    "threesum:n=6,M=101": ("n=5 n=8", "M=97 M=103"),
    "counting:n=8,form=ones": ("n=6", "n=9"),
    "counting:n=8,V=4,form=queried": ("n=6 V=3", "n=9 V=5"),
    "parity:n=8": ("n=4 n=16", ""),
    "parity:n=8,queries=all": ("n=4 n=16 queries=8 queries=3", ""),
    "modular:n=8,m=3": ("n=6 n=16", "m=2 m=4"),
    "majority:n=15,k=4": ("n=13 n=31 k=3", "k=5"),
    "equality:n=8": ("n=4 n=16", ""),
    "disjointness:n=8": ("n=4 n=16", ""),
    "dyck:n=96,k=2,D=6": ("n=98 D=5 D=7", "k=1 k=3"),
    "permutation:n=16,k=4": ("n=12 n=32", "k=3 k=5"),
    "group:n=16,G=C5": ("n=12 n=32", ""),
    "istree:n=64": ("n=60", "n=65"),
    "qsa:n=8,q=2,V=3": ("n=7 q=3 sets=4 sets=12", "n=9 V=2 V=4"),
    "neighbour:n=4,d=12,V=2": ("n=3 n=5", "d=11 d=13 V=3"),
    "khop:n=64,V=8,k=3,thought=values": ("n=128 k=4", "V=6"),
    "seqcomp:L=2,m=4,n_1=2,thought=values": ("m=3 L=1", "m=5 n_1=3"),
    # the id of a pair is vocabulary + w * m + value
    "seqcomp:L=2,m=4,n_1=2,thought=pairs": ("", "m=3 n_1=1"),
}
"""Task -> what a model of it reads, and what it does not, by what the rules of the task say an id
stands for.
"""


@each("spec", READ)
def test_what_a_model_reads(spec: str) -> None:
    task = parse_task(spec)
    reads, refuses = READ[spec]
    for text in reads.split():
        other, canonical = resized(task, text)
        assert not unreadable(other, task)
        assert resized(task, canonical) == (other, canonical)
        # a second witness: how tokens and answers are written for people
        for token in range(other.vocabulary):
            assert other.word(token) == task.word(token)
        for answer in range(other.answers):
            assert other.answer_word(answer) == task.answer_word(answer)
    for text in refuses.split():
        with pytest.raises(SizeError, match=r"ids of '|stand for"):
            resized(task, text)


def test_every_size_of_every_task_is_tried() -> None:
    tried: dict[str, set[str]] = {}
    for spec, texts in READ.items():
        task = parse_task(spec).asked
        named = {word.partition("=")[0] for text in texts for word in text.split()}
        tried.setdefault(task.name, set()).update(named)
    for name, kind in TASKS.items():
        sizes = parse_task(f"{name}:{kind.grid[0]}").sizes()
        assert {size for size, value in sizes.items() if type(value) is int} <= tried[name], name


def every() -> list[Task]:
    found: list[Task] = []
    for name, kind in TASKS.items():
        for grid in kind.grid[:2]:
            task = parse_task(f"{name}:{grid}")
            found += [task, *(Thought(task=task, form=form) for form in task.thoughts)]  # pyright: ignore[reportArgumentType]
    return found


def test_the_words_cover_every_id() -> None:
    for task in every():
        for ids, total in (
            (task.token_ids, task.vocabulary),
            (task.answer_ids, task.answers),
        ):
            assert set().union(*ids.values()) == set(range(total)), task.spec


@each(
    "spec, text, kind, said",
    [
        ("eva:n=16", "n=64", SizeError, "ids of"),
        ("eva:n=16,V=32", "n=24,V=40", SizeError, "ids of"),
        ("parity:n=8", "n=8", SizeError, "leaves parity:n=8 as it is"),
        ("recall:n=8,K=16,V=4", "form=last", SpecError, "that are whole numbers"),
        ("parity:n=8", "", SpecError, "no size is named"),
        ("parity:n=8", "n", SpecError, "expected size=value"),
        ("parity:n=8", "n=4,n=16", SpecError, "given twice"),
        ("parity:n=8", "N=16", UnknownNameError, "Did you mean 'n'"),
        ("parity:n=8", "n=4" * 1000, SpecError, "has 3,000 letters"),
        ("parity:n=8", f"n={10**40}", SizeError, r"n is 10\^40"),
        ("parity:n=8", "n=-4", SizeError, "n is -4"),
        ("seqcomp:L=3,m=8,n_1=2,n_2=3", "L=4", SizeError, "n_3 is missing"),
        ("seqcomp:L=3,m=8,n_1=2,n_2=3", "n=64", SizeError, "give L, m and the n_l"),
        ("seqcomp:L=2,m=8,n_1=2", "L=0", SizeError, "L is 0"),
    ],
)
def test_what_cannot_be_changed(
    spec: str, text: str, kind: type[SeparatrixError], said: str
) -> None:
    with pytest.raises(kind, match=said):
        resized(parse_task(spec), text)


@each(
    "spec, text, found",
    [
        # 2 + m + 2 m tokens with n_1 = 2, and 2 + 2 m with n_1 = 1
        ("seqcomp:L=2,m=20,n_1=2", "n=16", "seqcomp:L=2,m=4,n_1=2"),
        (
            "seqcomp:L=2,m=8,n_1=1,values=permutations",
            "n=10",
            "seqcomp:L=2,m=4,n_1=1,values=permutations",
        ),
        ("seqcomp:L=2,m=8,n_1=1", "n=10", "seqcomp:L=2,m=4,n_1=1"),
        ("seqcomp:L=2,m=8,n_1=1", "L=3", "seqcomp:L=3,m=8,n_1=1,n_2=1"),
        ("seqcomp:L=3,m=8,n_1=2,n_2=3", "L=2", "seqcomp:L=2,m=8,n_1=2"),
    ],
)
def test_sizes_of_compositions(spec: str, text: str, found: str) -> None:
    assert resized(parse_task(spec), text).task.spec == found


@each(
    "trained, text, tested, said",
    [
        ("recall:n=8,K=16,V=4", "shift=zipf", "recall:n=8,K=16,V=4,shift=zipf", "shift=zipf"),
        ("recall:n=8,K=16,V=4,shift=few", "shift=none", "recall:n=8,K=16,V=4", "shift=none"),
        ("parity:n=8", "n=4,shift=few", "parity:n=4,shift=few", "n=4,shift=few"),
        ("parity:n=8,shift=few,queries=all", "shift=none", "parity:n=8,queries=all", "shift=none"),
        # as long a prompt, of which the last answers alone are due
        ("parity:n=8,queries=all", "queries=2", "parity:n=8,queries=2", "queries=2"),
    ],
)
def test_another_draw_is_read_alike(trained: str, text: str, tested: str, said: str) -> None:
    """And needs no longer prompts to be tried after training."""
    task = parse_task(trained)
    found = resized(task, text)
    assert (found.task.spec, found.text) == (parse_task(tested).spec, said)
    assert read_longer(task, [text], task.length) == (found,)


@each(
    "trained, text, error",
    [
        ("recall:n=8,K=16,V=4", "shift=none", "leaves"),
        ("recall:n=8,K=16,V=4", "shift=few-er", "unknown shift"),
        ("index:n=8,V=8", "n=4,shift=none", "prompts of 5 tokens"),
        ("parity:n=8,queries=all", "n=4,queries=2", "prompts of 4 tokens"),
    ],
)
def test_what_is_no_other_draw(trained: str, text: str, error: str) -> None:
    task = parse_task(trained)
    with pytest.raises(SeparatrixError, match=error):
        read_longer(task, [text], task.length)

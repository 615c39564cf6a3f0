"""No two verdicts contradict each other: a stronger stack never fails where a weaker one is not
known to, nothing fails and is solvable, and larger sizes fail where a theorem says so.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any
from unittest.mock import Mock

import pytest
from support.stronger import BOUNDED, READING, SPARSE, Kind, verdicts

from separatrix.core.errors import SizeError
from separatrix.core.evidence.records import Status, Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import SeqComp, Task, parse_task
from separatrix.theory import THEOREMS
from separatrix.theory.base import counted
from separatrix.theory.fails.i_bounded_caches import TheoremI
from separatrix.theory.fails.reading_layers import DepthTheorem

TWO_SUMS = ("twosum:n=2,M=64,form=query", "twosum:n=2,M=64,form=decision")
TWO_STEPS = "seqcomp:L=2,m=2,n_1=1"
THREE_STEPS = "seqcomp:L=3,m=2,n_1=1,n_2=1"
FOUR_STEPS = "seqcomp:L=4,m=2,n_1=1,n_2=1,n_3=1"

KINDS = {
    "bounded": Kind(
        bounded=(1, 3),
        reading=0,
        readers=(),
        added=(*BOUNDED, *BOUNDED, *READING, "mlp"),
        tasks=(
            "eva:n=2",
            "eva:n=2,V=2",
            "index:n=2,V=3",
            "recall:n=2,K=5,V=3,form=absent",
            "equality:n=2",
            "disjointness:n=2",
            "dyck:n=4,k=2,D=2",
            "permutation:n=2,k=3",
            "counting:n=2",
            "mqar:input_seq_len=16,num_kv_pairs=4,vocab_size=32,shift=few",
            "majority:n=3",
            "parity:n=2",
            "seqcomp:L=1,m=2",
            TWO_STEPS,
            *TWO_SUMS,
        ),
    ),
    "without positions": Kind(
        bounded=(1, 3),
        reading=0,
        readers=(),
        added=(*BOUNDED, "mlp"),
        formats=("p1", "p2", "p3", "p8"),
        tasks=(
            *("parity:n=2", "modular:n=3,m=3", "majority:n=3", "counting:n=2"),
            *("permutation:n=2,k=3", "eva:n=2,V=2", "dyck:n=4,k=1,D=900", "disjointness:n=2"),
        ),
        positions="none",
    ),
    "one full layer": Kind(
        bounded=(0, 0),
        reading=1,
        readers=("full",),
        tasks=("eva:n=2", "equality:n=2", "seqcomp:L=1,m=4", TWO_STEPS, THREE_STEPS, *TWO_SUMS),
    ),
    "one sparse layer": Kind(
        bounded=(0, 0), reading=1, readers=SPARSE, tasks=(*TWO_SUMS, "eva:n=4", TWO_STEPS), steps=3
    ),
    "one reading layer": Kind(
        bounded=(1, 2), reading=1, readers=READING, tasks=(TWO_STEPS, THREE_STEPS, "eva:n=4")
    ),
    "two reading layers": Kind(
        bounded=(0, 1),
        reading=2,
        readers=READING,
        tasks=(TWO_STEPS, "equality:n=4", TWO_SUMS[1]),
        steps=3,
    ),
    "three steps": Kind(bounded=(0, 2), reading=2, readers=READING, tasks=(THREE_STEPS,), steps=3),
    "one layer becomes two": Kind(
        bounded=(0, 2),
        reading=1,
        readers=("full",),
        tasks=(TWO_STEPS, THREE_STEPS),
        formats=("p2", "p4", "p8"),
        first="layer",
        steps=3,
    ),
    "three reading layers": Kind(
        bounded=(0, 2),
        reading=3,
        readers=("full",),
        tasks=(THREE_STEPS, FOUR_STEPS),
        formats=("p4", "p8"),
        head_dims=(2, 4),
        steps=3,
    ),
    "two layers become three": Kind(
        bounded=(0, 2),
        reading=2,
        readers=("full",),
        tasks=(THREE_STEPS, FOUR_STEPS),
        formats=("p4", "p8"),
        head_dims=(2, 4),
        first="layer",
        steps=3,
    ),
    "room": Kind(
        bounded=(0, 1),
        reading=2,
        readers=("full",),
        tasks=("eva:n=16", "equality:n=16", "twosum:n=16,M=16,form=query", TWO_STEPS),
        formats=("bf16", "fp16", "fp32"),
        head_dims=(4, 6, 8, 12, 16),
        steps=3,
    ),
}
"""Where stacks are drawn, so that sizes lie where theorems bite."""


CHAINS = {
    "bounded": (300, 2_100),
    "without positions": (270, 1_800),
    "one full layer": (14, 95),
    "one sparse layer": (18, 60),
    "one reading layer": (8, 40),
    "two reading layers": (12, 36),
    "three steps": (2, 6),
    "one layer becomes two": (5, 17),
    "three reading layers": (2, 8),
    "two layers become three": (2, 6),
    "room": (40, 120),
}
"""Kind -> chains that the slow test draws, and pairs that they have at least."""


@dataclass
class Said:
    """What all theorems say of one stack on one task, each asked by itself."""

    stack: Architecture
    task: Task
    by: dict[str, Verdict] = field(init=False)

    def __post_init__(self) -> None:
        self.by = {
            key: found[0] for key in THEOREMS if (found := verdicts(self.stack, self.task, key))
        }

    def fails(self) -> list[str]:
        """The theorems that show failure."""
        return [key for key, verdict in self.by.items() if verdict.status == "FAILS"]

    @property
    def status(self) -> Status:
        """Of models that answer at once."""
        said = {verdict.status for key, verdict in self.by.items() if THEOREMS[key].at_once}
        return "FAILS" if "FAILS" in said else "SOLVABLE" if "SOLVABLE" in said else "OPEN"

    @property
    def contradicts_itself(self) -> bool:
        """Whether something is shown to fail and to be solvable, at once or after thought."""
        told = [(THEOREMS[key], verdict.status) for key, verdict in self.by.items()]
        at_once = {status for theorem, status in told if theorem.at_once}
        # who can answer at once may write nothing first
        after = {status for theorem, status in told if theorem.after_thought or status != "FAILS"}
        return any({"FAILS", "SOLVABLE"} <= said for said in (at_once, after))

    def __str__(self) -> str:
        statuses = {key: verdict.status for key, verdict in self.by.items()}
        return f"{self.stack.spec} on {self.task.spec}: {statuses}"


@dataclass
class Run:
    """Pairs of a chain's stacks, and of the sizes of a task, and what is wrong with them."""

    pairs: Counter[tuple[Status, Status]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    """What no theorem's search found for a weaker stack, though one did for a stronger one."""

    def chain(self, kind: Kind, rng: Random) -> None:
        """Draws a chain and a task, and looks at every pair of neighbours."""
        chain = kind.chain(rng)
        task = kind.task(chain, rng)
        before: Said | None = None
        for stack in chain:
            if before is not None and stack == before.stack:
                continue
            said = Said(stack, task)
            if said.contradicts_itself:
                self.wrong.append(f"fails and is solvable: {said}")
            if before is not None:
                self.pair(before, said)
            self._longer(said, rng)
            if before is None:
                self._further(said)
            before = said

    def pair(self, weaker: Said, stronger: Said) -> None:
        self.pairs[weaker.status, stronger.status] += 1
        if stronger.status == "FAILS" != weaker.status:
            self.wrong.append(f"more is less:\n    {weaker}\n    {stronger}")
        ceilings = [_ceiling(said) for said in (weaker, stronger)]
        if ceilings[0] > ceilings[1]:
            self.wrong.append(f"a larger cache, a lower ceiling:\n    {weaker}\n    {stronger}")
        if len(weaker.stack.reading) != len(stronger.stack.reading):
            return
        for key in stronger.fails():
            theorem = THEOREMS[key]
            # of a stack with other windows Theorem R speaks with another lag, or not at all
            if not isinstance(theorem, DepthTheorem) or key == "R-depth":
                continue
            # parameters that show failure with more bits show it with fewer
            numbers = stronger.by[key].numbers
            again = theorem.again(weaker.stack, weaker.task, numbers)
            if again is None or again.status != "FAILS":
                self.wrong.append(f"{key} with {numbers} fails {stronger} and not {weaker}")
            elif not weaker.fails():
                self.missed.append(f"{key} with {numbers} fails {weaker}")

    def _longer(self, said: Said, rng: Random) -> None:
        """What fails at a size fails at a larger one, where the theorem says that."""
        keys = [key for key in said.fails() if THEOREMS[key].larger_fail_too]
        tasks = said.task.family()
        if not keys or not tasks.keeps_prefixes:
            return
        n = said.task.sizes()[tasks.grows]
        try:
            task = tasks.at(n + rng.choice((1, 2, n)))
        except SizeError:
            return
        for key in keys:
            statuses = [verdict.status for verdict in verdicts(said.stack, task, key)]
            self.pairs["FAILS", "FAILS"] += 1
            if statuses != ["FAILS"]:
                self.wrong.append(f"{key} at {task.spec} says {statuses}, not FAILS as {said}")

    def _further(self, said: Said) -> None:
        """What Theorems III to VII fail at, they fail at with one function more (Lifting)."""
        keys = [key for key in said.fails() if isinstance(THEOREMS[key], DepthTheorem)]
        if not keys or not isinstance(said.task, SeqComp):
            return
        branching = (*said.task.branching, 1)
        task = SeqComp(L=said.task.L + 1, m=said.task.m, branching=branching)
        for key in keys:
            theorem = THEOREMS[key]
            assert isinstance(theorem, DepthTheorem)
            lengths = (said.task.length, task.length)
            if len({theorem.sizes(said.stack, n) for n in lengths}) > 1:
                continue  # caches that grow are larger in the longer prompt
            self.pairs["FAILS", "FAILS"] += 1
            statuses = [verdict.status for verdict in verdicts(said.stack, task, key)]
            if statuses != ["FAILS"]:
                self.wrong.append(f"{key} at {task.spec} says {statuses}, not FAILS as {said}")

    def share(self, status: Status) -> float:
        """The part of the pairs in which a stack has this status."""
        return sum(n for pair, n in self.pairs.items() if status in pair) / self.pairs.total()

    @property
    def crossed(self) -> float:
        """The part of the pairs in which the stronger stack is the first that does not fail."""
        return sum(self.pairs["FAILS", after] for after in ("OPEN", "SOLVABLE")) / (
            self.pairs.total()
        )


def _ceiling(said: Said) -> int:
    """The largest accuracy that any theorem leaves, in millionths."""
    found = (verdict.numbers.get("ceiling_millionths") for verdict in said.by.values())
    return min((ceiling for ceiling in found if ceiling is not None), default=10**6)


def run(kind: str, chains: int, seed: int) -> Run:
    """So many chains of a kind."""
    found = Run()
    rng = Random(seed)
    for _ in range(chains):
        found.chain(KINDS[kind], rng)
    return found


def test_a_stronger_stack_never_fails_first() -> None:
    """Seventy pairs of chains whose searches are short; the slow test draws thousands."""
    runs = [run("bounded", 6, seed=1), run("room", 6, seed=7)]
    assert [wrong for one in runs for wrong in one.wrong] == []
    assert sum(one.pairs.total() for one in runs) >= 70
    assert all(one.share("FAILS") > 0.1 for one in runs)
    assert runs[1].share("SOLVABLE") > 0.1


@pytest.mark.parametrize(
    "kind",
    [
        # searches over many layers take minutes for a pair
        pytest.param(kind, marks=pytest.mark.long if "three" in kind else pytest.mark.slow)
        for kind in CHAINS
    ],
)
def test_a_stronger_stack_never_fails_first_at_length(kind: str) -> None:
    """With p bits and few dimensions, sizes lie at the bite: three pairs of five hold a failure.
    A stack of which no search finds a failure, though one does for a stronger one, is a fault, too.
    """
    chains, pairs = CHAINS[kind]
    found = run(kind, chains, 2)
    assert found.wrong == []
    assert found.missed == []
    assert found.pairs.total() >= pairs
    assert found.share("FAILS") > 0.3 if kind != "room" else found.share("SOLVABLE") > 0.3
    assert found.crossed > 0.05 or pairs < 40


def test_thousands_of_pairs_are_drawn() -> None:
    assert set(CHAINS) == set(KINDS)
    assert sum(pairs for _, pairs in CHAINS.values()) >= 4_200


def test_what_contradicts_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Theorem I with a sign turned around fails large caches, and solves what others fail."""

    def turned(task: Task) -> Any:
        found = Mock(wraps=counted(task))
        found.compare_bits = lambda bits: replace(
            one := counted(task).compare_bits(bits), sign=-one.sign
        )
        return found

    monkeypatch.setattr("separatrix.theory.fails.i_bounded_caches.counted", turned)
    monkeypatch.setattr(TheoremI, "_least", lambda *_, **__: None)
    small, large = (
        Said(Architecture.parse(f"linear @ heads=1, head_dim={d}, p2"), parse_task("equality:n=8"))
        for d in (1, 8)
    )
    found = Run()
    found.pair(small, large)
    assert [text.partition(":")[0] for text in found.wrong] == ["more is less"]
    full = Said(Architecture.parse("full @ heads=1, head_dim=16"), parse_task("eva:n=16"))
    assert full.fails() == ["I"]
    assert full.contradicts_itself

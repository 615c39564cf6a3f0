"""Chains of random stacks, each stronger than the one before by a step (more bits, heads, layers, a
larger window), and tasks at the sizes where theorems begin to bite for one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from random import Random
from typing import Any

from separatrix.core.errors import SizeError
from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import MECHANISMS, Mechanism
from separatrix.tasks import SeqComp, Task, parse_task
from separatrix.theory import THEOREMS, judge

WIDER = ("p1", "p2", "p3", "p4", "p6", "p8", "p12", "p16", "p32")
BOUNDED = (
    "linear",
    "gdn",
    "gdn(negative=true)",
    "deltanet",
    "deltaproduct",
    "gla",
    "retnet",
    "mlstm",
    "loglinear",
    "mamba2(state=2)",
    "rglru(width=1)",
    "window(size=1)",
    "shortconv(width=1)",
)
SPARSE = (
    "sparse(block=2, topk=1)",
    "sparse(block=4, topk=1, window=2)",
    "moba(block=2, topk=1)",
)
READING = ("full", *SPARSE)
SIZES = {"heads": 1, "head_dim": 1, "running_max": "false"}
"""What every stack starts with, as small as it gets, where its mechanism has such a size."""


def _wider(name: str | None, rng: Random) -> str | None:
    """A format that holds every number of this one; itself where there is none."""
    if name in WIDER[:-1]:
        return rng.choice(WIDER[WIDER.index(name) + 1 :][:3])
    return {"bf16": "fp32", "fp16": "fp32", "fp32": "fp64"}.get(name or "", name)


def _more(n: int, rng: Random) -> int:
    return n + rng.choice((1, n, 3 * n))


LARGER: Mapping[str, Callable[[Any, Random], Any]] = {
    **dict.fromkeys(("heads", "head_dim", "width", "state", "size", "topk", "window"), _more),
    "householders": _more,
    "conv": lambda n, rng: n + 2,
    "running_max": lambda on, rng: True,
    "normaliser": lambda on, rng: True,
    **dict.fromkeys(("format", "accumulator", "state_format"), _wider),
}
"""A size of a mechanism -> one with which the mechanism can do all that it could before."""


def layer(
    kind: str, number_format: str, head_dim: int, positions: str = "embedded"
) -> tuple[Mechanism, ...]:
    """One layer of a kind, "gdn" or "window(size=1)", of this width, with softmax sums in the
    format that it stores.
    """
    name = kind.partition("(")[0]
    own = {field.name for field in fields(MECHANISMS[name])}
    # rotations turn pairs of dimensions
    wide = SIZES | {
        "positions": positions,
        "head_dim": max(head_dim, 2) if name == "retnet" else head_dim,
    }
    sizes = [number_format, *(f"{size}={n}" for size, n in wide.items() if size in own)]
    if "accumulator" in own:
        sizes.append(f"accumulator={number_format}")
    return Architecture.parse(f"{kind} @ {', '.join(sizes)}").layers[0]


def _larger(part: Mechanism, rng: Random) -> Mechanism:
    """The mechanism with one of its sizes larger; itself where none can be."""
    names = [field.name for field in fields(part) if field.name in LARGER]
    for name in rng.sample(names, len(names)):
        try:
            larger = replace(part, **{name: LARGER[name](getattr(part, name), rng)})
        except SizeError:
            continue
        if larger != part:
            return larger
    return part


def _stronger(
    stack: Architecture, added: tuple[Mechanism, ...], rng: Random, how: str
) -> Architecture:
    """The stack with one mechanism larger, with `added` as one more layer, or with it as one more
    kind of heads in a layer.
    """
    layers = list(stack.layers)
    place = rng.randrange(len(layers))
    if how == "larger":
        part = rng.randrange(len(layers[place]))
        larger = _larger(layers[place][part], rng)
        layers[place] = (*layers[place][:part], larger, *layers[place][part + 1 :])
    elif how == "layer":
        layers.insert(rng.randrange(len(layers) + 1), added)
    else:
        layers[place] += added
    return Architecture(tuple(layers))


@dataclass(frozen=True)
class Kind:
    """A kind of chain: how many bounded and reading layers its first stack has, what the readers
    are and what is added, in which formats and widths, and about which tasks it is asked.
    """

    bounded: tuple[int, int]
    reading: int
    readers: tuple[str, ...]
    tasks: tuple[str, ...]
    added: tuple[str, ...] = (*BOUNDED, *READING, "mlp")
    formats: tuple[str, ...] = ("p1", "p2", "p3", "p8", "bf16", "fp32")
    head_dims: tuple[int, ...] = (1, 1, 2, 4)
    first: str = ""
    """How the second stack differs from the first: "layer" adds one; "" leaves it to chance."""
    steps: int = 5
    positions: str = "embedded"

    def chain(self, rng: Random) -> list[Architecture]:
        """Stacks, each stronger than the one before."""
        number_format = rng.choice(self.formats)
        head_dim = rng.choice(self.head_dims)
        kinds = rng.choices(BOUNDED, k=rng.randint(*self.bounded))
        kinds += rng.choices(self.readers, k=self.reading) if self.reading else []
        rng.shuffle(kinds)
        made = [layer(kind, number_format, head_dim, self.positions) for kind in kinds]
        chain = [Architecture(tuple(made))]
        for step in range(self.steps):
            added = layer(rng.choice(self.added), number_format, head_dim, self.positions)
            how = rng.choice(("larger", "larger", "larger", "layer", "heads"))
            if self.first and step == 0:
                added = layer(rng.choice(self.readers), number_format, head_dim, self.positions)
                how = self.first
            chain.append(_stronger(chain[-1], added, rng, how))
        return chain

    def task(self, chain: list[Architecture], rng: Random) -> Task:
        """A task near the size at which some theorem bites for one of the first stacks."""
        task = parse_task(rng.choice(self.tasks))
        for _ in range(3):
            stack = rng.choice(chain[:4]) if not self.first else chain[1]
            sizes = list(_where_theorems_bite(stack, task))
            if sizes:
                return _beside(rng.choice(sizes), rng)
            task = parse_task(rng.choice(self.tasks))
        return task


def _where_theorems_bite(stack: Architecture, task: Task) -> Iterator[Task]:
    """For each theorem that fails the stack somewhere in the task's family: the task where."""
    for theorem in THEOREMS.values():
        for verdict in verdicts(stack, task, theorem.key):
            smallest = theorem.smallest(task, verdict) if "FAILS" in theorem.shows else None
            if smallest is not None:
                yield smallest


def _beside(task: Task, rng: Random) -> Task:
    """A task of about this size; now and then this one."""
    try:
        if isinstance(task, SeqComp):
            m, *rows = (
                max(1, int(n * rng.choice((0.95, 1, 1, 1, 1, 1.05, 1.2, 2))))
                for n in (task.m, *task.branching)
            )
            return SeqComp(L=task.L, m=max(m, 2), branching=tuple(rows))
        n = task.sizes()[task.family().grows]
        n = int(n * rng.choice((0.99, 1, 1, 1, 1.01, 1.1, 2))) + rng.choice((-1, 0, 0, 0, 1))
        return task.family().at(max(n, task.family().smallest))
    except SizeError:
        return task


def verdicts(stack: Architecture, task: Task, key: str) -> list[Verdict]:
    """What one theorem alone says."""
    return judge(stack, task, among=lambda theorem: theorem.key == key)

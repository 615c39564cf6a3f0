"""Drawn stacks with the options that heads have, tasks that some of them are shown to solve, and
what `construct` makes of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from separatrix.constructions import construct
from separatrix.core.errors import SizeError
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.theory import judge
from separatrix.theory.fits import built_by
from support.stronger import BOUNDED

HEADS = (
    *("rope=true", "rope=true, rope_dim=4", "rope=true, rope_scaling=llama3_8_1_4_8192"),
    *("conv=4", "qk_norm=head", "qk_norm=each", "qk_norm=all", "sink=true"),
    *("gate=sigmoid", "gate=head", "kv_heads=1", "kv_heads=2", "softcap=30", "value_dim=4"),
)
"""What one full layer may have beside its heads."""
READING = (
    *("mla(latent=32, rope_dim=4)", "mla(latent=64, rope_dim=8)", "fox", "dsa", "indexed"),
    *("sparse(block=4, topk=1)", "sparse(block=2, topk=1)"),
)
CARRYING = (*BOUNDED, "mamba2", "shortconv", "rwkv")
TASKS = (
    *("eva:n=4,V=4", "eva:n=6,V=3", "index:n=4,V=4", "recall:n=3,K=5,V=3"),
    *("equality:n=4", "equality:n=6"),
    *("twosum:n=4,M=6,form=query", "twosum:n=4,M=70,form=query", "twosum:n=4,M=9,form=decision"),
    *("seqcomp:L=1,m=4", "seqcomp:L=2,m=2,n_1=2", "seqcomp:L=3,m=2,n_1=1,n_2=2"),
)


@dataclass(frozen=True)
class Walked:
    """A stack that some theorem shows to solve a task, and whether `construct` writes it down."""

    stack: str
    task: str
    theorems: tuple[str, ...]
    promised: bool
    """Whether the card says that `construct` does."""
    refused: str
    """What `construct` says; "" where it builds."""

    def __str__(self) -> str:
        return f"{self.task} in {self.stack} ({', '.join(self.theorems)}): {self.refused[:160]}"


def drawn(rng: Random) -> Architecture:
    """One to four reading layers, most of them full, among up to two bounded ones."""
    layers = [_reader(rng) for _ in range(rng.choice((1, 1, 2, 3, 4)))]
    for _ in range(rng.choice((0, 1, 1, 2))):
        layers.insert(rng.randrange(len(layers) + 1), rng.choice(CARRYING))
    if rng.random() < 0.2:
        beside = rng.randrange(len(layers))
        layers[beside] += "|" + rng.choice(("gdn", "linear", "window(size=4)"))
    sizes = (
        f"heads={rng.choice((2, 4))}",
        f"head_dim={rng.choice((8, 16, 16, 32))}",
        f"positions={rng.choice(('embedded', 'embedded', 'none'))}",
        rng.choice(("fp32", "fp32", "fp32", "bf16", "bf16", "fp16")),
    )
    return Architecture.parse(f"{' + '.join(layers)} @ {', '.join(sizes)}")


def _reader(rng: Random) -> str:
    if rng.random() < 0.4:
        return rng.choice(READING)
    chosen: dict[str, str] = {}
    for option in rng.sample(HEADS, rng.choice((0, 1, 1, 2, 3))):
        for size in option.split(", "):
            name, value = size.split("=")
            chosen.setdefault(name, value)
    return (
        f"full({', '.join(f'{name}={value}' for name, value in chosen.items())})" * bool(chosen)
        or "full"
    )


def walk(number: int, seed: int) -> Iterator[Walked]:
    """Of so many drawn pairs, those that are shown to be solvable."""
    rng = Random(seed)
    for _ in range(number):
        stack, task = drawn(rng), parse_task(rng.choice(TASKS))
        shown = [found for found in judge(stack, task) if found.status == "SOLVABLE"]
        if not shown:
            continue
        try:
            construct(task, stack)
            refused = ""
        except SizeError as error:
            refused = str(error)
        yield Walked(
            stack.spec,
            task.spec,
            tuple(found.theorem for found in shown),
            any(built_by(found) for found in shown),
            refused,
        )


def shares(walked: list[Walked]) -> Counter[tuple[str, bool]]:
    """How many pairs of each theorem are built, and how many are not."""
    return Counter((theorem, not one.refused) for one in walked for theorem in one.theorems)

"""Drawn stacks with the options that heads have, tasks that some of them are shown to solve, and
what `construct` makes of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from separatrix.constructions import construct
from separatrix.core.errors import SeparatrixError, SizeError
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.theory import judge
from separatrix.theory.written import NOT_BUILT, written
from support.stronger import BOUNDED

HEADS = (
    *("rope=true", "rope=true, rope_dim=4", "rope=true, rope_scaling=llama3_8_1_4_8192"),
    *("conv=4", "qk_norm=head", "qk_norm=each", "qk_norm=all", "sink=true"),
    *("gate=sigmoid", "gate=head", "kv_heads=1", "kv_heads=2", "softcap=30", "value_dim=4"),
)
"""What one full layer may have beside its heads."""
WHOLE = ("causal=false", "causal=false", "running_max=false", "bounded=true", "accumulator=bf16")
"""What all layers may have together."""
READING = (
    *("mla(latent=32, rope_dim=4)", "mla(latent=64, rope_dim=8)", "fox", "dsa", "indexed"),
    *("sparse(block=4, topk=1)", "sparse(block=2, topk=1)"),
)
CARRYING = (
    *(*BOUNDED, "mamba2", "mamba", "shortconv", "shortconv(conv=3)", "rwkv", "kda"),
    *("lightning", "window(size=8)", "window(size=64)"),
)
TURNING = (
    *("deltanet(negative=true)", "gdn(negative=true)", "gdn(negative=true, conv=4)", "deltanet"),
    *("deltaproduct(negative=true, householders=3)", "kda(negative=true)", "gdn(gate=silu)"),
    *("linear(feature=identity, normaliser=false)", "linear", "automaton", "automaton(rules=9)"),
)
"""Layers that may hold a whole answer in their states."""
TASKS = (
    *("eva:n=4,V=4", "eva:n=6,V=3", "index:n=4,V=4"),
    *("recall:n=3,K=5,V=3", "recall:n=4,K=5,V=3,form=last", "recall:n=4,K=6,V=6,form=absent"),
    *("mqar:vocab_size=8,input_seq_len=12,num_kv_pairs=2", "noisy-recall:n=2,noise=3,K=4,V=3"),
    *("cgram:n=11,V=4,c=2", "cgram:n=20,V=6,c=3", "copying:n=8,V=3"),
    *("counting:n=6", "counting:n=6,V=3,form=queried", "qsa:n=4,q=2,V=3,sets=2"),
    *("equality:n=4", "equality:n=6", "neighbour:n=3,d=4,V=2"),
    *("twosum:n=4,M=6,form=query", "twosum:n=4,M=70,form=query", "twosum:n=4,M=9,form=decision"),
    *("seqcomp:L=1,m=4", "seqcomp:L=2,m=2,n_1=2", "seqcomp:L=3,m=2,n_1=1,n_2=2"),
    *("seqcomp:L=2,m=3,n_1=1,thought=pairs", "khop:n=14,V=4,k=1", "khop:n=14,V=4,k=2"),
    *("parity:n=9", "parity:n=8", "modular:n=7,m=3", "permutation:n=4,k=3", "group:n=3,G=C6"),
)
KEPT = (
    *("dyck:k=2,D=2,n=6", "dyck:k=3,D=1,n=4", "parity:n=8", "modular:n=6,m=3", "modular:n=8,m=4"),
    *("group:n=5,G=A3", "group:n=4,G=C6", "permutation:n=5,k=3", "permutation:n=5,k=5,shift=swaps"),
    *("eva:n=2,V=2", "equality:n=2", "disjointness:n=2"),
    *("recall:n=3,K=5,V=3,question=first", "recall:n=4,K=5,V=9,form=last,question=first"),
)
"""Tasks whose answer states may hold."""


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
    why: tuple[str, ...]
    """Why the card promises nothing, for each theorem."""

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
    return _sized(layers, rng)


def drawn_states(rng: Random) -> Architecture:
    """One to four layers that may hold an answer in their states, at times with one between."""
    layers = [rng.choice(TURNING) for _ in range(rng.choice((1, 2, 3, 4)))]
    if rng.random() < 0.3:
        layers.insert(rng.randrange(len(layers) + 1), rng.choice((*CARRYING, "full")))
    if set(layers) <= {"automaton", "automaton(rules=9)"}:
        layers.append("gdn")
    return _sized(layers, rng)


def _sized(layers: list[str], rng: Random) -> Architecture:
    if rng.random() < 0.1:
        layers = [f"full({rng.choice(WHOLE)})"] * rng.choice((1, 2, 3))
    sizes = (
        f"heads={rng.choice((2, 3, 4))}",
        f"head_dim={rng.choice((6, 8, 12, 16, 16, 32))}",
        f"positions={rng.choice(('embedded', 'embedded', 'none', 'alibi'))}",
        rng.choice(("fp32", "fp32", "fp32", "bf16", "bf16", "fp16", "fp64", "fp8")),
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
        draw, tasks = rng.choice(((drawn, TASKS), (drawn, TASKS), (drawn_states, KEPT)))
        try:
            stack = draw(rng)
        except SeparatrixError:
            # such as rotations of 8 dimensions of 6
            continue
        task = parse_task(rng.choice(tasks))
        shown = [found for found in judge(stack, task) if found.status == "SOLVABLE"]
        if not shown:
            continue
        built = [written(found) for found in shown]
        try:
            construct(task, stack)
            refused = ""
        except SizeError as error:
            refused = str(error)
        yield Walked(
            stack.spec,
            task.spec,
            tuple(found.theorem for found in shown),
            any(recipes for recipes, _ in built),
            refused,
            tuple(why for _, why in built if why not in ("", NOT_BUILT)),
        )


def shares(walked: list[Walked]) -> Counter[tuple[str, bool]]:
    """How many pairs of each theorem are built, and how many are not."""
    return Counter((theorem, not one.refused) for one in walked for theorem in one.theorems)

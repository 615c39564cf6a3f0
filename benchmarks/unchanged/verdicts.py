"""Every verdict on chosen and on drawn pairs of a stack and a task."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from unchanged.pieces import Piece, canonical, lines, words
from unchanged.tasks import TASKS

PAPER = "heads=1, head_dim=4, p8, accumulator=p8, running_max=false"
"""Sizes of the tables in theory.md: sums of the stored width and no running maximum."""

AIMED = (
    (f"full @ {PAPER}", "eva:n=64,V=64"),
    ("full @ heads=1, head_dim=1, format=p1", "seqcomp:L=1,m=64"),
    ("sparse @ heads=1, head_dim=1, block=16, topk=1", "twosum:n=64,M=128"),
    ("sparse @ heads=1, head_dim=1, block=16, topk=1", "twosum:n=66,M=128"),
    ("sparse(block=4, topk=1) @ heads=1, head_dim=1, p2", "twosum:n=1000,M=1000"),
    (f"full*2 @ {PAPER}", "seqcomp:L=2,m=34,n_1=348"),
    (f"full*2 @ {PAPER}", "seqcomp:L=2,m=34,n_1=349"),
    (f"full*2 @ {PAPER}", "seqcomp:L=3,m=34,n_1=1,n_2=357"),
    (f"full*2 @ {PAPER}", "seqcomp:L=3,m=34,n_1=1,n_2=358"),
    ("gdn + window(size=4) + full @ heads=1, head_dim=1, p2", "seqcomp:L=2,m=1000,n_1=1000"),
    ("full + full + gdn @ heads=1, head_dim=1, p2", "seqcomp:L=3,m=1000,n_1=10000,n_2=1000"),
    ("full + window(size=4) + full @ heads=1, head_dim=1, p2", "seqcomp:L=3,m=900,n_1=9,n_2=9000"),
    ("full @ heads=1, head_dim=6, value_dim=3", "seqcomp:L=2,m=4,n_1=2"),
    ("full @ heads=1, head_dim=5, value_dim=3", "seqcomp:L=2,m=4,n_1=2"),
    ("sparse(block=8, topk=1) @ heads=1, head_dim=32", "eva:n=64,V=64"),
    ("mla(heads=1, head_dim=8, value_dim=6, latent=14)", "eva:n=64,V=64"),
    ("linear @ heads=1, head_dim=4, p8", "mqar:vocab_size=512,input_seq_len=1000,num_kv_pairs=64"),
    ("loglinear @ heads=1, head_dim=1", "equality:n=289"),
    ("full + gdn @ heads=2, head_dim=64", "equality:n=64"),
    ("gdn*3 @ heads=1, head_dim=2, p4", "permutation:n=1000,k=5"),
)
"""Stacks and tasks on both sides of what theorems say that drawn ones seldom meet."""

PAIRS = 600

LAYERS = words("""
    full full(sink=true) mla(latent=16) window(size=4) window(size=256) chunked(size=16) compressed
    sparse(block=4,topk=1) sparse(block=16,topk=2,window=8) moba(block=8,topk=2) indexed(topk=4)
    linear linear(feature=relu) lightning retnet(head_dim=4) gla hgrn2 deltanet gdn gdn(conv=4)
    deltaproduct kda mlstm rwkv loglinear loglinear(base=gdn) mamba(width=16) mamba2 rglru(width=32)
    rwkv4(width=16) shortconv(width=8) mlp full|gdn sparse(block=4,topk=1)|linear full|mamba2
    window(size=8)|rglru(width=8)
""")

PLAIN_LAYERS = words("full full full linear gdn sparse(block=4,topk=1) indexed(topk=4)")
"""Those that theorems beside Theorem I speak of."""

COMMON = lines("""
    heads=1, head_dim=1
    heads=1, head_dim=1, p2
    heads=1, head_dim=4, p8
    heads=1, head_dim=16
    heads=1, head_dim=64
    heads=2, head_dim=32, bf16
    heads=4, head_dim=64, fp32
    heads=8, head_dim=128, fp16
    heads=1, head_dim=64, state_format=fp32, bf16
""")

GROWN: tuple[tuple[str, tuple[tuple[int, int], ...]], ...] = (
    ("eva:n={},V={}", ((1, 10**6), (2, 10**6))),
    ("index:n={},V={}", ((1, 10**5), (2, 10**5))),
    ("twosum:n={},M={}", ((2, 10**4), (3, 10**5))),
    ("twosum:n={},M={},form=decision", ((2, 10**4), (3, 10**5))),
    ("seqcomp:L=1,m={}", ((2, 10**5),)),
    ("seqcomp:L=2,m={},n_1={}", ((2, 10**4), (1, 1000))),
    ("seqcomp:L=3,m={},n_1={},n_2={}", ((2, 1000), (1, 100), (1, 100))),
    ("seqcomp:L=4,m={},n_1={},n_2={},n_3={}", ((2, 300), (1, 60), (1, 60), (1, 60))),
    ("seqcomp:L=2,m={},n_1={},thought=values", ((2, 1000), (1, 100))),
    ("equality:n={}", ((1, 10**6),)),
    ("disjointness:n={}", ((1, 10**6),)),
    ("permutation:n={},k=5", ((2, 10**6),)),
    ("counting:n={}", ((1, 10**6),)),
    ("majority:n={}", ((2, 10**6),)),
)
"""Task texts with sizes to draw, from the least to the largest."""


def verdicts() -> Iterator[Piece]:
    """Every verdict on chosen and on drawn pairs of a stack and a task."""
    for spec, text in AIMED:
        yield f"{spec} on {text}", canonical(judged(spec, text))
    rng = random.Random(2026)
    for number in range(PAIRS):
        layers = LAYERS if number % 2 else PLAIN_LAYERS
        spec = drawn_stack(layers, rng)
        text = drawn_task(rng)
        yield f"{number:03d} {spec} on {text}", canonical(judged(spec, text))


def drawn_stack(layers: Sequence[str], rng: random.Random) -> str:
    """The spec of a stack of one to four layers, some of them repeated."""
    stack = rng.choices(layers, k=rng.choice((1, 1, 2, 3, 4)))
    items = [layer if rng.random() < 0.8 else f"({layer})*{rng.randint(2, 6)}" for layer in stack]
    return f"{' + '.join(items)} @ {rng.choice(COMMON)}"


def drawn_task(rng: random.Random) -> str:
    """The text of a task: now and then one of TASKS, otherwise with drawn sizes."""
    if rng.random() < 0.3:
        return rng.choice(TASKS)
    text, ranges = rng.choice(GROWN)
    # small sizes are as likely as large ones
    sizes = [round(low * (high / low) ** rng.random()) for low, high in ranges]
    return text.format(*sizes)


def judged(spec: str, text: str) -> object:
    """All verdicts as records; for what is refused, the sentence that says why."""
    import separatrix as sx

    try:
        found = sx.judge(sx.Architecture.parse(spec), sx.parse_task(text))
    except sx.SeparatrixError as error:
        return f"{type(error).__name__}: {error}"
    return [verdict.envelope() for verdict in found]

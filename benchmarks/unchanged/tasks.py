"""Samples, answers and facts of every kind of task, of tokens and of words."""

from __future__ import annotations

from collections.abc import Iterator

from unchanged.pieces import Piece, canonical, demand_all, expanded, kind_of, packed

DRAWN = 64
"""Instances of a task that are hashed."""

TASKS = expanded("""
    eva:n=5,V=5 eva:n=12,V=4 eva:n=64 eva:n=12,V=4,shift=zipf|few|local
    index:n=3,V=8 index:n=12,V=4 index:n=64,V=64 index:n=12,V=4,shift=zipf|few|local
    recall:n=8,K=16,V=4 recall:n=64,K=256,V=32,form=absent recall:n=16,K=12,V=4,form=last
    recall:n=8,K=12,V=6,form=absent recall:n=8,K=16,V=4,shift=zipf|few
    recall:n=16,K=12,V=4,form=last,shift=repeats recall:n=8,K=16,V=4,queries=all
    recall:n=8,K=16,V=4,form=independent recall:n=8,K=16,V=4,form=independent,queries=3
    mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4
    mqar:vocab_size=8192,input_seq_len=64,num_kv_pairs=4
    mqar:vocab_size=33,input_seq_len=24,num_kv_pairs=4,power_a=0.5,random_non_queries=0
    mqar:vocab_size=24,input_seq_len=24,num_kv_pairs=4,shift=zipf|few
    cgram:n=14,V=6,c=2 cgram:n=38,V=8,c=2 cgram:n=39,V=9,c=3 cgram:n=38,V=8,c=2,shift=zipf|few|local
    seqcomp:L=1,m=6 seqcomp:L=2,m=6,n_1=1 seqcomp:L=3,m=3,n_1=2,n_2=1 seqcomp:L=3,n=128
    seqcomp:L=4,m=2,n_1=1,n_2=2,n_3=1 seqcomp:L=2,n=64,form=uniform
    seqcomp:L=2,m=6,n_1=2,shift=zipf|few|local
    seqcomp:L=2,m=3,n_1=2,thought=values|pairs seqcomp:L=2,m=3,n_1=2,queries=all
    seqcomp:L=2,m=4,n_1=3,queries=5,split=1,stages=1 eva:n=8,V=4,queries=3
    khop:n=24,V=4,k=2,queries=all twosum:n=8,M=137,queries=all
    seqcomp-forward:L=1,m=4 seqcomp-forward:L=2,m=3,n_1=2 seqcomp-forward:L=3,m=3,n_1=2,n_2=1
    seqcomp-forward:L=2,m=6,n_1=2,shift=zipf|few|local
    seqcomp-forward:L=2,m=3,n_1=2,thought=values|pairs
    khop:n=9,V=4,k=1 khop:n=31,V=5,k=5 khop:n=64,V=8,k=4 khop:n=24,V=8,k=2,shift=random
    khop:n=24,V=8,k=2,thought=values
    state-recall:n=7,V=3,K=1,P=4 state-recall:n=12,V=6,K=12,P=12 state-recall:n=64,V=16,K=64,P=16
    state-recall:n=12,V=4,K=7 state-recall:n=9,V=3,K=5,P=4,shift=free
    state-recall:n=8,V=2,K=4,P=3,thought=values
    twosum:n=4,M=17 twosum:n=64,M=1031,form=query|decision twosum:n=16,M=37,form=decision
    twosum:n=9,M=20,shift=few|zipf twosum:n=9,M=21,form=decision,shift=few|zipf
    threesum:n=4,M=17 threesum:n=8,M=31 threesum:n=16,M=257
    counting:n=24 counting:n=20,V=90,form=queried counting:n=128,V=16,form=queried
    counting:n=6,shift=independent counting:n=8,V=5,form=queried,shift=independent
    majority:n=7 majority:n=16,k=4 majority:n=33,k=5 majority:n=127 majority:n=12,k=5,shift=clear
    equality:n=1 equality:n=16 equality:n=64 equality:n=16,shift=apart
    disjointness:n=2 disjointness:n=16 disjointness:n=64 disjointness:n=16,shift=sparse
    dyck:n=96,k=3,D=5 dyck:n=48,k=1,D=3 dyck:n=96,k=2,D=8 dyck:n=98,k=2,D=100
    dyck:n=96,k=2,D=5,shift=shallow|deep|beyond
    permutation:n=9,k=3 permutation:n=24,k=3 permutation:n=16,k=5 permutation:n=8,k=4,thought=values
    permutation:n=8,k=4,shift=swaps|generators permutation:n=9,k=3,queries=all
    parity:n=9 parity:n=33,shift=few parity:n=16,queries=9
    modular:n=9,m=3 modular:n=40,m=7,shift=independent modular:n=24,m=5,queries=all
    group:n=8,G=A4 group:n=24,G=C60,shift=generators group:n=16,G=A5,queries=4
    copying:n=8,V=4 selective-copying:n=4,T=16,V=4 fuzzy-recall:n=8,K=3,V=4,a=3,b=2
    noisy-recall:n=4,noise=4,K=8,V=2,N=3
    istree:n=64 istree:n=80 istree:n=65 istree:n=12,shift=recursive|local
    qsa:n=8,q=3,V=2 qsa:n=12,q=2,V=6,sets=10 qsa:n=64,q=4,V=8,sets=32
    qsa:n=10,q=2,V=4,shift=average|zipf|local
    neighbour:n=4,d=7,V=2 neighbour:n=12,d=10,V=3 neighbour:n=32,d=12,V=4
    neighbour:n=8,d=9,V=4,shift=equal
""")
"""Every kind of task at small sizes, in every form and with every shift."""

TEXT_TASKS = expanded("""
    multihop:k=2,n=15 multihop:k=3,n=23,style=steps multihop:k=4,n=144
    multihop:k=2,n=25
    needles:length=80,keys=4 variables:length=80,chains=3,hops=1
""")


def tasks() -> Iterator[Piece]:
    """Samples, answers and facts of every kind of task, of tokens and of words."""
    import separatrix as sx

    demand_all("tasks", sx.tasks.TASKS, map(kind_of, TASKS))
    for text in TASKS:
        yield from of_task(text)
    for text in TEXT_TASKS:
        yield from of_text_task(text)


def of_task(text: str) -> Iterator[Piece]:
    """One task at one size: what is drawn, what is right, and what is said of it."""
    import numpy as np

    import separatrix as sx

    task = sx.parse_task(text)
    drawn = task.sample(DRAWN, np.random.default_rng(0))
    yield f"{text}/sample", packed({"tokens": drawn.tokens, "targets": drawn.targets})
    yield f"{text}/answer", packed({"answers": task.answer(drawn.tokens)})
    chain = task.chain(drawn.tokens)
    if chain is not None:
        yield f"{text}/chain", packed({"chain": chain})
    classes = task.prefix_classes()
    facts = {
        "spec": task.spec,
        "sizes": task.sizes(),
        "length": task.length,
        "vocabulary": task.vocabulary,
        "answers": task.answers,
        "several": task.several,
        "chance": str(task.chance),
        "levels": {probe: str(task.level(probe)) for probe in sx.tasks.PROBES},
        "prefix_length": task.prefix_length,
        "prefix_classes": None if classes is None else [str(classes), hex(classes.exact())],
    }
    yield f"{text}/facts", canonical(facts)


def of_text_task(text: str) -> Iterator[Piece]:
    """One task in words at one size. Their package is no public name."""
    import numpy as np

    from separatrix.tasks import text as texts

    demand_all("tasks in words", texts.TEXT_TASKS, map(kind_of, TEXT_TASKS))
    task = texts.parse_text_task(text)
    items = task.sample(DRAWN, np.random.default_rng(0))
    drawn = [{**item._asdict(), "target": task.target(item)} for item in items]
    read = [
        {"answer": task.answer(item.prompt), "steps": list(task.steps(item.prompt))}
        for item in items
    ]
    facts = {
        "spec": task.spec,
        "sentences": task.sentences,
        "chance": str(task.chance),
        "numbers": task.numbers,
    }
    yield f"{text}/sample", canonical(drawn)
    yield f"{text}/answer", canonical(read)
    yield f"{text}/facts", canonical(facts)

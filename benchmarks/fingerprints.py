"""Fingerprints of everything that a redesign must leave as it is.

    python benchmarks/fingerprints.py --out FILE [--only GROUP ...] [--texts FOLDER]
    python benchmarks/fingerprints.py --out FILE --evidence report/evidence.json
    python benchmarks/fingerprints.py --compare BEFORE AFTER [--only GROUP ...]

The first writes {name: sha256} as JSON; with `--texts` also what was hashed, a file for each name.
The second does the same for what a report claims. Evidence holds no times and no dates.
The third prints each name that differs, is missing or is new; exit code 1 if there is one.

On one machine with one set of packages, equal code gives equal fingerprints, to the last bit.
Another machine may round differently in the groups `mixers`, `models` and `refute`.

Everything goes through the command line and the public names, with two exceptions: the table of
mixers (`mixer_table`) and the tasks in words (`of_text_task`).
"""

from __future__ import annotations

import argparse
import hashlib
import io
import itertools
import json
import os
import random
import re
import runpy
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from separatrix.mixers import Mixer

Piece = tuple[str, str | bytes]
"""What is hashed: a name, and a text or the bytes of numbers."""


def words(text: str) -> tuple[str, ...]:
    """The words of a table that is written as text."""
    return tuple(text.split())


def lines(text: str) -> tuple[str, ...]:
    """The lines of a table that is written as text, empty ones left out."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def expanded(text: str) -> tuple[str, ...]:
    """The words of a table, where "eva:n=8,shift=zipf|few" stands for one word with each shift."""
    found = []
    for word in text.split():
        head, equals, values = word.rpartition("=")
        found += [f"{head}{equals}{value}" for value in values.split("|")]
    return tuple(found)


CONTEXTS = (4096, 131_072, 1_048_576)
STACKS = lines("""
    (gdn*3 + full)*12 @ heads=16, head_dim=128, bf16
    (mamba2*7 + full|mamba2)*4 + mlp*4 @ heads=8, head_dim=64, bf16
    sparse(block=64, topk=16)*2 + mla(latent=512, rope_dim=64) @ heads=4, head_dim=128, bf16
    indexed(topk=2048) + moba(block=512, topk=3) + compressed @ heads=4, head_dim=64, bf16
    full*2 + linear @ heads=1, head_dim=1, p2
    loglinear(base=gdn)*3 @ heads=2, head_dim=16, p8
    rglru(width=64)*2 + window(size=128) @ heads=1, head_dim=32, fp16
    rwkv*2 + rwkv4(width=64) + kda|deltaproduct @ heads=2, head_dim=32
    chunked(size=256)*2 + full @ heads=2, head_dim=8, p4
""")
"""Stacks that no released model has, for `analyze`."""

DESIGNS = (
    "--task seqcomp:L=3 --task eva:V=50000 --context 32768 --cache 2GiB --base qwen3-next-80b",
    "--task eva:V=256000 --task seqcomp:L=4 --context 32768 --cache 1GiB --layers 18,26"
    " --base recurrentgemma-2b",
    "--task seqcomp:L=2,n_1=64 --task eva:V=50000 --context 32768 --cache 4GiB --layers 24"
    " --reading full --reading sparse --state 16,64 --window 512,2048",
    "--task seqcomp:L=2,n_1=16 --context 32768 --cache 16GiB --layers 24 --state 1,4,16"
    " --reading full(heads=1,head_dim=1,format=p8) --reading full(heads=2,head_dim=4,format=p8)"
    " --bounded gdn(heads=1,format=p8,value_dim=2)",
    "--task twosum:M=50 --context 8192 --cache 256MiB --layers 12 --readers 0-3 --place even,end"
    " --bounded rglru*2+window --bounded mamba2",
)
COMPARED = (
    ("qwen3-next-80b", "recurrentgemma-2b"),
    ("full + gdn*24", "nemotron-h-8b", "sparse*4 @ heads=2", "--context", "65536"),
    ("deepseek-v3.2", "kimi-linear-48b", "jamba-v0.1", "--context", "131072"),
)
AUDITED = words("eva:n=8 seqcomp:L=2,m=6,n_1=1 multihop:k=2,n=6")
EXPORTED = words("""
    eva:n=8 seqcomp:L=2,m=4,n_1=2,thought=values multihop:k=2,n=6,style=steps
    mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4
""")
COMMANDS = (
    "",  # the program itself
    *words(
        "reproduce analyze check-mechanism audit compare design construct refute verify presets"
    ),
    *("theorems", "theorems show", "mechanisms", "mechanisms show"),
    *("tasks", "tasks show", "tasks sample", "tasks export"),
)

DRAWN = 64
"""Instances of a task that are hashed."""
TASKS = expanded("""
    eva:n=5,V=5 eva:n=12,V=4 eva:n=64 eva:n=12,V=4,shift=zipf|few|local
    index:n=3,V=8 index:n=12,V=4 index:n=64,V=64 index:n=12,V=4,shift=zipf|few|local
    recall:n=8,K=16,V=4 recall:n=64,K=256,V=32,form=absent recall:n=16,K=12,V=4,form=last
    recall:n=8,K=12,V=6,form=absent recall:n=8,K=16,V=4,shift=zipf|few
    recall:n=16,K=12,V=4,form=last,shift=repeats
    mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4
    mqar:vocab_size=8192,input_seq_len=64,num_kv_pairs=4
    mqar:vocab_size=33,input_seq_len=24,num_kv_pairs=4,power_a=0.5,random_non_queries=0
    mqar:vocab_size=24,input_seq_len=24,num_kv_pairs=4,shift=zipf|few
    cgram:n=14,V=6,c=2 cgram:n=38,V=8,c=2 cgram:n=39,V=9,c=3 cgram:n=38,V=8,c=2,shift=zipf|few|local
    seqcomp:L=1,m=6 seqcomp:L=2,m=6,n_1=1 seqcomp:L=3,m=3,n_1=2,n_2=1 seqcomp:L=3,n=128
    seqcomp:L=4,m=2,n_1=1,n_2=2,n_3=1 seqcomp:L=2,n=64,form=uniform
    seqcomp:L=2,m=6,n_1=2,order=forward seqcomp:L=2,m=6,n_1=2,shift=zipf|few|local
    seqcomp:L=2,m=3,n_1=2,thought=values|pairs
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
    threesum:n=4,M=17 threesum:n=8,M=31 threesum:n=16,M=257 threesum:n=7,M=37,form=decision
    counting:n=8 counting:n=20,V=90,form=queried counting:n=128,V=16,form=queried
    counting:n=6,shift=independent counting:n=8,V=5,form=queried,shift=independent
    majority:n=7 majority:n=16,k=4 majority:n=33,k=5 majority:n=127 majority:n=12,k=5,shift=clear
    equality:n=1 equality:n=16 equality:n=64 equality:n=16,shift=apart
    disjointness:n=2 disjointness:n=16 disjointness:n=64 disjointness:n=16,shift=sparse
    dyck:n=16,k=3,D=4 dyck:n=20,k=1,D=3 dyck:n=40,k=2,D=4 dyck:n=18,k=2,D=100
    dyck:n=24,k=2,D=5,shift=shallow|deep
    permutation:n=9,k=3 permutation:n=24,k=3 permutation:n=16,k=5 permutation:n=8,k=4,thought=values
    permutation:n=8,k=4,shift=swaps|generators
    istree:n=7 istree:n=12 istree:n=65 istree:n=12,shift=recursive|local
    qsa:n=8,q=3,V=2 qsa:n=12,q=2,V=6,sets=10 qsa:n=64,q=4,V=8,sets=32
    qsa:n=10,q=2,V=4,shift=average|zipf|local
    neighbour:n=4,d=7,V=2 neighbour:n=12,d=10,V=3 neighbour:n=32,d=12,V=4
    neighbour:n=8,d=9,V=4,shift=equal|clusters
""")
"""Every kind of task at small sizes, in every form and with every shift."""
TEXT_TASKS = expanded("""
    multihop:k=2,n=6 multihop:k=3,n=13,style=steps multihop:k=4,n=64,facts=forward
    multihop:k=2,n=12,template=mixed,facts=backward
    multihop:k=2,n=12,template=family|places|work|boxes|books
""")

WIDTH = 6
BATCH = 2
LENGTHS = (1, 37, 64, 130)
"""Tokens: one, part of a chunk of the parallel forms, one chunk, and a little more than two."""
HALF_LENGTH = 37
MIXERS = lines("""
    full @ head_dim=3, heads=2, value_dim=5
    full @ head_dim=3, heads=4, kv_heads=2, value_dim=2
    full @ head_dim=1, heads=1
    full @ conv=3, head_dim=4, heads=2, rope=true, sink=true, value_dim=5
    window @ head_dim=3, heads=2, size=1, value_dim=5
    window @ head_dim=3, heads=2, size=5, value_dim=5
    window @ head_dim=3, heads=2, size=70, value_dim=5
    window @ head_dim=3, heads=2, kv_heads=1, size=32, value_dim=5
    window @ head_dim=4, heads=2, kv_heads=1, rope=true, sink=true, size=9, value_dim=5
    chunked @ head_dim=3, heads=2, size=1, value_dim=5
    chunked @ head_dim=3, heads=2, size=2000, value_dim=5
    chunked @ head_dim=3, heads=4, kv_heads=2, size=32, value_dim=5
    chunked @ conv=3, head_dim=4, heads=2, rope=true, size=70, value_dim=5
    mla @ conv=3, head_dim=3, heads=2, latent=7, rope_dim=4, value_dim=5
    mla @ head_dim=3, heads=2, latent=3, value_dim=5
    linear @ feature=elu, head_dim=3, heads=2, value_dim=5
    linear @ feature=relu, head_dim=3, heads=2, value_dim=5
    linear @ feature=identity, head_dim=3, heads=2, value_dim=5
    linear @ feature=taylor, head_dim=3, heads=2, value_dim=5
    linear @ feature=elu, head_dim=3, heads=2, normaliser=false, value_dim=5
    linear @ feature=relu, head_dim=3, heads=2, normaliser=false, value_dim=5
    linear @ feature=identity, head_dim=3, heads=2, normaliser=false, value_dim=5
    linear @ feature=taylor, head_dim=3, heads=2, normaliser=false, value_dim=5
    linear @ head_dim=3, heads=2, key_heads=1, value_dim=5
    linear @ conv=4, gate=silu, head_dim=3, heads=2, value_dim=5
    loglinear @ feature=identity, head_dim=3, heads=2, value_dim=5
    loglinear @ feature=elu, head_dim=3, heads=2, value_dim=5
    loglinear @ feature=relu, head_dim=3, heads=2, value_dim=5
    loglinear @ head_dim=3, heads=2, key_heads=1, value_dim=5
    loglinear @ base=gdn, conv=2, head_dim=3, heads=2, key_heads=1, value_dim=5
    deltanet @ head_dim=3, heads=2, key_heads=1, value_dim=5
    deltanet @ conv=3, gate=norm, head_dim=3, heads=2, negative=true, value_dim=5
    gdn @ head_dim=3, heads=2, value_dim=5
    gdn @ head_dim=3, heads=4, key_heads=2, value_dim=5
    gdn @ head_dim=1, heads=1
    gdn @ conv=4, gate=silu, head_dim=3, heads=2, negative=true, value_dim=5
    deltaproduct @ conv=2, head_dim=3, heads=2, householders=3, key_heads=1, value_dim=5
    deltaproduct @ head_dim=3, heads=2, householders=1, negative=false, value_dim=5
    kda @ head_dim=3, heads=2, value_dim=5
    kda @ conv=3, gate=sigmoid, head_dim=3, heads=2, value_dim=5
    gla @ gate=silu, head_dim=3, heads=2, key_heads=1, value_dim=5
    hgrn2 @ conv=3, head_dim=3, heads=2, value_dim=5
    retnet @ gate=silu, head_dim=4, heads=2, value_dim=5
    lightning @ conv=2, head_dim=3, heads=2, value_dim=5
    mamba2 @ conv=4, groups=2, head_dim=3, heads=4, state=5
    mlstm @ conv=4, head_dim=3, heads=2, value_dim=5
    rwkv @ head_dim=3, heads=2, value_dim=5, width=6
    rwkv @ conv=2, gate=norm, head_dim=3, heads=2, key_heads=1, value_dim=5, width=6
    rglru @ width=5
    rglru @ conv=4, width=5
    shortconv @ width=5, conv=3
    sparse @ block=4, head_dim=3, heads=2, topk=2, value_dim=5
    sparse @ block=1, head_dim=3, heads=2, topk=3, value_dim=5
    sparse @ block=16, head_dim=3, heads=4, kv_heads=2, topk=1, value_dim=5
    sparse @ block=32, head_dim=3, heads=2, topk=9, value_dim=5
    sparse @ block=8, head_dim=3, heads=4, kv_heads=2, topk=2, value_dim=5, window=11
    sparse @ block=8, gates=true, head_dim=4, heads=2, rope=true, topk=2, value_dim=5
    sparse @ block=5, conv=3, gates=true, head_dim=3, heads=2, kv_heads=1, topk=3, window=70
    moba @ block=4, head_dim=3, heads=4, kv_heads=2, topk=2, value_dim=5
    moba @ block=1, head_dim=3, heads=2, topk=3, value_dim=5
    moba @ block=16, conv=3, head_dim=4, heads=2, rope=true, topk=1, value_dim=5
    moba @ block=32, head_dim=3, heads=2, topk=9, value_dim=5
    indexed @ head_dim=3, heads=4, index_dim=2, index_heads=3, kv_heads=2, topk=8, value_dim=5
    indexed @ head_dim=3, heads=2, index_dim=1, topk=2, value_dim=5
    indexed @ conv=3, head_dim=4, heads=2, index_dim=5, index_heads=2, rope=true, topk=40
    indexed @ head_dim=3, heads=2, index_dim=4, topk=300, value_dim=5
""")
"""Every mixer, as a stack of one layer: sizes that change what is computed, at several values."""

MODELS = (
    ("full*2 @ heads=2, head_dim=4", "eva:n=8"),
    ("gdn + full|gdn @ heads=2, head_dim=4", "seqcomp:L=2,m=4,n_1=2"),
    ("linear + mlp + window(size=3) @ heads=2, head_dim=4", "twosum:n=8,M=16"),
    ("sparse(block=4, topk=1)|linear + rglru(width=8) @ heads=1, head_dim=4", "khop:n=24,V=8,k=2"),
    ("mamba2 + mla(latent=4) + loglinear @ heads=2, head_dim=4, bf16", "equality:n=8"),
)
TRAINED = (
    ("full*2 @ heads=2, head_dim=4", "eva:n=8"),
    ("gdn|full @ heads=1, head_dim=8", "mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4"),
)

CONSTRUCTED = (
    ("retrieval", "eva:n=8,V=4", ""),
    ("retrieval", "eva:n=16,V=16", "gdn + full"),
    ("sparse-retrieval", "eva:n=8,V=4", "sparse(block=4, topk=1)"),
    ("sparse-retrieval", "eva:n=16,V=5", "sparse(block=2, topk=3) + gdn"),
    ("seqcomp", "seqcomp:L=1,m=4", ""),
    ("seqcomp", "seqcomp:L=3,m=2,n_1=2,n_2=3", ""),
    ("seqcomp", "seqcomp:L=2,m=2,n_1=1", "(full|linear + gdn)*3"),
    ("carried", "seqcomp:L=2,m=3,n_1=1", "linear + full*2"),
    ("carried", "seqcomp:L=2,m=2,n_1=1", "gdn(heads=2, key_heads=1, head_dim=4) + full*2"),
    ("carried", "seqcomp:L=3,m=2,n_1=1,n_2=1", "linear(feature=relu) + full*3"),
    ("match2", "twosum:n=4,M=8", ""),
    ("match2", "twosum:n=16,M=50", ""),
)
"""The construction that must fit, the task, and the stack that holds it: "" for the smallest."""

REFUTED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("gdn @ heads=1, head_dim=2, p3", "eva:n=8,V=8", {}),
    ("linear + window(size=2) @ heads=1, head_dim=2, p3", "seqcomp:L=2,m=4,n_1=2", {"seed": 3}),
    ("loglinear @ heads=1, head_dim=2", "twosum:n=8,M=16", {"cache_format": "p3"}),
    ("sparse(block=4, topk=1) @ heads=1, head_dim=2, p3", "twosum:n=12,M=32", {"seed": 1}),
    ("full|linear @ heads=1, head_dim=4", "eva:n=8,V=8", {}),
    ("sparse(block=4, topk=1) @ heads=1, head_dim=2, p24", "twosum:n=12,M=64", {"tries": 64}),
)
"""Collisions, a block swap, a wrong answer, and a search that finds nothing."""

AIMED = (
    ("full @ heads=1, head_dim=4, p8", "eva:n=64,V=64"),
    ("full @ heads=1, head_dim=1, format=p1", "seqcomp:L=1,m=64"),
    ("sparse @ heads=1, head_dim=1, block=16, topk=1", "twosum:n=64,M=128"),
    ("sparse @ heads=1, head_dim=1, block=16, topk=1", "twosum:n=66,M=128"),
    ("sparse(block=4, topk=1) @ heads=1, head_dim=1, p2", "twosum:n=1000,M=1000"),
    ("full*2 @ heads=1, head_dim=4, p8", "seqcomp:L=2,m=34,n_1=348"),
    ("full*2 @ heads=1, head_dim=4, p8", "seqcomp:L=2,m=34,n_1=349"),
    ("full*2 @ heads=1, head_dim=4, p8", "seqcomp:L=3,m=34,n_1=1,n_2=357"),
    ("full*2 @ heads=1, head_dim=4, p8", "seqcomp:L=3,m=34,n_1=1,n_2=358"),
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


# --- what is hashed


def command(*arguments: str) -> str:
    """What `python -m separatrix` prints for these arguments. Raises RuntimeError if it fails."""
    printed = io.StringIO()
    with patch.object(sys, "argv", ["separatrix", *arguments]), redirect_stdout(printed):
        try:
            runpy.run_module("separatrix", run_name="__main__")
        except SystemExit as end:
            if end.code:
                shown = " ".join(arguments)
                raise RuntimeError(f"separatrix {shown}: exit code {end.code}") from None
    return printed.getvalue()


def canonical(value: object) -> str:
    """JSON with sorted keys, indented so that `diff` can show what changed."""
    return json.dumps(value, sort_keys=True, indent=1, allow_nan=False) + "\n"


def packed(arrays: Mapping[str, Tensor | NDArray[Any]]) -> bytes:
    """Arrays by name as bytes: a line of name, format and shape before the numbers of each."""
    import numpy as np
    import torch

    parts = []
    for name, array in sorted(arrays.items()):
        parts.append(f"{name} {array.dtype} {tuple(array.shape)}\n".encode())
        if isinstance(array, torch.Tensor):
            # as bytes, since numpy has no bfloat16
            array = array.detach().reshape(-1).contiguous().view(torch.uint8).numpy()
        parts.append(np.ascontiguousarray(array).tobytes())
    return b"".join(parts)


def names_in(listing: str, key: str = "name") -> list[str]:
    """The names in a list that a command printed as JSON."""
    return [str(row[key]) for row in json.loads(listing)]


# --- the groups


def analyze() -> Iterator[Piece]:
    """Capability cards of every released model and of other stacks, each at three contexts."""
    presets = names_in(command("presets", "--json"))
    for model in (*presets, *STACKS):
        for context in CONTEXTS:
            card = command("analyze", model, "--json", "--context", str(context))
            yield f"{model}/{context}", card


def lists() -> Iterator[Piece]:
    """What the program knows, and results of `design`, `compare`, `audit` and `tasks sample`."""
    yield "presets", command("presets", "--json")
    for kind, key in (("tasks", "name"), ("mechanisms", "name"), ("theorems", "key")):
        listing = command(kind, "--json")
        yield kind, listing
        for name in names_in(listing, key):
            yield f"{kind}/{name}", command(kind, "show", name, "--json")
    for problem in DESIGNS:
        yield f"design {problem}", command("design", *problem.split(), "--json")
    for models in COMPARED:
        yield f"compare {' '.join(models)}", command("compare", *models, "--json")
    for task in AUDITED:
        found = command("audit", task, "--fitted", "400", "--tested", "400", "--json")
        yield f"audit {task}", found
        yield f"sample {task}", command("tasks", "sample", task, "--json")


def docs() -> Iterator[Piece]:
    """The pages of the documentation that commands write."""
    for page in ("mechanisms", "tasks"):
        yield page, command(page, "--markdown")


def helps() -> Iterator[Piece]:
    """The help of every command."""
    for name in COMMANDS:
        yield name or "separatrix", command(*name.split(), "--help")


def tasks() -> Iterator[Piece]:
    """Samples, answers and facts of every kind of task, of tokens and of words."""
    import separatrix as sx

    demand_all("tasks", sx.tasks.TASKS, map(kind_of, TASKS))
    for text in TASKS:
        yield from of_task(text)
    for text in TEXT_TASKS:
        yield from of_text_task(text)


def kind_of(text: str) -> str:
    """The name before the sizes of a task text."""
    return text.partition(":")[0]


def of_task(text: str) -> Iterator[Piece]:
    """One task at one size: what is drawn, what is right, and what is said of it."""
    import numpy as np

    import separatrix as sx

    task = sx.parse_task(text)
    drawn = task.sample(DRAWN, np.random.default_rng(0))
    yield f"{text}/sample", packed({"tokens": drawn.tokens, "targets": drawn.targets})
    yield f"{text}/answer", packed({"answers": task.answer(drawn.tokens)})
    if isinstance(task, sx.tasks.Composition):
        yield f"{text}/chain", packed({"chain": task.intermediate(drawn.tokens)})
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


def exports() -> Iterator[Piece]:
    """Every file of small exports, in each format."""
    rows = ("--train", "20", "--validation", "5", "--test", "5")
    for task, form in itertools.product(EXPORTED, ("jsonl", "hf", "lm-eval")):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out"
            command("tasks", "export", task, "--format", form, "--out", str(out), *rows, "--json")
            for path in sorted(path for path in out.rglob("*") if path.is_file()):
                content = path.read_bytes()
                name = f"{task}/{form}/{path.relative_to(out).as_posix()}"
                yield name, content if path.suffix == ".parquet" else content.decode()


def mixers() -> Iterator[Piece]:
    """Every mixer at drawn weights: all its forms, the state that it leaves, and gradients."""
    known, _ = mixer_table()
    demand_all("mixers", known, (spec.partition(" @ ")[0] for spec in MIXERS))
    for spec in MIXERS:
        yield from of_mixer(spec)
        yield from of_half_mixer(f"{spec}, bf16")


def mixer_table() -> tuple[Iterable[str], Callable[..., Mixer]]:
    """The names of all mixers, and the function that makes one. Their package is no public name."""
    from separatrix import mixers as package

    return package.MIXERS, package.mixer


def drawn_mixer(spec: str) -> Mixer:
    """The mixer of a stack of one layer, in float64 and drawn from a seed."""
    import torch

    import separatrix as sx

    _, make = mixer_table()
    mixer = make(sx.Architecture.parse(spec).layers[0][0], width=WIDTH).double()
    generator = torch.Generator().manual_seed(0)
    mixer.reset(generator)
    with torch.no_grad():
        for _, parameter in sorted(mixer.named_parameters()):
            # moved a little, so that none stays at a special value such as 0
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.add_(0.1 * noise)
    return mixer


def normal(*shape: int, seed: int) -> Tensor:
    """Normal numbers in float64."""
    import torch

    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def of_mixer(spec: str) -> Iterator[Piece]:
    """One mixer in float64 at every length."""
    import torch

    mixer = drawn_mixer(spec)
    yield f"{spec}/parameters", packed(dict(mixer.named_parameters()))
    for tokens in LENGTHS:
        x = normal(BATCH, tokens, WIDTH, seed=tokens)
        yield from forms(f"{spec}/{tokens}", mixer, x)
        inputs = {"input": x.requires_grad_(), **dict(mixer.named_parameters())}
        weights = normal(BATCH, tokens, WIDTH, seed=1000 + tokens)
        scalar = (mixer(x) * weights).sum()
        gradients = torch.autograd.grad(
            scalar, list(inputs.values()), allow_unused=True, materialize_grads=True
        )
        named = dict(zip(inputs, gradients, strict=True))
        yield f"{spec}/{tokens}/gradients", packed(named)


def of_half_mixer(spec: str) -> Iterator[Piece]:
    """One mixer in bfloat16: sums over tokens are wider, states are stored as declared."""
    import torch

    mixer = drawn_mixer(spec).to(torch.bfloat16)
    x = normal(BATCH, HALF_LENGTH, WIDTH, seed=HALF_LENGTH).to(torch.bfloat16)
    yield from forms(f"{spec}/{HALF_LENGTH}", mixer, x)


def forms(name: str, mixer: Mixer, x: Tensor) -> list[Piece]:
    """The outputs of all forms of a mixer on x, and the state after the last token."""
    import torch

    outputs = []
    state = mixer.init_state(len(x))
    with torch.no_grad():
        for t in range(x.shape[1]):
            y, state = mixer.step(x[:, t], state, t)
            outputs.append(y)
        return [
            (f"{name}/forward", packed({"y": mixer(x)})),
            (f"{name}/last", packed({"y": mixer.last(x)})),
            (f"{name}/step", packed({"y": torch.stack(outputs, 1)})),
            (f"{name}/state", packed(state)),
        ]


def models() -> Iterator[Piece]:
    """Drawn models of whole stacks with what they answer, and short trainings."""
    import numpy as np
    import torch

    import separatrix as sx

    for spec, text in MODELS:
        task = sx.parse_task(text)
        model = sx.build(sx.Architecture.parse(spec), task, width=8, hidden=12, seed=3)
        tokens = torch.from_numpy(task.sample(8, np.random.default_rng(0)).tokens)
        with torch.no_grad():
            logits = model(tokens)
        yield f"{spec} on {text}/parameters", packed(model.state_dict())
        yield f"{spec} on {text}/logits", packed({"logits": logits})
    for spec, text in TRAINED:
        run = sx.Run(
            architecture=spec,
            task=text,
            seed=5,
            steps=25,
            batch=32,
            width=16,
            hidden=16,
            tested=256,
        )
        trained = sx.train(run)
        counts = [trained.correct, trained.steps_done, trained.parameters]
        yield f"{spec} on {text}/trained", packed(trained.model.state_dict())
        yield f"{spec} on {text}/counts", canonical(counts)


def constructions() -> Iterator[Piece]:
    """Weights and proofs of every construction, and what checking them says."""
    import separatrix as sx

    for name, text, spec in CONSTRUCTED:
        architecture = sx.Architecture.parse(spec) if spec else None
        built = sx.construct(sx.parse_task(text), architecture)
        if built.record.name != name:
            raise RuntimeError(f"{text} in '{spec}' was built by {built.record.name}, not {name}")
        with tempfile.TemporaryDirectory() as folder:
            built.save(Path(folder))
            checked = sx.verify_path(Path(folder))
        title = f"{name}/{text} in {spec}"
        yield f"{title}/weights", packed(built.model.state_dict())
        yield f"{title}/record", canonical(built.record.envelope())
        yield f"{title}/checked", canonical([list(one.checks) for one in checked])


def refutations() -> Iterator[Piece]:
    """Certificates of failures, and what checking them says."""
    import separatrix as sx

    for spec, text, options in REFUTED:
        architecture = sx.Architecture.parse(spec)
        # all end in seconds, so that the budget plays no part
        found = sx.refute(architecture, sx.parse_task(text), budget=120, **options)
        name = f"{spec} on {text}"
        if not isinstance(found, sx.Certificate):
            yield f"{name}/not found", f"{found}\n"
            continue
        yield f"{name}/certificate", canonical(found.envelope())
        yield f"{name}/checked", canonical(list(sx.verify(found, folder=Path()).checks))


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


def demand_all(what: str, known: Iterable[str], covered: Iterable[str]) -> None:
    """Raises RuntimeError unless a table of this file covers all that is known, and no more."""
    if odd := set(known) ^ set(covered):
        named = ", ".join(sorted(odd))
        raise RuntimeError(f"{what} known to the package or to this file only: {named}")


GROUPS: dict[str, Callable[[], Iterator[Piece]]] = {
    "analyze": analyze,
    "lists": lists,
    "docs": docs,
    "help": helps,
    "tasks": tasks,
    "exports": exports,
    "mixers": mixers,
    "models": models,
    "constructions": constructions,
    "refute": refutations,
    "verdicts": verdicts,
}


# --- a report


def evidence(path: Path) -> Iterator[Piece]:
    """What an evidence.json claims: settings, cells, models, and each record by its subject."""
    bundle = json.loads(path.read_text(encoding="utf-8"))
    body = bundle["body"]
    yield "whole", canonical(bundle)
    for key in ("title", "settings", "rows", "columns"):
        yield key, canonical(body[key])
    for cell in body["cells"]:
        yield f"cell/{cell['row']} {cell['column']}", canonical(cell)
    for model in body["models"]:
        yield f"model/{model['name']}", canonical(model)
    met: Counter[str] = Counter()
    for record in body["records"].values():
        name = record_name(record)
        met[name] += 1
        yield f"{name} #{met[name]}", canonical(record)


def record_name(record: Mapping[str, Any]) -> str:
    """What a record is about."""
    body = record["body"]
    own = next(body[key] for key in ("theorem", "name", "form", "role") if key in body)
    return f"{record['kind']}/{own}/{body['architecture']} on {body['task']}"


# --- writing and comparing


def fingerprints(groups: Mapping[str, Iterable[Piece]], texts: Path | None) -> dict[str, str]:
    """The sha256 of every piece by group and name. Tells on stderr how each group went."""
    found: dict[str, str] = {}
    for group, pieces in groups.items():
        start = time.monotonic()
        before = len(found)
        for name, content in pieces:
            key = f"{group}/{name}"
            if key in found:
                raise RuntimeError(f"two pieces are called {key}")
            found[key] = digest(content)
            if texts is not None:
                write_text(texts / group, name, content)
        count = len(found) - before
        seconds = time.monotonic() - start
        print(f"{group:14}{count:6} names{seconds:8.1f} s", file=sys.stderr, flush=True)
    return found


def digest(content: str | bytes) -> str:
    """The sha256 in hex."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def write_text(folder: Path, name: str, content: str | bytes) -> None:
    """Writes what was hashed into a file whose name depends on the piece's name only."""
    readable = re.sub(r"[^\w.,=+*|@()-]+", "_", name)[:120].strip("_")
    suffix = "txt" if isinstance(content, str) else "bin"
    path = folder / f"{readable}.{digest(name)[:8]}.{suffix}"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """A line for each name that differs, is missing or is new."""
    found = []
    for name in sorted({*before, *after}):
        if name not in after:
            found.append(f"missing  {name}")
        elif name not in before:
            found.append(f"new      {name}")
        elif before[name] != after[name]:
            found.append(f"differs  {name}")
    return found


def read(path: Path, groups: Iterable[str]) -> dict[str, str]:
    """The fingerprints in a file, of these groups; of all for none."""
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    wanted = set(groups)
    return {
        name: value
        for name, value in found.items()
        if not wanted or name.partition("/")[0] in wanted
    }


def prepare() -> None:
    """Makes this process print without colours in 100 columns, and compute on one thread."""
    os.environ.update(COLUMNS="100", LINES="50", NO_COLOR="1", TERM="dumb", OMP_NUM_THREADS="1")
    os.environ.pop("FORCE_COLOR", None)
    import torch

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)


def arguments() -> argparse.ArgumentParser:
    """What may be asked for."""
    parser = argparse.ArgumentParser(description="Fingerprints of what a redesign must not change.")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write {name: sha256} here")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=[*GROUPS, "evidence"],
        default=[],
        metavar="GROUP",
        help=f"some of {', '.join(GROUPS)}",
    )
    parser.add_argument(
        "--texts",
        type=Path,
        metavar="FOLDER",
        help="also write what was hashed, a file for each name",
    )
    parser.add_argument(
        "--evidence", type=Path, metavar="FILE", help="hash this evidence.json, not the groups"
    )
    parser.add_argument(
        "--compare", nargs=2, type=Path, metavar="FILE", help="print what differs between two files"
    )
    return parser


def main() -> int:
    """Does what the arguments say, and returns the exit code."""
    parser = arguments()
    chosen = parser.parse_args()
    if chosen.compare:
        before, after = (read(path, chosen.only) for path in chosen.compare)
        found = differences(before, after)
        print("\n".join(found) or f"no differences in {len(before)} names")
        return int(bool(found))
    if chosen.out is None:
        parser.print_usage()  # `make bench` runs every file of this folder without arguments
        return 0
    prepare()
    groups = {name: group() for name, group in GROUPS.items() if name in (chosen.only or GROUPS)}
    if chosen.evidence is not None:
        groups = {"evidence": evidence(chosen.evidence)}
    hashes = fingerprints(groups, chosen.texts)
    text = json.dumps(hashes, indent=0, sort_keys=True)
    chosen.out.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

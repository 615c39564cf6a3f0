"""Tasks with several answers per prompt: `queries=all` or `queries=k` beside other sizes."""

from __future__ import annotations

from separatrix.tasks.questions.base import Questions as Questions
from separatrix.tasks.questions.lookups import Arguments, Keys, Starts, Sums
from separatrix.tasks.questions.places import Hops, Prefixes

# A kind of task that takes several questions is a class here and one of these lines.
QUESTIONS: dict[str, type[Questions]] = {
    "eva": Arguments,
    "recall": Keys,
    "seqcomp": Starts,
    "khop": Hops,
    "twosum": Sums,
    "parity": Prefixes,
    "permutation": Prefixes,
    "group": Prefixes,
}
"""Name of a task -> its questions."""
ASKED: dict[str, tuple[str, ...]] = {
    "eva": ("n=12,V=4,queries=all", "n=64,queries=8"),
    "recall": (
        "n=8,K=16,V=8,form=independent,queries=all",
        "n=16,K=32,V=8,queries=4",
        "n=20,K=40,V=16,form=independent,queries=all",
    ),
    "seqcomp": (
        "L=2,m=4,n_1=8,queries=8,split=1,stages=1",
        "L=2,m=8,form=uniform,queries=all",
        "L=3,m=6,n_1=2,n_2=2,queries=8,split=1",
    ),
    "khop": ("n=64,V=8,k=4,queries=all", "n=96,V=8,k=8,queries=16"),
    "twosum": ("n=32,M=1031,queries=8", "n=32,M=4099,queries=all"),
    "parity": ("n=32,queries=16", "n=64,queries=all"),
    "permutation": ("n=24,k=4,queries=16", "n=32,k=5,queries=all"),
    "group": ("n=24,G=A5,queries=16", "n=32,G=C5,queries=all"),
}
"""Name of a task -> sizes with several questions, from easy to hard."""

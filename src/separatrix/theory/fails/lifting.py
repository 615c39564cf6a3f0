"""Lifting: what fails L-SeqComp by one of Theorems III to VII fails (L+k)-SeqComp too. Its
verdicts are those theorems' own, at the larger L.
"""

from __future__ import annotations

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task
from separatrix.theory.base import NEITHER, Theorem


class Lifting(Theorem):
    key = "lifting"
    title = (
        "from L steps to L+k: III and IV hold for L >= 2, V for L >= 3, VI and VII from R+1, R on"
    )
    statement = (
        "If the arguments of III, IV, V, VI or VII show failure on L-SeqComp at (m, n_1..n_{L-1}),"
        " the same architecture fails (L+k)-SeqComp at (m, n_1..n_{L-1}, 1, .., 1), with k N_{L-1}"
        " more tokens; and at any further n_l, with the tokens these take. The identities may also"
        " stand right below the last function: failure at (m, n_1..n_{L-2}, n) is failure wherever"
        " n is one of the further n_l. So III and IV hold for every L >= 2, V for every L >= 3, VI"
        " for every L >= R + 1 and VII for every L >= R."
    )
    premises = ("those of the theorem that is lifted, with caches sized for the longer prompt",)
    source = "theory.md, sections 5 and 11, Lifting"
    proof_sketch = (
        "Let the first row of each further function be the identity and w ask for it. Behind the"
        " last function or right below it they are constants of the prefix, so they change only the"
        " first caches and each query's first accumulator, and the answer is i_L."
    )

    shows = NEITHER

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        """None: Theorems III to VII apply themselves at every L."""
        return None

"""Eva and index lookup in one layer: one hop, to the position that the last token names, by full,
block-sparse or indexed attention; the latter two among the tokens that the layer opens or its
indexer chooses.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.chain import Fetcher, Wanted, derive_chain, full_fetch
from separatrix.proofs.derivations.parts.chosen import indexed_fetch, sparse_fetch
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived
from separatrix.tasks import Eva, Index
from separatrix.tasks.base.task import Tokens


def derive_eva(
    task: Eva, model: Model, arithmetic: Arithmetic = FP32, *, fetch: Fetcher
) -> Derived:
    """The one place to read: position x, for a last token x."""
    hop = Wanted("f(x)", task.V, np.arange(task.n), lambda x, before: x)
    return derive_chain(task, model, [hop], [fetch], arithmetic)


def derive_index(task: Index, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The one place to read: position i, for the last token V + i."""
    hop = Wanted("x_i", task.V, np.arange(task.n), lambda i, before: i, first=task.V)
    return derive_chain(task, model, [hop], [full_fetch], arithmetic)


def ids(task: Eva) -> list[int]:
    """Values in the table, then an argument."""
    return [task.V] * task.n + [task.n]


def index_ids(task: Index) -> list[int]:
    """Values in the sequence, then a position, whose id is V or more."""
    return [task.V] * task.n + [task.vocabulary]


def index_asked(task: Index, tokens: Tokens) -> NDArray[np.bool_]:
    return tokens[:, -1] >= task.V


DERIVATIONS = (
    *(
        Derivation(name=name, task=Eva, derive=partial(derive_eva, fetch=fetch), ids=ids)
        for name, fetch in (
            ("retrieval", full_fetch),
            ("sparse-retrieval", sparse_fetch),
            ("indexed-retrieval", indexed_fetch),
        )
    ),
    Derivation(name="index", task=Index, derive=derive_index, ids=index_ids, asked=index_asked),
)

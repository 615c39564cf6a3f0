"""2-Sum per query in one full layer: all M x M scores of the head, exact, of the float32 numbers
themselves.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from separatrix.checks.derivation import Derivation, Derived
from separatrix.checks.exact import Array, columns, exact_lead, exact_product, most_terms
from separatrix.checks.live_parts import Head, Writers, array, live_parts
from separatrix.errors import CheckFailed
from separatrix.model import Model
from separatrix.proofs.entries import match_entry
from separatrix.proofs.float32 import Match
from separatrix.tasks import TwoSum

LARGEST_WEIGHT = 2.0**41
"""A builder scales scores by 2^39 at most; with keys of at most 1 in absolute value a score is far
below float32's 2^127.
"""
_ROWS = 512


def derive(task: TwoSum, model: Model) -> Derived:
    """The proof of the one layer. Raises CheckFailed where the weights do not bear it out."""
    if not model.config.bos or task.form != "query":
        raise CheckFailed("this construction answers the query form and has a start token")
    live = live_parts(model)
    if len(live) != 1 or any(tensor.any() for tensor in live[0].mlp.values()):
        raise CheckFailed(
            f"{len(live)} layers write, or one has an MLP; this construction is one head without"
            " an MLP"
        )
    head = live[0].full_head()[1]
    embed = array(model.embed.weight)
    position = array(model.position.weight)
    writers = Writers(embed, position, live)
    for matrix, what in ((head.q, "q"), (head.k, "k")):
        writers.allow(matrix.reads, what, "tokens")
    writers.allow(head.v.reads, "v", "positions")
    value = _value(head, position)
    threshold = _threshold(model, writers, value)

    queries = head.q.of_rows(embed[: task.M])
    keys = head.k.of_rows(embed[: task.M])
    blank = head.k.of_rows(embed[task.M :])
    terms = int((columns(keys) & columns(queries)).sum())
    gaps = _gaps(queries, keys, blank)
    match = Match(earlier=task.n, **gaps, terms=terms, value=value, threshold=threshold)
    # numbers of a key that some score really uses
    used = int((columns(queries) & (columns(keys) | columns(blank))).sum())
    sizes = {"layers": 1, "head_dim": used, "value_dim": 1}
    return Derived([match_entry(live[0].place, match=match)], match.margin(), sizes)


def _value(head: Head, position: Array) -> Fraction:
    """The output for a match. Raises CheckFailed unless the start token and the query count 0
    and every token between them the same.
    """
    outputs = head.o.of_rows(head.v.of_rows(position))
    found = np.flatnonzero(columns(outputs))
    if len(found) != 1 or int(head.v.matrix.any(1).sum()) != 1:
        raise CheckFailed("the head of a Match2 construction writes one number")
    column = outputs[:, found[0]]
    if column[0] != 0.0 or column[-1] != 0.0 or (column[1:-1] != column[1]).any() or column[1] <= 0:
        raise CheckFailed(
            "the value must be 0 at the start token and at the query, and one positive number in"
            " between"
        )
    return Fraction(float(column[1]))


def _threshold(model: Model, writers: Writers, value: Fraction) -> Fraction:
    """The output from which the answer is 1. Raises CheckFailed unless the logits are (a number,
    the output itself).
    """
    weight = array(model.head.weight)
    bias = array(model.head.bias)
    writers.allow(columns(weight), "the head", "attention 0")
    if weight[0].any() or most_terms(weight) != 1 or weight[1].sum() != 1.0 or bias[1] != 0.0:
        raise CheckFailed(
            "the logits of a Match2 construction are a threshold and the head's output"
        )
    threshold = Fraction(float(bias[0]))
    if not 0 < threshold < value:
        raise CheckFailed(
            f"the threshold {float(threshold)} does not lie between 0 and the output of a match"
        )
    return threshold


def _gaps(queries: Array, keys: Array, blank: Array) -> dict[str, Fraction]:
    """Match over blank, blank over every other key, the widest match over blank, and the largest
    sum of products, over all queries; exact.
    """
    count = len(queries)
    blanks = exact_product(queries, blank.T)[:, 0]
    # one product that float32 holds: the model computes exactly this score
    if most_terms(blank) != 1 or (blanks.astype(np.float32).astype(np.float64) != blanks).any():
        raise CheckFailed("the score of the blank key is not exact in float32")
    match = np.inf
    rest = np.inf
    widest = -np.inf
    products = 0.0
    for start in range(0, count, _ROWS):
        rows = np.arange(start, min(start + _ROWS, count))
        scores = exact_product(queries[rows], keys.T)
        row = np.arange(len(rows))
        # x + x_j = 0 mod M: the one key that must match
        partner = -rows % count
        # rounding of a score grows with the sum of the absolute values of its products
        sums = exact_product(np.abs(queries[rows]), np.abs(keys).T)
        products = max(products, float(sums.max()))
        over = exact_lead(scores[row, partner], blanks[rows])
        match = min(match, float(over.min()))
        widest = max(widest, float(over.max()))
        scores[row, partner] = -np.inf
        rest = min(rest, float(exact_lead(blanks[rows], scores.max(1)).min()))
    if match <= 0 or rest <= 0:
        raise CheckFailed(
            "some query scores a key that does not cancel it above the blank key, or the blank key"
            " above one that does"
        )
    # 2x = 0 mod M at x = 0 and, for an even M, at M/2: there the query's own key is a match. Its
    # value is 0, so its weight takes from the others', and must not exceed theirs by rounding
    own = {0, count // 2} if count % 2 == 0 else {0}
    for x in own:
        if ((queries[x] != 0.0) & (keys[x] != 0.0)).sum() != 1 or np.float32(
            queries[x] @ keys[x]
        ) != queries[x] @ keys[x]:
            raise CheckFailed(
                f"value {x} cancels itself, but the score of its match is not exact in float32"
            )
    return {
        "match_over_blank": Fraction(match),
        "blank_over_rest": Fraction(rest),
        "widest": Fraction(widest),
        "products": Fraction(products),
    }


def ids(task: TwoSum) -> list[int]:
    """Any value at every place."""
    return [task.M] * task.length


DERIVATION = Derivation(
    name="match2", task=TwoSum, derive=derive, ids=ids, largest_weight=LARGEST_WEIGHT
)

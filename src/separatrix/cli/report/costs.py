"""Costs of serving, as a card, a comparison and machines show them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from separatrix.cards.costs import CostAt, Costs, Serving
from separatrix.core.numbers.amounts import LONGEST_CONTEXT, bytes_of, format_bytes, format_count
from separatrix.stacks.architecture.weights import Weights

EXPLAINED = (
    "Decode: scores and weighted values over what the token sees, indexers, states and short"
    " convolutions. Prefill: the same for each token of a prompt, in the mean; kernels that work in"
    " chunks do somewhat more. Read: what the token takes of the cache, its own entry included;"
    " blocks and tokens that are not chosen are kept and not read, states are written back besides."
    " Where query heads share keys and choose blocks for themselves, they are taken to choose"
    " different ones."
)
"""What each row counts, in plain English."""
UNKNOWN = "not known"
ANY = "any number"
MIXING = "mixing: operations, a multiply-add counts 2, without projections, MLPs, experts and head"


def cost_rows(costs: Costs) -> list[tuple[str, Callable[[CostAt], str]]]:
    """Each cost in words, and how it is written at a context."""

    def sequences(cost: CostAt) -> str:
        if costs.serving.room is None:
            return UNKNOWN
        return ANY if cost.sequences is None else f"{cost.sequences:,}"

    rows: list[tuple[str, Callable[[CostAt], str]]] = [
        ("decode, mixing", lambda cost: format_count(cost.decode)),
        ("prefill, mixing", lambda cost: _mean(cost.prefill_each)),
        ("cache read to decode", lambda cost: _bytes(cost.fetched)),
    ]
    if costs.known is not None:
        decode, prefill = costs.known.operations(head=True), costs.known.operations(head=False)
        rows.insert(1, ("decode, whole token", lambda cost: format_count(cost.decode + decode)))
        rows.insert(3, ("prefill, whole token", lambda cost: _mean(cost.prefill_each, prefill)))
    if costs.serving.weights is not None:
        batch = costs.serving.batch
        together = f", batch of {batch:,}" if batch > 1 else ""
        rows.append((f"weights read{together}", lambda cost: _bytes(cost.weights)))
    if costs.serving.memory is not None:
        rows.append((f"sequences in {memory_text(costs.serving)}", sequences))
    return rows


def costs_notes(costs: Costs) -> list[str]:
    """What is counted, and how long the batch fits."""
    notes = [MIXING if costs.known is None else f"{MIXING}; {_whole(costs.known)}"]
    if costs.serving.memory is None:
        return notes
    weights = costs.serving.weights
    if weights is None:
        why = f" ({costs.untold})" if costs.untold else ""
        return [*notes, f"what the weights take is not known{why}: {_UNWEIGHED}"]
    if told := _BY.get(costs.serving.told):
        notes.append(f"weights of {format_bytes(weights)}, by the {told}; --weights")
    return [*notes, *serving_notes(costs), _fits(costs)]


def serving_notes(costs: Costs) -> Iterator[str]:
    """How many sequences of usual lengths fit, from which batch on caches are read more than
    weights, and what was taken of the engine.
    """
    if costs.table:
        yield ", ".join(f"{number:,} of {t >> 10}k tokens" for t, number in reversed(costs.table))
    if costs.meets is not None:
        where = "by one sequence" if costs.meets == 1 else f"from a batch of {costs.meets:,} on"
        yield f"caches are read as much as weights {where}"
    if costs.engine:
        yield costs.engine


def memory_text(serving: Serving) -> str:
    """The memory, how many cards have so much, and the share of it that is taken."""
    cards = f"{serving.cards:,} times " if serving.cards > 1 else ""
    share = "" if serving.utilisation == 1 else f"{float(serving.utilisation):.6g} of "
    return f"{share}{cards}{format_bytes(serving.memory or 0)}"


_UNWEIGHED = "--weights 16GiB, or --weights 0 for the caches alone"
_BY = {"sizes": "sizes in the file", "files": "files beside it"}


def _whole(known: Weights) -> str:
    """What a whole token adds to mixing."""
    met, total = known.read(1), known.total
    share = "" if met + known.embedding == total else f" of {format_count(total)}"
    share += ", some in several layers," if known.again else ""
    tied = f"; {known.assumed} (assumed: the file does not say)" if known.assumed else ""
    return f"whole token: and 2 for each of {format_count(met)} weights{share} that it meets{tied}"


def costs_json(costs: Costs) -> dict[str, Any]:
    """Costs as plain data: integers, and floats where bytes or means are not whole; null where
    unknown.
    """
    serving = costs.serving
    return {
        "memory_bytes": _plain(serving.memory),
        "weights_bytes": _plain(serving.weights),
        "weights_from": None if serving.weights is None else serving.told,
        "batch": serving.batch,
        "batch_fits_up_to": costs.longest,
        **_serving_json(costs),
        "weights": _weights_json(costs.known),
        **({"weights_untold": costs.untold} if serving.weights is None and costs.untold else {}),
        "contexts": [
            {
                "context": cost.context,
                "decode_flops": cost.decode,
                "prefill_flops": cost.prefill,
                "prefill_flops_per_token": _number(cost.prefill_each),
                "cache_bytes_read": _plain(cost.fetched),
                "weight_bytes_read": _plain(cost.weights),
                "cache_bytes": bytes_of(cost.kept),
                "sequences": cost.sequences,
            }
            for cost in costs.at
        ],
    }


def _serving_json(costs: Costs) -> dict[str, Any]:
    """What is said of a memory, and of an engine: where there is one."""
    serving, found = costs.serving, {}
    if serving.memory is not None:
        found["sequences_of"] = {str(t): number for t, number in costs.table}
        found["caches_meet_weights_at_batch"] = costs.meets
    if serving.engine is not None:
        found["engine"] = {
            "name": serving.engine.name,
            "date": serving.engine.date,
            "tp": serving.cards,
            "utilisation": float(serving.utilisation),
            "said": costs.engine,
        }
    return found


def _fits(costs: Costs) -> str:
    batch = costs.serving.batch
    whose = "one sequence fits" if batch == 1 else f"a batch of {batch:,} fits"
    room = costs.serving.room
    if room is not None and room <= 0:
        return f"the weights alone do not fit: {format_bytes(-room)} too little"
    if not costs.longest:
        return f"not even one token of {'a sequence' if batch == 1 else 'each sequence'} fits"
    if costs.longest == LONGEST_CONTEXT:
        return f"{whose} at every context up to 10^12 tokens"
    return f"{whose} up to {costs.longest:,} tokens"


def _mean(each: Fraction | None, more: int = 0) -> str:
    return UNKNOWN if each is None else format_count(round(each) + more)


def _weights_json(known: Weights | None) -> dict[str, Any] | None:
    """Weights that the file tells, and the operations that they add to those of mixing."""
    if known is None:
        return None
    return {
        "total": known.total,
        "met_by_a_token": known.read(1),
        "bits": None if known.stored is None else _number(Fraction(known.stored, known.total)),
        "decode_flops": known.operations(head=True),
        "prefill_flops_per_token": known.operations(head=False),
    }


def _bytes(bits: int | Fraction | None) -> str:
    return UNKNOWN if bits is None else format_bytes(round(bits))


def _plain(bits: int | Fraction | None) -> int | float | None:
    return None if bits is None else bytes_of(bits)


def _number(value: Fraction | None) -> int | float | None:
    if value is None:
        return None
    return value.numerator if value.denominator == 1 else float(value)

"""What each construction takes: which of those that theorems speak of `separatrix construct` writes
down today, and up to which sizes. Recipes are named, since theory may not import them (a contract
test compares).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from separatrix.core.errors import SizeError
from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.formats import DIGITS
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Eva, SeqComp, Task, TwoSum, parse_task
from separatrix.tasks.tracking import tracked
from separatrix.theory.solves.contents import MATCH_LIMIT
from separatrix.theory.written import Slot, slots, ways


class Fit(NamedTuple):
    """What stands behind a construction that a theorem speaks of."""

    theorem: str
    """Its key."""
    recipes: dict[str, tuple[str, ...]]
    """Task, with its form where the construction is for one -> recipes that `construct` has."""
    full_only: bool = True
    """Whether the construction is for full attention alone."""

    def of(self, task: Task) -> tuple[str, ...] | None:
        """The recipes for a task; None where the construction is for others."""
        named = (task.name, f"{task.name}:{getattr(task, 'form', '')}")
        return next((self.recipes[name] for name in named if name in self.recipes), None)


def _alike(names: tuple[str, ...], *recipes: str) -> dict[str, tuple[str, ...]]:
    return dict.fromkeys(names, recipes)


FITS: tuple[Fit, ...] = (
    Fit("retrieval", {"eva": ("retrieval",), "index": ("index",)}, full_only=False),
    Fit("block-retrieval", {"eva": ("sparse-retrieval",), "index": ()}),
    Fit("indexed-retrieval", {"eva": ("indexed-retrieval",), "index": ()}),
    Fit("lookup", _alike(("mqar", "noisy-recall", "cgram"))),
    Fit("recall", {"recall": ("recall",), "mqar": ("mqar",)}),
    Fit(
        "last-layer",
        {"recall": ("carried-recall",), "mqar": ("carried-mqar",), "cgram": ("cgram",)},
    ),
    Fit("copying", _alike(("copying",))),
    Fit("counting", _alike(("counting",), "counting")),
    Fit("qsa", _alike(("qsa",), "qsa")),
    Fit("composition", _alike(("seqcomp",), "seqcomp", "carried")),
    Fit("thought", _alike(("thought:pairs",), "thought")),
    Fit("match2", _alike(("twosum:query",), "match2", "match2-bits")),
    Fit("pairs", _alike(("twosum:decision",), "pairs")),
    Fit("equality", _alike(("equality",), "equality")),
    Fit("neighbour", _alike(("neighbour",), "neighbour")),
    Fit("k-hop", _alike(("khop",), "khop")),
    Fit("encoder", _alike(("seqcomp",), "encoder")),
    Fit("tightness", _alike(("eva",), "automaton")),
    Fit("brackets", _alike(("dyck",), "brackets")),
    Fit("S", _alike(("parity", "modular", "permutation", "group"))),
    Fit(
        "state-tracking",
        {name: (name,) for name in ("parity", "modular", "group")}
        | {"permutation": ("permutation", "swaps")},
    ),
)
"""In the order in which the nearest construction for a task is named."""
_OF = {fit.theorem: fit for fit in FITS}
BUILT = {
    fit.theorem: tuple(dict.fromkeys(sum(fit.recipes.values(), ())))
    for fit in FITS
    if any(fit.recipes.values())
}
"""Key of a theorem -> recipes that it stands behind. What is missing here is not built yet."""
EXACT = ("brackets", "state-tracking")
"""Those of which nothing is rounded, in whatever formats hold the answers."""
MOST_FOLLOWED = 43
"""Things that the recipes for state tracking follow at most: of more, the sums of a chunk are not
shown to fit in float32.
"""
NOT_BUILT = "not built yet"
TOKEN_SHIFT = "a token shift fixes the model's width, which may be too narrow"
ROUNDED = "rounding to 16 bits may eat the lead of a place: only a proof of the weights tells"
"""Where a card promises nothing, and `construct` may build."""
MOST_LISTED = 1 << 20
"""Inputs that the recipe `automaton` lists at most."""
LARGEST_MODULUS = MATCH_LIMIT["fp32"]
"""The largest M that the recipe `match2` takes, written for float32; beyond, `match2-bits`."""


def fitting(task: Task) -> Fit | None:
    """The nearest construction for a task; None where none is known."""
    return next((fit for fit in FITS if fit.of(task) is not None), None)


def built_by(verdict: Verdict) -> tuple[str, ...]:
    """The recipe that writes down what a verdict says exists, for its task, in its stack; empty
    where none does.
    """
    return written(verdict)[0]


def written(verdict: Verdict) -> tuple[tuple[str, ...], str]:
    """The same, and why no recipe writes down what a verdict says exists: what `construct` says."""
    if verdict.status != "SOLVABLE" or verdict.theorem not in _OF:
        return (), ""
    task = parse_task(verdict.task)
    stack = Architecture.parse(verdict.architecture)
    if any(part.model_width is not None for layer in stack for part in layer):
        return (), TOKEN_SHIFT
    reason = NOT_BUILT
    for seen, form in ways(stack):
        for recipe in _OF[verdict.theorem].of(task) or ():
            try:
                _check_sizes(recipe, task, form)
                _check_leads(slots(recipe, task, seen, form), task, form)
            except SizeError as error:
                reason = str(error)
            else:
                return (recipe,), ""
    return (), reason


def _check_leads(found: Sequence[Slot], task: Task, form: str) -> None:
    """Raises SizeError for what only a proof of the weights can tell: `construct` tries it, a card
    promises nothing.
    """
    if isinstance(task, SeqComp) and form != "fp32" and any(slot.lead for slot in found):
        raise SizeError(ROUNDED)


def _check_sizes(recipe: str, task: Task, form: str) -> None:
    if recipe == "match2" and isinstance(task, TwoSum) and MATCH_LIMIT[form] < task.M:
        raise SizeError(f"{task.spec}: {form} tells at most M = {MATCH_LIMIT[form]:,} values apart")
    if recipe == "automaton" and isinstance(task, Eva) and task.n * task.V**task.n > MOST_LISTED:
        raise SizeError(f"{task.spec}: more inputs than can be listed, {MOST_LISTED:,}")
    moved = tracked(task)
    if moved is not None and moved.things > MOST_FOLLOWED:
        raise SizeError(f"{task.spec}: at most {MOST_FOLLOWED} things are shown to be followed")


def in_construct(verdict: Verdict) -> str:
    """The same for a card: that `construct` makes a construction; "" where it is not known to."""
    if not built_by(verdict):
        return ""
    exact = verdict.theorem in EXACT and not _rounds(verdict)
    return f"`construct` builds it{', exactly' if exact else ' in float32'}"


def _rounds(verdict: Verdict) -> bool:
    """Whether a format of the layer is too narrow for the recipe's answers: turns of a cycle of q
    things are told apart by numbers up to 3/2 (q - 1)^2 in halves.
    """
    moved = tracked(parse_task(verdict.task))
    if moved is None or len(moved.followed) > len(moved.blocks):
        return False
    layer = Architecture.parse(verdict.architecture).layers[verdict.numbers["layer"]]
    formats = [name for part in layer if part.turning is not None for name in part.formats]
    halves = 3 * sum((length - 1) ** 2 for length in moved.blocks)
    return halves > 1 << min(DIGITS[name] for name in formats)

"""What each construction takes: which of those that theorems speak of `separatrix construct` writes
down today, and up to which sizes. Recipes are named, since theory may not import them (a contract
test compares).
"""

from __future__ import annotations

from typing import NamedTuple

from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.formats import DIGITS, NumberFormat
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Mechanism
from separatrix.tasks import (
    CGram,
    Counting,
    Dyck,
    Equality,
    Eva,
    SeqComp,
    Task,
    TwoSum,
    parse_task,
)
from separatrix.tasks.tracking import tracked
from separatrix.theory.base import SEEN_WHOLE
from separatrix.theory.solves.places import BY_ROTATIONS, finders, full_heads
from separatrix.theory.solves.room import EMBEDDED, bits_of

AROUND_HEADS = frozenset({"conv", "qk_norm", "rope", "rope_dim", "rope_scaling", "sink", "gate"})
"""Options of a head that recipes write around, where they do."""
_PLAIN = ("full", "sparse")
_WRITTEN = (*_PLAIN, "mla", "fox")
"""Mechanisms whose heads see every token, where recipes write around options."""
_COMPARING = (*_PLAIN, "fox")
"""The same where numbers of unlike size are compared, which no latent keeps apart."""
_COMPARED = AROUND_HEADS - {"qk_norm"}


class Fit(NamedTuple):
    """What stands behind a construction that a theorem speaks of."""

    theorem: str
    """Its key."""
    recipes: dict[str, tuple[str, ...]]
    """Task, with its form where the construction is for one -> recipes that `construct` has."""
    around: frozenset[str] = frozenset()
    """Options of heads that they write around; of other options they write none."""
    heads: tuple[str, ...] = _PLAIN
    """Mechanisms that they write heads for."""
    offsets: bool = False
    """Whether they ask for offsets where rotations alone tell places."""
    full_only: bool = True
    """Whether the construction is for full attention alone."""

    def of(self, task: Task) -> tuple[str, ...] | None:
        """The recipes for a task; None where the construction is for others."""
        named = (task.name, f"{task.name}:{getattr(task, 'form', '')}")
        return next((self.recipes[name] for name in named if name in self.recipes), None)


def _alike(names: tuple[str, ...], *recipes: str) -> dict[str, tuple[str, ...]]:
    return dict.fromkeys(names, recipes)


FITS: tuple[Fit, ...] = (
    Fit(
        "retrieval",
        {"eva": ("retrieval",), "index": ("index",)},
        around=AROUND_HEADS,
        heads=_WRITTEN,
        offsets=True,
        full_only=False,
    ),
    Fit("block-retrieval", {"eva": ("sparse-retrieval",), "index": ()}),
    Fit("indexed-retrieval", {"eva": ("indexed-retrieval",), "index": ()}, heads=("indexed",)),
    Fit("lookup", _alike(("mqar", "noisy-recall", "cgram"))),
    Fit("recall", {"recall": ("recall",), "mqar": ("mqar",)}, around=frozenset({"conv"})),
    Fit(
        "last-layer",
        {"recall": ("carried-recall",), "mqar": ("carried-mqar",), "cgram": ("cgram",)},
    ),
    Fit("copying", _alike(("copying",))),
    Fit("counting", _alike(("counting",), "counting")),
    Fit("qsa", _alike(("qsa",), "qsa")),
    Fit(
        "composition",
        _alike(("seqcomp",), "seqcomp", "carried"),
        around=AROUND_HEADS,
        heads=_WRITTEN,
        offsets=True,
    ),
    Fit("thought", _alike(("thought:pairs",), "thought")),
    Fit(
        "match2",
        _alike(("twosum:query",), "match2", "match2-bits"),
        around=_COMPARED,
        heads=_COMPARING,
    ),
    Fit("pairs", _alike(("twosum:decision",), "pairs"), around=_COMPARED, heads=_COMPARING),
    Fit("equality", _alike(("equality",), "equality"), around=_COMPARED, heads=_COMPARING),
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
_BUILDABLE = ("embedded", "none")
"""Positions of the models that weights are written into."""
_LAYERS = ("layer", "first", "second")
"""How verdicts name the layers that they are about; others are about all."""
MOST_LISTED = 1 << 20
"""Inputs that the recipe `automaton` lists at most."""
CIRCLE = 3
"""Key dimensions of the recipe `match2`."""
CARRIERS = frozenset(
    {
        "linear",
        "lightning",
        "retnet",
        "gla",
        "hgrn2",
        "deltanet",
        "gdn",
        "deltaproduct",
        "kda",
        "mlstm",
        "rwkv",
        "loglinear",
        "mamba",
        "mamba2",
        "rglru",
        "shortconv",
        "window",
    }
)
"""Mechanisms that the recipe `carried` takes to hand a value on."""
LARGEST_MODULUS = 5754
"""The largest M that the recipe `match2` takes, written for float32; beyond, `match2-bits`. About
pi / sqrt(5 u) for float32's u = 2^-24 (theory.md, section 6): beyond, rounding of scores eats the
gap.
"""


def fitting(task: Task) -> Fit | None:
    """The nearest construction for a task; None where none is known."""
    return next((fit for fit in FITS if fit.of(task) is not None), None)


def built_by(verdict: Verdict) -> tuple[str, ...]:
    """The recipes that write down what a verdict says exists, for its task, in a float32 stack of
    its kind; empty where none does.
    """
    if verdict.status != "SOLVABLE" or verdict.theorem not in BUILT:
        return ()
    if SEEN_WHOLE in verdict.assumptions:  # recipes write nothing into windows
        return ()
    if not _takes_weights(Architecture.parse(verdict.architecture)):
        return ()
    task = parse_task(verdict.task)
    if verdict.theorem == "encoder":
        return BUILT[verdict.theorem]
    if verdict.theorem == "state-tracking":
        return _tracked(verdict, task)
    if isinstance(task, SeqComp):
        return _composed(verdict, task)
    if verdict.theorem == "tightness":
        # found from all inputs
        listed = isinstance(task, Eva) and task.n * task.V**task.n <= MOST_LISTED
        return BUILT["tightness"] if listed else ()
    if not _writable(verdict):
        return ()
    recipes = _OF[verdict.theorem].of(task) or ()
    if isinstance(task, Dyck | Counting | CGram):
        positions = Architecture.parse(verdict.architecture).positions
        return recipes if positions in _BUILDABLE else ()
    if isinstance(task, TwoSum):
        return _matched(verdict, task)
    if not _finds_places(verdict):
        return ()
    if isinstance(task, Equality):
        flags = _still(Architecture.parse(verdict.architecture), verdict.numbers["second"])
        return recipes if flags else ()
    return recipes


def _takes_weights(architecture: Architecture) -> bool:
    """Whether every layer has a mixer as declared, none fixes the model's width, and all declare
    float32, more, or one narrower format in which programs compute.
    """
    parts = [part for layer in architecture for part in layer if part.mixes_tokens]
    if any(part.declared_only or not getattr(part, "running_max", True) for part in parts):
        return False
    if any(part.model_width is not None for part in parts):
        return False
    names = {part.format for part in parts}
    narrow = names | {part.sizes().get("state_format") or part.format for part in parts}
    narrow -= {"fp32", "fp64"}
    return len(narrow) <= 1 and not narrow & {"fp8", "int8"}


def _writable(verdict: Verdict) -> bool:
    """Whether the layers that a verdict is about are attention that the theorem's recipes write
    heads for, with no other options than they write around.
    """
    layers = Architecture.parse(verdict.architecture).layers
    named = [verdict.numbers[key] for key in _LAYERS if key in verdict.numbers]
    about = [layers[index] for index in named] if named else layers
    parts = [part for layer in about for part in layer if part.reading]
    fit = _OF[verdict.theorem]
    return all(part.altered <= fit.around and part.name in fit.heads for part in parts)


def _finds_places(verdict: Verdict) -> bool:
    """Whether recipes write what finds the places: addresses in embeddings, or, for looking up and
    for composing, offsets by rotations alone; none counts.
    """
    sources = [said for said in verdict.assumptions if said.startswith("positions:")]
    if _OF[verdict.theorem].offsets:
        return all(said == EMBEDDED or said.startswith(BY_ROTATIONS) for said in sources)
    addressed = {"address_bits", "key_bits"} & set(verdict.numbers)
    return EMBEDDED in verdict.assumptions and bool(addressed)


def _matched(verdict: Verdict, task: TwoSum) -> tuple[str, ...]:
    """`pairs` for the decision; per query `match2` while float32 tells the points of a circle
    apart, else `match2-bits` where keys have room for the bits of a value and one number more.
    """
    architecture = Architecture.parse(verdict.architecture)
    if architecture.positions not in _BUILDABLE:
        return ()
    if verdict.theorem != "match2":
        return BUILT[verdict.theorem] if _still(architecture, verdict.numbers["second"]) else ()
    circle, bits = BUILT["match2"]
    if any(part.name == "mla" for layer in architecture for part in layer):
        # it would be placed there, where nothing proves it
        return ()
    if verdict.numbers["dimensions"] == CIRCLE and task.M <= LARGEST_MODULUS:
        return (circle,)
    return (bits,) if _still(architecture, verdict.numbers["layer"]) > bits_of(task.M) else ()


def _still(architecture: Architecture, layer: int) -> int:
    """The most key dimensions of a layer's heads that no rotation turns."""
    return max(one.content_dims for one in full_heads(architecture) if one.layer == layer)


def _composed(verdict: Verdict, task: SeqComp) -> tuple[str, ...]:
    """`seqcomp` where a full layer is to spare for z_0, else `carried` where it takes the layer
    that hands z_0 on.
    """
    architecture = Architecture.parse(verdict.architecture)
    rotated = any(said.startswith(BY_ROTATIONS) for said in verdict.assumptions)
    if rotated and any(part.p < 32 for layer in architecture for part in layer if part.reading):
        # half formats eat the lead of the place asked for, at some sizes and behind gates
        return ()
    written = _composing(architecture, task)
    if len(written) > task.L:
        return ("seqcomp",)
    if len(written) < task.L or architecture.positions != "embedded":
        # the bounded layer finds z_0 by an embedding of its place
        return ()
    first, *later = sorted(written)
    end = later[0] if later else len(architecture.layers)
    ways = [(bits_of(task.m), architecture.layers[:first])]
    if written[first]:
        # by rotations alone it is the last token that asks, whose place is known
        ways.append((bits_of(task.entries(1)), architecture.layers[first + 1 : end]))
    for bits, layers in ways:
        if any(hands_on(part, bits) for layer in layers for part in layer):
            return ("carried",)
    return ()


def _composing(architecture: Architecture, task: SeqComp) -> dict[int, bool]:
    """The layers with heads that recipes write to find an entry by its place, and whether they do
    by its address.
    """
    payload = bits_of(task.N(task.L - 1))
    heads = finders(architecture, address=payload + task.L + 1, payload=payload, tokens=task.length)
    written: dict[int, bool] = {}
    for one, found in heads:
        if one.part.name in _WRITTEN and not one.part.altered - AROUND_HEADS and not found.counted:
            written[one.layer] = written.get(one.layer, True) and found.address > 0
    return written


def hands_on(part: Mechanism, bits: int) -> bool:
    """Whether weights are known with which a mechanism hands that many bits, in float32, from the
    place of one token to the next token.
    """
    state = NumberFormat(part.sizes().get("state_format") or part.format)
    if not part.carries(bits) or part.name not in CARRIERS or min(part.p, state.bits) < 32:
        return False
    sizes = part.sizes()
    if part.name == "window":
        # all options but a cap of scores, and some dimension that is not turned
        turned = 0 if part.rotation is None else part.rotation.dims
        return part.altered <= AROUND_HEADS and turned < sizes["head_dim"]
    if part.name == "mamba":
        # without a convolution over tokens it marks the place in one channel more
        return sizes["conv"] >= 2 or (sizes["width"] > bits and not sizes["norms"])
    return not (part.name == "lightning" and sizes["rotated"])


def _tracked(verdict: Verdict, task: Task) -> tuple[str, ...]:
    """The recipe of the task's name, or `swaps` where two heads share the work, in a layer without
    convolution and gate.
    """
    architecture = Architecture.parse(verdict.architecture)
    turning = [part.turning for part in architecture.layers[verdict.numbers["layer"]]]
    bare = any(one is not None and one.bare for one in turning)
    if not bare or architecture.positions not in _BUILDABLE:
        return ()
    if verdict.numbers["things"] > MOST_FOLLOWED:
        return ()
    return ("swaps" if verdict.numbers["heads"] == 2 else task.name,)


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

"""Where a layer's tokens know their places from, and how queries and keys are normed: by the fields
of the file and, where a model class fixes it, by its row (`Row.way`, `Row.norm`), as transformers
defines that class. What neither says is unknown, and a note says so.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Self

from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.stacks.architecture.hf.fields import (
    LARGEST,
    Draft,
    Fields,
    Layers,
    Unknown,
    Value,
    mapped,
    shown,
)
from separatrix.stacks.architecture.hf.rotary_fields import (
    BASES,
    INTERVALS,
    LISTS,
    NAMES,
    OBJECTS,
    SHARED,
    NotRead,
    Spot,
    Turned,
    Usual,
    turned,
)
from separatrix.stacks.architecture.hf.sizes import parsed, value_of
from separatrix.stacks.architecture.settings import Settings
from separatrix.stacks.mechanisms import (
    Chunked,
    Compressed,
    LatentCache,
    Mechanism,
    ReusedWindow,
    Window,
)
from separatrix.stacks.mechanisms.base import POSITIONS

ROTATING = ("no_rope_layers", "rope_layout", "use_rope_layers")
"""Lists with one entry per layer: 1 where it rotates, 0 where it does not."""
_EMBEDDINGS: dict[str, str] = {
    **dict.fromkeys(("absolute", "learned", "learned_absolute", "sinusoidal"), "embedded"),
    **dict.fromkeys(("nope", "none"), "none"),
    "alibi": "alibi",
}
"""`position_embedding_type` -> where places come from."""
_SAID_BY = ("rope_theta", "rope_parameters", "rope_scaling", "rotary_emb_base")

Rule = Callable[[Spot], bool | str]
"""What a model class makes of one of its layers: whether it rotates; where its places come from
instead, or why that is unknown.
"""


# ---- rules


def rotary(spot: Spot, usual: int = 0) -> bool:
    """Every layer rotates, but those that a file leaves out, or one of `usual` if it is silent."""
    for name in ROTATING:
        if name in spot.lists:
            return bool(spot.lists[name][spot.index])
    name = spot.find(*INTERVALS)
    if name is None and usual:
        spot.fields.assume(f"every {usual}th layer without rotation")
    by = usual if name is None else spot.fields.needed(name)
    return not by or (spot.index + 1) % by != 0


def _in_windows_or_dense(spot: Spot) -> bool:
    """And full layers with a dense MLP where those before the experts do not slide (Cohere 2 with
    experts).
    """
    types = json_list(spot.fields.value("mlp_layer_types")) or []
    first = spot.fields.optional_size("first_k_dense_replace", low=0) or 0
    dense = types[spot.index] == "dense" if spot.index < len(types) else spot.index < first
    unslid = spot.fields.optional_size("prefix_dense_sliding_window_pattern") in (None, 1)
    return spot.local or (dense and unslid)


def _unless_null(spot: Spot) -> bool:
    """Every layer rotates, unless the file has the fields of a rotation and no base in them (OLMo
    hybrid, whose releases switch it off so).
    """
    there = any(name in spot.fields.data for name in ("rope_parameters", "rope_theta"))
    return not there or "rope_theta" in spot.own or spot.find("rope_theta") is not None


def _fla(spot: Spot) -> bool:
    """Attention layers of flash-linear-attention: the object `attn`, which may switch it off."""
    name = spot.find("use_rope")
    return name is None or spot.fields.flag(name) is not False


def _said(spot: Spot) -> bool | str:
    """Of a model type that has no row: what the fields say by themselves."""
    kind = spot.fields.value("position_embedding_type")
    if isinstance(kind, str) and kind in _EMBEDDINGS:
        return _EMBEDDINGS[kind]
    name = spot.find("alibi")
    if name is not None and spot.fields.flag(name):
        return "alibi"
    if kind not in (None, "rope", "rotary"):
        return f"'position_embedding_type' is {shown(kind)}"
    if spot.find(*_SAID_BY) is None:
        return f"{', '.join(repr(name) for name in _SAID_BY)} are missing"
    return rotary(spot)


RULES: dict[str, Rule] = {
    "rotary": rotary,
    "every_fourth_without": partial(rotary, usual=4),
    "in_windows": lambda spot: spot.local,
    "in_windows_or_dense": _in_windows_or_dense,
    "unless_null": _unless_null,
    "none": lambda spot: False,
    "fla": _fla,
    "said": _said,
}
"""What model classes make of their layers, as the table calls it."""


def _ruled(node: ast.expr, spot: Spot) -> bool | str:
    """What a rule of the table makes of a layer: one of these, or what is said of its fields."""
    if isinstance(node, ast.IfExp):
        return _ruled(node.body if value_of(node.test, spot.fields) else node.orelse, spot)
    if isinstance(node, ast.Name):
        return RULES[node.id](spot)
    said = value_of(node, spot.fields)
    if isinstance(said, Unknown):
        return said.looked_for[0]
    return said if isinstance(said, str) else bool(said)


@dataclass(frozen=True, kw_only=True)
class Way(Usual):
    """Which layers of a model class rotate, and its defaults."""

    rule: str = "rotary"
    softcap: int = 0
    bounded: bool = False
    """Whether the class scales queries and keys to one length that no weight changes."""
    bounds: bool = False
    """Whether it does so in layers that rotate, unless `use_qk_norm` is false."""
    entered: str = "unknown"
    """Where places come from as tokens enter, where no layer attends."""
    gate: str = "none"
    """The gate of the heads' outputs, unless `attn_output_gate` is false."""

    @classmethod
    def of(cls, said: str) -> Self:
        """As the table writes it: the rule, and what the class takes with the sizes of `Usual`."""
        call = ast.parse(f"way({said.strip()})", mode="eval").body
        assert isinstance(call, ast.Call)
        given = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
        return cls(rule=ast.unparse(call.args[0]) if call.args else "rotary", **given)

    def seen(self, spot: Spot) -> Turned | str:
        """The rotation of a layer, or where its places come from instead. Raises ConfigError for
        fields of positions that are of the wrong type, length or range.
        """
        said = _ruled(parsed(self.rule), spot)
        if isinstance(said, str):
            return said if said in POSITIONS else _unknown(spot, said)
        unturned = BASES in spot.lists and spot.lists[BASES][spot.index] == 0
        counted = spot.rotated if said else None
        if not said or unturned or (counted and spot.fields.size(counted, low=0) == 0):
            return "none"
        if self.counted and counted is None:
            return _unknown(spot, f"'{SHARED}' is missing")
        try:
            found = turned(spot, self)
        except NotRead as why:
            return _unknown(spot, str(why))
        if self.rule == "said":
            spot.fields.note(
                "rotation in attention layers by the usual fields (assumed): this model type is not"
                " known"
            )
        return found


USUAL = Way()


def _unknown(spot: Spot, why: str) -> str:
    spot.fields.note(f"positions: the file does not say in a way that is read: {why}")
    return "unknown"


# ---- norms of queries and keys

_FLAGS = (
    *("use_qk_norm", "qk_norm", "qk_layernorm", "use_qk_layernorm", "qk_layer_norms", "qk_ln"),
    *("use_query_key_norm", "query_key_norm"),
)
"""How files call the flag of a norm of queries and keys."""


def query_norm(norm: str, fields: Fields) -> str:
    """The size `qk_norm` of attention layers, as the row says; else by a flag: a true one says
    that there is a norm, and not which.
    """
    if norm:
        return str(value_of(norm, fields))
    flags = (name for name in fields.data if name.rpartition(".")[2] in _FLAGS)
    return "other" if any(fields.data[name] is True for name in flags) else "none"


_CAPS = ("attn_logit_softcapping", "attn_logit_softcap")
_WORDS: dict[type[Mechanism], tuple[str, ...]] = {
    Window: ("sliding_attention", "main"),
    ReusedWindow: ("sliding_attention", "main"),
    Chunked: ("chunked_attention",),
    Compressed: ("compress",),
}
"""How files call a kind of layer; full_attention where it is not listed."""


def placed(layers: Layers, file: Fields, settings: Settings, way: Way, norm: str) -> Layers:
    """The layers with the positions of every layer that mixes tokens, as the fields and `way`
    say. Raises ConfigError for fields of positions that are of the wrong type, length or range.
    """
    # a base of layers that are not there, a factor that an object says too: nothing else reads them
    prefixes = ("", *(f"{name}." for name in OBJECTS))
    file.harmless(*(prefix + name for prefix in prefixes for name in NAMES))
    if not any(_has(draft.cls, "positions") for layer in layers for draft in layer):
        return layers
    lists = _lists(file, len(layers))
    among = {draft.cls.name for layer in layers for draft in layer}
    layers = mapped(layers, _opened)
    # layers that share a draft share it afterwards too, unless their positions differ
    made: dict[tuple[int, Turned | str], Draft] = {}

    def attending(draft: Draft, index: int) -> Draft:
        if not _attends(draft):
            return draft
        size = settings.over(draft.cls, draft.sizes, among).get(
            "rope_dim" if issubclass(draft.cls, LatentCache) else "head_dim"
        )
        words = _WORDS.get(draft.cls, ("full_attention",))
        known = size if isinstance(size, int) else None
        seen = way.seen(Spot(draft.file, lists, index, words, known))
        return made.setdefault((id(draft), seen), _with(draft, seen, way, norm))

    found = tuple(
        tuple(attending(draft, index) for draft in layer) for index, layer in enumerate(layers)
    )
    embedding = _embedding(found, way)

    def entered(draft: Draft) -> Draft:
        # recurrences and convolutions know what the tokens of the stack know
        placed = _has(draft.cls, "positions") and not _attends(draft)
        return replace(draft, sizes={"positions": embedding, **draft.sizes}) if placed else draft

    return mapped(found, entered)


def _opened(draft: Draft) -> Draft:
    """The same, with the object that holds the fields of its attention open."""
    objects = (name for name in OBJECTS[:-1] if json_object(draft.file.data.get(name)) is not None)
    name = next(objects, None)
    return draft if name is None else replace(draft, file=draft.file.section(name))


def _attends(draft: Draft) -> bool:
    """Whether its layer is attention, which may look at places by itself."""
    return _has(draft.cls, "positions") and _has(draft.cls, "rope")


def _embedding(layers: Layers, way: Way) -> str:
    """Where places come from as tokens enter the stack: what its attention layers say; where there
    are none, what is known of the model class.
    """
    said = {draft.sizes["positions"] for layer in layers for draft in layer if _attends(draft)}
    if said:
        return next(way for way in (*POSITIONS[:0:-1], "embedded") if way in said)
    return "none" if way.rule == "none" else way.entered


def _lists(file: Fields, layers: int) -> dict[str, list[Any]]:
    """The fields that hold an entry per layer. Raises ConfigError for another length or entry."""
    found: dict[str, list[Any]] = {}
    for name in (*ROTATING, *LISTS):
        value = file.value(name)
        # a base may be one for all
        if value in (None, []) or (name == "rope_theta" and json_list(value) is None):
            continue
        found[name] = file.each_layer(name, layers)
        if name in ROTATING:
            file.check_entries(name, found[name], _is_switch, "be one of 1, 0")
    return found


def _is_switch(entry: Any) -> bool:
    # 1.0 equals 1
    return type(entry) in (int, bool) and entry in (0, 1)


def _cap(file: Fields, cls: type[Mechanism], usual: int) -> int:
    """What scores are capped at, 0 where they are not."""
    name = file.find(*_CAPS)
    if name is None:
        if not usual or any(cap in file.data for cap in _CAPS):
            return 0
        file.assume(f"attention scores capped at {usual}")
        return usual
    value = file.data[name]
    if type(value) not in (int, float) or not 1 <= value <= LARGEST or value != int(value):
        raise file.wrong(name, f"be a whole number from 1 to {LARGEST:,}")
    if not _has(cls, "softcap"):
        raise file.error(f"'{name}' is there, but scores of '{cls.name}' are not capped; remove it")
    return int(value)


def _clipped(file: Fields) -> bool:
    """Whether queries, keys and values are clipped at a number of the file."""
    found = [value for name, value in file.data.items() if name.rpartition(".")[2] == "clip_qkv"]
    return any(value is not None for value in found)


def _with(draft: Draft, seen: Turned | str, way: Way, norm: str) -> Draft:
    """The draft with what is known of its positions, and of what stands around its softmax; what it
    has already wins.
    """
    file, turned = draft.file, isinstance(seen, Turned)
    sizes: dict[str, Value] = {"rope": turned}
    if not isinstance(seen, Turned):
        sizes["positions"] = seen
    else:
        sizes["positions"] = "none"
        sizes |= {"rope_base": seen.base, "rope_scaling": seen.scaling}
        sizes |= {} if issubclass(draft.cls, LatentCache) else {"rope_dim": seen.dims}
    if cap := _cap(file, draft.cls, way.softcap):
        sizes["softcap"] = cap
    bounds = way.bounds and turned and file.flag("use_qk_norm") is not False
    ungated = any(file.flag(name) is False for name in ("attn_output_gate", "use_attention_gate"))
    around: dict[str, Value] = {
        "bounded": way.bounded or _clipped(file) or bounds,
        "qk_norm": query_norm(norm, file),
        "gate": "none" if ungated else way.gate,
    }
    sizes |= {
        name: what
        for name, what in around.items()
        if what not in (False, "none") and _has(draft.cls, name)
    }
    return replace(draft, sizes={**sizes, **draft.sizes})


def _has(cls: type[Mechanism], size: str) -> bool:
    return any(field.name == size for field in fields(cls))

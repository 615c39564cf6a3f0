"""How a model class gives its layers places: which of them rotate, and what it takes where a file
is silent. What neither says is unknown, and a note says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

from separatrix.core.evidence.canonical import json_list
from separatrix.stacks.architecture.hf.fields import shown
from separatrix.stacks.architecture.hf.rotary_fields import (
    BASES,
    SHARED,
    Spot,
    Turned,
    Usual,
    turned,
)

ROTATING = ("no_rope_layers", "rope_layout", "use_rope_layers")
"""Lists with one entry per layer: 1 where it rotates, 0 where it does not."""
INTERVALS = ("no_rope_layer_interval", "nope_layer_interval")
"""Every so many layers, one does not rotate."""
_EMBEDDINGS: dict[str, str] = {
    **dict.fromkeys(("absolute", "learned", "learned_absolute", "sinusoidal"), "embedded"),
    **dict.fromkeys(("nope", "none"), "none"),
    "alibi": "alibi",
}
"""`position_embedding_type` -> where places come from."""
_SAID_BY = ("rope_theta", "rope_parameters", "rope_scaling", "rotary_emb_base")


class Seen(NamedTuple):
    """What is known of one layer."""

    positions: str
    turned: Turned | None = None
    notes: tuple[str, ...] = ()


def unknown(why: str) -> Seen:
    return Seen(
        "unknown", None, (f"positions: the file does not say in a way that is read: {why}",)
    )


Rule = Callable[[Spot, Usual], Seen]
"""What a model class makes of one of its layers."""


def rotary(spot: Spot, usual: Usual) -> Seen:
    """Every layer rotates, but those that the file leaves out."""
    for name in ROTATING:
        if name in spot.lists:
            return _turned(spot, usual) if spot.lists[name][spot.index] else Seen("none")
    name = spot.find(*INTERVALS)
    if name is not None:
        every = spot.fields.needed(name)
        return Seen("none") if (spot.index + 1) % every == 0 else _turned(spot, usual)
    return _turned(spot, usual)


def _turned(spot: Spot, usual: Usual) -> Seen:
    if BASES in spot.lists and spot.lists[BASES][spot.index] == 0:
        return Seen("none")
    if spot.rotated is not None and spot.fields.size(spot.rotated, low=0) == 0:
        return Seen("none")
    if usual.counted and spot.rotated is None:
        return unknown(f"'{SHARED}' is missing")
    found = turned(spot, usual)
    return unknown(found) if isinstance(found, str) else Seen("none", found, found.notes)


def every_fourth_without(spot: Spot, usual: Usual) -> Seen:
    """As `rotary`; where the file does not say, every fourth layer does not rotate."""
    if any(name in spot.lists for name in ROTATING) or spot.find(*INTERVALS) is not None:
        return rotary(spot, usual)
    note = (
        "every 4th layer without rotation (assumed): the file does not say, and transformers"
        " takes 4"
    )
    seen = Seen("none") if (spot.index + 1) % 4 == 0 else _turned(spot, usual)
    return seen._replace(notes=(note, *seen.notes))


def in_windows(spot: Spot, usual: Usual) -> Seen:
    """Sliding layers rotate, the others do not."""
    return _turned(spot, usual) if spot.local else Seen("none")


def in_windows_or_dense(spot: Spot, usual: Usual) -> Seen:
    """As `in_windows`, and in full layers with a dense MLP where those before the experts do not
    slide (Cohere 2 with experts).
    """
    types = json_list(spot.fields.value("mlp_layer_types")) or []
    first = spot.fields.optional_size("first_k_dense_replace", low=0) or 0
    dense = types[spot.index] == "dense" if spot.index < len(types) else spot.index < first
    unslid = spot.fields.optional_size("prefix_dense_sliding_window_pattern") in (None, 1)
    return _turned(spot, usual) if dense and unslid else in_windows(spot, usual)


def in_windows_if_any(spot: Spot, usual: Usual) -> Seen:
    """As `in_windows` where the file has a window; else every layer rotates."""
    return in_windows(spot, usual) if spot.fields.has("sliding_window") else rotary(spot, usual)


def where(field: str, *, otherwise: bool | None = None) -> Rule:
    """Every layer rotates, if the flag `field` is true; `otherwise` where it is absent."""

    def rule(spot: Spot, usual: Usual) -> Seen:
        name = spot.find(field)
        said = spot.fields.flag(name or field)
        notes: tuple[str, ...] = ()
        if said is None and otherwise is None:
            return unknown(f"'{field}' is missing")
        if said is None:
            said = otherwise
            what = "rotation" if otherwise else "no rotation"
            notes = (
                f"{what} in attention layers (assumed): '{field}' does not say, and transformers"
                " takes it so",
            )
        seen = _turned(spot, usual) if said else Seen("none")
        return seen._replace(notes=(*notes, *seen.notes))

    return rule


def unless(field: str) -> Rule:
    """No layer rotates, unless the flag `field` is false."""

    def rule(spot: Spot, usual: Usual) -> Seen:
        return _turned(spot, usual) if spot.fields.flag(field) is False else Seen("none")

    return rule


def always(positions: str) -> Rule:
    """The class fixes it."""
    return lambda spot, usual: Seen(positions)


unplaced = always("none")
"""Tokens enter the stack without their places, and no layer adds them."""


def by_type(spot: Spot, usual: Usual) -> Seen:
    """`position_embedding_type`: rope, or anything else for none (Granite 4)."""
    kind = spot.fields.value("position_embedding_type")
    if kind is not None and not isinstance(kind, str):
        raise spot.fields.error(
            f"'position_embedding_type' is {shown(kind)}; it must be a text such as 'rope'"
        )
    if kind == "rope":
        return rotary(spot, usual)
    if kind is None:
        note = (
            "no rotation in attention layers (assumed): 'position_embedding_type' does not say, and"
            " transformers takes none"
        )
        return Seen("none", None, (note,))
    return Seen("none")


def unless_null(spot: Spot, usual: Usual) -> Seen:
    """Every layer rotates, unless the file has the fields of a rotation and no base in them (OLMo
    hybrid, whose releases switch it off so).
    """
    there = any(name in spot.fields.data for name in ("rope_parameters", "rope_theta"))
    stated = "rope_theta" in spot.own or spot.find("rope_theta") is not None
    return Seen("none") if there and not stated else _turned(spot, usual)


def or_alibi(*, usually: bool, otherwise: Rule | None) -> Rule:
    """ALiBi if the flag `alibi` is true, `usually` where it is absent; else as `otherwise`."""

    def rule(spot: Spot, usual: Usual) -> Seen:
        name = spot.find("alibi")
        said = None if name is None else spot.fields.flag(name)
        if usually if said is None else said:
            return Seen("alibi")
        return otherwise(spot, usual) if otherwise else unknown("'alibi' is false")

    return rule


def fla(spot: Spot, usual: Usual) -> Seen:
    """Attention layers of flash-linear-attention: the object `attn`, which may switch it off."""
    name = spot.find("use_rope")
    off = name is not None and spot.fields.flag(name) is False
    return Seen("none") if off else _turned(spot, usual)


def native(spot: Spot, usual: Usual) -> Seen:
    """Attention layers of mamba_ssm: `rotary_emb_dim` numbers of a head, or none."""
    name = spot.find("rotary_emb_dim")
    if name is None:
        note = (
            "no rotation in attention layers (assumed): 'attn_cfg.rotary_emb_dim' does not say, and"
            " mamba_ssm takes none"
        )
        return Seen("none", None, (note,))
    return _turned(spot, usual) if spot.fields.size(name, low=0) else Seen("none")


def said(spot: Spot, usual: Usual) -> Seen:
    """Of a model type that no line below knows: what the fields say by themselves."""
    kind = spot.fields.value("position_embedding_type")
    if isinstance(kind, str) and kind in _EMBEDDINGS:
        return Seen(_EMBEDDINGS[kind])
    if spot.find("alibi") is not None and spot.fields.flag(str(spot.find("alibi"))):
        return Seen("alibi")
    if kind not in (None, "rope", "rotary"):
        return unknown(f"'position_embedding_type' is {shown(kind)}")
    if spot.find(*_SAID_BY) is None:
        return unknown(f"{', '.join(repr(name) for name in _SAID_BY)} are missing")
    seen = rotary(spot, usual)
    note = (
        "rotation in attention layers by the usual fields (assumed): this model type is not known"
    )
    return seen._replace(notes=(note, *seen.notes)) if seen.turned else seen


def by_ratio(spot: Spot, usual: Usual) -> Seen:
    """Every layer rotates half of a head, with a base that the file's ratio multiplies."""
    return unknown("'rope_ratio' is not read")


def hymba(spot: Spot, usual: Usual) -> Seen:
    """Every layer rotates if `rope` is true; with a base that grows with the prompt where
    `rope_type` is ntk, which is not read.
    """
    kind = spot.fields.value("rope_type")
    if kind is not None and spot.fields.flag("rope"):
        return unknown(f"'rope_type' is {shown(kind)}")
    return where("rope")(spot, usual)


RULES: dict[str, Rule] = {
    "rotary": rotary,
    "every_fourth_without": every_fourth_without,
    "in_windows": in_windows,
    "in_windows_or_dense": in_windows_or_dense,
    "in_windows_if_any": in_windows_if_any,
    "if_use_mem_rope": where("use_mem_rope", otherwise=False),
    "unless_mla_use_nope": unless("mla_use_nope"),
    "unless_null": unless_null,
    "embedded": always("embedded"),
    "alibi": always("alibi"),
    "alibi_if_said": or_alibi(usually=False, otherwise=rotary),
    "alibi_unless_said": or_alibi(usually=True, otherwise=None),
    "none": unplaced,
    "by_type": by_type,
    "by_ratio": by_ratio,
    "hymba": hymba,
    "fla": fla,
    "native": native,
    "said": said,
}
"""What model classes make of their layers, as the table calls it."""


class Way(NamedTuple):
    """Which layers of a model class rotate, and its defaults."""

    rule: Rule = rotary
    usual: Usual = Usual()
    softcap: int = 0
    bounded: bool = False
    """Whether the class scales queries and keys to one length that no weight changes."""
    gate: str = "none"
    """The gate of the heads' outputs, unless `attn_output_gate` is false."""

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Self:
        """As the table writes it, with the sizes of `Usual`; a base of 0 where none is known."""
        own = {key: value for key, value in said.items() if key in cls._fields}
        usual: dict[str, Any] = {key: said[key] for key in said if key not in own}
        if usual.get("base") == 0:
            usual["base"] = None
        own["rule"] = RULES[own.get("rule", "rotary")]
        return cls(**own, usual=Usual(**usual))


USUAL = Way()

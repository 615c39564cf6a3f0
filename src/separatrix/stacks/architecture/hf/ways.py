"""How a model class gives its layers places, and norms queries and keys: which layers rotate, and
what it takes where a file is silent. What neither says is unknown, and a note says so.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

from separatrix.core.evidence.canonical import json_list
from separatrix.stacks.architecture.hf.fields import Fields, shown
from separatrix.stacks.architecture.hf.rotary_fields import (
    BASES,
    SHARED,
    Spot,
    Turned,
    Usual,
    turned,
)
from separatrix.stacks.mechanisms.base import POSITIONS

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

Said = bool | str | tuple[bool | str, str]
"""Whether a layer rotates; where its places come from instead, or why that is unknown; and what was
assumed to tell it.
"""
Rule = Callable[[Spot], Said]
"""What a model class makes of one of its layers."""


class Seen(NamedTuple):
    """What is known of one layer."""

    positions: str
    turned: Turned | None = None
    notes: tuple[str, ...] = ()


# ---- rules


def rotary(spot: Spot) -> bool:
    """Every layer rotates, but those that the file leaves out."""
    for name in ROTATING:
        if name in spot.lists:
            return bool(spot.lists[name][spot.index])
    name = spot.find(*INTERVALS)
    return name is None or (spot.index + 1) % spot.fields.needed(name) != 0


def _every_fourth_without(spot: Spot) -> Said:
    """As `rotary`; where the file does not say, every fourth layer does not rotate."""
    if any(name in spot.lists for name in ROTATING) or spot.find(*INTERVALS) is not None:
        return rotary(spot)
    return (spot.index + 1) % 4 != 0, (
        "every 4th layer without rotation (assumed): the file does not say, and transformers"
        " takes 4"
    )


def _in_windows(spot: Spot) -> Said:
    """Sliding layers rotate, the others do not."""
    return spot.local


def _in_windows_or_dense(spot: Spot) -> Said:
    """And full layers with a dense MLP where those before the experts do not slide (Cohere 2 with
    experts).
    """
    types = json_list(spot.fields.value("mlp_layer_types")) or []
    first = spot.fields.optional_size("first_k_dense_replace", low=0) or 0
    dense = types[spot.index] == "dense" if spot.index < len(types) else spot.index < first
    unslid = spot.fields.optional_size("prefix_dense_sliding_window_pattern") in (None, 1)
    return spot.local or (dense and unslid)


def _in_windows_if_any(spot: Spot) -> Said:
    """Where the file has a window; else every layer rotates."""
    return spot.local if spot.fields.has("sliding_window") else rotary(spot)


def _if_use_mem_rope(spot: Spot) -> Said:
    said = spot.fields.flag("use_mem_rope")
    if said is not None:
        return said
    return False, (
        "no rotation in attention layers (assumed): 'use_mem_rope' does not say, and transformers"
        " takes it so"
    )


def _by_type(spot: Spot) -> Said:
    """`position_embedding_type`: rope, or anything else for none (Granite 4)."""
    kind = spot.fields.value("position_embedding_type")
    if kind is not None and not isinstance(kind, str):
        raise spot.fields.wrong("position_embedding_type", "be a text such as 'rope'")
    if kind is not None:
        return kind == "rope" and rotary(spot)
    return False, (
        "no rotation in attention layers (assumed): 'position_embedding_type' does not say, and"
        " transformers takes none"
    )


def _unless_null(spot: Spot) -> Said:
    """Every layer rotates, unless the file has the fields of a rotation and no base in them (OLMo
    hybrid, whose releases switch it off so).
    """
    there = any(name in spot.fields.data for name in ("rope_parameters", "rope_theta"))
    return not there or "rope_theta" in spot.own or spot.find("rope_theta") is not None


def _alibi(spot: Spot) -> bool | None:
    name = spot.find("alibi")
    return None if name is None else spot.fields.flag(name)


def _alibi_if_said(spot: Spot) -> Said:
    return "alibi" if _alibi(spot) else rotary(spot)


def _alibi_unless_said(spot: Spot) -> Said:
    return "'alibi' is false" if _alibi(spot) is False else "alibi"


def fla(spot: Spot) -> Said:
    """Attention layers of flash-linear-attention: the object `attn`, which may switch it off."""
    name = spot.find("use_rope")
    return name is None or spot.fields.flag(name) is not False


def native(spot: Spot) -> Said:
    """Attention layers of mamba_ssm: `rotary_emb_dim` numbers of a head, or none."""
    name = spot.find("rotary_emb_dim")
    if name is not None:
        return spot.fields.size(name, low=0) != 0
    return False, (
        "no rotation in attention layers (assumed): 'attn_cfg.rotary_emb_dim' does not say, and"
        " mamba_ssm takes none"
    )


def unplaced(spot: Spot) -> Said:
    """Tokens enter the stack without their places, and no layer adds them."""
    return False


def _hymba(spot: Spot) -> Said:
    """Every layer rotates if `rope` is true; with a base that grows with the prompt where
    `rope_type` is ntk, which is not read.
    """
    kind = spot.fields.value("rope_type")
    said = spot.fields.flag("rope")
    if kind is not None and said:
        return f"'rope_type' is {shown(kind)}"
    return "'rope' is missing" if said is None else said


def _said(spot: Spot) -> Said:
    """Of a model type that has no row: what the fields say by themselves."""
    kind = spot.fields.value("position_embedding_type")
    if isinstance(kind, str) and kind in _EMBEDDINGS:
        return _EMBEDDINGS[kind]
    if _alibi(spot):
        return "alibi"
    if kind not in (None, "rope", "rotary"):
        return f"'position_embedding_type' is {shown(kind)}"
    if spot.find(*_SAID_BY) is None:
        return f"{', '.join(repr(name) for name in _SAID_BY)} are missing"
    return rotary(spot), (
        "rotation in attention layers by the usual fields (assumed): this model type is not known"
    )


RULES: dict[str, Rule] = {
    "rotary": rotary,
    "every_fourth_without": _every_fourth_without,
    "in_windows": _in_windows,
    "in_windows_or_dense": _in_windows_or_dense,
    "in_windows_if_any": _in_windows_if_any,
    "if_use_mem_rope": _if_use_mem_rope,
    "unless_mla_use_nope": lambda spot: spot.fields.flag("mla_use_nope") is False,
    "unless_null": _unless_null,
    "embedded": lambda spot: "embedded",
    "alibi": lambda spot: "alibi",
    "alibi_if_said": _alibi_if_said,
    "alibi_unless_said": _alibi_unless_said,
    "none": unplaced,
    "by_type": _by_type,
    # every layer rotates half of a head, with a base that the file's ratio multiplies
    "by_ratio": lambda spot: "'rope_ratio' is not read",
    "hymba": _hymba,
    "fla": fla,
    "native": native,
    "said": _said,
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
    def of(cls, said: str) -> Self:
        """As the table writes it: the rule, and what the class takes with the sizes of `Usual`; a
        base of 0 where none is known.
        """
        call = ast.parse(f"way({said.strip()})", mode="eval").body
        assert isinstance(call, ast.Call)
        given = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
        own = {key: given.pop(key) for key in cls._fields if key in given}
        usual: dict[str, Any] = given | ({"base": None} if given.get("base") == 0 else {})
        own["rule"] = RULES[ast.unparse(call.args[0]) if call.args else "rotary"]
        return cls(**own, usual=Usual(**usual))

    def seen(self, spot: Spot) -> Seen:
        """What is known of a layer. Raises ConfigError for fields of positions that are of the
        wrong type, length or range.
        """
        said = self.rule(spot)
        answer, *notes = said if isinstance(said, tuple) else (said,)
        if not isinstance(answer, str):
            found = self._turned(spot) if answer else Seen("none")
        else:
            found = Seen(answer) if answer in POSITIONS else _unknown(answer)
        if self.rule is _said and found.turned is None:
            return found
        return found._replace(notes=(*notes, *found.notes))

    def _turned(self, spot: Spot) -> Seen:
        if BASES in spot.lists and spot.lists[BASES][spot.index] == 0:
            return Seen("none")
        if spot.rotated is not None and spot.fields.size(spot.rotated, low=0) == 0:
            return Seen("none")
        if self.usual.counted and spot.rotated is None:
            return _unknown(f"'{SHARED}' is missing")
        found = turned(spot, self.usual)
        return _unknown(found) if isinstance(found, str) else Seen("none", found, found.notes)


USUAL = Way()


def _unknown(why: str) -> Seen:
    said = f"positions: the file does not say in a way that is read: {why}"
    return Seen("unknown", None, (said,))


# ---- norms of queries and keys

_FLAGS = (
    *("use_qk_norm", "qk_norm", "qk_layernorm", "use_qk_layernorm", "qk_layer_norms", "qk_ln"),
    *("use_query_key_norm", "query_key_norm"),
)
"""How files call the flag of a norm of queries and keys."""


class Norm(NamedTuple):
    """The norm of queries and keys before they meet: a value of the size `qk_norm`, and the flag
    that switches it.
    """

    kind: str
    flag: str = ""
    usually: bool = True
    """What the class takes where the flag is absent."""
    bounds: bool = False
    """Whether it has no weights, where a layer rotates; elsewhere there is none."""

    @classmethod
    def of(cls, said: Sequence[Any]) -> Norm | None:
        """As the table writes it: the kind, the flag, and what is taken where the flag is absent;
        nothing where flags alone say it, "bounds" for one without weights.
        """
        if said == ["bounds"]:
            return cls("none", bounds=True)
        return cls(*said) if said else None

    def bounded(self, file: Fields) -> bool:
        """Whether queries and keys of a layer that rotates come out of a norm without weights."""
        return self.bounds and file.flag("use_qk_norm") is not False


def query_norm(norm: Norm | None, fields: Fields) -> str:
    """The size `qk_norm` of attention layers of a model class with that norm, None where it is not
    known, which have these fields: a flag that is true then says that there is one, and not which.
    Raises ConfigError for a flag that is neither true nor false.
    """
    if norm is None:
        return "other" if any(_flagged(fields, name) is True for name in _FLAGS) else "none"
    said = _flagged(fields, norm.flag) if norm.flag else None
    if said is not None and not isinstance(said, bool):
        raise fields.error(f"'{norm.flag}' is {shown(said)}; it must be true or false")
    return norm.kind if (norm.usually if said is None else said) else "none"


def _flagged(fields: Fields, flag: str) -> Any:
    """What a field of that name says, the innermost first; of an object alone, if `flag` has a
    dot."""
    _, inner, name = flag.rpartition(".")
    found = [key for key in fields.data if key.rpartition(".")[2] == name]
    found = [key for key in found if "." in key or not inner]
    return fields.data[max(found, key=lambda key: key.count("."))] if found else None

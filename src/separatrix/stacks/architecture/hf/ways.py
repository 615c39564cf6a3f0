"""Where a layer's tokens know their places from, and how queries and keys are normed: by the fields
of the file and, where a model class fixes it, by its row (`Row.way`, `Row.norm`), as transformers
defines that class. What neither says is unknown, and a note says so.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, Self

from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.core.numbers.rotary import LARGEST_NUMBER
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

_SECTIONS = ("rope_scaling", "rope_parameters")
_BASES = ("rope_theta", "rotary_emb_base", "rope_base")
_LOCAL = ("rope_local_base_freq", "local_rope_theta", "swa_rope_theta")
_GLOBAL = ("global_rope_theta",)
_COMPRESSED = ("compress_rope_theta",)
_PARTS = ("partial_rotary_factor", "rotary_pct", "rotary_percent", "rope_pct")
_DIMS = ("rotary_dim", "attn_rotary_emb", "rotary_emb_dim")
SHARED = "qk_rope_head_dim"
"""Rotated numbers of latent attention's keys, which no part changes."""
_TYPES = ("full_attention", "sliding_attention", "chunked_attention", "main", "compress")
"""Kinds of layers for which files give objects of their own."""
_PLAIN = (None, "default", "mrope", "axial")
"""Types whose angles, for text, are those of the plain rotation."""
_ALIKE = {"deepseek_yarn": "yarn", "su": "longrope"}
"""Older names of types."""
BASES = "layer_rope_theta"
"""A base for every layer, 0 where it does not rotate (Granite with windows)."""
LISTS = ("rope_theta", BASES, "partial_rotary_factors")
"""Fields that may hold an entry per layer."""
OBJECTS = ("attn_cfg", "attn_config", "attn")
"""What holds the fields of attention, in some files."""
INTERVALS = ("no_rope_layer_interval", "nope_layer_interval")
"""Every so many layers, one does not rotate."""
NAMES = (
    *(*_BASES, *_LOCAL, *_GLOBAL, *_COMPRESSED, *_PARTS, *_DIMS, *LISTS, *_SECTIONS),
    *("yarn_only_types", "original_max_position_embeddings", *INTERVALS),
)
"""All fields of rotations."""


ROTATING = ("no_rope_layers", "rope_layout", "use_rope_layers")
"""Lists with one entry per layer: 1 where it rotates, 0 where it does not."""
_EMBEDDINGS: dict[str, str] = {
    **dict.fromkeys(("absolute", "learned", "learned_absolute", "sinusoidal"), "embedded"),
    **dict.fromkeys(("nope", "none"), "none"),
    "alibi": "alibi",
}
"""`position_embedding_type` -> where places come from."""
_SAID_BY = ("rope_theta", "rope_parameters", "rope_scaling", "rotary_emb_base")


@dataclass(frozen=True)
class Turned:
    """The rotation of a layer."""

    base: int
    dims: int | None = None
    """Rotated numbers of a head; None: all of them."""
    scaling: str | None = None


@dataclass(frozen=True)
class Spot:
    """An attention layer of a file: where it stands, and what it is called."""

    fields: Fields
    lists: Mapping[str, list[Any]]
    """Fields that hold an entry per layer, of the right length."""
    index: int
    words: tuple[str, ...]
    """How files call its kind, such as full_attention."""
    head_dim: int | None
    """None where it is unknown."""

    @property
    def local(self) -> bool:
        return self.words[0] == "sliding_attention"

    @property
    def rotated(self) -> str | None:
        """The field that counts the rotated numbers of a head."""
        return self.find(SHARED, *_DIMS)

    @cached_property
    def nested(self) -> dict[str, Any]:
        """What the objects hold that describe the layer's rotation, by full spelling."""
        found: dict[str, Any] = {}
        for name in _SECTIONS:
            section = self._object(name, self.fields.data.get(name))
            if _names_kinds(section):
                word = next((word for word in self.words if section.get(word) is not None), "")
                name = f"{name}.{word}"
                section = self._object(name, section.get(word))
            found |= {f"{name}.{key}": own for key, own in section.items() if own is not None}
        return found

    def _object(self, name: str, value: Any) -> dict[str, Any]:
        section = {} if value is None else json_object(value)
        if section is None:
            raise self.fields.error(
                f"'{name}' is {shown(value)}; it must be an object with fields of its own"
            )
        return section

    def own(self, *keys: str) -> str | None:
        """The full spelling of a field in these objects, None where it is absent. Raises
        ConfigError where they say it twice and unlike.
        """
        paths = [path for key in keys for path in self.nested if path.rpartition(".")[2] == key]
        for other in paths[1:]:
            self._agree(paths[0], other)
        return paths[0] if paths else None

    def stated(self, key: str, *beside: str) -> str | None:
        """The same, or what stands beside these objects, which then are for layers of all kinds and
        say no other thing.
        """
        inside, outside = self.own(key), self.find(*beside)
        if inside and outside and not self.typed:
            self._agree(inside, outside)
        return inside or outside

    def _agree(self, path: str, other: str) -> None:
        one, another = self.value(path), self.value(other)
        if _meant(one) != _meant(another):
            raise self.fields.unlike(path, one, other, another)

    @property
    def typed(self) -> bool:
        """Whether the file gives kinds of layers rotations of their own."""
        return any(_names_kinds(json_object(self.fields.data.get(n)) or {}) for n in _SECTIONS)

    def find(self, *names: str) -> str | None:
        """The first of these fields that is there, in the object of the layer's attention first."""
        prefixes = (*(f"{name}." for name in OBJECTS), "")
        spellings = (prefix + name for name in names for prefix in prefixes)
        return next((spelled for spelled in spellings if self.fields.has(spelled)), None)

    def value(self, path: str) -> Any:
        """What stands there; the layer's own entry, if that is a list with one per layer."""
        if path in self.lists:
            return self.lists[path][self.index]
        return self.fields.data[path] if path in self.fields.data else self.nested[path]

    def number(self, path: str, low: float, high: float) -> int | float:
        """The number there. Raises ConfigError where it is none from `low` to `high`."""
        value = self.value(path)
        # true and false are integers to Python; not a number compares false
        if type(value) not in (int, float) or not low <= value <= high:
            raise self.fields.error(
                f"'{path}' is {shown(value)}; it must be a number from {low:g} to {high:,}"
            )
        return value


def _meant(value: Any) -> Any:
    """What it says, of types of angles in one word for all that are alike."""
    if value in _PLAIN:
        return None
    return _ALIKE.get(value, value) if isinstance(value, str) else value


def _names_kinds(section: Mapping[Any, Any]) -> bool:
    return any(word in section for word in _TYPES)


# ---- rules

Rule = Callable[[Spot], bool | str]
"""What a model class makes of one of its layers: whether it rotates; where its places come from
instead, or why that is unknown.
"""


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


def _unless_null(spot: Spot) -> bool:
    """Every layer rotates, unless the file has the fields of a rotation and no base in them (OLMo
    hybrid, whose releases switch it off so).
    """
    there = any(name in spot.fields.data for name in ("rope_parameters", "rope_theta"))
    return not there or bool(spot.own("rope_theta") or spot.find("rope_theta"))


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
    "unless_null": _unless_null,
    "none": lambda spot: False,
    # the object `attn` of flash-linear-attention may switch it off
    "fla": lambda spot: spot.fields.flag(spot.find("use_rope") or "use_rope") is not False,
    "said": _said,
}
"""What model classes make of their layers, as the table calls it."""


def _ruled(node: ast.expr, spot: Spot) -> bool | str:
    """What a rule of the table makes of a layer: one of these, or what is said of its fields."""
    fields = replace(spot.fields, layer=spot.index)
    if isinstance(node, ast.IfExp):
        return _ruled(node.body if value_of(node.test, fields) else node.orelse, spot)
    if isinstance(node, ast.Name):
        return RULES[node.id](spot)
    said = value_of(node, fields)
    if isinstance(said, Unknown):
        return said.looked_for[0]
    return said if isinstance(said, str) else bool(said)


class NotRead(Exception):
    """Why a rotation is not read, though nothing is wrong with its fields."""


@dataclass(frozen=True, kw_only=True)
class Way:
    """Which layers of a model class rotate, and what it takes where the file does not say."""

    rule: str = "rotary"
    base: int | None = 10_000
    local: int | None = None
    """Base of sliding layers, where the class has one of their own."""
    part: float | None = None
    """Part of a head that is rotated; None: all of it, and the class reads no field of it."""
    percent: bool = False
    """Whether other names of the part than transformers' own are read."""
    local_part: float | None = None
    """In sliding layers, where it is another there."""
    dims: int | None = None
    """Rotated numbers of a head, where the class counts them."""
    scaling: str | None = None
    """Where the file has no object that says it."""
    local_scaled: bool = True
    """Whether a scaling without kinds of layers holds in sliding layers too."""
    compressed: int | None = None
    """Base of layers that compress."""
    counted: bool = False
    """Whether only the file says how many numbers of a head are rotated."""
    fixed: bool = False
    """Whether the class has no field for the base: then nothing is assumed."""
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
        """As the table writes it: the rule, and what the class takes."""
        call = ast.parse(f"way({' '.join(said.split())})", mode="eval").body
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
        notes: list[str] = []
        try:
            found = turned(replace(spot, fields=replace(spot.fields, notes=notes)), self)
        except NotRead as why:
            return _unknown(spot, str(why))
        spot.fields.note(*notes)
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


# ---- rotations


def turned(spot: Spot, usual: Way) -> Turned:
    """The rotation of a layer. Raises NotRead, and ConfigError for fields that are of the wrong
    type, out of range or contradict each other.
    """
    base = _base(spot, usual)
    scaling = _scaling(spot, usual)
    dims = _dims(spot, usual, scaling)
    if scaling == "proportional":
        # the angles of a whole head, of which the first are used
        scaling = f"proportional_{spot.head_dim}" if spot.head_dim and dims is not None else None
    return Turned(base, dims, scaling)


def _base(spot: Spot, usual: Way) -> int:
    # where kinds of layers have objects of their own, 'rope_theta' is for all that lack one
    compressed = spot.words[0] == "compress" and not (spot.typed and spot.nested)
    own = _COMPRESSED if compressed else _LOCAL if spot.local else _GLOBAL
    said = spot.stated("rope_theta", *_BASES)
    inside = spot.own("rope_theta")
    path = inside or spot.find(*own)
    if inside and usual.compressed and not spot.typed:
        # of an object for layers of all kinds, DeepSeek-V4's class takes the scaling alone
        path = spot.find(*own)
        if not compressed and not spot.find(*_BASES) and spot.value(inside) != usual.base:
            raise NotRead(
                f"'{inside}' is {shown(spot.value(inside))}, and transformers' class of this model"
                f" type reads '{_BASES[0]}' beside it"
            )
    path = BASES if BASES in spot.lists else path
    apart = spot.local and usual.local is not None
    if path is None and not apart and not compressed:
        path = said
    if path is not None:
        return _whole(path, spot.number(path, 2, LARGEST_NUMBER))
    base = usual.local if apart else usual.compressed if compressed else usual.base
    if base is None:
        raise NotRead(f"'{_BASES[0]}' is missing, and no default of this model type is known")
    if not usual.fixed:
        where = " in sliding layers" if apart else ""
        spot.fields.assume(f"rotation of base {base:,}{where}")
    return base


def _whole(path: str, value: float) -> int:
    if value != int(value):
        raise NotRead(f"'{path}' is {value}, and only whole numbers are read there")
    return int(value)


def _dims(spot: Spot, usual: Way, scaling: str | None) -> int | None:
    """Rotated numbers of a head, None for all."""
    counted = spot.rotated
    given = None if counted is None else spot.fields.optional_size(counted)
    path = None if counted == SHARED and usual.part is None else _part(spot)
    share = float(spot.number(path, 0, 1)) if path is not None else 1.0
    if path is not None and not share:
        raise spot.fields.error(f"'{path}' is 0, which rotates nothing; correct it")
    if path is not None and share != 1:
        # transformers' scalings read it in every class
        read = scaling is not None or (usual.part is not None and usual.scaling is None)
        if not (usual.percent or (read and _PARTS[0] in path)):
            raise NotRead(
                f"'{path}' is {share:g}, which transformers' class of this model type does not read"
            )
    what = ""
    if path is None and given is None:
        local = usual.local_part if spot.local else None
        share = (usual.part if local is None else local) or 1
        given = usual.dims
        if not usual.fixed and (share != 1 or given is not None):
            part = f"{share:g}" if given is None else f"{given} numbers"
            what = f"rotation of {part} of each head"
            spot.fields.assume(what)
    if spot.head_dim is None:
        return given
    # as transformers rounds it
    dims = int(spot.head_dim * share) if path is not None or given is None else given
    if given is not None and dims != given:
        raise spot.fields.error(
            f"'{counted}' is {given}, but '{path}' of head_dim = {spot.head_dim} is {dims}; remove"
            " the wrong one"
        )
    if scaling == "proportional":
        # whole pairs are counted
        dims -= dims % 2
    if dims > spot.head_dim or dims % 2 or not dims:
        if what:
            raise NotRead(f"{what} is no even number of {spot.head_dim}")
        raise spot.fields.error(
            f"'{counted or path or 'head_dim'}' rotates {dims} of the {spot.head_dim} numbers of a"
            " head; it must be an even number of them"
        )
    return None if dims == spot.head_dim else dims


def _part(spot: Spot) -> str | None:
    """The field that says which part of a head is rotated."""
    lists = LISTS[-1]
    return lists if lists in spot.lists else spot.stated(_PARTS[0], *_PARTS)


def _scaling(spot: Spot, usual: Way) -> str | None:
    """How the angles are scaled."""
    path = spot.own("rope_type", "type")
    if _elsewhere(spot, usual):
        return None
    if path is None:
        if factor := spot.own("factor"):
            raise spot.fields.error(
                f"'{factor}' is there without a 'rope_type' that says what it does; add"
                " it, or remove the factor"
            )
        if usual.scaling is None or any(spot.fields.has(name) for name in _SECTIONS):
            return None
        spot.fields.assume(f"rotation scaled by {usual.scaling}")
        return usual.scaling
    kind = spot.value(path)
    if not isinstance(kind, str):
        raise spot.fields.error(f"'{path}' is {shown(kind)}; it must be a text such as 'yarn'")
    if kind in _PLAIN:
        return None
    if kind == "proportional" and not spot.own("factor"):
        return kind
    if kind not in _KINDS or spot.own("short_factor") or spot.own("alpha"):
        raise NotRead(f"'{path}' is {shown(kind)}, a scaling of angles that is not read")
    name, sizes = _KINDS[kind]
    if name == "yarn" and not _truncated(spot):
        name = "yarnexact"
    return _numbered(spot, path, name, sizes)


def _elsewhere(spot: Spot, usual: Way) -> bool:
    """Whether the file's scaling holds in layers of other kinds only."""
    only = spot.fields.value("yarn_only_types")
    if isinstance(only, list) and only:
        return not any(word in only for word in spot.words)
    return spot.local and not usual.local_scaled and not spot.typed


def _truncated(spot: Spot) -> bool:
    """Whether the ends of yarn's ramp are rounded to whole pairs."""
    path = spot.own("truncate")
    value = True if path is None else spot.value(path)
    if not isinstance(value, bool):
        raise spot.fields.error(f"'{path}' is {shown(value)}; it must be true or false")
    return value


def _numbered(spot: Spot, path: str, name: str, sizes: tuple[str, ...]) -> str | None:
    """The scaling `name` with its numbers as text; None for a factor of 1."""
    section = path.rpartition(".")[0]
    numbers: list[int] = []
    own: list[str] = []
    for key in sizes:
        found = spot.own(key)
        if key == _LENGTH:
            # a field beside the object wins, as in transformers
            found = spot.find(key) or found
        if found is None and key in _BETAS:
            numbers.append(_BETAS[key])
            own.append(f"rotation scaled with {key} = {_BETAS[key]}")
            continue
        if found is None and key == _LENGTH and spot.find("max_position_embeddings"):
            found = "max_position_embeddings"
            own.append(f"rotation scaled from a length of '{found}'")
        if found is None:
            raise spot.fields.error(
                f"'{section}.{key}' is missing, which '{path}' asks for; add it"
            )
        numbers.append(_whole(found, spot.number(found, 1e-6, LARGEST_NUMBER)))
    if numbers[0] == 1:
        return None
    for what in own:
        spot.fields.assume(what)
    if name == "llama3" and numbers[1] > numbers[2]:
        raise spot.fields.error(
            f"'{section}.low_freq_factor' is {numbers[1]}, which must not be more than"
            f" 'high_freq_factor' = {numbers[2]}"
        )
    return "_".join((name, *map(str, numbers)))


_LENGTH = "original_max_position_embeddings"
_YARN = ("yarn", ("factor", "beta_fast", "beta_slow", _LENGTH))
_KINDS = {
    "linear": ("linear", ("factor",)),
    "llama3": ("llama3", ("factor", "low_freq_factor", "high_freq_factor", _LENGTH)),
    "yarn": _YARN,
    "deepseek_yarn": _YARN,
}
"""Type of scaling in files -> its name here, and the fields of its numbers."""
_BETAS = {"beta_fast": 32, "beta_slow": 1}
"""What transformers takes where the object does not say."""


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


_CAPS = ("attn_logit_softcapping", "attn_logit_softcap", "attn_softcap", "max_attn_value")
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
    layers = mapped(layers, _opened)
    # layers that share a draft share it afterwards too, unless their positions differ
    made: dict[tuple[int, Turned | str], Draft] = {}

    def attending(draft: Draft, index: int) -> Draft:
        if not _attends(draft):
            return draft
        size = settings.over(draft.cls, draft.sizes).get(
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
    clips = (name for name in file.data if name.rpartition(".")[2] == "clip_qkv")
    clipped = any(file.data[name] is not None for name in clips)
    ungated = any(file.flag(name) is False for name in ("attn_output_gate", "use_attention_gate"))
    around: dict[str, Value] = {
        "bounded": way.bounded or clipped or bounds,
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

"""Rotary position embeddings as config.json files spell them: base, rotated numbers, scaling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from separatrix.core.evidence.canonical import json_object
from separatrix.core.numbers.rotary import LARGEST_NUMBER
from separatrix.stacks.architecture.hf.fields import Fields, shown

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


@dataclass(frozen=True, kw_only=True)
class Usual:
    """What a model class takes where the file does not say."""

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
    def own(self) -> dict[str, str]:
        """Field of the layer's rotation -> its full spelling in the file."""
        paths: dict[str, str] = {}
        for path in self._nested:
            paths.setdefault(path.rpartition(".")[2], path)
        return paths

    @cached_property
    def _nested(self) -> dict[str, Any]:
        """What the objects hold that describe the layer's rotation, by full spelling."""
        found: dict[str, Any] = {}
        for name in _SECTIONS:
            value = self.fields.data.get(name)
            if value is not None:
                found |= self._section(name, value)
        return found

    def _section(self, name: str, value: Any) -> dict[str, Any]:
        section = self._object(name, value)
        if _names_kinds(section):
            word = next((word for word in self.words if section.get(word) is not None), None)
            if word is None:
                return {}
            name = f"{name}.{word}"
            section = self._object(name, section[word])
        return {f"{name}.{key}": inner for key, inner in section.items() if inner is not None}

    def _object(self, name: str, value: Any) -> dict[str, Any]:
        section = json_object(value)
        if section is None:
            raise self.fields.error(
                f"'{name}' is {shown(value)}; it must be an object with fields of its own"
            )
        return section

    @property
    def typed(self) -> bool:
        """Whether the file gives kinds of layers rotations of their own."""
        sections = (json_object(self.fields.data.get(name)) for name in _SECTIONS)
        return any(section is not None and _names_kinds(section) for section in sections)

    def find(self, *names: str) -> str | None:
        """The first of these fields that is there, in the object of the layer's attention first."""
        prefixes = (*(f"{name}." for name in OBJECTS), "")
        spellings = (prefix + name for name in names for prefix in prefixes)
        return next((spelled for spelled in spellings if self.fields.has(spelled)), None)

    def value(self, path: str) -> Any:
        """What stands there; the layer's own entry, if that is a list with one per layer."""
        if path in self.lists:
            return self.lists[path][self.index]
        return self.fields.data[path] if path in self.fields.data else self._nested[path]

    def number(self, path: str, low: float, high: float) -> int | float:
        """The number there. Raises ConfigError where it is none from `low` to `high`."""
        value = self.value(path)
        # true and false are integers to Python; not a number compares false
        if type(value) not in (int, float) or not low <= value <= high:
            raise self.fields.error(
                f"'{path}' is {shown(value)}; it must be a number from {low:g} to {high:,}"
            )
        return value


def _names_kinds(section: Mapping[Any, Any]) -> bool:
    return any(word in section for word in _TYPES)


class NotRead(Exception):
    """Why a rotation is not read, though nothing is wrong with its fields."""


def turned(spot: Spot, usual: Usual) -> Turned:
    """The rotation of a layer. Raises NotRead, and ConfigError for fields that are of the wrong
    type, out of range or contradict each other.
    """
    said: list[str] = []
    base = _base(spot, usual, said)
    scaling = _scaling(spot, usual, said)
    dims = _dims(spot, usual, said, scaling)
    if scaling == "proportional":
        # the angles of a whole head, of which the first are used
        scaling = f"proportional_{spot.head_dim}" if spot.head_dim and dims is not None else None
    for what in said:
        spot.fields.assume(what)
    return Turned(base, dims, scaling)


def _base(spot: Spot, usual: Usual, said: list[str]) -> int:
    compressed = spot.words[0] == "compress"
    own = _COMPRESSED if compressed else _LOCAL if spot.local else _GLOBAL
    path = spot.own.get("rope_theta") or spot.find(*own)
    path = BASES if BASES in spot.lists else path
    apart = spot.local and usual.local is not None
    if path is None and not apart and not compressed:
        path = spot.find(*_BASES)
    if path is not None:
        return _whole(path, spot.number(path, 2, LARGEST_NUMBER))
    base = usual.local if apart else usual.compressed if compressed else usual.base
    if base is None:
        raise NotRead(f"'{_BASES[0]}' is missing, and no default of this model type is known")
    if not usual.fixed:
        where = " in sliding layers" if apart else ""
        said.append(f"rotation of base {base:,}{where}")
    return base


def _whole(path: str, value: float) -> int:
    if value != int(value):
        raise NotRead(f"'{path}' is {value}, and only whole numbers are read there")
    return int(value)


def _dims(spot: Spot, usual: Usual, said: list[str], scaling: str | None) -> int | None:
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
            said.append(what)
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
    return lists if lists in spot.lists else spot.own.get(_PARTS[0]) or spot.find(*_PARTS)


def _scaling(spot: Spot, usual: Usual, said: list[str]) -> str | None:
    """How the angles are scaled."""
    path = spot.own.get("rope_type") or spot.own.get("type")
    if _elsewhere(spot, usual):
        return None
    if path is None:
        if "factor" in spot.own:
            raise spot.fields.error(
                f"'{spot.own['factor']}' is there without a 'rope_type' that says what it does; add"
                " it, or remove the factor"
            )
        if usual.scaling is None or any(spot.fields.has(name) for name in _SECTIONS):
            return None
        said.append(f"rotation scaled by {usual.scaling}")
        return usual.scaling
    kind = spot.value(path)
    if not isinstance(kind, str):
        raise spot.fields.error(f"'{path}' is {shown(kind)}; it must be a text such as 'yarn'")
    if kind in _PLAIN:
        return None
    if kind == "proportional" and "factor" not in spot.own:
        return kind
    if kind not in _KINDS or "short_factor" in spot.own or "alpha" in spot.own:
        raise NotRead(f"'{path}' is {shown(kind)}, a scaling of angles that is not read")
    name, sizes = _KINDS[kind]
    if name == "yarn" and not _truncated(spot):
        name = "yarnexact"
    return _numbered(spot, path, name, sizes, said)


def _elsewhere(spot: Spot, usual: Usual) -> bool:
    """Whether the file's scaling holds in layers of other kinds only."""
    only = spot.fields.value("yarn_only_types")
    if isinstance(only, list) and only:
        return not any(word in only for word in spot.words)
    return spot.local and not usual.local_scaled and not spot.typed


def _truncated(spot: Spot) -> bool:
    """Whether the ends of yarn's ramp are rounded to whole pairs."""
    path = spot.own.get("truncate")
    value = True if path is None else spot.value(path)
    if not isinstance(value, bool):
        raise spot.fields.error(f"'{path}' is {shown(value)}; it must be true or false")
    return value


def _numbered(
    spot: Spot, path: str, name: str, sizes: tuple[str, ...], said: list[str]
) -> str | None:
    """The scaling `name` with its numbers as text; None for a factor of 1."""
    section = path.rpartition(".")[0]
    numbers: list[int] = []
    own: list[str] = []
    for key in sizes:
        found = spot.own.get(key)
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
    said += own
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

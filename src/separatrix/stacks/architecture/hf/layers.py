"""From a row of the table and the fields of a file to layers, or from a stack given by hand
(`--pattern`), and of files whose model type nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields, replace
from typing import Any

from separatrix.core.errors import ConfigError
from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.stacks.architecture.hf.fields import (
    Draft,
    Fields,
    Layers,
    Unknown,
    shown,
    some,
)
from separatrix.stacks.architecture.hf.hooks import AFTER, BEFORE
from separatrix.stacks.architecture.hf.kinds import listed, parts, told
from separatrix.stacks.architecture.hf.notes import (
    ACCUMULATORS,
    cache_note,
    convolution_note,
    note_predicted,
    note_state,
)
from separatrix.stacks.architecture.hf.table import PATTERN, ROWS, UNKNOWN, Row, made
from separatrix.stacks.architecture.hf.unread import doubted, unread
from separatrix.stacks.architecture.spec import parse_sizes
from separatrix.stacks.mechanisms import MECHANISMS
from separatrix.stacks.mechanisms.base import ATTENTION

_OVERRIDES = "per_layer_config"
_LISTED = {
    **{f"{name}_per_layer": name for name in ("num_attention_heads", "num_key_value_heads")},
    "value_dim": "value_dim",
}
"""Fields with a number for every layer -> the size that it is."""
_SIZES = (
    *("num_attention_heads", "num_key_value_heads", "head_dim", "sliding_window"),
    "attention_chunk_size",
)
"""Fields of a layer's own that are read."""


def read(row: Row, fields: Fields) -> Layers:
    """The layers of a file of that model type. Raises ConfigError where the file does not tell
    them, or tells two things.
    """
    for name, *words in row.before:
        fields = BEFORE[name](fields, *words) or fields
    fields.harmless(*row.silent)
    if row.depth:
        fields = fields.replaced(num_hidden_layers=fields.layers(*row.depth))
    kinds = kinds_of(row, fields)
    own = per_layer(fields, row.own, len(kinds))
    used = {(kind, id(each)): each for kind, each in zip(kinds, own, strict=True)}
    # one entry for all layers of a kind with the same fields
    found = {key: made(row.mixers[key[0]], each) for key, each in used.items()}
    # a file may say sizes of layers that it lacks
    for kind in row.always:
        if kind not in kinds:
            made(row.mixers[kind], replace(own[0], notes=[]))
    layers = tuple(found[kind, id(each)] for kind, each in zip(kinds, own, strict=True))
    if row.after:
        layers = AFTER[row.after](fields, kinds, layers)
    _note_usual(row, fields, [draft for layer in layers for draft in layer])
    note_predicted(fields)
    if row.note:
        fields.note(" ".join(row.note.split()))
    return layers


def kinds_of(row: Row, fields: Fields) -> list[str]:
    """The kind of every layer: from the lists that are there, which must agree, or as the model
    class makes them.
    """
    all_ = [(name, listed(fields, name, how)) for name, how in row.lists.items()]
    found = [(name, kinds) for name, kinds in all_ if kinds is not None]
    for name, kinds in found[1:]:
        if kinds != found[0][1]:
            raise fields.error(
                f"'{found[0][0]}' and '{name}' both list the layers and disagree; remove the wrong"
                " one"
            )
    if found:
        kinds = found[0][1]
        if "window" in kinds and fields.flag("use_sliding_window") is False:
            raise fields.error(
                "'use_sliding_window' is false, but layers are listed as sliding; correct one of"
                " them"
            )
        return _ended(row, fields, kinds)
    for rule in row.otherwise:
        if (kinds := told(fields, rule)) is not None:
            return _ended(row, fields, kinds)
    raise fields.no_pattern([*row.lists, *row.told_by])


def _ended(row: Row, fields: Fields, kinds: list[str]) -> list[str]:
    if not row.last or kinds[-1] == row.last:
        return kinds
    why = "whatever the file says: the model class makes it so"
    fields.note(f"the last layer is {row.last} attention, {why}")
    return [*kinds[:-1], row.last]


def _note_usual(row: Row, fields: Fields, drafts: Sequence[Draft]) -> None:
    """Says what is taken for granted of such mixers in any file."""
    dtype = fields.model_format()
    if any("state_format" in draft.sizes for draft in drafts):
        note_state(fields, row.state)
    # over one token it is a function of that token
    if any(draft.sizes.get("conv", 0) not in (0, 1) for draft in drafts):
        fields.note(convolution_note(dtype))
    if any(draft.cls.group in ATTENTION for draft in drafts):
        fields.note(cache_note(dtype), ACCUMULATORS)


def per_layer(fields: Fields, own: Sequence[str], layers: int) -> list[Fields]:
    """The fields of every layer: those of the model, and over them what the file gives that layer
    in fields of the row's `own`. Layers without fields of their own share one object.

    Raises ConfigError for a layer that is not there, and for a field that is not read.
    """
    found: list[dict[str, Any]] = [{} for _ in range(layers)]
    for name in filter(own.__contains__, _LISTED):
        if not fields.has(name) or (name == _LISTED[name] and json_list(fields.data[name]) is None):
            continue
        numbers = fields.each_layer(name, layers)
        fields.check_entries(name, numbers, lambda own: type(own) is int, "be an integer")
        for each, number in zip(found, numbers, strict=True):
            each[_LISTED[name]] = number
    if _OVERRIDES in own and fields.has(_OVERRIDES):
        for number, each in _overrides(fields, layers):
            found[number] |= each
    for _, part, numbers in parts(fields) if "attn" in own else ():
        for number in numbers:
            found[number] |= {f"attn.{key}": value for key, value in part.items()}
    made = {repr([]): fields}
    for number, each in enumerate(found):
        where = f"{fields.where}, layer {number}" if {*_SIZES} & {*each} else fields.where
        made.setdefault(_alike(each), replace(fields.replaced(**each), where=where))
    return [made[_alike(each)] for each in found]


def _alike(own: dict[str, Any]) -> str:
    return repr(sorted(own.items(), key=str))


def _overrides(fields: Fields, layers: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """What `per_layer_config` gives single layers, as transformers saves it."""
    given = json_object(fields.value(_OVERRIDES))
    if given is None:
        rule = "be an object that gives layers by their numbers fields of their own"
        raise fields.wrong(_OVERRIDES, rule)
    for key, value in given.items():
        own = json_object(value)
        number = int(key) if key.isascii() and key.isdecimal() else layers
        if own is None or number >= layers:
            raise fields.error(
                f"'{_OVERRIDES}' has the entry {shown(key)}: {shown(value)}; it must give one of"
                f" the layers 0 to {layers - 1} an object of fields"
            )
        for name in own:
            fields.harmless(f"{_OVERRIDES}.{key}.{name}")
            if name not in _SIZES:
                raise fields.error(
                    f"'{_OVERRIDES}.{key}.{name[:60]}' is no field that is read of a single layer"
                    f" ({', '.join(_SIZES)}); pass the stack as a spec"
                )
        yield number, own


_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")


def by_pattern(fields: Fields, pattern: str) -> Layers:
    """The layers of `pattern`, its sizes over those of the file. Raises what a spec raises, and
    ConfigError for another number of layers.
    """
    stack = parse_sizes(pattern)
    stated = fields.optional_size(*_LAYERS)
    if stated is not None and stated != len(stack):
        raise fields.error(
            f"--pattern has {len(stack):,} layers, but '{fields.find(*_LAYERS)}' is {stated:,};"
            " they must be equal"
        )
    names = list(dict.fromkeys(name for layer in stack for name, _ in layer))
    of_file = tuple((_of_pattern(fields, name),) for name in names)
    odd = unread(fields, of_file)
    # what is said by hand stands over what the file leaves in doubt
    known = {name: layer[0] for name, layer in zip(names, doubted(of_file, odd), strict=True)}
    drafts: dict[tuple[str, str], Draft] = {}
    for name, sizes in (part for layer in stack for part in layer):
        made = known[name]
        drafts.setdefault((name, repr(sizes)), replace(made, sizes={**made.sizes, **sizes}))
    layers = tuple(tuple(drafts[name, repr(sizes)] for name, sizes in layer) for layer in stack)
    text = pattern if len(pattern) <= 200 else f"{pattern[:197]}..."
    fields.note(f"layers set by hand: --pattern '{' '.join(text.split())}'")
    _note_usual(PATTERN, fields, [*drafts.values()])
    if odd:
        fields.note(f"not read, the pattern stands for them: {some(odd)}")
    return layers


def _of_pattern(file: Fields, name: str) -> Draft:
    """A mechanism by the fields that usually hold its sizes; sizes that no field is known for
    are unknown.
    """
    if name in PATTERN.mixers:
        return made(PATTERN.mixers[name], file)[0]
    unknown = {
        size.name: Unknown((f"no field is known to hold '{size.name}' of '{name}'",))
        for size in fields(MECHANISMS[name])
        if _is_size(size.default)
    }
    draft = made(name, file)[0]
    return replace(draft, sizes={**unknown, **draft.sizes})


def _is_size(default: Any) -> bool:
    """Whether a field is a number that a layer cannot do without; 0 and None stand for "none"
    and for another size.
    """
    return default is not MISSING and type(default) is int and default > 0


# ---- files of a model type that no row knows: lists of layers, then periods, then attention alone.
# What only the model's code knows is never guessed


def probe(fields: Fields) -> Layers:
    """The layers of a file by its usual fields. Raises ConfigError where they do not tell."""
    if not fields.has("num_hidden_layers") or not fields.has("num_attention_heads"):
        raise fields.unknown_family([*ROWS])
    fields.note(f"{fields.unknown()}: read by its usual fields (assumed)")
    if not fields.has("head_dim") and not fields.has("kv_lora_rank"):
        fields.note(
            "head_dim is hidden_size / num_attention_heads (assumed), as in most model classes: the"
            " file does not give it"
        )
    try:
        return _told(fields)
    except ConfigError as error:
        raise fields.error(
            f"{fields.unknown(ROWS)}, and its usual fields do not tell:"
            f" {str(error).removeprefix(f'{fields.where}: ')}"
        ) from None


def _told(fields: Fields) -> Layers:
    types = map(str, json_list(fields.data.get("layer_types")) or [])
    sparse = json_object(fields.data.get("sparse_attention_config")) or {}
    like = {
        "deepseek_v4": fields.has("compress_ratios")
        or not {"compressed_sparse_attention", "heavily_compressed_attention"}.isdisjoint(types),
        "mimo_v2_flash": fields.has("hybrid_layer_pattern"),
        "smallthinker": fields.has("sliding_window_layout"),
        "minimax_m3": sparse.get("sparse_attention_freq") is not None,
    }
    for kind, there in like.items():
        if there:
            return read(ROWS[kind], fields)
    kinds = kinds_of(UNKNOWN, replace(fields, notes=[]))
    for kind in kinds:
        if kind not in UNKNOWN.mixers:
            name = next(filter(fields.has, UNKNOWN.lists))
            raise fields.error(
                f"'{name}' makes {kinds.count(kind)} of {len(kinds)} layers {kind}, but does not"
                " say which recurrence that is; pass --pattern, such as --pattern '(mamba2*7 +"
                " full)*4'"
            )
    return read(UNKNOWN, fields)

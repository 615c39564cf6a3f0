"""From a row of the table and the fields of a file to layers, and those of files whose model type
nobody knows; and what no row can say: what is refused or opened before a file is read, what is done
to the layers after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from separatrix.core.errors import ConfigError
from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.stacks.architecture.hf.fields import (
    MOST_LAYERS,
    Fields,
    Layers,
    mapped,
    shown,
)
from separatrix.stacks.architecture.hf.kinds import listed, parts, told
from separatrix.stacks.architecture.hf.notes import note_predicted, note_usual
from separatrix.stacks.architecture.hf.sizes import size_of
from separatrix.stacks.architecture.hf.table import ROWS, UNKNOWN, Row, made
from separatrix.stacks.mechanisms import Full, Mechanism, Reused, ReusedWindow, Window

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
    fields = opened(row, fields)
    fields.harmless(*row.silent)
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
    if kinds[0] == "shared":
        raise fields.error(
            "the first layer is listed as sharing an indexer, and no layer before it has one;"
            " correct 'indexer_types' or 'index_topk_pattern'"
        )
    if row.passes:
        layers = _repeated(fields, layers, row.passes)
    if row.reuse:
        layers = _reusing(fields, kinds, layers, size_of(row.reuse, fields))
    note_usual(fields, [draft for layer in layers for draft in layer], row.state)
    note_predicted(fields)
    if row.note:
        fields.note(" ".join(row.note.split()))
    return layers


def opened(row: Row, fields: Fields) -> Fields:
    """As the row reads them from then on. Raises ConfigError for what it refuses first."""
    for name, *words in row.before:
        fields = BEFORE[name](fields, *words) or fields
    if not row.depth:
        return fields
    depth = size_of(row.depth, replace(fields, most=MOST_LAYERS))
    stated = fields.optional_size("num_hidden_layers")
    passes = size_of(row.passes, fields) if row.passes else 1
    if stated not in (None, depth, depth * passes):
        raise fields.error(
            f"'num_hidden_layers' is {stated}, but a token passes {depth} layers {passes} times;"
            " correct one of them"
        )
    return fields.replaced(num_hidden_layers=depth)


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
    raise fields.untold([*row.lists, *row.told_by])


def _ended(row: Row, fields: Fields, kinds: list[str]) -> list[str]:
    if not row.last or kinds[-1] == row.last:
        return kinds
    why = "whatever the file says: the model class makes it so"
    fields.note(f"the last layer is {row.last} attention, {why}")
    return [*kinds[:-1], row.last]


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
        for kind in (kinds := kinds_of(UNKNOWN, replace(fields, notes=[]))):
            if kind not in UNKNOWN.mixers:
                name = next(filter(fields.has, UNKNOWN.lists))
                raise fields.error(
                    f"'{name}' makes {kinds.count(kind)} of {len(kinds)} layers {kind}, but does"
                    " not say which recurrence that is; pass the stack as a spec, such as"
                    " '(mamba2*7 + full)*4'"
                )
        return read(UNKNOWN, fields)
    except ConfigError as error:
        raise fields.error(
            f"{fields.unknown(ROWS)}, and its usual fields do not tell:"
            f" {str(error).removeprefix(f'{fields.where}: ')}"
        ) from None


# ---- before a file is read


def _only(fields: Fields, names: Sequence[str], *usual: Any) -> Fields:
    """Raises ConfigError where one of these fields, or an entry of its list or text, is none of the
    usual ones, which means what no reader knows.
    """
    for name in names:
        value = fields.value(name)
        listed = json_list(value)
        entries = (list(value) if isinstance(value, str) else listed) or [value]
        if value not in (None, *usual) and not all(entry in usual for entry in entries):
            known = ", ".join(map(shown, usual)) or "no such field"
            raise fields.error(
                f"'{name}' is {shown(value)}, but of this model type {known} is read; pass the"
                " stack as a spec, or correct 'model_type'"
            )
        if listed and fields.has("num_hidden_layers"):
            fields.each_layer(name, fields.layers())
    return fields


def _one(fields: Fields, *names: str) -> None:
    """Raises ConfigError where two of these fields, which are one, disagree."""
    fields.find(*names)


def _unless(fields: Fields, switch: str, *names: str) -> Fields:
    """Without these fields, which say nothing where the switch is false."""
    if fields.flag(switch) is not False:
        return fields
    fields.harmless(*names)
    return fields.replaced(**dict.fromkeys(names))


def _blocks(fields: Fields) -> Fields:
    """Nemotron from a search over layers: `block_configs` gives every layer as many query heads
    for a key head as it has, or takes its attention away; and its MLP a width.
    """
    entries = fields.each_layer("block_configs", fields.layers())
    blocks = [_block(fields, f"block_configs[{i}]", entry) for i, entry in enumerate(entries)]
    heads = fields.needed("num_attention_heads")
    what = "'num_attention_heads' / 'attention.n_heads_in_group'"
    return fields.replaced(
        num_key_value_heads_per_layer=[fields.quotient(heads, own[0] or 1, what) for own in blocks],
        layer_types=["full_attention" if own[0] else "mlp" for own in blocks],
        intermediate_size=[own[1] for own in blocks],
        linear_maps=sum(own[2] for own in blocks),
    )


def _block(fields: Fields, name: str, entry: Any) -> tuple[int, int | None, int]:
    """How many query heads of a layer share a key head, 0 where it has no attention; the units of
    its MLP, None where that is not told; and how many linear maps of a token stand for these.
    Raises ConfigError for anything else that it says of attention.
    """
    body = json_object(entry) or {}
    attention, ffn = json_object(body.get("attention")), json_object(body.get("ffn")) or {}
    if attention is None:
        raise fields.error(f"'{name}' is {shown(entry)}; it must have an object 'attention'")
    name = f"{name}.attention"
    part = fields.with_data({f"{name}.{key}": each for key, each in attention.items()})
    part.harmless(name, *part.data)
    gone = any(part.flag(f"{name}.{key}") for key in ("no_op", "replace_with_linear"))
    for key, each in attention.items():
        if each not in (None, False) and key != "n_heads_in_group" and not gone:
            raise fields.error(
                f"'{name}.{str(key)[:60]}' is {shown(each)}, which is not read; pass the stack as a"
                " spec"
            )
    linear = [own.get("replace_with_linear") is True for own in (attention, ffn)]
    units, width, times = None, fields.optional_size("hidden_size"), ffn.get("ffn_mult")
    if linear[1] or ffn.get("no_op") is True:
        units = 0
    elif width is not None and isinstance(times, int | float) and 0 < times <= width:
        # two thirds of a multiple of the model's width, up to a multiple of 256, as its class does
        units = -(-int(2 * times * width / 3) // 256) * 256
    return 0 if gone else part.needed(f"{name}.n_heads_in_group"), units, sum(linear)


BEFORE: dict[str, Callable[..., Fields | None]] = {
    "section": Fields.section,
    "only": _only,
    "one": _one,
    "unless": _unless,
    "blocks": _blocks,
}
"""What a row looks at first; the fields as they are read from then on."""

# ---- after the layers are made

_REUSED: dict[type[Mechanism], type[Mechanism]] = {Full: Reused, Window: ReusedWindow}


def _reusing(fields: Fields, kinds: Sequence[str], layers: Layers, shared: int) -> Layers:
    """The layers, of which the last `shared` read keys and values of the last layer of their kind
    before them. Raises ConfigError where there is none.
    """
    if not shared:
        return layers
    first = len(layers) - shared
    for kind in dict.fromkeys(kinds[max(first, 0) :]):
        if first < 1 or kind not in kinds[:first]:
            raise fields.error(
                f"'num_kv_shared_layers' is {shared}: the last layers reuse keys and values of a"
                " layer of their kind before them, and there is none; correct it"
            )
    fields.note(
        f"the last {shared} layers read the keys and values of the last layer of their kind before"
        " them, and keep none ('num_kv_shared_layers')"
    )
    later = mapped(layers[first:], lambda draft: replace(draft, cls=_REUSED[draft.cls]))
    return (*layers[:first], *later)


def _repeated(fields: Fields, layers: Layers, times: str) -> Layers:
    """The layers once for every pass that a token makes through them, `times` in the table."""
    passes = size_of(times, fields)
    why = "" if times.isdecimal() else f" ({times.replace('@', 'x')})"
    if len(layers) * passes > MOST_LAYERS:
        raise fields.error(
            f"{len(layers)} layers run {passes} times each{why}, more than {MOST_LAYERS:,} in"
            " all; correct the fields"
        )
    fields.note(
        f"every layer counts {passes} times{why}: each pass keeps keys and values of its own"
    )
    return layers * passes

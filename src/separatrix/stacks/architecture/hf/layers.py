"""From a row of the table and the fields of a file to layers, or from a stack given by hand
(`--pattern`), and what was assumed of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields, replace
from typing import Any

from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.stacks.architecture.hf.fields import Draft, Fields, Reading, Unknown, Value, shown
from separatrix.stacks.architecture.hf.hooks import AFTER, NOTES, Layers, state_said
from separatrix.stacks.architecture.hf.kinds import Found, listed, told
from separatrix.stacks.architecture.hf.notes import (
    ACCUMULATORS,
    cache_note,
    convolution_note,
    predicted_notes,
)
from separatrix.stacks.architecture.hf.table import PATTERN, Row
from separatrix.stacks.architecture.hf.unread import doubted, unread
from separatrix.stacks.architecture.spec import parse_sizes
from separatrix.stacks.mechanisms import MECHANISMS
from separatrix.stacks.mechanisms.base import ATTENTION

_OVERRIDES = "per_layer_config"
_LISTED = {
    f"{name}_per_layer": name for name in ("num_attention_heads", "num_key_value_heads", "head_dim")
}
"""Fields with a number for every layer -> the size that it is."""
_OWN = (
    *(_OVERRIDES, *_LISTED, "block_configs", "kv_source_layers", "cross_attention_layers"),
    "rope_scaling_layers",
)
"""Fields that give layers sizes of their own."""
_SIZES = (
    *("num_attention_heads", "num_key_value_heads", "head_dim", "sliding_window"),
    "attention_chunk_size",
)
"""Fields of a layer's own that are read."""


def kinds_of(row: Row, fields: Fields) -> Found:
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
        return _ended(row, list(kinds), [])
    if not row.stateful:
        fields.refuse_recurrent_looks()
    for rule in row.otherwise:
        kinds_told = told(fields, rule)
        if kinds_told is not None:
            return _ended(row, *kinds_told)
    looked_for = [*row.lists, *row.told_by]
    if row.stateful:
        raise fields.no_pattern(looked_for)
    raise fields.error(
        f"no field says which layers are of which kind (looked for"
        f" {', '.join(map(repr, looked_for))}); add one of them"
    )


def _ended(row: Row, kinds: list[str], said: list[str]) -> Found:
    if row.last and kinds[-1] != row.last:
        kinds[-1] = row.last
        why = "whatever the file says: the model class makes it so"
        said.append(f"the last layer is {row.last} attention, {why}")
    return kinds, said


def finished(row: Row, fields: Fields, found: Found) -> Reading:
    """The reading of layers whose kinds are known."""
    kinds, said = found
    own = per_layer(fields, row.own, len(kinds))
    used = {(kind, id(each)): each for kind, each in zip(kinds, own, strict=True)}
    if row.stateful:
        # fields of recurrences are read of each: a file may say sizes of layers that it lacks
        used = {(kind, id(fields)): fields for kind in row.mixers} | used
    # one draft for all layers that share a mixer and its fields
    made = {
        (id(maker), place): maker(each)
        for (kind, place), each in used.items()
        for maker in row.mixers[kind]
    }
    layers: Layers = tuple(
        tuple(made[id(maker), id(each)] for maker in row.mixers[kind])
        for kind, each in zip(kinds, own, strict=True)
    )
    refuse_own(fields, len(kinds), but=row.own)
    if row.after:
        layers, more = AFTER[row.after](fields, kinds, layers)
        said = [*said, *more]
    said = [*said, *(NOTES[name] for name in row.notes)]
    drafts = [*made.values(), *(draft for layer in layers for draft in layer)]
    usual = [*_usual_notes(row, fields, drafts), *predicted_notes(fields)]
    return Reading(layers, tuple([*usual, *said] if row.stateful else [*said, *usual]))


def _usual_notes(row: Row, fields: Fields, drafts: Sequence[Draft]) -> list[str]:
    """What is taken for granted of such mixers in any file."""
    dtype = fields.model_format()
    state = state_said(row.state, fields)
    notes = [state] if any("state_format" in draft.sizes for draft in drafts) else []
    notes += [convolution_note(dtype)] if any("conv" in draft.sizes for draft in drafts) else []
    softmax = any(draft.cls.group in ATTENTION for draft in drafts)
    return notes + ([cache_note(dtype), ACCUMULATORS] if softmax else [])


def per_layer(fields: Fields, own: Sequence[str], layers: int) -> list[Fields]:
    """The fields of every layer: those of the model, and over them what the file gives that layer
    in fields of the row's `own`. Layers without fields of their own share one object.

    Raises ConfigError for a layer that is not there, and for a field that is not read.
    """
    found: list[dict[str, Any]] = [{} for _ in range(layers)]
    for name in filter(own.__contains__, _LISTED):
        numbers = json_list(fields.value(name))
        if fields.has(name) and (numbers is None or len(numbers) != layers):
            raise fields.wrong(name, f"give each of the {layers} layers a number")
        fields.check_entries(name, numbers or [], lambda own: type(own) is int, "be an integer")
        for each, number in zip(found, numbers or [], strict=False):
            each[_LISTED[name]] = number
    if _OVERRIDES in own and fields.has(_OVERRIDES):
        for number, each in _overrides(fields, layers):
            found[number] |= each
    made = {repr([]): fields}
    for number, each in enumerate(found):
        layer = replace(fields.replaced(**each), where=f"{fields.where}, layer {number}")
        made.setdefault(_alike(each), layer)
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


def refuse_own(fields: Fields, layers: int, *, but: Sequence[str] = ()) -> None:
    """Raises ConfigError for fields that give layers sizes of their own, or share keys and values
    between them, except those in `but`.
    """
    for name in _OWN:
        # a list of all layers tells none apart
        alike: tuple[Any, ...] = ([], {}, [*range(layers)])
        if name not in but and fields.has(name) and fields.data[name] not in alike:
            raise fields.error(
                f"'{name}' gives single layers sizes or sources of their own, which is not"
                " supported; pass the stack as a spec"
            )
    shared = fields.optional_size("num_kv_shared_layers", low=0)
    if shared and "num_kv_shared_layers" not in but:
        raise fields.error(
            f"'num_kv_shared_layers' is {shared}: layers that reuse keys and values of other layers"
            " are not supported; pass the stack as a spec"
        )
    if fields.flag("use_cla") and "use_cla" not in but:
        raise fields.error(
            "'use_cla' is true: layers that reuse keys and values of other layers are not"
            " supported; pass the stack as a spec"
        )


_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")


def by_pattern(fields: Fields, pattern: str) -> Reading:
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
    of_file = Reading(tuple((_made(fields, name),) for name in names))
    odd = unread(fields, of_file)
    # what is said by hand stands over what the file leaves in doubt
    known = {
        name: layer[0] for name, layer in zip(names, doubted(of_file, odd).layers, strict=True)
    }
    drafts: dict[tuple[str, str], Draft] = {}
    for name, sizes in (part for layer in stack for part in layer):
        made = known[name]
        drafts.setdefault((name, repr(sizes)), Draft(made.cls, {**made.sizes, **sizes}))
    layers = tuple(tuple(drafts[name, repr(sizes)] for name, sizes in layer) for layer in stack)
    shown = pattern if len(pattern) <= 200 else f"{pattern[:197]}..."
    return Reading(
        layers,
        (
            f"layers set by hand: --pattern '{' '.join(shown.split())}'",
            *_usual_notes(PATTERN, fields, [*drafts.values()]),
            *_unread_note(odd),
        ),
    )


def _unread_note(names: list[str]) -> list[str]:
    """Says which fields that may change attention the pattern stands for."""
    if not names:
        return []
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    listed = ", ".join(f"'{name[:60]}'" for name in names[:5])
    return [f"not read, the pattern stands for them: {listed}{more}"]


def _made(file: Fields, name: str) -> Draft:
    """A mechanism by the fields that usually hold its sizes; sizes that no field is known for
    are unknown.
    """
    if name in PATTERN.mixers:
        return PATTERN.mixers[name][0](file)
    cls = MECHANISMS[name]
    sizes: dict[str, Value] = {}
    for field in fields(cls):
        if field.name == "format":
            sizes["format"] = file.model_format()
        elif field.name == "state_format":
            sizes["state_format"] = "fp32"
        elif _is_size(field.default):
            sizes[field.name] = Unknown((f"no field is known to hold '{field.name}' of '{name}'",))
    return Draft(cls, sizes)


def _is_size(default: Any) -> bool:
    """Whether a field is a number that a layer cannot do without; 0 and None stand for "none"
    and for another size.
    """
    return default is not MISSING and type(default) is int and default > 0

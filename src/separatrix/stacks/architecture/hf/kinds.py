"""Where the kind of every layer comes from: fields that list it, or the rule of the model class."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.stacks.architecture.hf.fields import Fields, shown
from separatrix.stacks.architecture.hf.sizes import DATA, parsed, value_of
from separatrix.stacks.architecture.hf.ways import NAMES


def _meant(text: str) -> dict[Any, str]:
    """Words in lists of layers -> the kinds that they mean; "@name" stands for those of a list of
    the table.
    """
    found: dict[Any, str] = {}
    for entry in text.split():
        word, _, kind = entry.partition("=")
        if entry.startswith("@"):
            found |= WORDS[entry[1:]]
        else:
            found[int(word) if word.isdecimal() else word] = kind.replace("_", " ")
    return found


WORDS: dict[str, dict[Any, str]] = {}
for _name, _text in DATA["words"].items():
    WORDS[_name] = _meant(_text)

_DERIVING = (
    *("sliding_window", "use_sliding_window", "max_window_layers", "attention_chunk_size"),
    *("sliding_window_pattern", "_sliding_window_pattern", "full_attention_interval"),
    *("global_attn_every_n_layers", "attn_layer_period", "attn_layer_offset", "full_attn_idxs"),
    *("attn_layer_indices", "hybrid_layer_ids", "no_rope_layer_interval", "sliding_window_size"),
)
"""Fields that lists of layers are made from: a period, an offset, a window that no layer has."""

# ---- lists


def listed(fields: Fields, field: str, how: str) -> list[str] | None:
    """The kind of every layer by the field `field`, None where it is absent. `how`: the words in
    it ("1:full,0:window", or of the table), "tiled" where they repeat over the depth, "numbers" of
    the layers of one kind, "repeated" where they stand with how often they repeat.
    """
    if not fields.has(field):
        return None
    match how.split():
        case ["kimi"]:
            return _kimi(fields)
        case ["hymba"]:
            return _hymba(fields)
        case ["attn"]:
            named = {i for _, _, layers in parts(fields) for i in layers}
            return ["attention" if i in named else "recurrent" for i in range(fields.layers())]
        case ["numbers", kind, others]:
            return numbered(fields, field, kind, others)
        case ["each", kind]:
            return [kind] * fields.layers()
        case ["tiled", words]:
            # a number is a period
            number = type(fields.data[field]) is int
            return None if number else entries(fields, field, WORDS[words], tiled=True)
        case ["repeated", words]:
            written = fields.replaced(**{field: _repeated(fields, field)})
            return listed(written, field, words)
        case [words, *flag]:
            own = words.replace(":", "=").replace(",", " ")
            kinds = entries(fields, field, WORDS.get(words) or _meant(own))
            return ["full"] * len(kinds) if flag and fields.flag(flag[-1]) is False else kinds
        case _:
            raise AssertionError(how)


def entries(
    fields: Fields, name: str, words: Mapping[Any, str], *, tiled: bool = False
) -> list[str]:
    """The kind of every layer, spelled by the list or string `name` in the words or integers
    `words` (word -> kind).

    The list is repeated over the depth if `tiled`. Raises ConfigError for another length or word.
    """
    # a list of all layers wins over what lists would be made from
    fields.harmless(*_DERIVING)
    layers = fields.layers()
    given = fields.value(name)
    found = given if tiled and isinstance(given, str) else tiled and json_list(given)
    found = found or fields.each_layer(name, layers)
    # true equals 1 and would pass for it; a list cannot be looked up
    fields.check_entries(
        name,
        found,
        lambda word: type(word) in (str, int) and word in words,
        f"be one of {', '.join(map(str, words))}",
    )
    return [words[found[i % len(found)]] for i in range(layers)]


def _repeated(fields: Fields, name: str) -> list[Any]:
    """A list of kinds with how often they repeat, written out (GPT-Neo)."""
    found: list[Any] = []
    for entry in json_list(fields.value(name)) or []:
        pair = json_list(entry) or []
        words, times = pair if len(pair) == 2 else (None, 0)
        once = json_list(words) or []
        if type(times) is not int or not 0 < times * len(once) <= fields.layers():
            raise fields.wrong(name, "list kinds of layers, and how often they repeat")
        found += once * times
    return found


def numbered(
    fields: Fields, field: str, kind: str, others: str, *, base: int | None = 0
) -> list[str]:
    """By a list of the numbers of the layers of one kind; `base` as in `indices`."""
    layers = fields.layers()
    there = set(indices(fields, field, layers, base=base))
    return [kind if i in there else others for i in range(layers)]


def _kimi(fields: Fields) -> list[str] | None:
    """`linear_attn_config` lists the layers, numbered from 1: both kinds, or one of them."""
    names = ("linear_attn_config.full_attn_layers", "linear_attn_config.kda_layers")
    there = [name for name in names if fields.has(name)]
    # both lists together tell from where they count
    zero = any(0 in (json_list(fields.data[name]) or []) for name in there)
    base = int(not zero) if len(there) == len(names) else None
    kinds = {names[0]: ("full", "recurrent"), names[1]: ("recurrent", "full")}
    found = [numbered(fields, name, *kinds[name], base=base) for name in there]
    if found[1:] and found[0] != found[1]:
        raise fields.error(
            f"'{names[0]}' and '{names[1]}' must name each of the {fields.layers()} layers once, in"
            " one of the two; correct them"
        )
    return found[0] if found else None


_OF_PARTS = ("num_heads", "num_kv_heads", "window_size", "use_rope", *NAMES)
"""Fields of theirs that are read."""


def parts(fields: Fields) -> Iterator[tuple[str, dict[str, Any], list[int]]]:
    """The objects in `attn` (flash-linear-attention: null, an object, or a list of them): the name,
    the object, and the layers that are attention of that sort.
    """
    value = fields.value("attn")
    several = json_list(value)
    if value is not None and several is None and json_object(value) is None:
        raise fields.wrong("attn", "be null, an object, or a list of objects")
    layers = fields.layers()
    if several is not None and len(several) > layers:
        raise fields.error(
            f"'attn' has {len(several)} entries, more than the model has layers ({layers});"
            " correct it"
        )
    named = [("attn", value)] if several is None and value is not None else []
    named += [(f"attn[{i}]", own) for i, own in enumerate(several or [])]
    taken: dict[int, str] = {}
    for name, own in named:
        part = fields.with_data({**fields.data, name: own}).section(name)
        if not part.has(f"{name}.layers"):
            raise fields.error(
                f"'{name}.layers' is missing: it says which layers are attention; add it to the"
                " file, or set 'attn' to null"
            )
        part.harmless(*(f"{name}.{key}" for key in _OF_PARTS))
        numbers = indices(part, f"{name}.layers", layers, base=0)
        for i in numbers:
            if i in taken:
                raise fields.error(
                    f"'{taken[i]}' and '{name}' both take layer {i}, as the file numbers them from"
                    " 0; give it to one of them"
                )
            taken[i] = name
        yield name, own, numbers


def indices(fields: Fields, name: str, layers: int, *, base: int | None) -> list[int]:
    """The layers that the list `name` names, numbered from 0 and in order.

    The file numbers them from `base`; if that is None, from 0 where the list holds a 0, from 1
    where it holds the number of layers. Raises ConfigError for anything that is no list of distinct
    layers, and where the base stays ambiguous.
    """
    found = json_list(fields.value(name))
    if found is None:
        raise fields.wrong(name, "be a list of layer numbers")
    if len(found) > layers:
        raise fields.error(
            f"'{name}' has {len(found)} entries, more than the model has layers ({layers});"
            " correct one of them"
        )
    fields.check_entries(name, found, lambda own: type(own) is int, "be a layer number")
    if len(set(found)) < len(found):
        twice = next(number for number in found if found.count(number) > 1)
        raise fields.error(f"'{name}' names layer {shown(twice)} twice; remove one")
    if base is None and found:
        first = min(found) == 0
        last = max(found) == layers
        if first == last:
            why = (
                f"from 0 to {layers}, more numbers than layers"
                if first
                else f"neither 0 nor {layers}, so they may count from 0 or from 1"
            )
            raise fields.error(
                f"'{name}' holds layers {why}; write the kind of every layer in 'layer_types'"
                " instead"
            )
        base = 0 if first else 1
    low = base or 0
    for number in sorted(found):
        if not low <= number < low + layers:
            raise fields.error(
                f"'{name}' names layer {shown(number)}; this model numbers its layers {low} to"
                f" {low + layers - 1}"
            )
    return [number - low for number in sorted(found)]


# ---- rules of model classes


def told(fields: Fields, rule: str) -> list[str] | None:
    """The kinds by a rule of the table, None where this is not how they are told."""
    if rule.startswith("or "):
        field, _, how = rule[3:].partition("=")
        return None if fields.value(field) == [] else listed(fields, field, how)
    kinds = [_kind(parsed(rule), replace(fields, layer=i)) for i in range(fields.layers())]
    return None if kinds[0] == "None" else kinds


def _kind(node: ast.expr, fields: Fields) -> str:
    """Of the layer that is asked about; "None" where the rule says nothing."""
    while isinstance(node, ast.IfExp):
        node = node.body if value_of(node.test, fields) else node.orelse
    if isinstance(node, ast.Call):
        value_of(node, fields)
    return ast.unparse(node)


def _hymba(fields: Fields) -> list[str]:
    """`global_attn_idx`: full; the other layers slide. Of a group in `kv_reuse_group` the first
    layer keeps keys and values for all.
    """
    kinds = numbered(fields, "global_attn_idx", "full", "window")
    if isinstance(fields.value("layer_type"), list):
        entries(fields, "layer_type", {"h": "hybrid"})
    value = fields.value("kv_reuse_group")
    listed = [] if value is None else json_list(value)
    groups = [None] if listed is None else [json_list(group) for group in listed]
    if not all(groups):
        raise fields.wrong("kv_reuse_group", "list groups of layers")
    layers = [own for group in groups for own in group or []]
    # each is a layer, and none stands in two groups
    indices(fields.replaced(kv_reuse_group=layers), "kv_reuse_group", len(kinds), base=0)
    for group in groups:
        numbers: list[int] = sorted(group or [])
        if len({kinds[i] for i in numbers}) > 1:
            raise fields.wrong("kv_reuse_group", "hold groups that are all full or all sliding")
        for i in numbers[1:]:
            kinds[i] += " reused"
    return kinds

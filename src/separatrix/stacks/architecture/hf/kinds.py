"""Where the kind of every layer comes from: fields that list it, or the rule of the model class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

from separatrix.core.evidence.canonical import json_list
from separatrix.stacks.architecture.hf.fields import MOST_LAYERS, Fields, shown
from separatrix.stacks.architecture.hf.sizes import DATA

Found = tuple[list[str], list[str]]
"""The kind of every layer, and what was assumed to tell it."""


def _words() -> dict[str, dict[Any, str]]:
    """Words in lists of layers -> the kinds that they mean; "@name" stands for those of another
    list.
    """
    found: dict[str, dict[Any, str]] = {}
    for name, text in DATA["words"].items():
        found[name] = {}
        for entry in text.split():
            word, _, kind = entry.partition("=")
            if entry.startswith("@"):
                found[name] |= found[entry[1:]]
            else:
                found[name][int(word) if word.isdecimal() else word] = kind.replace("_", " ")
    return found


WORDS = _words()
_FULL_IN = "(assumed): the file does not say, and transformers takes it so"
UNSLID = (
    "full attention everywhere (assumed): the file has no 'layer_types', and transformers takes it"
    " so"
)


# ---- lists


def listed(fields: Fields, field: str, how: str) -> list[str] | None:
    """The kind of every layer by the field `field`, None where it is absent. `how`: the words in
    it, "tiled" where they repeat over the depth, "numbers" of the layers of one kind.
    """
    match how.split():
        case ["kimi"]:
            return _kimi(fields)
        case ["numbers", kind, others]:
            return numbered(fields, field, kind, others)
        case ["each", kind]:
            return [kind] * fields.layers() if fields.has(field) else None
        case ["tiled", words]:
            return _entries(fields, field, WORDS[words], tiled=True)
        case [words, *flag]:
            kinds = _entries(fields, field, WORDS[words])
            off = flag and fields.flag(flag[-1]) is False
            return ["full"] * len(kinds) if kinds is not None and off else kinds
        case _:
            raise AssertionError(how)


def _entries(
    fields: Fields, field: str, words: Mapping[Any, str], *, tiled: bool = False
) -> list[str] | None:
    """A list or text with an entry for every layer. Entries of layers for multi-token prediction,
    which are not part of the stack, may follow.
    """
    if not fields.has(field):
        return None
    layers = fields.layers()
    predicted = fields.optional_size("num_nextn_predict_layers", low=0)
    entries = json_list(fields.value(field))
    if predicted and entries is not None and len(entries) == layers + predicted:
        fields = fields.with_data({**fields.data, field: entries[:layers]})
    return fields.kinds(field, words, tiled=tiled)


def numbered(
    fields: Fields, field: str, kind: str, others: str, *, base: int | None = 0
) -> list[str] | None:
    """By a list of the numbers of the layers of one kind; `base` as in `indices`."""
    if not fields.has(field):
        return None
    layers = fields.layers()
    there = set(indices(fields, field, layers, base=base))
    return [kind if i in there else others for i in range(layers)]


def _kimi(fields: Fields) -> list[str] | None:
    """`linear_attn_config` lists the layers, numbered from 1: both kinds, or one of them."""
    full, others = (f"linear_attn_config.{name}_layers" for name in ("full_attn", "kda"))
    if fields.has(full) and fields.has(others):
        return _partition(fields, full, others, fields.layers())
    kinds = numbered(fields, full, "full", "recurrent", base=None)
    return kinds or numbered(fields, others, "recurrent", "full", base=None)


def indices(fields: Fields, name: str, layers: int, *, base: int | None) -> list[int]:
    """The layers that the list `name` names, numbered from 0 and in order.

    The file numbers them from `base`; if that is None, from 0 where the list holds a 0, from 1
    where it holds the number of layers. Raises ConfigError for anything that is no list of distinct
    layers, and where the base stays ambiguous.
    """
    found = _integers(fields, name, layers)
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
    for number in found:
        if not low <= number < low + layers:
            raise fields.error(
                f"'{name}' names layer {shown(number)}; this model numbers its layers {low} to"
                f" {low + layers - 1}"
            )
    return [number - low for number in found]


def _partition(fields: Fields, first: str, second: str, layers: int) -> list[str]:
    """Full for the layers in the list `first`, recurrent for those in `second`; together they
    name every layer once, from 0 or from 1. Raises ConfigError where they do not.
    """
    one = _integers(fields, first, layers)
    other = _integers(fields, second, layers)
    both = sorted([*one, *other])
    twice = next((a for a, b in pairwise(both) if a == b), None)
    if twice is not None:
        raise fields.error(
            f"layer {shown(twice)} stands in both '{first}' and '{second}'; remove it from one of"
            " them"
        )
    low = both[0] if both else 0
    if len(both) != layers or low not in (0, 1) or both[-1] != low + layers - 1:
        raise fields.error(
            f"'{first}' and '{second}' name {len(both)} layers; together they must name each of the"
            f" {layers} layers once, from 0 or from 1"
        )
    return ["full" if number in set(one) else "recurrent" for number in both]


def _integers(fields: Fields, name: str, layers: int) -> list[int]:
    numbers = json_list(fields.value(name))
    if numbers is None:
        raise fields.wrong(name, "be a list of layer numbers")
    if len(numbers) > layers:
        raise fields.error(
            f"'{name}' has {len(numbers)} entries, more than the model has layers ({layers});"
            " correct one of them"
        )
    fields.check_entries(name, numbers, lambda own: type(own) is int, "be a layer number")
    if len(set(numbers)) < len(numbers):
        twice = next(number for number in numbers if numbers.count(number) > 1)
        raise fields.error(f"'{name}' names layer {shown(twice)} twice; remove one")
    return sorted(numbers)


# ---- rules of model classes


def told(fields: Fields, rule: str) -> Found | None:
    """The kinds by a rule of the table, None where this is not how they are told."""
    name, *words = rule.split()
    return RULES[name](fields, *words)


def _all(fields: Fields, kind: str, *depth: str) -> Found:
    return [kind] * fields.layers(*depth), []


def plain(fields: Fields) -> Found:
    """All layers slide if `sliding_window` is set and not switched off, else see every token.
    Raises ConfigError for chunks, which no model class has that is read so.
    """
    sliding = fields.has("sliding_window") and fields.flag("use_sliding_window") is not False
    if not sliding and fields.has("attention_chunk_size"):
        raise fields.error(
            f"'attention_chunk_size' is {shown(fields.data['attention_chunk_size'])}, but attention"
            " of this model type has no chunks; set it to null"
        )
    return ["window" if sliding else "full"] * fields.layers(), []


def every(fields: Fields, usual: str, others: str, *names: str) -> Found:
    """A full layer every so many layers, the last of each period, as a field says or, where it is
    absent, as transformers takes it.
    """
    given = fields.optional_size(*names) if names else None
    by = given or int(usual)
    kinds = ["full" if (i + 1) % by == 0 else others for i in range(fields.layers())]
    or_else = names[0] if names else "any other field for it"
    silent = f"{usual} layers (assumed): the file has neither 'layer_types' nor '{or_else}'"
    if others == "recurrent":
        silent = f"{usual}th layer (assumed): the file does not say"
    note = f"full attention every {silent}, and transformers takes {usual}"
    return kinds, [] if given else [note]


def _first_of(fields: Fields, usual: str, *names: str) -> Found:
    """The first layer of every period is full."""
    given = fields.optional_size(*names) if names else None
    by = given or int(usual)
    kinds = ["full" if i % by == 0 else "window" for i in range(fields.layers())]
    nth = {"3": "3rd", "4": "4th"}[usual]
    note = f"full attention in every {nth} layer from the first on {_FULL_IN}"
    return kinds, [] if given else [note]


def _period(fields: Fields, name: str, offset: str) -> Found | None:
    """Full where the layer's number leaves `offset` when divided by `name`."""
    if not fields.has(name):
        return None
    by = fields.needed(name)
    rest = fields.needed(offset, low=0, high=by - 1)
    return ["full" if i % by == rest else "recurrent" for i in range(fields.layers())], []


def _indexers(fields: Fields, usual: str, *names: str) -> Found:
    """Layers that choose tokens for those after them: the first ones, and then one of so many."""
    freq, skipped = (fields.optional_size(name, low=0) for name in names) if names else (None, None)
    by, first = freq or int(usual), 2 if skipped is None else skipped
    numbers = range(fields.layers())
    kinds = ["shared" if max(i - first + 1, 0) % by else "indexed" for i in numbers]
    note = f"an indexer of its own in the first and every {usual}th layer {_FULL_IN}"
    return kinds, [note] if by > 1 and freq is None else []


def _numbered(fields: Fields, field: str, kind: str, others: str) -> Found | None:
    kinds = numbered(fields, field, kind, others)
    return None if kinds is None else (kinds, [])


def switched(fields: Fields, *, unless_said: bool = False) -> Found:
    """Sliding only if `use_sliding_window` is true (`unless_said` where it is absent),
    `sliding_window` is there, and from layer `max_window_layers` on (Qwen2 and kin).
    """
    layers = fields.layers()
    switch = fields.flag("use_sliding_window")
    # without the switch, neither of them says anything
    fields.harmless("sliding_window", "max_window_layers")
    if not (unless_said if switch is None else switch) or not fields.has("sliding_window"):
        return ["full"] * layers, []
    first = fields.needed("max_window_layers", low=0)
    return ["window" if i >= first else "full" for i in range(layers)], []


def _window_or_null(fields: Fields) -> Found:
    """Mistral: full only where `sliding_window` is null. Its class asks for no switch, which vLLM
    obeys.
    """
    if fields.has("sliding_window") and fields.flag("use_sliding_window") is False:
        raise fields.error(
            "'use_sliding_window' is false and 'sliding_window' is there, and implementations of"
            " this model type disagree on the switch; set 'sliding_window' to null"
        )
    return plain(fields) if "sliding_window" in fields.data else _all(fields, "window")


def _unslid(fields: Fields) -> Found:
    """Only a list tells which layers slide (Ouro), or releases disagree on it (SmolLM3)."""
    sliding, switch = fields.has("sliding_window"), fields.flag("use_sliding_window")
    if sliding and switch is not False:
        raise fields.error(
            "'sliding_window' is there, and only a list in 'layer_types' tells which layers of this"
            " model type slide; add it"
        )
    fields.harmless("max_window_layers")
    return _all(fields, "full")


def _unslid_unless_listed(fields: Fields) -> Found:
    fields.harmless("sliding_window")
    return ["full"] * fields.layers(), [UNSLID]


def _dense_first(fields: Fields) -> Found:
    """Cohere 2 with experts: dense layers come first, and slide by a period of their own."""
    first = fields.optional_size("first_k_dense_replace", low=0) or 0
    among = fields.optional_size("prefix_dense_sliding_window_pattern") or 1
    kinds, said = every(fields, "4", "window", "sliding_window_pattern", "_sliding_window_pattern")
    dense = ["full" if (i + 1) % among == 0 else "window" for i in range(first)]
    return [*dense, *kinds][: len(kinds)], said


def _letters(fields: Fields) -> Found | None:
    """EXAONE 4: letters such as "LLLG"; all full without `sliding_window`."""
    letters = fields.value("sliding_window_pattern")
    if isinstance(letters, int):
        return None
    if not fields.has("sliding_window"):
        return _all(fields, "full")
    if letters is None:
        return None
    words = {"L": "window", "G": "full"}
    return fields.kinds("sliding_window_pattern", words, tiled=True), []


def _rotating(fields: Fields) -> Found | None:
    """Llama 4: `no_rope_layers`, 1 chunked, 0 full."""
    if not fields.has("no_rope_layers") or fields.data["no_rope_layers"] == []:
        return None
    return fields.kinds("no_rope_layers", WORDS["one_full_else_chunked"]), []


def _first_and_sixth(fields: Fields) -> Found:
    layers = range(fields.layers())
    kinds = ["full" if i == 0 or (i + 1) % 6 == 0 else "window" for i in layers]
    return kinds, [f"full attention in the first and every 6th layer {_FULL_IN}"]


def _last_of_four(fields: Fields) -> Found:
    """OLMo hybrid: full iff i % 4 == 3, and the last layer of a shorter stack."""
    kinds, said = every(fields, "4", "recurrent")
    if len(kinds) < 4:
        kinds[-1] = "full"
    return kinds, said


def _grouped(fields: Fields) -> Found:
    """Ring-linear and Ling-linear: softmax attention in the last layer of every `layer_group_size`
    layers, and in those left over at the end.
    """
    by = fields.needed("layer_group_size")
    layers = fields.layers()
    whole = layers // by * by
    kinds = ["full" if (i + 1) % by == 0 or i >= whole else "recurrent" for i in range(layers)]
    return kinds, []


def _zamba_period(fields: Fields) -> Found | None:
    """Two Mamba layers, a hybrid one, then hybrid iff i % `attn_layer_period` ==
    `attn_layer_offset`.
    """
    layers = fields.layers()
    if fields.has("attn_layer_period") and layers < 3:
        raise fields.error(
            f"'num_hidden_layers' is {layers}; without 'layers_block_type' this model type has at"
            " least 3 layers"
        )
    found = _period(fields, "attn_layer_period", "attn_layer_offset")
    if found is None:
        return None
    later = ["hybrid" if kind == "full" else kind for kind in found[0][: layers - 3]]
    return ["recurrent", "recurrent", "hybrid", *later], []


def _two_each(fields: Fields) -> Found:
    own = fields.layers("num_layers")
    if 2 * own > MOST_LAYERS:
        raise fields.error(
            f"'num_layers' is {own}, and two attentions in each are more than {MOST_LAYERS:,} in"
            " all; correct it"
        )
    why = "two attentions in every layer"
    note = f"every layer counts 2 times ({why}): each pass keeps keys and values of its own"
    return ["full"] * (2 * own), [note]


def _cross_layer(fields: Fields) -> Found:
    """Hunyuan-Large: with `use_cla`, layers whose number is no multiple of `cla_share_factor` read
    the keys and values of the last one whose number is.
    """
    fields.harmless("cla_share_factor")
    factor = fields.needed("cla_share_factor") if fields.flag("use_cla") else 1
    kinds = ["full" if i % factor == 0 else "reused" for i in range(fields.layers())]
    note = (
        f"{factor - 1} of {factor} layers read the keys and values of the layer before them, and"
        " keep none ('cla_share_factor')"
    )
    return kinds, [note] if factor > 1 else []


def _repeated_types(fields: Fields) -> Found:
    """GPT-Neo: lists of kinds with how often they repeat; `attention_layers`, the same written
    out, must agree.
    """
    depth = fields.layers("num_layers", "num_hidden_layers")
    kinds: list[object] = []
    for entry in json_list(fields.value("attention_types")) or []:
        pair = json_list(entry) or []
        words = json_list(pair[0]) if pair else None
        times = pair[1] if len(pair) == 2 else None
        if words is None or type(times) is not int or not 1 <= times <= depth:
            raise fields.error(
                f"'attention_types' holds {shown(entry)}; it must be kinds of layers and how often"
                " they repeat"
            )
        kinds += words * times
    written = json_list(fields.value("attention_layers"))
    if written is not None and written != kinds:
        raise fields.error("'attention_layers' and 'attention_types' disagree; correct one of them")
    if len(kinds) != depth or any(kind not in ("global", "local") for kind in kinds):
        raise fields.error(
            f"'attention_types' makes {len(kinds)} layers; it must make {depth}, each global or"
            " local"
        )
    return [str(kind) for kind in kinds], []


def _hymba(fields: Fields) -> Found | None:
    """`global_attn_idx`: full; the other layers slide. Of a group in `kv_reuse_group` the first
    layer keeps keys and values for all.
    """
    kinds = numbered(fields, "global_attn_idx", "full", "window")
    if kinds is None:
        return None
    if isinstance(fields.value("layer_type"), list):
        _entries(fields, "layer_type", {"h": "hybrid"})
    value = fields.value("kv_reuse_group")
    groups = [] if value is None else json_list(value)
    if groups is None:
        raise fields.wrong("kv_reuse_group", "list groups of layers")
    seen: set[int] = set()
    reused = list(kinds)
    for place, group in enumerate(groups):
        name = f"kv_reuse_group[{place}]"
        part = fields.with_data({**fields.data, name: group})
        of_group = indices(part, name, len(kinds), base=0)
        if not of_group or seen & set(of_group) or len({kinds[i] for i in of_group}) > 1:
            raise fields.error(
                f"'{name}' is {shown(group)}; a group must hold layers of no other group, all full"
                " or all sliding"
            )
        seen |= set(of_group)
        for i in of_group[1:]:
            reused[i] = f"{kinds[i]} reused"
    return reused, []


def _unknown_period(fields: Fields) -> Found | None:
    """Of a type that is not known. Read is `sliding_window_pattern` alone, which means one thing
    in every family that has it.
    """
    name = fields.find("sliding_window_pattern", "_sliding_window_pattern")
    return None if name is None else every(fields, str(fields.needed(name)), "window", name)


def _unknown_plain(fields: Fields) -> Found:
    """Of a type that is not known, by the usual fields of attention alone."""
    if fields.has("sliding_window") and fields.has("max_window_layers"):
        return switched(fields, unless_said=True)
    if not fields.has("sliding_window") and not fields.flag("use_sliding_window"):
        # without a window it says nothing
        fields.harmless("max_window_layers")
    if any(fields.has(f"index_{name}") for name in ("topk", "head_dim", "n_heads")):
        return _all(fields, "indexed")
    if fields.has("kv_lora_rank"):
        return _all(fields, "full")
    chunks = fields.has("attention_chunk_size") and not fields.has("sliding_window")
    return _all(fields, "chunked") if chunks else plain(fields)


RULES: dict[str, Callable[..., Found | None]] = {
    "all": _all,
    "plain": plain,
    "every": every,
    "first_of": _first_of,
    "period": _period,
    "indexers": _indexers,
    "numbered": _numbered,
    "switched": switched,
    "switched_unless_said": partial(switched, unless_said=True),
    "window_or_null": _window_or_null,
    "unslid": _unslid,
    "unslid_unless_listed": _unslid_unless_listed,
    "dense_first": _dense_first,
    "letters": _letters,
    "rotating": _rotating,
    "first_and_sixth": _first_and_sixth,
    "last_of_four": _last_of_four,
    "grouped": _grouped,
    "zamba_period": _zamba_period,
    "two_each": _two_each,
    "cross_layer": _cross_layer,
    "repeated_types": _repeated_types,
    "hymba": _hymba,
    "unknown_period": _unknown_period,
    "unknown_plain": _unknown_plain,
}
"""How model classes tell their layers apart, as the table calls it."""

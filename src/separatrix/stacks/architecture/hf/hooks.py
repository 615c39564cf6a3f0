"""What no row of the table can say: what is refused or opened before a file is read, what is done
to the layers after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.stacks.architecture.hf.fields import (
    MOST_LAYERS,
    Fields,
    Layers,
    mapped,
    shown,
)
from separatrix.stacks.architecture.hf.kinds import listed
from separatrix.stacks.mechanisms import Full, Mechanism, Reused, ReusedWindow, Window

# ---- before a file is read


def _only(fields: Fields, names: Sequence[str], *usual: Any) -> Fields:
    """Raises ConfigError where one of these fields has another value than the usual ones, which
    means what no reader knows.
    """
    for name in names:
        value = fields.value(name)
        if value is not None and value not in usual:
            known = ", ".join(map(shown, usual)) or "no such field"
            raise fields.error(
                f"'{name}' is {shown(value)}, but of this model type {known} is read; pass the"
                " stack as a spec, or correct 'model_type'"
            )
    return fields


def _each(fields: Fields, name: str, *words: str) -> Fields:
    """Raises ConfigError where a list names another kind of layer, or not every layer."""
    value = fields.value(name)
    if value is not None and all(value != [word] * fields.layers() for word in words):
        raise fields.wrong(name, f"give each of the {fields.layers()} layers {words[0]}")
    return fields


def _as_long_as_listed(fields: Fields) -> Fields:
    """Nemotron-H: transformers' class takes the depth from the list, and saves no other."""
    names = ("hybrid_override_pattern", "layers_block_type", "layer_types")
    values = (fields.data.get(name) for name in names)
    entries = (value if isinstance(value, str) else json_list(value) for value in values)
    found = next((entry for entry in entries if entry is not None), None)
    if found is None or fields.has("num_hidden_layers"):
        return fields
    return fields.replaced(num_hidden_layers=len(found))


def _cycles(fields: Fields) -> int:
    cycles = fields.needed("H_cycles", high=MOST_LAYERS)
    return cycles * (fields.needed("L_cycles", high=MOST_LAYERS) + 1)


def _one_stack(fields: Fields) -> Fields:
    """HRM-Text: saved files count all passes in `num_hidden_layers`; files without
    `num_layers_per_stack` count one stack there.
    """
    stack = fields.optional_size("num_layers_per_stack", high=MOST_LAYERS)
    stated = fields.optional_size("num_hidden_layers", high=MOST_LAYERS)
    passes = _cycles(fields)
    if stack is not None and stated not in (None, stack, stack * passes):
        raise fields.error(
            f"'num_hidden_layers' is {stated}, but 'num_layers_per_stack' x 'H_cycles' x"
            f" ('L_cycles' + 1) is {stack * passes}; correct one of them"
        )
    return fields if stack is None else fields.replaced(num_hidden_layers=stack)


def _blocks(fields: Fields) -> Fields:
    """Nemotron from a search over layers: `block_configs` gives every layer as many query heads
    for a key head as it has, or takes its attention away.
    """
    entries = fields.each_layer("block_configs", fields.layers())
    shared = [_block(fields, f"block_configs[{i}]", entry) for i, entry in enumerate(entries)]
    heads = fields.needed("num_attention_heads")
    what = "'num_attention_heads' / 'attention.n_heads_in_group'"
    return fields.replaced(
        num_key_value_heads_per_layer=[fields.quotient(heads, own or 1, what) for own in shared],
        layer_types=["full_attention" if own else "mlp" for own in shared],
    )


def _block(fields: Fields, name: str, entry: Any) -> int:
    """How many query heads of a layer share a key head, 0 where it has no attention. Raises
    ConfigError for anything else that it says.
    """
    attention = json_object((json_object(entry) or {}).get("attention"))
    if attention is None:
        raise fields.error(f"'{name}' is {shown(entry)}; it must have an object 'attention'")
    name = f"{name}.attention"
    part = fields.with_data({f"{name}.{key}": each for key, each in attention.items()})
    part.harmless(name, *part.data)
    # a linear map of one token, or nothing
    if any(part.flag(f"{name}.{key}") for key in ("no_op", "replace_with_linear")):
        return 0
    for key, each in attention.items():
        if each not in (None, False) and key != "n_heads_in_group":
            raise fields.error(
                f"'{name}.{str(key)[:60]}' is {shown(each)}, which is not read; pass the stack as a"
                " spec"
            )
    return part.needed(f"{name}.n_heads_in_group")


def _twice(fields: Fields) -> Fields:
    """LongCat-Flash: `num_layers` layers with two latent attentions each, which
    `num_hidden_layers`, where it is there, counts one by one.
    """
    own = fields.layers("num_layers")
    stated = fields.optional_size("num_hidden_layers", high=2 * MOST_LAYERS)
    if stated not in (None, own, 2 * own):
        raise fields.error(
            f"'num_hidden_layers' is {stated}, but each of the 'num_layers' = {own} layers has two"
            " attentions; correct one of them"
        )
    return fields


def _own_indexers(fields: Fields) -> None:
    """Raises ConfigError where a layer takes the choice of another layer's indexer: it keeps no
    indexer keys, which is not supported.
    """
    for name, own in _OWN_INDEXERS.items():
        value = fields.value(name)
        entries = value if isinstance(value, str) else json_list(value) or [value]
        if value is not None and not own.issuperset(map(str, entries)):
            raise fields.error(
                f"'{name}' is {shown(value)}: layers that share an indexer are not supported; pass"
                " the stack as a spec"
            )


_OWN_INDEXERS = {
    "indexer_types": {"full"},
    "index_topk_pattern": {"F", "full"},
    "index_topk_freq": {"1"},
}
"""What files say where every layer has its own."""

BEFORE: dict[str, Callable[..., Fields | None]] = {
    "section": Fields.section,
    "only": _only,
    "each": _each,
    "as_long_as_listed": _as_long_as_listed,
    "one_stack": _one_stack,
    "blocks": _blocks,
    "twice": _twice,
    "own_indexers": _own_indexers,
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


def _repeated(fields: Fields, layers: Layers, passes: int, why: str) -> Layers:
    """The layers once for every pass that a token makes through them."""
    if len(layers) * passes > MOST_LAYERS:
        raise fields.error(
            f"{len(layers)} layers run {passes} times each ({why}), more than {MOST_LAYERS:,} in"
            " all; correct the fields"
        )
    fields.note(
        f"every layer counts {passes} times ({why}): each pass keeps keys and values of its own"
    )
    return layers * passes


def _no_values(fields: Fields, kinds: list[str], layers: Layers) -> Layers:
    """Raises ConfigError where a sparse layer's indexer keeps a value per token too."""
    name = "sparse_attention_config.sparse_disable_index_value"
    off = listed(fields, name, "1:off,0:on") or []
    if ("sparse", "on") in zip(kinds, off, strict=False):
        raise fields.error(
            f"'{name}' is {shown(fields.data[name])}: indexers that keep values are not supported;"
            " pass the stack as a spec"
        )
    return layers


def _chosen_before(fields: Fields, kinds: list[str], layers: Layers) -> Layers:
    """Raises ConfigError where no earlier layer has the indexer that a layer shares."""
    if kinds[0] == "shared":
        raise fields.error(
            "the first layer is listed as sharing an indexer, and no layer before it has one;"
            " correct 'indexer_types' or 'index_topk_pattern'"
        )
    return layers


AFTER: dict[str, Callable[[Fields, list[str], Layers], Layers]] = {
    "looped": lambda fields, _, layers: _repeated(
        fields, layers, fields.needed("total_ut_steps", high=MOST_LAYERS), "total_ut_steps"
    ),
    "cycled": lambda fields, _, layers: _repeated(
        fields, layers, _cycles(fields), "H_cycles x (L_cycles + 1)"
    ),
    "two_each": lambda fields, _, layers: _repeated(
        fields, layers, 2, "two attentions in every layer"
    ),
    # Gemma 3n; transformers takes 15 where that is absent
    "last_layers_reuse": lambda fields, kinds, layers: _reusing(
        fields, kinds, layers, fields.needed("num_kv_shared_layers", low=0)
    ),
    "last_layers_reuse_if_said": lambda fields, kinds, layers: _reusing(
        fields, kinds, layers, fields.optional_size("num_kv_shared_layers", low=0) or 0
    ),
    "no_values": _no_values,
    "chosen_before": _chosen_before,
}

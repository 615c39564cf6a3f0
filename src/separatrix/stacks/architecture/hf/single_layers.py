"""What files say of single layers: sizes of their own (`per_layer_config`), and keys and values
that they take from an earlier layer.
"""

from __future__ import annotations

from collections.abc import Sequence

from separatrix.core.evidence.canonical import json_object
from separatrix.stacks.architecture.hf.draft import Draft
from separatrix.stacks.architecture.hf.fields import Fields, shown
from separatrix.stacks.mechanisms import Full, Mechanism, Reused, ReusedWindow, Window

Layers = tuple[tuple[Draft, ...], ...]
OVERRIDES = "per_layer_config"
_OWN = (
    OVERRIDES,
    "block_configs",
    "num_attention_heads_per_layer",
    "kv_source_layers",
    "cross_attention_layers",
)
"""Fields that give layers sizes of their own."""
_SIZES = (
    *("num_attention_heads", "num_key_value_heads", "head_dim", "sliding_window"),
    "attention_chunk_size",
)
"""Fields of a layer's own that are read."""
_REUSED: dict[type[Mechanism], type[Mechanism]] = {Full: Reused, Window: ReusedWindow}


def per_layer(fields: Fields) -> list[Fields]:
    """The fields of every layer: those of the model, and over them what `per_layer_config` gives
    that layer, as transformers saves it. Layers without fields of their own share one object.

    Raises ConfigError for a layer that is not there, and for a field that is not read.
    """
    found = [fields] * fields.layers()
    whole = fields.value(OVERRIDES)
    given = {} if whole is None else json_object(whole)
    if given is None:
        rule = "be an object that gives layers by their numbers fields of their own"
        raise fields.wrong(OVERRIDES, rule)
    made: dict[str, Fields] = {}
    for key, value in given.items():
        own = json_object(value)
        number = int(key) if key.isascii() and key.isdecimal() else len(found)
        if own is None or number >= len(found):
            raise fields.error(
                f"'{OVERRIDES}' has the entry {shown(key)}: {shown(value)}; it must give one of the"
                f" layers 0 to {len(found) - 1} an object of fields"
            )
        for name in own:
            fields.harmless(f"{OVERRIDES}.{key}.{name}")
            if name not in _SIZES:
                raise fields.error(
                    f"'{OVERRIDES}.{key}.{name[:60]}' is no field that is read of a single layer"
                    f" ({', '.join(_SIZES)}); pass the stack as a spec"
                )
        alike = repr(sorted(own.items(), key=str))
        found[number] = made.setdefault(alike, fields.replaced(**own))
    return found


def reusing(
    fields: Fields, kinds: Sequence[str], layers: Layers, shared: int
) -> tuple[Layers, list[str]]:
    """The layers, of which the last `shared` read keys and values of the last layer of their kind
    before them, and a note that says so. Raises ConfigError where there is none.
    """
    if not shared:
        return layers, []
    first = len(layers) - shared
    for kind in dict.fromkeys(kinds[max(first, 0) :]):
        if first < 1 or kind not in kinds[:first]:
            raise fields.error(
                f"'num_kv_shared_layers' is {shared}: the last layers reuse keys and values of a"
                " layer of their kind before them, and there is none; correct it"
            )
    made = {
        id(draft): Draft(_REUSED[draft.cls], draft.sizes)
        for layer in layers[first:]
        for draft in layer
    }
    later = [tuple(made[id(draft)] for draft in layer) for layer in layers[first:]]
    note = (
        f"the last {shared} layers read the keys and values of the last layer of their kind before"
        " them, and keep none ('num_kv_shared_layers')"
    )
    return (*layers[:first], *later), [note]


def refuse_own(fields: Fields, *, but: Sequence[str] = ()) -> None:
    """Raises ConfigError for fields that give layers sizes of their own, or share keys and values
    between them, except those in `but`.
    """
    for name in _OWN:
        if name not in but and fields.has(name) and fields.data[name] not in ([], {}):
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

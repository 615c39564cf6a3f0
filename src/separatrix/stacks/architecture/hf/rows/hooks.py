"""Readers of the few model types whose layers differ one by one, or in more than a row can say."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.stacks.architecture.hf.draft import Draft, Reading
from separatrix.stacks.architecture.hf.fields import LARGEST, Fields, shown
from separatrix.stacks.architecture.hf.interpreter import finished, kinds_of
from separatrix.stacks.architecture.hf.row import (
    DIM,
    Layers,
    Maker,
    Mixer,
    Of,
    Row,
    divisor,
    quotient,
    softmax,
)
from separatrix.stacks.architecture.hf.single_layers import OVERRIDES, per_layer, reusing
from separatrix.stacks.mechanisms import PositionWise, Window

_BLOCKS = "block_configs"
_NONE = "no attention"
_PER_LAYER = "num_key_value_heads_per_layer"


def gemma4(row: Row, fields: Fields) -> Reading:
    """The last layer is full; sizes of full layers may stand in `per_layer_config`, as
    transformers saves them; the last `num_kv_shared_layers` layers reuse keys and values of an
    earlier one.
    """
    kinds, said = kinds_of(row, fields)
    if kinds[-1] != "full":
        kinds[-1] = "full"
        said.append(
            "the last layer is full attention, whatever the file says: the model class makes it so"
        )
    shared = fields.optional_size("num_kv_shared_layers", low=0) or 0

    def after(fields: Fields, named: list[str], layers: Layers) -> tuple[Layers, list[str]]:
        return reusing(fields, kinds, layers, shared)

    row = replace(row, after=after)
    if not fields.has(OVERRIDES):
        return finished(row, fields, (kinds, said))
    plain = softmax()
    makers: dict[str, Maker] = {}
    named: list[str] = []
    for own, kind in zip(per_layer(fields), kinds, strict=True):
        named.append(f"{kind} of {id(own)}")
        makers[named[-1]] = partial(_of_its_own, plain[kind], own)
    return finished(replace(row, mixers=makers), fields, (named, said))


def _of_its_own(maker: Maker, own: Fields, fields: Fields) -> Draft:
    """A layer by fields of its own, whatever those of the whole file say."""
    return maker(own)


def _ported(fields: Fields) -> bool:
    return not any(str(name).startswith("swa_") for name in fields.data)


def mimo_window(fields: Fields) -> Draft:
    """MiMo-V2: sliding layers have the heads of the fields `swa_*`."""
    sizes: dict[str, Of] = {
        "heads": "swa_num_attention_heads",
        "kv_heads": divisor("swa_num_key_value_heads", "swa_num_attention_heads"),
        "head_dim": "swa_head_dim",
        "value_dim": "swa_v_head_dim",
    }
    if _ported(fields):
        sizes = {
            "heads": "num_attention_heads",
            "kv_heads": lambda fields: 2 * fields.size("num_key_value_heads"),
            "head_dim": "head_dim",
            "value_dim": "v_head_dim",
        }
    return Mixer(Window, sizes | {"size": ("sliding_window", "sliding_window_size")})(fields)


def mimo(row: Row, fields: Fields) -> Reading:
    """MiMo-V2, with what is assumed of its sliding layers."""
    kinds, said = kinds_of(row, fields)
    if "window" in kinds and _ported(fields):
        said.append(
            "sliding layers have twice the key-value heads of full ones (assumed): the file has no"
            " 'swa_*', and transformers' class makes it so"
        )
    if "window" in kinds:
        said.append(
            "sliding windows count the token itself (assumed), as in vLLM; transformers lets this"
            " model type see one token more"
        )
    return finished(row, fields, (kinds, said))


def deci(row: Row, fields: Fields) -> Reading:
    """DeciLM: `num_key_value_heads_per_layer`, a number for every layer."""
    value = fields.value(_PER_LAYER)
    numbers = json_list(value)
    layers = fields.layers()
    if numbers is None or len(numbers) != layers:
        raise fields.error(
            f"'{_PER_LAYER}' is {shown(value)}; it must give each of the {layers} layers a number"
        )
    heads = fields.size("num_attention_heads")
    for place, number in enumerate(numbers, 1):
        whole = heads if isinstance(heads, int) else number
        if type(number) is not int or not 1 <= number <= LARGEST or whole % number:
            raise fields.error(
                f"entry {place} of '{_PER_LAYER}' is {shown(number)}; it must divide"
                " 'num_attention_heads'"
            )
    mixers = {str(kv): softmax(kv=kv, dims=DIM)["full"] for kv in set(numbers)}
    return finished(replace(row, mixers=mixers), fields, ([str(number) for number in numbers], []))


def block_configs(row: Row, fields: Fields) -> Reading:
    """Nemotron from a search over layers: `block_configs` gives every layer as many query heads
    for a key head as it has, or takes its attention away.
    """
    entries = json_list(fields.value(_BLOCKS))
    layers = fields.layers()
    if entries is None or len(entries) != layers:
        raise fields.error(
            f"'{_BLOCKS}' must give each of the {layers} layers an object; it is {shown(entries)}"
        )
    # what queries share, of the layers that have them
    fields.harmless("num_key_value_heads")
    kinds = [_block(fields, place, entry) for place, entry in enumerate(entries)]
    heads = fields.size("num_attention_heads")
    mixers: dict[str, Maker] = {_NONE: Mixer(PositionWise)}
    for kind in set(kinds) - {_NONE}:
        what = f"num_attention_heads / '{_BLOCKS}' n_heads_in_group"
        mixers[kind] = softmax(kv=quotient(lambda _: heads, int(kind), what), dims=DIM)["full"]
    return finished(replace(row, mixers=mixers), fields, (kinds, []))


def _block(fields: Fields, place: int, entry: Any) -> str:
    """How many query heads of a layer share a key head, as text, or that it has no attention.
    Raises ConfigError for anything else that it says.
    """
    name = f"{_BLOCKS}[{place}]"
    attention = json_object((json_object(entry) or {}).get("attention"))
    if attention is None:
        raise fields.error(f"'{name}' is {shown(entry)}; it must have an object 'attention'")
    part = fields.with_data({f"{name}.attention.{key}": each for key, each in attention.items()})
    part.harmless(f"{name}.attention", *part.data)
    # a linear map of one token, or nothing
    gone = [part.flag(f"{name}.attention.{key}") for key in ("no_op", "replace_with_linear")]
    if any(gone):
        return _NONE
    for key, each in attention.items():
        if each not in (None, False) and key != "n_heads_in_group":
            raise fields.error(
                f"'{name}.attention.{str(key)[:60]}' is {shown(each)}, which is not read; pass the"
                " stack as a spec"
            )
    return str(part.needed(f"{name}.attention.n_heads_in_group"))

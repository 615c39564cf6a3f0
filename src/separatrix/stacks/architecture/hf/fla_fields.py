"""Fields that flash-linear-attention's files share: `attn`, the layers of softmax attention, and
sizes as factors of the width.
"""

from __future__ import annotations

from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.stacks.architecture.hf.draft import Draft, Reading, Size, Unknown
from separatrix.stacks.architecture.hf.fields import Fields, shown
from separatrix.stacks.architecture.hf.interpreter import kinds_of
from separatrix.stacks.architecture.hf.lists import indices
from separatrix.stacks.architecture.hf.notes import ACCUMULATORS, cache_note, convolution_note
from separatrix.stacks.architecture.hf.row import Maker, Row
from separatrix.stacks.mechanisms import Full, ShortConvolution, Window

STATE = (
    "recurrent state fp32 (assumed): flash-linear-attention's kernels keep it in fp32; vLLM keeps"
    " it in the model's dtype by default"
)


BESIDE = "beside attention"
"""What stands in a row's mixers beside softmax attention."""


def by_attn(row: Row, fields: Fields) -> Reading:
    """The reading of a stack whose layers are the row's but where `attn` names them. `attn` is
    null, an object, or a list of objects, each with `layers` (numbered from 0), `num_heads`,
    `num_kv_heads`, `window_size`.
    """
    kinds, _ = kinds_of(row, fields)
    made: dict[str, tuple[Draft, ...]] = {}
    for kind, several in row.mixers.items():
        makers: tuple[Maker, ...] = (several,) if callable(several) else several
        drafts = [maker(fields) for maker in makers]
        # a convolution over no token is none
        made[kind] = tuple(
            draft
            for draft in drafts
            if draft.cls is not ShortConvolution or draft.sizes["conv"] != 0
        )
    beside = made.pop(BESIDE, ())
    layers = [made[kind] for kind in kinds]
    # over one token it is a function of that token
    convolved = any(
        draft.sizes.get("conv", 0) not in (0, 1) for layer in made.values() for draft in layer
    )
    taken: dict[int, str] = {}
    for name, part in _specs(fields):
        attention = _attention(part, name)
        for i in indices(part, f"{name}.layers", len(layers), base=0):
            if i in taken:
                raise fields.error(
                    f"'{taken[i]}' and '{name}' both take layer {i}, as the file numbers them from"
                    " 0; give it to one of them"
                )
            taken[i] = name
            layers[i] = (attention, *beside)
    dtype = fields.model_format()
    notes = [STATE] if len(taken) < len(layers) else []
    notes += [convolution_note(dtype)] if convolved else []
    return Reading.of(
        layers, [*notes, *([cache_note(dtype), ACCUMULATORS] if taken else []), *row.notes]
    )


def _specs(fields: Fields) -> list[tuple[str, Fields]]:
    value = fields.value("attn")
    if value is None:
        return []
    whole = json_object(value)
    entries = json_list(value)
    if whole is not None:
        entries = [whole]
        names = ["attn"]
    elif entries is not None:
        if len(entries) > fields.layers():
            raise fields.error(
                f"'attn' has {len(entries)} entries, more than the model has layers"
                f" ({fields.layers()}); correct it"
            )
        names = [f"attn[{i}]" for i in range(len(entries))]
    else:
        raise fields.error(
            f"'attn' is {shown(value)}; it must be null, an object, or a list of objects"
        )
    specs: list[tuple[str, Fields]] = []
    for name, inner in zip(names, entries, strict=True):
        part = fields.with_data({**fields.data, name: inner}).section(name)
        if not part.has(f"{name}.layers"):
            raise fields.error(
                f"'{name}.layers' is missing: it says which layers are attention; add it to the"
                " file, or set 'attn' to null"
            )
        specs.append((name, part))
    return specs


def _attention(fields: Fields, name: str) -> Draft:
    heads = fields.size(f"{name}.num_heads")
    kv = fields.optional_size(f"{name}.num_kv_heads")
    if isinstance(heads, int) and kv is not None and heads % kv:
        raise fields.error(
            f"'{name}.num_kv_heads' is {kv}, which does not divide '{name}.num_heads' = {heads};"
            " correct one of them"
        )
    window = fields.optional_size(f"{name}.window_size")
    sizes = {
        "heads": heads,
        "kv_heads": heads if kv is None else kv,
        "head_dim": fields.quotient(
            fields.size("hidden_size"), heads, f"hidden_size / {name}.num_heads"
        ),
        "format": fields.model_format(),
        "accumulator": "fp32",
        "running_max": True,
    }
    return Draft(Full, sizes) if window is None else Draft(Window, sizes | {"size": window})


def kernel(fields: Fields) -> Size:
    """Kernel of the short convolution on q, k, v: `conv_size` if `use_short_conv`, 0 if not,
    unknown where the file does not say.
    """
    used = fields.flag("use_short_conv")
    # without the convolution its size says nothing
    fields.harmless("conv_size", "conv_bias", "share_conv_kernel")
    if used is None:
        return Unknown(("'use_short_conv' is missing",))
    return fields.size("conv_size") if used else 0

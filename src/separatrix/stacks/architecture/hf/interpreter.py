"""One reader for all model types, readers of the few whose layers differ one by one, and of files
whose model type nobody knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from separatrix.core.errors import ConfigError
from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.stacks.architecture.hf.fields import FIELDS, LARGEST, Draft, Fields, Reading, shown
from separatrix.stacks.architecture.hf.hooks import BEFORE, NOTES, STATES
from separatrix.stacks.architecture.hf.kinds import indices, numbered
from separatrix.stacks.architecture.hf.layers import finished, kinds_of
from separatrix.stacks.architecture.hf.notes import ACCUMULATORS, cache_note, convolution_note
from separatrix.stacks.architecture.hf.sizes import mimo_ported
from separatrix.stacks.architecture.hf.table import ROWS, UNKNOWN, Row, makers
from separatrix.stacks.mechanisms import ShortConvolution


def read(row: Row, fields: Fields) -> Reading:
    """The layers of a file of that model type. Raises ConfigError where the file does not tell
    them, or tells two things.
    """
    for name, *words in row.before:
        fields = BEFORE[name](fields, *words) or fields
    fields.harmless(*row.silent)
    if row.read:
        return _READERS[row.read](row, fields)
    return finished(row, fields, kinds_of(row, fields))


# ---- softmax attention, layer by layer


def _mimo(row: Row, fields: Fields) -> Reading:
    """MiMo-V2, with what is assumed of its sliding layers."""
    kinds, said = kinds_of(row, fields)
    if "window" in kinds and mimo_ported(fields):
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


def _is_size(value: Any) -> bool:
    return type(value) is int and 1 <= value <= LARGEST


# ---- mamba_ssm


def _native(row: Row, fields: Fields) -> Reading:
    """`ssm_cfg.layer` everywhere but at `attn_layer_idx` (numbered from 0), which are attention
    of the sizes in `attn_cfg`.
    """
    name = fields.value("ssm_cfg.layer")
    layers = fields.layers("n_layer")
    counted = fields.replaced(num_hidden_layers=layers)
    kinds = numbered(counted, "attn_layer_idx", "attention", "recurrent") or ["recurrent"] * layers
    said: list[str] = []
    if name is None and "recurrent" in kinds:
        said.append(
            "layers are Mamba (assumed): 'ssm_cfg.layer' does not say, and mamba_ssm takes Mamba1"
        )
    if name not in (None, "Mamba1", "Mamba2"):
        raise fields.wrong("ssm_cfg.layer", "be one of Mamba1, Mamba2")
    if "attention" in kinds and not fields.has("attn_cfg.d_conv"):
        said.append(
            "no convolution in attention layers (assumed): 'attn_cfg.d_conv' does not say, and"
            " mamba_ssm takes none"
        )
    layer = row.mixers[name or "Mamba1"]
    mixers = {"recurrent": layer, "attention": row.mixers["attention"]}
    used = {kind: mixer for kind, mixer in mixers.items() if kind in kinds}
    return finished(replace(row, mixers=used), fields, (kinds, said))


# ---- flash-linear-attention

_BESIDE = "beside attention"
"""What stands in a row's mixers beside softmax attention."""


def _by_attn(row: Row, fields: Fields, kinds: list[str] | None = None) -> Reading:
    """The reading of a stack whose layers are the row's but where `attn` names them. `attn` is
    null, an object, or a list of objects, each with `layers` (numbered from 0), `num_heads`,
    `num_kv_heads`, `window_size`.
    """
    kinds = kinds or kinds_of(row, fields)[0]
    made: dict[str, tuple[Draft, ...]] = {}
    for kind, several in row.mixers.items():
        drafts = [maker(fields) for maker in several]
        # a convolution over no token is none
        made[kind] = tuple(
            draft
            for draft in drafts
            if draft.cls is not ShortConvolution or draft.sizes["conv"] != 0
        )
    beside = made.pop(_BESIDE, ())
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
    notes = [STATES["fla"]] if len(taken) < len(layers) else []
    notes += [convolution_note(dtype)] if convolved else []
    notes += [cache_note(dtype), ACCUMULATORS] if taken else []
    return Reading(tuple(layers), (*notes, *(NOTES[name] for name in row.notes)))


def _specs(fields: Fields) -> list[tuple[str, Fields]]:
    value = fields.value("attn")
    whole, entries = json_object(value), json_list(value)
    if value is None:
        return []
    if whole is None and entries is None:
        raise fields.wrong("attn", "be null, an object, or a list of objects")
    if entries is not None and len(entries) > fields.layers():
        raise fields.error(
            f"'attn' has {len(entries)} entries, more than the model has layers"
            f" ({fields.layers()}); correct it"
        )
    named = {f"attn[{i}]": entry for i, entry in enumerate(entries or [])} or {"attn": whole}
    specs: list[tuple[str, Fields]] = []
    for name, inner in named.items() if entries != [] else ():
        part = fields.with_data({**fields.data, name: inner}).section(name)
        if not part.has(f"{name}.layers"):
            raise fields.error(
                f"'{name}.layers' is missing: it says which layers are attention; add it to the"
                " file, or set 'attn' to null"
            )
        specs.append((name, part))
    return specs


def _attention(fields: Fields, name: str) -> Draft:
    """Softmax attention by the fields of an object."""
    heads, kv = f"{name}.num_heads", f"({name}.num_kv_heads | {name}.num_heads)"
    full = f"full(heads={heads}, kv_heads={kv} % {heads}, head_dim=hidden_size / {heads})"
    window = f"window({full}, size={name}.window_size)"
    return makers(window if fields.has(f"{name}.window_size") else full)[0](fields)


def _rwkv_widths(row: Row, fields: Fields) -> Reading:
    """RWKV-7: `value_dim` may differ by layer, and is `hidden_size` where it is null."""
    widths = json_list(fields.value("value_dim"))
    if widths is None:
        return _by_attn(row, fields)
    layers = fields.layers()
    if len(widths) != layers:
        raise fields.error(
            f"'value_dim' has {len(widths)} entries and must have num_hidden_layers = {layers};"
            " correct one of them"
        )
    rule = f"be an integer from 1 to {LARGEST:,}"
    fields.check_entries("value_dim", widths, _is_size, rule)
    mixers = {
        str(width): makers(f"fla_rwkv(value_dim={width} / (RWKV_HEADS))") for width in set(widths)
    }
    row = replace(row, mixers={**mixers, _BESIDE: row.mixers[_BESIDE]})
    return _by_attn(row, fields, list(map(str, widths)))


_READERS: dict[str, Callable[[Row, Fields], Reading]] = {
    "mimo": _mimo,
    "native": _native,
    "by_attn": _by_attn,
    "rwkv_widths": _rwkv_widths,
}
"""What the table calls a reader of its own."""

# ---- files of a model type that no row knows: lists of layers, then periods, then attention alone.
# What only the model's code knows is never guessed

_RECURRENT = ("recurrent", "attention and recurrence")


def probe(fields: Fields, known: Iterable[str]) -> Reading:
    """The layers of a file by its usual fields. Raises ConfigError where they do not tell;
    `known` are the model types that are read.
    """
    if not fields.has("num_hidden_layers") or not fields.has("num_attention_heads"):
        raise fields.unknown_family(known)
    notes = [f"{_unknown(fields)}: read by its usual fields (assumed)"]
    if not fields.has("head_dim") and not fields.has("kv_lora_rank"):
        notes.append(
            "head_dim is hidden_size / num_attention_heads (assumed), as in most model classes: the"
            " file does not give it"
        )
    try:
        reading = _told(fields)
    except ConfigError as error:
        near = fields.nearest(known)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise fields.error(
            f"{_unknown(fields)}{hint}, and its usual fields do not tell:"
            f" {str(error).removeprefix(f'{fields.where}: ')}"
        ) from None
    return Reading(reading.layers, (*notes, *reading.notes))


def _unknown(fields: Fields) -> str:
    return (
        f"'model_type' is {shown(fields.data['model_type'])}, which is not known"
        if fields.has("model_type")
        else "'model_type' is missing"
    )


def _told(fields: Fields) -> Reading:
    special = (
        (
            fields.has("compress_ratios")
            or _names(fields, "compressed_sparse_attention", "heavily_compressed_attention"),
            "deepseek_v4",
        ),
        (fields.has("hybrid_layer_pattern"), "mimo_v2_flash"),
        (fields.has("sliding_window_layout"), "smallthinker"),
        (_freq(fields), "minimax_m3"),
    )
    for there, kind in special:
        if there:
            return read(ROWS[kind], fields)
    kinds, said = kinds_of(UNKNOWN, fields)
    for kind in _RECURRENT:
        if kind in kinds:
            name = next(filter(fields.has, UNKNOWN.lists))
            raise fields.error(
                f"'{name}' makes {kinds.count(kind)} of {len(kinds)} layers {kind}, but does not"
                " say which recurrence that is; pass --pattern, such as --pattern '(mamba2*7 +"
                " full)*4'"
            )
    fields.refuse_recurrent_looks()
    _refuse_odd(fields, but=("conv_L_cache",) if "conv" in kinds else ())
    return finished(UNKNOWN, fields, (kinds, said))


def _refuse_odd(fields: Fields, *, but: tuple[str, ...] = ()) -> None:
    """Raises ConfigError for fields that a usual decoder does not have."""
    typed, unusual = fields.has("layer_types"), FIELDS["unusual"]
    for name in [*unusual["mixers"]] if typed else [*unusual["layers"], *unusual["mixers"]]:
        if fields.has(name) and name not in but:
            raise fields.error(
                f"'{name}' is there, and only the model's code tells what it means for the layers;"
                " pass --pattern, such as --pattern '(mamba2*7 + full)*4'"
            )


def _names(fields: Fields, *words: str) -> bool:
    types = fields.data.get("layer_types")
    return isinstance(types, list) and any(word in types for word in words)


def _freq(fields: Fields) -> bool:
    inner = json_object(fields.data.get("sparse_attention_config"))
    return inner is not None and inner.get("sparse_attention_freq") is not None

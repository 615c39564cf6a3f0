"""Files of a model type that no reader knows, read by their usual fields: lists of layers first,
then periods, then attention alone.

What only the model's code knows is never guessed: which recurrence a layer has, or how layers are
told apart by other fields.
"""

from __future__ import annotations

from collections.abc import Iterable

from separatrix.core.errors import ConfigError
from separatrix.core.evidence.canonical import json_object
from separatrix.stacks.architecture.hf.draft import Reading
from separatrix.stacks.architecture.hf.fields import FIELDS, Fields, shown
from separatrix.stacks.architecture.hf.interpreter import read
from separatrix.stacks.architecture.hf.layers import finished, kinds_of
from separatrix.stacks.architecture.hf.table import ROWS, UNKNOWN

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

"""What a reader did not ask for: a field that may change attention, and that no reader knows,
stops the file.

A file is read only if every field that speaks of layers, heads, windows, caches, loops or blocks
was asked for by its reader, or is known to be harmless.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields as sizes_of
from dataclasses import replace
from typing import Any

from separatrix.core.errors import ConfigError
from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.stacks.architecture.hf.draft import Draft, Reading, Unknown
from separatrix.stacks.architecture.hf.fields import Fields, shown
from separatrix.stacks.architecture.hf.harmless import AROUND, WHOLE, harmless
from separatrix.stacks.architecture.hf.kv_format import STATED
from separatrix.stacks.mechanisms.base import ATTENTION

_SPEAKS = re.compile(
    r"attn|attention|head|layer|window|cache|block|loop|pass(?!word)|cycle|shar(e|ing)|spars|kv|qkv"
    r"|quer|mask|caus|direction|encoder|decoder|recur|depth|repeat|stride|compress|latent|lora_rank"
    r"|topk|top_k|index|chunk|local|global|group|dilat|segment|sink|memor|mamba|ssm|lightning|rwkv"
    r"|lru|linear_|conv(?!ersation)|reuse|iter|prefix|diffus|cross|hybrid|interleav|swa|mla$|mla_|gqa|mqa|nsa"
    r"|moba|(^|_)cla($|_)|yoco|span|state|unroll|horizon|keep_|evict|sliding|period|pattern|every"
    r"|interval|(^|_)(ut|act)_|ponder|(^|_)key|(^|_)value|v_heads|skip|exit|retain|landmark"
    r"|hash|lsh|kv_channels|bucket|random|early_exit|rounds|(^|_)stages?($|_)|expand"
    r"|d_inner|d_state|dt_rank|(^|_)slots?($|_)|rank_kv|rope|rotary|alibi|relative|pool|rnn"
    r"|gru|lstm|token_shift|short|meta_tokens|(^|_)([kqv]|qk|kq|vo)_?(dim|size|rank|width|proj)"
    r"|(dim|d)_([kqv]|kv|c|qk)($|_)|rank($|_)|(^|_)mems?($|_)|look_?(back|ahead)|receptive|future"
    r"|autoregress|timestep|denois|noise_sched|mlm|multi_?quer|(^|_)tied?_([kv]|layer|across)"
    r"|prelude|coda|recycl|think|reason|refine|univers|adaptive_comp|halting|effective_|unique"
    r"|(^|_)(copies|times|reps|steps)($|_)|merg|register|virtual_tok|selective|budget|bandwidth"
    r"|stripe|strided|downsampl|upsampl|token_reduc|compan|tree|sampling_steps|h2o|streaming"
    r"|bidir|retent|mixer|mixing|token_mix|operator|variant|backbone_type|selected|(^|_)meta_len|hyena"
    r"|performer|favor|linformer|nystr|toeplitz|fourier|spectral|(^|_)ema_|neighbo|natten|radius"
    r"|feature_map|nb_features|(^|_)band_|pyramid|funnel|titans|(^|_)ttt"
)
"""Names that speak of attention, layers, heads, windows, caches, loops, sharing or blocks."""
_OFF_BY_FALSE = (
    *("use_cache_quantization", "use_cache_kernel", "use_quantized_cache", "pre_allocate_kv_cache"),
    *("enable_cache_quantization", "cache_quantization"),
)
_MIXERS = re.compile(
    r"attention|attn|mamba|ssm|rwkv|retnet|retention|deltanet|hyena|recurren|sparse|sliding|window"
    r"|bidirec|causal|diffusion|prefix|hybrid|linear_att|lstm|s4d?$"
)
_OFF_BY_ONE = ("compression_ratio", "rotary_scaling_factor", "full_attn_mod")
"""Factors and periods that change nothing where they are one."""
_SENSE = re.compile(
    r"caus|full|dense|mask(?!ed_softmax)|decoder|global|cache|direction|separate|independent|own_"
    r"|distinct|untie|per_(layer|head)|rotary$|(^|_)rope$|use_(rope|rotary)|autoregress|left_to_right"
)
"""Flags that may mean something by being false."""

_OF_HEADS = re.compile(r"head|kv|(^|_)(key|value|quer)|channels$|group|gqa|mqa|latent|lora_rank")
_DEEPEST = 8
"""Objects within objects that are looked into."""
_SAME: dict[str, tuple[str, ...]] = {
    "heads": (
        *("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads", "num_head"),
        *("decoder_attention_heads", "encoder_attention_heads", "num_q_heads"),
    ),
    "kv_heads": (
        *("num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads", "kv_n_heads"),
        *("num_query_groups", "multi_query_group_num", "num_attention_groups"),
    ),
    "head_dim": (
        *("head_dim", "kv_channels", "attention_head_dim", "d_head", "d_kv", "head_size"),
        *("attention_head_size", "dim_head", "v_head_dim", "qk_head_dim", "head_width"),
    ),
}
"""Size -> spellings that are harmless where they say what was read under another one."""
_DEPTHS = (
    *("num_hidden_layers", "n_layer", "n_layers", "num_layers", "layers", "decoder_layers"),
    *("num_blocks", "num_decoder_layers", "depth", "encoder_layers"),
)


def refuse_unread(fields: Fields, reading: Reading, outer: Sequence[Mapping[str, Any]]) -> None:
    """Raises ConfigError for the first field that may change attention and that the reader did
    not ask for. `outer` are the objects around the language model's own, outermost first.
    """
    for name, value in _unknown(fields.data, fields, ""):
        if not _confirmed(name, value, reading):
            raise _error(fields, name, value)
    # what the reader asked for, it found in the language model's own
    unasked = Fields({}, fields.where)
    unasked.harmless(*STATED, *AROUND)
    for level in outer:
        for name, value in _unknown(level, unasked, ""):
            # some files repeat the language model's fields around it
            if value != fields.data.get(name) and not _confirmed(name, value, reading):
                raise _error(fields, name, value)


def unknown_note(fields: Fields) -> list[str]:
    """Says which fields nobody knows whose names speak of nothing here."""
    names = [
        str(name)
        for name, value in fields.data.items()
        if str(name) not in fields.read
        and not (str(name) in WHOLE or harmless(str(name)) or _SPEAKS.search(str(name).lower()))
        # switches, factors and words name no size
        and not (value is None or isinstance(value, bool | float | str))
        and value not in ([], {}, 0, 1)
    ]
    if not names:
        return []
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    listed = ", ".join(f"'{name[:60]}'" for name in names[:5])
    return [f"fields that are not known change no layer (assumed): {listed}{more}"]


def unread(fields: Fields, reading: Reading) -> list[str]:
    """The fields that may change attention and that nobody asked for, for a stack given by
    hand.
    """
    found = _unknown(fields.data, fields, "")
    return [name for name, value in found if not _confirmed(name, value, reading)]


def doubted(reading: Reading, names: Sequence[str]) -> Reading:
    """The reading with the heads of softmax attention unknown, where a field that nobody knows
    speaks of them.
    """
    doubts: dict[str, Unknown] = {}
    for name in names:
        if _OF_HEADS.search(name.lower()) and not name.startswith("index"):
            why = Unknown((f"'{name[:60]}' is there, and what it says of heads is not known",))
            # a dimension says nothing of how many there are
            of_one = re.search(r"dim|channels|size", name) is not None
            for size in ("head_dim", "value_dim") if of_one else _SAME:
                doubts.setdefault(size, why)
    if not doubts:
        return reading
    made: dict[int, Draft] = {}
    for layer in reading.layers:
        for draft in layer:
            sizes = {size: why for size, why in doubts.items() if size in draft.sizes}
            softmax = draft.cls.group in ATTENTION
            made[id(draft)] = Draft(draft.cls, {**draft.sizes, **sizes}) if softmax else draft
    layers = tuple(tuple(made[id(draft)] for draft in layer) for layer in reading.layers)
    return replace(reading, layers=layers)


def _unknown(data: Mapping[Any, Any], fields: Fields, prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        own = str(key)
        name = prefix + own
        if prefix.count(".") > _DEEPEST:
            yield name, value
            return
        if _off(own, value) or own in WHOLE or name == "architectures":
            continue
        known = name in fields.read
        inner = json_object(value)
        entries = json_list(value)
        passed = known or harmless(own) or not _SPEAKS.search(own.lower())
        if inner is not None and passed:
            yield from _unknown(inner, fields, f"{name}.")
        elif entries is not None and passed:
            for i, entry in enumerate(entries):
                yield from _unknown(json_object(entry) or {}, fields, f"{name}[{i}].")
        elif not known and not harmless(own) and (_SPEAKS.search(own.lower()) or _says(own, value)):
            yield name, value


def _says(name: str, value: Any) -> bool:
    """Whether a text names a mixer, under whatever name it stands."""
    return (
        isinstance(value, str)
        and name not in ("model_type", "_name_or_path", "name_or_path")
        and _MIXERS.search(value.lower()) is not None
    )


def _off(name: str, value: Any) -> bool:
    """Whether a value switches off whatever the field may be."""
    if value is False:
        return _SENSE.search(name.lower()) is None or name in _OFF_BY_FALSE
    if name in _OFF_BY_ONE:
        return type(value) in (int, float) and value == 1
    return value is None or value in ("", [], {})


def _confirmed(name: str, value: Any, reading: Reading) -> bool:
    """Whether a field repeats, in another spelling, what was read."""
    if type(value) is not int:
        return False
    if name in _DEPTHS:
        return value == len(reading.layers)
    for size, spellings in _SAME.items():
        if name in spellings:
            found = [
                draft.sizes.get(size)
                for layer in reading.layers
                for draft in layer
                if draft.cls.group != "recurrent"
                and any(field.name == size for field in sizes_of(draft.cls))
            ]
            return bool(found) and all(given == value for given in found)
    return False


def _error(fields: Fields, name: str, value: Any) -> ConfigError:
    return fields.error(
        f"'{name[:60]}' is {shown(value)}: by its name it may change the layers, what they keep or"
        " what they see, and no reader of this model type knows it; pass --pattern or the stack as"
        " a spec, or remove the field if it changes none of that"
    )

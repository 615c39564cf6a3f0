"""Where a layer's tokens know their places from: rotations, embeddings, distances, or nothing.

The fields of the file say it, and, where a model class fixes it, one line of the table below, as
transformers defines that class. What neither says is unknown, and a note says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, NamedTuple

from separatrix.architecture.hf.draft import Draft, Reading, Value
from separatrix.architecture.hf.families import CLASSES
from separatrix.architecture.hf.families.mamba_ssm import is_native
from separatrix.architecture.hf.fields import LARGEST, MOST_LAYERS, Fields, shown
from separatrix.architecture.hf.query_norms import bounded_by_norm, query_norm
from separatrix.architecture.hf.rotary_fields import (
    BASES,
    LISTS,
    NAMES,
    SHARED,
    Spot,
    Turned,
    Usual,
    turned,
)
from separatrix.architecture.settings import Settings
from separatrix.evidence.canonical import json_list, json_object
from separatrix.mechanisms import (
    Chunked,
    Compressed,
    LatentCache,
    Mechanism,
    ReusedWindow,
    Window,
)
from separatrix.mechanisms.base import POSITIONS

_ROTATING = ("no_rope_layers", "rope_layout", "use_rope_layers")
"""Lists with one entry per layer: 1 where it rotates, 0 where it does not."""
_INTERVALS = ("no_rope_layer_interval", "nope_layer_interval")
"""Every so many layers, one does not rotate."""
_CAPS = ("attn_logit_softcapping", "attn_logit_softcap")
_INNER = ("attn_cfg", "attn_config")
_WORDS: dict[type[Mechanism], tuple[str, ...]] = {
    Window: ("sliding_attention", "main"),
    ReusedWindow: ("sliding_attention", "main"),
    Chunked: ("chunked_attention",),
    Compressed: ("compress",),
}
"""How files call a kind of layer; full_attention where it is not listed."""
_EMBEDDINGS: dict[str, str] = {
    **dict.fromkeys(("absolute", "learned", "learned_absolute", "sinusoidal"), "embedded"),
    **dict.fromkeys(("nope", "none"), "none"),
    "alibi": "alibi",
}
"""`position_embedding_type` -> where places come from."""
_SAID_BY = ("rope_theta", "rope_parameters", "rope_scaling", "rotary_emb_base")


class Seen(NamedTuple):
    """What is known of one layer."""

    positions: str
    turned: Turned | None = None
    notes: tuple[str, ...] = ()


def unknown(why: str) -> Seen:
    return Seen(
        "unknown", None, (f"positions: the file does not say in a way that is read: {why}",)
    )


Rule = Callable[[Spot, Usual], Seen]
"""What a model class makes of one of its layers."""


def rotary(spot: Spot, usual: Usual) -> Seen:
    """Every layer rotates, but those that the file leaves out."""
    for name in _ROTATING:
        if name in spot.lists:
            return _turned(spot, usual) if spot.lists[name][spot.index] else Seen("none")
    name = spot.find(*_INTERVALS)
    if name is not None:
        every = spot.fields.needed(name)
        return Seen("none") if (spot.index + 1) % every == 0 else _turned(spot, usual)
    return _turned(spot, usual)


def _turned(spot: Spot, usual: Usual) -> Seen:
    if BASES in spot.lists and spot.lists[BASES][spot.index] == 0:
        return Seen("none")
    if spot.rotated is not None and spot.fields.size(spot.rotated, low=0) == 0:
        return Seen("none")
    if usual.counted and spot.rotated is None:
        return unknown(f"'{SHARED}' is missing")
    found = turned(spot, usual)
    return unknown(found) if isinstance(found, str) else Seen("none", found, found.notes)


def every_fourth_without(spot: Spot, usual: Usual) -> Seen:
    """As `rotary`; where the file does not say, every fourth layer does not rotate."""
    if any(name in spot.lists for name in _ROTATING) or spot.find(*_INTERVALS) is not None:
        return rotary(spot, usual)
    note = (
        "every 4th layer without rotation (assumed): the file does not say, and transformers"
        " takes 4"
    )
    seen = Seen("none") if (spot.index + 1) % 4 == 0 else _turned(spot, usual)
    return seen._replace(notes=(note, *seen.notes))


def in_windows(spot: Spot, usual: Usual) -> Seen:
    """Sliding layers rotate, the others do not."""
    return _turned(spot, usual) if spot.local else Seen("none")


def in_windows_if_any(spot: Spot, usual: Usual) -> Seen:
    """As `in_windows` where the file has a window; else every layer rotates."""
    return in_windows(spot, usual) if spot.fields.has("sliding_window") else rotary(spot, usual)


def where(field: str, *, otherwise: bool | None = None) -> Rule:
    """Every layer rotates, if the flag `field` is true; `otherwise` where it is absent."""

    def rule(spot: Spot, usual: Usual) -> Seen:
        name = spot.find(field)
        said = spot.fields.flag(name or field)
        notes: tuple[str, ...] = ()
        if said is None and otherwise is None:
            return unknown(f"'{field}' is missing")
        if said is None:
            said = otherwise
            what = "rotation" if otherwise else "no rotation"
            notes = (
                f"{what} in attention layers (assumed): '{field}' does not say, and transformers"
                " takes it so",
            )
        seen = _turned(spot, usual) if said else Seen("none")
        return seen._replace(notes=(*notes, *seen.notes))

    return rule


def unless(field: str) -> Rule:
    """No layer rotates, unless the flag `field` is false."""

    def rule(spot: Spot, usual: Usual) -> Seen:
        return _turned(spot, usual) if spot.fields.flag(field) is False else Seen("none")

    return rule


def always(positions: str) -> Rule:
    """The class fixes it."""
    return lambda spot, usual: Seen(positions)


unplaced = always("none")
"""Tokens enter the stack without their places, and no layer adds them."""


def by_type(spot: Spot, usual: Usual) -> Seen:
    """`position_embedding_type`: rope, or anything else for none (Granite 4)."""
    kind = spot.fields.value("position_embedding_type")
    if kind is not None and not isinstance(kind, str):
        raise spot.fields.error(
            f"'position_embedding_type' is {shown(kind)}; it must be a text such as 'rope'"
        )
    if kind == "rope":
        return rotary(spot, usual)
    if kind is None:
        note = (
            "no rotation in attention layers (assumed): 'position_embedding_type' does not say, and"
            " transformers takes none"
        )
        return Seen("none", None, (note,))
    return Seen("none")


def unless_null(spot: Spot, usual: Usual) -> Seen:
    """Every layer rotates, unless the file has the fields of a rotation and no base in them (OLMo
    hybrid, whose releases switch it off so).
    """
    there = any(name in spot.fields.data for name in ("rope_parameters", "rope_theta"))
    stated = "rope_theta" in spot.own or spot.find("rope_theta") is not None
    return Seen("none") if there and not stated else _turned(spot, usual)


def or_alibi(*, usually: bool, otherwise: Rule | None) -> Rule:
    """ALiBi if the flag `alibi` is true, `usually` where it is absent; else as `otherwise`."""

    def rule(spot: Spot, usual: Usual) -> Seen:
        name = spot.find("alibi")
        said = None if name is None else spot.fields.flag(name)
        if usually if said is None else said:
            return Seen("alibi")
        return otherwise(spot, usual) if otherwise else unknown("'alibi' is false")

    return rule


def fla(spot: Spot, usual: Usual) -> Seen:
    """Attention layers of flash-linear-attention: the object `attn`, which may switch it off."""
    name = spot.find("use_rope")
    off = name is not None and spot.fields.flag(name) is False
    return Seen("none") if off else _turned(spot, usual)


def native(spot: Spot, usual: Usual) -> Seen:
    """Attention layers of mamba_ssm: `rotary_emb_dim` numbers of a head, or none."""
    name = spot.find("rotary_emb_dim")
    if name is None:
        note = (
            "no rotation in attention layers (assumed): 'attn_cfg.rotary_emb_dim' does not say, and"
            " mamba_ssm takes none"
        )
        return Seen("none", None, (note,))
    return _turned(spot, usual) if spot.fields.size(name, low=0) else Seen("none")


def said(spot: Spot, usual: Usual) -> Seen:
    """Of a model type that no line below knows: what the fields say by themselves."""
    kind = spot.fields.value("position_embedding_type")
    if isinstance(kind, str) and kind in _EMBEDDINGS:
        return Seen(_EMBEDDINGS[kind])
    if spot.find("alibi") is not None and spot.fields.flag(str(spot.find("alibi"))):
        return Seen("alibi")
    if kind not in (None, "rope", "rotary"):
        return unknown(f"'position_embedding_type' is {shown(kind)}")
    if spot.find(*_SAID_BY) is None:
        return unknown(f"{', '.join(repr(name) for name in _SAID_BY)} are missing")
    seen = rotary(spot, usual)
    note = (
        "rotation in attention layers by the usual fields (assumed): this model type is not known"
    )
    return seen._replace(notes=(note, *seen.notes)) if seen.turned else seen


def by_ratio(spot: Spot, usual: Usual) -> Seen:
    """Every layer rotates half of a head, with a base that the file's ratio multiplies."""
    return unknown("'rope_ratio' is not read")


def hymba(spot: Spot, usual: Usual) -> Seen:
    """Every layer rotates if `rope` is true; with a base that grows with the prompt where
    `rope_type` is ntk, which is not read.
    """
    kind = spot.fields.value("rope_type")
    if kind is not None and spot.fields.flag("rope"):
        return unknown(f"'rope_type' is {shown(kind)}")
    return where("rope")(spot, usual)


class Way(NamedTuple):
    """A line of the table: which layers of a model class rotate, and its defaults."""

    rule: Rule = rotary
    usual: Usual = Usual()
    softcap: int = 0
    bounded: bool = False
    """Whether the class scales queries and keys to one length that no weight changes."""
    gate: str = "none"
    """The gate of the heads' outputs, unless `attn_output_gate` is false."""


def _based(base: int | None, **more: Any) -> Way:
    return Way(usual=Usual(base, **more))


_GEMMA3 = _based(1_000_000, local=10_000, local_scaled=False)
_GEMMA4 = _based(
    1_000_000,
    local=10_000,
    part=0.25,
    local_part=1.0,
    scaling="proportional",
    local_scaled=False,
)
_HALF = Way(usual=Usual(part=0.5))
_QUARTER = Way(usual=Usual(part=0.25))
_GATED = Way(usual=Usual(part=0.25), gate="sigmoid")
_UNSTATED = _based(None)
"""Classes that transformers does not have: a base that is missing stays unknown."""
_LINES: dict[tuple[str, ...], Way] = {
    (
        *("llama", "olmo", "olmo2", "olmoe", "phi3", "granite", "granitemoe", "granitemoeshared"),
        *("jetmoe", "granite_swa", "granitemoe_swa", "ouro", "hrm_text", "deci"),
        *("arcee", "jais2", "hunyuan_v1_dense", "hunyuan_v1_moe", "mistral"),
        *("ministral", "starcoder2", "seed_oss", "gemma", "qwen2", "qwen3", "qwen2_moe"),
        *("qwen3_moe", "dots1", "dbrx", "deepseek_v2", "deepseek_v3", "deepseek_v32", "axk1"),
        *("glm4_moe_lite", "glm_moe_dsa", "minicpm3", "youtu", "falcon_h1"),
    ): Way(),
    ("gemma2", "vaultgemma"): Way(softcap=50),
    ("nanochat",): Way(bounded=True),
    ("gemma3", "gemma3_text", "gemma3n", "gemma3n_text"): _GEMMA3,
    ("gemma4", "gemma4_text", "gemma4_unified", "gemma4_unified_text"): _GEMMA4,
    ("phi", "glm", "glm4", "glm4_moe", "nemotron", "persimmon", "recurrent_gemma", "bamba"): _HALF,
    ("stablelm", "gpt_neox"): _QUARTER,
    ("qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"): _GATED,
    ("gptj", "codegen"): Way(usual=Usual(dims=64, fixed=True)),
    ("cohere", "bitnet", "ernie4_5", "ernie4_5_moe", "flex_olmo"): _based(500_000),
    ("qwen3_vl_text", "qwen3_vl_moe_text"): _based(500_000),
    ("mixtral", "phimoe", "lfm2", "lfm2_moe", "minimax", "solar_open"): _based(1_000_000),
    ("qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"): _based(1_000_000),
    ("minimax_m2",): _based(5_000_000),
    ("minimax_m3", "minimax_m3_vl", "minimax_m3_vl_text"): _based(5_000_000, dims=64),
    ("helium",): _based(100_000),
    ("longcat_flash",): _based(10_000_000),
    ("mellum",): _based(500_000, local=10_000),
    ("hy_v3",): _based(11_158_840),
    ("olmo3",): _based(500_000, local_scaled=False),
    ("step3p5", "step3p7"): Way(usual=Usual(local_scaled=False)),
    ("mimo_v2_flash",): _based(5_000_000, local=10_000, part=0.334, local_scaled=False),
    ("gpt_oss",): _based(150_000, scaling="yarnexact_32_32_1_4096"),
    ("apertus",): _based(12_000_000, scaling="llama3_8_1_4_8192"),
    ("cwm",): _based(1_000_000, scaling="llama3_16_1_4_8192"),
    ("ministral3",): _based(1_000_000, scaling="yarn_16_32_1_16384"),
    ("mistral4",): _based(10_000, scaling="yarn_128_32_1_8192"),
    ("deepseek_v4",): _based(10_000, compressed=160_000, local_scaled=False, counted=True),
    ("llama4", "llama4_text"): Way(every_fourth_without, Usual(500_000)),
    ("smollm3",): Way(every_fourth_without, Usual(2_000_000)),
    ("cohere2", "afmoe"): Way(in_windows),
    ("exaone4", "exaone_moe"): Way(in_windows_if_any),
    ("falcon",): Way(or_alibi(usually=False, otherwise=rotary)),
    ("bloom",): Way(always("alibi")),
    ("mpt",): Way(or_alibi(usually=True, otherwise=None)),
    ("gpt2", "gpt_bigcode", "opt", "xglm"): Way(always("embedded")),
    ("biogpt", "openai-gpt", "ctrl", "git", "bert", "bert-generation"): Way(always("embedded")),
    ("gpt_neo",): Way(always("embedded")),
    ("camembert", "data2vec-text", "electra", "ernie", "megatron-bert"): Way(always("embedded")),
    ("rembert", "roberta", "roberta-prelayernorm", "roc_bert"): Way(always("embedded")),
    ("xlm-roberta", "xlm-roberta-xl", "xmod"): Way(always("embedded")),
    ("mllama", "mllama_text_model", "exaone", "hunyuan"): Way(),
    ("gpt_neox_japanese", "roformer"): Way(),
    ("bailing_moe_linear",): _UNSTATED,
    # its base is multiplied by 'rope_ratio', and pairs are neighbours
    ("chatglm",): Way(by_ratio),
    ("jamba", "nemotron_h", "zamba", "forgetting_transformer"): Way(unplaced),
    ("mamba", "mamba2", "falcon_mamba", "rwkv", "xlstm"): Way(unplaced),
    ("zamba2",): Way(where("use_mem_rope", otherwise=False)),
    ("granitemoehybrid",): Way(by_type),
    ("olmo_hybrid",): Way(unless_null),
    ("kimi_linear", "kimi_k3"): Way(unless("mla_use_nope")),
    ("hymba",): Way(hymba, Usual(None)),
    ("kimi_k2", "internlm3", "minimax_text_01", "minimax_m1", "smallthinker"): _UNSTATED,
    ("gla", "retnet", "delta_net", "gated_deltanet", "gated_deltaproduct", "kda"): Way(fla),
    ("transformer", "mla", "moba", "nsa", "hgrn", "gsa", "comba"): Way(fla),
    ("hgrn2", "linear_attn", "rwkv6", "rwkv7", "samba", "log_linear_mamba2"): Way(fla),
}
WAYS: dict[str, Way] = {kind: way for kinds, way in _LINES.items() for kind in kinds}
"""`model_type` -> what its class fixes."""


def placed(reading: Reading, file: Fields, settings: Settings) -> Reading:
    """The reading with the positions of every layer that mixes tokens. Raises ConfigError for
    fields of positions that are of the wrong type, length or range.
    """
    # a base of layers that are not there, a factor that an object says too: nothing else reads them
    prefixes = ("", *(f"{name}." for name in _INNER), *_attn_prefixes(file))
    file.harmless(*(prefix + name for prefix in prefixes for name in (*NAMES, *_INTERVALS)))
    if not any(_has(draft.cls, "positions") for layer in reading.layers for draft in layer):
        return reading
    kind = _kind(file)
    way = Way(native) if is_native(file) else WAYS.get(kind, Way(said))
    lists = _lists(file, len(reading.layers))
    inner = _inner(file, len(reading.layers))
    among = {draft.cls.name for layer in reading.layers for draft in layer}
    # layers that share a draft share it afterwards too, unless their positions differ
    made: dict[tuple[int, Seen, int, bool, str], Draft] = {}
    notes: list[str] = []
    layers: list[tuple[Draft, ...]] = []
    for index, layer in enumerate(reading.layers):
        drafts: list[Draft] = []
        for draft in layer:
            if not _attends(draft):
                drafts.append(draft)
                continue
            size = settings.over(draft.cls, draft.sizes, among).get(
                "rope_dim" if issubclass(draft.cls, LatentCache) else "head_dim"
            )
            words = _WORDS.get(draft.cls, ("full_attention",))
            known = size if isinstance(size, int) else None
            seen = way.rule(
                Spot(inner[index][0], lists, index, words, known, inner[index][1]), way.usual
            )
            cap, cap_notes = _cap(file, draft.cls, way.softcap)
            bounded = _has(draft.cls, "bounded") and (
                way.bounded
                or _clipped(inner[index][0])
                or bounded_by_norm(kind, file, rotated=seen.turned is not None)
            )
            notes += (*seen.notes, *cap_notes)
            norm = query_norm(kind, inner[index][0])
            key = (id(draft), seen, cap, bounded, norm)
            if key not in made:
                found = _with(draft, seen, cap, bounded=bounded)
                made[key] = Draft(found.cls, {**_around(file, draft, way, norm), **found.sizes})
            drafts.append(made[key])
        layers.append(tuple(drafts))
    return Reading(
        _entered(layers, _embedding(layers, file, kind)),
        tuple(dict.fromkeys((*reading.notes, *notes))),
    )


def _attends(draft: Draft) -> bool:
    """Whether its layer is attention, which may look at places by itself."""
    return _has(draft.cls, "positions") and _has(draft.cls, "rope")


def _embedding(layers: list[tuple[Draft, ...]], file: Fields, kind: str) -> str:
    """Where places come from as tokens enter the stack: what its attention layers say; where there
    are none, what is known of the model class.
    """
    said = {draft.sizes["positions"] for layer in layers for draft in layer if _attends(draft)}
    if said:
        return next(way for way in (*POSITIONS[:0:-1], "embedded") if way in said)
    way = WAYS.get(kind)
    known = is_native(file) or (way is not None and way.rule in (fla, unplaced))
    return "none" if known else "unknown"


def _entered(layers: list[tuple[Draft, ...]], embedding: str) -> tuple[tuple[Draft, ...], ...]:
    """The layers, their recurrences and convolutions with what the tokens of the stack know."""
    made: dict[int, Draft] = {}
    for draft in (draft for layer in layers for draft in layer):
        if _has(draft.cls, "positions") and not _attends(draft) and id(draft) not in made:
            made[id(draft)] = Draft(draft.cls, {"positions": embedding, **draft.sizes})
    return tuple(tuple(made.get(id(draft), draft) for draft in layer) for layer in layers)


def _kind(file: Fields) -> str:
    """The model type that a line of a table knows it by; its class stands in for one."""
    kind = file.data.get("model_type")
    if isinstance(kind, str) and kind in WAYS:
        return kind
    classes = json_list(file.data.get("architectures"))
    first = classes[0] if classes else None
    return CLASSES.get(first, "") if isinstance(first, str) else ""


def _lists(file: Fields, layers: int) -> dict[str, list[Any]]:
    """The fields that hold an entry per layer. Entries of layers for multi-token prediction, which
    are not part of the stack, may follow. Raises ConfigError for another length or entry.
    """
    found: dict[str, list[Any]] = {}
    for name in (*_ROTATING, *LISTS):
        entries = json_list(file.value(name))
        if entries is None and file.has(name) and name != "rope_theta":
            raise file.error(f"'{name}' is {shown(file.data[name])}; it must list every layer")
        if not entries:
            continue
        predicted = file.optional_size("num_nextn_predict_layers", low=0) or 0
        if len(entries) not in (layers, layers + predicted):
            raise file.error(
                f"'{name}' has {len(entries)} entries and must have num_hidden_layers = {layers};"
                " correct one of them"
            )
        for number, entry in enumerate(entries if name in _ROTATING else (), 1):
            if type(entry) not in (int, bool) or entry not in (0, 1):
                raise file.error(
                    f"entry {number} of '{name}' is {shown(entry)}; it must be one of 1, 0"
                )
        found[name] = entries
    return found


def _inner(file: Fields, layers: int) -> list[tuple[Fields, str]]:
    """For every layer the fields with those of the object that holds its attention, and the
    prefix of the latter.
    """
    for name in _INNER:
        if json_object(file.data.get(name)) is not None:
            return [(file.section(name), f"{name}.")] * layers
    found = [(file, "")] * layers
    whole = json_object(file.data.get("attn"))
    several = json_list(file.data.get("attn")) or []
    named = [("attn", whole)] if whole else [(f"attn[{i}]", e) for i, e in enumerate(several)]
    for name, entry in named:
        inner = json_object(entry) or {}
        part = file.with_data({**file.data, name: inner}).section(name)
        for i in json_list(inner.get("layers")) or []:
            if type(i) is int and 0 <= i < layers:
                found[i] = (part, f"{name}.")
    return found


def _attn_prefixes(file: Fields) -> list[str]:
    """How the fields of flash-linear-attention's attention layers begin."""
    several = json_list(file.data.get("attn")) or []
    return ["attn.", *(f"attn[{i}]." for i in range(min(len(several), MOST_LAYERS)))]


def _cap(file: Fields, cls: type[Mechanism], usual: int) -> tuple[int, tuple[str, ...]]:
    """What scores are capped at, 0 where they are not, and what was assumed."""
    name = file.find(*_CAPS)
    if name is None:
        missing = usual and not any(cap in file.data for cap in _CAPS)
        note = (
            f"attention scores capped at {usual} (assumed): the file does not say, and transformers"
            " takes it so"
        )
        return (usual, (note,)) if missing else (0, ())
    value = file.data[name]
    if type(value) not in (int, float) or not 1 <= value <= LARGEST or value != int(value):
        raise file.error(
            f"'{name}' is {shown(value)}; it must be a whole number from 1 to {LARGEST:,}"
        )
    if not _has(cls, "softcap"):
        raise file.error(f"'{name}' is there, but scores of '{cls.name}' are not capped; remove it")
    return int(value), ()


def _around(file: Fields, draft: Draft, way: Way, norm: str) -> dict[str, Value]:
    """Sizes that say what stands around a softmax: QK-norm and output gate."""
    gate = "none" if file.flag("attn_output_gate") is False else way.gate
    said = {"qk_norm": norm, "gate": gate}
    return {name: what for name, what in said.items() if what != "none" and _has(draft.cls, name)}


def _clipped(file: Fields) -> bool:
    """Whether queries, keys and values are clipped at a number of the file."""
    found = [value for name, value in file.data.items() if name.rpartition(".")[2] == "clip_qkv"]
    return any(value is not None for value in found)


def _with(draft: Draft, seen: Seen, cap: int, *, bounded: bool) -> Draft:
    """The draft with what is known of its positions; what it has already wins."""
    sizes: dict[str, Value] = {"positions": seen.positions, "rope": seen.turned is not None}
    if seen.turned is not None:
        sizes |= {"rope_base": seen.turned.base, "rope_scaling": seen.turned.scaling}
        sizes |= {} if issubclass(draft.cls, LatentCache) else {"rope_dim": seen.turned.dims}
    sizes |= {"softcap": cap} if cap else {}
    sizes |= {"bounded": True} if bounded else {}
    return Draft(draft.cls, {**sizes, **draft.sizes})


def _has(cls: type[Mechanism], size: str) -> bool:
    return any(field.name == size for field in fields(cls))

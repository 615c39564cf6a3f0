"""How many weights a released model has, and how wide its MLPs are, from the sizes in its file.

Where a model type's row does not say what follows its mixers, or a size is missing, the reason is
told instead. `tests/peers/test_weights.py` compares with transformers' own modules.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import frexp, prod
from typing import Any

from separatrix.core.errors import ConfigError
from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.core.numbers.formats import NumberFormat
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.hf.fields import WIDTHS, Fields, Unknown
from separatrix.stacks.architecture.hf.layers import opened
from separatrix.stacks.architecture.hf.notes import SECTIONS
from separatrix.stacks.architecture.hf.sizes import size_of, value_of
from separatrix.stacks.architecture.hf.table import Row
from separatrix.stacks.architecture.weights import Bits, Experts, Mlp, Weights
from separatrix.stacks.mechanisms import (
    DSA,
    GLA,
    KDA,
    MECHANISMS,
    MLSTM,
    RGLRU,
    RWKV4,
    Chosen,
    Compressed,
    DeltaNet,
    Full,
    GatedDeltaNet,
    Indexed,
    Latent,
    Lightning,
    Mamba,
    Mamba2,
    Mechanism,
    PositionWise,
    RetNet,
    Reused,
    ReusedWindow,
    ShortConvolution,
    Window,
)
from separatrix.stacks.mechanisms.recurrent_state import Delta
from separatrix.stacks.mechanisms.softmax import Softmax


def weights(fields: Fields, architecture: Architecture, row: Row) -> Weights | str:
    """The weights of a model, or why its file or its type does not tell them."""
    try:
        return _weights(_opened(fields, architecture, row), architecture, row)
    except ConfigError as why:
        # of a field that nothing else is read from: costs are left out, the card is not
        return str(why).removeprefix(f"{fields.where}: ")


def _opened(fields: Fields, architecture: Architecture, row: Row) -> Fields:
    """As the row reads them, with what the object of MLPs holds, where there is one (DBRX), and
    `layers.full` and its kin: in how many layers a mechanism stands.
    """
    fields, counts = opened(row, fields), dict.fromkeys(map("layers.{}".format, MECHANISMS), 0)
    for layer, times in architecture.counted():
        for name in {part.name for part in layer}:
            counts[f"layers.{name}"] += times
    inside = json_object(fields.data.get("ffn_config")) or {}
    return fields.with_data({**inside, **fields.data, **counts})


def _weights(fields: Fields, architecture: Architecture, row: Row) -> Weights:
    if not row.mlps.maps:
        raise fields.error("what this model type has beside its mixers is not read")
    width, words = fields.needed(*WIDTHS), row.around.split()
    head = width * (architecture.vocabulary or fields.needed("vocab_size"))
    every, experts = _behind(fields, row, len(architecture), width)
    said = False if "untied" in words else fields.flag("tie_word_embeddings")
    tied = row.tied if said is None else said
    assumed = "the head is the embedding" if tied else "the head is not the embedding"
    counted = _Mixers(fields, words, width)
    mixing = size_of(row.more, fields) + sum(
        counted.of(part) * times for layer, times in architecture.counted() for part in layer
    )
    if fields.optional_size("word_embed_proj_dim") not in (None, width):
        raise fields.error("maps to and from 'word_embed_proj_dim' are not counted")
    embedded = size_of(row.embedded, fields) + (0 if tied else head)
    bits, again = _bits(fields, len(architecture)), size_of(row.again, fields)
    assumed *= said is None
    return Weights(mixing, every, experts, head, embedded, bits, again, assumed)


_Matrix = GatedDeltaNet | KDA | Lightning | GLA | RetNet | DeltaNet


@dataclass(frozen=True)
class _Mixers:
    """Weights of what mixes tokens, by its sizes, the fields of the file and the row's `around`."""

    fields: Fields
    words: Sequence[str]
    width: int

    def _gates(self, own: str, heads: int, inner: int) -> int:
        """Numbers that gates of attention's outputs are: of every number, of every head, or none;
        by the size of a mixer, or as its class has them.
        """
        fields, words = self.fields, self.words
        # Laguna's class makes one of each number, but where the field says otherwise
        each = fields.value("gating") not in (None, True, "per-head")
        each = each or fields.flag("mla_use_output_gate")
        usual = "sigmoid" if each or "gated" in words else "head" if "heads" in words else "none"
        return {"sigmoid": inner, "head": heads}.get(usual if own == "none" else own, 0)

    def of(self, part: Mechanism) -> int:
        """Maps from the input, convolutions and the map back. Raises ConfigError for a mixer whose
        maps are not known.
        """
        # without a short convolution one over one token stands for SiLU
        none = self.fields.flag("use_short_conv") is False
        columns = 0 if none else part.sizes().get("conv", 0)
        return self._maps(part) + columns * part.convolved

    def _maps(self, part: Mechanism) -> int:
        width = self.width
        match part:
            case PositionWise():
                return 0
            case Softmax() if not isinstance(part, Window) or not part.shared:
                inner, asked = part.heads * part.dv, part.heads * part.head_dim
                gates = self._gates(part.sizes().get("gate", "none"), part.heads, inner)
                kept = 0 if isinstance(part, Reused | ReusedWindow) else part.kv_numbers
                # Gemma 4: one map makes both
                if isinstance(part, Full) and self.fields.flag("attention_k_eq_v"):
                    kept //= 2
                if "kept" in self.words:
                    return width * kept
                if isinstance(part, Indexed):
                    kept += part.index_dim * (part.index_heads + 1)
                return width * (asked + kept + inner + gates)
            case DSA():
                queries = part.index_heads * (part.query_latent or width)
                return (
                    self._latent(part)
                    + part.index_dim * (queries + width)
                    + (width * part.index_heads)
                )
            case Latent() | Chosen():
                return self._latent(part)
            case Window() | Compressed():
                return self._shared(part)
            case GatedDeltaNet() | KDA() | Lightning() | GLA() | RetNet() | DeltaNet():
                return width * (part.convolved + part.heads * part.dv) + self._decays(part)
            case Mamba():
                rank = part.rank or -(-width // 16)
                return part.width * (3 * (width + part.state) + 2 * rank)
            case Mamba2():
                return width * (2 * part.inner_width + part.convolved + part.heads)
            case RGLRU():
                # its gates are maps of a block of channels each
                blocks = self.fields.optional_size("num_attention_heads") or part.width
                return part.width * (3 * width + 2 * (part.width // blocks))
            case ShortConvolution():
                return part.width * 4 * width
            case RWKV4():
                # what lets the MLP's outputs through, and shares of the token before
                return width * (4 * part.width + width + 5)
            case MLSTM():
                # two gates of each head, and one of every output
                inner = part.heads * part.dv
                return width * (2 * part.heads * (part.head_dim + 1) + 3 * inner)
            case _:
                raise self.fields.error(f"maps of '{part.name}' are not counted")

    def _decays(self, part: _Matrix) -> int:
        """An output gate, and what makes decays and strengths of writing. Those of KDA, and most of
        its gates, are made of as many numbers as a head has.
        """
        width, fields = self.width, self.fields
        asked, inner = part.heads * part.head_dim, part.heads * part.dv
        if isinstance(part, KDA):
            full = "full" in self.words
            section = fields.section("linear_attn_config")
            whole = full or section.flag("linear_attn_config.use_full_rank_gate")
            decays = width * asked if full else part.head_dim * (width + asked)
            gate = width * inner if whole else part.head_dim * (width + inner)
            return width * part.heads + decays + gate
        delta = isinstance(part, DeltaNet)
        gated = fields.flag("use_gate" if isinstance(part, Delta) else "use_output_gate")
        found = width * inner * (not delta if gated is None else gated)
        if isinstance(part, Delta) and fields.flag("use_beta") is not False:
            found += width * part.heads * (1 if delta else 2)
        # of flash-linear-attention: heads may share keys and values, and decays are made of 16
        shared = part.heads // (fields.optional_size("num_kv_heads") or part.heads)
        if isinstance(part, GLA | RetNet) and shared > 1:
            found -= width * (asked + inner) * (shared - 1) // shared
        return found + (16 * (width + asked // shared) if isinstance(part, GLA) else 0)

    def _latent(self, part: Latent | Chosen) -> int:
        """Queries, from a latent where there is one; the cached latent; keys and values of it."""
        width, latent = self.width, self.fields.optional_size("q_lora_rank")
        if "q_lora_rank" not in self.fields.data and "direct" not in self.words:
            raise self.fields.error(
                "'q_lora_rank' is missing (null says that queries have no latent)"
            )
        asked = part.heads * (part.head_dim + part.rope_dim)
        queries = width * asked if latent is None else latent * (width + asked)
        made = part.latent * part.heads * (part.head_dim + part.dv)
        inner = part.heads * part.dv
        around = width * (inner + self._gates("none", part.heads, inner))
        return queries + width * part.kv_numbers + made + around

    def _shared(self, part: Window | Compressed) -> int:
        """Keys that are values too, of a window and of entries (DeepSeek-V4): queries come from a
        latent, and outputs go through one.
        """
        width = self.width
        latent, groups, rank = map(self.fields.needed, ("q_lora_rank", "o_groups", "o_lora_rank"))
        inner = part.heads * part.head_dim
        found = latent * (width + inner) + width * part.head_dim
        found += rank * (inner + groups * width)
        if isinstance(part, Window):
            return found
        # content and gate of each token of an entry
        wide = 2 if part.overlap else 1
        found += wide * (part.head_dim + part.index_dim) * 2 * width
        return found + part.index_heads * (latent * part.index_dim + width)


def _bits(fields: Fields, layers: int) -> Bits | None:
    """Of the model's own format, or narrower where a release is quantised: attention, routers and
    what else the file leaves out are not.
    """
    own = Fraction(NumberFormat(fields.model_format()).bits)
    name = fields.find(*SECTIONS)
    if name is None:
        return Bits(own, own, own, own)
    said = json_object(fields.data[name]) or {}
    narrow = _narrow(said)
    if narrow is None:
        return None
    lists = [json_list(said[key]) for key in KEPT if said.get(key) is not None]
    # DeepSeek-V4's experts are narrower than the rest
    expert = fields.value("expert_dtype")
    named = str(expert).lower()
    apart = narrow if expert is None or named in _EIGHT else _FOUR.get(named)
    if None in lists or apart is None:
        return None
    kept = [str(each) for names in lists for each in names or []]
    # MXFP4 is of experts alone
    experts = said.get("quant_method") == "mxfp4"
    maps, mlps = (
        narrow + (own - narrow) * (1 if experts else _left(kept, part, layers))
        for part in (_ATTENTION, _SHARED_EXPERT)
    )
    # MLX has narrow embeddings, too
    return Bits(maps, mlps, apart, narrow if _of_mlx(said) else own)


KEPT = ("modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules", "exclude")
"""How quantised files call the modules that they leave alone."""
_ATTENTION = re.compile(r"(attn|attention)\W*$|[qkvo]_proj|qkv")
_SHARED_EXPERT = re.compile(r"shared_experts?(\W|$)")
_LAYER = re.compile(r"\blayers\\?\.(\d+)\b")


def _left(kept: Sequence[str], part: re.Pattern[str], layers: int) -> Fraction:
    """The share of the layers in which a part of this kind is left alone: those that the entries
    name, or all. Gates, norms and convolutions within it are small, and are not the part.
    """
    found = [_LAYER.search(each) for each in kept if part.search(each)]
    numbers = {int(one[1]) for one in found if one is not None}
    return Fraction(layers if None in found else sum(n < layers for n in numbers), layers)


_EIGHT = frozenset(("fp8", "fbgemm_fp8", "w8a8_fp8", "ptpc_fp8", "int8", "fp8_e4m3"))
_FOUR = {"mxfp4": Fraction(17, 4), "fp4": Fraction(17, 4), "nvfp4": Fraction(9, 2)}
"""With a scale of 8 bits for 32 numbers, or for 16."""


def _of_mlx(said: Mapping[Any, Any]) -> bool:
    """Whether it names no method, and the bits of all groups alike."""
    return {*said} - {"mode"} == {"bits", "group_size"} and said.get("mode", "affine") == "affine"


def _narrow(said: Mapping[Any, Any]) -> Fraction | None:
    """Bits of a quantised weight and its share of the scales; None for a way that is not read."""
    method = str(said.get("quant_method") or said.get("quant_algo")).lower()
    if method in ("modelopt", "modelopt_fp4"):
        method = str(said.get("quant_algo")).lower()
    if method == "quark":
        own = json_object((json_object(said.get("global_quant_config")) or {}).get("weight")) or {}
        method = str(own.get("dtype")).lower()
    pruned = (json_object(said.get("sparsity_config")) or {}).get("format", "dense")
    if method == "compressed-tensors" and pruned == "dense" and said.get("format") != "marlin-24":
        groups = (json_object(said.get("config_groups")) or {}).values()
        kinds = [json_object((json_object(group) or {}).get("weights")) or {} for group in groups]
        # scales of groups of floating numbers (MXFP4, NVFP4) are bytes
        found = [
            _grouped(
                kind.get("num_bits"),
                kind.get("group_size"),
                scale=8 if kind.get("type") == "float" else 16,
            )
            for kind in kinds
        ]
        return None if not found or None in found else max(filter(None, found))
    if method in ("gptq", "awq", "gptq_marlin", "awq_marlin", "auto-round"):
        bits, group = (said.get(name) for name in ("bits", "group_size"))
        # and a zero for every group
        return _grouped(bits, group, scale=16 + bits if type(bits) is int else 16)
    if _of_mlx(said):
        # a scale and an offset
        return _grouped(said["bits"], said["group_size"], scale=32)
    if method == "bitsandbytes":
        four = said.get("load_in_4bit", said.get("_load_in_4bit")) is True
        # a scale of 32 bits for 64 numbers, itself in 8 bits where it is quantised too
        scale = Fraction(1, 8) if said.get("bnb_4bit_use_double_quant") is True else Fraction(1, 2)
        return 4 + scale if four else Fraction(8)
    block = said.get("weight_block_size")
    if method not in _EIGHT or block is None:
        return Fraction(8) if method in _EIGHT else _FOUR.get(method)
    sides = [side for side in json_list(block) or [] if type(side) is int and side > 0]
    return _grouped(8, prod(sides), scale=32) if len(sides) == 2 == len(block) else None


def _grouped(bits: Any, group: Any, scale: int = 16) -> Fraction | None:
    """Weights of so many bits with a scale for each group; None and -1: of a whole row."""
    if type(bits) is not int or not 1 <= bits <= 16:
        return None
    if group is None or group == -1:
        return Fraction(bits)
    return bits + Fraction(scale, group) if type(group) is int and group > 0 else None


_LATENT = ("moe_latent_size", "routed_expert_hidden_size")
_OWN = ("moe_intermediate_size", "expert_ffn_hidden_size", "moe_ffn_hidden_size")
"""How files call the width of an expert, where it is told apart from that of a dense MLP."""


def _behind(fields: Fields, row: Row, layers: int, width: int) -> tuple[int, tuple[Experts, ...]]:
    """Weights behind the mixers that every token takes, over all layers, and the experts. Raises
    ConfigError where a size is missing.
    """
    of, each = row.mlps, row.mlps.maps * width
    number, chosen = (_told(fields, size) for size in (of.number, of.chosen))
    # none, or silent of them altogether
    silent = not of.moe and not chosen and fields.optional_size(*_OWN) is None
    behind = size_of(of.layers, fields) if of.layers else layers
    # where layers are MLPs alone, those with experts are listed
    some = (of.layers and row.experts) or not (number == 0 or (number is None and silent))
    sparse = _sparse(fields, layers, row.experts) if behind and some else []
    if len(sparse) > behind:
        raise fields.error("experts are in more layers than there are")
    gone = set[int]() if of.both else {*sparse}
    dense = [i for i in range(layers) if i not in gone][: behind - len(gone)]
    every = sum(each * own * times for (own,), times in _alike(fields, dense, of.dense).items())
    # experts of a narrower latent, and the maps there and back
    latent = fields.optional_size(*_LATENT)
    experts: list[Experts] = []
    sizes = (of.number, of.chosen, of.hidden, of.shared, of.beside, of.apart)
    for own, times in _alike(fields, sparse, *sizes).items():
        number, chosen, hidden, shared, beside, apart = own
        if not 1 <= chosen <= number:
            raise fields.error(f"a token has {chosen} of {number} experts; correct one of them")
        every += times * (width * (number + 2 * (latent or 0)) + each * shared + beside)
        size = of.maps * (latent or width) * hidden + apart
        experts.append(Experts(times, number, chosen, size))
    return every, tuple(experts)


def _told(fields: Fields, size: str) -> int | None:
    """A size, None where the file does not tell it."""
    value = value_of(size, fields)
    return value if isinstance(value, int) else None


def _alike(fields: Fields, layers: Sequence[int], *sizes: str) -> Counter[tuple[int, ...]]:
    """What these expressions are in these layers, and in how many of them."""
    unlike = any("each(" in size for size in sizes)
    found: Counter[tuple[int, ...]] = Counter()
    for i in layers if unlike else layers[:1]:
        at = replace(fields, layer=i)
        found[tuple(size_of(size, at) for size in sizes)] += 1 if unlike else len(layers)
    return found


def _sparse(fields: Fields, layers: int, experts: str) -> list[int]:
    """The layers that have experts, by the row's expression. Raises ConfigError where that is not
    told.
    """
    freq = fields.value("moe_layer_freq")
    if freq not in (None, 1) and json_list(freq) is None:
        raise fields.wrong("moe_layer_freq", "be 1, or a list with 1 for every layer with experts")
    if not experts:
        return [*range(layers)]
    each = [value_of(experts, replace(fields, layer=i)) for i in range(layers)]
    known = (fields.known(own) if isinstance(own, Unknown) else own for own in each)
    return [i for i, own in enumerate(known) if own]


def mlp(fields: Fields, architecture: Architecture, row: Row) -> Mlp | None:
    """The units that every token has in each MLP, or None where the file does not tell them.

    Of the k experts of a token, 2^j, the largest power of two, can be given one weight, a power of
    two, by a constant routing that leaves the others next to nothing; a factor of their sum that is
    no power of two would have to be undone, so that such experts do not count. Shared experts do.
    """
    try:
        fields = _opened(fields, architecture, row)
        layers = range(len(architecture) if "each(" in repr(row.mlps) else 1)
        least = min(_least(replace(fields, layer=i), row) for i in layers)
    except ConfigError:
        # of a field that nothing else is read from: a width is assumed, the card is there
        return None
    if least < 1:
        return None
    apart = any(not part.mixes_tokens for layer, _ in architecture.counted() for part in layer)
    return Mlp(least, stated=True, every=not (row.bare or apart))


def _least(fields: Fields, row: Row) -> int:
    """The smallest width of an MLP that layers have; 0 where one is not known."""
    of = row.mlps
    sizes = (of.dense, of.number, of.chosen, of.hidden, of.shared)
    dense, number, chosen, hidden, shared = (_told(fields, size) for size in sizes)
    if not chosen or number == 0 or of.both:
        return dense or 0
    if hidden is None or shared is None:
        return 0
    scale = fields.value("routed_scaling_factor")
    # where such files are silent, classes have factors of their own
    silent = scale is None and not fields.has("n_routed_experts")
    try:
        clean = silent or (isinstance(scale, int | float) and frexp(scale)[0] == 0.5)
    except OverflowError:
        clean = False
    # what experts of a narrower latent see is not the whole of a token
    clean &= fields.find(*_LATENT) is None
    routed = hidden << (chosen.bit_length() - 1) if clean else 0
    # layers without experts have the dense width: all that a file without sizes of its own
    # for experts may hold is one width for both
    mixed = row.experts != "" or fields.find(*_OWN) is not None
    return routed + shared if dense is None or not mixed else min(routed + shared, dense)

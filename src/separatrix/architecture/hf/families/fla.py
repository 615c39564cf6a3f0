"""flash-linear-attention's own model types with a matrix state per head."""

from __future__ import annotations

from separatrix.architecture.hf import fla_fields
from separatrix.architecture.hf.draft import Draft, Reading, Size
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields, shown
from separatrix.architecture.hf.recurrent import scaled
from separatrix.mechanisms import (
    GLA,
    HGRN2,
    KDA,
    DeltaNet,
    DeltaProduct,
    GatedDeltaNet,
    Linear,
    Mechanism,
    RetNet,
)

_FEATURES = {
    "elu": "elu",
    "relu": "relu",
    "identity": "identity",
    "elementwise_product": "identity",
    "t2r": "relu",
}
"""Feature maps that keep the dimension of keys; learnt ones count as their last step."""


_DELTA_RULE = (DeltaNet, GatedDeltaNet, DeltaProduct, KDA)
"""Mechanisms that know negative eigenvalues, and whose layers put SiLU on q, k and v also where
they have no convolution.
"""


def _reading(
    fields: Fields, cls: type[Mechanism], sizes: dict[str, Size], conv: Size = 0
) -> Reading:
    # a convolution over one token is that SiLU, without which keys could be chosen freely
    kernel = 1 if conv == 0 and cls in _DELTA_RULE else conv
    draft = Draft(
        cls, {**sizes, "conv": kernel, "format": fields.model_format(), "state_format": "fp32"}
    )
    return fla_fields.hybrid(fields, [draft] * fields.layers(), convolution=conv != 0)


def expanded(cls: type[Mechanism]) -> Family:
    """Reader of GLA, RetNet and DeltaNet: `num_heads`, `expand_k`, `expand_v`, `use_short_conv`,
    `conv_size`, `attn`.
    """

    def read(fields: Fields) -> Reading:
        heads = fields.size("num_heads")
        conv = fla_fields.kernel(fields)
        kv = fields.optional_size("num_kv_heads")
        if kv is not None and kv != heads and conv != 0:
            raise fields.error(
                "'num_kv_heads' with 'use_short_conv' makes convolutions of unequal width, which is"
                " not supported; pass the stack as a spec"
            )
        sizes = {
            "heads": heads,
            "head_dim": fla_fields.per_head(fields, heads, "expand_k"),
            "value_dim": fla_fields.per_head(fields, heads, "expand_v"),
        }
        return _reading(fields, cls, sizes | _negative(fields, cls), conv)

    return read


def gated(cls: type[Mechanism]) -> Family:
    """Reader of Gated DeltaNet, Gated DeltaProduct and KDA: `num_heads` query-key heads,
    `num_v_heads` value heads (as many if null), `head_dim`, `expand_v`, `num_householder`.
    """

    def read(fields: Fields) -> Reading:
        keys = fields.size("num_heads")
        values = fields.optional_size("num_v_heads")
        if values is not None and isinstance(keys, int) and values % keys:
            raise fields.error(
                f"'num_v_heads' is {values}, no multiple of 'num_heads' = {keys}; correct one of"
                " them"
            )
        head_dim = fields.size("head_dim")
        sizes = {
            "heads": keys if values is None else values,
            "key_heads": keys,
            "head_dim": head_dim,
        } | _negative(fields, cls)
        if cls is DeltaProduct:
            sizes["householders"] = fields.size("num_householder")
        return _reading(
            fields,
            cls,
            sizes | {"value_dim": scaled(fields, head_dim, "expand_v")},
            fla_fields.kernel(fields),
        )

    return read


def _negative(fields: Fields, cls: type[Mechanism]) -> dict[str, Size]:
    """`allow_neg_eigval`, for the mechanisms that know negative eigenvalues; false if missing,
    as in the configuration classes.
    """
    return {"negative": bool(fields.flag("allow_neg_eigval"))} if cls in _DELTA_RULE else {}


def hgrn2(fields: Fields) -> Reading:
    """HGRN-2: `expand_ratio` numbers per channel, in hidden_size / expand_ratio heads whatever
    `num_heads` says; where it is null, hidden_size / num_heads.
    """
    hidden = fields.size("hidden_size")
    heads = fields.optional_size("num_heads")
    ratio = fields.optional_size("expand_ratio")
    if ratio is None and heads is not None:
        ratio = fields.quotient(hidden, heads, "hidden_size / num_heads")
    # where neither is given: the unknown size names both fields
    ratio = fields.size("expand_ratio", "num_heads") if ratio is None else ratio
    number = fields.quotient(hidden, ratio, "hidden_size / expand_ratio")
    values = fields.quotient(hidden, number, "hidden_size / num_heads")
    return _reading(
        fields,
        HGRN2,
        {"heads": number, "head_dim": ratio, "value_dim": values},
        fla_fields.kernel(fields),
    )


def linear_attn(fields: Fields) -> Reading:
    """Linear attention; the state carries a normaliser if `norm_feature_map`."""
    name = fields.value("feature_map")
    if not isinstance(name, str) or name not in _FEATURES:
        raise fields.error(
            f"'feature_map' is {shown(name)}; it must be one of {', '.join(_FEATURES)}, which keep"
            " the dimension of keys"
        )
    normaliser = fields.flag("norm_feature_map")
    if normaliser is None:
        raise fields.error(
            "'norm_feature_map' is missing: it says whether the state carries a normaliser; add it"
            " to the file"
        )
    heads = fields.size("num_heads")
    sizes = {
        "heads": heads,
        "head_dim": fla_fields.per_head(fields, heads, "expand_k"),
        "value_dim": fla_fields.per_head(fields, heads, "expand_v"),
        "feature": _FEATURES[name],
        "normaliser": normaliser,
        "format": fields.model_format(),
        "state_format": "fp32",
    }
    return fla_fields.hybrid(fields, [Draft(Linear, sizes)] * fields.layers(), convolution=False)


FAMILIES: dict[str, Family] = {
    "gla": expanded(GLA),
    "retnet": expanded(RetNet),
    "delta_net": expanded(DeltaNet),
    "gated_deltanet": gated(GatedDeltaNet),
    "gated_deltaproduct": gated(DeltaProduct),
    "kda": gated(KDA),
    "hgrn2": hgrn2,
    "linear_attn": linear_attn,
}
CLASSES: dict[str, str] = {
    "GLAForCausalLM": "gla",
    "RetNetForCausalLM": "retnet",
    "DeltaNetForCausalLM": "delta_net",
    "GatedDeltaNetForCausalLM": "gated_deltanet",
    "GatedDeltaProductForCausalLM": "gated_deltaproduct",
    "KDAForCausalLM": "kda",
    "HGRN2ForCausalLM": "hgrn2",
    "LinearAttentionForCausalLM": "linear_attn",
}

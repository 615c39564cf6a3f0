"""OLMo Hybrid: Gated DeltaNet with a full attention layer every fourth layer."""

from __future__ import annotations

from separatrix.architecture.hf.draft import Draft, Reading, Size
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields
from separatrix.architecture.hf.lists import spelled
from separatrix.architecture.hf.recurrent import LISTS, assumed, attention_head_dim, plain_attention
from separatrix.mechanisms import GatedDeltaNet

_INITIAL = ("a_log_max", "a_log_min", "dt_max", "dt_min", "dt_init_floor")
"""Fields of initial weights."""


def olmo_hybrid(fields: Fields) -> Reading:
    """`layer_types`; if absent, full iff i % 4 == 3, and the last layer of a shorter stack, as
    transformers takes it. Negative eigenvalues unless the file says no, as there.
    """
    notes = assumed(fields)
    kinds = spelled(fields, LISTS)
    if kinds is None:
        layers = fields.layers()
        kinds = [
            "full" if i % 4 == 3 or (layers < 4 and i == layers - 1) else "recurrent"
            for i in range(layers)
        ]
        notes.append(
            "full attention every 4th layer (assumed): the file does not say, and transformers"
            " takes 4"
        )
    fields.harmless(*(f"linear_{name}" for name in _INITIAL))
    heads = fields.size("num_attention_heads")
    keys = _or(fields, "linear_num_key_heads", heads)
    values = _or(fields, "linear_num_value_heads", heads)
    if isinstance(keys, int) and isinstance(values, int) and values % keys:
        raise fields.error(
            f"'linear_num_key_heads' is {keys}, which does not divide 'linear_num_value_heads' ="
            f" {values}; correct one of them"
        )
    key_dim = fields.optional_size("linear_key_head_dim")
    if key_dim is None:
        # 0.75 as 3/4: integers only, so that the division is exact
        key_dim = fields.quotient(
            3 * fields.size("hidden_size"), 4 * keys, "0.75 x hidden_size / linear_num_key_heads"
        )
    recurrent = Draft(
        GatedDeltaNet,
        {
            "heads": values,
            "key_heads": keys,
            "head_dim": key_dim,
            "value_dim": _or(fields, "linear_value_head_dim", 2 * key_dim),
            "conv": fields.size("linear_conv_kernel_dim"),
            "negative": fields.flag("linear_allow_neg_eigval") is not False,
            "format": fields.model_format(),
            "state_format": "fp32",
        },
    )
    attention = plain_attention(fields, head_dim=attention_head_dim(fields))
    if not fields.has("num_key_value_heads"):
        attention = Draft(attention.cls, {**attention.sizes, "kv_heads": heads})
    return Reading.of([attention if kind == "full" else recurrent for kind in kinds], notes)


def _or(fields: Fields, name: str, defined: Size) -> Size:
    """A size that the model class defines from others where the file does not give it."""
    given = fields.optional_size(name)
    return defined if given is None else given


FAMILIES: dict[str, Family] = {
    "olmo_hybrid": olmo_hybrid,
}
CLASSES: dict[str, str] = {
    "OlmoHybridForCausalLM": "olmo_hybrid",
}

"""xLSTM: mLSTM layers alone."""

from __future__ import annotations

from separatrix.architecture.hf.attention import state_note
from separatrix.architecture.hf.draft import Draft, Reading, Size
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields
from separatrix.architecture.hf.recurrent import scaled
from separatrix.mechanisms import MLSTM

_KERNELS = (
    *("chunkwise_kernel", "sequence_kernel", "step_kernel", "max_inference_chunksize"),
    *("add_post_blocks_norm", "add_post_norm", "add_embedding_dropout", "weight_mode"),
    *("add_forward_backend_padding", "forward_backend_name"),
    *("return_last_states", "autocast_kernel_dtype", "mode", "ffn_round_up_to_multiple_of"),
)
_MULTIPLE = 64
"""Both widths are rounded up to a multiple of this in one implementation and not in the other;
read where that makes no difference.
"""


def xlstm(fields: Fields) -> Reading:
    """All layers mLSTM; queries and keys have `qk_dim_factor` x `hidden_size` channels, values
    `v_dim_factor` x `hidden_size`.
    """
    fields.harmless(*_KERNELS, "head_dim", "mlstm_round_up_to_multiple_of")
    heads = fields.size("num_heads")
    hidden = fields.size("hidden_size", "embedding_dim")
    stated = fields.number_format("inference_state_dtype")
    sizes = {
        "heads": heads,
        "head_dim": _per_head(fields, hidden, heads, "qk_dim_factor"),
        "value_dim": _per_head(fields, hidden, heads, "v_dim_factor"),
        "format": fields.model_format(),
        "state_format": stated or "fp32",
    }
    note = state_note(stated or "fp32", "inference_state_dtype" if stated else None)
    return Reading.of(
        [Draft(MLSTM, sizes)] * fields.layers("num_hidden_layers", "num_blocks"), [note]
    )


def _per_head(fields: Fields, hidden: Size, heads: Size, name: str) -> Size:
    channels = scaled(fields, hidden, name)
    if isinstance(channels, int) and channels % _MULTIPLE:
        raise fields.error(
            f"'{name}' x hidden_size is {channels}, which implementations round differently; only"
            " multiples of 64 are supported"
        )
    return fields.quotient(channels, heads, f"'{name}' x hidden_size / num_heads")


FAMILIES: dict[str, Family] = {
    "xlstm": xlstm,
}
CLASSES: dict[str, str] = {
    "xLSTMForCausalLM": "xlstm",
}

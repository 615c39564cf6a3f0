"""Families with recurrent layers or short convolutions, by `model_type` and by class."""

from __future__ import annotations

from separatrix.architecture.hf.families import fla, fla_other
from separatrix.architecture.hf.families.bamba import bamba, falcon_h1, granite
from separatrix.architecture.hf.families.hymba import hymba
from separatrix.architecture.hf.families.jamba import jamba
from separatrix.architecture.hf.families.kimi import kimi
from separatrix.architecture.hf.families.lfm2 import lfm2
from separatrix.architecture.hf.families.mamba import falcon_mamba, mamba_1, mamba_2
from separatrix.architecture.hf.families.mamba_ssm import is_native, mamba_ssm
from separatrix.architecture.hf.families.minimax import minimax
from separatrix.architecture.hf.families.nemotron_h import nemotron_h
from separatrix.architecture.hf.families.olmo_hybrid import olmo_hybrid
from separatrix.architecture.hf.families.phi4flash import phi4flash
from separatrix.architecture.hf.families.qwen3_next import qwen3_next
from separatrix.architecture.hf.families.recurrent_gemma import recurrent_gemma
from separatrix.architecture.hf.families.rwkv import rwkv
from separatrix.architecture.hf.families.xlstm import xlstm
from separatrix.architecture.hf.families.zamba import zamba, zamba2
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields

FAMILIES: dict[str, Family] = {
    "qwen3_next": qwen3_next,
    "qwen3_5": qwen3_next,
    "qwen3_5_text": qwen3_next,
    "qwen3_5_moe": qwen3_next,
    "qwen3_5_moe_text": qwen3_next,
    "kimi_linear": kimi,
    "kimi_k3": kimi,
    "olmo_hybrid": olmo_hybrid,
    "minimax": minimax,
    "minimax_text_01": minimax,
    "minimax_m1": minimax,
    "jamba": jamba,
    "bamba": bamba,
    "granitemoehybrid": granite,
    "falcon_h1": falcon_h1,
    "mamba": mamba_1,
    "falcon_mamba": falcon_mamba,
    "mamba2": mamba_2,
    "nemotron_h": nemotron_h,
    "zamba": zamba,
    "zamba2": zamba2,
    "recurrent_gemma": recurrent_gemma,
    "lfm2": lfm2,
    "lfm2_moe": lfm2,
    "hymba": hymba,
    "rwkv": rwkv,
    "xlstm": xlstm,
    "phi4flash": phi4flash,
    **fla.FAMILIES,
    **fla_other.FAMILIES,
}
"""`model_type` -> reader."""

CLASSES = {
    "Qwen3NextForCausalLM": "qwen3_next",
    "Qwen3_5ForCausalLM": "qwen3_5_text",
    "KimiLinearForCausalLM": "kimi_linear",
    "OlmoHybridForCausalLM": "olmo_hybrid",
    "MiniMaxForCausalLM": "minimax",
    "MiniMaxText01ForCausalLM": "minimax_text_01",
    "MiniMaxM1ForCausalLM": "minimax_m1",
    "JambaForCausalLM": "jamba",
    "BambaForCausalLM": "bamba",
    "GraniteMoeHybridForCausalLM": "granitemoehybrid",
    "FalconH1ForCausalLM": "falcon_h1",
    "MambaForCausalLM": "mamba",
    "FalconMambaForCausalLM": "falcon_mamba",
    "Mamba2ForCausalLM": "mamba2",
    "NemotronHForCausalLM": "nemotron_h",
    "ZambaForCausalLM": "zamba",
    "Zamba2ForCausalLM": "zamba2",
    "RecurrentGemmaForCausalLM": "recurrent_gemma",
    "Lfm2ForCausalLM": "lfm2",
    "Lfm2MoeForCausalLM": "lfm2_moe",
    "HymbaForCausalLM": "hymba",
    "RwkvForCausalLM": "rwkv",
    "xLSTMForCausalLM": "xlstm",
    "GLAForCausalLM": "gla",
    "RetNetForCausalLM": "retnet",
    "DeltaNetForCausalLM": "delta_net",
    "GatedDeltaNetForCausalLM": "gated_deltanet",
    "GatedDeltaProductForCausalLM": "gated_deltaproduct",
    "KDAForCausalLM": "kda",
    "HGRN2ForCausalLM": "hgrn2",
    "LinearAttentionForCausalLM": "linear_attn",
    "RWKV6ForCausalLM": "rwkv6",
    "RWKV7ForCausalLM": "rwkv7",
    "SambaForCausalLM": "samba",
    "LogLinearMamba2ForCausalLM": "log_linear_mamba2",
}
"""`architectures[0]` -> `model_type`, for files without one."""


def without_type(fields: Fields) -> Family | None:
    """The reader of a file that is known by its fields and not by a type, or None."""
    return mamba_ssm if is_native(fields) else None

"""Families with recurrent layers, by `model_type` and by class."""

from __future__ import annotations

from separatrix.architecture.hf._family import Family
from separatrix.architecture.hf.nemotron_h import nemotron_h
from separatrix.architecture.hf.qwen3_next import qwen3_next
from separatrix.architecture.hf.recurrent_gemma import recurrent_gemma

FAMILIES: dict[str, Family] = {
    "qwen3_next": qwen3_next,
    "qwen3_5": qwen3_next,
    "qwen3_5_text": qwen3_next,
    "qwen3_5_moe": qwen3_next,
    "qwen3_5_moe_text": qwen3_next,
    "nemotron_h": nemotron_h,
    "recurrent_gemma": recurrent_gemma,
}
"""`model_type` -> reader."""

CLASSES = {
    "Qwen3NextForCausalLM": "qwen3_next",
    "NemotronHForCausalLM": "nemotron_h",
    "RecurrentGemmaForCausalLM": "recurrent_gemma",
}
"""`architectures[0]` -> `model_type`, for files without one."""

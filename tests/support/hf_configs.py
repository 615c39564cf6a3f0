"""Small inline config.json contents of the three families, and where the shared released files
lie.
"""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "hf_configs"

QWEN = {
    "model_type": "qwen3_next",
    "architectures": ["Qwen3NextForCausalLM"],
    "torch_dtype": "bfloat16",
    "num_hidden_layers": 8,
    "full_attention_interval": 4,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 8,
    "linear_conv_kernel_dim": 4,
    "max_position_embeddings": 1024,
    "vocab_size": 100,
}
NEMOTRON = {
    "model_type": "nemotron_h",
    "torch_dtype": "bfloat16",
    "num_hidden_layers": 6,
    "hybrid_override_pattern": "M-M*ME",
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "attention_head_dim": 32,
    "mamba_num_heads": 8,
    "mamba_head_dim": 4,
    "ssm_state_size": 16,
    "n_groups": 2,
    "conv_kernel": 4,
    "expand": 2,
    "vocab_size": 100,
}
GEMMA = {
    "model_type": "recurrent_gemma",
    "torch_dtype": "bfloat16",
    "_block_types": ["recurrent", "recurrent", "attention"],
    "num_hidden_layers": 5,
    "hidden_size": 64,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "lru_width": 48,
    "attention_window_size": 10,
    "conv1d_width": 4,
    "vocab_size": 100,
}
FAMILIES = {"qwen3_next": QWEN, "nemotron_h": NEMOTRON, "recurrent_gemma": GEMMA}

RELEASED = {
    "qwen3-next-80b": "Qwen--Qwen3-Next-80B-A3B-Thinking.json",
    "nemotron-h-8b": "nvidia--Nemotron-H-8B-Base-8K.json",
    "recurrentgemma-2b": "google--recurrentgemma-2b.json",
}


def released(file: str) -> Path:
    """A released file of the shared data folder; the test is skipped where that folder is
    absent.
    """
    path = SHARED / file
    if not path.is_file():
        pytest.skip(f"the shared file {file} is not at hand")
    return path

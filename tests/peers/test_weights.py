"""Weights as files are read, against the modules that transformers builds of the same fields, on
no device: every parameter but norms, biases and single numbers of a head.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from separatrix.stacks.architecture.hf import from_config
from separatrix.stacks.architecture.released import PRESETS

transformers = pytest.importorskip("transformers")

RELEASED = {
    name: dict(PRESETS[name]["config"])
    for name in (
        *("llama-3.1-8b", "mistral-7b-v0.1", "qwen2.5-7b", "qwen3-8b", "gemma-2-9b"),
        *("gpt-oss-20b", "qwen3-next-80b", "deepseek-v3"),
    )
}
SMALL: dict[str, dict[str, Any]] = {
    "qwen3_moe, every second layer": {
        **{"model_type": "qwen3_moe", "hidden_size": 32, "intermediate_size": 80},
        **{"num_hidden_layers": 6, "num_attention_heads": 4, "num_key_value_heads": 2},
        **{"head_dim": 8, "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 24},
        **{"decoder_sparse_step": 2, "mlp_only_layers": [3], "vocab_size": 99},
        **{"torch_dtype": "bfloat16", "use_sliding_window": False},
        **{"max_window_layers": 6, "sliding_window": None},
    },
    "deepseek_v3 without a latent of queries": {
        **{"model_type": "deepseek_v3", "hidden_size": 32, "intermediate_size": 80},
        **{"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4},
        **{"kv_lora_rank": 16, "q_lora_rank": None, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4},
        **{"v_head_dim": 6, "n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 2},
        **{"topk_group": 1, "n_shared_experts": 2, "moe_intermediate_size": 12},
        **{"first_k_dense_replace": 1, "vocab_size": 99, "torch_dtype": "float32"},
    },
    "mixtral": {
        **{"model_type": "mixtral", "hidden_size": 32, "intermediate_size": 80},
        **{"num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2},
        **{"num_local_experts": 4, "num_experts_per_tok": 2, "vocab_size": 99},
        **{"torch_dtype": "bfloat16", "sliding_window": None, "head_dim": 8},
    },
    "gemma, tied": {
        **{"model_type": "gemma", "hidden_size": 32, "intermediate_size": 80, "head_dim": 8},
        **{"num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 1},
        **{"vocab_size": 99, "torch_dtype": "bfloat16"},
    },
}


@pytest.mark.parametrize("name", [*RELEASED, *SMALL])
def test_the_weights_are_those_of_transformers(name: str) -> None:
    fields = (RELEASED | SMALL)[name]
    found = from_config(fields).weights
    assert found is not None
    config = transformers.AutoConfig.for_model(
        **{key: value for key, value in fields.items() if "dtype" not in key}
    )
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    built = sum(
        parameter.numel()
        for named, parameter in model.named_parameters()
        if parameter.ndim >= 2 and not named.endswith("bias")
    )
    assert found.total == built

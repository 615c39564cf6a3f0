"""Families of softmax attention alone (full, sliding, chunked, latent, indexed, compressed), by
`model_type` and by class.
"""

from __future__ import annotations

from separatrix.architecture.hf.families.alternating import (
    alternating,
    cwm,
    exaone,
    gemma_3n,
    llama4,
)
from separatrix.architecture.hf.families.decoders import (
    dbrx,
    decoder,
    dots1,
    falcon,
    multi_head,
    multi_query,
    undecided,
)
from separatrix.architecture.hf.families.deepseek import deepseek_v4, dsa, mla
from separatrix.architecture.hf.families.minimax_softmax import minimax_m2, minimax_m3
from separatrix.architecture.hf.families.own_heads import gemma4, mimo, smallthinker, step3
from separatrix.architecture.hf.family import Family

_BOTH = decoder(kv_heads=True, head_dim=True)
_KV_STATED = decoder(kv_heads=False, head_dim=True)
_HEAD_DIM_STATED = decoder(kv_heads=True, head_dim=False)
_STATED = decoder(kv_heads=False, head_dim=False)
_QWEN2 = decoder(kv_heads=False, head_dim=True, switched=True)
_QWEN3 = decoder(kv_heads=False, head_dim=False, switched=True)

FAMILIES: dict[str, Family] = {
    **dict.fromkeys(
        (
            "llama",
            "olmo",
            "olmo2",
            "olmoe",
            "flex_olmo",
            "cohere",
            "phi",
            "phi3",
            "granite",
            "granitemoe",
        ),
        _BOTH,
    ),
    **dict.fromkeys(
        (
            "granitemoeshared",
            "apertus",
            "arcee",
            "nanochat",
            "jais2",
            "hunyuan_v1_dense",
            "hunyuan_v1_moe",
        ),
        _BOTH,
    ),
    **dict.fromkeys(
        (
            "mistral",
            "mixtral",
            "ministral",
            "phimoe",
            "starcoder2",
            "glm4_moe",
            "stablelm",
            "bitnet",
        ),
        _KV_STATED,
    ),
    **dict.fromkeys(("ernie4_5_moe", "qwen3_vl_moe_text"), _KV_STATED),
    "seed_oss": _HEAD_DIM_STATED,
    **dict.fromkeys(
        (
            "gemma",
            "glm",
            "glm4",
            "ernie4_5",
            "helium",
            "internlm3",
            "hy_v3",
            "solar_open",
            "ministral3",
        ),
        _STATED,
    ),
    **dict.fromkeys(("nemotron", "qwen3_vl_text"), _STATED),
    **dict.fromkeys(
        ("qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"), _QWEN2
    ),
    "qwen3": _QWEN3,
    "dots1": dots1,
    **dict.fromkeys(("qwen2_moe", "qwen3_moe", "smollm3"), undecided),
    **dict.fromkeys(
        ("gpt2", "gpt_neox", "gptj", "opt", "bloom", "mpt", "codegen", "persimmon", "xglm"),
        multi_head,
    ),
    "gpt_bigcode": multi_query,
    "falcon": falcon,
    "dbrx": dbrx,
    **dict.fromkeys(("gemma2", "gpt_oss", "vaultgemma"), alternating(2)),
    **dict.fromkeys(("gemma3", "gemma3_text"), alternating(6, field="sliding_window_pattern")),
    **dict.fromkeys(("gemma3n", "gemma3n_text"), gemma_3n),
    "cohere2": alternating(4, field="sliding_window_pattern", kv_heads=True, head_dim=True),
    "olmo3": alternating(4, kv_heads=True, head_dim=True),
    **dict.fromkeys(("exaone4", "exaone_moe"), exaone),
    "afmoe": alternating(4, field="global_attn_every_n_layers", kv_heads=True),
    "cwm": cwm,
    **dict.fromkeys(("gemma4", "gemma4_text"), gemma4(gated=True)),
    **dict.fromkeys(("gemma4_unified", "gemma4_unified_text"), gemma4(gated=False)),
    **dict.fromkeys(("llama4", "llama4_text"), llama4),
    "mimo_v2_flash": mimo,
    **dict.fromkeys(("step3p5", "step3p7"), step3),
    "smallthinker": smallthinker,
    "minimax_m2": minimax_m2,
    **dict.fromkeys(("minimax_m3", "minimax_m3_vl", "minimax_m3_vl_text"), minimax_m3),
    **dict.fromkeys(
        (
            "deepseek_v2",
            "deepseek_v3",
            "kimi_k2",
            "mistral4",
            "glm4_moe_lite",
            "minicpm3",
            "axk1",
            "youtu",
        ),
        mla,
    ),
    **dict.fromkeys(("deepseek_v32", "glm_moe_dsa"), dsa),
    "deepseek_v4": deepseek_v4,
}
"""`model_type` -> reader."""

CLASSES: dict[str, str] = {
    "LlamaForCausalLM": "llama",
    "OlmoForCausalLM": "olmo",
    "Olmo2ForCausalLM": "olmo2",
    "Olmo3ForCausalLM": "olmo3",
    "OlmoeForCausalLM": "olmoe",
    "CohereForCausalLM": "cohere",
    "Cohere2ForCausalLM": "cohere2",
    "PhiForCausalLM": "phi",
    "Phi3ForCausalLM": "phi3",
    "PhimoeForCausalLM": "phimoe",
    "GraniteForCausalLM": "granite",
    "GraniteMoeForCausalLM": "granitemoe",
    "MistralForCausalLM": "mistral",
    "MixtralForCausalLM": "mixtral",
    "Starcoder2ForCausalLM": "starcoder2",
    "GlmForCausalLM": "glm",
    "Glm4ForCausalLM": "glm4",
    "Glm4MoeForCausalLM": "glm4_moe",
    "GlmMoeDsaForCausalLM": "glm_moe_dsa",
    "StableLmForCausalLM": "stablelm",
    "GemmaForCausalLM": "gemma",
    "Gemma2ForCausalLM": "gemma2",
    "Gemma3ForCausalLM": "gemma3_text",
    "Gemma3ForConditionalGeneration": "gemma3",
    "Gemma4ForCausalLM": "gemma4_text",
    "Gemma4ForConditionalGeneration": "gemma4",
    "SeedOssForCausalLM": "seed_oss",
    "Ernie4_5ForCausalLM": "ernie4_5",
    "Ernie4_5_MoeForCausalLM": "ernie4_5_moe",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen2MoeForCausalLM": "qwen2_moe",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3MoeForCausalLM": "qwen3_moe",
    "Dots1ForCausalLM": "dots1",
    "SmolLM3ForCausalLM": "smollm3",
    "GPT2LMHeadModel": "gpt2",
    "GPTNeoXForCausalLM": "gpt_neox",
    "OPTForCausalLM": "opt",
    "BloomForCausalLM": "bloom",
    "FalconForCausalLM": "falcon",
    "DbrxForCausalLM": "dbrx",
    "GptOssForCausalLM": "gpt_oss",
    "Exaone4ForCausalLM": "exaone4",
    "Llama4ForCausalLM": "llama4_text",
    "Llama4ForConditionalGeneration": "llama4",
    "MiMoV2FlashForCausalLM": "mimo_v2_flash",
    "Step3p5ForCausalLM": "step3p5",
    "Step3p7FlashForCausalLM": "step3p7",
    "SmallThinkerForCausalLM": "smallthinker",
    "MiniMaxM2ForCausalLM": "minimax_m2",
    "MiniMaxM3ForCausalLM": "minimax_m3",
    "DeepseekV2ForCausalLM": "deepseek_v2",
    "DeepseekV3ForCausalLM": "deepseek_v3",
    "DeepseekV32ForCausalLM": "deepseek_v32",
    "DeepseekV4ForCausalLM": "deepseek_v4",
}
"""`architectures[0]` -> `model_type`, for files without one."""

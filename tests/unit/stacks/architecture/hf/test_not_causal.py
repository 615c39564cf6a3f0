"""Models that do not read left to right are refused, with the reason."""

from __future__ import annotations

from typing import Any

import pytest
from support.each import each
from support.hf_attention_configs import GEMMA3, LLAMA

from separatrix.core.errors import ConfigError
from separatrix.stacks.architecture.hf import from_config

BERT = {
    "model_type": "bert",
    "architectures": ["BertForMaskedLM"],
    "hidden_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 6,
    "vocab_size": 100,
    "torch_dtype": "float32",
}
CLIP = {
    "model_type": "clip",
    "text_config": {**LLAMA, "model_type": "clip_text_model"},
    "vision_config": {"model_type": "clip_vision_model"},
}
T5 = {
    "model_type": "t5",
    "is_encoder_decoder": True,
    "d_model": 512,
    "num_layers": 6,
    "num_heads": 8,
}
DREAM = {**LLAMA, "model_type": "Dream", "architectures": ["DreamModel"], "mask_token_id": 99}
LLADA = {
    **LLAMA,
    "model_type": "llada",
    "architectures": ["LLaDAModelLM"],
    "block_type": "llama",
}
NO = [
    (BERT, "the whole text"),
    (BERT | {"model_type": "modernbert"}, "the whole text"),
    (CLIP, "input than text"),
    (CLIP | {"text_config": None, **LLAMA, "model_type": "siglip_vision_model"}, "another kind"),
    (T5, "an encoder-decoder"),
    (T5 | {"is_encoder_decoder": None}, "an encoder-decoder"),
    (LLAMA | {"is_encoder_decoder": True}, "an encoder-decoder"),
    (LLAMA | {"model_type": "x", "encoder_layers": 6, "decoder_layers": 6}, "an encoder-decoder"),
    (LLAMA | {"model_type": "whisper"}, "an encoder-decoder"),
    (DREAM, "a diffusion model"),
    (LLADA, "a diffusion model"),
    (LLAMA | {"architectures": ["DiffuLLaMADiffusionModel"]}, "a diffusion model"),
    (LLAMA | {"is_causal": False}, "'is_causal'"),
    (LLAMA | {"causal": False}, "'causal' is false"),
    (LLAMA | {"model_type": "x", "prefix_lm": True}, "'prefix_lm' is True"),
    (LLAMA | {"bidirectional": True}, "'bidirectional' is True"),
    (GEMMA3 | {"use_bidirectional_attention": True}, "'use_bidirectional_attention' is True"),
    (GEMMA3 | {"use_bidirectional_attention": "all"}, "'use_bidirectional_attention' is 'all'"),
    (LLAMA | {"model_type": "llama_bidirec"}, "an encoder"),
    (LLAMA | {"architectures": ["LlamaBidirectionalModel"]}, "the whole text"),
    (LLAMA | {"model_type": "cpmant"}, "a prefix LM"),
    # NV-Embed, and encoders that no list names
    (LLAMA | {"model_type": "bidir_mistral"}, "an encoder"),
    (LLAMA | {"model_type": "ltgbert"}, "an encoder"),
    (LLAMA | {"architectures": ["StableDiffcoderForCausalLM"]}, "a diffusion model"),
    # switches written as texts and numbers
    (LLAMA | {"is_causal": "False"}, "'is_causal' is false"),
    (LLAMA | {"is_causal": 0}, "'is_causal' is false"),
    (LLAMA | {"is_encoder_decoder": "true"}, "an encoder-decoder"),
    (GEMMA3 | {"use_bidirectional_attention": 1}, "'use_bidirectional_attention' is 1"),
    (LLAMA | {"attn_type": "bi"}, "'attn_type' is 'bi'"),
    (LLAMA | {"model_type": "x", "attn_config": {"prefix_lm": True}}, "'prefix_lm' is True"),
    (LLAMA | {"model_type": "x", "attn_cfg": {"causal": False}}, "'causal' is false"),
]


@each("config, reason", NO)
def test_what_does_not_read_left_to_right_is_refused_with_the_reason(
    config: dict[str, Any], reason: str
) -> None:
    for around in (config, {"model_type": "some_vl", "text_config": config}):
        with pytest.raises(ConfigError) as caught:
            from_config(around, "file")
        assert reason in str(caught.value)
        assert "left to right" in str(caught.value)


def test_what_reads_left_to_right_is_read() -> None:
    plain = from_config(LLAMA)
    for field in (
        *({"is_causal": True}, {"is_decoder": False}, {"is_encoder_decoder": False}),
        *({"use_bidirectional_attention": False}, {"add_cross_attention": False}),
        *({"is_causal": "true"}, {"bidirectional": "false"}, {"causal": 1}),
        *({"prefix_lm": False}, {"architectures": ["LlamaForCausalLM"]}),
        # of eyes and ears, which see all of an image
        *({"vision_config": {"is_causal": False}}, {"audio_config": {"prefix_lm": True}}),
    ):
        assert from_config(LLAMA | field) == plain
    seeing = from_config(GEMMA3 | {"use_bidirectional_attention": "vision"})
    assert seeing == from_config(GEMMA3)

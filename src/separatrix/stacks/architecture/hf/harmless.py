"""Fields of config.json files that are known to change nothing of what is read: neither which
layers there are, nor what they keep, nor what they see.

Only fields whose names speak of such things need a line here. What is harmless in one family alone
is said by its reader (`Fields.harmless`).
"""

from __future__ import annotations

import re

_ATTENTION = (
    *("attention_bias", "attn_bias", "attention_out_bias", "attention_in_bias", "use_qkv_bias"),
    *("qkv_bias", "attention_dropout", "attn_dropout", "attn_pdrop", "attention_dropout_prob"),
    *("attention_multiplier", "attention_scale", "attn_scale", "attention_scaling", "scale_attn"),
    *("attn_temperature_tuning", "query_pre_attn_scalar", "key_multiplier", "softmax_scale"),
    *("attention_in_multiplier", "attention_out_multiplier", "attention_value_scale"),
    *("use_qk_norm", "qk_norm", "qk_layernorm", "qk_layer_norms", "qk_norm_type", "qk_ln"),
    *("use_qk_layernorm", "qk_norm_before_rope", "clip_qkv", "use_query_key_norm"),
    "query_key_norm",
    *("attn_output_gate", "attention_output_gate", "use_output_gate", "mla_use_output_gate"),
    *("use_attn_gate", "use_head_wise_attn_gate", "head_wise_attn_gate", "attention_gate"),
    *("attn_implementation", "_attn_implementation", "attn_impl", "use_flash_attn", "flash_attn"),
    *("_attn_implementation_autoset", "_attn_implementation_internal", "use_flash_attention"),
    *("use_flash_attention_2", "_flash_attn_2_enabled", "use_flash_attn_2", "use_sdpa_attention"),
    *("use_memory_efficient_attention", "memory_efficient_attention", "softmax_in_fp32"),
    *("attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "reorder_and_upcast_attn"),
    *("apply_query_key_layer_scaling", "scale_attn_weights", "scale_attn_by_inverse_layer_idx"),
    *("attn_uses_sequence_id", "parallel_attn", "output_attentions", "q_lora_rank", "qk_head_dim"),
    *("o_lora_rank", "o_groups", "fuse_qkv", "fused_qkv", "qkv_proj_bias", "o_proj_bias"),
    *("rope_interleave", "indexer_rope_interleave", "attention_probs_dropout_prob"),
    *("add_swa_attention_sink_bias", "add_full_attention_sink_bias", "learnable_sink_init"),
    *("attention_sink_bias", "attention_projection_layout", "v_lora_rank", "head_norm_eps"),
    *("attn_softcap", "attn_logit_softcapping", "attn_logit_softcap", "attention_type_id"),
    *("use_logn_attn", "attn_output_multiplier", "parallel_attn_mlp_res", "attn_output_bias"),
    *("attention_o_bias", "attention_qkv_bias", "attn_qkv_bias", "attn_out_bias"),
    *("add_qkv_bias", "skip_bias_add_qkv", "masked_softmax_fusion", "max_attn_value"),
    *("rope_interleaved", "rope_traditional", "use_mrope", "pad_key_length"),
)
"""What happens inside a head, and changes neither what is kept nor what is seen."""
_ELSEWHERE = (
    *("use_cache", "output_hidden_states", "cache_implementation", "is_decoder"),
    *("use_bidirectional_attention", "is_causal", "causal", "prefix_lm", "bidirectional"),
    *("is_encoder_decoder", "cross_attention_hidden_size", "tie_encoder_decoder"),
    *("head_bias", "chunk_size_feed_forward", "pruned_heads", "layer_norm_epsilon"),
    *("gradient_checkpointing", "use_reentrant", "max_window_length", "use_mamba_kernels"),
    *("use_mambapy", "mamba_chunk_size", "chunk_size", "mamba_proj_bias", "mamba_conv_bias"),
    *("mamba_rms_norm", "mamba_norm_before_gate", "mamba_hidden_act", "hidden_mamba_act"),
    *("mamba_dt_rank", "time_step_rank", "use_conv_bias", "conv_bias", "mamba_inner_layernorms"),
    *("ssm_in_multiplier", "ssm_out_multiplier", "ssm_multipliers"),
    *("scan_layers", "unroll_layers", "residual_in_fp32", "use_bfloat16", "dim_model_base"),
    *("image_token_index", "video_token_index", "audio_token_index", "boi_token_index"),
    *("eoi_token_index", "pad_vocab_size_multiple", "use_shared_expert_gate"),
    *("gated_norm_rank", "use_full_rank_gate", "gate_low_rank_dim", "n_group", "topk_group"),
    *("topk_group", "num_expert_group", "num_expert_groups", "expert_group_num"),
    *("decoder_sparse_step", "mlp_layer_types", "mlp_only_layers", "first_k_dense_replace"),
    *("num_dense_layers", "n_dense_layers", "num_hash_layers", "activation_sparsity_pattern"),
    *("layer_scale", "scale_depth", "depth_scale", "num_logits_to_keep", "rescale_every"),
    *("dense_intermediate_size", "shared_intermediate_size", "hc_sinkhorn_iters", "floor_scale"),
    *("freeze_text_layers", "freeze_lm_head", "freeze_vision_layers", "model_parallel_size"),
    *("no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "repetition_penalty"),
    *("interleave_moe_layer_step", "shared_expert_sink", "hidden_size_per_layer_input"),
    *("vocab_size_per_layer_input", "laurel_rank", "expand_ratio_mlp", "n_ctx", "n_inner"),
    *("num_nextn_predict_layers", "num_mtp_layers", "num_mtp_modules", "mtp_num_hidden_layers"),
    *("mtp_layers_block_type", "mtp_hidden_states_first", "mtp_use_dedicated_embeddings"),
    *("mtp_hybrid_override_pattern", "num_ngrams", "enable_moe_block", "initial_context_length"),
    *("block_auto_adjust_ff_dim", "block_ffn_dim_multiplier", "block_multiple_of", "block_dim"),
    *("block_ff_dim", "block_mlp_init_scale", "block_norm_eps", "block_out_init_scale"),
    *("block_use_swiglu", "block_use_xavier_init", "conv_use_xavier_init", "use_pos_enc"),
    *("attention_layer_norm", "fused_mlp_checkpoint_lvl", "num_codebooks", "_layer_norm"),
    # head of the vocabulary, padding of prompts, what frameworks write beside a model
    *("norm_head", "prefix", "skip_bias_add", "use_unified_vision_chunk", "num_reward_heads"),
    *("share_embedding", "use_embedding_sharing", "use_parallel_embedding", "top_k"),
    *("query_num", "pos_skipping_range"),
    *("use_parallel_block", "num_ln_in_parallel_attn", "offset_alibi"),
    *("ignore_index", "ignored_index", "weight_share_add_bias", "fuse_rope"),
    *("use_sparse_head_and_loss_fn", "use_recompute_attn"),
    *("share_expert_dim",),
    *("share_expert_dims", "use_grouped_topk", "early_stopping"),
    *("activation_situ_linear_beta", "output_scores"),
    *("remove_invalid_values", "num_return_sequences", "length_penalty", "diversity_penalty"),
    *("begin_suppress_tokens", "suppress_tokens", "num_beam_groups", "return_dict"),
    *("rescale_prenorm_residual", "use_parallel_residual", "parallel_residual", "shared_kernel"),
)
AROUND = frozenset(
    (
        *("downsample_factor", "downsample_mode", "downsample_ratio", "out_hidden_size"),
        *("select_layer", "insert_layer_id", "num_channels", "num_query_tokens"),
        *("seconds_per_chunk", "acoustic_tokenizer_chunk_size"),
        *("spatial_pool_mode", "spatial_pool_stride", "spatial_target_layers", "num_image_tokens"),
        *("spatial_merge_size", "merge_kernel_size", "merged_hidden_size", "merger_times"),
        *("use_decoder_only_language_model", "max_value_projector_patch_to_query_dict"),
    )
)
"""Of encoders of other input, harmless around the language model and nowhere else."""
_SILENT = (
    *("hidden_size", "hc_mult", "context_length", "max_length", "max_seq_len", "model_max_length"),
    *("n_positions", "scale_emb", "time_step_limit", "word_embed_proj_dim", "expansion_ratio"),
    *("min_length", "seed", "d_ff", "dff", "dim_ff", "max_seq_length", "seq_length"),
    "hidden_ratio",
    *("gate_logit_normalizer", "n_inner", "pretraining_tp", "ep_size", "tp_size", "pp_size"),
    *("architectures", "tokenizer_class", "transformers_version", "model_version", "languages"),
    "bad_words_ids",
    *("auto_class", "keys_to_ignore_at_inference", "problem_type", "finetuning_task", "tags"),
    *("license", "torchscript", "max_sequence_length", "d_embed", "embed_dim"),
    "ff_intermediate_size",
    *("rescale_layer", "mup_width_multiplier", "mup_base_width", "logits_scaling", "num_labels"),
)
"""Names that speak of nothing here: listed so that no note is made of them."""
HARMLESS = frozenset((*_ATTENTION, *_ELSEWHERE, *_SILENT))

WHOLE = frozenset(
    (
        *("text_config", "llm_config", "language_config", "thinker_config"),
        *("rope_scaling", "rope_parameters", "auto_map", "id2label", "label2id", "ffn_config"),
        *("task_specific_params", "quantization_config", "generation_config", "vq_config"),
        *("vision_config", "audio_config", "image_config", "video_config", "speech_config"),
        *("visual", "vision_tower_config", "high_res_vision_config", "speech_encoder_config"),
        *("projector_config", "adaptor_config"),
        *("vision_cfg", "audio_encoder_config", "vit_config", "sam_config", "model_args"),
        *("embd_layer", "img_processor", "audio_processor", "speech_lora", "vision_lora"),
        *("visual_tokenizer_config", "vision_tower_cfg", "sound_tower_cfg"),
        *("img_token_compression_config", "code2wav_config", "transformers.js_config"),
        *("init_config", "mlp_config", "moe_config", "transformers_weights", "quantization"),
        *("depth_decoder_config", "perceiver_config", "talker_config", "code_predictor_config"),
        *("vision_encoder_config", "audio_tower_config", "qformer_config", "codec_config"),
        *("token2wav_config", "tts_config", "audio_tokenizer_config", "decoder_start_config"),
        *("vision_tokenizer_config", "semantic_tokenizer_config", "diffusion_head_config"),
        *("acoustic_tokenizer_config", "compression_config", "dit_config", "layer_scale_config"),
    )
)
"""Objects that say nothing of the language model's layers, or are read elsewhere."""

_STRONG = re.compile(
    r"attn|attention|head|kv|key_|_key|quer|window|cache|causal|direction|loop|cycle|recur|pass"
    r"|mask|memor|encoder|decoder|sparse|chunk|prefix|reuse|share_|repeat|hybrid|state|conv|pattern"
)
"""What is never harmless because of the rest of its name."""
_USUAL = re.compile(
    r"(^|_)(dropout|drop_prob|pdrop|layerdrop|norm_eps|norm_epsilon|layernorm|layer_norm|layernorms"
    r"|rms_norm|token_id|token_ids|initializer_range|init_std|lm_head"
    r"|freeze_.*|aux_loss.*|token_index|cross_entropy|attn_implementation)($|_)"
)
"""Harmless whatever else the name speaks of: dropout, norms, ids of tokens, initial weights."""
_POSITIONWISE = re.compile(
    r"(^|_)(moe|mlp|mlps|ffn|experts?|router|routed|routing|intermediate|vocab|embeddings?|act|gelu"
    r"|feed_forward|topk_method|topk_prob|labels?|loss|init|initializer|noise|coef|eps|epsilon"
    r"|position_embeddings|projector|image|vision|video|audio|speech|mm|altup|ple|mtp|ngram)($|_)"
)
"""Harmless where nothing strong stands beside it: MLPs, experts, embeddings, other input."""
_MODES = re.compile(r"^(vision|image|video|audio|speech|mm|vit|projector|visual|img|codec)_")
"""Of encoders of other modes of input, whatever else the name speaks of."""


def harmless(name: str) -> bool:
    """Whether a field of that name, in a file of any family, is known to be harmless."""
    low = name.lower()
    return (
        low in HARMLESS
        or _USUAL.search(low) is not None
        or _MODES.search(low) is not None
        or (_STRONG.search(low) is None and _POSITIONWISE.search(low) is not None)
    )

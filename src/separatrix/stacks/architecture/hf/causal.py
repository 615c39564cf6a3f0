"""Models that do not read left to right: encoders, encoder-decoders, prefix LMs, diffusion LMs.

Nothing here is judged of them: what a token knows of the ones after it changes every theorem. The
model types are those of transformers 5.17 that it lists for masked tokens, images or sound alone,
or as encoder-decoders.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from separatrix.core.errors import ConfigError
from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.stacks.architecture.hf.fields import Fields, shown

_ENCODERS = frozenset(
    (
        *("albert", "bert", "big_bird", "camembert", "convbert", "data2vec-text", "deberta"),
        *("deberta-v2", "distilbert", "electra", "ernie", "ernie_m", "esm", "esmc", "eurobert"),
        *("flaubert", "fnet", "funnel", "ibert", "jina_embeddings_v3", "layoutlm", "layoutlmv2"),
        *("layoutlmv3", "lilt", "longformer", "luke", "markuplm", "megatron-bert", "mobilebert"),
        *("modernbert", "modernvbert", "mpnet", "mra", "neomme", "neobert", "new", "nezha"),
        *("nomic_bert", "nystromformer", "openai_privacy_filter", "perceiver", "qdqbert"),
        *("rembert", "roberta", "roberta-prelayernorm", "roc_bert", "roformer", "splinter"),
        *("squeezebert", "tapas", "visual_bert", "xlm", "xlm-roberta", "xlm-roberta-xl", "xmod"),
        *("yoso", "canine", "gte", "llama_bidirec", "mistral_bidirec", "gemma_bidirec"),
    )
)
"""Model types that see the whole text, unless the file says `is_decoder: true`."""
_ENCODER_DECODERS = frozenset(
    (
        *("bart", "bigbird_pegasus", "blenderbot", "blenderbot-small", "canary", "cohere_asr"),
        *("dia", "encoder-decoder", "florence2", "fsmt", "led", "longt5", "m2m_100", "marian"),
        *("mbart", "moonshine", "moonshine_streaming", "mt5", "musicgen", "musicgen_melody"),
        *("mvp", "nllb-moe", "pegasus", "pegasus_x", "pix2struct", "plbart", "pop2piano"),
        *("pp_formulanet", "prophetnet", "rag", "seamless_m4t", "seamless_m4t_v2"),
        *("speech-encoder-decoder", "speech_to_text", "speecht5", "switch_transformers", "t5"),
        *("t5gemma", "t5gemma2", "udop", "umt5", "vision-encoder-decoder", "whisper", "nougat"),
        *("xlm-prophetnet", "t5_gemma_module", "t5gemma2_decoder", "t5gemma2_encoder", "byt5"),
        *("canary_decoder", "dia_decoder", "dia_encoder", "trocr", "t5gemma2_text", "donut"),
    )
)
_PREFIX = frozenset(("cpmant", "gpt_cpm", "glm-130b", "unilm"))
"""Model types whose prompt is seen whole, and read left to right from its end on."""
_OTHER_INPUT = re.compile(
    r"(^|[_-])(vision|visual|image|audio|speech|encoder|ctc|asr_streaming_encoder)([_-]|$)"
    r"|clip|siglip|^(vit|deit|beit|dinov|dpt|detr|yolos|swin|sam[23]?$|sam_|wav2vec|hubert|wavlm)"
    r"|convnext|segformer|timesfm|patchts|lightglue|superpoint|resnet|timm|^(align|owlv|mimi|encodec)"
    r"|^(aimv2|hiera|ijepa|vjepa|videomae|vivit|timesformer|unispeech|sew|data2vec|dac)"
)
"""Encoders of images, sound and series."""
_DIFFUSION = re.compile(
    r"diffusion|llada|dream|sdar|(^|[_-])dlm|mdlm|bd3|sedd|block_diff|fast_?dllm|dllm|plaid|trado"
    r"|dcoder|diffcoder|diffu|sdlm|dflash|^a2d|lladamoe|wedlm|rnd1|mmada|tess",
    re.IGNORECASE,
)
_CLASSES = re.compile(
    r"ForMasked|Bidirec|BiModel|ForCTC|VisionModel|VisionTransformer|MaskGen|EncoderModel"
    r"|TextEncoding|EncoderDecoder"
)
_FALSE = re.compile(r"(^|_)(is_)?caus(al|ality)(_|$)|unidirectional|autoregressive|left_to_right")
_TRUE = re.compile(r"bidir|bi_direction|non_?causal|prefix_?lm|encoder_only|is_encoder$|is_mdlm")
_WHOLE_TEXT = re.compile(r"bidir|(^|[_-])bert|bert$|_bi$|sentence_?transformer", re.IGNORECASE)
"""Model types whose name says that they see the whole text."""
_ANY_ORDER = "a diffusion model, which fills in tokens in any order"
_REMEDY = "only models that read left to right are judged"


def refuse_not_causal(fields: Fields, levels: Sequence[Mapping[Any, Any]]) -> None:
    """Raises ConfigError, with the reason, for a model that does not read left to right. `levels`
    are the objects of the file that describe it, outermost first.
    """
    for level in levels:
        reason = _by_flags(fields, level) or _by_type(level)
        if reason is not None:
            raise _error(fields, reason)


def _by_type(level: Mapping[Any, Any]) -> str | None:
    listed = json_list(level.get("architectures")) or []
    classes = [name for name in listed if isinstance(name, str)]
    kind = level.get("model_type")
    if isinstance(kind, str):
        said = f"'model_type' is {shown(kind)}"
        if _DIFFUSION.search(kind):
            return f"{said}, {_ANY_ORDER}"
        if kind in _PREFIX:
            return f"{said}, a prefix LM, whose prompt sees the tokens after it"
        if kind in _ENCODER_DECODERS:
            return f"{said}, an encoder-decoder"
        whole = kind in _ENCODERS or _WHOLE_TEXT.search(kind) is not None
        if whole and level.get("is_decoder") is not True:
            return f"{said}, an encoder, which sees the whole text ('is_decoder' is not true)"
        if _OTHER_INPUT.search(kind) and not _holds_text(level):
            return f"{said}, an encoder of another kind of input than text"
    for name in classes:
        if _DIFFUSION.search(name):
            return f"'architectures' is {shown(name)}, {_ANY_ORDER}"
        if _CLASSES.search(name):
            return f"'architectures' is {shown(name)}, which sees the whole text"
    return None


def _holds_text(level: Mapping[Any, Any]) -> bool:
    """Whether a language model is nested in it, or it is one with eyes and ears."""
    kind = str(level.get("model_type"))
    # CLIP and its kin hold a text encoder
    if _CONTRASTIVE.search(kind):
        return False
    inside = any(json_object(level.get(name)) is not None for name in _NESTED)
    return inside or (level.get("vocab_size") is not None and "encoder" not in kind)


def _by_flags(fields: Fields, level: Mapping[Any, Any]) -> str | None:
    if _switch(level.get("is_encoder_decoder")) is True:
        return "'is_encoder_decoder' is true: an encoder-decoder"
    both = all(any(name in level for name in names) for names in _BOTH)
    if both and level.get("is_encoder_decoder") is not False:
        return "its fields size an encoder and a decoder: an encoder-decoder"
    for key, value in level.items():
        name = str(key)
        low = name.lower()
        if _switch(value) is False and _FALSE.search(low):
            return f"'{name[:60]}' is false: its tokens see the ones after them"
        if low == "use_bidirectional_attention" and value == "vision":
            continue
        named = isinstance(value, str) and value != "" and _switch(value) is None
        if _TRUE.search(low) and (_switch(value) is True or named):
            return f"'{name[:60]}' is {shown(value)}: its tokens see the ones after them"
        if low in ("attn_type", "attention_type") and value in ("bi", "bidirectional", "full_bi"):
            return f"'{name}' is {shown(value)}: its tokens see the ones after them"
        inner = json_object(value) if low in _INNER else None
        if inner is not None:
            found = _by_flags(fields, inner)
            if found is not None:
                return found
    return None


def _switch(value: Any) -> bool | None:
    """What a switch says that may be written as a text or a number; None where it is no switch."""
    if isinstance(value, str):
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(
            value.strip().lower()
        )
    return bool(value) if type(value) in (bool, int, float) and value in (0, 1) else None


_CONTRASTIVE = re.compile(r"clip|siglip|align|owl|flava|clap|groupvit")
_NESTED = ("text_config", "llm_config", "language_config", "thinker_config", "decoder_config")
_INNER = ("attn_config", "attn_cfg", "attn", "attention_config", "model_args", "transformer_config")
_BOTH = (
    ("encoder_layers", "num_encoder_layers", "encoder_attention_heads", "encoder_config"),
    ("decoder_layers", "num_decoder_layers", "decoder_attention_heads", "decoder_config"),
)


def _error(fields: Fields, reason: str) -> ConfigError:
    return fields.error(f"{reason}; {_REMEDY}")

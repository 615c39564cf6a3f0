"""BERT and its kin where `is_decoder` makes them read left to right, and other older decoders with
as many key as query heads in transformers' usual spelling.
"""

from __future__ import annotations

from separatrix.architecture.hf.draft import Reading
from separatrix.architecture.hf.families.decoders import older
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields

_HARMLESS = (
    *("decoder_start_token_id", "embedding_size", "rotary_value", "use_rms_norm"),
    # GPT-J's class rotates, whatever it says
    "rotary",
)


def encoder_as_decoder(fields: Fields) -> Reading:
    """Full attention, one key head for every query head."""
    fields.harmless(*_HARMLESS)
    return older(fields, None)


FAMILIES: dict[str, Family] = dict.fromkeys(
    (
        *("bert", "bert-generation", "camembert", "data2vec-text", "electra", "ernie"),
        *("megatron-bert", "rembert", "roberta", "roberta-prelayernorm", "roc_bert", "roformer"),
        *("xlm-roberta", "xlm-roberta-xl", "xmod", "biogpt", "gpt_neox_japanese", "git", "ctrl"),
        *("openai-gpt", "gptj"),
    ),
    encoder_as_decoder,
)
CLASSES: dict[str, str] = {
    "BioGptForCausalLM": "biogpt",
    "CTRLLMHeadModel": "ctrl",
    "GPTNeoXJapaneseForCausalLM": "gpt_neox_japanese",
}

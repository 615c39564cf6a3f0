"""Llama 3.2 Vision: decoder layers with, between them, layers that read the image alone."""

from __future__ import annotations

from separatrix.architecture.hf.attention import full_attention, head_dim_or_quotient
from separatrix.architecture.hf.draft import Draft, Reading
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields
from separatrix.architecture.hf.lists import indices
from separatrix.architecture.hf.stack import attention_reading
from separatrix.mechanisms import PositionWise

_IMAGE = (
    "layers in 'cross_attention_layers' read the image and no text: they are counted as layers"
    " without token mixing, and the image's keys and values, the same for every token, are not"
    " counted"
)


def mllama(fields: Fields) -> Reading:
    """Full attention, but for the layers in `cross_attention_layers`, numbered from 0."""
    fields.refuse_recurrent_looks()
    layers = fields.layers()
    if not fields.has("cross_attention_layers"):
        raise fields.error(
            "'cross_attention_layers' is missing, so which layers read the image is unknown; add it"
        )
    image = set(indices(fields, "cross_attention_layers", layers, base=0))
    full = full_attention(fields, head_dim=head_dim_or_quotient(fields))
    apart = Draft(PositionWise, {"format": fields.model_format()})
    return attention_reading(
        fields,
        [apart if i in image else full for i in range(layers)],
        [_IMAGE],
        but=("cross_attention_layers",),
    )


FAMILIES: dict[str, Family] = {
    "mllama": mllama,
    "mllama_text_model": mllama,
}
CLASSES: dict[str, str] = {
    "MllamaForConditionalGeneration": "mllama",
    "MllamaForCausalLM": "mllama_text_model",
}

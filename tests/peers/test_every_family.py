"""Every causal family of the installed transformers, tiny and with random weights: the numbers in
its real cache against what is printed of the config.json that it saves.

Each model reads a prompt 64 and 128 tokens longer than its window. Where counts differ by more
than the listed differences of implementation, one of the two is wrong.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from support.real_caches import carried  # noqa: E402
from support.tiny_configs import VOCABULARY, WINDOW, tiny  # noqa: E402
from transformers.models.auto import modeling_auto  # noqa: E402

from separatrix.core.errors import ConfigError  # noqa: E402
from separatrix.stacks.architecture.hf import from_config  # noqa: E402
from separatrix.stacks.mechanisms import Mechanism  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"
)
AUTO: dict[str, Any] = {
    **dict.fromkeys(
        modeling_auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES, transformers.AutoModelForMultimodalLM
    ),
    **dict.fromkeys(
        modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
        transformers.AutoModelForImageTextToText,
    ),
    **dict.fromkeys(
        modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, transformers.AutoModelForCausalLM
    ),
}
"""Model type -> what builds it."""
LENGTHS = (WINDOW + 64, WINDOW + 128)

ONE_COLUMN_MORE = frozenset(
    (
        *("bamba", "falcon_h1", "falcon_mamba", "granitemoehybrid", "jamba", "kimi_linear"),
        *("lfm2_moe", "mamba", "mamba2", "minicpmv4_6", "nemotron_h", "olmo_hybrid", "qwen3_5"),
        *("qwen3_5_moe", "qwen3_5_moe_text", "qwen3_5_text", "qwen3_next", "zamba", "zamba2"),
    )
)
"""Short convolutions keep K columns in transformers: the oldest is shifted out before it is used,
so K - 1 are enough, and are what is printed.
"""
ALL_KEPT = frozenset(("gpt_neo",))
"""Keys and values of all tokens stay in transformers' cache, and a mask hides those before the
window; what is printed is what later tokens can see.
"""
EXPANDED = frozenset(("axk2", "deepseek_v32", "glm_moe_dsa", "hy_v4"))
"""Transformers caches the keys and values of all heads that come from an indexed latent; what is
printed is the latent itself, as in the released code and vLLM.
"""
TOGETHER = frozenset(("rwkv",))
"""Caches that are no list of layers: one tensor for each number of all layers."""
NO_CACHE = frozenset(("openai-gpt",))
"""Classes that carry nothing and read the whole prompt again for every token."""
REFUSED: dict[str, str] = {
    **dict.fromkeys(
        (
            *("bart", "bigbird_pegasus", "blenderbot", "blenderbot-small", "florence2", "marian"),
            *("mbart", "mvp", "pegasus", "plbart", "prophetnet", "trocr", "whisper"),
        ),
        "an encoder-decoder",
    ),
    **dict.fromkeys(("paligemma", "xlm", "xlnet"), "its tokens see the ones after them"),
    "cpmant": "a prefix LM",
    "glm5_next": "by pools of 'index_kpool' keys",
    "inkling_text": "over tokens, and keep the inputs of each",
    "zaya": "keep the inputs of these",
    **dict.fromkeys(("qwen4_exp", "qwen4_exp_text"), "an indexer chooses"),
    "big_bird": "'attention_type' is 'block_sparse'",
    "diffllama": "one softmax from another",
    "doge": "'keep_window_size'",
}
"""Families that are not read, and the words of the reason."""
NOT_RUN: dict[str, str] = {
    # need an image, sound or the text of an encoder
    **dict.fromkeys(("blip", "blip-2", "instructblip", "instructblipvideo", "pi0"), "TypeError"),
    **dict.fromkeys(("idefics", "kosmos-2", "pix2struct", "pp_formulanet"), "ValueError"),
    **dict.fromkeys(("t5gemma2", "udop", "voxtral_realtime"), "ValueError"),
    # several models in one, of which the language model has no forward of its own
    "qwen2_5_omni": "TypeError",
    # a library for images is not installed
    **dict.fromkeys(("fast_vlm", "gemma3n", "perception_lm"), "ImportError"),
    # no defaults for one of their parts
    **dict.fromkeys(("musicgen", "musicgen_melody"), "StrictDataclassFieldValidationError"),
    **dict.fromkeys(("diffusion_gemma", "evolla", "vision-encoder-decoder"), "ValueError"),
    **dict.fromkeys(("gemma4_assistant", "gemma4_unified_assistant"), "AttributeError"),
    **dict.fromkeys(("granite4_vision", "qwen3_omni_moe"), "AttributeError"),
    # sizes that the rules do not make go together
    "kyutai_speech_to_text": "ValueError",
    "reformer": "IndexError",
    # its cache asks for a field that its class does not have
    "blt": "AttributeError",
}
"""Families that cannot be built or run on text alone, and the error that says so."""
TOO_LARGE = frozenset(("inkling_mm_model", "vibevoice_asr"))
"""Not built: an embedding of images of 24 GB, and ears that take half a minute."""


COUNTS = (207, 25, 28, 262)
"""Families compared, refused, not run, and all."""


def _real(kind: str, folder: Path) -> tuple[list[dict[int | None, int]], dict[str, Any]]:
    """Numbers carried per layer at both lengths, and the config.json that the model saves."""
    torch.manual_seed(0)
    model = AUTO[kind].from_config(tiny(kind)).eval()
    found = []
    for length in LENGTHS:
        ids = torch.randint(4, VOCABULARY - 4, (1, length))
        found.append(dict(carried(model, ids)))
    model.config.save_pretrained(folder)
    return found, json.loads((folder / "config.json").read_text())


def _printed(kind: str, part: Mechanism, t: int) -> int:
    """Numbers of one mechanism after t tokens, the listed differences applied."""
    total = 0
    for item in part.cache(t):
        numbers = item.bits.numbers
        if item.kind == "convolution" and kind in ONE_COLUMN_MORE:
            conv = part.sizes()["conv"]
            numbers = numbers // (conv - 1) * conv
        elif item.kind == "kv" and kind in EXPANDED:
            sizes = part.sizes()
            one = sizes["head_dim"] + sizes["rope_dim"] + sizes["value_dim"]
            numbers = t * (sizes["heads"] * one + sizes.get("index_dim", 0))
        elif item.kind == "window":
            numbers = _window(kind, part, t, numbers)
        total += numbers
    return total


def _window(kind: str, part: Mechanism, t: int, numbers: int) -> int:
    """A window drops the token that the next query no longer sees, so that one less is kept."""
    size = part.sizes()["size"]
    if kind in ALL_KEPT:
        return numbers // size * t
    if part.name != "compressed":
        return numbers // size * (size - 1)
    # tokens that wait for their entry are counted at their most; here they are what they are
    sizes = part.sizes()
    waiting = t % sizes["ratio"]
    width = sizes["head_dim"] + sizes["index_dim"]
    back = sizes["ratio"] if sizes["overlap"] else 0
    wide = 2 if sizes["overlap"] else 1
    return (size - 1) * sizes["head_dim"] + 2 * width * (waiting * wide + back)


def counted(kind: str, fields: dict[str, Any], t: int) -> list[int]:
    """Numbers of every layer after t tokens, by the file."""
    layers = from_config(fields, kind).layers
    return [sum(_printed(kind, part, t) for part in layer) for layer in layers]


@pytest.mark.parametrize("kind", sorted(set(AUTO) - set(REFUSED) - set(NOT_RUN) - TOO_LARGE))
def test_what_is_printed_is_what_is_carried(kind: str, tmp_path: Path) -> None:
    real, fields = _real(kind, tmp_path)
    for t, found in zip(LENGTHS, real, strict=True):
        ours = counted(kind, fields, t)
        theirs = [found.get(i, 0) for i in range(len(ours))]
        if kind in TOGETHER:
            assert sum(ours) == sum(found.values())
        elif kind in NO_CACHE:
            assert not any(found.values())
        else:
            assert ours == theirs
            assert sum(found.values()) == sum(theirs)


@pytest.mark.parametrize("kind", sorted(REFUSED))
def test_what_is_not_read_is_refused(kind: str, tmp_path: Path) -> None:
    real, fields = _real(kind, tmp_path)
    assert real
    with pytest.raises(ConfigError, match=re.escape(REFUSED[kind])):
        from_config(fields, kind)


@pytest.mark.parametrize("kind", sorted(NOT_RUN))
def test_what_cannot_be_run_fails_as_listed(kind: str, tmp_path: Path) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        _real(kind, tmp_path)
    assert type(caught.value).__name__ == NOT_RUN[kind]


def test_as_many_are_compared_as_when_this_was_written() -> None:
    assert transformers.__version__ == "5.17.0", "another release: count anew"
    assert not set(REFUSED) & set(NOT_RUN)
    assert set(REFUSED) | set(NOT_RUN) | TOO_LARGE <= set(AUTO)
    compared = set(AUTO) - set(REFUSED) - set(NOT_RUN) - TOO_LARGE
    assert (len(compared), len(REFUSED), len(NOT_RUN), len(AUTO)) == COUNTS

"""A model of this package as a causal language model of transformers: its description, the model,
and whether the files of a folder are those that its record is about.
"""

from __future__ import annotations

import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch.nn.functional as F
from jaxtyping import Int
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

from separatrix.core.errors import CheckFailed, EvidenceError, SizeError, first_line
from separatrix.core.evidence.canonical import sha256
from separatrix.core.evidence.records import Construction, from_envelope
from separatrix.models.model import Model, ModelConfig, NoPositions
from separatrix.models.stored.description import (
    CERTIFICATE,
    CONFIG,
    MODEL_TYPE,
    RECORD,
    check_description,
    check_files,
    proved_in,
)
from separatrix.models.stored.plain_file import plain_json
from separatrix.models.stored.trained import WEIGHTS, is_trained, read_stored
from separatrix.models.stored.weights import EITHER, described, weight_file

IGNORED = -100
"""A label that no loss is taken of, as everywhere in transformers."""


class SeparatrixConfig(PretrainedConfig):
    """The fields of `ModelConfig`, under the same names. Without arguments it describes the
    smallest model, since transformers makes such a one to compare with.

    Raises SpecError and SizeError for what describes no model.
    """

    model_type = MODEL_TYPE

    architecture: str = "full @ head_dim=1, heads=1"
    vocabulary: int = 1
    length: int = 1
    answers: int = 1
    width: int = 1
    hidden: int = 0
    norm: bool = False
    bos: bool = False
    asks: bool = False
    use_cache: bool = False
    """Each token that `generate` writes reads the prompt anew."""

    def __post_init__(self, **others: Any) -> None:
        super().__post_init__(**others)
        self.described()

    def described(self) -> ModelConfig:
        """The description alone."""
        return ModelConfig.from_json({f.name: getattr(self, f.name) for f in fields(ModelConfig)})

    @property
    def vocab_size(self) -> int:
        """Ids that may be read or written."""
        return max(self.vocabulary, self.answers)


class SeparatrixForCausalLM(PreTrainedModel, GenerationMixin):
    """`Model` behind the interface of transformers: the same weights, the same numbers.

    Logits are those of the task's answers after every token. Ids of the vocabulary that are no
    answers have -infinity, so that `generate` never writes them. A start token, where the model has
    one, is put before the prompt by the model itself.
    """

    config_class = SeparatrixConfig
    base_model_prefix = "model"
    main_input_name = "input_ids"

    def __init__(self, config: SeparatrixConfig) -> None:
        super().__init__(config)
        self.model = Model(config.described())
        self.post_init()

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *args: Any, **options: Any) -> Any:
        """As in transformers, but strict: every weight must be there and no other, and in a folder
        with a record the files must be those that the record is about. Warns of a number format
        that it says nothing of.

        Raises EvidenceError, on one line.
        """
        folder = Path(str(pretrained_model_name_or_path)) / (options.get("subfolder") or "")
        said, formats = _untouched(folder) if folder.is_dir() else ("", set[str]())
        wanted = options.pop("output_loading_info", False)
        try:
            loaded: Any = super().from_pretrained(
                pretrained_model_name_or_path, *args, output_loading_info=True, **options
            )
        except (SafetensorError, RuntimeError) as error:
            raise EvidenceError(
                f"{folder}: the weights cannot be read: {first_line(error)}"
            ) from None
        model, info = loaded
        for what in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
            if info.get(what):
                names = ", ".join(sorted(map(str, info[what]))[:3])
                raise EvidenceError(
                    f"{folder}: the weights are not those of the model described:"
                    f" {what.replace('_', ' ')} {names}"
                )
        dtype = str(model.dtype).removeprefix("torch.")
        if said and dtype not in formats:
            warnings.warn(
                f"{folder}: loaded in {dtype}; the model is {said} in"
                f" {', '.join(sorted(formats)) or 'no format'}",
                stacklevel=2,
            )
        return (model, info) if wanted else model

    def _init_weights(self, module: nn.Module) -> None:
        """Draws nothing: a model made here takes its weights from a file or from `Model.reset`."""
        if isinstance(module, NoPositions):
            # no file holds these zeros
            module.weight = NoPositions(*module.weight.shape).weight.to(module.weight.device)

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        # each token that is written reads all before it anew
        return False

    def get_input_embeddings(self) -> nn.Module:
        return self.model.embed

    def set_input_embeddings(self, value: nn.Module) -> None:
        assert isinstance(value, nn.Embedding)
        self.model.embed = value

    def forward(
        self,
        input_ids: Int[Tensor, "b t"],
        attention_mask: Tensor | None = None,
        labels: Int[Tensor, "b t"] | None = None,
        logits_to_keep: int = 0,
        **others: Any,
    ) -> CausalLMOutput:
        """Logits (b, t, ids) after every token, or after the last alone if `logits_to_keep` is 1.

        Raises SizeError for a mask that hides a token, and for a prompt that is too long.
        """
        if attention_mask is not None and not bool((attention_mask != 0).all()):
            raise SizeError(
                "attention_mask hides a token: these models read every token of a prompt; ask"
                " prompts of one length together"
            )
        if logits_to_keep == 1 and labels is None:
            answers = self.model(input_ids)[:, None]
        else:
            answers = self.model.every(input_ids)[:, -logits_to_keep:]
        rest = self.config.vocab_size - answers.shape[-1]
        logits = F.pad(answers, (0, rest), value=float("-inf"))
        loss: Any = None
        if labels is not None:
            # mean cross entropy of each label with the logits of the token before it
            before = logits[:, :-1].flatten(0, 1).float()
            loss = F.cross_entropy(before, labels[:, 1:].flatten(), ignore_index=IGNORED)
        given: Any = logits
        return CausalLMOutput(loss=loss, logits=given)

    def prepare_inputs_for_generation(
        self, input_ids: Int[Tensor, "b t"], *positional: Any, **others: Any
    ) -> dict[str, Any]:
        """Every token written so far is read again; there is no cache."""
        return {
            "input_ids": input_ids,
            "attention_mask": others.get("attention_mask"),
            "logits_to_keep": 1,
        }


def _untouched(folder: Path) -> tuple[str, set[str]]:
    """What is said of a folder's model, and in which number formats. Raises EvidenceError, on one
    line, where a folder of `construct` or `train` holds another description, other weights or
    further files than its record is about. A folder without a record passes.

    That the record itself holds is for `separatrix verify` to say.
    """
    if (folder / RECORD).exists():
        return "proved", _constructed(folder)
    if is_trained(folder):
        stored = read_stored(folder)
        _hashed(folder / WEIGHTS, stored.config, stored.weights_sha256)
        return "measured", {"float32"}
    return "", set()


def _constructed(folder: Path) -> set[str]:
    record = from_envelope(plain_json(folder / RECORD))
    if not isinstance(record, Construction):
        raise EvidenceError(f"{folder / RECORD}: holds a {record.kind}, not a construction")
    check_files(folder, RECORD, CONFIG, record.weights, CERTIFICATE)
    check_description(folder / CONFIG, plain_json(folder / CONFIG), record)
    _hashed(folder / record.weights, ModelConfig.from_json(record.model), record.weights_sha256)
    return proved_in(record)


def _hashed(path: Path, config: ModelConfig, digest: str) -> None:
    if sha256(weight_file(path, described(config), EITHER)) != digest:
        raise CheckFailed(
            f"{path}: the weights were changed or damaged (another sha256 than the record has)"
        )

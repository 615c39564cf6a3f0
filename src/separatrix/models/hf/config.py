"""A model's description, as transformers keeps one."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from transformers import PretrainedConfig

from separatrix.models.model import ModelConfig
from separatrix.models.stored.description import MODEL_TYPE


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

"""Models of this package for Hugging Face's transformers.

Importing `separatrix.models.hf` registers them there; then

    AutoModelForCausalLM.from_pretrained(folder)

loads what `separatrix construct` and `separatrix train` write. `import separatrix` alone never
imports transformers.
"""

from __future__ import annotations

from separatrix.core.errors import MissingExtraError

try:
    from transformers import AutoConfig, AutoModelForCausalLM
except ModuleNotFoundError as error:
    if error.name != "transformers":
        raise
    raise MissingExtraError.of("separatrix.models.hf", "hf") from None

from separatrix.models.hf.modeling import SeparatrixConfig, SeparatrixForCausalLM

__all__ = ["SeparatrixConfig", "SeparatrixForCausalLM"]

AutoConfig.register(SeparatrixConfig.model_type, SeparatrixConfig, exist_ok=True)
AutoModelForCausalLM.register(SeparatrixConfig, SeparatrixForCausalLM, exist_ok=True)

"""The families of models whose files are read."""

from __future__ import annotations

from types import ModuleType

# A family is one file, with the model types and classes it reads, and one of these lines.
from separatrix.architecture.hf.families import alternating as alternating
from separatrix.architecture.hf.families import bailing_linear as bailing_linear
from separatrix.architecture.hf.families import bamba as bamba
from separatrix.architecture.hf.families import chatglm as chatglm
from separatrix.architecture.hf.families import cross_layer as cross_layer
from separatrix.architecture.hf.families import decoders as decoders
from separatrix.architecture.hf.families import deepseek as deepseek
from separatrix.architecture.hf.families import encoders as encoders
from separatrix.architecture.hf.families import fla as fla
from separatrix.architecture.hf.families import fla_gated as fla_gated
from separatrix.architecture.hf.families import fla_other as fla_other
from separatrix.architecture.hf.families import fla_softmax as fla_softmax
from separatrix.architecture.hf.families import gpt_neo as gpt_neo
from separatrix.architecture.hf.families import hymba as hymba
from separatrix.architecture.hf.families import jamba as jamba
from separatrix.architecture.hf.families import kimi as kimi
from separatrix.architecture.hf.families import lfm2 as lfm2
from separatrix.architecture.hf.families import looped as looped
from separatrix.architecture.hf.families import mamba as mamba
from separatrix.architecture.hf.families import minimax as minimax
from separatrix.architecture.hf.families import minimax_softmax as minimax_softmax
from separatrix.architecture.hf.families import mllama as mllama
from separatrix.architecture.hf.families import nemotron_h as nemotron_h
from separatrix.architecture.hf.families import olmo_hybrid as olmo_hybrid
from separatrix.architecture.hf.families import own_heads as own_heads
from separatrix.architecture.hf.families import own_spelling as own_spelling
from separatrix.architecture.hf.families import phi4flash as phi4flash
from separatrix.architecture.hf.families import qwen3_next as qwen3_next
from separatrix.architecture.hf.families import recurrent_gemma as recurrent_gemma
from separatrix.architecture.hf.families import rwkv as rwkv
from separatrix.architecture.hf.families import xlstm as xlstm
from separatrix.architecture.hf.families import zamba as zamba
from separatrix.architecture.hf.family import Family

_FILES = [file for file in list(globals().values()) if isinstance(file, ModuleType)]
FAMILIES: dict[str, Family] = {
    kind: read for file in _FILES for kind, read in file.FAMILIES.items()
}
"""`model_type` -> reader."""
CLASSES: dict[str, str] = {name: kind for file in _FILES for name, kind in file.CLASSES.items()}
"""`architectures[0]` -> `model_type`, for files without one."""

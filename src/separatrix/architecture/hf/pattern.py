"""A stack given by hand (`--pattern`) for a file that does not say which layer is which: the
file gives the sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

from separatrix.architecture.hf.attention import (
    ACCUMULATORS,
    cache_note,
    chunked_attention,
    convolution_note,
    full_attention,
    head_dim_or_quotient,
    latent_attention,
    state_note,
    window_attention,
)
from separatrix.architecture.hf.draft import Draft, Reading, Unknown, Value
from separatrix.architecture.hf.families.deepseek import indexed_latents
from separatrix.architecture.hf.families.minimax_softmax import indexed_blocks
from separatrix.architecture.hf.fields import Fields
from separatrix.architecture.hf.unread import doubted, unread
from separatrix.architecture.spec import parse_sizes
from separatrix.mechanisms import MECHANISMS, Mechanism
from separatrix.mechanisms.base import ATTENTION

_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
_WINDOWS = ("sliding_window", "sliding_window_size", "attention_window_size", "window_size")
_RECURRENT: dict[str, dict[str, tuple[str, ...]]] = {
    "mamba": {
        "width": ("mamba_d_ssm", "mamba_intermediate_size"),
        "state": ("mamba_d_state", "ssm_state_size", "state_size"),
        "conv": ("mamba_d_conv", "conv_kernel", "d_conv"),
    },
    "mamba2": {
        "heads": ("mamba_n_heads", "mamba_num_heads", "n_mamba_heads"),
        "head_dim": ("mamba_d_head", "mamba_head_dim", "mamba_headdim"),
        "state": ("mamba_d_state", "ssm_state_size", "state_size"),
        "groups": ("mamba_n_groups", "mamba_ngroups", "n_groups"),
        "conv": ("mamba_d_conv", "conv_kernel", "d_conv"),
    },
    "gdn": {
        "heads": ("linear_num_value_heads",),
        "key_heads": ("linear_num_key_heads",),
        "head_dim": ("linear_key_head_dim",),
        "value_dim": ("linear_value_head_dim",),
        "conv": ("linear_conv_kernel_dim",),
    },
    "kda": {
        "heads": ("linear_attn_config.num_heads", "linear_num_heads"),
        "head_dim": ("linear_attn_config.head_dim", "linear_head_dim"),
        "conv": ("linear_attn_config.short_conv_kernel_size", "linear_conv_kernel_dim"),
    },
    "lightning": {"heads": ("num_attention_heads",), "head_dim": ("head_dim",)},
    "rglru": {"width": ("lru_width",), "conv": ("conv1d_width",)},
    "shortconv": {"width": ("hidden_size",), "conv": ("conv_L_cache",)},
    "mlp": {},
}
"""Mechanism -> size -> the fields that usually hold it."""


def by_pattern(fields: Fields, pattern: str) -> Reading:
    """The layers of `pattern`, its sizes over those of the file. Raises what a spec raises, and
    ConfigError for another number of layers.
    """
    stack = parse_sizes(pattern)
    stated = fields.optional_size(*_LAYERS)
    if stated is not None and stated != len(stack):
        raise fields.error(
            f"--pattern has {len(stack):,} layers, but '{fields.find(*_LAYERS)}' is {stated:,};"
            " they must be equal"
        )
    names = list(dict.fromkeys(name for layer in stack for name, _ in layer))
    of_file = Reading.of([_made(fields, name) for name in names], [])
    odd = unread(fields, of_file)
    # what is said by hand stands over what the file leaves in doubt
    known = {
        name: layer[0] for name, layer in zip(names, doubted(of_file, odd).layers, strict=True)
    }
    drafts: dict[tuple[str, str], Draft] = {}
    for name, sizes in (part for layer in stack for part in layer):
        made = known[name]
        drafts.setdefault((name, repr(sizes)), Draft(made.cls, {**made.sizes, **sizes}))
    layers = tuple(tuple(drafts[name, repr(sizes)] for name, sizes in layer) for layer in stack)
    shown = pattern if len(pattern) <= 200 else f"{pattern[:197]}..."
    return Reading(
        layers,
        (
            f"layers set by hand: --pattern '{' '.join(shown.split())}'",
            *_notes(fields, [d.cls for d in drafts.values()]),
            *_unread_note(odd),
        ),
    )


def _unread_note(names: list[str]) -> list[str]:
    """Says which fields that may change attention the pattern stands for."""
    if not names:
        return []
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    listed = ", ".join(f"'{name[:60]}'" for name in names[:5])
    return [f"not read, the pattern stands for them: {listed}{more}"]


def _notes(fields: Fields, classes: list[type[Mechanism]]) -> list[str]:
    """The assumptions that go with these mechanisms in any file."""
    stateful = any(cls.group == "recurrent" for cls in classes)
    softmax = any(cls.group in ATTENTION for cls in classes)
    dtype = fields.model_format()
    return [
        *([state_note("fp32"), convolution_note(dtype)] if stateful else []),
        *([cache_note(dtype), ACCUMULATORS] if softmax else []),
    ]


def _made(fields: Fields, name: str) -> Draft:
    softmax: dict[str, Callable[[Fields], Draft]] = {
        "full": lambda fields: full_attention(fields, head_dim=head_dim_or_quotient(fields)),
        "window": _window,
        "chunked": lambda fields: chunked_attention(fields, head_dim=head_dim_or_quotient(fields)),
        "mla": latent_attention,
        "indexed": lambda f: indexed_blocks(f.section("sparse_attention_config")),
        "dsa": indexed_latents,
    }
    return softmax[name](fields) if name in softmax else _recurrent(fields, name)


def _window(fields: Fields) -> Draft:
    draft = window_attention(fields, head_dim=head_dim_or_quotient(fields))
    return Draft(draft.cls, {**draft.sizes, "size": fields.size(*_WINDOWS)})


def _recurrent(file: Fields, name: str) -> Draft:
    """A mechanism by the fields that usually hold its sizes; sizes that no field is known for
    are unknown.
    """
    cls = MECHANISMS[name]
    inner = file.section("linear_attn_config") if name == "kda" else file
    spellings = _RECURRENT.get(name)
    sizes: dict[str, Value] = {}
    for field in fields(cls):
        if field.name == "format":
            sizes["format"] = file.model_format()
        elif field.name == "state_format":
            sizes["state_format"] = "fp32"
        elif spellings is not None:
            if field.name in spellings:
                sizes[field.name] = inner.size(*spellings[field.name])
        elif _is_size(field.default):
            sizes[field.name] = Unknown((f"no field is known to hold '{field.name}' of '{name}'",))
    return Draft(cls, sizes)


def _is_size(default: Any) -> bool:
    """Whether a field is a number that a layer cannot do without; 0 and None stand for "none"
    and for another size.
    """
    return default is not MISSING and type(default) is int and default > 0

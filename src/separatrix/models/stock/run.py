"""Runs a checkpoint of a stock architecture in its own arithmetic, float32: the operations of
transformers' modules with eager attention, from config.json and tensors alone.

`tests/peers/test_stock_models.py` compares the logits with those of transformers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from separatrix.models.stock.checkpoint import Checkpoint

_SCORES = 1 << 24
"""Scores that are alive at once."""


def logits_at(checkpoint: Checkpoint, tokens: Tensor, places: Tensor | None = None) -> Tensor:
    """Logits (b, k, ids) after some tokens (b, k) of prompts (b, t), or after the last alone. The
    start token is put before the prompts here.
    """
    if places is None:
        places = torch.full((len(tokens), 1), tokens.shape[1] - 1)
    if checkpoint.start is not None:
        tokens = F.pad(tokens, (1, 0), value=checkpoint.start)
        places = places + 1
    with torch.inference_mode():
        return _RUNS[checkpoint.name](checkpoint.config, checkpoint.tensors, tokens, places)


def work(checkpoint: Checkpoint, tokens: int) -> int:
    """Roughly, the operations of one prompt."""
    config = checkpoint.config
    layers, heads, width, hidden = (config[name] for name in _SIZES[checkpoint.name])
    dim = config.get("head_dim", width // heads)
    scores = ((layers - 1) * tokens + 1) * heads * dim * tokens
    return scores + layers * tokens * width * (4 * heads * dim + 3 * hidden)


def _gpt2(config: dict[str, Any], w: dict[str, Tensor], tokens: Tensor, places: Tensor) -> Tensor:
    heads, eps = config["n_head"], config["layer_norm_epsilon"]

    def norm(x: Tensor, name: str) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], eps)

    def mapped(x: Tensor, name: str) -> Tensor:
        # matrices stand (in, out)
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    x = w["transformer.wte.weight"][tokens] + w["transformer.wpe.weight"][: tokens.shape[1]]
    rows = torch.arange(tokens.shape[1]).expand(tokens.shape)
    for number in range(config["n_layer"]):
        name = f"transformer.h.{number}"
        q, k, v = mapped(norm(x, f"{name}.ln_1"), f"{name}.attn.c_attn").chunk(3, -1)
        if number == config["n_layer"] - 1:
            rows, x, q = places, _taken(x, places), _taken(q, places)
        read = _attended(*(_split(each, heads) for each in (q, k, v)), rows, 1.0)
        x = x + mapped(read, f"{name}.attn.c_proj")
        hidden = F.relu(mapped(norm(x, f"{name}.ln_2"), f"{name}.mlp.c_fc"))
        x = x + mapped(hidden, f"{name}.mlp.c_proj")
    return F.linear(norm(x, "transformer.ln_f"), w["lm_head.weight"])


def _llama(config: dict[str, Any], w: dict[str, Tensor], tokens: Tensor, places: Tensor) -> Tensor:
    heads, dim, eps = (config[name] for name in ("num_attention_heads", "head_dim", "rms_norm_eps"))

    def norm(x: Tensor, name: str) -> Tensor:
        return w[f"{name}.weight"] * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))

    def mapped(x: Tensor, name: str) -> Tensor:
        return F.linear(x, w[f"{name}.weight"], w.get(f"{name}.bias"))

    # powers of the base, which is 1
    frequencies = 1.0 / torch.tensor(config["rope_parameters"]["short_factor"])
    angles = torch.arange(tokens.shape[1]).float()[:, None] * frequencies
    angles = torch.cat([angles, angles], -1)

    def turned(x: Tensor, rows: Tensor) -> Tensor:
        """Queries or keys (b, h, k, d) turned by their places (b, k)."""
        cos, sin = angles.cos()[rows][:, None], angles.sin()[rows][:, None]
        first, second = x.chunk(2, -1)
        return x * cos + torch.cat([-second, first], -1) * sin

    every = torch.arange(tokens.shape[1]).expand(tokens.shape)
    rows = every
    x = w["model.embed_tokens.weight"][tokens]
    for number in range(config["num_hidden_layers"]):
        name = f"model.layers.{number}"
        normed = norm(x, f"{name}.input_layernorm")
        k, v = (mapped(normed, f"{name}.self_attn.{each}_proj") for each in "kv")
        if number == config["num_hidden_layers"] - 1:
            rows, x, normed = places, _taken(x, places), _taken(normed, places)
        q = turned(_split(mapped(normed, f"{name}.self_attn.q_proj"), heads), rows)
        read = _attended(q, turned(_split(k, heads), every), _split(v, heads), rows, dim**-0.5)
        x = x + mapped(read, f"{name}.self_attn.o_proj")
        normed = norm(x, f"{name}.post_attention_layernorm")
        gate = F.silu(mapped(normed, f"{name}.mlp.gate_proj"))
        x = x + mapped(gate * mapped(normed, f"{name}.mlp.up_proj"), f"{name}.mlp.down_proj")
    return F.linear(norm(x, "model.norm"), w["lm_head.weight"])


_SIZES = {
    "gpt2": ("n_layer", "n_head", "n_embd", "n_inner"),
    "llama": ("num_hidden_layers", "num_attention_heads", "hidden_size", "intermediate_size"),
}
_RUNS: dict[str, Callable[[dict[str, Any], dict[str, Tensor], Tensor, Tensor], Tensor]] = {
    "gpt2": _gpt2,
    "llama": _llama,
}


def _taken(x: Tensor, places: Tensor) -> Tensor:
    return x.gather(1, places[..., None].expand(*places.shape, x.shape[-1]))


def _split(x: Tensor, heads: int) -> Tensor:
    """(b, t, h d) as (b, h, t, d)."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def _attended(q: Tensor, k: Tensor, v: Tensor, rows: Tensor, scale: float) -> Tensor:
    """What queries (b, h, k, d) that stand at places (b, k) read of the tokens up to their own."""
    batch, heads, count, _ = q.shape
    tokens = k.shape[2]
    size = max(1, _SCORES // (batch * heads * tokens))
    found: list[Tensor] = []
    for first in range(0, count, size):
        some = rows[:, first : first + size, None]
        hidden = torch.arange(tokens) > some
        scores = q[:, :, first : first + size] @ k.transpose(2, 3) * scale
        weights = scores.masked_fill(hidden[:, None], float("-inf")).softmax(-1)
        found.append(weights @ v)
    return torch.cat(found, 2).transpose(1, 2).flatten(2)

"""A model as a checkpoint of GPT-2.

GPT-2 has what constructions use: learned embeddings of positions, softmax heads, an MLP with any
activation, a head of its own. What it has beside is undone:

    LayerNorm           with epsilon 2^60 and weights 2^30 it is x - mean(x); the residual stream
                        holds every coordinate twice, as x and as -x, so that the mean is 0
    1/sqrt(d)           scale_attn_weights is false
    head without bias   a coordinate that is 1 at every token

    coordinates    x (w)    1      -x (w)   -1     zeros, up to heads times the widest head
    a map W reads  W/2      b/2    -W/2     -b/2

In float32 the sum behind the mean is rounded, so that m, some 2^-24 of the largest coordinate, is
left of it. Every coordinate is read as x - m and as -x - m, and W/2 (x - m) - W/2 (-x - m) = W x:
what is left of m is a rounding of it. That is more than the proof of the model counts: the
checkpoint is tested, not proved.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from separatrix.models.model import Model
from separatrix.models.stock.checkpoint import FLAT, ROOT, Checkpoint
from separatrix.models.stock.plain import Layer, Plain, plain


def write(model: Model) -> Checkpoint:
    """The model as a checkpoint of GPT-2. Raises SizeError, naming the feature in the way."""
    parts = plain(model, "gpt2", rotates=False)
    # all positions alike is an embedding, too
    position = model.position.weight
    layout = Layout(parts)
    config = model.config
    ids = parts.ids()
    start = config.vocabulary if config.bos else None
    tensors = {
        "transformer.wte.weight": layout.twice(parts.rows(ids), one=1.0),
        "transformer.wpe.weight": layout.twice(position),
    }
    for number, layer in enumerate(parts.layers):
        named = layout.layer(layer)
        tensors |= {f"transformer.h.{number}.{name}": value for name, value in named.items()}
    tensors |= {
        "transformer.ln_f.weight": torch.full((layout.width,), ROOT),
        "transformer.ln_f.bias": torch.zeros(layout.width),
        "lm_head.weight": layout.read(*parts.logits(ids)),
    }
    return Checkpoint(
        config={
            "model_type": "gpt2",
            "architectures": ["GPT2LMHeadModel"],
            "dtype": "float32",
            "vocab_size": ids,
            "n_positions": len(position),
            "n_embd": layout.width,
            "n_layer": len(parts.layers),
            "n_head": parts.heads,
            "n_inner": layout.hidden,
            "activation_function": "relu",
            "layer_norm_epsilon": FLAT,
            "scale_attn_weights": False,
            "tie_word_embeddings": False,
            "resid_pdrop": 0.0,
            "embd_pdrop": 0.0,
            "attn_pdrop": 0.0,
            "bos_token_id": start,
            "eos_token_id": None,
        },
        tensors={name: tensor.contiguous() for name, tensor in tensors.items()},
        start=start,
        remarks=(
            "not checked: LayerNorm takes off a mean that is 0 but for rounding, which the proof"
            " does not count",
            "GPT-2 counts places from the first token it is given: prompts padded on the left need"
            " position_ids, which `generate` makes of attention_mask",
        ),
    )


class Layout:
    """Where the coordinates of a model stand in the residual stream of GPT-2."""

    def __init__(self, parts: Plain) -> None:
        self.inner = parts.model.config.width
        self.heads = parts.heads
        dims = [max(len(h.q), len(h.v)) for layer in parts.layers for h in layer.heads]
        doubled = 2 * (self.inner + 1)
        self.head_dim = max(*dims, -(-doubled // self.heads))
        self.width = self.heads * self.head_dim
        self.hidden = max(1, parts.hidden)

    def twice(self, rows: Tensor, one: Tensor | float = 0.0) -> Tensor:
        """Rows (n, w) as they stand in the residual stream; `one` is the further coordinate."""
        last = torch.as_tensor(one).expand(len(rows))[:, None]
        own = torch.cat([rows, last], 1).detach()
        return F.pad(torch.cat([own, -own], 1), (0, self.width - 2 * own.shape[1]))

    def read(self, matrix: Tensor, bias: Tensor | float = 0.0) -> Tensor:
        """A map (n, w) of the model as one (n, width) of what a norm gives."""
        return self.twice(matrix / 2, bias / 2)

    def layer(self, layer: Layer) -> dict[str, Tensor]:
        """The tensors of a layer; matrices stand (in, out), as GPT-2 has them."""
        *read, out = torch.zeros(4, self.width, self.width)
        for number, head in enumerate(layer.heads):
            first = number * self.head_dim
            for target, matrix in zip(read, (head.q, head.k, head.v), strict=True):
                target[first : first + len(matrix)] = self.read(matrix)
            out[first : first + len(head.v)] = self.twice(head.o.T)
        up, down = torch.zeros(self.hidden, self.width), torch.zeros(self.hidden, self.width)
        up_bias, down_bias = torch.zeros(self.hidden), torch.zeros(1, self.inner)
        if layer.mlp is not None:
            count = layer.mlp.up.out_features
            up[:count] = self.read(layer.mlp.up.weight)
            up_bias[:count] = layer.mlp.up.bias.detach()
            down[:count] = self.twice(layer.mlp.down.weight.T)
            down_bias = layer.mlp.down.bias.detach()[None]
        norms = {
            f"{norm}.{name}": value
            for norm in ("ln_1", "ln_2")
            for name, value in (
                ("weight", torch.full((self.width,), ROOT)),
                ("bias", torch.zeros(self.width)),
            )
        }
        return norms | {
            "attn.c_attn.weight": torch.cat(read).T,
            "attn.c_attn.bias": torch.zeros(3 * self.width),
            "attn.c_proj.weight": out,
            "attn.c_proj.bias": torch.zeros(self.width),
            "mlp.c_fc.weight": up.T,
            "mlp.c_fc.bias": up_bias,
            "mlp.c_proj.weight": down,
            "mlp.c_proj.bias": self.twice(down_bias)[0],
        }

"""A model as a checkpoint of Llama.

    RMSNorm       with epsilon 2^60 and weights 2^30 it is the identity: beside 2^60 a
                  mean square below 2^36 is rounded away, and 2^-30 2^30 = 1
    1/sqrt(d)     heads have 4^j dimensions, and queries are 2^j times as long
    SwiGLU        silu(2^30 z) 2^-30 for relu(z), beside a factor that is 1: the same number, bit
                  for bit, unless |z| < 2^-23, and then off by less than 2^-31
    rotation      frequencies are free (longrope): those of the model's own rotation, those that
                  number places (places.py), and 0 for all other pairs, which then never turn
    head's bias   a coordinate that is 1 at every token
    positions     computed by two more layers from a start token, exactly (places.py)

So a prompt is meant to meet the numbers of the model's proof. Nothing checks that it does: a norm
is the identity, and a gate as sharp as said, for numbers of ordinary size only.

    coordinates   x (w)   1   start   weights of the bits (D)   bits (D)   zeros
    a head        pairs of bits | pairs of its own rotation | dimensions that never turn

A start token that the model itself does not have is hidden from its heads: one dimension more
takes 2^17 off its score, and e^-2^17 is 0.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from separatrix.core.errors import SizeError
from separatrix.core.numbers.rotary import Rotation
from separatrix.models.model import Model, NoPositions
from separatrix.models.stock import places
from separatrix.models.stock.checkpoint import FLAT, ROOT, Checkpoint
from separatrix.models.stock.plain import Head, Layer, Plain, plain

SHARP = 2.0**30
"""How much steeper a gate is than the hidden unit that it stands for."""
HIDDEN_SCORE = 2.0**17
NEVER = 1e300
"""A factor of a frequency that is infinite in float32: the pair never turns."""


def write(model: Model) -> Checkpoint:
    """The model as a checkpoint of Llama. Raises SizeError, naming the feature in the way."""
    parts = plain(model, "llama", rotates=True)
    layout = Layout(parts)
    config = model.config
    ids = max(parts.ids(), config.vocabulary + 1) if layout.starts else parts.ids()
    start = config.vocabulary if layout.starts else None
    layers = [*layout.placing(), *(layout.layer(layer) for layer in parts.layers)]
    tensors = {"model.embed_tokens.weight": layout.embeddings(ids, start)}
    for number, named in enumerate(layers):
        tensors |= {f"model.layers.{number}.{name}": value for name, value in named.items()}
    tensors |= {
        "model.norm.weight": torch.full((layout.width,), ROOT),
        "lm_head.weight": layout.rows(*parts.logits(ids)),
    }
    return Checkpoint(
        config={
            "model_type": "llama",
            "architectures": ["LlamaForCausalLM"],
            "dtype": "float32",
            "vocab_size": ids,
            "hidden_size": layout.width,
            "intermediate_size": layout.hidden,
            "num_hidden_layers": len(layers),
            "num_attention_heads": layout.heads,
            "num_key_value_heads": layout.heads,
            "head_dim": layout.head_dim,
            "hidden_act": "silu",
            "max_position_embeddings": layout.tokens,
            "rms_norm_eps": FLAT,
            "tie_word_embeddings": False,
            "attention_bias": False,
            "mlp_bias": True,
            "attention_dropout": 0.0,
            "rope_parameters": layout.rope(),
            "bos_token_id": start,
            "eos_token_id": None,
        },
        tensors={name: tensor.contiguous() for name, tensor in tensors.items()},
        start=start,
        remarks=layout.remarks(),
    )


class Layout:
    """Sizes of the checkpoint, and where the coordinates and dimensions of a model stand in it: a
    1, the mark of the start token, weights of the bits and the bits (`one`, `start`, `weights`,
    `signs`).
    """

    def __init__(self, parts: Plain) -> None:
        model = parts.model
        config = model.config
        self.parts = parts
        self.model = model
        self.placed = not isinstance(model.position, NoPositions)
        self.starts = self.placed or config.bos
        self.hides = self.placed and not config.bos
        self.tokens = config.length + self.starts
        self.rotation = _rotation(parts)
        self.bits = places.bits(self.tokens) if self.placed else 0
        if self.placed:
            places.check(self.tokens, "llama")
        turning = 0 if self.rotation is None else self.rotation.dims // 2
        heads = [head for layer in parts.layers for head in layer.heads]
        still = max((len(head.q) - 2 * turning for head in heads), default=0) + self.hides
        needed = max([2 * (self.bits + turning) + max(0, still), *(len(head.v) for head in heads)])
        self.head_dim = 4
        while self.head_dim < needed:
            self.head_dim *= 4
        self.heads = max(parts.heads, self.bits)
        self.one = self.inner = config.width
        self.start = self.inner + 1
        self.weights = torch.arange(self.bits) + self.start + 1
        self.signs = self.weights + self.bits
        self.width = -(-(self.start + 1 + 2 * self.bits) // self.heads) * self.heads
        self.turning = turning
        self.hidden = max(1, parts.hidden, 2 * self.bits, len(self.places()))

    @property
    def longer(self) -> float:
        """How much longer queries are: the root of a head's dimensions, a power of two."""
        return 2.0 ** (self.head_dim.bit_length() // 2)

    def remarks(self) -> tuple[str, ...]:
        """What differs from the model, and what that leaves of its proof."""
        said: list[str] = []
        if self.placed:
            said.append(
                "Llama has no embeddings of positions: two more layers compute them from rotations"
                " and a start token"
            )
        if self.rotation is not None:
            said.append(
                "not checked: angles are products of frequencies that may be off by one unit in the"
                " last place"
            )
        said.append("not checked: that norms are the identity and gates saturated on every input")
        return tuple(said)

    def places(self) -> list[int]:
        """Places at which the table of positions is not zero."""
        if not self.placed:
            return []
        return torch.nonzero(self.table().any(1))[:, 0].tolist()

    def table(self) -> Tensor:
        """The positions' embeddings by place (tokens, w)."""
        return F.pad(self.model.position.weight.detach(), (0, 0, int(self.hides), 0))

    def rope(self) -> dict[str, Any]:
        """Frequencies: base 1, whose powers are 1, over a factor for each pair."""
        factors = [_over(places.frequency(bit)) for bit in range(self.bits)]
        if self.rotation is not None:
            factors += [_over(own) for own in self.rotation.frequencies]
        factors += [NEVER] * (self.head_dim // 2 - len(factors))
        return {
            "rope_type": "longrope",
            "rope_theta": 1.0,
            "short_factor": factors,
            "long_factor": factors,
            "factor": 1.0,
            "attention_factor": 1.0,
            "original_max_position_embeddings": self.tokens,
        }

    def embeddings(self, ids: int, start: int | None) -> Tensor:
        """Every id's coordinates."""
        rows = self.rows(self.parts.rows(ids), 1.0)
        if start is not None:
            rows[start, self.start] = 1.0
        return rows

    def rows(self, own: Tensor, one: Tensor | float = 0.0) -> Tensor:
        """Rows (n, w) as they stand in the residual stream, and beside its 1."""
        rows = F.pad(own.detach(), (0, self.width - self.inner))
        rows[:, self.one] = one
        return rows

    def placing(self) -> list[dict[str, Tensor]]:
        """The two layers that write the embeddings of positions (places.py)."""
        if not self.placed:
            return []
        read = self._empty()
        for bit, weight in enumerate(self.weights.tolist()):
            first = bit * self.head_dim
            pair = [first + bit, first + bit + self.head_dim // 2]
            read["self_attn.q_proj.weight"][pair[0], self.one] = self.longer * places.query(bit)
            read["self_attn.k_proj.weight"][pair, self.start] = torch.tensor(places.key(bit))
            read["self_attn.v_proj.weight"][first, self.start] = 1.0
            read["self_attn.o_proj.weight"][weight, first] = 1.0
        up, down = torch.zeros(2, 2 * self.bits, self.width)
        low, bias = torch.zeros(2 * self.bits), torch.zeros(self.width)
        # relu(3 - 4y) - relu(1 - 4y) - 1: 1 where y, the weight of the start token, is 0, and the
        # bit 1; -1 where y is 1, and the bit 0
        for first, (shift, sign) in enumerate(((3.0, 1.0), (1.0, -1.0))):
            unit = 2 * torch.arange(self.bits) + first
            up[unit, self.weights] = -4.0
            low[unit] = shift
            down[unit, self.signs] = sign
        bias[self.signs] = -1.0
        self._gate(read, up, low, down, bias)
        write = self._empty()
        own = self.places()
        up = torch.zeros(len(own), self.width)
        up[:, self.signs] = places.signs_of(self.tokens)[own]
        down = self.rows(self.table()[own])
        self._gate(write, up, torch.full((len(own),), 1.0 - self.bits), down, bias * 0)
        return [read, write]

    def layer(self, layer: Layer) -> dict[str, Tensor]:
        """A layer of the model."""
        named = self._empty()
        inner = self.inner
        for number, head in enumerate(layer.heads):
            first = number * self.head_dim
            dims = [first + place for place in self._dims(head)]
            named["self_attn.q_proj.weight"][dims, :inner] = self.longer * head.q
            named["self_attn.k_proj.weight"][dims, :inner] = head.k
            values = slice(first, first + len(head.v))
            named["self_attn.v_proj.weight"][values, :inner] = head.v
            named["self_attn.o_proj.weight"][:inner, values] = head.o
            if self.hides:
                last = first + self.head_dim - 1
                named["self_attn.q_proj.weight"][last, self.one] = self.longer
                named["self_attn.k_proj.weight"][last, self.start] = -HIDDEN_SCORE
        if layer.mlp is not None:
            up, down = layer.mlp.up, layer.mlp.down
            bias = self.rows(down.bias[None])[0]
            self._gate(named, self.rows(up.weight), up.bias, self.rows(down.weight.T), bias)
        return named

    def _dims(self, head: Head) -> list[int]:
        """Where a head's dimensions stand: the two halves of those that turn, then the others, in
        pairs that never turn. The last dimension is left for hiding the start token.
        """
        half = self.head_dim // 2
        pairs = range(self.bits, self.bits + self.turning)
        still = range(self.bits + self.turning, half)
        every = [*pairs, *(half + pair for pair in pairs), *still, *(half + pair for pair in still)]
        if self.hides:
            every.remove(self.head_dim - 1)
        if head.rotation is None:
            every = every[2 * self.turning :]
        return every[: len(head.q)]

    def _gate(
        self, named: dict[str, Tensor], up: Tensor, low: Tensor, down: Tensor, bias: Tensor
    ) -> None:
        """down' relu(up x + low) + bias by saturated gates."""
        count = len(up)
        named["mlp.gate_proj.weight"][:count] = SHARP * up
        named["mlp.gate_proj.bias"][:count] = SHARP * low.detach()
        named["mlp.up_proj.bias"][:count] = 1.0
        named["mlp.down_proj.weight"][:, :count] = down.T / SHARP
        named["mlp.down_proj.bias"][:] = bias

    def _empty(self) -> dict[str, Tensor]:
        """A layer that writes nothing."""
        inner = self.heads * self.head_dim
        shapes = {
            "self_attn.q_proj.weight": (inner, self.width),
            "self_attn.k_proj.weight": (inner, self.width),
            "self_attn.v_proj.weight": (inner, self.width),
            "self_attn.o_proj.weight": (self.width, inner),
            "mlp.gate_proj.weight": (self.hidden, self.width),
            "mlp.gate_proj.bias": (self.hidden,),
            "mlp.up_proj.weight": (self.hidden, self.width),
            "mlp.up_proj.bias": (self.hidden,),
            "mlp.down_proj.weight": (self.width, self.hidden),
            "mlp.down_proj.bias": (self.width,),
        }
        norms = {
            f"{name}.weight": torch.full((self.width,), ROOT)
            for name in ("input_layernorm", "post_attention_layernorm")
        }
        return norms | {name: torch.zeros(shape) for name, shape in shapes.items()}


def _rotation(parts: Plain) -> Rotation | None:
    """The rotation that the model's heads share; None where none turns. Raises SizeError where they
    turn differently.
    """
    found = {head.rotation for layer in parts.layers for head in layer.heads if head.rotation}
    if len(found) > 1:
        raise SizeError("llama: heads turn by different rotations; Llama has one for all layers")
    return found.pop() if found else None


def _over(frequency: float) -> float:
    """The float32 whose inverse, rounded to float32, comes closest to a frequency."""
    wanted = torch.tensor(frequency, dtype=torch.float32)
    middle = 1.0 / wanted
    near = [middle]
    for direction in (float("inf"), -float("inf")):
        one = middle
        for _ in range(2):
            one = torch.nextafter(one, torch.tensor(direction))
            near.append(one)
    return float(min(near, key=lambda one: abs(float(1.0 / one) - float(wanted))))

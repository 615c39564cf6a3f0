"""Attention whose keys and values come from one cached latent per token, for all heads."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.core.errors import SizeError
from separatrix.core.numbers.rotary import Rotation
from separatrix.stacks.mechanisms.accumulating import Accumulating
from separatrix.stacks.mechanisms.base import flag, integer, positions_field, rotation_scaling
from separatrix.stacks.mechanisms.heads import Heads
from separatrix.stacks.mechanisms.softmax import ROPE_SCALING


@dataclass(frozen=True, kw_only=True)
class LatentCache(Heads, Accumulating):
    """A latent c_j and a rotated key r_j that all heads share; k_j = (W_k c_j, r_j), v_j = W_v
    c_j.
    """

    latent: int = integer(512, "numbers of the cached latent per token (kv_lora_rank)")
    rope_dim: int = integer(0, "numbers of the rotated key that all heads share (qk_rope_head_dim)")
    rope: bool = flag(True, "whether the shared key of rope_dim numbers is rotated by its place")
    rope_base: int = integer(10_000, "base of the rotation's angles (rope_theta)")
    rope_scaling: str | None = rotation_scaling(ROPE_SCALING)
    positions: str = positions_field()

    def _check(self) -> None:
        if self.rope_dim % 2:
            raise SizeError(
                f"{self.name}: rope_dim={self.rope_dim} is odd; rotation turns pairs of dimensions"
            )

    @property
    def rotation(self) -> Rotation | None:
        if not self.rope or not self.rope_dim:
            return None
        return Rotation(self.rope_base, self.rope_dim, self.rope_scaling)

    @property
    def rounded_again(self) -> bool:
        # queries may be maps of a latent behind a norm (DeepSeek-V3), which costs what QK-norm does
        return True

    @property
    def kv_numbers(self) -> int:
        """Numbers cached per token, for all heads together."""
        return self.latent + self.rope_dim

    @property
    def _channels(self) -> int:
        return self.heads * (self.head_dim + self.rope_dim) + self.kv_numbers

"""What stands around a softmax: a norm of queries and keys before it, a gate of its output."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.stacks.mechanisms.base import choice
from separatrix.stacks.mechanisms.softmax import Softmax

NORMS = ("none", "head", "each", "all", "other")
GATES = ("none", "sigmoid", "head")


@dataclass(frozen=True, kw_only=True)
class GatedSoftmax(Softmax):
    """Softmax attention with QK-norm and an output gate, where they are asked for."""

    qk_norm: str = choice(
        "none",
        NORMS,
        "RMS norm of queries and keys before rotation: none, of each head with one vector of"
        " weights for all (Qwen3), of each head with weights of its own, or of all heads together"
        " (OLMo 2); other: a layer norm, or a norm behind the rotation (HunYuan)",
        alters=True,
    )
    gate: str = choice(
        "none",
        GATES,
        "what multiplies the heads' outputs: nothing, sigmoid of a map of x for every number"
        " (Qwen3-Next), or one for every head",
        alters=True,
    )

    @property
    def free_scores(self) -> bool:
        # a norm that takes the mean away, or meets keys of unlike roundings, is not worked out
        return super().free_scores and self.qk_norm != "other"

    @property
    def normed(self) -> bool:
        return self.qk_norm != "none"

    def _settles_in(self, size: int) -> int | None:
        """c of Theorem P for a window of so many tokens: it then sees one token only, unless
        places tell them apart. None for a learned sink, which section 10 leaves out.
        """
        placed = self.rotation is not None or self.positions in ("alibi", "unknown")
        if placed or self.sizes().get("sink"):
            return None
        return size + max(1, self.conv) - 2

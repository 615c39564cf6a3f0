"""Shapes that many mixers share, by name; and what letters stand for, here and in every file of
mixers that says nothing else.

b batch, t tokens, w model width, k places, r queries of a few tokens, h heads, g key-value heads, d
key dimension, e value dimension, s decays of a token (1, or d), m blocks, n chunks, c channels, i
queries, j keys, l levels.
"""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor

Tokens = Float[Tensor, "b t w"]
Token = Float[Tensor, "b w"]
OneToken = Float[Tensor, "b 1 w"]
SomeTokens = Float[Tensor, "*b w"]
Channels = Float[Tensor, "b t c"]
Places = Int[Tensor, "b k"]
TokensAt = Float[Tensor, "b k w"]
"""The tokens at the places."""

Keys = Float[Tensor, "b h t d"]
"""And queries, where every token has one."""
Values = Float[Tensor, "b h t e"]
Decays = Float[Tensor, "b h t s"]
PerToken = Float[Tensor, "b h t 1"]
Queries = Float[Tensor, "b h r d"]
Reads = Float[Tensor, "b h r e"]
GroupKeys = Float[Tensor, "b g t d"]
GroupValues = Float[Tensor, "b g t e"]
BlockKeys = Float[Tensor, "b g m d"]
Sinks = Float[Tensor, " h"] | None
Matrix = Float[Tensor, "b h d e"]
"""A state, S^T."""
Matrices = Float[Tensor, "b h n d e"]

"""Prompts as a probe sees them: up to a place where an answer is due, and nothing after it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from separatrix.tasks.base.task import Tokens


@dataclass(frozen=True)
class Prompts:
    """Rows of `front` (batch, longest) begin at the first column, those of `back` (batch, longest)
    end at the last.

    Places that a row does not have hold `nothing`, an id one more than the largest. Rows of one
    length are the same array twice.
    """

    front: Tokens
    back: Tokens
    nothing: int

    def __len__(self) -> int:
        return len(self.front)

    def __getitem__(self, rows: slice) -> Prompts:
        front = self.front[rows]
        return Prompts(front, front if self.back is self.front else self.back[rows], self.nothing)

    @property
    def last(self) -> Tokens:
        """The last token of each row, shape (batch,)."""
        return self.back[:, -1]

    def places(self) -> Tokens:
        """Every place but the last token's, counted from the first token and, where rows differ
        in length, from the last too.
        """
        if self.back is self.front:
            return self.front[:, :-1]
        # before the first empty place stands the row's last token, which is left out
        earlier = np.where(self.front[:, 1:] == self.nothing, self.nothing, self.front[:, :-1])
        return np.concatenate((earlier, self.back[:, :-1]), axis=1)


def cut(tokens: Tokens, places: Tokens, *, nothing: int) -> Prompts:
    """Rows of `tokens` (batch, length) up to the token at `places` (batch,), that token
    included.
    """
    column = np.arange(tokens.shape[1])
    front = np.where(column <= places[:, None], tokens, nothing)
    source = column - (tokens.shape[1] - 1 - places[:, None])
    back = np.where(source >= 0, np.take_along_axis(tokens, np.maximum(source, 0), axis=1), nothing)
    return Prompts(front, back, nothing)

"""The residual stream of a prompt, class by class of positions, for every input at once.

Four views of the same numbers, each an enclosure of what any input can put there:

    by_place   a row per position, over all tokens
    by_token   a row per token, over all positions
    last       a row per last token, at the last position
    field      a row per value that the layer before fetched, at the last position; where its MLP
               reads the last token too, as many for each part of it that the next hop asks with

At the last position a row of `last` and a row of `field` add up: a coordinate that one of them
holds is exactly 0 in the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.live_parts import Live, array
from separatrix.proofs.machine import RESIDUAL, Enclosure, add, mlp, stacked

Some = NDArray[np.int64] | slice
"""Rows of a table."""


@dataclass(frozen=True)
class Embedded:
    """Tokens as they enter the stack."""

    embed: Enclosure
    position: Enclosure

    @classmethod
    def of(cls, model: Model, length: int, arithmetic: Arithmetic) -> Embedded:
        """At so many positions."""
        tables = array(model.embed.weight), array(model.position.weight)[:length]
        return cls(*(Enclosure.point(table, arithmetic) for table in tables))

    def tokens(self, ids: Some = slice(None), places: Some = slice(None)) -> Enclosure:
        """A row for each of these ids, at any of these places."""
        return add(self.embed.rows(ids), self.position.rows(places).hull(), RESIDUAL)

    def places(self, places: Some = slice(None), ids: Some = slice(None)) -> Enclosure:
        """A row for each of these places, where any of these ids stands."""
        return add(self.embed.rows(ids).hull(), self.position.rows(places), RESIDUAL)

    def start(self, token: int) -> Enclosure:
        """One row: the start token, at the first place."""
        return self.tokens(slice(token, token + 1), slice(0, 1))


@dataclass(frozen=True, kw_only=True)
class Stream:
    """What tokens hold before a layer."""

    by_place: Enclosure
    by_token: Enclosure
    last: Enclosure
    field: Enclosure
    parts: NDArray[np.int64]
    """The parts of last tokens that rows of `field` belong to, in turn; one: all belong to all."""
    ends: bool = False
    """Whether nothing reads the other positions behind the next layer: they are not evaluated."""

    @classmethod
    def of(
        cls,
        model: Model,
        length: int,
        asking: int | Some,
        arithmetic: Arithmetic = FP32,
        *,
        places: Some | None = None,
    ) -> Stream:
        """Embeddings of `length` positions; the last token is one of so many, or of these ids, at
        the last position, or any of `places`. All is computed in the arithmetic.
        """
        at = Embedded.of(model, length, arithmetic)
        ids = slice(0, asking) if isinstance(asking, int) else asking
        last = at.tokens(ids, slice(length - 1, length) if places is None else places)
        any_token, any_place = at.embed.hull(), at.position.hull()
        return cls.before(
            # these are copies of the weights that nobody needs any more
            by_place=add(any_token, at.position, RESIDUAL, out=at.position.mid),
            by_token=add(at.embed, any_place, RESIDUAL, out=at.embed.mid),
            last=last,
        )

    @classmethod
    def before(
        cls, *, by_place: Enclosure, by_token: Enclosure, last: Enclosure, ends: bool = False
    ) -> Stream:
        """Where nothing was fetched yet."""
        return cls(
            by_place=by_place,
            by_token=by_token,
            last=last,
            field=last.like(*np.zeros((2, 1, last.mid.shape[1]))),
            parts=np.zeros(1, np.int64),
            ends=ends,
        )

    def at_last(self) -> Enclosure:
        """One row: what the last position may hold, whatever the last token and what was
        fetched.
        """
        return self._beside(self.last.hull(), self.field.hull())

    def rows(self, tokens: Some = slice(None)) -> Enclosure:
        """A row for each value fetched before: what the last position may hold beside it, where one
        of these last tokens stands.
        """
        return self._beside(self.last.rows(tokens).hull(), self.field)

    def beside(self, tokens: Some, values: Some) -> Enclosure:
        """A row for each of these last tokens, where this value, or that one, was fetched before:
        by rows of `field`.
        """
        return self._beside(self.last.rows(tokens), self.field.rows(values))

    def _beside(self, last: Enclosure, field: Enclosure) -> Enclosure:
        """Rows of both views, of which one may be a single row."""
        held = self.field.used
        return last.like(np.where(held, field.mid, last.mid), np.where(held, field.rad, last.rad))

    def after(
        self,
        part: Live,
        fetched: Enclosure,
        anywhere: Enclosure,
        then: NDArray[np.int64] | None = None,
    ) -> Stream:
        """The stream after a layer that adds a row of `fetched` at the last position, as its value
        is, and anything within `anywhere` (one row) at the others. `then`: the part of each last
        token that the next hop asks with.
        """
        # a row per last token, whatever was fetched
        base = self._beside(self.last, self.field.hull()) if self.field.used.any() else self.last
        parts = _parts(base, part, then)
        groups = [base if then is None or len(parts) == 1 else base.rows(then == p) for p in parts]
        mixed = stacked(*(add(rows.hull(), fetched, RESIDUAL) for rows in groups))
        places = self.by_place
        tokens = self.by_token
        if not self.ends:
            places = add(places, anywhere, RESIDUAL)
            tokens = add(tokens, anywhere, RESIDUAL)
        written = fetched.used
        after = mixed
        if part.mlp:
            what = f"{part.where}, MLP"
            cleaned = mlp(mixed, part.weights, what=what)
            after = add(mixed, cleaned, RESIDUAL)
            written = written | cleaned.used
            if not self.ends:
                # whatever the position and the token: one row for all
                other = mlp(places.hull(), part.weights, what=what)
                places = add(places, other, RESIDUAL)
                tokens = add(tokens, other, RESIDUAL)
        return Stream(
            by_place=places,
            by_token=tokens,
            last=base.only(~written),
            field=after.only(written),
            parts=parts,
        )


def _parts(base: Enclosure, part: Live, then: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Parts of the last token whose rows an MLP must be evaluated for apart; one, if it does not
    read what differs among last tokens.
    """
    if then is None or not part.mlp:
        return np.zeros(1, np.int64)
    differs = (base.mid != base.mid[:1]).any(0) | (base.rad != base.rad[:1]).any(0)
    reads = (part.mlp["up.weight"] != 0.0).any(0)
    return np.unique(then) if bool((differs & reads).any()) else np.zeros(1, np.int64)

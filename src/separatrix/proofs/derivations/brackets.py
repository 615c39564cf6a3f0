"""Bounded Dyck-(k, D) in a counter, a stack and a flag, proved by exhaustion over what a token may
meet.

A token t, the number c of brackets open after it and the content y of the slot it reads decide all
that its layers compute. The weights are evaluated for every such case, without one rounding, and
compared with what the induction needs:

    the counter adds one number for every bracket that opens and takes it off for one that closes,
    so that it leaves c, an integer from -n to n;
    up to the first wrong bracket, one that opens writes its kind to the slot of c, and one that
    closes reads the slot of c + 1 and writes nothing: so it reads the kind of the bracket that it
    must match;
    the flag is written where a bracket is the first wrong one, and nowhere before; what is written
    is one number always, so that it stays;
    the logits are right for c = 0 and for all other c without the flag, and with it.

Below -1 and above D' + 1, where D' = min(D, n/2), no hidden unit switches: there all is affine in
c, and the two ends of each stretch tell what lies between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed
from separatrix.mixers.linear import LinearMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, unrounded
from separatrix.proofs.derivations.parts.live_parts import Live, array, live_of
from separatrix.proofs.derivations.parts.reflections import Moves, delta_head, moves
from separatrix.proofs.exact import Exactly
from separatrix.proofs.machine import RESIDUAL, Array
from separatrix.tasks import Dyck
from separatrix.tasks.base.task import Tokens


@dataclass(frozen=True)
class Integers(Exactly):
    """Maps of integers. What holds for some rows holds for all integer rows between them, where the
    map is affine.
    """

    def kept(self, numbers: Array, what: str) -> Array:
        """The numbers. Raises CheckFailed for one that is no integer, or that float32 may round."""
        if (numbers != np.rint(numbers)).any():
            raise CheckFailed(f"{what}: a number is no integer, and the proof is about integers")
        self.digits.keep(float(np.abs(numbers).max(initial=0.0)), 0, what)
        return numbers

    def mapped(self, rows: Array, weight: Array, bias: Array | None = None, *, what: str) -> Array:
        """W x + b for each row, all products and sums integers. Raises CheckFailed as `kept`."""
        bias = np.zeros(len(weight)) if bias is None else bias
        # `of` has looked at every weight
        self.kept(np.abs(rows) @ np.abs(weight).T + np.abs(bias), what)
        return rows @ weight.T + bias

    def summed(self, x: Array, y: Array, what: str) -> Array:
        """x + y, number by number. Raises CheckFailed as `kept`."""
        return self.kept(self.kept(x, what) + self.kept(y, what), what)

    def after_mlp(self, part: Live, rows: Array) -> tuple[Array, Array]:
        """The rows after the MLP of a layer, and what its hidden units see. Raises CheckFailed as
        `kept`.
        """
        what = f"{part.where}, MLP"
        if not part.mlp:
            return rows, np.zeros((len(rows), 0))
        up, up_bias, down, down_bias = part.weights
        hidden = self.mapped(rows, up, up_bias, what=what)
        added = self.mapped(np.maximum(hidden, 0.0), down, down_bias, what=what)
        return self.summed(rows, added, what), hidden


_EMBEDDING = "the embedding"


def derive(task: Dyck, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """Raises CheckFailed, naming the part, where the weights do not bear the proof out."""
    counter, holder, flag = live_of(model, 3, placed=False)
    whole = Integers.of(model)
    cases = Cases(task, model, counter, holder, flag, whole)
    for token in range(2 * task.k):
        cases.check_stack(token)
    lead = min(cases.lead(token) for token in range(2 * task.k))
    bits = int((cases.contents != 0).any(0).sum())
    slots = len(cases.slots)
    layers: list[tuple[Live, dict[str, Any]]] = [
        (counter, {"counts": "brackets that are open", "largest": task.n}),
        (holder, {"keeps": "the kind open at each depth", "slots": slots}),
        (flag, {"keeps": "whether one was wrong", "cases": cases.number}),
    ]
    sizes = {"carriers": 3, "head_dim": slots, "value_dim": bits}
    return unrounded(layers, whole.digits, arithmetic, lead, **sizes)


@dataclass(frozen=True)
class Cases:
    """Everything a token of a bracket prompt may meet, and what the weights make of it."""

    task: Dyck
    model: Model
    counter: Live
    holder: Live
    flag: Live
    whole: Integers

    @cached_property
    def depth(self) -> int:
        """D': whoever opens more brackets can close no longer."""
        return min(self.task.D, self.task.n // 2)

    @cached_property
    def counts(self) -> Array:
        """Brackets open after a token: from -1 to D' + 1, and the far ends of what lies beyond."""
        n = self.task.n
        return np.array([-n, *range(-1, self.depth + 2), n], np.float64)

    @property
    def ends(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The two stretches between whose ends all is affine, as places among `counts`."""
        last = len(self.counts) - 1
        return (0, 1), (last - 1, last)

    @cached_property
    def embedded(self) -> Array:
        """(2k, w): tokens as they enter the stack, the same at every place."""
        position = array(self.model.position.weight)[: self.task.n]
        if (position != position[0]).any():
            raise CheckFailed(f"{_EMBEDDING}: a token is not the same at every place")
        return self.whole.summed(array(self.model.embed.weight), position[:1], _EMBEDDING)

    @cached_property
    def step(self) -> Array:
        """(w,): what the counter leaves for each open bracket."""
        where = self.counter.where
        head, mixer = self.counter.head(LinearMixer, "linear attention"), self.counter.mixer
        assert isinstance(mixer, LinearMixer)
        if mixer.normaliser or mixer.feature not in ("identity", "relu"):
            raise CheckFailed(f"{where}: it does not add up plainly")
        rows = self.embedded
        keys = self.whole.mapped(rows, head.k, what=f"{where}, k")
        queries = self.whole.mapped(rows, head.q, what=f"{where}, q")
        values = self.whole.mapped(rows, head.v, what=f"{where}, v")
        if (keys != keys[0]).any() or (queries != queries[0]).any():
            raise CheckFailed(f"{where}: not every token counts alike")
        if min(keys.min(), queries.min()) < 0:
            raise CheckFailed(f"{where}: a key or query is negative")
        opens = values[: self.task.k]
        if (opens != opens[0]).any() or (values[self.task.k :] != -opens[0]).any():
            raise CheckFailed(f"{where}: a bracket that closes does not take off what one adds")
        weight = max(1.0, float(queries[0].max())) * float(keys[0].sum())
        # products first or sums first: no number is larger
        largest = self.task.n * max(1.0, weight) * max(1.0, float(np.abs(opens).max()))
        self.whole.digits.keep(largest, 0, f"{where}, sums over all tokens")
        total = float(queries[0] @ keys[0]) * opens[:1]
        return self.whole.mapped(total, head.o, what=f"{where}, o")[0]

    def counted(self, token: int) -> Array:
        """(counts, w): a token after the counter and its MLP."""
        left = self.whole.summed(
            self.embedded[token : token + 1], self.counts[:, None] * self.step[None], RESIDUAL
        )
        return self._behind(self.counter, left, np.arange(len(self.counts)))

    @cached_property
    def moves(self) -> list[Moves]:
        """What the stack does at each token, for each count."""
        every = np.arange(len(self.counts))
        tokens = range(2 * self.task.k)
        return [self._moves(self.holder, self.counted(token), every) for token in tokens]

    @cached_property
    def slots(self) -> NDArray[np.int64]:
        """The slot of each depth from 1 to D', as the first token writes them."""
        found = self.moves[0].writes[self._alive(0)]
        if (found < 0).any() or len(set(found.tolist())) < len(found):
            raise CheckFailed(f"{self.holder.where}: two depths share a slot, or one has none")
        return found

    @cached_property
    def contents(self) -> Array:
        """(k + 1, e): what a slot may hold: 0 at first, then the value of a kind."""
        kinds = [self.moves[token].values[0] for token in range(self.task.k)]
        return np.stack([np.zeros_like(kinds[0]), *kinds])

    @property
    def number(self) -> int:
        """How many cases there are."""
        return sum(len(self._met(token)[0]) for token in range(2 * self.task.k))

    def _alive(self, token: int) -> NDArray[np.bool_]:
        """The counts that a token may leave where it is not wrong in depth."""
        opens = token < self.task.k
        return (self.counts >= opens) & (self.counts < self.depth + opens)

    def check_stack(self, token: int) -> None:
        """Raises CheckFailed unless the stack does at a token what the induction needs."""
        found = self.moves[token]
        where = self.holder.where
        alive = self._alive(token)
        if (found.reads[alive] != self.slots).any():
            raise CheckFailed(f"{where}: a bracket does not read the slot of its pair")
        if token >= self.task.k:
            if (found.writes >= 0).any():
                raise CheckFailed(f"{where}: a bracket that closes writes")
            return
        if (found.writes[alive] != self.slots).any():
            raise CheckFailed(f"{where}: a bracket does not write the slot of its depth")
        if (found.values != found.values[0]).any():
            raise CheckFailed(f"{where}: what a bracket writes depends on its depth")

    def lead(self, token: int) -> Fraction:
        """By how much the right logit leads at least where a prompt ends with a token. Raises
        CheckFailed where the flag is not what it must be, or an answer not the right one.
        """
        place, content = self._met(token)
        rows = self._compared(token)
        found = self._moves(self.flag, rows, place)
        right = self._check_flag(token, place, content, found)
        raised = self.whole.mapped(
            self.raised[1], delta_head(self.flag).o, what=f"{self.flag.where}, o"
        )
        leads = (
            self._lead(rows[right], place[right], 0 * raised, self.counts[place[right]] == 0),
            self._lead(rows, place, raised, np.zeros(len(rows), bool)),
        )
        if min(leads) <= 0:
            word = self.task.word(token)
            raise CheckFailed(f"the head: some prompt that ends with {word} is answered wrongly")
        return Fraction(min(leads))

    def _met(self, token: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Every case of a token: a count and a content, as places among `counts` and `contents`."""
        found = self.moves[token]
        counts: list[int] = []
        contents: list[int] = []
        for place, (reads, writes) in enumerate(zip(found.reads, found.writes, strict=True)):
            may = range(len(self.contents))
            if reads < 0:
                may = range(1)
            elif reads == writes:
                # its own kind, just written
                may = range(token + 1, token + 2)
            counts += [place] * len(may)
            contents += may
        return np.array(counts), np.array(contents)

    def _check_flag(
        self, token: int, place: NDArray[np.int64], content: NDArray[np.int64], found: Moves
    ) -> NDArray[np.bool_]:
        """Which cases are right: a bracket at its depth that is, or closes, what its slot holds.
        Raises CheckFailed unless the flag is raised by the first wrong bracket, and by none that is
        right.
        """
        where = self.flag.where
        opens = token < self.task.k
        alive = self._alive(token)[place]
        right = alive & (content == token % self.task.k + 1)
        # one step beyond the right depths: below 0, or deeper than D'
        beyond = self.counts[place] == (self.depth + 1 if opens else -1)
        first = (alive & ~right) | beyond
        if (found.writes[right] >= 0).any():
            raise CheckFailed(f"{where}: a bracket that is right raises the flag")
        if (found.writes[first] < 0).any():
            raise CheckFailed(f"{where}: a wrong bracket does not raise the flag")
        kept, value = self.raised
        if (found.reads != kept).any() or not set(found.writes.tolist()) <= {-1, kept}:
            raise CheckFailed(f"{where}: the flag is not read where it is kept")
        if (found.values != value).any():
            raise CheckFailed(f"{where}: the flag is not one number")
        return right

    @cached_property
    def raised(self) -> tuple[int, Array]:
        """Where the flag is kept, and what it is (1, e) once it is raised: as the first token has
        it.
        """
        found = moves(self.flag, self._compared(0), self.task.n, self.whole)
        return int(found.reads[0]), found.values[:1]

    def _compared(self, token: int) -> Array:
        """(cases, w): a token after the stack and its MLP."""
        place, content = self._met(token)
        where = self.holder.where
        read = self.whole.mapped(self.contents, delta_head(self.holder).o, what=f"{where}, o")
        rows = self.whole.summed(self.counted(token)[place], read[content], RESIDUAL)
        return self._behind(self.holder, rows, place)

    def _lead(
        self, rows: Array, place: NDArray[np.int64], flag: Array, balanced: NDArray[np.bool_]
    ) -> float:
        """By how much the right logit leads at least, at the last token."""
        final = self._behind(self.flag, self.whole.summed(rows, flag, RESIDUAL), place)
        head = self.model.head
        logits = self.whole.mapped(final, array(head.weight), array(head.bias), what="the head")
        ahead = logits[:, 1] - logits[:, 0]
        return float(np.where(balanced, ahead, -ahead).min())

    def _moves(self, part: Live, rows: Array, place: NDArray[np.int64]) -> Moves:
        """What a head does. Raises CheckFailed unless it does the same at both ends of each
        stretch.
        """
        found = moves(part, rows, self.task.n, self.whole)
        if not all(found.same(place == low, place == high) for low, high in self.ends):
            raise CheckFailed(f"{part.where}: what it does changes beyond the depths of a stack")
        return found

    def _behind(self, part: Live, rows: Array, place: NDArray[np.int64]) -> Array:
        """The rows behind an MLP. Raises CheckFailed where a hidden unit of it switches between the
        ends of a stretch.
        """
        after, hidden = self.whole.after_mlp(part, rows)
        for low, high in self.ends:
            some, others = hidden[place == low], hidden[place == high]
            # rows of cases that are right leave both ends out
            if some.shape != others.shape or (some * others < 0).any():
                raise CheckFailed(
                    f"{part.where}, MLP: a hidden unit switches beyond the depths of a stack"
                )
        return after


def hard(task: Dyck, rng: np.random.Generator) -> Tokens:
    """Prompts that are balanced up to D' deep, and others with one fault each: a kind exchanged, a
    bracket too many, one too few.
    """
    k = task.k
    deep = min(task.D, task.n // 2)
    prompts = []
    for _ in range(4):
        kinds = rng.integers(k, size=task.n // 2)
        shut = [*kinds[:deep], *(k + kinds[:deep][::-1])]
        pairs = [bracket for kind in kinds[deep:] for bracket in (kind, k + kind)]
        right = np.array([*shut, *pairs] if rng.integers(2) else [*pairs, *shut])
        prompts.append(right)
        for token in (int(rng.integers(2 * k)), int(rng.integers(k)), k + int(rng.integers(k))):
            wrong = right.copy()
            wrong[rng.integers(task.n)] = token
            prompts.append(wrong)
    flat = np.tile([0, k], task.n // 2)
    prompts.append(np.roll(flat, 1))
    prompts.append(np.sort(flat))
    return np.array(prompts, np.int64)


DERIVATIONS = (Derivation(name="brackets", task=Dyck, derive=derive, hard=hard),)

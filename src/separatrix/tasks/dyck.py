"""Bounded Dyck-(k, D): are n brackets of k kinds balanced, nested at most D deep?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from separatrix.errors import SizeError
from separatrix.numbers.counts import AlternatePowers, Count
from separatrix.tasks.base.sizes import require
from separatrix.tasks.base.task import LARGEST_SIZE, PLAIN, Batch, Decision, Family, Tokens
from separatrix.tasks.base.words import Words
from separatrix.tasks.drawing.distinct import one_of

WORDS = Words(
    asks="Bounded Dyck-(k, D): are n brackets of k kinds balanced, nested at most D deep?",
    table="""
        k = 2, D = 2:   position   0   1   2   3   4   5
                        input      (   [   ]   )   [   ]
                        target     .   .   .   .   .   1
        ids 0 1 3 2 1 3: kind c opens as c and closes as k + c
    """,
    drawn="""
        n even, n >= 2; k >= 1 kinds; depth D >= 1. Sampled so that both answers have probability
        1/2 exactly.

        A random walk between 0 and D gives the shape, each pair a uniform kind. Answer 0 has one of
        two reasons, and whichever it might be, counts and every single place look the same under
        both answers.

        Kinds: two pairs are chosen by the shape alone, their kinds differ, and under answer 0 their
        closing brackets are exchanged. Both have more than w = 6 places between their brackets, and
        so have the opening one of either and the closing one of the other; neither holds the first
        bracket or the last. So tokens that do not include an opening and a closing bracket of these
        four have the same law under both answers: those of any place, of any w + 1 neighbours, and
        all opening or all closing ones. Shapes without two such pairs are drawn again before there
        is an answer. That holds at all sizes where kinds are wrong, which are n >= 16 for D >= 3, n
        >= 48 for D = 2: in shorter prompts such shapes are rare, or the latest bracket next to the
        last one's id ("nearest key") tells (0.505 at n = 40, k = 2, D = 2). With D = 1 two
        neighbours are all it takes.

        Depth, in half of the prompts (all, if k = 1) where D >= 3 and n >= 2D + 14: one of two
        places holds )()()( and the other )(())(, the first at depth D, the second at least two
        lower; under answer 0 they are the other way round, so that one pair is D + 1 deep. The
        places are exchangeable, so that no three neighbours tell; from n = 2D + 22 on, with
        )()()()()( and )()(())()(, no five. Pairs inside have the kind of the bracket closed first,
        so that neither place holds a token at its middle that did not occur before. (Two places at
        most D deep that differ by two or more take D >= 3. Room for both and a walk between them
        takes that n, so shorter prompts are wrong in kinds alone.)

        At other sizes nothing is drawn: a few neighbours would give the answer away.
    """,
    counted="""
        1 + the sum of k^j over j <= min(D, t) of the parity of t, for prefixes of t brackets
        (theory.md, section 3): a stack of j open brackets each, which the rest of the prompt can
        close, and one class for prefixes that nothing can repair.
    """,
    origin="[Bha24]; theory.md, sections 2 and 3",
)

_TRIES = 10_000
_BRACKETS = ("()", "[]", "{}", "<>")
"""How the first kinds are written."""
WINDOW = 6
"""Two brackets of one pair that are exchanged lie more than this many places apart."""
LEAST = 16
LEAST_FLAT = 48
"""Fewest brackets of prompts wrong in kinds alone, nested at most three and more deep, and two
deep.
"""


@dataclass(frozen=True, kw_only=True)
class Dyck(Decision):
    """Balanced brackets of k kinds, nested at most D deep."""

    name: ClassVar[str] = "dyck"
    words: ClassVar[Words] = WORDS
    title: ClassVar[str] = (
        "bounded Dyck-(k, D): n brackets of k kinds; answer 1 if they are balanced and nested at"
        " most D deep"
    )
    usage: ClassVar[str] = "n (even), k (kinds), D (depth), shift=shallow|deep"
    source: ClassVar[str] = "[Bha24]"
    shifts: ClassVar[dict[str, str]] = {
        "shallow": "where a bracket may open or close, it opens with probability 1/4",
        "deep": "where a bracket may open or close, it opens with probability 3/4",
    }
    grid: ClassVar[tuple[str, ...]] = (
        "n=16,k=3,D=4",
        "n=24,k=2,D=5",
        "n=40,k=2,D=4",
        "n=64,k=4,D=8",
        "n=128,k=8,D=16",
    )

    n: int
    k: int
    D: int
    shift: str = PLAIN

    def __post_init__(self) -> None:
        require(self.name, "n", self.n, 2, LARGEST_SIZE)
        if self.n % 2:
            raise SizeError(
                f"{self.name}: n is {self.n}; balanced brackets come in pairs, so n must be even"
            )
        require(self.name, "k", self.k, 1, LARGEST_SIZE)
        require(self.name, "D", self.D, 1, LARGEST_SIZE)
        self._check_shift(self.shift)

    @property
    def length(self) -> int:
        return self.n

    @property
    def vocabulary(self) -> int:
        return 2 * self.k

    @property
    def prefix_length(self) -> int:
        """The length with the most classes: half the prompt, or one bracket less where only that
        has the parity of the depth.
        """
        half = self.n // 2
        return half - 1 if half > self.D and (half - self.D) % 2 else half

    def prefix_classes(self) -> Count:
        """The count that `words.counted` derives."""
        return stack_classes(k=self.k, D=self.D, t=self.prefix_length, dead=True)

    def family(self) -> Family[Dyck]:
        """k and D stay; an odd n stands for the even one above."""
        return Family(
            f"k = {self.k:,}, D = {self.D:,}, n even",
            lambda n: Dyck(n=n + n % 2, k=self.k, D=self.D),
            2,
        )

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        batch = self._batch(batch)
        if not self._drops and not self._kinds:
            raise SizeError(
                f"{self.spec}: so short that a few neighbours give the answer away; draw with"
                f" {self._drawn}"
            )
        tokens = np.empty((batch, self.n), np.int64)
        labels = rng.integers(2, size=batch)
        left = np.arange(batch)
        if self._drops:
            deep = rng.random(batch) < 0.5 if self._kinds else np.ones(batch, bool)
            tokens[deep] = self._nested(labels[deep], rng)
            left = left[~deep]
        for _ in range(_TRIES):
            if not len(left):
                return Batch(tokens, labels)
            drawn, found = self._crossed(
                self._balanced(len(left), *self._bounds(), rng), labels[left], rng
            )
            tokens[left[found]] = drawn[found]
            left = left[~found]
        raise SizeError(
            f"{self.spec}: prompts with two exchangeable brackets are too rare to be drawn; use a"
            " larger n"
        )

    @property
    def _kinds(self) -> bool:
        """Whether there is room for prompts wrong in kinds alone."""
        return self.k > 1 and self.D > 1 and self.n >= (LEAST if self.D > 2 else LEAST_FLAT)

    @property
    def _drawn(self) -> str:
        """The sizes nearest to these that are drawn."""
        if self.D < 2 or (self.k < 2 and self.D < 3):
            return f"D >= {2 if self.k > 1 else 3}"
        return f"n >= {2 * self.D + 14 if self.k < 2 else LEAST if self.D > 2 else LEAST_FLAT}"

    @property
    def _window(self) -> int:
        """Brackets of the two places of `_nested`: ten where there is room, else six."""
        return 10 if self.n // 2 - self.D > 10 else 6

    @property
    def _drops(self) -> int:
        """How many choices (2, 4, ... levels) there are for how far the lower place of `_nested`
        lies below the upper.
        """
        return max(0, min((self.D - 1) // 2, self.n // 2 - self.D - self._window))

    def _nested(self, labels: Tokens, rng: np.random.Generator) -> Tokens:
        """Prompts (batch, n) with two windows, as `words.drawn` has them, at places of different
        depth, as the label asks for.
        """
        batch = len(labels)
        rows = np.arange(len(labels))
        place = np.arange(self.n + 1)
        window = self._window
        levels = rng.integers(1, self._drops + 1, size=batch)
        # both orders of the places D, D + 2, ..., n - D - window alike, with room for the walk
        # between the two windows
        apart = window // 2 - 1 + levels
        room = self.n // 2 - self.D - window // 2 - apart
        one = rng.integers(room + 1)
        two = (one + 1 + rng.integers(room)) % (room + 1)
        windows = [
            (self.D + 2 * (one + apart * (one > two)), np.full(batch, self.D), labels == 0),
            (self.D + 2 * (two + apart * (two > one)), self.D - 2 * levels, labels == 1),
        ]
        low, high = self._bounds()
        for start, depth, _ in windows:
            away = np.maximum(
                0, np.maximum(start[:, None] - place, place - start[:, None] - window)
            )
            low = np.maximum(low, depth[:, None] - away)
            high = np.minimum(high, depth[:, None] + away)
        like = np.full((self.n, batch), -1)
        for start, depth, peak in windows:
            for step in range(1, window - 1):
                like[start + step, rows] = start
            for step in range(window + 1):
                above = np.where(peak, 1, -1) if step == window // 2 else -(step % 2)
                low[rows, start + step] = high[rows, start + step] = depth + above
        return self._balanced(batch, low, high, rng, like)

    def _bounds(self) -> tuple[Tokens, Tokens]:
        """Bounds (1, n + 1) of the depth before each place and at the end: at most D, and
        nothing open at the end.
        """
        return (
            np.zeros((1, self.n + 1), np.int64),
            np.minimum(self.D, np.arange(self.n, -1, -1))[None],
        )

    def _balanced(
        self,
        batch: int,
        low: Tokens,
        high: Tokens,
        rng: np.random.Generator,
        like: Tokens | None = None,
    ) -> Tokens:
        """Balanced prompts (batch, n) with depths between the bounds.

        `like` (n, batch): the place of an earlier closing bracket whose kind a bracket that opens
        here takes; -1 for a uniform kind.
        """
        rows = np.arange(batch)
        height = np.zeros(batch, np.int64)
        low = np.ascontiguousarray(low.T)
        high = np.ascontiguousarray(high.T)
        likely = {"shallow": 1, "deep": 3}.get(self.shift, 2)
        coins = rng.integers(4, size=(self.n, batch), dtype=np.uint8) < likely
        tokens = rng.integers(self.k, size=(self.n, batch))
        # the kind of the open bracket of each height
        kinds = np.zeros((min(self.D + 1, self.n // 2) + 1) * batch, np.int64)
        for place in range(self.n):
            opens = (height <= low[place + 1]) | ((height < high[place + 1]) & coins[place])
            if like is not None:
                copied = np.flatnonzero(like[place] >= 0)
                tokens[place, copied] = tokens[like[place, copied], copied] - self.k
            height += opens
            top = height * batch + rows
            kind = np.where(opens, tokens[place], kinds[top])
            kinds[top] = kind
            tokens[place] = np.where(opens, kind, kind + self.k)
            height -= ~opens
        return np.ascontiguousarray(tokens.T)

    def _crossed(
        self, tokens: Tokens, labels: Tokens, rng: np.random.Generator
    ) -> tuple[Tokens, NDArray[np.bool_]]:
        """The prompts with two far pairs of different kinds, under answer 0 with their closing
        brackets exchanged; and where there are two such.
        """
        rows = np.arange(len(tokens))
        place = np.arange(self.n)
        opened = self._mates(tokens < self.k)
        far = (opened > 0) & (place - opened > WINDOW)
        far[:, -1] = False
        one = one_of(far, rng)
        start = opened[rows, one][:, None]
        partner = (
            far
            & (np.abs(opened - one[:, None]) > WINDOW)
            & (np.abs(place - start) > WINDOW)
            & (place != one[:, None])
        )
        two = one_of(partner, rng)
        found = far[rows, one] & partner[rows, two]
        rows = rows[found]
        one = one[found]
        two = two[found]
        kind = tokens[rows, one] - self.k
        other = (kind + rng.integers(1, self.k, size=len(kind))) % self.k
        tokens[rows, opened[rows, two]] = other
        right = labels[found] == 1
        tokens[rows, one] = self.k + np.where(right, kind, other)
        tokens[rows, two] = self.k + np.where(right, other, kind)
        return tokens, found

    def _mates(self, opens: NDArray[np.bool_]) -> Tokens:
        """The place (batch, n) of the bracket that each closing one of a balanced shape closes,
        -1 for opening ones.
        """
        batch = len(opens)
        rows = np.arange(batch)
        height = np.zeros(batch, np.int64)
        mates = np.full((self.n, batch), -1)
        stack = np.zeros((min(self.D, self.n // 2) + 1) * batch, np.int64)
        for place, up in enumerate(np.ascontiguousarray(opens.T)):
            height += up
            top = height * batch + rows
            mates[place] = np.where(up, -1, stack[top])
            stack[top] = np.where(up, place, stack[top])
            height -= ~up
        return np.ascontiguousarray(mates.T)

    def word(self, token: int) -> str:
        way, kind = divmod(token, self.k)
        if self.k <= len(_BRACKETS):
            return _BRACKETS[kind][way]
        return f"{'()'[way]}{kind}"

    @property
    def spelling(self) -> str:
        return "" if self.k <= len(_BRACKETS) else "A bracket of kind c opens as (c, closes as )c."

    def answer(self, tokens: Tokens) -> Tokens:
        tokens = self._checked(tokens)
        rows = np.arange(len(tokens))
        stack = np.zeros((len(tokens), min(self.D, self.n) + 1), np.int64)
        height = np.zeros(len(tokens), np.int64)
        good = np.ones(len(tokens), bool)
        for token in tokens.T:
            opens = token < self.k
            good &= np.where(
                opens,
                height < min(self.D, self.n),
                (height > 0) & (stack[rows, height] == token - self.k),
            )
            # 0 where a row has failed, so that its index stays within the stack
            height = np.where(good, height + np.where(opens, 1, -1), 0)
            # slot 0 belongs to no bracket: rows that open none write there
            top = np.where(opens & good, height, 0)
            stack[rows, top] = np.where(opens & good, token, stack[rows, top])
        return (good & (height == 0)).astype(np.int64)


def stack_classes(*, k: int, D: int, t: int, dead: bool) -> Count:
    """The number of stacks of open brackets that t brackets of k kinds can leave at depth at most
    D. There are k^j of each height j <= min(D, t) that has the parity of t.

    One class more where prefixes that nothing can repair count as well (`dead`).
    """
    top = min(D, t)
    return AlternatePowers(k, top - (t - top) % 2, int(dead))

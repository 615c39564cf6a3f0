from __future__ import annotations

from fractions import Fraction
from typing import Self

from separatrix.core.errors import SizeError
from separatrix.core.numbers.counts import AlternatePowers, Count
from separatrix.core.numbers.lazy import Bools, np
from separatrix.tasks.base.described import size
from separatrix.tasks.base.layout import YES_OR_NO, Layout, TwoRuns
from separatrix.tasks.base.task import Batch, Family, Task, Tokens

_BRACKETS = ("()", "[]", "{}", "<>")
_ROOM = 10
LEAST = 96
"""Fewest brackets of prompts of several kinds: of 64, trees learn where what matters stands."""
LEAST_OF_ONE_KIND = 42
"""Fewest brackets of prompts of one kind, beside twice the depth: then there are 10^6 prompts."""


class Dyck(Task):
    """Bounded Dyck-(k, D): are n brackets of k kinds balanced, nested at most D deep?

        k = 2, D = 2:   position   0   1   2   3   4   5
                        input      (   [   ]   )   [   ]
                        target     .   .   .   .   .   1
        ids 0 1 3 2 1 3: kind c opens as c and closes as k + c

    Drawn: n even. Sampled so that both answers have probability 1/2 exactly. A random walk between
    0 and D gives the shape, each pair a uniform kind.

    k >= 2, drawn for D >= 5 and n >= 96: wrong prompts are wrong in kinds alone. Twice three
    brackets close in a row, from one depth b + 3 to b, b >= 1 uniform, both within the same b open
    brackets; the first time they close the kinds x, z, y, the second time y, z, x, with x != y.
    Under answer 0 the first and the last of either three are exchanged in kind: y, z, x and x, z,
    y. The pairs closed first hold at least w = 2 floor(n/12) brackets, and at least as many stand
    between the first three and what opens for the second. So no w + 1 neighbours show one of these
    brackets together with the one that opens its pair, and w + 1 neighbours have the same law under
    both answers. (More show it now and then: a look at n/4 of them is right with probability 0.9.)

    Counters say nothing either. As many brackets of each kind open and close at each depth, and at
    even and at odd places, under both answers; the order in which brackets of one kind open and
    close is the same, so that no counter of a kind falls below 0; and the numbers of brackets open
    of each kind occur equally often, since where y is open instead of x after the first three, x is
    instead of y after the second, for as long, amid the same others. What tells is which bracket
    was opened last: a stack. (With D <= 2 k counters are a stack, and below D = 5 there is no room
    for all this.) What one counter steers by another goes further, as fingerprints of a stack do:
    two to five brackets in a row that open, by kinds and places, times the same of those that
    close, of all and depth by depth, beside all counters ("products"). Their level is what was
    measured: at n = 96 nearly all, less of longer prompts. Boosted trees see nothing in raw tokens
    at n = 96 and n = 256, and in these columns no more than a regression does.

    k = 1, drawn for D >= 3 and n >= 2D + 42: with one kind counting depth is the task, and
    "counters" may reach 1. One of two places holds )()()()()( and the other )()(())()(, the first
    at depth D, the second at least two lower; under answer 0 they are the other way round, so that
    one pair is D + 1 deep. The places are exchangeable, so that no five neighbours tell.

    At other sizes nothing is drawn: prompts would be too few, or a few brackets give the answer
    away. From these on there are more than 10^6.

    Counted: 1 + the sum of k^j over j <= min(D, t) of the parity of t, for prefixes of t brackets
    (theory.md, section 3): a stack of j open brackets each, which the rest of the prompt can close,
    and one class for prefixes that nothing can repair.

    From: [Bha24]; theory.md, sections 2 and 3
    """

    name = "dyck"
    title = (
        "bounded Dyck-(k, D): n brackets of k kinds; answer 1 if they are balanced and nested at"
        " most D deep"
    )
    source = "[Bha24]"
    shortcuts = ("counters", "products")
    measured = ("products",)
    grid = ("n=96,k=2,D=6", "n=96,k=3,D=8", "n=128,k=2,D=8", "n=128,k=4,D=12", "n=256,k=8,D=16")

    n: int = size(2, told="even")
    k: int = size(1, told="kinds")
    D: int = size(1, told="depth")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n % 2:
            raise SizeError(
                f"{self.name}: n is {self.n}; balanced brackets come in pairs, so n must be even"
            )

    def layout(self) -> Layout:
        """Prefixes of the length with the most classes: half the prompt, or one bracket less where
        only that has the parity of the depth. Two runs: as many brackets that open as may, and as
        many that close, or one fewer; then pairs.
        """
        half = self.n // 2
        prefix = half - 1 if half > self.D and (half - self.D) % 2 else half
        opened = min(self.D, half)
        told = "" if self.k <= len(_BRACKETS) else "A bracket of kind c opens as (c, closes as )c."
        return Layout(
            length=self.n,
            ids={"kind that opens": self.k, "kind that closes": self.k},
            answers=YES_OR_NO,
            prefix=prefix,
            classes=stack_classes(k=self.k, D=self.D, t=prefix, dead=True),
            runs=TwoRuns(0, self.k, opened, 2 * opened, (((0, self.k), half - opened),)),
            spelling=told,
        )

    def family(self) -> Family[Self]:
        """k and D stay; an odd n stands for the even one above."""
        at = super().family().at
        return Family(f"k = {self.k:,}, D = {self.D:,}, n even", lambda n: at(n + n % 2), 2)

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        labels = rng.integers(2, size=batch)
        # moves the generator on: recorded samples stay what they are
        rng.random(batch)
        return Batch((self._nested if self.k == 1 else self._crossed)(labels, rng), labels)

    def level(self, probe: str) -> Fraction:
        """1 for counters of one kind, which are the task itself, else chance."""
        return Fraction(1) if self.k == 1 and probe == "counters" else self.chance

    def drawn_from(self, size: str) -> int:
        if size == "D":
            return 5 if self.k > 1 else 3
        least = LEAST if self.k > 1 else 2 * self.D + LEAST_OF_ONE_KIND
        return least if size == "n" else 0

    def _nested(self, labels: Tokens, rng: np.random.Generator) -> Tokens:
        """Prompts (batch, n) with the two windows of `words.drawn` at places of different depth."""
        batch = len(labels)
        rows = np.arange(len(labels))
        place = np.arange(self.n + 1)
        window = _ROOM
        # how many pairs of levels the lower place lies below the upper
        most = min((self.D - 1) // 2, self.n // 2 - self.D - window)
        levels = rng.integers(1, most + 1, size=batch)
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
        like = np.full((batch, self.n), -1)
        for start, depth, peak in windows:
            for step in range(1, window - 1):
                like[rows, start + step] = start
            for step in range(window + 1):
                above = np.where(peak, 1, -1) if step == window // 2 else -(step % 2)
                low[rows, start + step] = high[rows, start + step] = depth + above
        return self._balanced(batch, low, high, rng, like)

    def _bounds(self) -> tuple[Tokens, Tokens]:
        """Bounds (1, n + 1) of the depth: at most D, and nothing open at the end."""
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

        `like` (batch, n): the place of an earlier closing bracket whose kind a bracket that opens
        here takes; -1 for a uniform kind.
        """
        height = np.zeros(batch, np.int64)
        low = np.ascontiguousarray(low.T)
        high = np.ascontiguousarray(high.T)
        coins = rng.integers(4, size=(self.n, batch), dtype=np.uint8) < 2
        kinds = rng.integers(self.k, size=(self.n, batch)).T
        shape = np.empty((self.n, batch), np.bool_)
        for place, up in enumerate(shape):
            np.less(height, high[place + 1], out=up)
            up &= coins[place]
            up |= height <= low[place + 1]
            height += np.where(up, 1, -1)
        opens = np.ascontiguousarray(shape.T)
        mates = self._mates(opens)
        if like is not None:
            source = np.take_along_axis(mates, np.maximum(like, 0), axis=1)
            # twice: what is copied into the later window may be copied in the earlier one
            for _ in range(2):
                kinds = np.where(like >= 0, np.take_along_axis(kinds, source, axis=1), kinds)
        closed = np.take_along_axis(kinds, np.maximum(mates, 0), axis=1)
        return np.where(opens, kinds, closed + self.k)

    def _crossed(self, labels: Tokens, rng: np.random.Generator) -> Tokens:
        """Prompts (batch, n) with the two runs of `words.drawn`, exchanged under answer 0."""
        batch = len(labels)
        rows = np.arange(batch)
        place = np.arange(self.n + 1)
        # even: two brackets of one pair whose closing one is exchanged lie further apart
        window = 2 * (self.n // 12)
        most = min(self.D - 4, self.n // 2 - 3 * window // 2 - 6)
        below = rng.integers(1, most + 1, size=batch)
        # from the depth below: up three, `window` places no lower, down three
        hill = window + 6
        slack = self.n // 2 - below - hill - window // 2
        # room before, within, between and after the two, cut at uniform places
        cuts = np.sort(rng.integers(slack[:, None] + 1, size=(batch, 4)), axis=1)
        before, one, between, two = 2 * np.diff(cuts, axis=1, prepend=0).T
        first = below + 3 + before + window + one
        second = first + hill + between + window + two
        low, high = self._bounds()
        for begin, end, depth in (
            (first - window - one, first, below + 3),
            (first + 3, first + 3, below),
            # what opens with the second run stands far from the first
            (first + 3, first + 3 + window, below),
            # and both stand within the same brackets
            (first + 3, second + 3, below),
            (second - window - two, second, below + 3),
            (second + 3, second + 3, below),
        ):
            since = place - end[:, None]
            low = np.maximum(
                low, depth[:, None] - np.maximum(0, np.maximum(begin[:, None] - place, since))
            )
            high = np.minimum(high, depth[:, None] + np.abs(since))
        tokens = self._balanced(batch, low, high, rng)
        opened = self._mates(tokens < self.k)
        kind = rng.integers(self.k, size=batch)
        unlike = (kind + rng.integers(1, self.k, size=batch)) % self.k
        middle = rng.integers(self.k, size=batch)
        wrong = labels == 0
        for run, inner, outer in ((first, kind, unlike), (second, unlike, kind)):
            for step, own, shown in (
                (0, inner, np.where(wrong, outer, inner)),
                (1, middle, middle),
                (2, outer, np.where(wrong, inner, outer)),
            ):
                tokens[rows, opened[rows, run + step]] = own
                tokens[rows, run + step] = self.k + shown
        return tokens

    def _mates(self, opens: Bools) -> Tokens:
        """(batch, n): the place of what each closing bracket of a balanced shape closes, or -1."""
        level = np.cumsum(np.where(opens, 1, -1), axis=1) + ~opens
        # of one level brackets open and close in turn
        order = np.argsort(level, axis=1, kind="stable")
        mates = np.full(opens.shape, -1)
        np.put_along_axis(mates, order[:, 1::2], order[:, ::2], axis=1)
        return mates

    def word(self, token: int) -> str:
        way, kind = divmod(token, self.k)
        if self.k <= len(_BRACKETS):
            return _BRACKETS[kind][way]
        return f"{'()'[way]}{kind}"

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

"""Theorem II: one (B, k)-sparse layer on 2-Sum, or one of MoBA, whose message is a mean key."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.binomials import BinomialSum
from separatrix.core.numbers.counts import Count, Exact, Power, Sum
from separatrix.core.numbers.logs import LogSign
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task, TwoSum
from separatrix.theory.base import FAILS, Theorem, first_failing


@dataclass(frozen=True)
class BlockSizes:
    """T blocks of B tokens, k opened over all heads, c message bits per block, N values in play."""

    T: int
    B: int
    k: int
    c: int
    N: int

    @property
    def u1(self) -> int:
        """ceil(N (1 - k/T)): the largest number of values that can always be clear, plus one."""
        return -(-self.N * (self.T - self.k) // self.T)

    def traces(self, u: int) -> Count:
        """g(u): what a block of B tokens, repeats allowed, can leave on u given values:
        sum_{j<=min(u,B)} binomial(u, j), minus 1 if u = N.
        """
        if u == 0:
            return Exact(1)
        # a block holds some value, so on all N values it cannot leave the empty trace
        whole = u == self.N
        if min(u, self.B) == u:
            return (
                Power(2, u)
                if not whole
                else Exact((1 << u) - 1)
                if u <= 4096
                else BinomialSum(u, u)
            )
        # its sum starts at j = 1: the empty trace is the one more
        above = BinomialSum(u, self.B)
        return above if whole else Sum(((1, above), (1, Exact(1))))

    def compare(self) -> LogSign | None:
        """The certified sign of log2 g(u1) - c; None when every block can be opened (k >= T)."""
        if self.k >= self.T:
            return None
        if self.u1 <= self.c:
            return LogSign(-1, "integers", "at most 2^u_1 traces")
        return self.traces(self.u1).compare_bits(self.c)


class TheoremII(Theorem):
    key = "II"
    shows = FAILS
    anywhere = True
    # see `sizes`: T and N grow with n, so does u_1, and g grows with both
    larger_fail_too = True

    def sizes(self, architecture: Architecture, task: Task) -> BlockSizes | None:
        """The sizes of the only layer with memory on the task, or None where the theorem does
        not apply.

        Along a family B, k and c stay, T and N never fall, and so u_1 = ceil(N (1 - k/T)) never
        does. Nor does g: from u - 1 to u = N it gains at least one trace and loses one.
        """
        if not isinstance(task, TwoSum):
            return None
        memory = architecture.remembering
        if len(memory) != 1 or memory[0][1] != 1 or len(memory[0][0]) != 1:
            return None
        opened = memory[0][0][0].opened_blocks
        if opened is None:
            return None
        before = task.length - 1  # the last token is the query in both forms
        values = task.M if task.form == "query" else task.pairs
        seen = -(-opened.window // opened.block)
        # fills the open block and those the window touches, whose tokens are seen: any value but
        # the one the proof ends up asking for
        filler = before % opened.block > 0 or seen > 0
        blocks = before // opened.block - seen
        if blocks < 1 or values < 1 + filler:
            return None
        return BlockSizes(
            T=blocks,
            B=opened.block,
            k=opened.heads * opened.topk,
            c=opened.message_bits,
            N=values,
        )

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        s = self.sizes(architecture, task)
        if s is None:
            return None
        n, since = self.since(task, self.least(architecture, task))
        sign = s.compare()
        clear = max(0, s.u1)
        sentence = f"{s.T:,} blocks of {s.B} tokens, {s.k} opened, {s.c} bits of message each: "
        if sign is not None and sign.positive:
            sentence += (
                f"a block leaves 2^{s.traces(clear).log2_str()} traces on u_1 = {s.u1:,} of {s.N:,}"
                f" values, more than 2^{s.c} messages"
            )
            sentence += "" if n is None else f"; {since}"
        elif n is not None:
            sign = None
            sentence += (
                f"the messages could tell the traces on u_1 = {clear:,} values apart; it fails"
                f" {self.failing(n)}"
            )
        else:
            return None
        numbers = {"T": s.T, "B": s.B, "k": s.k, "c": s.c, "values": s.N, "u1": clear}
        status = "FAILS" if sign else "OPEN"
        return self.verdict(architecture, task, status, sentence, n=n, numbers=numbers, sign=sign)

    def least(self, architecture: Architecture, task: Task) -> Task | None:
        """The smallest task of the family at which the theorem bites; None if none up to 10^12."""

        def bites(larger: Task) -> bool:
            sizes = self.sizes(architecture, larger)
            sign = sizes.compare() if sizes is not None else None
            return sign is not None and sign.positive

        return first_failing(task, bites)

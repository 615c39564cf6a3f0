"""The line protocol of Theorems VI and VII: L-SeqComp, any number of reading layers.

    z_L | z_{L-1} | ... | z_3 | z_2 and the first m-t entries of z_1 | the rest of z_1 | z_0 | w

Stage 0 is group 0; stage j is reading layer j and then group j. The prompt is cut where the proofs
cut it (theory.md, section 11, the model used). At every cut, and only there, messages are bounded:

- c_j, what the bounded layers of group j carry over the cut: `caches[j]` values;
- rho_j, what a later token takes in reading layer j from all before the cut once its query is
  given: `reads[j-1]` values. Accumulators stream: after the next part, rho_j is a function of rho_j
  before it, of the query and of the keys in the part.

Everything else is free: a token knows all that its own part tells up to itself (causality), and
message functions are arbitrary. So every model of the theorems is such a protocol.

R = L-1 reading layers: Theorem VI, groups anywhere. R = L: Theorem VII, no group 0, and group 1 is
heads inside layer 1, which see tokens only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from adversaries.knowledge import Knowledge, Known
from separatrix.core.errors import SizeError
from separatrix.protocols.one_reading import Entries, Transcript
from separatrix.protocols.tables import Tables
from separatrix.tasks import SeqComp


@dataclass(frozen=True, kw_only=True)
class ManyReadingsSizes:
    """The task (m and n_1, ..., n_{L-1}), the cut in z_1 (its last t entries vary) and numbers of
    values: `reads` = 2^h_1, ..., 2^h_R, `caches` = 2^sigma_0, ..., 2^sigma_R.

    Raises SizeError unless L >= 3, R is L-1 or L, m >= 2, 1 <= t <= m, every size is at least 1
    and, where R = L, caches[0] = 1.
    """

    m: int
    branching: tuple[int, ...]
    t: int
    reads: tuple[int, ...]
    caches: tuple[int, ...]

    def __post_init__(self) -> None:
        if (
            self.L < 3
            or self.R not in (self.L - 1, self.L)
            or len(self.caches) != self.R + 1
            or self.m < 2
            or not 1 <= self.t <= self.m
            or min(*self.branching, *self.reads, *self.caches) < 1
            or (self.R == self.L and self.caches[0] != 1)
        ):
            raise SizeError(
                "a protocol of Theorem VI or VII needs L >= 3 functions, L-1 or L reading layers,"
                " one more cache than these, m >= 2, 1 <= t <= m, and at least one value per"
                f" message, and with L reading layers caches[0] = 1; these are {self}"
            )

    @property
    def L(self) -> int:
        return len(self.branching) + 1

    @property
    def R(self) -> int:
        return len(self.reads)

    @cached_property
    def shift(self) -> int:
        """How many stages later than in Theorem VI the proof knows the same: 0 or, in VII, 1."""
        return self.R - self.L + 1

    @property
    def theorem(self) -> str:
        return "VII" if self.shift else "VI"

    @cached_property
    def N(self) -> tuple[int, ...]:
        """N_0, ..., N_{L-1}."""
        return tuple(self.m * prod(self.branching[:level]) for level in range(self.L))

    @property
    def W(self) -> int:
        """How many w there are."""
        return prod(self.branching)

    def digit(self, w: int, level: int) -> int:
        """w_level, of the token that counts the tuples w with w_1 fastest."""
        return w // prod(self.branching[: level - 1]) % self.branching[level - 1]

    @property
    def task(self) -> SeqComp:
        return SeqComp(L=self.L, m=self.m, branching=self.branching)

    @property
    def lead(self) -> Entries:
        """The entries of z_1 that never vary."""
        return (0,) * (self.m - self.t)

    def parts(self, tokens: Entries) -> list[Entries]:
        """A prompt, cut: z_L, ..., z_3, z_2 and the lead of z_1, the rest of z_1, z_0, w."""
        lengths = [self.N[level - 1] for level in range(self.L, 2, -1)]
        lengths += [self.N[1] + self.m - self.t, self.t, 1, 1]
        found: list[Entries] = []
        for length in lengths:
            found.append(tokens[:length])
            tokens = tokens[length:]
        return found


def joined(parts: Sequence[Entries]) -> Entries:
    """The tokens of some parts, one after the other."""
    return tuple(token for part in parts for token in part)


class Prefix:
    """All parts of a prompt up to a cut, and what the protocol makes of them; on demand."""

    def __init__(
        self, line: ManyReadings, before: Prefix | None, tokens: Entries, later: Entries
    ) -> None:
        self.line = line
        self.before = before
        self.tokens = tokens
        self.later = later
        """The tokens behind, of which a causal protocol must know nothing."""
        self.cut: int = 0 if before is None else before.cut + 1
        self.start: int = 0 if before is None else before.start + len(before.tokens)
        self._stages: dict[int, list[Known]] = {}
        self._chains: dict[int, list[Known]] = {}
        self._caches: dict[int, int] = {}
        self._reads: dict[tuple[int, Known], int] = {}
        self._next: dict[tuple[Entries, Entries], Prefix] = {}

    def then(self, tokens: Entries, later: Entries = ()) -> Prefix:
        """This prefix with one more part."""
        key = (tokens, later if self.line.looks_ahead else ())
        found = self._next.get(key)
        if found is None:
            found = self._next[key] = type(self)(self.line, self, tokens, later)
        return found

    @property
    def parts(self) -> list[Entries]:
        """All parts up to the cut."""
        return [] if self.before is None else [*self.before.parts, self.tokens]

    def stage(self, j: int) -> list[Known]:
        """e_j of the tokens of the last part: what is known there after stage j."""
        found = self._stages.get(j)
        if found is None:
            found = self._stages[j] = self._stage(j)
        return found

    def _stage(self, j: int) -> list[Known]:
        before = self._previous()
        grouped = self.line.grouped(j)
        cache = before.cache(j)
        found: list[Known] = []
        for i, token in enumerate(self.tokens):
            # a group hands on its inputs; a reading layer alone hands on the keys
            earlier: Any = ()
            below: Any = ()
            read = 0
            if i:
                earlier = found[-1] if grouped else self._chain(j - 1)[i - 1] if j else ()
            if j:
                below = self.stage(j - 1)[i]
                read = before.read(j, below)
            found.append(self._know(j, i, token, below, cache, read, earlier))
        return found

    def _know(
        self, j: int, i: int, token: int, below: Any, cache: int, read: int, earlier: Any
    ) -> Known:
        """What is known at the i-th token after stage j."""
        return self.line.knowledge(j, self.start + i, token, below, cache, read, earlier)

    def _chain(self, j: int) -> list[Known]:
        """e_j of the tokens of the last part up to each of them."""
        found = self._chains.get(j)
        if found is None:
            found = self._chains[j] = []
            for known in self.stage(j):
                last = found[-1] if found else ()
                found.append(self.line.knowledge(-1, known.place, known.token, known, last))
        return found

    def cache(self, j: int) -> int:
        """c_j: what group j carries over the cut."""
        if self.before is None or self.line.sizes.caches[j] == 1:
            return 0
        found = self._caches.get(j)
        if found is None:
            found = self._caches[j] = self._cache(j, self.before)
        return found

    def _cache(self, j: int, before: Prefix) -> int:
        # heads inside layer 1 (VII) see what comes into it, a group also what was read
        seen = self.stage(j)[-1] if self.line.grouped(j) else self._chain(j - 1)[-1]
        told = (before.cache(j),)
        return self.line.tables(f"cache {j}", (self.cut, seen), told, self.line.sizes.caches[j])

    def read(self, j: int, query: Known) -> int:
        """rho_j: what a query takes in reading layer j from all tokens up to the cut."""
        if self.before is None or self.line.sizes.reads[j - 1] == 1:
            return 0
        found = self._reads.get((j, query))
        if found is None:
            found = self._reads[j, query] = self._read(j, query, self.before)
        return found

    def _read(self, j: int, query: Known, before: Prefix) -> int:
        keys = self._chain(j - 1)[-1]
        told = (before.read(j, query),)
        size = self.line.sizes.reads[j - 1]
        return self.line.tables(f"read {j}", (self.cut, query, keys), told, size)

    def _previous(self) -> Prefix:
        assert self.before is not None
        return self.before


class ManyReadings:
    """A protocol of these sizes with these message functions.

    Messages: `cache j` from (cut, what came into the group), told c_j before; `read j` from (cut,
    query, keys of the part), told rho_j before; `answer` from what w knows at the end.
    """

    prefix: type[Prefix] = Prefix
    looks_ahead = False
    """Whether a prefix depends on what stands behind it, which is against the rules."""

    def __init__(self, sizes: ManyReadingsSizes, tables: Tables[int]) -> None:
        self.sizes = sizes
        self.tables = tables
        self.knowledge = Knowledge()
        self.empty = self.prefix(self, None, (), ())

    def grouped(self, j: int) -> bool:
        """Whether stage j ends with a group that may stand behind its reading layer."""
        return j >= 2 * self.sizes.shift

    def along(self, prefix: Prefix, parts: Sequence[Entries], count: int) -> Prefix:
        """A prefix with the first `count` of the parts that follow it."""
        return self.cuts(prefix, parts, count)[-1] if count else prefix

    def cuts(self, prefix: Prefix, parts: Sequence[Entries], count: int) -> list[Prefix]:
        """A prefix with the first, the first two, ... and the first `count` of the parts that
        follow it.
        """
        before: list[Entries] = []
        if self.looks_ahead:
            # from the prompt's start, as what comes later matters to every part
            before = prefix.parts
            prefix = self.empty
        every = [*before, *parts]
        found: list[Prefix] = []
        for number in range(len(before) + count):
            later = joined(every[number + 1 :]) if self.looks_ahead else ()
            prefix = prefix.then(every[number], later)
            found.append(prefix)
        return found[len(before) :]

    def run(self, tokens: Entries) -> Transcript:
        """All that w gets of a prompt, and the answer."""
        parts = self.sizes.parts(tokens)
        whole = self.along(self.empty, parts, len(parts))
        known = whole.stage(self.sizes.R)[0]
        answer = self.tables("answer", known, (), self.sizes.N[-1])
        return Transcript(known.plain(), answer)

"""Token by token models with any number of reading layers are protocols: recurrent groups as
automata, reading layers as sums modulo 2^h, everything else arbitrary.

Each model is written down twice, as it runs over the prompt and as messages, and both must agree on
every prompt tried. So the protocols of Theorems VI and VII forbid no model what it can do, and the
adversaries refute models.
"""

from __future__ import annotations

from collections.abc import Hashable
from random import Random
from typing import Any

import pytest
from adversaries.knowledge import Known
from adversaries.many_readings import ManyReadings, ManyReadingsSizes
from adversaries.many_steps import Adversary
from adversaries.prices import Choice
from adversaries.vi_adversary import AdversaryVI
from adversaries.vii_adversary import AdversaryVII

from separatrix.protocols.one_reading import Entries
from separatrix.protocols.tables import random_tables, within

VI = ManyReadingsSizes(m=2, branching=(1, 2), t=1, reads=(2, 3), caches=(2, 3, 2))
VII = ManyReadingsSizes(m=2, branching=(1, 2), t=2, reads=(2, 3, 2), caches=(1, 2, 3, 2))
VI_4 = ManyReadingsSizes(m=2, branching=(1, 1, 2), t=1, reads=(2, 2, 2), caches=(2, 2, 2, 2))
WIDE = 1 << 30
"""How many values a thought has: enough that two are never alike by chance."""


class Model:
    """Layers, keys, values and recurrences of one seed: any function of what they are given."""

    def __init__(self, sizes: ManyReadingsSizes, seed: int) -> None:
        self.sizes = sizes
        self._tables = random_tables(seed)

    def any(self, name: str, size: int, *known: Hashable) -> int:
        return self._tables(name, known, (), size)

    def thinks(self, j: int, below: int, read: int, state: int) -> int:
        """What a token knows after stage j."""
        return self.any(f"think {j}", WIDE, below, read, state)

    def adds(self, j: int, query: int, key: int) -> int:
        """What a key adds to a query's accumulator."""
        return self.any(f"add {j}", self.sizes.reads[j - 1], query, key)

    def goes(self, j: int, state: int, below: int, read: int) -> int:
        """The next state of group j; heads inside layer 1 (VII) do not see what was read."""
        seen = read if j >= 2 * self.sizes.shift else 0
        return self.any(f"go {j}", self.sizes.caches[j], state, below, seen)

    def answer(self, tokens: Entries) -> int:
        """As a model runs, layer by layer."""
        known = [self.any("token", WIDE, at, token) for at, token in enumerate(tokens)]
        for j in range(self.sizes.R + 1):
            state = 0
            after: list[int] = []
            for at, below in enumerate(known):
                read = 0
                if j:
                    keys = known[: at + 1]
                    read = sum(self.adds(j, below, key) for key in keys) % self.sizes.reads[j - 1]
                after.append(self.thinks(j, below, read, state))
                state = self.goes(j, state, below, read)
            known = after
        return self.any("answer", self.sizes.N[-1], known[-1])

    # as messages: what a model thinks, from all that is known

    def __call__(self, name: str, known: Any, told: tuple[int, ...], size: int) -> int:
        kind, _, number = name.partition(" ")
        if kind == "answer":
            return self.any("answer", size, self.thought(known))
        j = int(number)
        if kind == "read":
            _, query, keys = known
            asks = self.thought(query)
            added = sum(self.adds(j, asks, self.thought(key)) for key in chain(keys))
            return (told[0] + added) % size
        _, seen = known
        return self.states(j, told[0], seen)[-1]

    def thought(self, known: Known) -> int:
        """e_j as the model has it."""
        j = known.parts[0]
        if not j and self.sizes.shift:
            token = self.any("token", WIDE, known.place, known.token)
            return self.thinks(0, token, 0, 0)
        below, read = self.inputs(known)
        earlier = known.parts[-1]
        state = known.cache if earlier == () else self.states(j, known.cache, earlier)[-1]
        return self.thinks(j, below, read, state)

    def inputs(self, known: Known) -> tuple[int, int]:
        """What came into stage j at a token, and what the token read there."""
        j = known.parts[0]
        if not j:
            return self.any("token", WIDE, known.place, known.token), 0
        below = self.thought(known.below)
        keys = [below, *(self.thought(key) for key in before(known))]
        return below, (known.read + sum(self.adds(j, below, key) for key in keys)) % (
            self.sizes.reads[j - 1]
        )

    def states(self, j: int, state: int, last: Known) -> list[int]:
        """Group j's states over a part, from the one at the cut."""
        found = [state]
        for known in reversed(chain(last)):
            # the chain of a group holds e_j; that of heads inside layer 1 holds e_0
            own = known.parts[0] == j
            below, read = self.inputs(known) if own else (self.thought(known), 0)
            found.append(self.goes(j, found[-1], below, read))
        return found


def chain(last: Known) -> list[Known]:
    """What is known at a token and at all before it in its part, the last one first."""
    found: list[Known] = []
    link: Any = last
    while link != ():
        # keys are links of their own, which hold what is known
        found.append(link.below if link.parts[0] < 0 else link)
        link = link.parts[-1]
    return found


def before(known: Known) -> list[Known]:
    """e_{j-1} of the tokens before this one in its part."""
    earlier = known.parts[-1]
    if earlier == ():
        return []
    return [one.below if one.parts[0] == known.parts[0] else one for one in chain(earlier)]


def prompts(sizes: ManyReadingsSizes, count: int) -> list[Entries]:
    random = Random(3)
    found: list[Entries] = []
    for _ in range(count):
        row = [random.randrange(n) for n in reversed(sizes.N) for _ in range(n)]
        found.append((*row, random.randrange(sizes.m), random.randrange(sizes.W)))
    return found


@pytest.mark.parametrize("sizes", [VI, VII, VI_4], ids=["VI", "VII", "VI, L = 4"])
@pytest.mark.parametrize("seed", range(2))
def test_a_model_is_a_protocol(sizes: ManyReadingsSizes, seed: int) -> None:
    model = Model(sizes, seed)
    line = ManyReadings(sizes, within(model))
    for tokens in prompts(sizes, 6):
        assert line.run(tokens).answer == model.answer(tokens)


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        (
            AdversaryVI,
            ManyReadingsSizes(m=2, branching=(1, 2), t=2, reads=(1, 2), caches=(2, 1, 1)),
        ),
        (
            AdversaryVII,
            ManyReadingsSizes(m=2, branching=(1, 2), t=1, reads=(1, 1, 2), caches=(1, 1, 2, 1)),
        ),
    ],
)
def test_the_adversaries_refute_models(kind: type[Adversary], sizes: ManyReadingsSizes) -> None:
    random = Random(0)
    threes = [tuple(random.randrange(4) for _ in range(4)) for _ in range(64)]
    model = Model(sizes, 1)
    line = ManyReadings(sizes, within(model))
    found = kind(line, Choice(contents=(1, 2)), [threes, [(0, 1), (1, 0)]]).play().collision
    assert model.answer(found.first) == model.answer(found.second)
    assert found.right[0] != found.right[1]

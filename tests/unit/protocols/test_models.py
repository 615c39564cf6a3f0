"""Token by token models are protocols: recurrent groups as automata, reading layers as sums modulo
2^h, everything else arbitrary.

Each model is written down twice, as it runs over the prompt and as messages, and both must agree on
every prompt tried. So the protocols forbid no model of Theorems III and IV what it can do, and the
adversaries refute models.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adversaries.iv_adversary import adversary_iv
from adversaries.two_readings import TwoReadings, TwoReadingsSizes

from separatrix.protocols.iii_adversary import adversary_iii
from separatrix.protocols.one_reading import Entries, OneReading, OneReadingSizes
from separatrix.protocols.tables import random_tables, within


class Model:
    """Position-wise functions, keys, values and recurrences of one seed: any function of what it
    is given.
    """

    def __init__(self, sizes: Any, seed: int) -> None:
        self.sizes = sizes
        self._tables = random_tables(seed)
        self.cut = sizes.N_1 + sizes.m - sizes.t

    def f(self, tag: int, size: int, *known: Any) -> int:
        return self._tables("any", (tag, *known), (), size)

    def stream(self, tag: int, size: int, state: int, inputs: list[Any]) -> list[int]:
        """The states of an automaton, the first one included."""
        states = [state]
        for x in inputs:
            states.append(self.f(tag, size, states[-1], x))
        return states

    def attend(self, tag: int, size: int, query: Any, keys: list[Any], start: int = 0) -> int:
        """A reading layer's accumulator: what each key adds to it is any function of the query
        and the key.
        """
        return (start + sum(self.f(tag, size, query, key) for key in keys)) % size


class One(Model):
    """One reading layer: x_j = (token, place, first cache before it), y_j = (x_j, what it read),
    then the last group.
    """

    def inputs(self, tokens: Entries, start: int = 0, state: int = 0) -> list[Any]:
        states = self.stream(
            1, self.sizes.caches_0, state, [(token, start + j) for j, token in enumerate(tokens)]
        )
        return [
            (token, start + j, state)
            for j, (token, state) in enumerate(zip(tokens, states, strict=False))
        ]

    def answer(self, tokens: Entries) -> int:
        """As a model runs."""
        x = self.inputs(tokens)
        y = [(x[j], self.attend(2, self.sizes.reads, x[j], x[: j + 1])) for j in range(len(x))]
        return self.f(4, self.sizes.N_1, y[-1], self.stream(3, self.sizes.caches_1, 0, y[:-1])[-1])

    def __call__(self, name: str, known: Any, told: tuple[int, ...], size: int) -> int:
        """As messages."""
        s = self.sizes
        cut = self.cut
        if size == 1:
            return 0
        if name == "first":
            return self.stream(1, size, 0, [(token, j) for j, token in enumerate(known)])[-1]
        if name == "carried":
            return self.stream(
                1, size, told[0], [(token, cut + j) for j, token in enumerate(known)]
            )[-1]
        if name == "early":
            x = self.inputs(known)
            return self.stream(
                3, size, 0, [(x[j], self.attend(2, s.reads, x[j], x[: j + 1])) for j in range(cut)]
            )[-1]
        if name in ("entry reads", "z_0 reads", "w reads"):
            *later, A = known
            tokens, start = (later[0], cut) if name == "entry reads" else (tuple(later), cut + s.t)
            return self.attend(2, size, self.inputs(tokens, start, told[0])[-1], self.inputs(A))
        x = self.inputs((*known[0], *known[1:]), cut, told[0])
        if name == "late":
            y = [
                (x[j], self.attend(2, s.reads, x[j], x[: j + 1], told[2 + j]))
                for j in range(len(x))
            ]
            return self.stream(3, size, told[1], y)[-1]
        return self.f(4, size, (x[-1], self.attend(2, s.reads, x[-1], x, told[2])), told[1])


class Two(Model):
    """Two reading layers, in the first an automaton over the tokens too: x_j = (token, place,
    its state, what j read), then as in `One`.
    """

    def first_layer(
        self, tokens: Entries, start: int = 0, state: int = 0, reads: tuple[int, ...] = ()
    ) -> list[Any]:
        raw = [(token, start + j) for j, token in enumerate(tokens)]
        states = self.stream(1, self.sizes.caches_1, state, raw)
        s = self.sizes
        reads = reads or (0,) * len(raw)
        return [
            (raw[j], states[j], self.attend(2, s.reads_1, raw[j], raw[: j + 1], reads[j]))
            for j in range(len(raw))
        ]

    def last_cache(self, x: list[Any], state: int, reads: tuple[int, ...] = ()) -> int:
        reads = reads or (0,) * len(x)
        y = [
            (x[j], self.attend(3, self.sizes.reads_2, x[j], x[: j + 1], reads[j]))
            for j in range(len(x))
        ]
        return self.stream(4, self.sizes.caches_2, state, y)[-1]

    def answer(self, tokens: Entries) -> int:
        """As a model runs."""
        x = self.first_layer(tokens)
        return self.f(
            5,
            self.sizes.N_1,
            x[-1],
            self.attend(3, self.sizes.reads_2, x[-1], x),
            self.last_cache(x[:-1], 0),
        )

    def w_output(self, z_0: int, w: int, carried: int, gathered: int) -> Any:
        s = self.sizes
        at = self.cut + self.sizes.t
        own = (w, at + 1)
        state = self.stream(1, s.caches_1, carried, [(z_0, at)])[-1]
        return own, state, self.attend(2, s.reads_1, own, [(z_0, at), own], gathered)

    def __call__(self, name: str, known: Any, told: tuple[int, ...], size: int) -> int:
        """As messages."""
        s = self.sizes
        cut = self.cut

        def raw(tokens: Entries, start: int = 0) -> list[tuple[int, int]]:
            return [(token, start + j) for j, token in enumerate(tokens)]

        if size == 1:
            return 0
        match name:
            case "first":
                return self.stream(1, size, 0, raw(known))[-1]
            case "carried":
                return self.stream(1, size, told[0], raw(known, cut))[-1]
            case "early":
                return self.last_cache(self.first_layer(known), 0)
            case "entry reads":
                return self.attend(2, size, (known[1], cut + known[0]), raw(known[2]))
            case "z_0 reads" | "w reads":
                return self.attend(
                    2, size, (known[0], cut + s.t + (name == "w reads")), raw(known[1])
                )
            case "gathered":
                return self.attend(2, size, (known[0], cut + s.t + 1), raw(known[1], cut), told[0])
            case "entry reads again":
                reads = (0,) * (len(known[0]) - 1) + (
                    told[1],
                )  # its own query needs its own read only
                return self.attend(
                    3,
                    size,
                    self.first_layer(known[0], cut, told[0], reads)[-1],
                    self.first_layer(known[1]),
                )
            case "z_0 reads again":
                reads = (0,) * s.t + (told[1],)
                return self.attend(
                    3,
                    size,
                    self.first_layer((*known[0], known[1]), cut, told[0], reads)[-1],
                    self.first_layer(known[2]),
                )
            case "w reads again":
                return self.attend(
                    3, size, self.w_output(known[0], known[1], *told), self.first_layer(known[2])
                )
            case "late":
                outputs = told[2 : s.t + 3]
                again = told[s.t + 3 :]
                return self.last_cache(
                    self.first_layer((*known[0], known[1]), cut, told[0], outputs), told[1], again
                )
        B, z_0, w = known
        first, late, gathered, again, *outputs = told
        x = self.first_layer((*B, z_0), cut, first, tuple(outputs))
        x.append(self.w_output(z_0, w, self("carried", B, (first,), s.caches_1), gathered))
        return self.f(5, size, x[-1], self.attend(3, s.reads_2, x[-1], x, again), late)


ONE = [
    OneReadingSizes(m=3, n_1=1, t=3, caches_0=2, reads=3, caches_1=2),
    OneReadingSizes(m=4, n_1=1, t=2, caches_0=3, reads=5),
    OneReadingSizes(m=2, n_1=3, t=2, caches_0=3, reads=4, caches_1=2),
]
TWO = [
    TwoReadingsSizes(m=3, n_1=2, t=1, reads_1=2, reads_2=4),
    TwoReadingsSizes(m=3, n_1=2, t=2, reads_1=2, reads_2=3, caches_1=2, caches_2=3),
    TwoReadingsSizes(m=2, n_1=3, t=2, reads_1=1, reads_2=3, caches_1=3, caches_2=3),
]


def prompts(sizes: Any, count: int = 60) -> list[Entries]:
    """Instances with z_0 in B's places; the first entries of z_1 are drawn too."""
    tokens = sizes.task.sample(count, np.random.default_rng(0)).tokens
    tokens[:, -2] = sizes.m - 1 - tokens[:, -2] % sizes.t
    return [tuple(int(token) for token in row) for row in tokens]


@pytest.mark.parametrize("sizes", ONE, ids=str)
def test_models_of_iii_are_protocols(sizes: OneReadingSizes) -> None:
    for seed in range(4):
        model = One(sizes, seed)
        line = OneReading(sizes, within(model))
        answers = [model.answer(tokens) for tokens in prompts(sizes)]
        assert [line.run(tokens).answer for tokens in prompts(sizes)] == answers
        assert len(set(answers)) > 1


@pytest.mark.parametrize("sizes", TWO, ids=str)
def test_models_of_iv_are_protocols(sizes: TwoReadingsSizes) -> None:
    for seed in range(4):
        model = Two(sizes, seed)
        line = TwoReadings(sizes, within(model))
        answers = [model.answer(tokens) for tokens in prompts(sizes)]
        assert [line.run(tokens).answer for tokens in prompts(sizes)] == answers
        assert len(set(answers)) > 1


def test_a_model_of_iii_is_refuted_by_its_own_run() -> None:
    """m = 4, t = 2: 16 > 3 and 4^2 > 3 * 5."""
    for seed in range(4):
        model = One(ONE[1], seed)
        found = adversary_iii(OneReading(ONE[1], model), r=2)
        assert model.answer(found.first) == model.answer(found.second)
        assert found.right == tuple(ONE[1].task.answer(np.array([found.first, found.second])))


@pytest.mark.slow
def test_a_model_of_iv_is_refuted_by_its_own_run() -> None:
    """m = 3, n_1 = 2, t = 1: 3 > 2 and 6^4 > (2 * 4)^2 2^(3+1)."""
    model = Two(TWO[0], 0)
    found = adversary_iv(TwoReadings(TWO[0], model), r=2, q=3, g=1)
    assert model.answer(found.first) == model.answer(found.second)
    assert found.right == tuple(TWO[0].task.answer(np.array([found.first, found.second])))

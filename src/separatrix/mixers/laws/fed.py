"""The law on what models feed: tokens that repeat, zeros, one-hots, outliers and copies of earlier
stretches, at lengths, batches, places and threads that each run draws (`drawing` gives its seed).
And the same on what trained layers of a model get of given prompts.
"""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from separatrix.mixers import Mixer
from separatrix.mixers.laws import tools
from separatrix.mixers.laws.bounds import finite_in
from separatrix.mixers.laws.formats import agree_in_float32
from separatrix.mixers.laws.monotone import moves_at

SEQUENCES = ((4, 180, 200), (1, 1110, 1250))
"""Rows on which forms are compared, and from how many to how many tokens they have."""
EVERY = 70
"""Every length below is compared, so all remainders of a chunk of 64."""
LENGTHS = ((70, 200, 6), (201, 599, 8), (600, 1100, 2))
"""Further lengths: from, to, how many are drawn."""
CUTS = 6
AFTER = 8
"""Places where the state is moved, and how many tokens are streamed from each."""
FUTURES = (66, 120)
"""Tokens of the sequence whose future is changed at every place."""
ROWS = 4
"""Prompts on which forms are compared."""
GRADED = 120
"""Tokens of prompts over which gradients and formats are compared."""
TOKENS_REPEATED = 6
"""Tokens of prompts that are repeated where a state should only move one way."""
THREADS = (2, 3, 4)
JITTER = 1e-12
"""A relative change of the inputs. Where it moves outputs, as a choice between equal scores does
and a quotient of two numbers near 0, forms may differ by as much.
"""
AMPLIFIED = 30.0


class Fed(NamedTuple):
    """Sequences of tokens, and what each token is called."""

    x: Tensor
    """(batch, tokens, width) in float64."""
    said: list[list[str]]

    def tokens(self, row: int, count: int) -> str:
        """The first tokens of a row by their names."""
        said = self.said[row][:count]
        return " ".join(said if count <= 12 else [*said[:3], "...", *said[-6:]])


def fed(mixer: Mixer, batch: int, tokens: int, draw: random.Random) -> Fed:
    """Drawn sequences of `a`, `b`, `c`, normal tokens that come again, `A` an outlier, `0`, `e5` a
    one-hot, and `~`, one that comes once.
    """
    noise = tools.inputs(mixer, batch, tokens, draw.randrange(1 << 30))
    words = tools.vocabulary(mixer, draw)
    said = [_row(list(words), tokens, draw, row) for row in range(batch)]
    rows = [[words.get(w, noise[r, t]) for t, w in enumerate(row)] for r, row in enumerate(said)]
    return Fed(torch.stack([torch.stack(row) for row in rows]), said)


def _row(words: list[str], tokens: int, draw: random.Random, row: int) -> list[str]:
    hots = [word for word in words if word[0] == "e"]
    some = draw.sample(words, 2)
    # all words and noise; two words; one-hots; one word again and again, then a new one
    kinds = ([*words, "~", "~"], some, [*hots, "0"], [some[0]] * 9 + ["~"])
    said: list[str] = []
    while len(said) < tokens:
        if said and draw.random() < 0.3:
            said.append(said[-1] if said[-1] != "~" else "a")
        elif len(said) > 4 and draw.random() < 0.1:
            start = draw.randrange(len(said) - 2)
            said += [w if w != "~" else "b" for w in said[start : start + 6]]
        else:
            said.append(draw.choice(kinds[row % len(kinds)]))
    return said[:tokens]


def holds_when_fed(mixer: Mixer) -> None:
    """On tokens of a small vocabulary, zeros, one-hots and outliers, which repeat, at drawn lengths
    and threads, `step`, `forward` and `last` agree, for rows alone and together, states of another
    process go on, gradients agree, and in every format no future token moves an earlier output, at
    any place.
    """
    draw = tools.draws("fed")
    for rows, low, high in SEQUENCES:
        _forms(mixer, fed(mixer, rows, draw.randint(low, high), draw), draw)
    one = fed(mixer, 1, draw.randint(*FUTURES), draw)
    _gradients(mixer, one)
    # what no token of it equals: each change is one
    _futures(mixer, one, tools.inputs(mixer, 1, one.x.shape[1], draw.randrange(1 << 30)))


def holds_on_prompts(mixer: Mixer, prompts: Fed) -> None:
    """On what trained layers get of given prompts, `step`, `forward` and `last` agree, for rows
    alone and together, states of another process go on, no future token moves an earlier output,
    gradients agree, all is finite, and in float32 what float64 gives; a monotone state is so at
    their tokens.

    Takes two prompts or more.
    """
    draw = tools.draws("prompts")
    x, said = prompts
    tokens = draw.randint(*FUTURES)
    _forms(mixer, Fed(x[:ROWS], said[:ROWS]), draw)
    _futures(mixer, Fed(x[:1, :tokens], said[:1]), x[1:2, :tokens])
    few = x[:2, :GRADED]
    _gradients(mixer, Fed(few, said))
    for name, half in tools.casts(mixer):
        finite_in(half, few, name)
    if mixer.mechanism.monotone:
        each = list(itertools.product(range(len(x)), range(x.shape[1])))
        some = draw.sample(each, min(TOKENS_REPEATED, len(each)))
        moves_at(mixer, {said[row][t]: x[row, t][None] for row, t in some})
    agree_in_float32(mixer, few)


@torch.no_grad()
def _futures(mixer: Mixer, fed: Fed, other: Tensor) -> None:
    """All tokens from each place on become those of `other`; what comes before must stay."""
    places = range(1, fed.x.shape[1])
    tools.keeps_past_in_all(
        mixer, fed.x, other, places, lambda cut: f", tokens {fed.tokens(0, cut)}"
    )


def _near(mixer: Mixer, x: Tensor, steps: Tensor) -> tools.Near:
    """The outputs of `step`. Sums that cancel lose a digit more."""
    return tools.Near(
        run=partial(tools.steps, mixer),
        x=x,
        y=steps,
        tolerance=10 * tools.asked().tolerance,
        jitter=JITTER,
        amplified=AMPLIFIED,
    )


def _gradients(mixer: Mixer, fed: Fed) -> None:
    """With gradients, too, forms agree, and so do these, at tokens that a jitter does not move. At
    a kink, as where two numbers are equal, each form may take another slope: there the gradients of
    both jump, those of one that is wrong alone.
    """
    near = _near(mixer, fed.x, tools.steps(mixer, fed.x).detach())
    some = near.steady()
    jittered = fed.x + JITTER * tools.normal(*fed.x.shape, seed=3)
    (y, at, beside), (z, their, their_beside) = (
        (*tools.run(mixer, fed.x, some, form), tools.run(mixer, jittered, some, form)[1])
        for form in (type(mixer).__call__, tools.steps)
    )
    said = f"tokens {fed.tokens(0, fed.x.shape[1])}: with gradients,"
    for found in (y, z):
        tools.demand(near.excess(found) == 0, f"{said} outputs of forward and step differ")
    scale = tools.largest(their.values())
    for name, gradient in at.items():
        jumps = (
            tools.largest([a[name] - b[name]]) for a, b in ((at, beside), (their, their_beside))
        )
        what = f"{said} the gradients by {name} of forward and step"
        with tools.asking(tolerance=10 * tools.asked().tolerance):
            tools.close(gradient, their[name], what, scale, AMPLIFIED * min(jumps))


@torch.no_grad()
def _forms(mixer: Mixer, fed: Fed, draw: random.Random) -> None:
    x = fed.x
    places = range(1, x.shape[1] - AFTER)
    cuts = sorted(draw.sample(places, min(CUTS, len(places))))
    unused = copy.deepcopy(mixer)
    # in another process, so that no store of this one can help
    steps, states = tools.streamed_elsewhere(mixer, x, cuts)
    near = _near(mixer, x, steps)

    def excess(case: _Case) -> float:
        form, rows, tokens, threads = case
        with on_threads(threads):
            part = x[rows, :tokens]
            y = mixer(part) if form == "forward" else mixer.last(part)[:, None]
        return near.excess(y, rows, tokens - y.shape[1])

    lengths = [*range(1, min(EVERY, x.shape[1])), x.shape[1]]
    for low, high, many in LENGTHS:
        # every other one is odd
        drawn = [draw.randint(low, high) | i % 2 for i in range(many)]
        lengths += [t for t in drawn if t < x.shape[1]]
    for place, tokens in enumerate(lengths):
        rows = draw.sample(range(len(x)), min(len(x), draw.choice((1, 1, 2, 4))))
        # three calls on more threads, which wait for each other longer than they compute
        threads = draw.choice(THREADS) if place % 20 == 9 else 1
        for form in ("forward", "last")[: 2 if place % 3 == 0 else 1]:
            if excess(case := _Case(form, rows, tokens, threads)) > 0:
                _told(fed, case, excess)
    for cut, state in states.items():
        rest, _ = tools.stream(copy.deepcopy(unused), x[:, cut : cut + AFTER], state, cut)
        if (gap := near.excess(rest, start=cut)) > 0:
            raise tools.LawBroken(
                f"cut after {cut} tokens ({fed.tokens(0, cut)}): outputs of step continued from the"
                f" state of another process and in one pass differ by {gap:.3g} more than rounding"
            )


class _Case(NamedTuple):
    form: str
    rows: list[int]
    tokens: int
    threads: int


def _told(fed: Fed, case: _Case, excess: Callable[[_Case], float]) -> None:
    """Raises LawBroken that shows the fewest threads, tokens and rows, of those tried, that differ
    still.
    """
    fewer = [t for t in (*range(1, 13), 20, 40, 80, 160, 320, 640) if t < case.tokens]
    smaller = [
        case._replace(rows=[row], tokens=tokens, threads=threads)
        for threads in sorted({1, case.threads})
        for tokens in (*fewer, case.tokens)
        for row in case.rows
    ]
    case = next((c for c in smaller if excess(c) > 0), case)
    on = f" on {case.threads} threads" if case.threads > 1 else ""
    raise tools.LawBroken(
        f"T={case.tokens}, batch {len(case.rows)}{on}, tokens"
        f" {fed.tokens(case.rows[0], case.tokens)}: outputs of {case.form} and step differ by"
        f" {excess(case):.3g} more than rounding"
    )


@contextmanager
def on_threads(count: int) -> Iterator[None]:
    """PyTorch on so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)

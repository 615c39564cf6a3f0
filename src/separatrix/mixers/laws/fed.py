"""The law on what models feed: tokens that repeat, zeros, one-hots, outliers and copies of earlier
stretches, at lengths, batches, places and threads that each run draws (`drawing` gives its seed).
And the same on what trained layers of a model get of given prompts.
"""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

from separatrix.mixers import Mixer
from separatrix.mixers.laws.bounds import finite_in
from separatrix.mixers.laws.formats import agree_in_float32
from separatrix.mixers.laws.monotone import moves_at
from separatrix.mixers.laws.tools import (
    FORMATS,
    LawBroken,
    agree,
    draws,
    formats_asked,
    inputs,
    stream,
    streamed_elsewhere,
    tolerance,
    vocabulary,
    within,
)

LONGEST = (1150, 1400)
"""The longest sequence has so many tokens."""
EVERY = 40
"""Every length below is compared."""
LENGTHS = ((41, 200, 8), (201, 599, 16), (600, 1100, 3))
"""Further lengths: from, to, how many are drawn."""
CUTS = 12
AFTER = 8
"""Places where the state is moved, and how many tokens are streamed from each."""
FUTURES = (66, 120)
"""Tokens of the sequence whose future is changed at every place."""
ROWS = 16
"""Sequences in one call, at most."""
ROWS_FED = 4
"""Sequences on which forms are compared."""
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
ULPS = 4
"""Roundings of a format by which a change of the future may move earlier outputs."""


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
    noise = inputs(mixer, batch, tokens, draw.randrange(1 << 30))
    words = vocabulary(mixer, draw)
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
    and threads, `step`, `forward` and `last` agree, states of another process go on, rows of drawn
    batches are alone, and in every format no future token moves an earlier output, at any place.
    """
    with torch.no_grad():
        draw = draws("fed")
        _forms(mixer, fed(mixer, ROWS_FED, draw.randint(*LONGEST), draw), draw)
        draw = draws("fed rows")
        batches = [*range(2, 13), *(draw.randint(13, 70) for _ in range(2))]
        _rows(mixer, fed(mixer, max(batches), draw.randint(5, 24), draw), batches, draw)
        for name in ("float64", *formats_asked()):
            draw = draws(f"fed {name}")
            one = fed(mixer, 1, draw.randint(*FUTURES), draw)
            # what no token of it equals: each change is one
            other = inputs(mixer, 1, one.x.shape[1], draw.randrange(1 << 30))[0]
            _futures(mixer, name, one, other, draw)


def holds_on_prompts(mixer: Mixer, prompts: Fed) -> None:
    """On what trained layers get of given prompts, `step`, `forward` and `last` agree, states of
    another process go on, rows are alone, no future token moves an earlier output, gradients agree,
    all is finite, and in float32 what float64 gives; a monotone state is so at their tokens.

    Takes two prompts or more.
    """
    draw = draws("prompts")
    x, said = prompts
    few = x[:2, :GRADED]
    with torch.no_grad():
        _forms(mixer, Fed(x[:ROWS_FED], said[:ROWS_FED]), draw)
        short = min(x.shape[1], draw.randint(5, 24))
        _rows(mixer, Fed(x[:, :short], said), range(2, len(x) + 1), draw)
        tokens = min(x.shape[1], draw.randint(*FUTURES))
        for name in ("float64", *formats_asked()):
            _futures(mixer, name, Fed(x[:1, :tokens], said[:1]), x[1, :tokens], draw)
    graded = few.clone().requires_grad_()
    forms = {"step": lambda part: stream(mixer, part)[0], "forward": mixer}
    with tolerance(10 * within()):
        agree(mixer, graded, (few.shape[1],), forms)
    for name, dtype in formats_asked().items():
        finite_in(mixer, few, name, dtype)
    if mixer.mechanism.is_monotone:
        each = list(itertools.product(range(len(x)), range(x.shape[1])))
        some = draw.sample(each, min(TOKENS_REPEATED, len(each)))
        moves_at(mixer, {said[row][t]: x[row, t][None] for row, t in some})
    agree_in_float32(mixer, few)


def _forms(mixer: Mixer, fed: Fed, draw: random.Random) -> None:
    x = fed.x
    places = range(1, x.shape[1] - AFTER)
    cuts = sorted(draw.sample(places, min(CUTS, len(places))))
    unused = copy.deepcopy(mixer)
    # in another process, so that no store of this one can help
    steps, states = streamed_elsewhere(mixer, x, cuts)
    jitter = _Jitter(mixer, x, steps)
    lengths = [*range(1, min(EVERY, x.shape[1])), x.shape[1]]
    for low, high, many in LENGTHS:
        lengths += [t for t in (draw.randint(low, high) for _ in range(many)) if t < x.shape[1]]
    for place, tokens in enumerate(lengths):
        rows = draw.sample(range(len(x)), min(len(x), draw.choice((1, 1, 2, 4))))
        # a few calls on more threads: these are slow for small tensors
        threads = draw.choice(THREADS) if place % 9 == 4 else 1
        for form in ("forward", "last"):
            case = _Case(form, rows, tokens, threads)
            if jitter.of(mixer, case) > 0:
                _told(fed, mixer, jitter, case)
    for cut, state in states.items():
        rest, _ = stream(copy.deepcopy(unused), x[:, cut : cut + AFTER], state, cut)
        true = steps[:, cut : cut + AFTER]
        if (gap := jitter.excess(rest, true, list(range(len(x))), cut)) > 0:
            raise LawBroken(
                f"cut after {cut} tokens ({fed.tokens(0, cut)}): outputs of step continued from the"
                f" state of another process and in one pass differ by {gap:.3g} more than rounding"
            )


class _Case(NamedTuple):
    form: str
    rows: list[int]
    tokens: int
    threads: int


def _told(fed: Fed, mixer: Mixer, jitter: _Jitter, case: _Case) -> None:
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
    form, rows, tokens, threads = next((c for c in smaller if jitter.of(mixer, c) > 0), case)
    on = f" on {threads} threads" if threads > 1 else ""
    raise LawBroken(
        f"T={tokens}, batch {len(rows)}{on}, tokens {fed.tokens(rows[0], tokens)}: outputs of"
        f" {form} and step differ by {jitter.of(mixer, case):.3g} more than rounding"
    )


class _Jitter:
    """How far two forms may differ at every token: rounding, and what a change of the inputs by
    one part in 10^12 makes of the outputs of `step`, asked only where rounding does not do.
    """

    def __init__(self, mixer: Mixer, x: Tensor, steps: Tensor) -> None:
        self.mixer, self.x, self.steps = mixer, x, steps
        self.moved: Tensor | None = None
        self.scale = steps.abs().amax((1, 2), keepdim=True)

    def of(self, mixer: Mixer, case: _Case) -> float:
        """`excess` of a form's outputs for the first tokens of some rows."""
        part = self.x[case.rows, : case.tokens]
        with on_threads(case.threads):
            y = mixer(part) if case.form == "forward" else mixer.last(part)[:, None]
        start = case.tokens - y.shape[1]
        return self.excess(y, self.steps[case.rows, start : case.tokens], case.rows, start)

    def excess(self, y: Tensor, true: Tensor, rows: list[int], start: int) -> float:
        """By how much the largest difference exceeds what is allowed; 0 or less where none does."""
        # sums that cancel lose a digit more
        allowed = 10 * within() * self.scale[rows]
        gap = (y - true).abs()
        if (gap <= allowed).all():
            return 0.0
        if self.moved is None:
            self.moved = torch.stack([self._by(seed) for seed in range(4)]).amax((0, -1))
        moved = self.moved[rows, start : start + y.shape[1], None]
        over = gap - allowed - AMPLIFIED * moved
        # NaN is more than anything
        return float("inf") if over.isnan().any() else max(0.0, over.max().item())

    def _by(self, seed: int) -> Tensor:
        noise = torch.randn(self.x.shape, generator=torch.Generator().manual_seed(seed)).double()
        other, _ = stream(self.mixer, self.x + JITTER * noise * self.x.abs().mean())
        return (other - self.steps).abs()


def _rows(mixer: Mixer, fed: Fed, batches: Iterable[int], draw: random.Random) -> None:
    """Every row of a batch as in a batch of 1."""
    few = fed.x[:, :3]
    for batch in batches:
        row = draw.randrange(batch)
        for form, many, one in (
            ("forward", mixer(fed.x[:batch])[row], mixer(fed.x[row : row + 1])[0]),
            ("step", stream(mixer, few[:batch])[0][row], stream(mixer, few[row : row + 1])[0][0]),
        ):
            gap = (many - one).abs().max().item()
            moved = 0.0
            if not gap <= 10 * within() * one.abs().max().item():
                alone = fed.x[row : row + 1, : len(one)]
                jitter = _Jitter(mixer, alone, stream(mixer, alone)[0])
                moved = jitter.excess(many[None], one[None], [0], 0)
            if moved > 0:
                raise LawBroken(
                    f"row {row + 1} of a batch of {batch}, tokens {fed.tokens(row, len(one))}:"
                    f" outputs of {form} differ from those of the row alone by {gap:.3g}"
                )


def _futures(mixer: Mixer, name: str, fed: Fed, other: Tensor, draw: random.Random) -> None:
    """All tokens from each place on become those of `other`; what comes before must stay."""
    mixer = copy.deepcopy(mixer).to(FORMATS.get(name, torch.float64))
    x, other = fed.x[0].to(mixer._like.dtype), other.to(mixer._like.dtype)
    tokens = len(x)
    places = list(range(1, tokens))
    draw.shuffle(places)
    for start in range(0, len(places), ROWS):
        cuts = places[start : start + ROWS]
        batch = torch.stack([x, *(torch.cat([x[:cut], other[cut:]]) for cut in cuts)])
        true, *found = mixer(batch)
        for cut, y in zip(cuts, found, strict=True):
            # infinity may reach earlier outputs as NaN: 0 times it; another law forbids infinity
            if not (y.isfinite().all() and true.isfinite().all()):
                continue
            gap = (y[:cut] - true[:cut]).double().abs().amax(-1)
            rounding = torch.finfo(x.dtype).eps
            if (gap <= ULPS * rounding * true.abs().max().item()).all():
                continue
            # a quotient of two numbers near 0 magnifies what a product rounds otherwise
            noise = inputs(mixer, ROWS, tokens, draw.randrange(1 << 30)).to(x.dtype)
            moved = (mixer(x * (1 + rounding * noise)) - true).double().abs().amax((0, -1))
            if (gap > ULPS * moved[:cut]).any():
                raise LawBroken(
                    f"{name}, tokens {fed.tokens(0, cut)}: changing the tokens from {cut} on moves"
                    f" outputs of forward before them, by {gap.max():.3g}"
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

"""What is decided by flags: a start token that counts matches, and a last token that looks for a
flag. Match2 per query by a bit code, 2-Sum as a decision, and equality of two strings.

Counting. Every value has D = ceil(log2 M) bits, +-1; s = 4. Every token asks for the bits of the
value that cancels it, and the start token scores as much as a match:

    space     width   start token   token x
    value     D       .             bits of x
    partner   D       .             bits of -x
    token     1       .             1
    start     1       1             .
    own       1       .             1/4 where x = -x
    weight    1       written by attention

    K token = s (bits of x, 0)      K start = s (0, D)      Q = s (bits of -x, 1)
    V = 1 at the start token, 0 elsewhere

With c matches the start token weighs 1/(1 + c); a token that cancels itself is its own match. So
the sum of weight and own is 1, or at most 1/2 with an earlier match, and 3/4 or at most 7/12 there.

Per query one layer is enough: the logits are (weight + own, 85/128). As a decision, of a pair that
cancels the later token sees the earlier one, and the MLP takes z = weight + own:

    flag = 1 - (relu(32 z - 77/4) - relu(32 z - 93/4)) / 4

is exactly 1 up to 77/128, where both units are 0, and 0 from 93/128 on, where what they differ by
is rounded.

Looking. Keys are 8 times the flag, queries 4: a flag, which is 0 or 1, leads by 2 s^2 = 32. Values
are flags, too. The logits of the decision are (1/2, found).

Equality. A place of either string holds the address of its bit, D = ceil(log2 n) bits, and a tag
that only the first string has:

    space     width   place j of u      place i of v      token b
    place     D       bits of j         bits of i         .
    first     1       1                 -1                .
    one       1       1                 1                 .
    bit       1       .                 .                 +-1
    fetched   1       written by the attention of layer 1
    differs   1       written by the MLP of layer 1
    found     1       written by the attention of layer 2

Layer 1: K = s (place, first), Q = s (place, one), V = bit: a place of u fetches itself, and one of
v its partner. The MLP writes a flag where y = bit - fetched is 2 or -2:

    differs = (relu(2 y - 1) - relu(2 y - 3) + relu(-2 y - 1) - relu(-2 y - 3)) / 2

which is 0 for |y| <= 1/2 and 1 from 3/2 on. Layer 2 looks for it. The logits are (found, 1/2).

2-Sum per query (Match2) in one full layer with one head of dimension 3 [San23].

With phi(x) = (cos 2 pi x/M, sin 2 pi x/M) the score is c (cos cos - sin sin) = c cos(2 pi (x +
x_j)/M). It is c exactly where x + x_j = 0 mod M, and at most c cos(2 pi/M) elsewhere. A blank key
between the two, at c cos^2(pi/M), collects the weight when nothing matches: match over blank =
blank over the best other key = c sin^2(pi/M) = G.

    space     width   positions: start   x_1 .. x_n   query   embeddings: token t   start token
    circle    2       .                  .            .       phi(t)                0
    ask       1       .                  .            .       1                     0
    blank     1       .                  .            .       0                     cos^2(pi/M)
    earlier   1       0                  1            0       .                     .
    found     1       written by attention

The head, at the last token, whose token is x:

    K = (cos, sin, blank)     Q = c (cos, -sin, ask)     V = earlier

Its output y is the weight on earlier x_j. The logits are (1/4, y).

All of phi and the blank key are rounded to multiples of 2^-24, or of 2^-p in a format of p < 24
digits, so that scores are integers over 2^48. Of scores those of a match and of a few values beside
it are looked at, beyond which none is larger. c is a power of two, the smallest that keeps both
gaps, less the rounding errors of scores, at ln(8n) or more. Where the query itself can match, sin
is exactly 0 and its score has no rounding error, so it ties exactly with a true match.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from flint import arb, ctx, fmpq
from numpy.typing import NDArray

from separatrix.constructions.parts.built import (
    SCALE,
    Spaces,
    empty_model,
    mlp_after,
    put,
    recipe,
    signs,
    step,
)
from separatrix.constructions.parts.readers import Reader, readers
from separatrix.core.errors import SizeError
from separatrix.core.numbers.formats import DIGITS
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.balls import log_upper
from separatrix.proofs.softmax import Match, gamma
from separatrix.stacks.architecture import Architecture, stack
from separatrix.stacks.mechanisms import Full
from separatrix.tasks import Equality, TwoSum
from separatrix.theory.written import LARGEST_MODULUS, bits_for

OWN = 0.25
"""What a token holds that meets itself: with it the weight of the start token is 3/4 with the token
alone and at most 7/12 with another match, as it is 1 and at most 1/2 for other tokens.
"""
_BETWEEN = 85 / 128
"""Between the two, and of 7 binary digits."""

_STEEP = 32.0
"""What z is multiplied by at the threshold."""
_HALF_STEP = 2.0
"""Half of the way, so multiplied, from 1 to 0."""


@recipe(
    "match2-bits",
    TwoSum,
    takes=(
        "form=query and any M; one full layer, with ceil(log2 M) + 1 key dimensions and 1 value"
        " dimension; no positions"
    ),
)
def match2_bits(task: TwoSum, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """One full layer. Source: theory.md, section 6 (Match2, "beyond, the bit code")."""
    if task.form != "query":
        raise SizeError(f"{task.spec}: one layer answers the query form; use form=query")
    model, space, _ = _counting("match2-bits", task, architecture, layers=1)
    # logits (weight + own, 85/128)
    put(model.head.weight.T[space["weight"]].T, slice(0, 1))
    put(model.head.weight.T[space["own"]].T, slice(0, 1))
    model.head.bias[1] = _BETWEEN
    return model


@recipe(
    "pairs",
    TwoSum,
    takes=(
        "form=decision and any M; two full layers, the first with ceil(log2 M) + 1 key dimensions;"
        " no positions"
    ),
)
def pairs(task: TwoSum, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """Two full layers. Source: [San23] for Match2; theory.md, section 6."""
    if task.form != "decision":
        raise SizeError(f"{task.spec}: two layers decide over all pairs; use form=decision")
    model, space, (first, second) = _counting("pairs", task, architecture, layers=2)
    # flag = 1 - (relu(32 z - 77/4) - relu(32 z - 93/4)) / 4 with z = weight + own
    mlp = mlp_after(model, first.place)
    read = [(space["weight"], _STEEP), (space["own"], _STEEP)]
    ends = _HALF_STEP - _STEEP * _BETWEEN, -_HALF_STEP - _STEEP * _BETWEEN
    step(mlp, 0, read, ends, space["flag"], -1 / (2 * _HALF_STEP))
    mlp.down.bias[space["flag"]] = 1.0
    # whether any token holds a flag
    second.write(model, space, {"token": 1}, {"flag": 2}, "flag", "found")
    # logits (1/2, found)
    model.head.bias[0] = 0.5
    put(model.head.weight.T[space["found"]].T, slice(1, 2))
    return model


def _counting(
    name: str, task: TwoSum, architecture: Architecture | None, layers: int
) -> tuple[Model, Spaces, list[Reader]]:
    """A model of so many full layers whose first head leaves the start token's weight in "weight",
    its spaces, and the heads.
    """
    bits = bits_for(task.M)
    # the bits of a value, and one for the start token
    architecture = architecture or stack([Full(heads=1, head_dim=bits + 1, value_dim=1)] * layers)
    found = readers(name, task, architecture)
    more = {"flag": 1, "found": 1} if layers > 1 else {}
    space = Spaces(value=bits, partner=bits, token=1, start=1, own=1, weight=1, **more)
    model = empty_model(task, architecture, space, hidden=2 * (layers - 1), bos=True, placed=False)
    values = torch.arange(task.M)
    partners = (-values) % task.M
    embed = model.embed.weight
    embed[: task.M, space["value"]] = signs(task.M, bits)
    embed[: task.M, space["partner"]] = signs(partners.numpy(), bits)
    embed[: task.M, space["token"]] = 1.0
    embed[: task.M, space["own"]] = OWN * (partners == values).float()[:, None]
    embed[task.M, space["start"]] = 1.0
    # one product for the start token, as large as those of all bits together
    asked, held = {"partner": 1, "token": 1}, {"value": 1, "start": bits}
    found[0].write(model, space, asked, held, "start", "weight")
    return model, space, found


@recipe(
    "equality",
    Equality,
    takes=("two full layers, the first with ceil(log2 n) + 1 key dimensions"),
)
def equality(task: Equality, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """Two full layers. Source: [Bha24], in the form of theory.md, section 6."""
    bits = bits_for(task.n)
    architecture = architecture or stack([Full(heads=1, head_dim=bits + 1, value_dim=1)] * 2)
    first, second = readers("equality", task, architecture)
    space = Spaces(place=bits, first=1, one=1, bit=1, fetched=1, differs=1, found=1)
    model = empty_model(task, architecture, space, hidden=4)
    position = model.position.weight
    position[:, space["place"]] = signs(np.arange(task.length) % task.n, bits)
    position[: task.n, space["first"]] = 1.0
    position[task.n :, space["first"]] = -1.0
    position[:, space["one"]] = 1.0
    model.embed.weight[:, space["bit"]] = signs(2, 1)
    asked, held = {"place": 1, "one": 1}, {"place": 1, "first": 1}
    first.write(model, space, asked, held, "bit", "fetched")
    for unit, side in ((0, 2.0), (2, -2.0)):
        read = [(space["bit"], side), (space["fetched"], -side)]
        step(mlp_after(model, first.place), unit, read, (-1.0, -3.0), space["differs"], 0.5)
    second.write(model, space, {"one": 1}, {"differs": 2}, "differs", "found")
    # logits (found, 1/2)
    put(model.head.weight.T[space["found"]].T, slice(0, 1))
    model.head.bias[1] = 0.5
    return model


THRESHOLD = Fraction(1, 4)
_STRONGEST = 40
_BESIDE = 4
"""Of rounded points one a little further away may score more than the next."""


@recipe(
    "match2",
    TwoSum,
    takes=(
        f"form=query and M up to {LARGEST_MODULUS:,}; one full layer, with 3 key dimensions and 1"
        " value dimension"
    ),
)
def match2(task: TwoSum, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """One full layer; M up to 5,754. Source: [San23]."""
    if task.form != "query":
        raise SizeError(f"{task.spec}: one layer answers the query form; use form=query")
    if arithmetic.claims and task.M > LARGEST_MODULUS:
        raise SizeError(
            f"{task.spec}: the circle code tells at most M = {LARGEST_MODULUS:,} values apart; use"
            " a smaller M, or the bit code (match2-bits)"
        )
    architecture = architecture or stack([Full(heads=1, head_dim=3, value_dim=1)])
    (reader,) = readers("match2", task, architecture, arithmetic)
    code = Circle.of(task.M, min(arithmetic.digits, DIGITS["fp32"]))
    scale, strength = strengthen(code, task, arithmetic)

    space = Spaces(cos=1, sin=1, ask=1, blank=1, earlier=1, found=1)
    model = empty_model(task, architecture, space, hidden=0, bos=True)

    embed = model.embed.weight
    position = model.position.weight
    embed[: task.M, : space["sin"].stop] = torch.from_numpy(code.points / code.grid)
    embed[: task.M, space["ask"]] = 1.0
    embed[task.M, space["blank"]] = code.blank / code.grid
    position[1 : task.n + 1, space["earlier"]] = 1.0

    # powers of two
    asked, held = strength / SCALE, scale / SCALE
    query = {"cos": asked, "sin": -asked, "ask": asked}
    key = {"cos": held, "sin": held, "blank": held}
    reader.write(model, space, query, key, "earlier", "found")
    # logits (1/4, y): the answer is 1 exactly where y exceeds 1/4
    model.head.bias[0] = float(THRESHOLD)
    put(model.head.weight.T[space["found"]].T, slice(1, 2))
    return model


@dataclass(frozen=True)
class Circle:
    """phi and the blank key in units of 1 / grid, and the gaps they leave in units of its square,
    exact.
    """

    grid: int
    points: NDArray[np.int64]
    blank: int
    match_over_blank: int
    blank_over_rest: int
    widest: int
    """Largest lead of a match over the blank key."""
    products: int
    """Largest |cos cos| + |sin sin|."""

    @classmethod
    def of(cls, modulus: int, digits: int) -> Circle:
        """The code for M values in multiples of 2^-digits, with the blank key halfway between the
        lowest match and the highest other score.
        """
        grid = 1 << digits
        points = _on_grid(modulus, grid)
        lowest, matched, rest, products = _scores(points)
        # halfway, rounded to the grid; as a score it counts in units of its square
        blank = (lowest + rest + grid) // (2 * grid)
        return cls(
            grid=grid,
            points=points,
            blank=blank,
            match_over_blank=lowest - blank * grid,
            blank_over_rest=blank * grid - rest,
            widest=matched - blank * grid,
            products=products,
        )


def _on_grid(modulus: int, grid: int) -> NDArray[np.int64]:
    """All M-th roots of 1, (M, 2), in units of 1 / grid, rounded to nearest."""
    points = np.empty((modulus, 2), np.int64)
    with ctx.workprec(128):
        for x in range(modulus // 2 + 1):
            sin, cos = (one * grid + 0.5 for one in arb.sin_cos_pi_fmpq(fmpq(2 * x, modulus)))
            points[x] = int(float(cos.floor())), int(float(sin.floor()))
    # the other half is the first one's conjugate
    points[modulus // 2 + 1 :] = points[(modulus - 1) // 2 : 0 : -1] * (1, -1)
    return points


def _scores(points: NDArray[np.int64]) -> tuple[int, int, int, int]:
    """The lowest and the highest score of a match, the highest other one, and the most that the
    products of a score add up to, exactly.
    """
    rows = points.astype(np.float64)
    found: list[tuple[float, float]] = []
    for beside in range(-_BESIDE, _BESIDE + 1):
        # the point of -x + beside
        other = np.roll(rows[::-1], 1 + beside, 0)
        scores = rows[:, 0] * other[:, 0] - rows[:, 1] * other[:, 1]
        if beside % len(rows) or not beside:
            found.append((float(scores.min()), float(scores.max())))
    lowest, matched = found.pop(len(found) // 2)
    rest = max(most for _, most in found)
    products = float((rows * rows).sum(1).max())
    return int(lowest), int(matched), int(rest), int(products)


def strengthen(code: Circle, task: TwoSum, arithmetic: Arithmetic) -> tuple[float, float]:
    """Powers of two that keys and queries are multiplied by, whose product is the smallest c >= 1
    that leaves both gaps at ln(8n). Raises SizeError when none does; of weights of which nothing is
    claimed c is as large as it may get.
    """
    # n e^-G <= 1/8 once G >= ln(8n)
    needed = log_upper(8 * task.n)
    # two products to a score; on a grid of few digits their sum is held as it is
    digits = 2 * (code.grid.bit_length() - 1) + 1
    error = gamma(2, arithmetic.summed) if digits > arithmetic.summed_digits else Fraction(0)
    # keys and queries are stored
    most = min(_STRONGEST, 2 * _room(arithmetic))
    for exponent in range(most + 1):
        unit = Fraction(1 << exponent, code.grid * code.grid)
        match = Match(
            earlier=task.n,
            match_over_blank=code.match_over_blank * unit,
            blank_over_rest=code.blank_over_rest * unit,
            widest=code.widest * unit,
            score_error=error * code.products * unit,
            arithmetic=arithmetic,
        )
        if min(match.gaps()) >= needed and match.without() < THRESHOLD < match.with_match():
            return _shared_out(exponent, arithmetic)
    if not arithmetic.claims:
        return _shared_out(most, arithmetic)
    raise SizeError(
        f"{task.spec}: no scale of the scores keeps the gaps in {arithmetic.title}; use a smaller n"
        " or M"
    )


def _room(arithmetic: Arithmetic) -> int:
    """The largest exponent of a factor of cosines that are stored."""
    return int(math.log2(arithmetic.large)) - 1


def _shared_out(exponent: int, arithmetic: Arithmetic) -> tuple[float, float]:
    """2^exponent as a factor of keys and one of queries: all of it in the queries where the format
    has room.
    """
    own = 0 if exponent <= _room(arithmetic) else exponent // 2
    return 2.0**own, 2.0 ** (exponent - own)

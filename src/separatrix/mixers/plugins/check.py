"""The report card of a mixer: every law, the measured cache and how it grows, and its speed.
`separatrix check-mechanism` prints it.
"""

from __future__ import annotations

import copy
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, TypeVar

import torch

from separatrix.core.errors import SeparatrixError, SizeError, SpecError, UnknownNameError
from separatrix.mixers import Mixer, mixer
from separatrix.mixers.laws import (
    CACHE_LENGTHS,
    FORMATS,
    LAWS,
    RELATIVE,
    Kept,
    LawBroken,
    cache_as_declared,
    drawing,
    drawn,
    in_formats,
    inputs,
    kept_by,
    seeded,
    stream,
    tolerance,
)
from separatrix.mixers.laws.fed import Fed, holds_on_prompts, on_threads
from separatrix.mixers.plugins import OwnMechanism, OwnMixer, own_mechanism
from separatrix.mixers.plugins.load import load
from separatrix.mixers.plugins.probe import describe_error
from separatrix.stacks.mechanisms import (
    MECHANISMS,
    Mechanism,
    check_size_names,
    mechanism_named,
)

DEFAULT_WIDTH = 16
PATIENCE = 20
"""Seconds of processor time that all laws of a mixer should take."""
STEPS = 512
LONGER = 1024
"""Tokens on which step is timed against forward, and forward against forward of twice as many."""
Progress = Callable[[int, int], None]
Found = TypeVar("Found")


@dataclass(frozen=True, kw_only=True)
class LawResult:
    """One law: whether it holds, what it says, and what broke it. `applies` is false where the
    mixer has nothing that it could be about.
    """

    law: str
    says: str
    holds: bool
    applies: bool = True
    broken_by: str = ""
    seconds: float = 0.0
    """Of processor time."""


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Seconds of float32 on one thread of this machine, batch 1, without gradients: the best of
    three.
    """

    step: float
    """STEPS steps."""
    forward: float
    """`forward` of STEPS tokens."""
    growth: float
    """`forward` of 2 * LONGER tokens over that of LONGER."""


@dataclass(frozen=True, kw_only=True)
class ReportCard:
    """What `check` found. `cache` holds (numbers, bits) by t in the declared format, empty where
    the state could not be measured.
    """

    mechanism: Mechanism
    origin: str
    width: int
    laws: tuple[LawResult, ...]
    cache: Mapping[int, tuple[int, int]]
    growth: str
    speed: Speed | None
    seed: int = 0
    """What the laws draw follows from it."""
    notes: tuple[str, ...] = ()

    @property
    def broken(self) -> list[str]:
        return [result.law for result in self.laws if not result.holds]


def find(
    target: str, *, width: int | None = None, sizes: Mapping[str, Any] | None = None
) -> tuple[Mixer, str]:
    """(mixer, origin) of a mechanism's name or `module:Class`, at a model width and sizes.

    Raises SpecError, SizeError or UnknownNameError for a target that is no mixer, or sizes it does
    not take.
    """
    cls = _mechanism(target)
    chosen = dict(sizes or {})
    own = issubclass(cls, OwnMechanism)
    if own:
        if "width" in chosen:
            raise SpecError(
                f"--set width={chosen['width']}: the model width is given with --set model_width"
            )
        default = next(f.default for f in fields(cls) if f.name == "width")
        chosen["width"] = width or (DEFAULT_WIDTH if default == OwnMechanism.width else default)
    check_size_names(cls, chosen, where=" in --set")
    if not own and "width" not in chosen and getattr(cls, "width", 0) is None:
        # RWKV's token shift is as wide as the model
        chosen["width"] = width or DEFAULT_WIDTH
    mechanism = cls(**chosen)
    model_width = mechanism.inner_width if own else width or DEFAULT_WIDTH
    try:
        made = (
            OwnMixer(mechanism, width=model_width)
            if isinstance(mechanism, OwnMechanism)
            else mixer(mechanism, width=model_width)
        )
        return drawn(made), cls.origin if issubclass(cls, OwnMechanism) else "built in"
    except SeparatrixError:
        raise
    except Exception as error:
        raise SizeError(
            f"{target}: making it at width {model_width} raises {describe_error(error)}; give"
            " --set model_width=, or another size"
        ) from None


def _mechanism(target: str) -> type[Mechanism]:
    if ":" not in target:
        try:
            return MECHANISMS[mechanism_named(target[:60])]
        except UnknownNameError as error:
            raise UnknownNameError(f"{error} Your own is written module:Class.") from None
    maker = load(target)
    # the import has registered a decorated class, with what its decorator declares
    registered = (
        cls for cls in MECHANISMS.values() if issubclass(cls, OwnMechanism) and cls.maker is maker
    )
    return next(registered, None) or own_mechanism(maker)


def check(
    mixer: Mixer,
    *,
    origin: str = "",
    within: float = RELATIVE,
    formats: Sequence[str] = tuple(FORMATS),
    seed: int | None = None,
    layers: Mapping[str, tuple[Mixer, Fed]] | None = None,
    progress: Progress | None = None,
) -> ReportCard:
    """Runs every law on a copy of a drawn float64 mixer, measures its cache over 4,096 tokens and
    its speed. Raises SizeError for a mixer that cannot be copied.

    Forms are equal that differ by at most `within` of the largest number: float64's rounding,
    unless a layer computes in float32 inside. Laws on formats look at `formats`. What the laws draw
    (tokens, lengths, batches, places, threads) follows from `seed`, another one in each run if not
    given. One law more looks at trained float64 `layers`, by their names, and what each of them
    gets of prompts.
    """
    seed = secrets.randbelow(1 << 31) if seed is None else seed
    try:
        copy.deepcopy(mixer)
    except Exception as error:
        raise SizeError(
            f"{mixer.mechanism.name}: the module cannot be copied, as for every law it is:"
            f" {type(error).__name__}: {error}; hold no file and no lock in it"
        ) from None
    with on_threads(1), tolerance(within), in_formats(formats), drawing(seed):
        return _check(mixer, origin, seed, layers or {}, progress)


def _check(
    mixer: Mixer,
    origin: str,
    seed: int,
    layers: Mapping[str, tuple[Mixer, Fed]],
    progress: Progress | None,
) -> ReportCard:
    tell = progress or (lambda done, total: None)
    total = len(LAWS) + 2
    tell(0, total)
    kept, trouble = _tried("the cache was not measured", lambda: kept_by(copy.deepcopy(mixer)))
    # the law looks at the same 4,096 tokens
    calls = LAWS | {"cache": lambda mixer: cache_as_declared(mixer, kept)}
    if layers:
        calls |= {"prompts": lambda mixer: _on_prompts(layers)}
    results = []
    for done, (law, call) in enumerate(calls.items(), 1):
        tell(done, total)
        results.append(_result(law, call, mixer))
    tell(total - 1, total)
    speed, slow = _tried("the speed was not measured", lambda: _speed(copy.deepcopy(mixer)))
    training, unseen = _tried("train mode was not looked at", lambda: _in_training(mixer))
    given = (
        f"{name} gets {len(x):,} prompts of {x.shape[1]:,} tokens"
        for name, (_, (x, _)) in layers.items()
    )
    notes = (training or unseen, trouble, slow, _long(results), *given)
    return ReportCard(
        mechanism=mixer.mechanism,
        origin=origin,
        width=mixer.width,
        laws=tuple(results),
        cache=kept.sizes if kept else {},
        growth=_growth(kept) if kept else "unknown",
        speed=speed,
        seed=seed,
        notes=tuple(note for note in notes if note),
    )


def _on_prompts(layers: Mapping[str, tuple[Mixer, Fed]]) -> None:
    for name, (layer, prompts) in layers.items():
        try:
            holds_on_prompts(layer, prompts)
        except LawBroken as error:
            raise LawBroken(f"{name}: {error}") from None


def _tried(what: str, call: Callable[[], Found]) -> tuple[Found | None, str]:
    """What the call returns, and what went wrong."""
    try:
        return call(), ""
    except Exception as error:
        return None, f"{what}: {error if isinstance(error, LawBroken) else describe_error(error)}"


def _long(results: Sequence[LawResult]) -> str:
    """What took more than laws should."""
    total = sum(result.seconds for result in results)
    most = max(results, key=lambda result: result.seconds)
    return (
        f"the laws took {total:.0f} s of processor time, {PATIENCE} are meant; most took"
        f" '{most.law}' ({most.seconds:.0f} s)"
        if total > PATIENCE
        else ""
    )


def _result(law: str, call: Callable[[Mixer], None], mixer: Mixer) -> LawResult:
    says = " ".join((LAWS.get(law, holds_on_prompts).__doc__ or "").split("\n\n")[0].split())
    without = {
        "chunks": isinstance(mixer, OwnMixer) and not hasattr(mixer.module, "chunk"),
        "forgets": mixer.mechanism.origin or mixer.mechanism.reach is None,
        "monotone": not mixer.mechanism.is_monotone,
    }
    if without.get(law):
        return LawResult(law=law, says=says, holds=True, applies=False)
    start = time.process_time()
    told = ""
    try:
        call(copy.deepcopy(mixer))
    except (LawBroken, SeparatrixError) as error:
        told = str(error)
    except Exception as error:
        told = describe_error(error)
    seconds = time.process_time() - start
    return LawResult(law=law, says=says, holds=not told, broken_by=told, seconds=seconds)


@torch.no_grad()
def _in_training(mixer: Mixer) -> str:
    """What the laws leave out where train mode computes something else than eval mode."""
    x = inputs(mixer, 2, 20, seed=71)
    y = mixer(x)
    training = copy.deepcopy(mixer).train()
    with seeded(1):
        first = training(x)
    with seeded(2):
        second = training(x)
    if not torch.equal(first, second):
        return "in train mode outputs are random, as with dropout: the laws are about eval mode"
    if not torch.equal(first, y):
        return "train mode gives other outputs than eval mode: the laws are about eval mode"
    return ""


def _growth(kept: Kept) -> str:
    """How the cache grows over the tokens it was measured on."""
    longest = max(CACHE_LENGTHS)
    return growth_class([kept.most[longest // part] for part in (8, 4, 2, 1)])


def growth_class(numbers: list[int]) -> str:
    """How a cache grows, from its largest size within t, 2t, 4t and 8t tokens."""
    first, second, third = (later - earlier for earlier, later in pairwise(numbers))
    # every step doubles t: steps of linear growth double, those of logarithmic growth are equal
    if third == 0:
        return "constant"
    if abs(third - 2 * second) <= 0.1 * third and abs(second - 2 * first) <= 0.1 * third:
        return "linear"
    if first == second == third:
        return "logarithmic"
    return "other"


@torch.no_grad()
def _speed(mixer: Mixer) -> Speed:
    mixer = mixer.float()
    x = inputs(mixer, 1, 2 * LONGER).float()
    step = _seconds(lambda: stream(mixer, x[:, :STEPS]))
    forward = _seconds(lambda: mixer(x[:, :STEPS]))
    once = _seconds(lambda: mixer(x[:, :LONGER]))
    return Speed(step=step, forward=forward, growth=_seconds(lambda: mixer(x)) / once)


def _seconds(call: Callable[[], Any]) -> float:
    call()
    # the call above pays for what is made at first use
    found = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
        if sum(found) > 5:
            break
    # other processes only add time, so the least is the truest; it may be a divisor
    return max(min(found), 1e-9)

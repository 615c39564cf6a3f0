"""The report card of a mixer: every law, the measured cache and how it grows, and its speed.
`separatrix check-mechanism` prints it.
"""

from __future__ import annotations

import copy
import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import torch

from separatrix.core.errors import SeparatrixError, SizeError, SpecError, UnknownNameError
from separatrix.mixers import Mixer, mixer
from separatrix.mixers.laws import FORMATS, LAWS, LawBroken, asking, drawn, inputs, stream
from separatrix.mixers.laws.fed import Fed, holds_on_prompts, on_threads
from separatrix.mixers.laws.memory import Kept, cache_as_declared, kept_by
from separatrix.mixers.laws.tools import RELATIVE
from separatrix.mixers.plugins import OwnMechanism, OwnMixer, own_mechanism
from separatrix.mixers.plugins.probe import apart, describe_error, load
from separatrix.stacks.mechanisms import MECHANISMS, Mechanism, check_size_names, mechanism_named

DEFAULT_WIDTH = 16
LATENT = 64
"""Of a built-in mechanism, if not said: for a model of that width 512 are of no use, and slow."""
BLOCKS = 4
"""Selected by `nsa`, if not said: 16 of 64 tokens are all that most laws' sequences have."""
MEANT = 20
"""Seconds of processor time that all laws of a mixer should take."""
BUDGET = 120
"""Seconds of processor time after which one law is stopped, if not said otherwise."""
STEPS = 512
LONGER = 1024
"""Tokens on which step is timed against forward, and forward against forward of twice as many."""
_COPIED = {"__deepcopy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__"}
"""What makes a copy of a module another thing than the module."""
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
    chosen: dict[str, Any] = dict(sizes or {})
    own = issubclass(cls, OwnMechanism)
    if issubclass(cls, OwnMechanism):
        if "width" in chosen:
            raise SpecError(
                f"--set width={chosen['width']}: the model width is given with --set model_width"
            )
        default = DEFAULT_WIDTH if cls.width == OwnMechanism.width else cls.width
        chosen["width"] = width or default
    check_size_names(cls, chosen, where=" in --set")
    at: int = chosen["width"] if own else width or DEFAULT_WIDTH
    if not own:
        if getattr(cls, "width", 0) is None:
            # RWKV's token shift is as wide as the model
            chosen.setdefault("width", at)
        if hasattr(cls, "latent"):
            chosen.setdefault("latent", LATENT)
        if hasattr(cls, "selected") and not {"first", "near"} & chosen.keys():
            chosen.setdefault("topk", BLOCKS)
    mechanism = cls(**chosen)
    try:
        made = (
            OwnMixer(mechanism, width=at)
            if isinstance(mechanism, OwnMechanism)
            else mixer(mechanism, width=at)
        )
        return drawn(made), cls.origin if issubclass(cls, OwnMechanism) else "built in"
    except SeparatrixError:
        raise
    except Exception as error:
        raise SizeError(
            f"{target}: making it at width {at} raises {describe_error(error)}; give --set"
            " model_width=, or another size"
        ) from None


def _mechanism(target: str) -> type[Mechanism]:
    if ":" not in target and not target.endswith(".py"):
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
    budget: float = BUDGET,
    seed: int | None = None,
    layers: Mapping[str, tuple[Mixer, Fed]] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> ReportCard:
    """Runs every law on a copy of a drawn float64 mixer, measures its cache over 4,096 tokens and
    its speed. Raises SizeError for a mixer that cannot be copied.

    Forms are equal that differ by at most `within` of the largest number: float64's rounding,
    unless a layer computes in float32 inside. Laws on formats look at `formats`. A law that takes
    more than `budget` seconds of processor time is stopped, and does not hold. What the laws draw
    (tokens, lengths, batches, places, threads) follows from `seed`, another one in each run if not
    given. One law more looks at trained float64 `layers`, by their names, and what each of them
    gets of prompts.
    """
    seed = secrets.randbelow(1 << 31) if seed is None else seed
    every = {cls for module in mixer.modules() for cls in type(module).__mro__}
    own = sorted(cls.__name__ for cls in every if _COPIED & vars(cls).keys() and not _known(cls))
    if own:
        raise SizeError(
            f"{mixer.mechanism.name}: {own[0]} says itself how it is copied, and laws look at"
            f" copies; leave out {', '.join(sorted(_COPIED))}"
        )
    try:
        copy.deepcopy(mixer)
    except Exception as error:
        raise SizeError(
            f"{mixer.mechanism.name}: the module cannot be copied, as for every law it is:"
            f" {type(error).__name__}: {error}; hold no file and no lock in it"
        ) from None
    measured: list[Kept] = []

    def cache(mixer: Mixer) -> None:
        measured.append(kept_by(copy.deepcopy(mixer)))
        cache_as_declared(mixer, measured[0])

    calls = LAWS | ({"cache": cache} if "cache" in LAWS else {})
    if layers:
        calls["prompts"] = lambda mixer: _on_prompts(layers)
    results = []
    with on_threads(1), asking(tolerance=within, formats=tuple(formats), seed=seed):
        for done, (law, call) in enumerate(calls.items()):
            progress(done, len(calls) + 1)
            results.append(_result(law, call, mixer, budget))
        progress(len(calls), len(calls) + 1)
        speed, slow = _tried("the speed was not measured", lambda: _speed(copy.deepcopy(mixer)))
        training, unseen = _tried("train mode was not looked at", lambda: _in_training(mixer))
    given = (
        f"{name} gets {len(x):,} prompts of {x.shape[1]:,} tokens"
        for name, (_, (x, _)) in (layers or {}).items()
    )
    notes = (training or unseen, slow, _long(results), *given)
    kept = measured[0] if measured else None
    return ReportCard(
        mechanism=mixer.mechanism,
        origin=origin,
        width=mixer.width,
        laws=tuple(results),
        cache=kept.sizes if kept else {},
        growth=growth_of(kept.most) if kept else "unknown",
        speed=speed,
        seed=seed,
        notes=tuple(note for note in notes if note),
    )


def _known(cls: type) -> bool:
    return cls is object or cls.__module__.partition(".")[0] == "torch"


def _on_prompts(layers: Mapping[str, tuple[Mixer, Fed]]) -> None:
    for name, (layer, prompts) in layers.items():
        try:
            holds_on_prompts(layer, prompts)
        except LawBroken as error:
            raise LawBroken(f"{name}: {error}") from None


def _tried(what: str, call: Callable[[], Found]) -> tuple[Found | None, str]:
    try:
        return call(), ""
    except Exception as error:
        return None, f"{what}: {describe_error(error)}"


def _long(results: Sequence[LawResult]) -> str:
    total = sum(result.seconds for result in results)
    most = max(results, key=lambda result: result.seconds)
    return (
        f"the laws took {total:.0f} s of processor time, {MEANT} are meant; most took"
        f" '{most.law}' ({most.seconds:.0f} s)"
        if total > MEANT
        else ""
    )


def _result(
    law: str, call: Callable[[Mixer], None], mixer: Mixer, budget: float = BUDGET
) -> LawResult:
    says = " ".join((LAWS.get(law, holds_on_prompts).__doc__ or "").split("\n\n")[0].split())
    without = {
        "chunks": isinstance(mixer, OwnMixer) and not hasattr(mixer.module, "chunk"),
        "forgets": mixer.mechanism.origin or mixer.mechanism.reach is None,
        "monotone": not mixer.mechanism.monotone,
    }
    if without.get(law):
        return LawResult(law=law, says=says, holds=True, applies=False)
    start = _spent()
    told = ""
    try:
        with _stopped_after(budget):
            call(copy.deepcopy(mixer))
    except _OutOfTime:
        told = (
            f"stopped after {budget:g} s of processor time, undecided; give it more with --set"
            " budget=, or choose smaller sizes"
        )
    except (LawBroken, SeparatrixError) as error:
        told = str(error)
    except Exception as error:
        told = describe_error(error)
    seconds = _spent() - start
    return LawResult(law=law, says=says, holds=not told, broken_by=told, seconds=seconds)


def _spent() -> float:
    """Seconds of processor time, those of other processes that a law has begun among them."""
    return sum(os.times()[:4])


class _OutOfTime(BaseException):
    """No Exception, which a mixer may catch."""


@contextmanager
def _stopped_after(seconds: float) -> Iterator[None]:
    """Raises _OutOfTime after so much processor time, where the system and the thread can."""

    def stop(number: int, frame: Any) -> None:
        raise _OutOfTime

    try:
        before = signal.signal(signal.SIGPROF, stop)
    # Windows; and threads other than the first
    except (AttributeError, ValueError):
        yield
        return
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@torch.no_grad()
def _in_training(mixer: Mixer) -> str:
    """What the laws leave out where train mode computes something else than eval mode."""
    x = inputs(mixer, 2, 20, seed=71)
    training = copy.deepcopy(mixer).train()
    found = []
    for seed in (1, 2):
        with apart(seed):
            found.append(training(x))
    if not torch.equal(*found):
        return "in train mode outputs are random, as with dropout: the laws are about eval mode"
    if not torch.equal(found[0], mixer(x)):
        return "train mode gives other outputs than eval mode: the laws are about eval mode"
    return ""


def growth_of(most: Sequence[int]) -> str:
    """How a cache grows, from the most numbers within 0, 1, 2, ... tokens."""
    longest = len(most) - 1
    numbers = [most[longest // part] for part in (8, 4, 2, 1)]
    first, second, third = (later - earlier for earlier, later in pairwise(numbers))
    # every step doubles t: steps of linear growth double, those of logarithmic growth are equal
    if third == 0:
        return "constant"
    if abs(third - 2 * second) <= 0.1 * third and abs(second - 2 * first) <= 0.1 * third:
        return "linear"
    return "logarithmic" if first == second == third else "other"


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

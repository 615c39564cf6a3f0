"""One training run, as plain data, and what is known of it before it trains; needs no torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache, cached_property, lru_cache, partial
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from separatrix.core.errors import SizeError, SpecError, UnknownNameError
from separatrix.core.evidence.canonical import canonical, json_object, sha256
from separatrix.core.evidence.outcome import ROUNDED
from separatrix.core.evidence.rule import broken
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Mechanism
from separatrix.tasks import Task, parse_task
from separatrix.tasks.base.described import shown
from separatrix.tasks.base.task import LARGEST_SAMPLE
from separatrix.tasks.resized import Resized, Stage, read_longer, read_stages

MOST = 10**12
"""No size of a run is larger."""
MOST_NUMBERS = 1 << 31
"""Most numbers in a model's embeddings and head together: as `separatrix.models.model` has it."""
MOST_SEED = (1 << 63) - 1
INTEGERS = {
    "seed": (0, MOST_SEED),
    **dict.fromkeys(("steps", "batch", "width", "tested"), (1, MOST)),
    **dict.fromkeys(("hidden", "plateau", "warmup"), (0, MOST)),
}
"""Whole numbers of a run, each with its smallest and its largest."""
REALS = {
    "seconds": (0.0, 1e9),
    "learning_rate": (0.0, 1e6),
    "weight_decay": (0.0, 1e6),
    "stop_at": (0.0, 2.0),
}
"""Other numbers of a run, each with the range it lies in. Accuracies are at most 1, so that
training never stops early at 2.
"""
LATER: dict[str, Any] = {"warmup": 0, "rule": "own", "formats": ()}
"""Fields that runs of earlier versions do not have: left out of JSON where they say nothing, so
that one run has one key.
"""
POSITIVE = ("learning_rate", "stop_at")
"""Numbers of `REALS` that are not 0 either."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One model trained with one seed. Raises SizeError for a number out of its range,
    UnknownNameError for a word that is none of those known, and SpecError for a wrong type.

    The texts are read by `check`, and when the run trains.
    """

    architecture: str
    task: str
    seed: int
    steps: int = 1000
    seconds: float = 0.0
    """Most seconds that its pack trains; 0: no limit."""
    batch: int = 128
    optimiser: Literal["muon", "adamw"] = "muon"
    """Muon for the matrices and AdamW for the rest, or AdamW for everything."""
    learning_rate: float = 3e-3
    weight_decay: float = 0.01
    schedule: Literal["cosine", "constant", "linear"] = "cosine"
    """How the learning rate goes on after its warm-up."""
    warmup: int = 0
    """Steps of it; 0: 5 % of all steps, 10 at least, as runs of earlier versions had it."""
    width: int = 32
    hidden: int = 64
    precision: Literal["fp32", "bf16"] = "fp32"
    curriculum: tuple[str, ...] = ()
    """What is trained before the task itself: each "n=4@100", its sizes until that step."""
    longer: tuple[str, ...] = ()
    """Sizes at which accuracy is measured too: each "n=64", the task with these sizes changed."""
    tested: int = 2048
    """Fresh instances the accuracy is measured on."""
    formats: tuple[str, ...] = ()
    """Number formats in which what recurrent layers carry is rounded after every token when the
    model is tested once more: "bf16", "fp16". Training stays as it is.
    """
    stop_at: float = 0.995
    """Training ends early when the running accuracy of 20 steps reaches this."""
    plateau: int = 0
    """Steps without progress of the running loss that end training; 0: never."""
    rule: Literal["own", "study"] = "own"
    """Which rule of stopping it is held to: what its settings say, or that of the study
    (`core/evidence/rule.py`).
    """

    def __post_init__(self) -> None:
        for name, read in _fields():
            value = getattr(self, name)
            fitting = read(name, value)
            if fitting is not value:
                object.__setattr__(self, name, fitting)

    @classmethod
    def from_json(cls, data: object) -> Run:
        """Inverse of `to_json`; what has a default may be missing. Raises SpecError for what is no
        object of JSON or lacks a field, UnknownNameError for an unknown one, and what the fields
        themselves raise.
        """
        given = json_object(data)
        if given is None:
            raise SpecError(f"a run is an object of JSON, not {shown(data)}")
        needed, known = _names()
        for name in given:
            if name not in known:
                raise UnknownNameError.of("field of a run", str(name)[:60], known)
        for name in needed:
            if name not in given:
                raise SpecError(f"a run needs the field '{name}'")
        return cls(**given)

    def to_json(self) -> dict[str, Any]:
        """Every field as JSON has it; one of `LATER` only where it says something."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in ((name, getattr(self, name)) for name, _ in _fields())
            if name not in LATER or value != LATER[name]
        }

    def canonical(self) -> Run:
        """The same run in the words that records use. Raises what reading its texts raises."""
        return self._changed()

    @cached_property
    def key(self) -> str:
        """sha256 of the canonical run: its identity, wherever it is trained or stored."""
        return sha256(canonical(self.to_json() | self._read.texts))

    @cached_property
    def shape(self) -> Run:
        """The run without what models that train together may differ in: seed, learning rate and
        weight decay are neutral. Runs of equal shape may share a pack.
        """
        return self._changed(seed=0, learning_rate=1.0, weight_decay=0.0)

    @property
    def stack(self) -> Architecture:
        """The architecture that its text describes."""
        return self._read.stack

    @property
    def trained(self) -> Task:
        """The task that its text describes."""
        return self._read.task

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The curriculum: its tasks, each with the step until which it is trained."""
        return self._read.stages

    def stretches(self, steps: int | None = None) -> list[tuple[Task, int]]:
        """What is trained one after the other in so many steps, or in all: tasks, each with how
        many steps.
        """
        most = self.steps if steps is None else steps
        done = 0
        found: list[tuple[Task, int]] = []
        for stage in self.stages:
            until = min(stage.until, most)
            found.append((stage.task, until - done))
            done = until
        return [*found, (self.trained, most - done)]

    @property
    def longer_tasks(self) -> tuple[Task, ...]:
        """The tasks at whose sizes accuracy is measured too."""
        return tuple(other.task for other in self._read.longer)

    @property
    def length(self) -> int:
        """Tokens of the longest prompt among the task, its curriculum and its longer sizes: what
        the model has places for.
        """
        return self._read.length

    def check(self) -> None:
        """Raises SpecError, UnknownNameError or SizeError where no model can be trained so: in one
        line, without torch. What a mixer refuses beside is told when the model is built.
        """
        read = self._read
        check_stack(read.stack, width=self.width, prompt=read.length)
        if self.warmup > self.steps:
            raise SizeError(
                f"the warm-up has {self.warmup:,} steps, and training {self.steps:,}; take fewer"
            )
        if self.rule == "study" and (how := broken(vars(self))):
            raise SizeError(f"the rule of stopping 'study' is not kept: {how}")
        stages = read.stages
        if stages and stages[-1].until >= self.steps:
            raise SizeError(
                f"the curriculum ends at step {stages[-1].until:,}, but training has"
                f" {self.steps:,} steps; leave some for the task itself"
            )
        self._check_room(read.task, read.length)

    def _check_room(self, task: Task, length: int) -> None:
        """Raises SizeError where a batch or the model's tables cannot be held."""
        if self.batch * length > LARGEST_SAMPLE:
            raise SizeError(
                f"{self.task}: {self.batch:,} prompts of up to {length:,} tokens are more than 2^30"
                " tokens at once; take a smaller batch or smaller sizes"
            )
        # 2: the start token is known, and has a place
        tables = (task.vocabulary + length + task.answers + 2) * self.width
        if tables > MOST_NUMBERS:
            raise SizeError(
                f"{self.task}: the model's tables would hold {tables:,} numbers for"
                f" {task.vocabulary:,} token ids, {length:,} places and {task.answers:,} answers;"
                f" at most {MOST_NUMBERS:,}: take smaller sizes, or a smaller width than"
                f" {self.width:,}"
            )
        if self.hidden * self.width > MOST_NUMBERS:
            raise SizeError(
                f"each MLP would hold {self.hidden:,} x {self.width:,} numbers; at most"
                f" {MOST_NUMBERS:,}: take a smaller hidden or width"
            )

    def _changed(self, **values: Any) -> Run:
        """The canonical run with some values changed."""
        texts = self._read.texts
        return replace(self, **texts, **values)

    @property
    def _read(self) -> _Texts:
        return _read(self.architecture, self.task, self.curriculum, self.longer)


class _Texts(NamedTuple):
    """What the texts of a run say."""

    stack: Architecture
    task: Task
    stages: tuple[Stage, ...]
    longer: tuple[Resized, ...]
    length: int
    texts: dict[str, Any]
    """The same in canonical words, by field."""


# runs of a sweep share their texts
@lru_cache(maxsize=1024)
def _read(
    architecture: str, task: str, curriculum: tuple[str, ...], longer: tuple[str, ...]
) -> _Texts:
    """Raises what reading each text raises, the task first."""
    trained = parse_task(task)
    stages = read_stages(trained, curriculum)
    shown = max((trained.length, *(stage.task.length for stage in stages)))
    others = read_longer(trained, longer, shown)
    stack = Architecture.parse(architecture)
    return _Texts(
        stack=stack,
        task=trained,
        stages=stages,
        longer=others,
        length=max((shown, *(other.task.length for other in others))),
        texts={
            "architecture": stack.spec,
            "task": trained.spec,
            "curriculum": tuple(stage.text for stage in stages),
            "longer": tuple(other.text for other in others),
        },
    )


@cache
def _fields() -> tuple[tuple[str, Callable[[str, Any], Any]], ...]:
    """The fields of a run, each with what reads its values."""
    return tuple((name, _reader(name, hint)) for name, hint in get_type_hints(Run).items())


def _reader(name: str, hint: Any) -> Callable[[str, Any], Any]:
    """What gives a field's value as its type has it, or raises an error that names the field."""
    if get_origin(hint) is Literal:
        return partial(_word, get_args(hint))
    if name == "formats":
        return _formats
    if get_origin(hint) is tuple:
        return _texts
    if hint is str:
        return _text
    return partial(_whole, *INTEGERS[name]) if hint is int else partial(_real, *REALS[name])


def _word(options: tuple[str, ...], name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise SpecError(
            f"training: {name} is {shown(value)}; it must be one of {', '.join(options)}"
        )
    if value not in options:
        raise UnknownNameError.of(name, value[:60], options)
    return value


def _texts(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, tuple | list) or not all(isinstance(text, str) for text in value):
        raise SpecError(f"training: {name} is {shown(value)}; it must be a list of texts")
    return tuple(value)


def _formats(name: str, value: Any) -> tuple[str, ...]:
    found = _texts(name, value)
    for text in found:
        _word(ROUNDED, name, text)
    if len(set(found)) < len(found):
        raise SpecError(f"training: {name} is {shown(value)}; each format stands there once")
    return found


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise SpecError(f"training: {name} is {shown(value)}; it must be a text")
    return value


def _whole(low: int, high: int, name: str, value: Any) -> int:
    # a bool is an int to isinstance, but no size
    if type(value) is not int or not low <= value <= high:
        raise SizeError(
            f"training: {name} is {shown(value)}; it must be an integer of at least {low} and at"
            f" most {shown(high)}"
        )
    return value


def _real(low: float, high: float, name: str, value: Any) -> float:
    positive = name in POSITIVE
    # what is not a number compares with nothing
    if type(value) not in (int, float) or not low <= value <= high or (positive and not value):
        raise SizeError(
            f"training: {name} is {shown(value)}; it must be a number"
            f" {'above' if positive else 'from'} {low:g} to {high:g}"
        )
    # 1 and 1.0 are one number, and have one key
    return float(value)


@cache
def _names() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields without a default, and all fields."""
    every = fields(Run)
    return tuple(f.name for f in every if f.default is MISSING), tuple(f.name for f in every)


def check_stack(stack: Architecture, *, width: int, prompt: int) -> None:
    """Raises SizeError for a stack that cannot be trained in a model of that width on prompts of at
    most `prompt` tokens, naming the layer, the numbers and the remedy.
    """
    if stack.positions not in ("embedded", "none"):
        raise SizeError(
            f"positions={stack.positions}: such a stack can be judged, but not trained; take"
            " positions=embedded or positions=none"
        )
    for layer, _ in stack.counted():
        for part in layer:
            _check_part(part, width, prompt)


def _check_part(part: Mechanism, width: int, prompt: int) -> None:
    if part.declared_only and part.mixes_tokens:
        raise SizeError(
            f"'{part.name}' has declared sizes but no mixer: it can be judged, but not trained"
        )
    needed = part.model_width
    if needed is not None and needed != width:
        raise SizeError(
            f"{part.name} is made for models {needed:,} wide, but width={width:,}; set"
            f" width={needed} for the run, or {part.name}(width={width})"
        )
    size = part.varied_sizes().get("window", "window")
    window = part.sizes().get(size) or 0
    if window > prompt:
        raise SizeError(
            f"{part.name}: {size}={window:,} is longer than the longest prompt, {prompt:,} tokens;"
            f" take {size}={prompt} or less, or attention without a window"
        )

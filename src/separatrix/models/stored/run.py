"""One training run, as plain data, and what is known of it before it trains; needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

from separatrix.core.errors import SizeError, SpecError, UnknownNameError
from separatrix.core.evidence.canonical import canonical, json_object, sha256
from separatrix.core.evidence.outcome import ROUNDED
from separatrix.core.evidence.rule import broken
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task, parse_task
from separatrix.tasks.base.described import shown
from separatrix.tasks.base.task import LARGEST_SAMPLE
from separatrix.tasks.resized import Resized, Stage, read_longer, read_stages

MOST = 10**12
"""No size of a run is larger."""
MOST_NUMBERS = 1 << 31
"""Most numbers in a model's embeddings and head together: as `separatrix.models.model` has it."""
LATER: dict[str, Any] = {"warmup": 0, "rule": "own", "formats": ()}
"""Fields that runs of earlier versions do not have: left out of JSON where they say nothing, so
that one run has one key.
"""


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise SpecError(f"training: {name} is {shown(value)}; it must be a text")
    return value


def _texts(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, tuple | list) or not all(isinstance(text, str) for text in value):
        raise SpecError(f"training: {name} is {shown(value)}; it must be a list of texts")
    return tuple(value)


def _formats(name: str, value: Any) -> tuple[str, ...]:
    found = _texts(name, value)
    for text in found:
        if text not in ROUNDED:
            raise UnknownNameError.of(name, text[:60], ROUNDED)
    if len(set(found)) < len(found):
        raise SpecError(f"training: {name} is {shown(value)}; each format stands there once")
    return found


def _word(options: tuple[str, ...], name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise SpecError(
            f"training: {name} is {shown(value)}; it must be one of {', '.join(options)}"
        )
    if value not in options:
        raise UnknownNameError.of(name, value[:60], options)
    return value


def _whole(low: int, high: int, name: str, value: Any) -> int:
    # a bool is an int to isinstance, but no size
    if type(value) is not int or not low <= value <= high:
        raise SizeError(
            f"training: {name} is {shown(value)}; it must be an integer of at least {low} and at"
            f" most {shown(high)}"
        )
    return value


def _real(low: float, high: float, name: str, value: Any, *, above: bool = False) -> float:
    # what is not a number compares with nothing
    if type(value) not in (int, float) or not low <= value <= high or (above and value == low):
        raise SizeError(
            f"training: {name} is {shown(value)}; it must be a number"
            f" {'above' if above else 'from'} {low:g} to {high:g}"
        )
    # 1 and 1.0 are one number, and have one key
    return float(value)


_READ = "read"
_TEXT = {_READ: _text}
_TEXTS = {_READ: _texts}
_SIZE = {_READ: partial(_whole, 1, MOST)}
_COUNT = {_READ: partial(_whole, 0, MOST)}
"""Metadata of a field: what gives a value as its type has it, or raises an error that names it."""


def _one_of(*options: str) -> dict[str, Any]:
    return {_READ: partial(_word, options)}


def _number(high: float, *, above: bool = False) -> dict[str, Any]:
    return {_READ: partial(_real, 0.0, high, above=above)}


@dataclass(frozen=True, kw_only=True)
class Run:
    """One model trained with one seed. Raises SizeError for a number out of its range,
    UnknownNameError for a word that is none of those known, and SpecError for a wrong type.

    The texts are read by `check`, and when the run trains.
    """

    architecture: str = field(metadata=_TEXT)
    task: str = field(metadata=_TEXT)
    seed: int = field(metadata={_READ: partial(_whole, 0, (1 << 63) - 1)})
    steps: int = field(default=1000, metadata=_SIZE)
    seconds: float = field(default=0.0, metadata=_number(1e9))
    """Most seconds that its pack trains; 0: no limit."""
    batch: int = field(default=128, metadata=_SIZE)
    optimiser: str = field(default="muon", metadata=_one_of("muon", "adamw"))
    """Muon for the matrices and AdamW for the rest, or AdamW for everything."""
    learning_rate: float = field(default=3e-3, metadata=_number(1e6, above=True))
    weight_decay: float = field(default=0.01, metadata=_number(1e6))
    schedule: str = field(default="cosine", metadata=_one_of("cosine", "constant", "linear"))
    """How the learning rate goes on after its warm-up."""
    warmup: int = field(default=0, metadata=_COUNT)
    """Steps of it; 0: 5 % of all steps, 10 at least, as runs of earlier versions had it."""
    width: int = field(default=32, metadata=_SIZE)
    hidden: int = field(default=64, metadata=_COUNT)
    precision: str = field(default="fp32", metadata=_one_of("fp32", "bf16"))
    curriculum: tuple[str, ...] = field(default=(), metadata=_TEXTS)
    """What is trained before the task itself: each "n=4@100", its sizes until that step."""
    longer: tuple[str, ...] = field(default=(), metadata=_TEXTS)
    """Sizes at which accuracy is measured too: each "n=64", the task with these sizes changed."""
    tested: int = field(default=2048, metadata=_SIZE)
    """Fresh instances the accuracy is measured on."""
    formats: tuple[str, ...] = field(default=(), metadata={_READ: _formats})
    """Number formats in which what recurrent layers carry is rounded after every token when the
    model is tested once more: "bf16", "fp16". Training stays as it is.
    """
    stop_at: float = field(default=0.995, metadata=_number(2.0, above=True))
    """Training ends early when the running accuracy of 20 steps reaches this: never at 2."""
    plateau: int = field(default=0, metadata=_COUNT)
    """Steps without progress of the running loss that end training; 0: never."""
    rule: str = field(default="own", metadata=_one_of("own", "study"))
    """Which rule of stopping it is held to: what its settings say, or that of the study
    (`core/evidence/rule.py`).
    """

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            fitting = one.metadata[_READ](one.name, value)
            if fitting is not value:
                object.__setattr__(self, one.name, fitting)

    @classmethod
    def from_json(cls, data: object) -> Run:
        """Inverse of `to_json`; what has a default may be missing. Raises SpecError for what is no
        object of JSON or lacks a field, UnknownNameError for an unknown one, and what the fields
        themselves raise.
        """
        given = json_object(data)
        if given is None:
            raise SpecError(f"a run is an object of JSON, not {shown(data)}")
        known = {one.name: one.default is MISSING for one in fields(cls)}
        for name in given:
            if name not in known:
                raise UnknownNameError.of("field of a run", str(name)[:60], tuple(known))
        for name, needed in known.items():
            if needed and name not in given:
                raise SpecError(f"a run needs the field '{name}'")
        return cls(**given)

    def to_json(self) -> dict[str, Any]:
        """Every field as JSON has it; one of `LATER` only where it says something."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in ((one.name, getattr(self, one.name)) for one in fields(self))
            if name not in LATER or value != LATER[name]
        }

    def canonical(self) -> Run:
        """The same run in the words that records use. Raises what reading its texts raises."""
        return replace(self, **self._read.texts)

    @cached_property
    def key(self) -> str:
        """sha256 of the canonical run: its identity, wherever it is trained or stored."""
        return sha256(canonical(self.to_json() | self._read.texts))

    @cached_property
    def shape(self) -> Run:
        """The run without what models that train together may differ in: seed, learning rate and
        weight decay are neutral. Runs of equal shape may share a pack.
        """
        return replace(self.canonical(), seed=0, learning_rate=1.0, weight_decay=0.0)

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

    @property
    def stretches(self) -> list[tuple[Task, int]]:
        """What is trained one after the other: tasks, each with how many steps."""
        ends = [0, *(stage.until for stage in self.stages), self.steps]
        tasks = [*(stage.task for stage in self.stages), self.trained]
        return [
            (task, end - start) for task, (start, end) in zip(tasks, pairwise(ends), strict=True)
        ]

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

    def drawn(self, steps: Sequence[int]) -> int:
        """Prompts of the task itself that every seed that was tested has trained on, at least, from
        the steps of each.
        """
        # the stack may be of a mixer that is not imported here
        stages = read_stages(parse_task(self.task), self.curriculum)
        before = stages[-1].until if stages else 0
        return self.batch * max(0, min(steps, default=0) - before)

    def check(self) -> None:
        """Raises SpecError, UnknownNameError or SizeError where no model can be trained so: in one
        line, without torch. What a mixer refuses beside is told when the model is built.
        """
        read = self._read
        _check_stack(read.stack, self.width, read.length)
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
        task, length = read.task, read.length
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


def _check_stack(stack: Architecture, width: int, prompt: int) -> None:
    """Raises SizeError for a stack that cannot be trained in a model of that width on prompts of at
    most `prompt` tokens, naming the layer, the numbers and the remedy.
    """
    if stack.positions not in ("embedded", "none"):
        raise SizeError(
            f"positions={stack.positions}: such a stack can be judged, but not trained; take"
            " positions=embedded or positions=none"
        )
    for part in (part for layer, _ in stack.counted() for part in layer):
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
                f"{part.name}: {size}={window:,} is longer than the longest prompt, {prompt:,}"
                f" tokens; take {size}={prompt} or less, or attention without a window"
            )

"""The checker's half of a construction: how its proof is derived from the weights alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, NamedTuple, TypeVar

from separatrix.model import Model
from separatrix.tasks import Task

TaskT = TypeVar("TaskT", bound=Task)


class Derived(NamedTuple):
    """What a record must say, as the weights give it."""

    layers: list[dict[str, Any]]
    """The proof, layer by layer."""
    margin: Fraction
    """The right logit leads by at least this, in float32."""
    used: dict[str, int]
    """Layers by kind, and the key and value numbers that carry something."""


@dataclass(frozen=True, kw_only=True)
class Derivation(Generic[TaskT]):
    """One construction as the checker knows it. It shares the name and the kind of task with the
    builder's half, `separatrix.constructions`, and no code.
    """

    name: str
    """What records call the construction."""
    task: type[TaskT]
    """The kind of task that it solves."""
    derive: Callable[[TaskT, Model], Derived]
    """The proof from the weights. Raises CheckFailed where they do not bear it out."""
    ids: Callable[[TaskT], list[int]]
    """How many ids may stand at each position of the task's inputs."""
    largest_weight: float
    """The largest weight with which nothing in float32 can overflow."""

"""How the proof of a construction is derived from the weights alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from separatrix.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.tasks import Task
from separatrix.tasks.base.task import Tokens

TaskT = TypeVar("TaskT", bound=Task)


class Derived(NamedTuple):
    """What a record must say, as the weights give it."""

    layers: list[dict[str, Any]]
    """The proof, layer by layer."""
    margin: Fraction
    """The right logit leads by at least this, in float32."""
    used: dict[str, int]
    """Layers by kind, and the key and value numbers that carry something."""
    closest: Callable[[np.random.Generator], Tokens]
    """Inputs that meet the queries and answers at which the proof is closest to failing; the rest
    of each is drawn.
    """
    arithmetic: str = FP32.said
    """What is assumed of the arithmetic."""
    formats: tuple[str, ...] = ("fp32",)
    """Number formats of weights and states that the proof is about, float32 among them."""
    exact: bool = False
    """Whether nothing is rounded at all: then the weights serve prompts of every length, token by
    token and in parallel.
    """


@dataclass(frozen=True, kw_only=True)
class Derivation(Generic[TaskT]):
    """One construction as it is derived: by the checker, and for the record by its builder, whose
    half (`separatrix.constructions`) it shares name and kind of task with, and no code.
    """

    name: str
    """What records call the construction."""
    task: type[TaskT]
    """The kind of task that it solves."""
    derive: Callable[[TaskT, Model, Arithmetic], Derived]
    """The proof from the weights, in an arithmetic. Raises CheckFailed where they do not bear it
    out.
    """
    ids: Callable[[TaskT], list[int]]
    """How many ids may stand at each position of the task's inputs."""
    asked: Callable[[TaskT, Tokens], NDArray[np.bool_]] | None = None
    """Which of these inputs the claim is about, where it is not about all."""

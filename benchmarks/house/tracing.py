"""Who calls whom among functions of ours, while something runs.

What runs while a module is loaded is left out. Calls through other libraries count as ours.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple


class Function(NamedTuple):
    """A function of ours, by the file it stands in and its name there."""

    file: str
    name: str
    is_generator: bool

    @classmethod
    def of(cls, code: CodeType) -> Function:
        is_generator = bool(code.co_flags & inspect.CO_GENERATOR)
        return cls(code.co_filename, code.co_qualname, is_generator)

    @property
    def is_closure(self) -> bool:
        return "<locals>" in self.name

    @property
    def is_named(self) -> bool:
        """Whether it was written with `def`: no lambda, no comprehension."""
        return not self.name.endswith(">")


class Call(NamedTuple):
    """One function of ours calls another; what is called from outside has no caller."""

    caller: Function | None
    callee: Function


class Recorder:
    """A profiler that keeps each pair of caller and callee, in the order of their first calls."""

    def __init__(self, package: Path) -> None:
        self.prefix = f"{package}{os.sep}"
        self.calls: dict[Call, None] = {}

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(self.prefix):
            return
        stack = list(self.own_code(frame))
        if any(code.co_name == "<module>" for code in stack):
            return
        caller = Function.of(stack[1]) if len(stack) > 1 else None
        self.calls[Call(caller, Function.of(stack[0]))] = None

    def own_code(self, frame: FrameType | None) -> Iterator[CodeType]:
        """The code of our own that is running, the innermost first."""
        while frame is not None:
            if frame.f_code.co_filename.startswith(self.prefix):
                yield frame.f_code
            frame = frame.f_back

"""Packages that can be called: `sx.verify(record)` works whether `verify` is the function or, once imported, the package of that name."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return getattr(self, self.__name__.rpartition(".")[2])(*arguments, **named)


def make_callable(package: str) -> None:
    """Lets the package be called as the function in it that has its name."""
    sys.modules[package].__class__ = _CallablePackage

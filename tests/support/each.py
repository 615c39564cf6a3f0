"""Tiny cases in one test: what a case costs in pytest itself is more than what it costs to run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

_PARAM = type(pytest.param())
most = 0
"""Cases of a test with several, spread evenly, as `--few` has it; 0: all."""


def each(names: str, cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like `pytest.mark.parametrize`, but the cases are one test; a failure names its case.

    For tests without files: all cases get the same fixtures. Several stand above each other as
    parametrize does, and `pytest.param` gives up its marks.
    """
    keys = [name.strip() for name in names.split(",")]
    values = [
        case.values if isinstance(case, _PARAM) else (case,) if len(keys) == 1 else case
        for case in cases
    ]
    assert values

    def over(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            some = values
            if most and len(values) > most:
                some = [values[i * len(values) // most] for i in range(most)]
            for case in some:
                named = dict(zip(keys, case, strict=True))
                try:
                    test(**fixtures, **named)
                except BaseException as error:
                    error.add_note(", ".join(f"{key} = {value}" for key, value in named.items()))
                    raise

        left = [one for name, one in signature.parameters.items() if name not in keys]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return over

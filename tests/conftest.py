"""Shapes are checked while testing: jaxtyping with beartype on every module that holds tensors. The
command line is built once in a process: typer builds it anew at every call, a tenth of a second.
Of drawn inputs a test tries fifty, unless it says otherwise: the same ones every time, so that a
change is judged by what it changes; `--anew` draws others. One thread each: tests run side by side.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from zlib import crc32

import hypothesis
import jaxtyping
import pytest
import typer.main
from support import each

pytest_plugins = (
    "support.printed_audits",
)  # from here, since conftest files of folders are not read where tests run in several processes

os.environ.setdefault("OMP_NUM_THREADS", "1")
jaxtyping.install_import_hook(
    [
        "separatrix.mixers.laws",
        "separatrix.mixers",
        "separatrix.models.model",
        "separatrix.mixers.plugins",
    ],
    "beartype.beartype",
)
# how long a draw takes is the machine's: no test is about it
ANY_TIME = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("fifty", max_examples=50, derandomize=True, **ANY_TIME)
hypothesis.settings.register_profile("anew", max_examples=50, **ANY_TIME)
hypothesis.settings.load_profile("fifty")
SEVERAL = 4
"""Tiny cases of one test that stand for one of others."""
typer.main.get_command = functools.cache(typer.main.get_command)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", help="K/N: of what is marked slow or long the K-th of N parts")
    parser.addoption("--few", type=int, help="at most so many cases of a test, spread evenly")
    parser.addoption("--anew", action="store_true", help="draw inputs that were not drawn before")


def pytest_configure(config: pytest.Config) -> None:
    few = config.getoption("--few")
    each.most = SEVERAL * few if few else 0
    if config.getoption("--anew"):
        hypothesis.settings.load_profile("anew")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what `--part` and `--few` leave out."""
    few, asked = config.getoption("--few"), config.getoption("--part")
    part, _, parts = (asked or "1/1").partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 0 < int(part) <= int(parts)):
        raise pytest.UsageError(f"--part {asked}: not K/N with 1 <= K <= N, as in --part 1/3")
    if few is not None and few < 1:
        raise pytest.UsageError(f"--few {few}: a test keeps at least 1 case")
    quick: dict[str, list[pytest.Item]] = {}
    marked: dict[str, list[pytest.Item]] = {}
    for item in items:
        slow = any(item.get_closest_marker(mark) for mark in ("slow", "long"))
        (marked if slow else quick).setdefault(item.nodeid.partition("[")[0], []).append(item)
    left = set[pytest.Item]()
    for name, cases in marked.items():
        # by turns within each test, so that every part has some cases of each that has many
        turn = crc32(name.encode())
        left |= {case for i, case in enumerate(cases, turn) if i % int(parts) != int(part) - 1}
    for cases in quick.values():
        if few is not None and len(cases) > few:
            left |= {*cases} - {cases[i * len(cases) // few] for i in range(few)}
    config.hook.pytest_deselected(items=[item for item in items if item in left])
    items[:] = [item for item in items if item not in left]


@pytest.fixture
def nan_memory() -> Iterator[None]:
    """Fills `torch.empty` with NaN, so that unwritten outputs cannot hide."""
    import torch

    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(before)

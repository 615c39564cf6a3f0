"""Three walks through the package, and the rooms that each goes through.

Each runs in a process of its own, which notes who calls whom among our own functions.

  - A door is a pair of files in two rooms of which one calls the other. The walk takes every door
    once, in the order of first calls, and each door leads into the room of the file that is called.
  - A return is an arrival in a room that the walk had left before.
  - Returns by function count the same on another path: all named functions, by their first calls.
    There also the way back up from a call is seen, so the number is larger.
  - A climb is a pair of functions of which the lower one calls the higher one, by the floors.
    As imports point down, the higher one was handed down: mostly a closure, or a generator
    whose values are asked for below.
"""

from __future__ import annotations

import io
import json
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from pathlib import Path

from house.sources import PACKAGE, module_name, room_of
from house.tracing import Call, Function, Recorder

SCRIPT = Path(__file__).parents[1] / "shape.py"
FLOORS_FILE = Path("tests", "contract", "test_floors.py")


@dataclass(frozen=True)
class Climb:
    """A function that calls one of a higher floor, and what kind of function that one is."""

    caller: str
    callee: str
    kind: str


@dataclass(frozen=True)
class Walk:
    """The rooms that one run goes through, in order, as the head of this file describes it."""

    path: list[str]
    rooms: int
    transitions: int
    returns: int
    returns_by_function: int
    climbs: list[Climb]
    functions: list[str]
    """All named functions by their first calls, as `module:name`."""


def prepare_analyze(_folder: Path) -> Callable[[], object]:
    """A spec to its card, as the command line does it."""
    sys.argv = [PACKAGE, "analyze", "qwen3-next-80b", "--json"]
    return import_module(f"{PACKAGE}.__main__").main


def prepare_train(_folder: Path) -> Callable[[], object]:
    """A task's tokens to an accuracy: two steps of training, then what it gets right."""
    import separatrix as sx

    run = sx.Run(
        architecture="gdn + full @ heads=1, head_dim=4, value_dim=4",
        optimiser="adamw",
        task="eva:n=4,V=4",
        seed=0,
        steps=2,
        batch=4,
        width=8,
        hidden=8,
        tested=8,
    )
    train = sx.train
    return lambda: train(run)


def prepare_construct(folder: Path) -> Callable[[], object]:
    """A construction to its check, by way of the files that it writes."""
    import separatrix as sx

    task = sx.parse_task("seqcomp:L=2,m=4,n_1=2")
    construct = sx.construct
    verify = sx.verify

    def walk() -> None:
        built = construct(task)
        built.save(folder)
        verify(built.record, folder=folder)

    return walk


WALKS = {
    "analyze": prepare_analyze,
    "train": prepare_train,
    "construct": prepare_construct,
}


def take_walk(name: str, root: Path) -> Walk:
    """Runs one walk in this process, which must not have imported another checkout's package."""
    # before what is installed: the package of ROOT, and what its tests import
    sys.path[:0] = [str(root / "src"), str(root / "tests")]
    recorder = Recorder(root / "src" / PACKAGE)
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        walk = WALKS[name](Path(folder))
        sys.setprofile(recorder)
        try:
            walk()
        except SystemExit as end:
            if end.code:
                raise
        finally:
            sys.setprofile(None)
    return walk_of(list(recorder.calls), floors_in(root), root / "src")


def floors_in(root: Path) -> dict[str, int]:
    """Room -> its floor, counted from below, as the test of the floors says."""
    floors = runpy.run_path(str(root / FLOORS_FILE))["FLOORS"]
    if isinstance(floors, Mapping):
        floors = floors.values()
    return {room: floor for floor, rooms in enumerate(floors) for room in rooms}


def walk_of(calls: Sequence[Call], floors: Mapping[str, int], base: Path) -> Walk:
    def module(function: Function) -> str:
        return module_name(Path(function.file), base)

    def room(function: Function) -> str:
        return room_of(module(function))

    def full_name(function: Function) -> str:
        return f"{module(function).removeprefix(f'{PACKAGE}.')}:{function.name}"

    doors = {
        (caller.file if caller else None, callee.file): room(callee)
        for caller, callee in calls
        if caller is None or room(caller) != room(callee)
    }
    functions = dict.fromkeys(callee for _, callee in calls if callee.is_named)
    path = without_repeats(doors.values())
    return Walk(
        path=path,
        rooms=len(set(path)),
        transitions=len(path) - 1,
        returns=count_returns(path),
        returns_by_function=count_returns(without_repeats(map(room, functions))),
        climbs=[
            Climb(full_name(caller), full_name(callee), kind_of(callee))
            for caller, callee in calls
            if caller and floors[room(callee)] > floors[room(caller)]
        ],
        functions=list(map(full_name, functions)),
    )


def without_repeats(path: Iterable[str]) -> list[str]:
    """The path with each stay in a room written once."""
    return [room for room, _ in groupby(path)]


def count_returns(path: Sequence[str]) -> int:
    return len(path) - len(set(path))


def kind_of(function: Function) -> str:
    if function.is_generator:
        return "generator"
    return "closure" if function.is_closure else "function"


def walk_elsewhere(name: str, root: Path) -> Walk:
    """Runs one walk in a process of its own."""
    return walks_elsewhere([name], root)[name]


def walks_elsewhere(names: Sequence[str], root: Path) -> dict[str, Walk]:
    """Runs walks in one process, which writes no bytecode."""
    environment = os.environ | {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, str(SCRIPT), str(root), "--walk", *names]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return {
        name: Walk(**body | {"climbs": [Climb(**climb) for climb in body["climbs"]]})
        for name, body in json.loads(done.stdout).items()
    }

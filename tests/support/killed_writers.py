"""Processes that write to a store and are killed; each is forked from this one, which has little
to load: `python killed_writers.py statements 1`, in a folder of its own.

`statements N` kills a writer before every N-th statement that SQLite executes, `moments N` kills N
writers whenever it comes; `rivals N` lets N writers claim the same runs at once, of which every
second is killed. After each kill the store must hold what was committed and nothing else,
and another process must be able to end every run at once, each run once. Prints how many writers
were killed; fails where something else is found.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from separatrix.training.packs import Pack
from separatrix.training.sweeps.store import Store
from support.toy_runs import checkpoint, outcome, pack, update

PACK = pack(0, 1, 2)
MANY = pack(*range(40))
"""What rivals train."""
FIRST, SECOND, THIRD = PACK.runs
LONGEST = 0.05
"""Seconds that the work takes, and some more."""

Step = Callable[[Store], object]
STEPS: tuple[Step, ...] = (
    lambda store: store.take_up(PACK.keys, "writer"),
    lambda store: store.tell(PACK, update(PACK, 10, checkpoint=bytes(20_000)), "writer"),
    lambda store: store.tell(
        PACK, update(PACK, 20, finished=[FIRST], checkpoint=bytes(300_000)), "writer"
    ),
    lambda store: store.fail([SECOND.key], "no luck", "writer"),
    lambda store: store.tell(
        PACK, update(PACK, 30, finished=[THIRD], metrics=[], checkpoint=None), "writer"
    ),
)
"""Transactions that write whatever can be written."""
State = list[object]


def state(store: Store) -> State:
    """All that a store says of its runs, but for times."""
    runs = [
        [row.status, row.step, row.seconds, row.result, row.error, row.completions, row.owner]
        for row in store.rows()
    ]
    return [*runs, [store.metrics(key) for key in PACK.keys], checkpoint(store, PACK)]


def work(store: Store) -> None:
    for step in STEPS:
        step(store)


def traced(store: Store, told: Callable[[str], None]) -> None:
    """Calls `told` with each statement before it is executed."""
    store._database._connection.set_trace_callback(told)


def fresh(name: str) -> Path:
    """A new store with three runs that wait."""
    path = Path(name, "runs.db")
    with Store.create(path, version="1") as store:
        store.add("a", PACK.runs)
    return path


def states() -> list[State]:
    """What a store holds before the first step and after each."""
    with Store.open(fresh("states"), version="1") as store:
        found = [state(store)]
        for step in STEPS:
            step(store)
            found.append(state(store))
    return found


def statements() -> list[str]:
    """What SQLite executes for the whole work."""
    found: list[str] = []
    with Store.open(fresh("statements"), version="1") as store:
        traced(store, found.append)
        work(store)
        traced(store, lambda _: None)
    return found


def forked(path: Path, work: Step) -> int:
    """A child that opens the store, says so by leaving a file, and works."""
    child = os.fork()
    if child == 0:
        store = Store.open(path, version="1")
        path.with_name("open").touch()
        work(store)
        # what follows would close the store
        os.kill(os.getpid(), signal.SIGKILL)
    return child


def waited(child: int) -> None:
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == -signal.SIGKILL, code


def ended_by_another(path: Path) -> None:
    """Another process takes over at once and ends what is left."""
    with Store.open(path, version="1") as store:
        store._database.looks_sound()
        store.retry(PACK.keys)
        left = [run for run in PACK.runs if store.run(run.key).status != "done"]
        held = store.take_up(PACK.keys, "another")[0]
        assert held == [run.key for run in left], (held, left)
        if left:
            part = Pack(tuple(left))
            store.tell(part, update(part, 40, finished=left, checkpoint=None), "another")
        for row in store.rows():
            assert (row.status, row.completions) == ("done", 1), row
            assert row.outcome == outcome(row.run), row


def at_statements(every: int) -> int:
    expected = states()
    all_of_them = statements()
    assert all_of_them.count("COMMIT") == len(STEPS), all_of_them
    places = range(0, len(all_of_them), every)
    for place in places:
        path = fresh(f"at{place}")
        seen = 0

        def told(_: str, place: int = place) -> None:
            nonlocal seen
            if seen == place:
                os.kill(os.getpid(), signal.SIGKILL)
            seen += 1

        def until(store: Store, told: Callable[[str], None] = told) -> None:
            traced(store, told)
            work(store)

        waited(forked(path, until))
        committed = all_of_them[:place].count("COMMIT")
        with Store.read(path) as store:
            store.version = "1"
            assert state(store) == expected[committed], (place, all_of_them[place])
        ended_by_another(path)
    return len(places)


def at_moments(number: int) -> int:
    expected = states()
    rng = random.Random(0)
    reached = set()
    for place in range(number):
        path = fresh(f"moment{place}")
        child = forked(path, work)
        while not path.with_name("open").exists():
            time.sleep(0.0005)
        time.sleep(rng.uniform(0, LONGEST))
        os.kill(child, signal.SIGKILL)
        waited(child)
        with Store.read(path) as store:
            store.version = "1"
            reached.add(expected.index(state(store)))
        ended_by_another(path)
    assert len(reached) > 1, f"all were killed after step {reached}"
    return number


def rival(path: Path, name: str, loses: bool, rivals: int) -> None:
    """Claims one run after the other and ends it, until none is left; one that loses is killed
    while it holds some. All begin at once.
    """
    with Store.open(path, version="1") as store, Path(name).open("w") as log:
        Path(f"{name}.ready").touch()
        while len([*Path().glob("*.ready")]) < rivals:
            time.sleep(0.001)
        keys = [run.key for run in MANY.runs]
        random.Random(name).shuffle(keys)
        while store.counts() != {"done": len(keys)}:
            held = store.take_up(keys[:4], name)[0]
            print(*held, file=log, flush=True)
            if held and loses:
                os.kill(os.getpid(), signal.SIGKILL)
            for key in held:
                alone = Pack((store.run(key).run,))
                told = update(alone, 10, finished=alone.runs, checkpoint=None)
                store.tell(alone, told, name)
            keys = keys[4:] + keys[:4]
            # the others have the lock in turn
            time.sleep(0.02)


def at_once(number: int) -> int:
    path = Path("runs.db")
    with Store.create(path, version="1") as store:
        store.add("a", MANY.runs)
    children = []
    killed = 0
    for place in range(number):
        child = os.fork()
        if child == 0:
            rival(path, f"rival{place}", place % 2 == 1, number)
            os._exit(0)
        children.append(child)
    for place, child in enumerate(children):
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        # one that came late may have found nothing left to hold
        lost = place % 2 == 1 and Path(f"rival{place}").read_text().strip() != ""
        assert code == (-signal.SIGKILL if lost else 0), (place, code)
        killed += lost
    assert killed
    claimed = [
        key for place in range(0, number, 2) for key in Path(f"rival{place}").read_text().split()
    ]
    # whoever was not killed trained other runs than the others that were not
    assert sorted(claimed) == sorted(MANY.keys), len(claimed)
    with Store.read(path) as store:
        assert all((row.status, row.completions) == ("done", 1) for row in store.rows())
    return number


if __name__ == "__main__":
    kind, number = sys.argv[1:]
    kinds = {"statements": at_statements, "moments": at_moments, "rivals": at_once}
    print(kinds[kind](int(number)))

#!/usr/bin/env python3
"""Trains the cells of plan.py one after the other with `separatrix sweep`, from a checkout that
stays as it is, and keeps each run as one line of text: what is in the rows is not trained again,
on whatever machine.

    run.py --checkout DIR --rows FILE --store FILE [--from CELL] [--hours H] [--list]

After each cell the plan is made anew: rates that have come name the cells that follow. A row is the
run as `separatrix runs list --json` tells it, with the cell's name, the commit, its curve and a
sha256 of the rest. Interrupted (Ctrl-C, SIGTERM), the sweep saves where it is, and the same command
goes on.
"""

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from itertools import dropwhile
from pathlib import Path

import plan

MOST = 240_000
"""Steps of one model at once: two hours or three of a core. A machine may be lost, and what ran on
it.
"""


def digest(row):
    rest = {k: v for k, v in row.items() if k != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def read(file):
    """The finished rows by cell. A line that was edited or cut is named and left out: its run is
    trained again.
    """
    rows = {}
    for number, line in enumerate(file.read_text().splitlines() if file.exists() else [], 1):
        try:
            row = json.loads(line)
            right = row["sha256"] == digest(row)
        except (ValueError, KeyError, TypeError):
            right = False
        if not right:
            print(
                f"{file.name}:{number}: edited or cut; this run is trained again", file=sys.stderr
            )
        elif row["status"] in ("done", "diverged"):
            rows.setdefault(row["cell"], []).append(row)
    return rows


def rates(cell):
    return (
        cell["learning_rate"]
        if isinstance(cell["learning_rate"], list)
        else [cell["learning_rate"]]
    )


def missing(rows, cell):
    """The seeds of a cell that have no row yet. Raises SystemExit where a row has other settings
    than the plan.
    """
    have = set()
    for row in rows.get(cell["name"], []):
        other = [k for k, v in plan.settings(cell).items() if row["asked"].get(k) != v]
        if other:
            sys.exit(
                f"{cell['name']}: its rows have another {other[0]} than the plan; rename the cell"
            )
        have.add((row["run"]["seed"], row["run"]["learning_rate"]))
    return [s for s in cell["seeds"] if any((s, r) not in have for r in rates(cell))]


def curve(separatrix, store, key, environment):
    """At most 60 pairs of step and running accuracy, the last one among them."""
    show = [*separatrix, "runs", "show", key, "--store", str(store), "--json"]
    out = subprocess.run(show, env=environment, capture_output=True, text=True)
    points = json.loads(out.stdout or "{}").get("metrics", [])
    every = max(1, -(-len(points) // 59))
    kept = points[::every] + (points[-1:] if (len(points) - 1) % every else [])
    return [[p["step"], round(p["accuracy"], 4)] for p in kept]


def main():
    parser = argparse.ArgumentParser()
    for name in ("checkout", "rows", "store"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--hours", type=float, default=1e9)
    parser.add_argument(
        "--from", dest="first", default="", help="leave out the cells before the first named so"
    )
    parser.add_argument(
        "--list", action="store_true", help="only say what is there and what is missing"
    )
    a = parser.parse_args()
    if a.list:
        rows = read(a.rows)
        for cell in plan.cells(rows):
            there = len(cell["seeds"]) - len(missing(rows, cell))
            print(f"  {cell['name']:<40} {there} of {len(cell['seeds'])}")
        return
    end = time.time() + 3600 * a.hours
    a.rows.parent.mkdir(parents=True, exist_ok=True)
    a.store.parent.mkdir(parents=True, exist_ok=True)
    separatrix = [str(a.checkout.resolve() / ".venv/bin/python"), "-m", "separatrix"]
    head = ["git", "-C", str(a.checkout), "rev-parse", "HEAD"]
    commit = subprocess.run(head, capture_output=True, text=True, check=True).stdout.strip()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    child, stopped = None, False

    def stop(*_):
        nonlocal stopped
        stopped = True
        if child and child.poll() is None:
            child.send_signal(signal.SIGINT)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    os.nice(19)
    failed = set()
    while not stopped and time.time() < end:
        rows = read(a.rows)
        planned = dropwhile(lambda c: not c["name"].startswith(a.first), plan.cells(rows))
        open_cells = ((c, missing(rows, c)) for c in planned if c["name"] not in failed)
        cell, seeds = next(((c, s) for c, s in open_cells if s), (None, None))
        if cell is None:
            print("nothing is missing" if not failed else f"failed: {sorted(failed)}")
            return
        seeds = seeds[: max(1, MOST // cell["steps"])]
        baseline = {
            k: v
            for k, v in cell.items()
            if k not in ("name", "seeds", "architecture", "learning_rate")
        }
        grid = {"architecture": [cell["architecture"]], "learning_rate": rates(cell)}
        file = a.store.with_name(cell["name"] + ".yaml")
        file.write_text(
            json.dumps({"name": cell["name"], "baseline": baseline, "grid": grid, "seeds": seeds})
        )
        print(
            time.strftime("%H:%M:%S"),
            cell["name"],
            "seeds",
            seeds,
            "rates",
            rates(cell),
            flush=True,
        )
        sweep = [*separatrix, "sweep", str(file), "--store", str(a.store), "--workers", "1"]
        child = subprocess.Popen(
            sweep, env=environment, stdout=subprocess.DEVNULL, start_new_session=True
        )
        child.wait()
        listing = [
            *separatrix,
            "runs",
            "list",
            "--store",
            str(a.store),
            "--sweep",
            cell["name"],
            "--json",
            "--limit",
            "0",
        ]
        out = subprocess.run(listing, env=environment, capture_output=True, text=True)
        have = {(r["run"]["seed"], r["run"]["learning_rate"]) for r in rows.get(cell["name"], [])}
        with a.rows.open("a") as kept:
            for run in json.loads(out.stdout or "[]"):
                if (
                    run["status"] not in ("done", "diverged")
                    or (run["run"]["seed"], run["run"]["learning_rate"]) in have
                ):
                    continue
                row = {"cell": cell["name"], "commit": commit, "asked": plan.settings(cell)}
                row |= {
                    k: run[k] for k in ("key", "status", "version", "seconds", "run", "outcome")
                }
                row["curve"] = curve(separatrix, a.store, row["key"], environment)
                row["sha256"] = digest(row)
                kept.write(json.dumps(row, sort_keys=True) + "\n")
        if not stopped and {*seeds} & {*missing(read(a.rows), cell)}:
            failed.add(cell["name"])
            print(
                f"  {cell['name']}: the sweep ended with {child.returncode} and left runs undone",
                file=sys.stderr,
            )


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The cells of the study, in the order in which they are to be trained.

    plan.py --rows FILE

A layout is trained with the seeds of the study once the rows hold its rates: the one that solved
most seeds, then the one with fewest steps, then the one with the highest accuracy. A best rate at
the edge of those tried asks for the next.
"""

import argparse
import json
import sys
from itertools import groupby
from pathlib import Path

TASKS = {
    "recall": {"task": "recall:n=16,K=16,V=16,form=independent,queries=all", "steps": 3000},
    "compose": {"task": "seqcomp:L=2,m=4,n_1=3,queries=all,split=1,stages=1", "steps": 3000},
    "parity": {"task": "parity:n=40,queries=all", "steps": 9600},
}
# The outlook's questions, at sizes that a stack of full layers solves (parity slowly) and one that
# reads and mixes in less than 600 steps: N = 2,400 is four times that, and ten seeds are at most
# 24,000 steps of one model. Contrasts, named before their first run, Holm over each question's:
# - sparse capacity: recall, the last layer reads k = 1, 2, 4 or 8 blocks of two tokens (a fact has
#   two) and its own block, each k against one full layer. MoBA: its choice is trained with its keys
#   (of an indexer nothing is trained here, and NSA reads all blocks in a compressed branch).
# - recurrence ablation: layers with a state of 64 numbers against windows whose keys and values are
#   64 numbers, on recall, composition and parity, each beside as many full layers as it needs.
# - distribution shift: right answers at twice the length (paired by seed, sign flips), without
#   places, of seeds that solved the task: recall, 1-end against all; parity, none against 1-end.
ENOUGH = 2400
OUTLOOK = {
    "recall": {"task": TASKS["recall"]["task"], "steps": ENOUGH},
    "compose": {"task": TASKS["compose"]["task"], "steps": ENOUGH},
    "parity": {"task": TASKS["parity"]["task"], "steps": ENOUGH},
    "shift-recall8": {
        "task": "recall:n=8,K=16,V=16,form=independent,queries=all",
        "longer": ["n=16"],
        "steps": ENOUGH,
    },
    "shift-parity20": {"task": "parity:n=20,queries=all", "longer": ["n=40"], "steps": ENOUGH},
}
# Which of these does the all-full stack solve, and one full layer not? It becomes a fourth task.
SCOUTS = {
    "compose3": {"task": "seqcomp:L=3,m=4,n_1=2,n_2=2,queries=8,split=1,stages=1", "steps": 6000},
    "khop": {"task": "khop:n=36,V=6,k=2,queries=all", "steps": 6000},
    "recall24": {"task": "recall:n=24,K=24,V=16,form=independent,queries=all", "steps": 3000},
}
# None did (all full is right in 90 % of three steps; 2-hop is solved by one full layer, too): three
# steps once more, after two, three times as long; the others where all full solves it.
LAST_SCOUT = {
    "task": SCOUTS["compose3"]["task"],
    "curriculum": ["L=2@3000"],
    "steps": 18_000,
}
# That task is given up: with 21,000 steps ten of ten seeds of two full layers were solved, the
# slowest at 12,460; with four times as many one of five at 48,360, so that one that is not solved
# needs 193,440, for each of ten seeds. In its place three steps over permutations, whose tables are
# half as long, and chains of three and four hops.
GIVEN_UP = "compose3-gdn-8-2-spread-cheap-60000"
SMALLER = {
    f"steps3-{m}": f"seqcomp:L=3,m={m},form=uniform,queries=all,split=1,stages=1" for m in (6, 8)
} | {f"hops{k}": f"khop:n={4 * k + 4},V=4,k={k},queries=all" for k in (3, 4)}
# In 6,000 steps all full solves three hops alone, in four of four scouts, the slowest at 2,920; one
# full layer one of four, at 5,800. Four times that are 24,000. Contrasts, named before their first
# run: two full layers, spread, against one, last, and against four, spread. Ten seeds of two then
# ended at 2,420 to 6,940, right in 98.6 to 99.4 % of fresh answers: what is not solved beside them
# would need 28,000. The others come last.
FOURTH = "hops3"
TASKS[FOURTH] = {"task": SMALLER[FOURTH], "steps": 24_000}
CHEAP = {
    "gdn": "gdn(heads=1,head_dim=4{conv},negative=true)",
    "mamba2": "mamba2(heads=1,head_dim=4{conv})",
    "window": "window(heads=1,head_dim=16,size=4{conv})",
    "gdn64": "gdn(heads=1,head_dim=8{conv},negative=true)",
    "window64": "window(heads=1,head_dim=8,size=4{conv})",
}
BLOCKS = "moba(heads=2,head_dim=16,block=2,topk=%s{conv})"
FULL = "full(heads=2,head_dim=16{conv})"
RATES = [1.5e-3, 3e-3, 6e-3]
EDGES = [3.75e-4, 2.4e-2]
# Eight seeds in one direction have p = 2/2^8, and Holm over seven contrasts makes it 0.055: nothing
# could be shown. Ten make 0.014.
MORE = 10
CONTRASTED = {
    "recall-gdn-8-1-start-cheap",
    "recall-gdn-8-1-end-cheap",
    "compose-gdn-8-1-start-cheap",
    "compose-gdn-8-1-end-cheap",
    "compose-gdn-8-2-spread-cheap",
    "recall-gdn-8-1-start-every",
    "recall-gdn-8-1-end-every",
    "recall-gdn-8-1-start-none",
    "recall-gdn-8-1-end-none",
    "recall-gdn-8-none-cheap",
    "parity-gdn-8-all-cheap",
    "parity-gdn-8-none-cheap",
}
# In these contrasts a seed was solved later than after a quarter of 3,000 steps: both cells anew,
# with more.
RAISED = {
    "recall-gdn-8-1-start-none": 6000,
    "recall-gdn-8-1-end-none": 6000,
    "compose-gdn-8-1-start-cheap": 10_000,
    "compose-gdn-8-1-end-cheap": 10_000,
    "compose-gdn-8-2-spread-cheap": 10_000,
}
# Later still than a quarter of those: once more, the cheapest contrast first.
AGAIN = [
    ("compose", "1-start", "cheap", 39_000),
    ("compose", "1-end", "cheap", 39_000),
    ("parity", "none", "cheap", 27_000),
    ("parity", "all", "cheap", 27_000),
    ("recall", "1-end", "none", 20_000),
]
# One full layer last, no convolution: the slowest of ten seeds was solved at 19,880 steps, so one
# that is not solved first needs 80,000. Ten hours that close one contrast: after all else.
LATEST = [("recall", "1-end", "none", 80_000), ("recall", "1-start", "none", 80_000)]
# Six of the 80 cells that were trained by 1 December 2026, drawn at random: again with other seeds,
# and three times the steps, to see whether they lie inside what the page says; four of the last,
# of which no seed was solved.
DRAWN = {
    "compose-gdn-8-all-every": 8,
    "compose-window64-8-2-spread-cheap-2400": 8,
    "compose-window-8-2-spread-cheap": 8,
    "compose-mamba2-8-2-spread-cheap": 8,
    "compose-mamba2-8-1-end-cheap": 8,
    "compose-gdn-8-none-cheap": 4,
}
SAME = {"batch": 32, "width": 32, "hidden": 64, "tested": 1024}


def places(where, layers):
    """Of the full layers, from 0."""
    if where in ("none", "all"):
        return range(layers if where == "all" else 0)
    many, at = where.split("-")
    many = int(many)
    return {
        "start": range(many),
        "middle": [layers // 2 - 1],
        "end": range(layers - many, layers),
        "spread": range(layers // many - 1, layers, layers // many),
    }[at]


def stack(cheap, where, layers, conv, reading=FULL):
    """conv: "every" layer has a convolution of four tokens, "cheap" ones only (as released hybrids
    have them), or "none". `reading` stands where full layers do.
    """
    full = places(where, layers)
    written = {
        "full": ",conv=4" if conv == "every" else "",
        "cheap": "" if conv == "none" else ",conv=4",
    }
    kinds = [
        reading.format(conv=written["full"])
        if i in full
        else CHEAP[cheap].format(conv=written["cheap"])
        for i in range(layers)
    ]
    counted = ((kind, len(list(of))) for kind, of in groupby(kinds))
    return " + ".join(f"{kind}*{n}" if n > 1 else kind for kind, n in counted)


def accuracy(runs):
    return sum(r["outcome"]["right"] / max(1, r["outcome"]["due"]) for r in runs) / len(runs)


def best(runs):
    """The rate that solved most seeds, then soonest, then with the highest accuracy; and whether
    that says something: where nothing is solved, accuracies of a plateau differ by luck.
    """
    of = {}
    for run in runs:
        of.setdefault(run["run"]["learning_rate"], []).append(run)

    def key(rate):
        solved = [
            r["outcome"]["steps_done"] for r in of[rate] if r["outcome"].get("stopped") == "solved"
        ]
        mean = sum(solved) / len(solved) if solved else 0
        return (-len(solved), mean, -accuracy(of[rate]), abs(rate - 3e-3))

    first = min(of, key=key)
    others = [accuracy(of[rate]) for rate in of if rate != first]
    return first, key(first)[0] < 0 or accuracy(of[first]) > max(others) + 0.05


def rated(rows, cell, name=None, asked=RATES, steps=1500):
    """The cells that look for a layout's rate; the rate once their rows are there (None before)."""
    name, tried = name or cell["name"] + "-rates", []
    while True:
        yield cell | {"name": name, "learning_rate": asked, "seeds": [100, 101], "steps": steps}
        tried += asked
        runs = [r for r in rows.get(name, []) if r["run"]["learning_rate"] in tried]
        if len(runs) < 2 * len(tried):
            return None
        rate, shown = best(runs)
        beyond = {min(tried): rate / 2, max(tried): rate * 2}.get(rate)
        if beyond is None or not shown or not EDGES[0] <= beyond <= EDGES[1]:
            return rate
        asked = [beyond]


def scout(name, where, asked):
    """Four short runs of a task that may become the fourth."""
    return dict(
        name=f"scout-{name}-{where}",
        architecture=stack("gdn", where, 8, "cheap"),
        learning_rate=RATES[:2],
        seeds=[100, 101],
        **SAME,
        **asked,
    )


def cells(rows):
    """Of rows by cell: what they say of rates decides what follows. Last those that are drawn."""
    trained = {}
    for cell in study(rows):
        trained[cell["name"]] = cell
        yield cell
    for name, seeds in DRAWN.items():
        if cell := trained.get(name):
            others = {"seeds": list(range(20, 20 + seeds)), "steps": 3 * cell["steps"]}
            yield cell | others | {"name": f"again-{name}"}


def study(rows):
    """All cells but those."""

    def pair(task, cheap="gdn", where="1-end", conv="cheap", layers=8, seeds=8):
        cell = dict(
            name=f"{task}-{cheap}-{layers}-{where}-{conv}",
            architecture=stack(cheap, where, layers, conv),
            **SAME,
            **TASKS[task],
        )
        begun = (f"scout-{task}-{where}", RATES[:2], 6000) if task == FOURTH else ()
        rate = yield from rated(rows, cell, *begun)
        if rate:
            enough = MORE if cell["name"] in CONTRASTED else seeds
            cell |= {"learning_rate": rate, "seeds": list(range(enough))}
            yield cell
            if steps := RAISED.get(cell["name"]):
                yield cell | {"name": f"{cell['name']}-{steps}", "steps": steps}

    def longer(task, where, conv, steps):
        cell = [*pair(task, where=where, conv=conv)][-1]
        if "-rates" not in cell["name"]:
            yield cell | {"name": f"{task}-gdn-8-{where}-{conv}-{steps}", "steps": steps}

    def outlook(task, cheap, where, name="", conv="cheap", reading=FULL, positions=""):
        cell = dict(
            name=f"{task}-{cheap}-8-{name or where}-{conv}-{ENOUGH}",
            architecture=stack(cheap, where, 8, conv, reading) + positions,
            **SAME,
            **OUTLOOK[task],
        )
        rate = yield from rated(rows, cell)
        if rate:
            yield cell | {"learning_rate": rate, "seeds": list(range(MORE))}

    few = ("none", "1-start", "1-middle", "1-end", "2-spread")
    # 1. how many and where, as hybrids are built; then equal convolutions, then none
    for task in ("recall", "compose"):
        for where in (
            *("1-start", "1-middle", "1-end", "none"),
            *("2-spread", "2-start", "4-spread", "all"),
        ):
            yield from pair(task, where=where)
        for conv in ("every", "none"):
            # all full and no convolution anywhere is above: without cheap layers "cheap" is "none"
            for where in ("1-start", "1-middle", "1-end", *(["all"] if conv == "every" else [])):
                yield from pair(task, where=where, conv=conv)
    # 2. a task on which the number of full layers matters
    for name, asked in SCOUTS.items():
        for where in ("all", "2-spread", "1-end"):
            yield scout(name, where, asked)
    # 3. following a state
    for where in ("none", "1-start", "1-end", "2-spread", "all"):
        yield from pair("parity", where=where)
    # 4. the contrasts that are open after that
    for asked in AGAIN:
        yield from longer(*asked)
    # 5. the last look for a fourth task; its scouts are where rates begin
    looks = {
        where: scout("compose3-after-two", where, LAST_SCOUT)
        for where in ("all", "2-spread", "1-end")
    }

    def solved(where):
        runs = rows.get(looks[where]["name"], [])
        return sum(r["outcome"].get("stopped") == "solved" for r in runs)

    yield looks["all"]
    if solved("all"):
        yield from (looks["2-spread"], looks["1-end"])
    # 6. other cheap layers
    for cheap in ("window", "mamba2"):
        for task in ("recall", "compose"):
            for where in few:
                yield from pair(task, cheap, where)
    # 7. the fourth task, whose scouts are where rates begin
    for name, task in SMALLER.items():
        for where in ("all", "1-end") if name == FOURTH else ("all",):
            yield scout(name, where, {"task": task, "steps": 6000})
    yield from pair(FOURTH, where="2-spread", seeds=MORE)
    # 8. the outlook: sparse capacity, recurrence ablation, distribution shift
    yield from outlook("recall", "gdn", "1-end")
    for k in (1, 2, 4, 8):
        yield from outlook("recall", "gdn", "1-end", f"moba{k}-end", reading=BLOCKS % k)
    for task, where in (("recall", "1-end"), ("compose", "2-spread"), ("parity", "none")):
        for cheap in ("gdn64", "window64"):
            yield from outlook(task, cheap, where)
    # those that contrasts name first
    for task, named, others in (
        ("shift-recall8", ("1-end", "all"), ("none", "2-spread")),
        ("shift-parity20", ("none", "1-end"), ("2-spread",)),
    ):
        for where in (*named, *others):
            yield from outlook(task, "gdn64", where, conv="every", positions=" @ positions=none")
    # 9. one full layer and many others
    for task in ("recall", "compose"):
        for where in ("1-start", "1-middle", "1-end", "2-spread"):
            yield from pair(task, where=where, layers=16)
        yield from pair(task, layers=32, seeds=4)
    # 10. what is still open of the contrasts
    for where in ("1-end", "4-spread", "all", "none"):
        yield from pair(FOURTH, where=where, seeds=MORE)
    for asked in LATEST:
        yield from longer(*asked)


def settings(cell):
    """What a cell asks for, but for names, seeds and rates."""
    return {k: v for k, v in cell.items() if k not in ("name", "seeds", "learning_rate")}


if __name__ == "__main__":
    from run import read

    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=Path, required=True)
    print("[\n" + ",\n".join(map(json.dumps, cells(read(parser.parse_args().rows)))) + "\n]")
    print("a layout's own cells follow when its rates are there", file=sys.stderr)

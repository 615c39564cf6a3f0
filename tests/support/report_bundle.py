"""A bundle for tests of the report: all 15 cells and a model, made from the real record
classes; the numbers of its cells are made up.
"""

from __future__ import annotations

import copy
import random
from typing import Any

from separatrix.core.evidence.records import (
    Certificate,
    Construction,
    Evidence,
    Measurement,
    Verdict,
)
from separatrix.core.numbers.wilson import wilson

ROWS = [
    {"key": "full", "title": "full attention"},
    {"key": "linear", "title": "linear attention"},
    {"key": "loglinear", "title": "log-linear attention"},
    {"key": "sparse", "title": "block-sparse attention"},
    {"key": "hybrid", "title": "hybrid"},
]
CLASS = "2 layers of 1 head of 4 dimensions, width 64"
TRAINING = "52,480 parameters, trained alike"
COLUMNS = [
    {"key": "eva", "title": "Eva", "size_class": CLASS, "training": TRAINING},
    {"key": "twosum", "title": "2-Sum", "size_class": CLASS, "training": TRAINING},
    {"key": "seqcomp", "title": "L-SeqComp", "size_class": CLASS, "training": TRAINING},
]
SPECS = {
    "full": "full @ head_dim=16, heads=1, format=p16",
    "linear": "linear*2 @ head_dim=4, heads=1, format=p8",
    "loglinear": "loglinear*2 @ head_dim=4, heads=1, format=p8",
    "sparse": "sparse(block=16, topk=2) @ head_dim=4, heads=1, format=p8",
    "hybrid": "full + linear @ head_dim=16, heads=1, format=p16",
}
TASKS = {
    "eva": "eva:n=64,V=64",
    "twosum": "twosum:n=32,M=64,form=query",
    "seqcomp": "seqcomp:L=2,m=50,n_1=60",
}
# (row, column): status, the deciding number, the paper's entry
CELLS = {
    ("full", "eva"): ("SOLVABLE", "1 layer at n = 4,096", "O(polylog n), 1 layer"),
    ("full", "twosum"): ("SOLVABLE", "1 layer, d = 3, n = 4,096", "O(log n), 1 layer, d = 3"),
    ("full", "seqcomp"): (
        "SOLVABLE",
        "L + 1 layers; L layers fail at n >= 11,902",
        "O(polylog n) with L+1 layers; n^Omega(1) with L",
    ),
    ("linear", "eva"): ("FAILS", "n >= 58", "Omega(n log n)"),
    ("linear", "twosum"): ("FAILS", "n >= 61", "Omega(n log n)"),
    ("linear", "seqcomp"): ("FAILS", "n >= 74", ""),
    ("loglinear", "eva"): ("FAILS", "n >= 471", "Omega(n)"),
    ("loglinear", "twosum"): ("FAILS", "n >= 533", "Omega(n)"),
    ("loglinear", "seqcomp"): ("FAILS", "n >= 602", ""),
    ("sparse", "eva"): ("OPEN", "no finite n known", ""),
    ("sparse", "twosum"): ("FAILS", "B >= 26", "Omega(B log n)"),
    ("sparse", "seqcomp"): ("OPEN", "would bite at n = 2^16384", ""),
    ("hybrid", "eva"): ("SOLVABLE", "1 full layer at n = 4,096", ""),
    ("hybrid", "twosum"): ("SOLVABLE", "1 full layer at n = 4,096", ""),
    ("hybrid", "seqcomp"): ("FAILS", "n >= 3,052", "n^Omega(1)"),
}
STORY = (
    "Whatever the weights are, the first n tokens must pass through the cache. It has fewer values"
    " than there are functions, so two functions leave the same cache behind. Ask for a place"
    " where they differ and the answer is wrong for one of them."
)


def verdict(row: str, column: str, status: str, **fields: Any) -> Verdict:
    statement = {
        "FAILS": (
            "2 layers carry 320 bits, but the 64^n functions need n log 64 bits: from n = 58 on two"
            " of them share one cache."
        ),
        "SOLVABLE": (
            "One retrieval head with 13 address bits answers every prompt of n = 4,096; the worst"
            " score gap is 22.18."
        ),
        "OPEN": (
            "[Ye26, Thm 1.1] would bite at n = (Hdp)^(2^14) only: no theorem decides this size."
        ),
    }[status]
    given: dict[str, Any] = {
        "theorem": {"FAILS": "I", "SOLVABLE": "retrieval", "OPEN": "Ye26-1.1"}[status],
        "statement": statement,
        "n": 58 if status == "FAILS" else None,
        "log2_n": "2^18" if status == "OPEN" else None,
        "numbers": (
            {"cache_bits": 320, "classes_base": 64, "classes_exponent": 58}
            if status == "FAILS"
            else {"h": 272, "address_bits": 13}
        ),
        "method": "integers" if status == "FAILS" else "",
        "slack": "[28.0000000000 +/- 1e-12]" if status == "FAILS" else "",
        "premises": ("the model is causal", "position-wise parts are free"),
        "assumptions": (
            "softmax accumulators (numerators and denominator) hold 16 bits per number",
        ),
        "source": "Theorem I, after [Ye26], arXiv 2602.01763, Lemma 2.2",
    }
    return Verdict(architecture=SPECS[row], task=TASKS[column], status=status, **(given | fields))  # pyright: ignore[reportArgumentType]


def construction(row: str, column: str) -> Construction:
    layers = [
        {
            "layer": 0,
            "head": "retrieval",
            "score_gap": "[22.1807097779 +/- 3e-11]",
            "off_target_mass": "[9.53674e-7 +/- 4e-13]",
            "margin": "0.4999981",
        },
        {
            "layer": 1,
            "head": "retrieval",
            "score_gap": "[24.9532985123 +/- 3e-11]",
            "off_target_mass": "[5.96046e-8 +/- 4e-14]",
            "margin": "0.4999999",
        },
    ]
    return Construction(
        architecture=SPECS[row],
        task=TASKS[column],
        name="retrieval",
        sizes={"n": 4096, "V": 64, "address_bits": 13, "d": 26},
        model={"layers": 1},
        weights=f"constructions/{row}-{column}.safetensors",
        weights_sha256="ab" * 32,
        proof={"layers": layers, "all_inputs": True, "rounding_error": "[1.1e-7 +/- 1e-9]"},
        statement="Explicit weights that answer all 64^4096 x 4,096 prompts.",
    )


def certificate(row: str, column: str, n: int) -> Certificate:
    rng = random.Random(n)
    first = [rng.randrange(64) for _ in range(n)]
    second = [
        *first[: n // 3],
        *[(t + 5) % 64 for t in first[n // 3 : n // 3 + 2]],
        *first[n // 3 + 2 : n - 1],
        (first[-1] + 1) % 64,
    ]
    details = {"cache_bits": 320, "cache_sha256": "5f" * 32, "prefix_length": n}
    return Certificate(
        architecture=SPECS[row],
        task=TASKS[column],
        form="block_swap" if row == "sparse" else "collision",
        model={"layers": 2},
        weights={"w": {"dtype": "float32", "shape": [1], "data": "AACAPw=="}},
        cache_format="p8",
        inputs=[[*first, 64 + n // 3], [*second, 64 + n // 3]],
        answers=[first[n // 3], second[n // 3]],
        output=first[n // 3],
        details=details,
    )


def measurement(row: str, column: str, n: int, correct: tuple[int, ...]) -> Measurement:
    task = (
        f"seqcomp:L=2,m={n // 4},n_1=3"
        if column == "seqcomp"
        else TASKS[column].replace("n=64", f"n={n}").replace("n=32", f"n={n}")
    )
    return Measurement(
        architecture=SPECS[row],
        task=task,
        seeds=(0, 1, 2),
        correct=correct,
        total=2000,
        chance="1/64",
        intervals=tuple(wilson(count, 2000) for count in correct),
        budget={
            "steps": 2000,
            "batch": 64,
            "learning_rate": "0.003",
            "width": 64,
            "optimiser": "AdamW",
            "steps_done": [800, 900, 2000],
            "parameters": 52_480,
            "tested": 2000,
        },
    )


def evidence_of(row: str, column: str) -> list[Evidence]:
    status = CELLS[row, column][0]
    records: list[Evidence] = [verdict(row, column, status)]
    if status == "FAILS":
        lifted = {
            "theorem": "CPW-1.1",
            "n": None,
            "log2_n": "2^14",
            "numbers": {},
            "method": "",
            "slack": "",
        }
        records.append(verdict(row, column, "OPEN", **lifted))
        if row != "hybrid":
            records.append(certificate(row, column, 4096 if row == "loglinear" else 48))
    if status == "SOLVABLE":
        records.append(construction(row, column))
    for n, bad in ((16, 1990), (64, 1210), (256, 105)):
        counts = (1990, 2000, 1998) if row == "full" else (bad, bad - 40, bad - 60)
        records.append(measurement(row, column, n, counts))
    return records


def fake_bundle() -> dict[str, Any]:
    """The body of a bundle with every cell filled."""
    records: dict[str, Any] = {}
    cells = []
    for (row, column), (status, number, paper) in CELLS.items():
        mine = evidence_of(row, column)
        records.update({record.digest: record.envelope() for record in mine})
        first = mine[0]
        assert isinstance(first, Verdict)
        cells.append(
            {
                "row": row,
                "column": column,
                "status": status,
                "paper": paper,
                "number": number,
                "headline": first.statement,
                "story": STORY,
                "stack": SPECS[row],
                "trained": [{"n": 16, "solved": 3, "seeds": 3, "parameters": 52_480}],
                "reach": "",
                "records": [record.digest for record in mine],
            }
        )
    settings = {"kind": "quick", "seed": 0, "models": ["qwen3-next-80b"]}
    # a copy: tests write hostile text into what they are given
    table = copy.deepcopy({"rows": ROWS, "columns": COLUMNS, "cells": cells})
    return {
        "title": "A provable expressiveness hierarchy",
        "settings": settings,
        **table,
        "models": [],
        "records": records,
    }

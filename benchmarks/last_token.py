"""The answer at the last token of a one-layer construction at n = 1,048,576, in float32 on one
thread, each measurement in a process of its own.

Memory: how much the process grows while the answer is computed, by Linux's own high-water mark,
beside the size of keys and values. Time: processor seconds, the best of five, of the whole answer
from tokens; of the layer's attention alone from keys and values; and of
`F.scaled_dot_product_attention` with one query on the same keys and values.

    python benchmarks/last_token.py [TASK ...]
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from separatrix.constructions import construct
from separatrix.mixers.base.mixer import last_place
from separatrix.mixers.full import FullMixer
from separatrix.models import model as models
from separatrix.models.model import Block
from separatrix.tasks import parse_task

TASKS = ("eva:n=1048576,V=16", "index:n=1048576,V=16", "twosum:n=1048576,M=64")
ROUNDS = 5
MIB = 1 << 20


def status(name: str) -> int:
    """A line of Linux's status of this process, in bytes."""
    (line,) = (one for one in Path("/proc/self/status").read_text().splitlines() if name in one)
    return int(line.split()[1]) * 1024


def grown(work: Callable[[], Any]) -> int:
    """How many bytes the process is larger at its largest while it works."""
    # 5: the high-water mark begins anew
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    work()
    return status("VmHWM") - before


def best(work: Callable[[], Any]) -> float:
    seconds = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        work()
        seconds.append(time.process_time() - begun)
    return min(seconds)


def measured(text: str) -> dict[str, Any]:
    torch.set_num_threads(1)
    task = parse_task(text)
    model = construct(task).model
    tokens = torch.from_numpy(task.sample(1, np.random.default_rng(0)).tokens)
    block = model.blocks[-1]
    assert isinstance(block, Block)
    mixer = block.mixers[0]
    assert isinstance(mixer, FullMixer)
    with torch.inference_mode():
        model(tokens[:, :8])
        found = {"memory": grown(lambda: model(tokens)), "whole": best(lambda: model(tokens))}
        answer = model(tokens)
        right = int(answer.argmax()) == int(task.answer(tokens.numpy())[0])
        models.LONG = 1 << 60
        found |= {"memory before": grown(lambda: model(tokens))}
        found |= {"whole before": best(lambda: model(tokens))}
        same = bool(answer.argmax() == model(tokens).argmax())
        embedded = model._embed(tokens)
        q, k, v = mixer._qkv(mixer._project(embedded, last_place(embedded)))
        k, v = k.contiguous(), v.contiguous()
        found |= {
            "keys and values": 4 * (k.numel() + v.numel()),
            "attention": best(lambda: mixer._attend(q, k, v)),
            "sdpa": best(lambda: F.scaled_dot_product_attention(q, k, v, scale=1.0)),
        }
    return found | {"right": right and same}


def main() -> int:
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measured(sys.argv[2])))
        return 0
    print(
        "| task | keys and values, MiB | memory, MiB (before) | whole answer, ms (before) |"
        " attention alone, ms | SDPA, ms | ratio |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    failed = False
    for text in sys.argv[1:] or TASKS:
        words = [sys.executable, __file__, "--one", text]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        one = json.loads(done.stdout)
        failed |= not one["right"]
        print(
            f"| {text} | {one['keys and values'] / MIB:.0f} |"
            f" {one['memory'] / MIB:.0f} ({one['memory before'] / MIB:.0f}) |"
            f" {1000 * one['whole']:.0f} ({1000 * one['whole before']:.0f}) |"
            f" {1000 * one['attention']:.1f} | {1000 * one['sdpa']:.1f} |"
            f" {one['attention'] / one['sdpa']:.2f} |",
            flush=True,
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

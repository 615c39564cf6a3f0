"""Tokens per second of samplers and oracles, one core: median of several rounds.

    python benchmarks/tasks.py [--rounds 7] [--zoology PATH | --ruler PATH]

With the path of a checkout of Zoology (HazyResearch/zoology), its MQAR generator and ours take
turns at the same sizes in the same process. Only the generator's own file is read; what it imports
from the rest of Zoology are two classes that hold settings and results, which stand-ins replace.
With one of RULER (NVIDIA/RULER), prompts of needles take turns in the same way. Its filler is one
paragraph again and again (noise) or a sentence drawn each time (needle); essays, which it downloads
and splits into sentences by a library's model, are not measured. RULER's file counts the tokens of
each prompt, and of what stands before its answer, for its lengths are in tokens and ours in words:
so it is measured alone and with both counts, by a tokenizer trained on its prompts.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

from separatrix.tasks import TASKS, Task, parse_task
from separatrix.tasks.text import parse_text_task

TOKENS = 1 << 20
LENGTHS = (256, 1024, 4096)
DEFAULT_PAIRS = 8
"""Of Zoology."""
VOCABULARY = 8192
"""Zoology's default."""


def mqar(n: int, pairs: int) -> str:
    return f"mqar:vocab_size={VOCABULARY},input_seq_len={n},num_kv_pairs={pairs}"


TEXTS = (
    *(f"eva:n={n}" for n in LENGTHS),
    *(mqar(n, pairs) for n in LENGTHS for pairs in (n // 16, n // 4)),
    *(f"seqcomp:L={steps},n={n}" for steps in (2, 3) for n in LENGTHS),
)


def others() -> list[str]:
    """The largest size in the grid of every other task."""
    shown = {text.partition(":")[0] for text in TEXTS}
    return [f"{name}:{task.grid[-1]}" for name, task in TASKS.items() if name not in shown]


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def measure(task: Task, rounds: int) -> tuple[float, float]:
    """Tokens per second of sampler and oracle."""
    rng = np.random.default_rng(0)
    batch = max(1, TOKENS // task.length)
    task.answer(task.sample(batch, rng).tokens)
    sampled = []
    answered = []
    for _ in range(rounds):
        seconds, made = timed(lambda: task.sample(batch, rng))
        sampled.append(made.tokens.size / seconds)
        seconds, targets = timed(lambda tokens=made.tokens: task.answer(tokens))
        answered.append(made.tokens.size / seconds)
        assert (targets == made.targets).all()
    return statistics.median(sampled), statistics.median(answered)


def zoology_generator(checkout: Path) -> Callable[..., Any]:
    """`multiquery_ar` of a checkout, without importing the package around it."""
    path = checkout / "zoology" / "data" / "multiquery_ar.py"
    if not path.is_file():
        raise SystemExit(
            f"{path} is no file; --zoology takes the root of a checkout of HazyResearch/zoology"
        )
    for name, held in (
        ("zoology", ""),
        ("zoology.data", ""),
        ("zoology.config", "DataSegmentConfig"),
        ("zoology.data.utils", "DataSegment"),
    ):
        stand_in = ModuleType(name)
        if held:
            setattr(
                stand_in,
                held,
                type(
                    held,
                    (),
                    {
                        "__init__": lambda self, inputs, labels, slices=None: setattr(
                            self, "inputs", inputs
                        )
                    },
                ),
            )
        sys.modules[name] = stand_in
    spec = importlib.util.spec_from_file_location("zoology.data.multiquery_ar", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.multiquery_ar


def side_by_side(
    generate: Callable[..., Any], n: int, pairs: int, rounds: int
) -> tuple[float, float]:
    """Tokens per second of our generator and of Zoology's, in turns."""
    task = parse_task(mqar(n, pairs))
    rng = np.random.default_rng(0)
    batch = max(1, TOKENS // n)
    settings = {
        "vocab_size": VOCABULARY,
        "input_seq_len": n,
        "num_kv_pairs": pairs,
        "power_a": 0.01,
        "random_non_queries": True,
    }
    ours = []
    theirs = []
    for turn in range(rounds + 1):
        seconds, made = timed(lambda: task.sample(batch, rng))
        ours.append(made.tokens.size / seconds)
        seconds, segment = timed(
            lambda seed=turn: generate(num_examples=batch, seed=seed, **settings)
        )
        theirs.append(segment.inputs.numel() / seconds)
        assert tuple(segment.inputs.shape) == made.tokens.shape
    return statistics.median(ours[1:]), statistics.median(theirs[1:])


def ruler_generator(checkout: Path, filler: str, keys: int) -> Callable[[int], Any]:
    """RULER's function that makes a prompt of so many pieces of filler, alone: its file reads the
    command line, a tokenizer and word lists as soon as it is imported.
    """
    path = checkout / "scripts" / "data" / "synthetic" / "niah.py"
    if not path.is_file():
        sys.exit(f"{path} is no file; --ruler takes the root of a checkout of NVIDIA/RULER")
    parsed = ast.parse(path.read_text("utf-8"))
    wanted: list[ast.stmt] = [
        node
        for node in parsed.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("generate_")
    ]
    needle = "One of the special magic {type_needle_v} for {key} is: {value}."
    noise = (
        "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
    )
    names: dict[str, Any] = {
        "random": random.Random(0),
        "needle": needle,
        "haystack": noise if filler == "noise" else needle,
        "words": [f"adjective-noun{number}" for number in range(50_000)],
        "args": SimpleNamespace(
            num_needle_k=keys,
            num_needle_v=1,
            num_needle_q=1,
            type_needle_k="words",
            type_needle_v="words",
            type_haystack=filler,
            random_seed=0,
            template="Remember the {type_needle_v}.\n{context}\nWhat is the one for {query}?",
        ),
    }
    names["random"].Random = random.Random
    exec(compile(ast.Module(wanted, []), str(path), "exec"), names)
    return names["generate_input_output"]


def counted(generate: Callable[[int], Any], pieces: int) -> Callable[[int], Any]:
    """The generator with the counts that RULER's file makes of each prompt."""
    from tokenizers import ByteLevelBPETokenizer

    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator([generate(pieces)[0] for _ in range(100)], vocab_size=8192)

    def made(pieces: int) -> tuple[str, int, int]:
        text, answers = generate(pieces)
        before = text[: text.find(answers[0])]
        return text, len(tokenizer.encode(text).ids), len(tokenizer.encode(before).ids)

    return made


def beside_ruler(
    checkout: Path, filler: str, words: int, rounds: int, *, counts: bool
) -> tuple[float, float]:
    """Prompts per second of processor time of our needles and of RULER's, in turns, of at least as
    many words.
    """
    task = parse_text_task(f"needles:length={words},keys={DEFAULT_PAIRS}")
    generate = ruler_generator(checkout, filler, DEFAULT_PAIRS)
    pieces = next(n for n in range(10, words) if len(generate(n)[0].split()) >= words)
    if counts:
        generate = counted(generate, pieces)
    batch = max(1, TOKENS // 4 // words)
    rng = np.random.default_rng(0)
    ours, theirs = [], []
    for _ in range(rounds + 1):
        start = time.process_time()
        task.sample(batch, rng)
        between = time.process_time()
        # all kept until the last is made, as ours are and as RULER's own file does
        [generate(pieces) for _ in range(batch)]
        ours.append(batch / (between - start))
        theirs.append(batch / (time.process_time() - between))
    return statistics.median(ours[1:]), statistics.median(theirs[1:])


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Tokens per second of samplers and oracles, one core."
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--zoology",
        type=Path,
        metavar="PATH",
        help="a checkout of HazyResearch/zoology to compare the MQAR generator with",
    )
    parser.add_argument(
        "--ruler",
        type=Path,
        metavar="PATH",
        help="a checkout of NVIDIA/RULER to compare prompts of needles with",
    )
    options = parser.parse_args()
    if options.ruler is not None:
        print("needles, 8 keys, prompts/s            ours    RULER   ratio")
        for filler, counts in (("noise", False), ("needle", False), ("noise", True)):
            for words in (1024, 4096):
                ours, theirs = beside_ruler(
                    options.ruler, filler, words, options.rounds, counts=counts
                )
                print(
                    f"{filler:6} {'counted' * counts:7} {words:6} words"
                    f"{ours:14.0f}{theirs:9.0f}{ours / theirs:8.2f}",
                    flush=True,
                )
        return
    if options.zoology is not None:
        import torch

        torch.set_num_threads(1)
        generate = zoology_generator(options.zoology)
        print(f"MQAR, {VOCABULARY:,} ids, million tokens/s    ours   Zoology   ratio")
        for n in LENGTHS:
            for pairs in (DEFAULT_PAIRS, n // 16, n // 4):
                ours, theirs = side_by_side(generate, n, pairs, options.rounds)
                print(
                    f"n = {n:5}, {pairs:5}"
                    f" pairs{ours / 1e6:28.1f}{theirs / 1e6:10.2f}{ours / theirs:8.0f}",
                    flush=True,
                )
        return
    print(f"{'million tokens/s':66}  sample   oracle")
    for text in (*TEXTS, *others()):
        sampled, answered = measure(parse_task(text), options.rounds)
        print(f"{text:66}{sampled / 1e6:8.1f}{answered / 1e6:9.1f}", flush=True)


if __name__ == "__main__":
    main()

"""What commands print and write: cards, lists, layouts, pages, help, exports."""

from __future__ import annotations

import io
import itertools
import json
import runpy
import sys
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

from unchanged.pieces import Piece, lines, words

CONTEXTS = (4096, 131_072, 1_048_576)

STACKS = lines("""
    (gdn*3 + full)*12 @ heads=16, head_dim=128, bf16
    (mamba2*7 + full|mamba2)*4 + mlp*4 @ heads=8, head_dim=64, bf16
    sparse(block=64, topk=16)*2 + mla(latent=512, rope_dim=64) @ heads=4, head_dim=128, bf16
    indexed(topk=2048) + moba(block=512, topk=3) + compressed @ heads=4, head_dim=64, bf16
    full*2 + linear @ heads=1, head_dim=1, p2
    loglinear(base=gdn)*3 @ heads=2, head_dim=16, p8
    rglru(width=64)*2 + window(size=128) @ heads=1, head_dim=32, fp16
    rwkv*2 + rwkv4(width=64) + kda|deltaproduct @ heads=2, head_dim=32
    chunked(size=256)*2 + full @ heads=2, head_dim=8, p4
""")
"""Stacks that no released model has, for `analyze`."""

DESIGNS = (
    "--task seqcomp:L=3 --task eva:V=50000 --context 32768 --cache 2GiB --base qwen3-next-80b",
    "--task eva:V=256000 --task seqcomp:L=4 --context 32768 --cache 1GiB --layers 18,26"
    " --base recurrentgemma-2b",
    "--task seqcomp:L=2,n_1=64 --task eva:V=50000 --context 32768 --cache 4GiB --layers 24"
    " --reading full --reading sparse --state 16,64 --window 512,2048",
    "--task seqcomp:L=2,n_1=16 --context 32768 --cache 16GiB --layers 24 --state 1,4,16"
    " --reading full(heads=1,head_dim=1,format=p8) --reading full(heads=2,head_dim=4,format=p8)"
    " --bounded gdn(heads=1,format=p8,value_dim=2)",
    "--task twosum:M=50 --context 8192 --cache 256MiB --layers 12 --readers 0-3 --place even,end"
    " --bounded rglru*2+window --bounded mamba2",
)

COMPARED = (
    ("qwen3-next-80b", "recurrentgemma-2b"),
    ("full + gdn*24", "nemotron-h-8b", "sparse*4 @ heads=2", "--context", "65536"),
    ("deepseek-v3.2", "kimi-linear-48b", "jamba-v0.1", "--context", "131072"),
)
AUDITED = words("eva:n=8 seqcomp:L=2,m=6,n_1=1 multihop:k=2,n=15")

EXPORTED = words("""
    eva:n=8 seqcomp:L=2,m=4,n_1=2,thought=values multihop:k=2,n=15,style=steps
    mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4
""")

COMMANDS = (
    "",  # the program itself
    *words("reproduce analyze compare design trial train runs task construct refute verify list"),
    "check-mechanism",
)


def command(*arguments: str) -> str:
    """What `python -m separatrix` prints for these arguments. Raises RuntimeError if it fails."""
    printed = io.StringIO()
    with patch.object(sys, "argv", ["separatrix", *arguments]), redirect_stdout(printed):
        try:
            runpy.run_module("separatrix", run_name="__main__")
        except SystemExit as end:
            if end.code:
                shown = " ".join(arguments)
                raise RuntimeError(f"separatrix {shown}: exit code {end.code}") from None
    return printed.getvalue()


def names_in(listing: str, key: str = "name") -> list[str]:
    """The names in a list that a command printed as JSON."""
    return [str(row[key]) for row in json.loads(listing)]


def analyze() -> Iterator[Piece]:
    """Capability cards of every released model and of other stacks, each at three contexts."""
    presets = names_in(command("list", "presets", "--json"))
    for model in (*presets, *STACKS):
        for context in CONTEXTS:
            card = command("analyze", model, "--json", "--context", str(context))
            yield f"{model}/{context}", card


def lists() -> Iterator[Piece]:
    """What the program knows, and results of `design`, `compare`, `task audit` and `sample`."""
    yield "presets", command("list", "presets", "--json")
    for kind, key in (("tasks", "name"), ("mechanisms", "name"), ("theorems", "key")):
        listing = command("list", kind, "--json")
        yield kind, listing
        for name in names_in(listing, key):
            yield f"{kind}/{name}", command("list", kind, name, "--json")
    for problem in DESIGNS:
        yield f"design {problem}", command("design", *problem.split(), "--json")
    for models in COMPARED:
        yield f"compare {' '.join(models)}", command("compare", *models, "--json")
    for task in AUDITED:
        found = command("task", task, "audit", "--fitted", "400", "--number", "400", "--json")
        yield f"audit {task}", found
        yield f"sample {task}", command("task", task, "sample", "--json")


def helps() -> Iterator[Piece]:
    """The help of every command."""
    for name in COMMANDS:
        yield name or "separatrix", command(*name.split(), "--help")


def exports() -> Iterator[Piece]:
    """Every file of small exports, in each format."""
    rows = ("--train", "20", "--validation", "5", "--test", "5")
    for task, form in itertools.product(EXPORTED, ("jsonl", "hf", "lm-eval")):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out"
            command("task", task, "export", "--format", form, "--out", str(out), *rows, "--json")
            for path in sorted(path for path in out.rglob("*") if path.is_file()):
                content = path.read_bytes()
                name = f"{task}/{form}/{path.relative_to(out).as_posix()}"
                yield name, content if path.suffix == ".parquet" else content.decode()

"""What `tasks export --format hf` writes, loaded by Hugging Face's own library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from separatrix.tasks import parse_task
from separatrix.tasks.exports import SPLITS, export
from separatrix.tasks.text import parse_text_task

datasets = pytest.importorskip("datasets", reason="needs the extra peers")

SIZES = {"train": 3, "validation": 2, "test": 2}
CHAIN = "seqcomp:L=3,m=4,n_1=1,n_2=2,thought=values"


@pytest.mark.parametrize(
    "text",
    ["eva:n=6", "mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4", CHAIN, "multihop:k=2,n=15"],
)
def test_a_hugging_face_dataset(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`load_dataset` finds splits, features and the same rows as the JSON lines; without a
    network.
    """
    monkeypatch.setattr("socket.socket.connect", None)
    task: Any = parse_text_task(text) if text.startswith("multihop") else parse_task(text)
    export(task, format="hf", out=tmp_path / "hf", splits=SIZES)
    loaded = datasets.load_dataset(str(tmp_path / "hf"), cache_dir=str(tmp_path / "cache"))
    export(task, format="jsonl", out=tmp_path / "jsonl", splits=SIZES)
    lines = {
        split: (tmp_path / "jsonl" / f"{split}.jsonl").read_text().splitlines() for split in SPLITS
    }
    expected = {split: [json.loads(line) for line in found] for split, found in lines.items()}
    assert {split: list(rows) for split, rows in loaded.items()} == expected
    number = datasets.Value("int32")
    word = datasets.Value("string")
    kinds = {
        "tokens": datasets.List(number),
        "targets": datasets.List(number),
        "target": number,
        "place": number,
    }
    kinds |= {"steps": datasets.List(word), "choices": datasets.List(word)}
    assert loaded["train"].features == {
        name: kinds.get(name, word) for name in expected["train"][0]
    }

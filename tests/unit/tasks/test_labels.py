"""Labels as token ids: by hand, for every task, exported and shown."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.each import each
from support.task_cases import EXAMPLES, few

from separatrix.cli.main import run
from separatrix.core.errors import SpecError, UnknownNameError
from separatrix.tasks import NO_ANSWER, Batch, Task, parse_task
from separatrix.tasks.exports import export
from separatrix.tasks.labels import IGNORED, label_vocabulary, split_labels, token_labels
from separatrix.tasks.text import parse_text_task

MQAR = "mqar:vocab_size=12,input_seq_len=16,num_kv_pairs=2,random_non_queries=0"


def labelled(text: str, prompt: list[int]) -> list[int]:
    task = parse_task(text)
    tokens = np.array([prompt])
    return token_labels(task, Batch(tokens, task.answer(tokens))).labels[0].tolist()


def test_as_zoology_has_them() -> None:
    """The example of the definition: the labels are the values' own ids, 7 and 8, where their keys
    are asked for; everything else is -100.
    """
    prompt = [2, 8, 4, 7, 0, 0, 4, 0, 0, 0, 0, 0, 2, 0, 0, 0]
    due = {6: 7, 12: 8}
    assert labelled(MQAR, prompt) == [due.get(place, IGNORED) for place in range(16)]


@each(
    "text, prompt, label",
    [
        ("eva:n=3,V=4", [2, 0, 3, 2], 3),
        ("recall:n=2,K=3,V=2,form=absent", [3, 1, 2, 0, 3], 1),
        ("recall:n=2,K=3,V=2,form=absent", [3, 1, 2, 0, 4], 5),  # "none", behind all ids
        ("equality:n=2", [1, 0, 1, 0], 3),  # 1 = yes: 0 and 1 are bits
        ("neighbour:n=2,d=3,V=2", [1, 9, 6, 8, 2], 8),
        ("seqcomp:L=2,m=2,n_1=2", [1, 0, 2, 3, 1, 0, 0, 1], 3),
    ],
)
def test_by_hand(text: str, prompt: list[int], label: int) -> None:
    assert labelled(text, prompt) == [IGNORED] * (len(prompt) - 1) + [label]


@each("task", few(EXAMPLES, sizes=1, shifts=False))
def test_labels_stand_where_answers_are_due(task: Task) -> None:
    """One id for each answer, below the stated number, and none of them a token that means
    something else: ids that the prompt shares are values of it.
    """
    batch = task.sample(50, np.random.default_rng(0))
    input_ids, labels = token_labels(task, batch)
    assert (input_ids == batch.tokens).all()
    due = labels != IGNORED
    if task.several:
        assert (due == (batch.targets != NO_ANSWER)).all()
        answers = batch.targets[due]
    else:
        assert due[:, -1].all()
        assert due.sum() == 50
        answers = batch.targets
    assert (task.label_ids(answers) == labels[due]).all()
    every = task.label_ids(np.arange(min(task.answers, 1000)))
    assert len(set(every.tolist())) == len(every)
    assert every.min() >= 0
    assert labels.max() < label_vocabulary(task)


def test_the_word_in_a_task_text() -> None:
    assert split_labels(f"{MQAR},labels=tokens") == (MQAR, True)
    assert split_labels(MQAR) == (MQAR, False)
    assert split_labels("eva:labels=tokens,n=3") == ("eva:n=3", True)
    with pytest.raises(UnknownNameError, match=r"'token'.*'tokens'"):
        split_labels("eva:n=3,labels=token")


def test_exported(tmp_path: Path) -> None:
    task = parse_task(MQAR)
    made = export(
        task, format="jsonl", out=tmp_path / "a", splits={"train": 5, "test": 0, "validation": 0},
        labels=True,
    )  # fmt: skip
    assert made.rows == {"train": 5}
    rows = [json.loads(line) for line in (tmp_path / "a" / "train.jsonl").read_text().splitlines()]
    assert [set(row) for row in rows] == [{"input_ids", "labels"}] * 5
    for row in rows:
        assert labelled(MQAR, row["input_ids"]) == row["labels"]
    assert "labels=tokens" in (tmp_path / "a" / "metadata.json").read_text()
    with pytest.raises(SpecError, match="leave labels=tokens out"):
        export(task, format="lm-eval", out=tmp_path / "b", labels=True)
    with pytest.raises(SpecError, match="no token ids"):
        export(parse_text_task("multihop:k=1,n=9"), format="jsonl", out=tmp_path / "c", labels=True)


def test_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["task", f"{MQAR},labels=tokens", "sample", "--json", "--number", "2"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [labelled(MQAR, row["input_ids"]) for row in rows] == [row["labels"] for row in rows]
    assert run(["task", f"{MQAR},labels=tokens", "sample", "--number", "1"]) == 0
    assert capsys.readouterr().out.startswith("input_ids  ")

"""Exported task folders in lm-evaluation-harness itself: loaded by it, asked by it, scored by
it. Nothing here reaches a network.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.worded import answer_in_words, tokens_of

from separatrix.tasks import TASKS as TASKS_OF_TOKENS
from separatrix.tasks import Task, parse_any_task
from separatrix.tasks.base.described import wrapped
from separatrix.tasks.exports import export
from separatrix.tasks.exports.source import manner, noun
from separatrix.tasks.text import TEXT_TASKS, TextTask

pytest.importorskip("lm_eval", reason="needs the extra lm-eval")

SIZES = {"train": 6, "validation": 0, "test": 12}
TASKS = [
    "eva:n=24,V=12",
    "seqcomp:L=3,m=16,n_1=1,n_2=1,thought=values",
    "multihop:k=2,n=15,style=steps",
    "multihop:k=1,n=24",
    *(f"{name}:{cls.grid[0]}" for name, cls in {**TASKS_OF_TOKENS, **TEXT_TASKS}.items()),
]


def parsed(text: str) -> Task | TextTask:
    return parse_any_task(text)


def exported(folder: Path, text: str) -> list[str]:
    """Names of the harness's tasks in a new folder."""
    export(parsed(text), format="lm-eval", out=folder, splits=SIZES)
    return sorted(path.stem for path in folder.glob("*.yaml"))


def solve(text: str, question: str, *, wrong: bool = False) -> tuple[list[str], str]:
    """(steps, answer) of a question, by the task's definition, read from the words alone."""
    task = parsed(text)
    if isinstance(task, TextTask):
        cue = "Answer step by step:" if "style=steps" in text else "Answer:"
        told, asked, *_ = question.rsplit("\n\n", 1)
        prompt = f"{told}\n\n{asked.partition(chr(10))[0]}\n{cue}"
        answer = task.answer(prompt)
        if wrong:  # other names of the prompt, as many
            others = set(re.findall(task.pattern, prompt)) - set(answer.split(", "))
            answer = ", ".join(sorted(others)[: answer.count(",") + 1])
        return task.steps(prompt), answer
    asked = task.asked
    tokens = np.array([tokens_of(asked, question)])
    chains = asked.chain(tokens)
    chain = [] if chains is None else chains[0].tolist()
    return [asked.word(value) for value in chain], answer_in_words(asked, question, wrong=wrong)


def written(text: str, question: str, *, wrong: bool = False) -> str:
    """What stands behind a question: a space, then the answer, or the steps and then the answer."""
    steps, answer = solve(text, question, wrong=wrong)
    if question.endswith("\nAnswer:"):
        return f" {answer}"
    end = f"Answer: {noun(parsed(text)).upper()}"
    if question.endswith(f"\nThink as long as you like, and end with one line: {end}"):
        return f" Answer: {answer}"
    assert question.endswith(f"\nWrite the steps, then a line: {end}\nAnswer step by step:")
    stop = "" if isinstance(parsed(text), TextTask) else "."
    return f" {' '.join(steps)}{stop}\nAnswer: {answer}"


def questions(text: str, context: str, shots: int) -> list[str]:
    """The questions of a context, checked: above them stands what is asked and what an answer
    looks like, and all but the last are answered.
    """
    lead = r"\n\n(?=[^\n]+\n+(?:Numbers|Input|Question): )"
    task = parsed(text)
    words = isinstance(task, TextTask)
    told = "Answer the question from the facts." if words else wrapped(task.asked.definition)
    assert context.startswith(told)
    asked = re.split(lead, context[len(told) :])
    ways = (manner(task, steps=True), manner(task, steps=False), "")
    assert asked.pop(0).strip() in ways
    assert len(asked) == shots + 1
    for part in asked[:-1]:
        question = re.match(
            r"(?s).*?\n(?:Answer[a-z ]*:|Think as long [^\n]+(?:NUMBER|NAMES?|ARRANGEMENT))", part
        )
        assert question
        assert part == question[0] + written(text, question[0])
    return asked


def model(text: str, *, right: bool, shots: int) -> Any:
    """A model of the harness that answers every question rightly, or none."""
    from lm_eval.api.model import LM

    class Model(LM):
        def loglikelihood(self, requests: list[Any], **_: Any) -> list[tuple[float, bool]]:
            answers = [
                f" {solve(text, questions(text, request.args[0], shots)[-1])[1]}"
                for request in requests
            ]
            found = [
                (answer == request.args[1]) == right
                for answer, request in zip(answers, requests, strict=True)
            ]
            return [(float(each), each) for each in found]

        def loglikelihood_rolling(self, requests: list[Any], **_: Any) -> list[float]:
            raise NotImplementedError

        def generate_until(self, requests: list[Any], **_: Any) -> list[str]:
            return [
                written(text, questions(text, request.args[0], shots)[-1], wrong=not right)
                for request in requests
            ]

    return Model()


def run(folder: Path, names: list[str], model: Any, shots: int) -> dict[str, float]:
    """Accuracy of every task, as the harness has it."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    manager = TaskManager(include_path=str(folder), include_defaults=False)
    evaluate: Any = lm_eval.simple_evaluate
    done = evaluate(model, tasks=names, task_manager=manager, num_fewshot=shots, bootstrap_iters=0)
    assert {samples["effective"] for samples in done["n-samples"].values()} == {SIZES["test"]}
    return {
        name: float(part.get("acc,none", part.get("exact_match,answer")))
        for name, part in done["results"].items()
    }


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No network, and no look at the machine (`pip list` and the like take half a second a run)."""
    monkeypatch.setattr("socket.socket.connect", None)
    monkeypatch.setattr("lm_eval.evaluator.add_env_info", lambda results: None)


@pytest.mark.parametrize("text", TASKS)
@pytest.mark.usefixtures("alone")
def test_an_oracle_is_always_right_and_its_opposite_never(tmp_path: Path, text: str) -> None:
    """The harness shows the question that was exported, behind solved ones, and takes the
    oracle's answer for right, no other.
    """
    names = exported(tmp_path / "a", text)
    assert run(tmp_path / "a", names, model(text, right=True, shots=2), 2) == dict.fromkeys(
        names, 1.0
    )
    assert run(tmp_path / "a", names, model(text, right=False, shots=0), 0) == dict.fromkeys(
        names, 0.0
    )


@pytest.mark.usefixtures("alone")
def test_a_folder_can_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = exported(tmp_path / "a", "eva:n=6,V=6")
    (tmp_path / "a").rename(tmp_path / "b")
    monkeypatch.chdir("/")
    assert run(
        tmp_path / "b", names, model("eva:n=6,V=6", right=True, shots=0), 0
    ) == dict.fromkeys(names, 1.0)


@pytest.mark.usefixtures("alone")
def test_chat_replies_are_read_in_the_harness(tmp_path: Path) -> None:
    """Thoughts, several lines, boxes and the end of an equation; none of two answers counts."""
    from lm_eval.api.model import LM

    text = "index:n=6,V=6"
    shapes = {
        "<think>\nIs it 3, 4 or 5?\n\nNumbers: 1 2 3\n</think>\n\n**{}**": 1.0,
        "x_i stands at place i.\n\nAnswer: {}": 1.0,
        "So:\n$$\\boxed{{{}}}$$": 1.0,
        "The answer is {}, or another one.": 0.0,
    }

    class Chat(LM):
        def __init__(self, shape: str) -> None:
            super().__init__()
            self.shape = shape

        def loglikelihood(self, requests: list[Any], **_: Any) -> list[tuple[float, bool]]:
            raise NotImplementedError

        loglikelihood_rolling: Any = loglikelihood

        def generate_until(self, requests: list[Any], **_: Any) -> list[str]:
            assert all(request.args[1]["max_gen_toks"] >= 4096 for request in requests)
            return [
                self.shape.format(solve(text, questions(text, request.args[0], 0)[-1])[1])
                for request in requests
            ]

    names = [name for name in exported(tmp_path / "a", text) if name.endswith("_chat")]
    for shape, score in shapes.items():
        assert run(tmp_path / "a", names, Chat(shape), 0) == dict.fromkeys(names, score), shape


@pytest.mark.parametrize(
    ("text", "kept", "share"),
    [
        ("needles:length=120,keys=4,values=2", 1, 1 / 2),
        ("needles:length=120,keys=6,queries=2", 1, 1 / 2),
        ("variables:length=120,chains=4,hops=2", 2, 2 / 3),
        ("variables:length=120,chains=4,hops=2", 3, 1.0),
    ],
)
@pytest.mark.usefixtures("alone")
def test_a_part_of_several_names_has_its_share(
    tmp_path: Path, text: str, kept: int, share: float
) -> None:
    """The first names of the answer alone: no exact match, and their share."""
    import lm_eval
    from lm_eval.api.model import LM
    from lm_eval.tasks import TaskManager

    class Part(LM):
        def loglikelihood(self, requests: list[Any], **_: Any) -> list[tuple[float, bool]]:
            raise NotImplementedError

        loglikelihood_rolling: Any = loglikelihood

        def generate_until(self, requests: list[Any], **_: Any) -> list[str]:
            answers = [
                solve(text, questions(text, request.args[0], 0)[-1])[1] for request in requests
            ]
            return [f" {', '.join(answer.split(', ')[:kept])}" for answer in answers]

    name = min(exported(tmp_path / "a", text), key=len)
    manager = TaskManager(include_path=str(tmp_path / "a"), include_defaults=False)
    evaluate: Any = lm_eval.simple_evaluate
    done = evaluate(Part(), tasks=[name], task_manager=manager, num_fewshot=0, bootstrap_iters=0)
    found = done["results"][name]
    assert found["credit,answer"] == pytest.approx(share)
    assert found["exact_match,answer"] == float(share == 1)


def tiny_model(folder: Path) -> None:
    """A GPT-2 of some ten thousand random weights and a tokenizer of whole words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    words = ["<unk>", "<end>", "Answer", "Numbers", ":", ".", *map(str, range(32))]
    tokenizer = Tokenizer(
        models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", eos_token="<end>", pad_token="<end>"
    )
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(words),
        n_positions=2048,
        n_embd=8,
        n_layer=2,
        n_head=1,
        bos_token_id=1,
        eos_token_id=1,
    )
    GPT2LMHeadModel(config).save_pretrained(folder)


@pytest.mark.parametrize(
    ("text", "shots", "said"),
    [
        ("eva:n=24,V=12", 60, "60 solved questions"),
        ("eva:n=3000,V=4", 0, r"takes \d+ tokens, .* context has 2048"),
    ],
)
@pytest.mark.usefixtures("alone")
def test_what_does_not_fit_a_model_stops_before_the_first_question(
    tmp_path: Path, text: str, shots: int, said: str
) -> None:
    """With the numbers; and what does fit is asked: as many shots as it says."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    tiny_model(tmp_path / "model")
    export(
        parsed(text),
        format="lm-eval",
        out=tmp_path / "a",
        splits={"train": 80, "validation": 0, "test": 3},
    )
    name = next(
        path.stem
        for path in (tmp_path / "a").glob("*.yaml")
        if not path.stem.endswith(("_chat", "_logprob"))
    )
    manager = TaskManager(
        include_path=str(tmp_path / "a"),
        include_defaults=False,
        metadata={"pretrained": str(tmp_path / "model")},
    )
    evaluate: Any = lm_eval.simple_evaluate

    def ask(number: int) -> None:
        evaluate(
            model(text, right=True, shots=number),
            tasks=[name],
            task_manager=manager,
            num_fewshot=number,
            bootstrap_iters=0,
        )

    with pytest.raises(ValueError, match=said) as stopped:
        ask(shots)
    if found := re.search(r"at most (\d+) do", str(stopped.value)):
        assert 1 <= int(found[1]) < shots
        ask(int(found[1]))


@pytest.mark.slow
def test_a_random_model_through_the_command_line_of_the_harness(tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="needs the extra lm-eval")
    names = [
        name
        for number, text in enumerate(
            [*TASKS[:6], "mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4"]
        )
        for name in exported(tmp_path / "tasks" / str(number), text)
        # the tags leave out what is for chat models, whose thoughts have no room in this one
        if not name.endswith("_chat")
    ]
    tiny_model(tmp_path / "model")
    command = [
        sys.executable,
        "-m",
        "lm_eval",
        "run",
        "--model",
        "hf",
        "--model_args",
        f"pretrained={tmp_path / 'model'},dtype=float32",
    ]
    command += [
        "--include_path",
        str(tmp_path / "tasks"),
        "--tasks",
        "separatrix,separatrix_cot,separatrix_logprob",
        "--num_fewshot",
        "1",
        "--device",
        "cpu",
    ]
    command += [
        "--batch_size",
        "4",
        "--output_path",
        str(tmp_path / "out"),
        "--log_samples",
        "--seed",
        "0",
    ]
    offline = {
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_HOME": str(tmp_path / "home"),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        command,
        env=os.environ | offline,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (found,) = (tmp_path / "out").rglob("results_*.json")
    results = json.loads(found.read_text())["results"]
    assert set(results) == set(names)
    for name, part in results.items():
        logged = next((tmp_path / "out").rglob(f"samples_{name}_2*.jsonl")).read_text().splitlines()
        metric = "acc,none" if "acc,none" in part else "exact_match,answer"
        right = [json.loads(line)[metric.partition(",")[0]] for line in logged]
        assert len(right) == SIZES["test"]
        assert part[metric] == pytest.approx(sum(right) / len(right))

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

from separatrix.exports import export
from separatrix.exports.wording import definition
from separatrix.tasks import Composition, Task, Thought, parse_task
from separatrix.tasks.text import TextTask, parse_text_task

pytest.importorskip("lm_eval", reason="needs the extra lm-eval")

SIZES = {"train": 6, "validation": 0, "test": 12}
MQAR = "mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4"
TASKS = [
    "eva:n=6,V=6",
    "eva:n=24,V=12",
    "seqcomp:L=2,m=6,n_1=1",
    "seqcomp:L=3,m=16,n_1=1,n_2=1,thought=values",
    MQAR,
    "multihop:k=2,n=6",
    "multihop:k=2,n=6,style=steps",
    "multihop:k=1,n=24",
]


def parsed(text: str) -> Task | TextTask:
    return parse_text_task(text) if text.startswith("multihop") else parse_task(text)


def exported(folder: Path, text: str) -> list[str]:
    """Names of the harness's tasks in a new folder."""
    export(parsed(text), format="lm-eval", out=folder, splits=SIZES)
    return sorted(path.stem for path in folder.glob("*.yaml"))


def solve(text: str, question: str) -> tuple[list[str], str]:
    """(steps, answer) of a question, by the task's oracle, read from the words alone."""
    task = parsed(text)
    if isinstance(task, TextTask):
        cue = "Answer step by step:" if "style=steps" in text else "Answer:"
        told, asked, *_ = question.rsplit("\n\n", 1)
        prompt = f"{told}\n\n{asked.partition(chr(10))[0]}\n{cue}"
        return task.steps(prompt), task.answer(prompt)
    found = re.search(r"Numbers: ([0-9 ]+)\n", question)
    assert found
    numbers = [int(word) for word in found[1].split()]
    if (
        text == MQAR
    ):  # the value beside the first mention of the key, as the definition counts it: from id 8 on
        return [], str(numbers[numbers.index(numbers[-1]) + 1] - 8)
    inner = task.task if isinstance(task, Thought) else task
    chain = (
        inner.intermediate(np.array([numbers]))[0].tolist()
        if isinstance(inner, Composition)
        else []
    )
    return [str(value) for value in chain], str(inner.answer(np.array([numbers]))[0])


def written(text: str, question: str) -> str:
    """What stands behind a question: a space, then the answer, or the steps and then the answer."""
    steps, answer = solve(text, question)
    if question.endswith("\nAnswer:"):
        return f" {answer}"
    kind = "NAME" if text.startswith("multihop") else "NUMBER"
    assert question.endswith(
        f"\nWrite the steps, then: The answer is {kind}.\nAnswer step by step:"
    )
    return f" {' '.join(steps)}{'' if text.startswith('multihop') else '.'} The answer is {answer}."


def questions(text: str, context: str, shots: int) -> list[str]:
    """The questions of a context, checked: above them stands what is asked and what an answer
    looks like, and all but the last are answered.
    """
    asked = re.split(r"\n\n(?=[^\n]+\n+(?:Numbers|Question): )", context)
    task = parsed(text)
    steps = context.endswith("step by step:")
    if isinstance(task, Task):
        manner = (
            "Write the steps, then: The answer is NUMBER."
            if steps
            else "Answer with the number alone."
        )
        assert (
            asked.pop(0)
            == f"{definition(task.task if isinstance(task, Thought) else task)}\n\n{manner}"
        )
    else:
        manner = (
            "Write the steps, then: The answer is NAME." if steps else "Answer with the name alone."
        )
        assert asked.pop(0) == f"Answer the question from the facts. {manner}"
    assert len(asked) == shots + 1
    for part in asked[:-1]:
        question = re.match(r"(?s).*\nAnswer[a-z ]*:", part)
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
            return [
                (float((answer == request.args[1]) == right), False)
                for answer, request in zip(answers, requests, strict=True)
            ]

        def loglikelihood_rolling(self, requests: list[Any], **_: Any) -> list[float]:
            raise NotImplementedError

        def generate_until(self, requests: list[Any], **_: Any) -> list[str]:
            said = [
                written(text, questions(text, request.args[0], shots)[-1]) for request in requests
            ]
            return said if right else [re.sub(r"\w+(\.?)$", r"1000\1", answer) for answer in said]

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
    assert run(tmp_path / "b", names, model("eva:n=6,V=6", right=True, shots=0), 0) == {
        names[0]: 1.0
    }


def accepted(folder: Path, text: str, said: str, answer: str) -> bool:
    """Whether the harness takes what a model said for the answer: cut where it would stop, then
    its own filter and its own metric.
    """
    import yaml
    from lm_eval.api.metrics import exact_match_hf_evaluate
    from lm_eval.api.registry import get_filter

    if not folder.exists():
        exported(folder, text)
    loader = type("Loader", (yaml.SafeLoader,), {})
    loader.add_constructor("!function", lambda loader, node: node.value)
    steps = "style=steps" in text or "thought" in text
    (path,) = [path for path in folder.glob("*.yaml") if steps or not path.stem.endswith("_cot")]
    config = yaml.load(path.read_text(), loader)
    for stop in config["generation_kwargs"]["until"]:
        said = said.partition(stop)[0]
    first, then = config["filter_list"][0]["filter"]
    found = get_filter(first.pop("function"))(**first).apply([[said]], [{}])
    (found,) = get_filter(then["function"])().apply(found, [{}])
    (metric,) = config["metric_list"]
    rules = {
        name: metric[name]
        for name in ("regexes_to_ignore", "ignore_case", "ignore_punctuation")
        if name in metric
    }
    return bool(
        exact_match_hf_evaluate(predictions=[found], references=[answer], **rules)["exact_match"]
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tasks")


NUMBERS = {
    "5": (
        """5 |**5**|5.|\n5|5\nbecause ...|f(3) = 5|i_1 = 7, i_2 = 5|**i_2 = 5**
        |z_1(3) = 7, so z_2(7) = 5.
        |The answer is 5, the value of 3|(5)|\\boxed{5}
        |Answer: 5|7 - 2 = 5|7,5"""
    ),
    "1024": "1024|1,024|= 1,024.",
}
OTHER_NUMBERS = {
    "5": "7|f(5)|f(5) = 7|-5|5.5|5/6|i_5|5th|4 or 5|5 or 4|15|51|none||5, 7|7\n5",
    "24": "1,024",
    "2": "i_2 = 5",
}
STEPS = {
    "5": (
        """3 7 5. The answer is 5.|The answer is **5**|The answer is i_2 = 5
        |The answer is z_2(1, 3) = 5 (place 12).|the answer is:\n\n5|**Answer:** 5
        |**The answer is:** $\\boxed{5}$.|Final answer: 5|So the answer is the number 5.
        |The answer is 4. No, the answer is 5.
        |The answer is 5.\n\nEvaluate ... Answers are numbers from 0 to 7.\nNumbers: 1 2
        |i_1 = 7\n\nThe answer is 5."""
    ),
    "1024": "The answer is 1,024.",
}
OTHER_STEPS = {
    "5": (
        """5|3 7 5.|The answer is i_5.|The answer is f(5).|The answer is -5.|The answer is 4 or 5.
        |The answer is 5. No, the answer is 4.|The answer is\n- i_1 = 5"""
    )
}
NAMES = {
    "Batfeb": (
        """Batfeb|the castle Batfeb.|**Batfeb**|The castle Batfeb
        |The castle of Levgug is Batfeb.|Batfeb is the castle of Levgug.
        |Batfeb, for Levgug lives there
        |Levgug was born in the village of Batfeb.|Answer: Batfeb
        |The answer is the castle Batfeb, home of Levgug.
        |batfeb|_Batfeb_|\nBatfeb\nLevgug"""
    )
}
OTHER_NAMES = {
    "Batfeb": (
        "Levgug|the castle Levgug|Batfebs|Batfeb or Levgug|Levgug or Batfeb|castle||Batfeb was born"
        " in the village of Levgug.|Levgug\nBatfeb"
    )
}
NAMED_STEPS = {
    "Batfeb": (
        """The mother of Levgug is Batfeb. The answer is Batfeb.|The answer is the castle Batfeb.
        |**Answer**: the city of Batfeb|The answer is:\n\n**Batfeb**
        |The answer is Levgug. No: the answer is Batfeb.|The answer is batfeb"""
    )
}
OTHER_NAMED_STEPS = {
    "Batfeb": (
        "Batfeb|The mother of Levgug is Batfeb.|The answer is Levgug.|The answer is Batfeb or"
        " Levgug.|The answer is unknown.\nBatfeb"
    )
}


@pytest.mark.parametrize(
    ("text", "right", "wrong"),
    [
        ("eva:n=24,V=12", NUMBERS, OTHER_NUMBERS),
        ("seqcomp:L=3,m=16,n_1=1,n_2=1,thought=values", STEPS, OTHER_STEPS),
        ("multihop:k=1,n=24", NAMES, OTHER_NAMES),
        ("multihop:k=2,n=6,style=steps", NAMED_STEPS, OTHER_NAMED_STEPS),
    ],
)
def test_answers_that_the_harness_accepts_and_refuses(
    folders: Path, text: str, right: dict[str, str], wrong: dict[str, str]
) -> None:
    """Without solved questions models write an answer in many ways. The lists are separated by
    |, a break stands for one in what is said.
    """
    folder = folders / re.sub(r"\W+", "_", text)
    for expected, listed in ((True, right), (False, wrong)):
        judged = {
            said: accepted(folder, text, said, answer)
            for answer, cases in listed.items()
            for said in re.split(r"(?:\n +)?\|", cases)
        }
        assert judged == dict.fromkeys(judged, expected)


def test_no_answer_takes_long_to_read(folders: Path) -> None:
    """Patterns of answers with words in any number must not try all ways to cut a text."""
    for text in ("eva:n=24,V=12", "multihop:k=1,n=24", "multihop:k=2,n=6,style=steps"):
        for said in (
            " word" * 100,
            "*" * 400,
            "a " * 100 + "-" * 100,
            "the answer is " * 50,
            "ab" * 200,
        ):
            assert not accepted(folders / re.sub(r"\W+", "_", text), text, said, "5")


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
        n_positions=1024,
        n_embd=8,
        n_layer=1,
        n_head=1,
        bos_token_id=1,
        eos_token_id=1,
    )
    GPT2LMHeadModel(config).save_pretrained(folder)


@pytest.mark.slow
def test_a_random_model_through_the_command_line_of_the_harness(tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="needs the extra lm-eval")
    names = [
        name
        for number, text in enumerate(TASKS)
        for name in exported(tmp_path / "tasks" / str(number), text)
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
        "separatrix",
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

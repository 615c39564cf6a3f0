"""Exports: what stands in the files, read again without the code that wrote them and answered by
each task's oracle.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml as pyyaml
from support.each import each
from support.worded import answer_in_words, tokens_of

from separatrix.core.errors import SpecError
from separatrix.tasks import TASKS, Composition, Task, Thought, parse_task
from separatrix.tasks.base.described import wrapped
from separatrix.tasks.base.references import REFERENCES, references
from separatrix.tasks.exports import SPLITS, export
from separatrix.tasks.exports.asking import asking
from separatrix.tasks.exports.card import Function, dumped
from separatrix.tasks.exports.replies import read
from separatrix.tasks.exports.source import TextSource, TokenSource
from separatrix.tasks.text import TEXT_TASKS, parse_text_task

SIZES = {"train": 3, "validation": 2, "test": 2}
SMALLEST = [f"{name}:{cls.grid[0]}" for name, cls in TASKS.items()]
CHAINS = [
    "seqcomp:L=2,m=3,n_1=2",
    "seqcomp:L=3,m=4,n_1=1,n_2=2,thought=values",
    "seqcomp:L=2,m=5,n_1=2,thought=pairs",
]


def jsonl(folder: Path, task: Any, **options: Any) -> dict[str, list[dict[str, Any]]]:
    export(task, format="jsonl", out=folder, splits=SIZES, **options)
    return {
        split: [json.loads(line) for line in (folder / f"{split}.jsonl").read_text().splitlines()]
        for split in SPLITS
    }


@pytest.mark.parametrize("text", [*SMALLEST, *CHAINS])
def test_rows_of_tokens(tmp_path: Path, text: str) -> None:
    """Answers are the oracle's, numbers in words are the tokens, and the answer in words is the
    one due after them.
    """
    task = parse_task(text)
    splits = jsonl(tmp_path / "a", task)
    assert {split: len(found) for split, found in splits.items()} == SIZES
    for row in [row for found in splits.values() for row in found]:
        expected = task.answer(np.array([row["tokens"]]))[0]
        assert expected.tolist() == row["targets" if task.several else "target"]
        numbers = tokens_of(task.asked, row["prompt"])
        assert numbers == row["tokens"][: len(numbers)]
        if isinstance(task, Thought):
            assert len(numbers) == task.task.length
            due = expected[-1]
        else:
            due = expected[len(numbers) - 1] if task.several else expected
            assert len(numbers) == (row["place"] + 1 if task.several else task.length)
        assert due >= 0
        assert row["answer"] == (answer_in_words(task.asked, row["prompt"]))
        if task.asked.reply[0] == "number":
            assert row["answer"] == str(due)


@pytest.mark.parametrize("text", CHAINS)
def test_steps_are_the_chain(tmp_path: Path, text: str) -> None:
    task = parse_task(text)
    inner = task.task if isinstance(task, Thought) else task
    for row in jsonl(tmp_path / "a", task)["train"]:
        chains = inner.chain(np.array([tokens_of(task.asked, row["prompt"])]))
        assert chains is not None
        chain = chains[0].tolist()
        assert row["steps"] == [str(value) for value in chain]
        stepwise = f"{' '.join(row['steps'])}.\nAnswer: {chain[-1]}"
        assert row["completion"] == (stepwise if isinstance(task, Thought) else str(chain[-1]))


@each("text", [*SMALLEST, *CHAINS, "eva:n=6,shift=zipf", "multihop:k=2,n=15"])
def test_how_it_is_drawn_is_for_readers_of_the_data(text: str) -> None:
    """Nothing of errors and code; the inner task's sampler for a chain of thought, the shift
    where there is one.
    """
    task: Any = parse_text_task(text) if text.startswith("multihop") else parse_task(text)
    said = wrapped(task.how_drawn)
    assert not re.search(r"Error|Raises|level\(|`|otherwise\)|\(else", said)
    assert len(said) > 60
    if isinstance(task, Thought):
        assert wrapped(task.task.how_drawn) in said
    shift = task.sizes().get("shift")
    assert ("\n\nHere: " in said) == (shift is not None)
    if shift is not None:
        assert " ".join(said.split()).endswith(f" Here: {task.shifts[shift]}.")


def test_pairs_say_what_their_ids_are(tmp_path: Path) -> None:
    """10 ids in the prompt (2 n_1 m), 5 values: the card's formula, applied to the prompt's own
    w and values, gives the written tokens.
    """
    task = parse_task("seqcomp:L=2,m=5,n_1=2,thought=pairs")
    assert isinstance(task, Thought)
    made = jsonl(tmp_path / "a", task)
    said = json.loads((tmp_path / "a" / "metadata.json").read_text())
    found = re.search(
        r"vocabulary \+ w \* values \+ value: here (\d+) \+ (\d+) w \+ value", said["definition"]
    )
    assert found
    base = int(found[1])
    values = int(found[2])
    assert (base, values) == (task.task.vocabulary, 5)
    for row in made["train"]:
        *_, z0, w = row["tokens"][: task.task.length]
        chain = [z0, *map(int, row["steps"])]
        assert row["tokens"][task.task.length :] == [
            base + w * values + value for value in chain[:-1]
        ]
        assert all(0 <= value < values for value in chain[:-1])


def test_pairs_are_not_asked_in_words(tmp_path: Path) -> None:
    """Neither by the harness nor by `evaluate`, which asked for the values without a word."""
    task = parse_task("seqcomp:L=2,m=5,n_1=2,thought=pairs")
    with pytest.raises(SpecError, match="thought=values"):
        export(task, format="lm-eval", out=tmp_path / "new" / "a", splits=SIZES)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SpecError, match="thought=values"):
        asking(task, shots=0, number=2, seed=0)
    assert asking(parse_task(task.spec.replace("pairs", "values")), shots=0, number=2, seed=0)


@each("cls", [*TASKS.values(), *TEXT_TASKS.values(), Thought])
def test_every_source_is_known_in_full(cls: type[Any]) -> None:
    """A source is a number of arXiv, an author and a year, or a key of the list."""
    assert re.search(r"\[\w+\]|arXiv \d{4}\.\d{5}|theory\.md|[A-Z]\w+ [12]\d{3}\b", cls.source)
    named = re.findall(r"\[([^\]]+)\]|(theory\.md)", cls.source)
    assert {key for keys in named for key in keys if key} == set(references(cls.source))


def test_the_theory_page_has_the_same_papers() -> None:
    page = (Path(__file__).parents[4] / "docs" / "theory.md").read_text()
    listed = page[page.index("Sources. [") : page.index("## 1.")]
    for key, work in REFERENCES.items():
        for paper in (
            re.findall(r"arXiv (\d{4}\.\d{5})", f"{key} {work}") if f"[{key}]" in listed else ()
        ):
            assert paper in listed or key == "San23"


@pytest.mark.parametrize(
    "text",
    [f"{name}:{cls.grid[0]}" for name, cls in TEXT_TASKS.items()]
    + ["multihop:k=2,n=15,style=steps"],
)
def test_rows_of_text(tmp_path: Path, text: str) -> None:
    task = parse_text_task(text)
    for row in jsonl(tmp_path / "a", task)["train"]:
        assert row["answer"] == task.answer(row["prompt"])
        assert row["steps"] == task.steps(row["prompt"])
        if task.reply[1] == 1:
            assert row["answer"] in row["choices"]
        else:
            assert "choices" not in row
        stepwise = f"{' '.join(row['steps'])}\nAnswer: {row['answer']}"
        assert row["completion"] == (stepwise if "style=steps" in text else row["answer"])


@pytest.mark.parametrize("text", SMALLEST)
def test_metadata(tmp_path: Path, text: str) -> None:
    task = parse_task(text)
    jsonl(tmp_path / "a", task, seed=7)
    said = json.loads((tmp_path / "a" / "metadata.json").read_text())
    assert parse_task(said["task"]) == task
    assert (said["vocabulary"], said["answers"], said["length"]) == (
        task.vocabulary,
        task.answers,
        task.length,
    )
    assert (Fraction(said["chance"]), said["seed"], said["splits"]) == (task.chance, 7, SIZES)
    assert (
        said["columns"].keys()
        == json.loads((tmp_path / "a" / "test.jsonl").read_text().splitlines()[0]).keys()
    )
    assert (
        said["command"]
        == f"separatrix task '{task.spec}' export --format jsonl --rows train=3 --rows validation=2"
        " --rows test=2 --seed 7 --out DIR"
    )


def test_a_chance_of_thousands_of_digits(tmp_path: Path) -> None:
    task = parse_task("eva:n=20000,V=20000,shift=zipf")
    assert task.chance.denominator.bit_length() > 15_000
    jsonl(tmp_path / "a", task)
    said = json.loads((tmp_path / "a" / "metadata.json").read_text())["chance"]
    assert float(said) == pytest.approx(float(task.chance), rel=1e-9)


@each("text", SMALLEST)
def test_a_definition_starts_with_the_token_table_and_names_no_source(text: str) -> None:
    said = wrapped(parse_task(text).definition)
    assert "\n    " in said.split("\n\n")[1] or said.split("\n\n")[1].startswith("    ")
    assert "input" in said
    assert "target" in said
    assert "Source:" not in said
    assert "theory.md" not in said
    assert "[here]" not in said


def test_the_card(tmp_path: Path) -> None:
    task = parse_task("eva:n=4,V=3")
    export(task, format="hf", out=tmp_path / "hf", splits=SIZES)
    front, _, body = (
        (tmp_path / "hf" / "README.md").read_text().removeprefix("---\n").partition("---\n")
    )
    said = pyyaml.safe_load(front)
    assert said["configs"] == [
        {
            "config_name": "default",
            "data_files": [
                {"split": split, "path": f"data/{split}-00000-of-00001.parquet"} for split in SPLITS
            ],
        }
    ]
    assert wrapped(task.definition) in body
    assert "## Source of the task\n\n[Ye26].\n\n- [Ye26]: Ye, He, Liao, Wu, Lu, " in body
    assert "arXiv 2602.01763" in body
    for line in (
        "| accuracy of the best constant guess (chance) | 1/3 |",
        "| token ids | 0 to 3 |",
        "| train | 3 |",
        "eva:n=4,V=3",
    ):
        assert line in body
    assert "apart | 2^6.3398500" in body  # 4 log2(3) = 6.33985000...


def test_the_card_of_a_text_task(tmp_path: Path) -> None:
    """23 facts of 3 hops: 3 chains of 7 facts each, decoys and what leads on included, and two left
    over; the candidates are the chains' ends.
    """
    export(parse_text_task("multihop:k=3,n=23"), format="lm-eval", out=tmp_path / "a", splits=SIZES)
    body = (tmp_path / "a" / "README.md").read_text()
    for line in (
        "| k | 3 |",
        "| n | 23 |",
        "a guess among the candidates (chance) | 1/3 |",
        "--num_fewshot 3\n",
    ):
        assert line in body
    assert "five stories" in body
    assert "- [CPW]: Chen, Peng, Wu, " in body


@pytest.mark.parametrize(
    ("splits", "shots"),
    [({"train": 9}, 4), ({"train": 0, "validation": 2}, 2), ({"train": 0, "validation": 0}, 0)],
)
def test_the_readme_advises_solved_questions_where_there_are_some(
    tmp_path: Path, splits: dict[str, int], shots: int
) -> None:
    export(parse_task("eva:n=6"), format="lm-eval", out=tmp_path / "a", splits={"test": 2} | splits)
    assert f"--num_fewshot {shots}\n" in (tmp_path / "a" / "README.md").read_text()


@pytest.mark.parametrize("text", [*SMALLEST, "seqcomp:L=2,n=64"])
def test_task_folders_are_yaml(tmp_path: Path, text: str) -> None:
    task = parse_task(text)
    export(task, format="lm-eval", out=tmp_path / "a", splits=SIZES)
    loader = type("Loader", (pyyaml.SafeLoader,), {})
    loader.add_constructor("!function", lambda loader, node: Function(node.value))
    found = {
        path.stem: pyyaml.load(path.read_text(), loader) for path in (tmp_path / "a").glob("*.yaml")
    }
    name = "separatrix_" + re.sub(r"\W+", "_", task.spec)
    chain = {f"{name}_cot"} if isinstance(task, Composition) else set()
    assert set(found) == {name, f"{name}_chat", f"{name}_logprob"} | chain
    assert {config["tag"][0] for config in found.values()} == {
        "separatrix" + other.removeprefix(name) for other in found
    }
    weighed = found[f"{name}_logprob"]
    assert weighed["output_type"] == "loglikelihood"
    assert [each["metric"] for each in weighed["metric_list"]] == ["log_probability", "acc"]
    tags = {other: config["tag"] for other, config in found.items()}
    assert tags == {other: ["separatrix" + other.removeprefix(name)] for other in found}
    direct = found[name]
    kind = task.reply[0]
    assert direct["task"] == name
    assert direct["custom_dataset"] == "rows.load"
    assert (
        direct["description"] == f"{wrapped(task.definition)}\n\nAnswer with the {kind} alone.\n\n"
    )
    end = f"Answer: {kind.upper()}"
    for steps in (config for other, config in found.items() if other.endswith("_cot")):
        assert steps["description"].endswith(f"\n\nWrite the steps, then a line: {end}\n\n")
        assert steps["doc_to_text"].endswith(
            f"\nWrite the steps, then a line: {end}\nAnswer step by step:"
        )
    chat = found[f"{name}_chat"]
    assert chat["doc_to_text"].endswith(
        f"\nThink as long as you like, and end with one line: {end}"
    )
    assert (chat["output_type"], chat["generation_kwargs"]["until"]) == ("generate_until", [])
    assert chat["generation_kwargs"]["max_gen_toks"] >= 4096
    assert direct["metadata"]["chance"] == str(task.chance)
    few = task.answers <= 10
    assert direct["output_type"] == ("multiple_choice" if few else "generate_until")
    assert direct.get("doc_to_choice") == (
        [task.answer_word(answer) for answer in range(task.answers)] if few else None
    )


@each(
    "value",
    [
        "yes",
        "1",
        "",
        " x",
        "a: b",
        "# no",
        "- a",
        "é\u2028",
        'quote "',
        "a\nb",
        "a\nb\n",
        "a\n\n  b\n\n",
        "\na\nb",
        "  a\nb",
        "a\tb\nc",
        "{{x}}\nb",
    ],
)
def test_yaml_is_read_as_it_was_meant(value: str) -> None:
    tree = {"a": value, "b": [value, {"c": value, "d": [1, 2.5, True]}], value: {"e": {}, "f": []}}
    assert pyyaml.safe_load(dumped(tree)) == tree


def test_no_task_escapes_the_templates_of_the_harness() -> None:
    assert not [
        name
        for name, cls in TASKS.items()
        if re.search(r"{[{%#]", wrapped(_smallest(cls).definition))
    ]


def _smallest(cls: type[Task]) -> Task:
    return parse_task(f"{cls.name}:{cls.grid[0]}")


@each("text", SMALLEST)
def test_a_scripted_model_is_right_or_wrong_on_every_task(text: str) -> None:
    """Questions answered from their words alone: all replies are read as they were meant."""
    source = TokenSource(parse_task(text))
    task = source.task.asked
    made = source.draw(4, np.random.default_rng(3)).render(np.arange(4))
    for prompt, answer in zip(made["prompt"], made["answer"], strict=True):
        right, wrong = (answer_in_words(task, prompt, wrong=bad) for bad in (False, True))
        for said in (
            "{}",
            "The answer is {}.",
            "<think>\nHmm.\n</think>\n\n**{}**",
            "\\boxed{{{}}}",
        ):
            assert read(said.format(right), source.shape) == answer
            assert read(said.format(wrong), source.shape) not in (answer, None)


def test_ids_are_written_as_what_they_mean() -> None:
    """Values as the number that is the answer, places, swaps and brackets as in the token table."""
    words = {
        "mqar:vocab_size=12,input_seq_len=8,num_kv_pairs=2": ([2, 8, 0, 11], "k2 2 k0 5"),
        "recall:n=2,K=4,V=3,form=absent": ([2, 3, 6], "2 k0 k3"),
        "index:n=4,V=4": ([2, 6], "2 @2"),
        "qsa:n=4,q=2,V=3": ([2, 6, 3], "2 @3 @0"),
        "neighbour:n=2,d=3,V=2": ([1, 9, 6, 8, 2], "001 1 110 0 010"),
        "dyck:n=6,k=2,D=2": ([0, 1, 3, 2, 1, 3], "( [ ] ) [ ]"),
        "dyck:n=6,k=5,D=2": ([0, 4, 9, 5], "(0 (4 )4 )0"),
        "permutation:n=3,k=3": ([1, 3, 4], "[0,2,1] [1,2,0] [2,0,1]"),
        "state-recall:n=4,V=2,K=2,P=3": (
            [1, 0, 0, 1, 4, 2, 5, 6, 8, 10],
            "1 0 0 1 @2 @0 @3 0~1 1~2 ?1",
        ),
    }
    for text, (tokens, written) in words.items():
        assert " ".join(map(parse_task(text).word, tokens)) == written, text


@each("text", [f"{name}:{sizes}" for name, cls in TEXT_TASKS.items() for sizes in cls.grid[:3]])
def test_a_scripted_model_is_right_or_wrong_on_every_text(text: str) -> None:
    """As above; the wrong model answers with other names of the text."""
    source = TextSource(parse_text_task(text))
    made = source.draw(3, np.random.default_rng(3)).render(np.arange(3))
    rows = [dict(zip(made, values, strict=True)) for values in zip(*made.values(), strict=True)]
    for row in rows:
        right = row["answer"]
        known = row.get("choices") or sorted(set(re.findall(source.task.pattern, row["prompt"])))
        others = [name for name in known if name not in right][: source.shape.size]
        for said in ("{}", "The answer is {}.", "<think>\n{}?\n</think>\n**{}**", "\\boxed{{{}}}"):
            listed = ["Nobody", right] if said.count("{}") == 2 and "{{" not in said else [right]
            assert read(said.format(*listed), source.shape, row.get("choices", ())) == right
            wrong = read(
                said.format(*[", ".join(others)] * 2), source.shape, row.get("choices", ())
            )
            assert wrong not in (right, None)

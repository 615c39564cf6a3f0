"""Checkpoints of transformers asked the tasks' questions: against plain loops, an oracle, and
constructions that must answer everything.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from separatrix.cli.main import app
from separatrix.core.errors import ConfigError, SizeError, SpecError
from separatrix.models.released import Ids, Released
from separatrix.tasks import parse_any_task, parse_task
from separatrix.tasks.exports.asking import Asking, asking, longest
from separatrix.tasks.labels import token_labels

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")
SIZES = {"hidden_size": 32, "intermediate_size": 48, "eos_token_id": 1, "dtype": "float32"}
HEADS = {"num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 2048}


def config_of(name: str, ids: int) -> Any:
    return {
        "llama": lambda: transformers.LlamaConfig(
            vocab_size=ids, num_hidden_layers=2, **SIZES, **HEADS
        ),
        "qwen3_next": lambda: transformers.Qwen3NextConfig(
            vocab_size=ids,
            num_hidden_layers=4,
            head_dim=16,
            linear_num_key_heads=2,
            linear_num_value_heads=2,
            linear_key_head_dim=8,
            linear_value_head_dim=8,
            num_experts=4,
            num_experts_per_tok=2,
            moe_intermediate_size=16,
            shared_expert_intermediate_size=16,
            **SIZES,
            **HEADS,
        ),
        "mamba2": lambda: transformers.Mamba2Config(
            vocab_size=ids,
            hidden_size=32,
            num_hidden_layers=2,
            num_heads=4,
            head_dim=16,
            state_size=8,
            n_groups=1,
            eos_token_id=1,
            dtype="float32",
        ),
        "falcon_h1": lambda: transformers.FalconH1Config(
            vocab_size=ids,
            num_hidden_layers=2,
            head_dim=16,
            mamba_d_ssm=32,
            mamba_n_heads=4,
            mamba_d_head=8,
            mamba_d_state=8,
            mamba_n_groups=1,
            **SIZES,
            **HEADS,
        ),
    }[name]()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny checkpoint of each family, with a tokenizer that splits some numbers."""
    transformers.utils.logging.disable_progress_bar()
    where = tmp_path_factory.mktemp("released")
    made = trained([*map(str, range(1, 20))], 400)
    torch.manual_seed(0)
    for name in ("llama", "qwen3_next", "mamba2", "falcon_h1"):
        saved(name, made, where / name)
    return where


def trained(words: list[str], size: int) -> Any:
    """A tokenizer of so many ids at most that has seen these words."""
    level = tokenizers.pre_tokenizers.ByteLevel
    made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    made.pre_tokenizer = level(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<unk>", "</s>"],
        initial_alphabet=level.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([" ".join(words)] * 9, trainer)
    return made


def saved(name: str, made: Any, folder: Path) -> None:
    """A tiny checkpoint of a family, with a tokenizer."""
    spelling = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="</s>", unk_token="<unk>"
    )
    config = config_of(name, len(spelling))
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    spelling.save_pretrained(folder)


def run(*words: str | int | Path) -> tuple[int, Any]:
    done = CliRunner().invoke(app, [*map(str, words), "--json"])
    return done.exit_code, json.loads(done.stdout) if done.exit_code == 0 else done


def asked(text: str, number: int = 4) -> Asking:
    return asking(parse_any_task(text), shots=1, number=number, seed=3)


@pytest.mark.parametrize("name", ["llama", "qwen3_next", "mamba2", "falcon_h1"])
def test_replies_are_those_of_a_plain_loop(folders: Path, name: str) -> None:
    """Greedy text without a cache, and log-probabilities token by token, one prompt at a time."""
    released = Released.load(folders / name)
    made = replace(asked("recall:n=3,K=16,V=16"), most=4)
    replies = dict(released.answered(made, range(4)))
    for number, question in enumerate(made.questions):
        ids = list(released.ids(question.prompt))
        before, after = released.split(question.prompt, question.answer)
        assert [*before, *after] == list(released.ids(f"{question.prompt} {question.answer}"))
        with torch.no_grad():
            whole = released.model(torch.tensor([[*before, *after]])).logits[0].log_softmax(-1)
            score = sum(float(whole[len(before) + k - 1, one]) for k, one in enumerate(after))
            written: list[int] = []
            while len(written) < 4 and 1 not in written:
                logits = released.model(torch.tensor([ids + written])).logits[0, -1]
                written.append(int(logits.argmax()))
        text = released.tokenizer.decode(written, skip_special_tokens=True).partition("\n\n")[0]
        assert replies[number].said == text
        assert replies[number].log_probability == pytest.approx(score, abs=1e-4)


class Oracle(Released):
    """One that expects the right answer, or the next choice, whatever the model says."""

    def told(self, made: Asking, off: int) -> Oracle:
        answers = {}
        for one in made.questions:
            choice = one.choices[(one.choices.index(one.answer) + off) % len(one.choices)]
            before, after = self.split(one.prompt, choice)
            answers |= {before + after[:k]: after[k] for k in range(len(after))}
        object.__setattr__(self, "answers", answers)
        return self

    def logits(self, prompts: Any, keep: int) -> torch.Tensor:
        answers: dict[Ids, int] = self.__dict__["answers"]
        found = torch.zeros(len(prompts), keep, 1000)
        for row, ids in enumerate(prompts):
            for at in range(keep):
                seen = tuple(ids[: len(ids) - keep + at + 1])
                if seen in answers:
                    found[row, at, answers[seen]] = 9.0
        return found


@pytest.mark.parametrize(("off", "right"), [(0, True), (1, False)])
@pytest.mark.parametrize("text", ["eva:n=8,V=8", "equality:n=24"])
def test_the_likeliest_choice_counts(folders: Path, text: str, off: int, right: bool) -> None:
    own = Released.load(folders / "llama")
    made = asked(text, 10)
    oracle = Oracle(own.model, own.tokenizer, own.context).told(made, off)
    replies = dict(oracle.answered(made, range(10)))
    assert len(replies) == 10
    assert {reply.right for reply in replies.values()} == {right}


def test_all_choices_alike_are_not_right(folders: Path) -> None:
    own = Released.load(folders / "llama")
    with torch.no_grad():
        own.model.lm_head.weight.zero_()
    assert not any(reply.right for _, reply in own.answered(asked("eva:n=8,V=8"), range(4)))


@pytest.mark.parametrize("stock", ["llama", "gpt2"])
def test_an_exported_construction_answers_everything(
    tmp_path: Path, stock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, kept = tmp_path / "built", tmp_path / "kept"
    spec = ("eva:n=12,V=8", "--arch", "full*2 @ heads=1, head_dim=16", "--format", stock)
    assert run("construct", *spec, "--out", folder)[0] == 0
    code, (row,) = run("task", "eva:n=12,V=8", "evaluate", folder, "--number", 500, "--out", kept)
    assert (code, row["right"], row["total"]) == (0, 500, 500)
    assert row["proved"]["status"] == "SOLVABLE"
    assert run("task", "results", kept, "--out", tmp_path / "seen.svg") == (0, [row])
    assert "<svg" in (tmp_path / "seen.svg").read_text()
    # as for the model's own file: a bare name is the task that it was made for
    bare = run("task", "eva", "evaluate", folder, "--number", 50)[1]
    assert [(one["task"], one["right"]) for one in bare] == [("eva:n=12,V=8", 50)]
    assert run("task", "index", "evaluate", folder)[0] != 0
    # without transformers the construction is asked in its own way, as before
    with monkeypatch.context() as alone:
        alone.setattr("separatrix.cli.commands.results.find_spec", lambda name: None)
        (own,) = run("task", "eva", "evaluate", folder, "--number", 50)[1]
    assert (own["correct"], own["total"]) == (50, 50)
    # other weights of the head are noticed
    path = folder / "model.safetensors"
    from safetensors.torch import load_file, save_file

    tensors = load_file(path)
    tensors["lm_head.weight"] = tensors["lm_head.weight"].flip(0).contiguous()
    save_file(tensors, path, metadata={"format": "pt"})
    assert run("task", "eva:n=12,V=8", "evaluate", folder, "--number", 100)[1][0]["right"] < 50


def test_a_run_that_was_cut_off_goes_on(folders: Path, tmp_path: Path) -> None:
    question = ("task", "eva:V=8", "evaluate", folders / "llama", "--n", "4,6", "--number", 20)
    _, whole = run(*question)
    assert [row["task"] for row in whole] == ["eva:n=4,V=8", "eva:n=6,V=8"]
    run(*question, "--out", tmp_path)
    path = next(tmp_path.glob("eva_n_4*/replies.jsonl"))
    lines = path.read_text().splitlines(keepends=True)
    assert len(lines) == 21
    path.write_text("".join(lines[:8]) + lines[8][:20])
    again = run(*question, "--out", tmp_path)[1]
    for one, other in zip(again, whole, strict=True):
        # batches of other sizes round otherwise
        assert one.pop("log_probability") == pytest.approx(other.pop("log_probability"), abs=1e-4)
    assert again == whole
    numbers = [json.loads(line)["number"] for line in path.read_text().splitlines()[1:]]
    assert sorted(numbers) == list(range(20))
    assert path.read_text().startswith("".join(lines[:8]))
    assert run(*question, "--out", tmp_path, "--seed", 1)[0] == 1
    reply = json.loads(lines[1])
    spoilt = [{"number": 20}, {"number": -1}, {"number": "3"}, {"right": 1}, {"credit": 2.0}]
    for line in [*(json.dumps(reply | one) for one in spoilt), '{"number": 3}', "[" * 99_999]:
        path.write_text("".join(lines[:3]) + line + "\n")
        assert run(*question, "--out", tmp_path)[0] == 1
    path.write_bytes("".join(lines).encode() + b"\xff\n")
    assert run(*question, "--out", tmp_path)[0] == 1


def test_each_label_of_several_has_its_share(folders: Path) -> None:
    """Of a model whose logits are one id's everywhere: as many labels as are this id."""
    own = Released.load(folders / "llama")
    task = parse_task("mqar:vocab_size=8,input_seq_len=16,num_kv_pairs=2")
    labelled = token_labels(task, task.sample(40, np.random.default_rng(0)))
    with torch.no_grad():
        own.model.lm_head.weight.zero_()
    said = Oracle(own.model, None, None)
    object.__setattr__(said, "answers", {})
    found = dict(said.answered_in_ids(labelled, None, range(40)))
    due = [row[row >= 0].tolist() for row in labelled.labels]
    # of logits that are alike the first id is the likeliest, and then id 5, once that is raised
    assert [found[k].credit for k in range(40)] == [row.count(0) / 2 for row in due]
    rows = {tuple(row[: at + 1]): 5 for row in labelled.input_ids.tolist() for at in range(16)}
    object.__setattr__(said, "answers", rows)
    found = dict(said.answered_in_ids(labelled, None, range(40)))
    assert [found[k].credit for k in range(40)] == [row.count(5) / 2 for row in due]
    assert [found[k].right for k in range(40)] == [row == [5, 5] for row in due]
    assert 0 < sum(found[k].credit for k in range(40)) < 40


def test_a_part_of_the_names_has_its_share(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Released.load(folders / "llama")
    made = asked("needles:length=120,keys=4,values=2", 4)
    first = [question.answer.split(", ")[0] for question in made.questions]
    names = [f"{name}" for name in first[:2]] + [made.questions[2].answer, "nothing"]
    prompts = [own.ids(question.prompt) for question in made.questions]

    def written(self: Released, some: Any, _: Asking) -> list[str]:
        return [names[prompts.index(one)] for one in some]

    monkeypatch.setattr(Released, "_written", written)
    replies = dict(own.answered(made, range(4)))
    assert [replies[k].credit for k in range(4)] == [0.5, 0.5, 1.0, 0.0]
    assert [replies[k].right for k in range(4)] == [False, False, True, False]


def test_values_of_several_tokens_are_said(folders: Path) -> None:
    released = Released.load(folders / "llama")
    # 1 to 19 were learnt behind blanks, 500 was not
    assert released.split_values(["7", "12", "500"]) == ["500"]


WORDS = [
    "river",
    "stone",
    "cloud",
    "field",
    "horse",
    "apple",
    "bread",
    "chair",
    "glass",
    "knife",
    "lemon",
    "money",
]


@pytest.fixture(scope="module")
def wordy(folders: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint whose tokenizer knows a dozen words, and no number of two digits behind one."""
    where = tmp_path_factory.mktemp("wordy")
    saved("llama", trained([*WORDS, *map(str, range(10))], 600), where)
    return where


def test_words_of_one_token_stand_for_values_of_several(wordy: Path) -> None:
    """Prompts are the same once every word is read as what it stands for, and so are answers."""
    released = Released.load(wordy)
    task = parse_task("eva:n=8,V=18")
    several = released.split_values([str(value) for value in range(18)])
    assert several == [str(value) for value in range(10, 18)]
    instead = dict(zip(several, released.whole_words(8, ["river", "stone"]), strict=True))
    assert set(instead.values()) <= set(WORDS) - {"river", "stone"}
    plain, spelt = (
        asking(task, shots=2, number=20, seed=1, instead=given) for given in ({}, instead)
    )
    for one, other in zip(plain.questions, spelt.questions, strict=True):
        told, *rows = other.prompt.split("\nNumbers: ")
        assert told.count(", ".join(f"{word} for {meant}" for meant, word in instead.items())) == 1
        values = [row.partition("\n")[0].split() for row in rows]
        assert all(released.split_values(row) == [] for row in values)
        back = {word: meant for meant, word in instead.items()}
        meant = [[back.get(word, word) for word in row] for row in values]
        wanted = one.prompt.split("\nNumbers: ")[1:]
        assert meant == [row.partition("\n")[0].split() for row in wanted]
        assert other.answer == instead.get(one.answer, one.answer)
        # the word and the number it stands for are one answer
        for said in (other.answer, one.answer, f"Answer: {other.answer.upper()}."):
            assert spelt.read(said, other) == other.answer
        assert spelt.read("river", other) == ""
    assert {one.answer for one in spelt.questions} & set(instead.values())


def test_how_many_words_stand_for_values_is_said(wordy: Path) -> None:
    question = ("task", "eva:n=4,V=12", "evaluate", wordy, "--number", 5)
    code, (plain,) = run(*question)
    assert code == 0
    code, (spelt,) = run(*question, "--tokens", "one")
    assert code == 0
    assert spelt["manner"].startswith(f"{plain['manner']}, 2 ")


@pytest.mark.parametrize(
    ("text", "tokens"), [("eva:n=4,V=12", "two"), ("eva:n=4,V=40", "one"), ("eva:n=4,V=999", "one")]
)
def test_what_no_words_can_stand_for_is_one_line(wordy: Path, text: str, tokens: str) -> None:
    """Another number of tokens, more values than words, and too many to be told."""
    code, done = run("task", text, "evaluate", wordy, "--number", 5, "--tokens", tokens)
    assert code == 1
    assert isinstance(done.exception, SpecError if tokens == "two" else SizeError)


def test_an_export_fits_tokens_of_a_tokenizer(folders: Path, tmp_path: Path) -> None:
    out = ("export", "--format", "jsonl", "--out", tmp_path / "made", "--rows", "test=5")
    none = ("--rows", "train=0", "--rows", "validation=0")
    fit = ("--tokens", f"1k,1500:{folders / 'llama'}")
    code, made = run("task", "eva:V=8", *out, *none, *fit)
    assert code == 0
    released = Released.load(folders / "llama")
    for one, tokens in zip(made, (1024, 1500), strict=True):
        more = parse_task(f"eva:n={parse_task(one['task']).sizes()['n'] + 1},V=8")
        rows, count = {"test": 5}, lambda text: len(released.ids(text))
        assert one["longest"] <= tokens < longest(more, rows, 0, count)
        path = tmp_path / "made" / str(tokens) / "test.jsonl"
        lengths = [
            len(released.ids(json.loads(line)["prompt"])) for line in path.read_text().splitlines()
        ]
        assert len(lengths) == 5
        assert max(lengths) < one["longest"]


def test_what_cannot_be_asked_is_one_line(folders: Path, tmp_path: Path) -> None:
    long = asked("eva:n=300,V=300")
    with pytest.raises(SizeError, match="2,048"):
        Released.load(folders / "llama").check(long)
    shutil.copytree(folders / "llama", bare := tmp_path / "bare")
    for path in bare.glob("tokenizer*"):
        path.unlink()
    assert run("task", "multihop:k=1,n=24", "evaluate", bare)[0] == 1
    assert run("task", "eva:n=4,V=4", "evaluate", bare, "--rows", "train=2")[0] == 1
    assert run("task", "eva:n=4,V=9000", "evaluate", bare)[0] == 1
    assert run("task", "eva:n=4,V=4", "evaluate", bare, "--number", 9)[1][0]["total"] == 9
    assert run("task", "eva:n=4,V=4", "evaluate", folders / "llama", "--rows", "test=2")[0] == 1
    (bare / "model.safetensors").unlink()
    with pytest.raises(ConfigError, match="bare"):
        Released.load(bare)
    (bare / "config.json").write_text('{"model_type": "foo", "auto_map": {"AutoModel": "x.Y"}}')
    with pytest.raises(ConfigError, match="--import"):
        Released.load(bare)


def test_weights_that_are_not_there_are_not_drawn(folders: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    shutil.copytree(folders / "llama", folder := tmp_path / "less")
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.norm.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ConfigError, match=r"model\.norm\.weight"):
        Released.load(folder)

"""Constructions as checkpoints of GPT-2 and Llama, loaded by transformers with no code of ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import separatrix as sx
from separatrix.constructions import Built, construct
from separatrix.models.stock import STOCK, stock_checkpoint
from separatrix.models.stock.llama import write
from separatrix.models.stock.run import logits_at
from separatrix.tasks import Thought
from separatrix.tasks.base.task import Tokens

transformers = pytest.importorskip("transformers")
TASKS = (
    "eva:n=2,V=2",
    "eva:n=60,V=50",
    "index:n=8,V=8",
    "seqcomp:L=1,m=4",
    "seqcomp:L=2,m=4,n_1=2",
    "seqcomp:L=3,m=4,n_1=3,n_2=2",
    "twosum:n=4,M=6,form=query",
    "twosum:n=60,M=3000,form=query",
    "twosum:n=20,M=8000,form=query",
    "twosum:n=12,M=64,form=decision",
    "equality:n=12",
    "seqcomp:L=3,m=4,n_1=2,n_2=2,thought=pairs",
)
INPUTS = 1_000
ROTATED = "full*{layers} @ head_dim={dim}, heads=1, rope=true, positions=none"


@pytest.fixture(autouse=True, scope="module")
def quiet() -> None:
    transformers.utils.logging.disable_progress_bar()


def written(built: Built, stock: str, folder: Path) -> int | None:
    checkpoint = stock_checkpoint(built.model, stock)
    checkpoint.save(folder)
    return checkpoint.start


def loaded(folder: Path, attention: str = "sdpa") -> Any:
    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation=attention, output_loading_info=True
    )
    assert not any(info[name] for name in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert "separatrix" not in type(model).__module__
    return model


def inputs(task: sx.tasks.Task, seed: int = 0) -> Tokens:
    """All inputs of the smallest table, random ones of any other task."""
    if task.spec == "eva:n=2,V=2":
        return np.array([[a, b, x] for a in range(2) for b in range(2) for x in range(2)])
    return task.sample(INPUTS, np.random.default_rng(seed)).tokens


def right(task: sx.tasks.Task, tokens: Tokens) -> Tokens:
    """The answers after the last tokens."""
    answers = task.answer(tokens)
    return answers if answers.ndim == 1 else answers[:, -1]


def asked(model: Any, tokens: Tokens, start: int | None) -> torch.Tensor:
    read = torch.from_numpy(tokens)
    if start is not None:
        read = F.pad(read, (1, 0), value=start)
    with torch.inference_mode():
        return torch.cat([model(some, logits_to_keep=1).logits[:, -1] for some in read.split(100)])


@pytest.mark.parametrize("stock", STOCK)
@pytest.mark.parametrize("spec", TASKS)
def test_the_same_answers_with_either_attention(spec: str, stock: str, tmp_path: Path) -> None:
    task = sx.parse_task(spec)
    built = construct(task)
    start = written(built, stock, tmp_path)
    tokens = inputs(task)
    for attention in ("eager", "sdpa"):
        logits = asked(loaded(tmp_path, attention), tokens, start)
        assert logits.isfinite().all()
        # ids that are no answers stand in the same row
        assert np.array_equal(logits.argmax(-1).numpy(), right(task, tokens))
        ours = built.model(torch.from_numpy(tokens[:100]))
        # what differs is the order of sums, and the mean that GPT-2 takes off; scores of 2-Sum are
        # steep: the logits of a thousand values close to each other
        near = logits[:100, : task.answers] - ours
        assert float(near.abs().max()) < (1e-3 if spec.startswith("twosum") else 1e-5)


@pytest.mark.parametrize(("spec", "layers", "dim"), [("eva:n=100,V=90", 1, 64)])
def test_rotations_of_the_model_itself_are_those_of_llama(
    spec: str, layers: int, dim: int, tmp_path: Path
) -> None:
    task = sx.parse_task(spec)
    architecture = sx.Architecture.parse(ROTATED.format(layers=layers, dim=dim))
    start = written(construct(task, architecture), "llama", tmp_path)
    # nothing stands before the prompt: relative selection needs no start token
    assert start is None
    tokens = inputs(task)
    for attention in ("eager", "sdpa"):
        logits = asked(loaded(tmp_path, attention), tokens, start)
        assert np.array_equal(logits.argmax(-1).numpy(), right(task, tokens))


@pytest.mark.parametrize("places", [3, 16, 17, 700])
def test_llama_holds_the_embeddings_of_positions_exactly(places: int, tmp_path: Path) -> None:
    task = sx.parse_task(f"eva:n={places - 2},V=5")
    built = construct(task)
    start = written(built, "llama", tmp_path)
    tokens = torch.from_numpy(inputs(task)[:3])
    model = loaded(tmp_path)
    hidden = model(F.pad(tokens, (1, 0), value=start), output_hidden_states=True).hidden_states
    width = built.model.config.width
    wanted = built.model.embed.weight[tokens] + built.model.position.weight
    # behind the second layer, and before any of the model's own
    assert torch.equal(hidden[2][:, 1:, :width], wanted)


def test_a_token_is_read_as_the_prompt_grows(tmp_path: Path) -> None:
    task = sx.parse_task("seqcomp:L=3,m=4,n_1=2,n_2=2,thought=pairs")
    assert isinstance(task, Thought)
    built = construct(task)
    prompt = task.length - task.written
    for stock in STOCK:
        start = written(built, stock, tmp_path / stock)
        tokens = inputs(task, seed=3)[:20]
        read = torch.from_numpy(tokens[:, :prompt])
        if start is not None:
            read = F.pad(read, (1, 0), value=start)
        # keys and values are kept from token to token here
        model = loaded(tmp_path / stock)
        found = model.generate(read, max_new_tokens=task.written + 1, do_sample=False)
        assert np.array_equal(found[:, -task.written - 1 : -1].numpy(), tokens[:, prompt:])
        assert np.array_equal(found[:, -1].numpy(), right(task, tokens))


def test_no_code_of_ours_is_imported(tmp_path: Path) -> None:
    task = sx.parse_task("eva:n=4,V=4")
    start = written(construct(task), "llama", tmp_path)
    code = (
        "import sys, torch, transformers\n"
        f"model = transformers.AutoModelForCausalLM.from_pretrained({str(tmp_path)!r})\n"
        f"logits = model(torch.tensor([[{start}, 3, 1, 0, 2, 2]])).logits\n"
        "assert not any(name.startswith('separatrix') for name in sys.modules)\n"
        "print(int(logits[0, -1].argmax()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"


def test_a_checkpoint_is_that_of_the_weights(tmp_path: Path) -> None:
    built = construct(sx.parse_task("eva:n=8,V=8"))
    wrong = construct(sx.parse_task("eva:n=8,V=8"))
    with torch.no_grad():
        wrong.model.head.weight[3] *= -1
    write(wrong.model).save(tmp_path)
    tokens = inputs(built.task)
    found = asked(loaded(tmp_path), tokens, 8).argmax(-1).numpy()
    # whoever reads the checkpoint sees the weight that was turned
    assert not np.array_equal(found, built.task.answer(tokens))


@pytest.mark.parametrize("stock", STOCK)
@pytest.mark.parametrize("spec", TASKS)
def test_our_run_of_a_checkpoint_is_that_of_transformers(
    spec: str, stock: str, tmp_path: Path
) -> None:
    task = sx.parse_task(spec)
    checkpoint = stock_checkpoint(construct(task).model, stock)
    checkpoint.save(tmp_path)
    tokens = inputs(task, seed=5)[:30]
    ours = logits_at(checkpoint, torch.from_numpy(tokens))[:, 0]
    theirs = asked(loaded(tmp_path, "eager"), tokens, checkpoint.start)
    assert torch.allclose(ours, theirs, rtol=0, atol=1e-5)
    places = torch.tensor([[0, 1]]).expand(len(tokens), 2)
    some = logits_at(checkpoint, torch.from_numpy(tokens), places)
    assert torch.allclose(some[:, 1:], logits_at(checkpoint, torch.from_numpy(tokens[:, :2])))


@pytest.mark.parametrize("stock", STOCK)
def test_prompts_padded_on_the_left_are_written_on(stock: str, tmp_path: Path) -> None:
    """By `generate`, which numbers the places from attention_mask; more tokens than GPT-2 has
    places for.
    """
    task = sx.parse_task("eva:n=6,V=5")
    start = written(construct(task), stock, tmp_path)
    tokens = inputs(task)[:40]
    read = (
        torch.from_numpy(tokens)
        if start is None
        else F.pad(torch.from_numpy(tokens), (1, 0), value=start)
    )
    padded = F.pad(read, (3, 0), value=0)
    mask = F.pad(torch.ones_like(read), (3, 0), value=0)
    model = loaded(tmp_path)
    found = model.generate(
        padded, attention_mask=mask, max_new_tokens=1, do_sample=False, pad_token_id=0
    )
    assert np.array_equal(found[:, -1].numpy(), right(task, tokens))

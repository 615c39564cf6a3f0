"""What `construct` and `train` write, loaded by transformers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import separatrix as sx
from separatrix.core.errors import EvidenceError, SeparatrixError, SizeError
from separatrix.models.stored.trained import read_stored
from separatrix.proofs.arithmetic import arithmetic

transformers = pytest.importorskip("transformers")
TASKS = ("eva:n=5,V=9", "seqcomp:L=2,m=4,n_1=2", "twosum:n=8,M=16,form=query", "parity:n=8")


@pytest.fixture(autouse=True, scope="module")
def registered() -> None:
    import separatrix.models.hf  # noqa: F401  importing registers

    transformers.utils.logging.disable_progress_bar()


def load(folder: Path, **options: Any) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(folder, **options)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    sx.construct(sx.parse_task(TASKS[0])).save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("spec", TASKS)
def test_a_construction_is_loaded_bit_for_bit_and_again_after_a_round_trip(
    spec: str, tmp_path: Path
) -> None:
    task = sx.parse_task(spec)
    built = sx.construct(task)
    built.save(tmp_path / "a")
    model = load(tmp_path / "a")
    tokens = task.sample(200, np.random.default_rng(0)).tokens
    read = torch.from_numpy(tokens)
    logits = model(read, logits_to_keep=1).logits[:, 0]
    assert torch.equal(logits[:, : task.answers], built.model(read))
    assert np.array_equal(logits.argmax(-1).numpy(), task.answer(tokens))
    every = model(read).logits[..., : task.answers]
    assert torch.equal(every, built.model.every(read))
    model.save_pretrained(tmp_path / "b")
    again = load(tmp_path / "b")
    ours = {f"model.{name}": tensor for name, tensor in built.model.state_dict().items()}
    assert again.state_dict().keys() == ours.keys()
    assert all(torch.equal(again.state_dict()[name], tensor) for name, tensor in ours.items())
    assert torch.equal(again(read).logits, model(read).logits)


def test_the_description_alone_and_a_model_of_it(saved: Path, tmp_path: Path) -> None:
    config = transformers.AutoConfig.from_pretrained(saved)
    assert (config.model_type, config.architecture) == ("separatrix", "full @ head_dim=4, heads=1")
    assert (config.vocab_size, config.length) == (9, 6)
    config.save_pretrained(tmp_path / "only")
    again = transformers.AutoConfig.from_pretrained(tmp_path / "only")
    assert again.described() == config.described()
    assert transformers.AutoModelForCausalLM.from_config(again).num_parameters() > 0


def test_generation_answers_and_never_writes_what_is_no_answer(tmp_path: Path) -> None:
    task = sx.parse_task("twosum:n=4,M=8,form=query")
    sx.construct(task).save(tmp_path / "m")
    tokens = task.sample(50, np.random.default_rng(1)).tokens
    model = load(tmp_path / "m")
    written = model.generate(torch.from_numpy(tokens), max_new_tokens=1, do_sample=False)
    assert np.array_equal(written[:, -1].numpy(), task.answer(tokens))
    sampled = model.generate(torch.from_numpy(tokens), max_new_tokens=1, do_sample=True, top_k=0)
    assert set(sampled[:, -1].tolist()) <= {0, 1}


def test_a_chain_of_thought_is_written_token_by_token(tmp_path: Path) -> None:
    # a trained stack need not answer right, but what it writes is the argmax of what it reads
    task = sx.parse_task("seqcomp:L=2,m=2,n_1=2,thought=pairs")
    folder = train_one(tmp_path / "t", task.spec)
    model = load(folder)
    own = read_stored(folder).model()
    prompt = torch.from_numpy(task.sample(3, np.random.default_rng(2)).tokens)[:, :-2]
    written = model.generate(prompt, max_new_tokens=3, do_sample=False)
    read = prompt
    for _ in range(3):
        read = torch.cat([read, own(read).argmax(-1, keepdim=True)], 1)
    assert torch.equal(written, read)


def test_a_mask_and_a_prompt_that_is_too_long_are_refused(saved: Path) -> None:
    model = load(saved)
    tokens = torch.zeros(2, 6, dtype=torch.long)
    mask = torch.ones(2, 6)
    assert model(tokens, attention_mask=mask).logits.shape == (2, 6, 9)
    mask[0, 0] = 0
    with pytest.raises(SizeError, match="hides a token"):
        model(tokens, attention_mask=mask)
    with pytest.raises(SizeError, match=r"7 tokens.* from 1 to 6"):
        model(torch.zeros(1, 7, dtype=torch.long))


def test_the_loss_is_that_of_the_next_token(saved: Path) -> None:
    model = load(saved)
    tokens = torch.tensor([[3, 1, 4, 1, 5, 2]])
    labels = torch.tensor([[-100, -100, 4, -100, -100, -100]])
    found = model(tokens, labels=labels).loss
    logits = model(tokens).logits[0, 1]
    assert found.item() == pytest.approx((logits.logsumexp(0) - logits[4]).item(), rel=1e-6)


def edited(folder: Path, name: str, value: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))


def cut(folder: Path) -> None:
    (path,) = folder.glob("*.safetensors")
    path.write_bytes(path.read_bytes()[:-40])


def flipped(folder: Path) -> None:
    (path,) = folder.glob("*.safetensors")
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(bytes(data))


DAMAGED: dict[str, Callable[[Path], Any]] = {
    "weights cut": cut,
    "a bit of the weights": flipped,
    "another architecture": lambda f: edited(f, "architecture", "full @ head_dim=5, heads=1"),
    "no architecture": lambda f: edited(f, "architecture", "fall"),
    "another size": lambda f: edited(f, "answers", 8),
    "a size of another kind": lambda f: edited(f, "width", "wide"),
    "other weights": lambda f: edited(f, "transformers_weights", "b.safetensors"),
    "no weights": lambda f: next(f.glob("*.safetensors")).unlink(),
    "another number format": lambda f: edited(f, "dtype", "bfloat16"),
    "a field of transformers": lambda f: edited(f, "quantization_config", {"load_in_8bit": True}),
    "settings of generation": lambda f: (f / "generation_config.json").write_text(
        '{"suppress_tokens": [1]}'
    ),
    "an adapter": lambda f: (f / "adapter_config.json").write_text("{}"),
    "no record": lambda f: (f / "construction.json").write_text("{}"),
}


@pytest.mark.parametrize("how", DAMAGED)
def test_a_damaged_or_edited_folder_is_one_line(saved: Path, how: str) -> None:
    DAMAGED[how](saved)
    with pytest.raises(SeparatrixError) as caught:
        load(saved)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("change", ["less", "more", "shape", "cut"])
def test_without_a_record_all_weights_must_still_be_there(
    saved: Path, tmp_path: Path, change: str
) -> None:
    load(saved).save_pretrained(tmp_path / "plain")
    path = tmp_path / "plain" / "model.safetensors"
    tensors = load_file(path)
    if change == "less":
        del tensors["model.head.bias"]
    elif change == "more":
        tensors["model.head.other"] = torch.zeros(2)
    elif change == "shape":
        tensors["model.head.bias"] = torch.zeros(3)
    save_file(tensors, path, metadata={"format": "pt"})
    if change == "cut":
        path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(EvidenceError, match="weights") as caught:
        load(tmp_path / "plain")
    assert "\n" not in str(caught.value)


def train_one(out: Path, task: str) -> Path:
    run = sx.Run(
        architecture="gdn @ heads=1, head_dim=4", task=task, steps=2, batch=4, width=8, seed=0
    )
    sx.train(run).save(out)
    return out


@pytest.mark.parametrize("architecture", ["embedded", "none"])
def test_a_trained_folder_is_loaded_too(tmp_path: Path, architecture: str) -> None:
    run = sx.Run(
        architecture=f"gdn + full @ head_dim=4, heads=1, positions={architecture}",
        task="eva:n=4,V=4",
        steps=2,
        batch=4,
        width=8,
        seed=0,
    )
    found = sx.train(run)
    own = found.model
    folder = tmp_path / "t"
    found.save(folder)
    read = torch.from_numpy(sx.parse_task(run.task).sample(9, np.random.default_rng(3)).tokens)
    assert torch.equal(load(folder)(read).logits[:, -1], own.every(read)[:, -1])
    flipped(folder)
    with pytest.raises(SeparatrixError, match="changed or damaged"):
        load(folder)


def test_half_formats(saved: Path) -> None:
    with pytest.warns(UserWarning, match="bfloat16; .*float32$"):
        model = load(saved, dtype=torch.bfloat16)
    assert model.dtype == torch.bfloat16
    tokens = sx.parse_task(TASKS[0]).sample(100, np.random.default_rng(4)).tokens
    found = model(torch.from_numpy(tokens)).logits[:, -1].argmax(-1)
    # +-1 codes of 4 bits are exact in bf16
    assert np.array_equal(found.numpy(), sx.parse_task(TASKS[0]).answer(tokens))


def test_copies(saved: Path) -> None:
    shutil.copytree(saved, saved.parent / "moved")
    assert torch.equal(
        load(saved.parent / "moved").model.head.weight, load(saved).model.head.weight
    )


@pytest.mark.parametrize(
    ("name", "dtype"), [("bf16", torch.bfloat16), ("fp16", torch.float16), ("fp64", torch.float64)]
)
def test_what_is_proved_in_a_format_computes_in_it(
    name: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    task = sx.parse_task(TASKS[1])
    sx.construct(task, None, None, arithmetic(name)).save(tmp_path / "m")
    model = load(tmp_path / "m")
    assert model.dtype == dtype
    tokens = task.sample(100, np.random.default_rng(5)).tokens
    found = model(torch.from_numpy(tokens)).logits[:, -1].argmax(-1)
    assert np.array_equal(found.numpy(), task.answer(tokens))

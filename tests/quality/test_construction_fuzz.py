"""Weights of constructions, scaled and moved at random: what is derived from them is true of the
model, or nothing is.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from separatrix.constructions import construct
from separatrix.core.errors import SeparatrixError
from separatrix.models.model import Model
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.proofs.derivations.parts.derivation import adversarial
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task

CASES = [
    ("eva:n=9,V=5", "full @ heads=2, head_dim=6", "retrieval"),
    ("eva:n=9,V=5", "sparse(block=4, topk=1) @ heads=1, head_dim=6", "sparse-retrieval"),
    ("seqcomp:L=2,m=4,n_1=3", "full*3 @ heads=1, head_dim=8", "seqcomp"),
    ("seqcomp:L=1,m=5", "linear(feature=identity) + full @ heads=1, head_dim=4", "carried"),
    ("seqcomp:L=1,m=5", "linear + full @ heads=1, head_dim=4", "carried"),
    ("seqcomp:L=1,m=5", "gdn + full @ heads=1, head_dim=4", "carried"),
    ("twosum:n=4,M=9", "full @ heads=1, head_dim=3", "match2"),
    ("permutation:n=8,k=3", "deltaproduct @ heads=1, head_dim=6", "permutation"),
    ("parity:n=9", "kda(negative=true) @ heads=2, head_dim=2", "parity"),
]
TRIES = 100
TINY = torch.finfo(torch.float32).tiny


def moved(tensors: dict[str, Tensor], rng: np.random.Generator) -> dict[str, Tensor]:
    """One to four changes, and half of the time queries against keys, or values against outputs,
    scaled so that little is left of it in real numbers.
    """
    changed = {name: tensor.clone() for name, tensor in tensors.items()}
    names = [name for name, tensor in changed.items() if tensor.numel()]
    for _ in range(int(rng.integers(1, 5))):
        tensor = changed[names[int(rng.integers(len(names)))]]
        power = 2.0 ** float(rng.integers(-3, 4) if rng.random() < 0.6 else rng.integers(-60, 60))
        flat = tensor.view(-1)
        place = int(rng.integers(len(flat)))
        match int(rng.integers(5)):
            case 0:
                tensor.mul_(power)
            case 1:
                flat[place] *= power
            case 2:
                tensor.mul_(1 + float(rng.normal()) * 10.0 ** float(rng.integers(-7, 0)))
            case 3:
                noise = torch.from_numpy(rng.normal(size=tuple(tensor.shape))).float()
                tensor.add_(noise * 10.0 ** float(rng.integers(-9, -1)))
            case _:
                flat[place] = float(rng.choice([0.0, 1.0, -1.0, power, -power, 3.0, 0.1]))
    if rng.random() < 0.5:
        queries = [name for name in names if name.endswith("q.weight")]
        mixer = queries[int(rng.integers(len(queries)))].removesuffix("q.weight")
        power = 2.0 ** float(rng.integers(-40, 40))
        one, other = ("q", "k") if rng.random() < 0.5 else ("v", "o")
        changed[f"{mixer}{one}.weight"].mul_(power)
        changed[f"{mixer}{other}.weight"].mul_(1 / power)
    return changed


@pytest.mark.slow
@pytest.mark.parametrize(("text", "stack", "name"), CASES)
def test_what_is_derived_is_true(text: str, stack: str, name: str) -> None:
    task = parse_task(text)
    real = construct(task, Architecture.parse(stack), name).model
    rng = np.random.default_rng(13)
    derived = 0
    for _ in range(TRIES):
        tensors = moved(real.state_dict(), rng)
        sizes = [tensor.abs() for tensor in tensors.values()]
        if any(not ((size == 0) | (size >= TINY) & size.isfinite()).all() for size in sizes):
            continue
        model = Model(real.config)
        model.load_state_dict(tensors)
        model.requires_grad_(False)
        try:
            proof = DERIVATIONS[name].derive(task, model)
        except SeparatrixError:
            continue
        hard = adversarial(DERIVATIONS[name], task, 40, rng)
        tokens = np.concatenate([task.sample(60, rng).tokens, hard])
        with torch.inference_mode():
            logits = model(torch.from_numpy(tokens)).double().numpy()
        row = np.arange(len(tokens))
        answers = task.answer(tokens)
        right = logits[row, answers]
        logits[row, answers] = -np.inf
        assert np.isfinite(right).all()
        assert (right - logits.max(1)).min() >= float(proof.margin)
        derived += 1
    assert derived >= 0.1 * TRIES

"""L-SeqComp by one full layer that writes: every token that it writes is right, on every input of
small sizes and on random and adversarial ones of larger sizes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from support.construction_tools import every
from support.each import each
from support.thought_case import TINY, chain

from separatrix.checks.verify import verify, verify_path
from separatrix.constructions import Built, construct
from separatrix.core.errors import CheckFailed, SizeError
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import SeqComp, Thought, parse_task


def pairs(L: int, m: int, branching: tuple[int, ...]) -> Thought:
    return Thought(task=SeqComp(L=L, m=m, branching=branching), form="pairs")


def written(built: Built, prompts: np.ndarray) -> np.ndarray:
    """What the model writes by itself, token by token from its cache, the answer last."""
    task = built.task
    assert isinstance(task, Thought)
    model = built.model
    tokens = torch.from_numpy(prompts)
    cache = model.init_cache(len(prompts))
    logits = torch.empty(0)
    said = []
    with torch.inference_mode():
        for t, token in enumerate(tokens.unbind(1)):
            logits, cache = model.step(token, cache, t)
        for t in range(tokens.shape[1], task.length + 1):
            said.append(logits.argmax(-1))
            if t < task.length:
                logits, cache = model.step(said[-1], cache, t)
    return torch.stack(said, 1).numpy()


def wrong(built: Built, prompts: np.ndarray) -> list[list[int]]:
    assert isinstance(built.task, Thought)
    right = np.array([chain(built.task, row) for row in prompts.tolist()])
    return prompts[(written(built, prompts) != right).any(1)][:5].tolist()


@pytest.mark.parametrize(("L", "m", "branching"), TINY)
def test_every_input_is_thought_through(L: int, m: int, branching: tuple[int, ...]) -> None:
    built = construct(pairs(L, m, branching))
    assert built.record.name == "thought"
    assert (built.record.sizes["layers"], built.record.sizes["written"]) == (1, L)
    sizes = [m]
    for number in branching:
        sizes.append(sizes[-1] * number)
    ranges = [sizes[level] for level in reversed(range(L)) for _ in range(sizes[level])]
    assert not wrong(built, every([*ranges, m, int(np.prod(branching, dtype=int))]))


@pytest.mark.parametrize(
    ("L", "m", "branching"),
    [(2, 5, (3,)), (3, 3, (2, 3)), (4, 2, (1, 3, 2)), (8, 2, (1,) * 7), (3, 2, (9, 1))],
)
def test_random_inputs_of_odd_shapes(L: int, m: int, branching: tuple[int, ...]) -> None:
    built = construct(pairs(L, m, branching))
    prompts = pairs(L, m, branching).task.sample(200, np.random.default_rng(3)).tokens
    assert not wrong(built, prompts)


def test_adversarial_functions() -> None:
    """Constants, identities, reversals, and tables whose neighbours in address hold the
    complement.
    """
    built = construct(pairs(2, 16, (4,)))
    prompts = []
    for w in range(4):
        for z_0 in (0, 15, 6):
            for f in (np.arange(16), np.arange(16)[::-1], np.full(16, 15), np.zeros(16, int)):
                near = np.full(64, 63)
                near[w * 16 + f[z_0]] = 0
                for g in (np.arange(64), np.arange(64)[::-1], near, 63 - near):
                    prompts.append(np.concatenate([g, f, [z_0, w]]))
    assert not wrong(built, np.array(prompts))


@pytest.mark.slow
def test_it_thinks_at_4096_tokens(tmp_path: Path) -> None:
    task = parse_task("seqcomp:L=3,n=4096,thought=pairs")
    built = construct(task)
    built.save_weights(tmp_path)
    assert "token and answer" in verify(built.record, folder=tmp_path).checks[-1]


def test_the_room_that_its_docstring_counts() -> None:
    """Keys: bits of w_1 and w_2, of N_1 = 6 values, of 4 levels; values: bits of 18."""
    sizes = construct(pairs(3, 3, (2, 3))).record.sizes
    assert (sizes["head_dim"], sizes["value_dim"]) == (1 + 2 + 3 + 2, 5)


def test_the_gaps_that_its_docstring_derives() -> None:
    """c = 4 for 1 + 3 bits; nothing is held yet when z_0 is asked for, so that of an entry of z_2
    one bit of w may agree: z_0 leads by s^2 (2 c - 1).
    """
    layers = construct(pairs(2, 8, (2,))).record.proof["layers"]
    assert [entry["fetches"] for entry in layers] == ["z_0", "i_1", "i_2"]
    assert [entry["queries"] for entry in layers] == [2, 16, 16]
    assert [entry["score_gap"] for entry in layers] == [str(16 * (2 * 4 - 1)), "32", "32"]
    assert float(construct(pairs(2, 8, (2,))).record.proof["final_margin"]) > 1.99


@each(
    "text, stack, message",
    [
        ("seqcomp:L=2,m=8,n_1=2,thought=values", None, "take thought=pairs"),
        ("seqcomp-forward:L=2,m=8,n_1=2,thought=pairs", None, "of seqcomp are constructed"),
        ("seqcomp:L=2,m=8,n_1=2,thought=pairs", "gdn*3", "full layer"),
        ("seqcomp:L=2,m=8,n_1=2,thought=pairs", "full(head_dim=5)", "head_dim >= 6"),
    ],
)
def test_what_cannot_hold_it_is_refused(text: str, stack: str | None, message: str) -> None:
    with pytest.raises(SizeError, match=message):
        construct(parse_task(text), Architecture.parse(stack) if stack else None)


@pytest.mark.parametrize(
    ("name", "row", "column", "value"),
    [
        # a written token that holds another value, or another w
        ("embed.weight", -1, "held", 1.0),
        ("embed.weight", -1, "w_1", -1.0),
        # a place that asks for another level
        ("position.weight", -2, "asked", -1.0),
        ("position.weight", 0, "level", -1.0),
        # the answer is written as a pair
        ("position.weight", -1, "final", -1.0),
    ],
)
def test_an_edited_weight_is_refused(
    name: str, row: int, column: str, value: float, tmp_path: Path
) -> None:
    from separatrix.constructions.parts.built import built as recorded
    from separatrix.constructions.thought import spaces

    task = pairs(2, 4, (2,))
    model = construct(task).model
    assert isinstance(task.task, SeqComp)
    place = spaces(task.task)[column].start
    tensor = model.get_parameter(name)
    before = float(tensor[row, place])
    tensor[row, place] = value if before != value else -value
    with pytest.raises(SizeError, match="not proved"):
        recorded(task, model, name="thought")


def test_weights_that_write_one_wrong_token_are_refused(tmp_path: Path) -> None:
    """The proof is derived again, and so is what it is said to be about."""
    built = construct(pairs(2, 2, (2,)))
    path = built.save(tmp_path)
    assert verify_path(path)
    weights = tmp_path / built.record.weights
    data = bytearray(weights.read_bytes())
    data[-3] ^= 64
    weights.write_bytes(bytes(data))
    with pytest.raises(CheckFailed, match="the weights were changed"):
        verify_path(path)

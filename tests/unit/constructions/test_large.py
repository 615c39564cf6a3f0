"""Constructions at thousands of tokens, in float32, on the inputs most likely to be confused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from separatrix.constructions import construct
from separatrix.models.model import Model
from separatrix.tasks import SeqComp, TwoSum, parse_task
from separatrix.tasks.base.task import Tokens


@torch.inference_mode()
def answered(model: Model, tokens: Tokens, batch: int = 10) -> Tokens:
    parts = np.array_split(tokens, max(1, len(tokens) // batch))
    return np.concatenate([model(torch.from_numpy(part)).argmax(-1).numpy() for part in parts])


@pytest.mark.slow
def test_eva_tells_addresses_apart_that_differ_in_one_bit() -> None:
    """For every x: f is v at x and the complement of v (as far from it as can be) everywhere
    else, then the reverse; and constants.
    """
    task = parse_task("eva:n=4100,V=4096")  # 13 address bits, the highest used by 4 addresses only
    model = construct(task).model
    rng = np.random.default_rng(1)
    arguments = np.unique(
        [
            0,
            1,
            2,
            4095,
            4096,
            4097,
            4099,
            *(1 << np.arange(13)),
            *(4095 ^ (1 << np.arange(12))),
            *rng.integers(4100, size=40),
        ]
    )
    for value in (0, 4095, 0b101010101010):
        tokens = np.full((len(arguments), task.length), 4095 - value)
        tokens[np.arange(len(arguments)), arguments], tokens[:, -1] = value, arguments
        assert (answered(model, tokens) == value).all()
        tokens[:, :-1] = value
        assert (answered(model, tokens) == value).all()


@pytest.mark.slow
def test_match2_tells_a_match_from_its_neighbours() -> None:
    """Everything one step beside the match, with and without the match; the query's own match (x
    = 0 and x = M/2) counts for nothing.
    """
    task = parse_task("twosum:n=4096,M=5000")
    assert isinstance(task, TwoSum)
    model = construct(task).model
    M = task.M
    for x in (0, 1, 2, 1250, 2499, 2500, 2501, 3333, 4998, 4999):
        prompts = []
        expected = []
        for filler in (-x - 1, -x + 1, -x + M // 2):
            for places in ((), (0,), (4095,), (1, 2000, 4000), tuple(range(4096))):
                tokens = np.full(task.length, filler % M)
                tokens[list(places)], tokens[-1] = -x % M, x
                prompts.append(tokens)
                expected.append(int(bool(places)))
        assert (answered(model, np.array(prompts)) == expected).all()


@pytest.mark.slow
@pytest.mark.parametrize("M", [5000, 5001, 5754])
def test_match2_of_one_token_and_a_large_modulus(M: int) -> None:
    task = parse_task(f"twosum:n=1,M={M}")
    model = construct(task).model
    x = np.arange(M)
    for offset, expected in ((0, 1), (1, 0), (-1, 0), (M // 2, 0)):
        assert (answered(model, np.stack([(offset - x) % M, x], 1), batch=1000) == expected).all()


def test_seqcomp_on_constants_and_identities() -> None:
    task = SeqComp(L=3, m=37, branching=(3, 5))
    model = construct(task).model
    prompts = []
    for z_0, w in [(0, 0), (36, 14), (31, 7), (32, 8)]:
        for fill in ("first", "last", "identity", "reversal"):
            levels = []
            for level in (3, 2, 1):
                place = np.arange(task.entries(level))
                count = task.entries(level)
                levels.append(
                    {
                        "first": 0 * place,
                        "last": 0 * place + count - 1,
                        "identity": place,
                        "reversal": count - 1 - place,
                    }[fill]
                )
            prompts.append(np.concatenate([*levels, [z_0, w]]))
    tokens = np.array(prompts)
    assert (answered(model, tokens) == task.answer(tokens)).all()

"""MQAR: Zoology's parameters and law, filler that is no key, answers that levels bound."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.each import each

from separatrix.core.errors import SizeError
from separatrix.core.numbers.counts import Power
from separatrix.tasks import MQAR, NO_ANSWER, parse_task

LARGE = [MQAR(vocab_size=size, input_seq_len=64, num_kv_pairs=16) for size in (70_000, 1 << 32)]
SMALL = MQAR(vocab_size=12, input_seq_len=16, num_kv_pairs=2)
PROMPT = [2, 8, 4, 7, 0, 0, 4, 0, 0, 0, 0, 0, 2, 0, 0, 0]


def draw(task: MQAR, batch: int, seed: int = 0) -> tuple[Any, Any]:
    return task.sample(batch, np.random.default_rng(seed))


def test_the_table_of_the_module() -> None:
    """Zoology's example: key 4 has value 7, which is answer 1, and key 2 has value 8."""
    assert SMALL.answer(np.array([PROMPT])).tolist() == [[-1] * 6 + [1] + [-1] * 5 + [2] + [-1] * 3]


def test_sizes_by_hand() -> None:
    task = MQAR(vocab_size=8192, input_seq_len=512, num_kv_pairs=64)
    assert (task.first_value, task.answers, task.chance, task.prefix_length) == (
        4096,
        4096,
        Fraction(1, 4096),
        128,
    )
    assert task.prefix_classes() == Power(4096, 64)
    odd = MQAR(vocab_size=7, input_seq_len=4, num_kv_pairs=1)  # keys 1 and 2, values 3 to 6
    assert (odd.first_value, odd.answers) == (3, 4)


def test_power_a_is_a_number_however_it_is_written() -> None:
    tasks = [
        parse_task(f"mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4,power_a={text}")
        for text in ("1", "1.0", "1e0")
    ]
    assert len(set(tasks)) == 1
    assert parse_task(tasks[0].spec) == tasks[0]


@each(
    "change, said",
    [
        ({2: 2}, "a key is paired twice"),
        ({2: 0}, "a key holds 0"),
        ({2: 6}, "a key holds 6"),
        ({3: 5}, "a value holds 5"),
        ({8: 2}, "exactly once"),
        ({12: 0}, "exactly once"),
        ({12: 4}, "exactly once"),
        ({12: 0, 13: 2}, "even place"),
    ],
)
def test_what_is_no_instance(change: dict[int, int], said: str) -> None:
    prompt = list(PROMPT)
    for place, token in change.items():
        prompt[place] = token
    with pytest.raises(SizeError, match=said):
        SMALL.answer(np.array([PROMPT, prompt]))


@pytest.mark.parametrize("task", [SMALL, *LARGE], ids=str)
def test_filler_gives_no_key_another_value_and_asks_for_none(task: MQAR) -> None:
    tokens, targets = draw(task, 3_000)
    k = task.num_kv_pairs
    keys = tokens[:, : 2 * k : 2]
    rest = tokens[:, 2 * k :]
    asked = targets[:, 2 * k :] != NO_ANSWER
    assert (asked.sum(axis=1) == k).all()
    assert ((rest[:, :, None] == keys[:, None, :]).any(axis=2) == asked).all()
    assert (task.answer(tokens) == targets).all()


def test_filler_has_every_other_id_alike() -> None:
    """Of twelve ids two are keys of the prompt: filler takes each of the ten others with
    probability 1/10.
    """
    tokens, targets = draw(SMALL, 20_000)
    odd = tokens[:, 5::2]
    for token in (0, 3, 11):
        free = (tokens[:, :4:2] != token).all(axis=1)
        share = (odd[free] == token).mean()
        cells = odd[free].size
        assert abs(share - 0.1) < 5 * (0.09 / cells) ** 0.5
    assert (
        draw(MQAR(vocab_size=12, input_seq_len=16, num_kv_pairs=2, random_non_queries=0), 50)[0][
            :, 5::2
        ]
        == 0
    ).all()
    assert targets.shape == tokens.shape


@pytest.mark.parametrize("power_a", [0.01, 2.0])
def test_gaps_follow_the_power_law(power_a: float) -> None:
    """One pair, n = 22: the gap g of 0..9 has weight (g + 1)^(power_a - 1). Two pairs: drawn
    without replacement, the first with that law.
    """
    one = MQAR(vocab_size=12, input_seq_len=22, num_kv_pairs=1, power_a=power_a)
    gaps = (draw(one, 30_000)[1] != NO_ANSWER).argmax(axis=1) // 2 - 1
    weights = np.arange(1, 11.0) ** (power_a - 1)
    expected = 30_000 * weights / weights.sum()
    assert ((np.bincount(gaps, minlength=10) - expected) ** 2 / expected).sum() < 9 + 5 * 18**0.5
    two = MQAR(vocab_size=12, input_seq_len=12, num_kv_pairs=2, power_a=power_a)  # gaps 0..3
    law = np.arange(1, 5.0) ** (power_a - 1)
    law /= law.sum()
    held = (draw(two, 30_000)[1][:, 4::2] != NO_ANSWER).mean(axis=0)
    right = [
        law[g] + sum(law[h] * law[g] / (1 - law[h]) for h in range(4) if h != g) for g in range(4)
    ]
    assert np.abs(held - right).max() < 5 * (0.25 / 30_000) ** 0.5


def test_the_order_of_queries_says_nothing_about_the_order_of_pairs() -> None:
    """Which of the four pairs is asked for first: each alike, though the first place is far
    likelier to be taken than others.
    """
    task = MQAR(vocab_size=16, input_seq_len=40, num_kv_pairs=4)
    tokens, targets = draw(task, 20_000)
    first = (targets != NO_ANSWER).argmax(axis=1)
    pair = (tokens[:, :8:2] == tokens[np.arange(20_000), first][:, None]).argmax(axis=1)
    assert (
        np.abs(np.bincount(pair, minlength=4) / 20_000 - 0.25).max() < 5 * (0.1875 / 20_000) ** 0.5
    )


@pytest.mark.parametrize(
    ("shift", "chance"), [("zipf", Fraction(60, 137)), ("few", Fraction(1, 4))]
)
def test_shifts_of_values(shift: str, chance: Fraction) -> None:
    """Vocabulary 10: five values. H_5 = 137/60."""
    task = MQAR(vocab_size=10, input_seq_len=16, num_kv_pairs=4, shift=shift)
    tokens, targets = draw(task, 5_000)
    assert task.chance == chance
    assert (task.answer(tokens) == targets).all()
    due = targets[targets != NO_ANSWER]
    assert abs((due == 0).mean() - float(chance)) < 5 * (0.25 / 20_000) ** 0.5
    assert due.max() == (4 if shift == "zipf" else 3)
    assert (task.spec.endswith(f"shift={shift}"), parse_task(task.spec)) == (True, task)


def test_the_family_grows_in_pairs() -> None:
    family = MQAR(vocab_size=64, input_seq_len=32, num_kv_pairs=4).family()
    assert family.at(4) == MQAR(vocab_size=64, input_seq_len=32, num_kv_pairs=4)
    assert family.at(20).length == 80
    assert family.largest == 31
    counts = [family.at(k).prefix_classes().exact() for k in range(1, 32)]  # type: ignore[union-attr]
    assert counts == sorted(counts)


@each("power_a", [0, -1, 17, float("inf"), True, None, "0,01", 10**5000])
def test_bad_power_a(power_a: Any) -> None:
    with pytest.raises(SizeError, match="power_a is"):
        MQAR(vocab_size=12, input_seq_len=16, num_kv_pairs=2, power_a=power_a)

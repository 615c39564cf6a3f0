"""Packs: who trains with whom, and that an interrupted sweep finds its packs again."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from separatrix.core.errors import SizeError
from separatrix.models.stored.run import Run
from separatrix.training.packs import Pack, members_for, packed, remaining

RUNS = [
    Run(architecture="full", task=task, seed=seed, learning_rate=rate, width=32)
    for task in ("eva:n=4,V=4", "eva:n=8,V=4")
    for rate in (1e-3, 3e-3)
    for seed in range(5)
]
"""Two shapes of ten runs."""


def keys(packs: list[Pack]) -> list[list[str]]:
    return [list(pack.keys) for pack in packs]


def test_seeds_and_learning_rates_share_a_pack_and_tasks_do_not() -> None:
    packs = packed(RUNS, most=10)
    assert [list(pack.runs) for pack in packs] == [RUNS[:10], RUNS[10:]]


def test_a_group_is_shared_evenly() -> None:
    # ten in packs of four at most: three packs, none with two members only
    assert [len(pack.runs) for pack in packed(RUNS[:10], most=4)] == [3, 3, 4]


def test_no_process_stands_idle_where_packs_can_be_halved() -> None:
    assert [len(pack.runs) for pack in packed(RUNS, most=10, least=3)] == [5, 5, 10]
    assert len(packed(RUNS[:2], most=2, least=5)) == 2


def test_a_run_that_stands_twice_is_trained_once() -> None:
    assert keys(packed([*RUNS, *RUNS], most=10)) == keys(packed(RUNS, most=10))


def test_the_key_is_of_these_members_in_this_order() -> None:
    one, other = Pack(tuple(RUNS[:2])), Pack(tuple(reversed(RUNS[:2])))
    assert one.key == Pack(tuple(RUNS[:2])).key
    assert one.key == pickle.loads(pickle.dumps(one)).key
    assert len({one.key, other.key, Pack((RUNS[0],)).key}) == 3


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ((), "has no runs"),
        ((RUNS[0], RUNS[0]), "stands twice"),
        ((RUNS[0], RUNS[10]), "in more than seed"),
    ],
)
def test_what_is_no_pack_is_refused(runs: tuple[Run, ...], message: str) -> None:
    with pytest.raises(SizeError, match=message):
        Pack(runs)


def test_most_is_at_least_one() -> None:
    with pytest.raises(SizeError, match="at least 1"):
        packed(RUNS, most=0)


def test_small_models_train_together_and_large_ones_alone() -> None:
    short = "mqar:vocab_size=64,input_seq_len=16,num_kv_pairs=4"
    long = "mqar:vocab_size=256,input_seq_len=64,num_kv_pairs=8"
    small = Run(architecture="full", task=short, seed=0, width=32)
    large = Run(architecture="full", task=long, seed=0, width=64)
    assert members_for(small) > 1
    assert members_for(large) == 1
    assert members_for(large, "cuda:0") > 8
    # 32 logits of 4,096 for each prompt are more than 64 tokens of width 16
    wordy = "mqar:vocab_size=4096,input_seq_len=64,num_kv_pairs=16"
    narrow = Run(architecture="full", task=wordy, seed=0, width=16, batch=16)
    assert members_for(narrow) == 1
    assert (
        members_for(replace(narrow, task="mqar:vocab_size=64,input_seq_len=64,num_kv_pairs=16"))
        == 16
    )


@settings(deadline=None, max_examples=20)
@given(
    ended=st.sets(st.integers(0, len(RUNS) - 1)),
    begun=st.lists(st.integers(0, 4), unique=True),
    most=st.integers(1, 10),
    before=st.integers(1, 10),
)
def test_every_run_left_is_in_one_pack_and_begun_packs_stay(
    ended: set[int], begun: list[int], most: int, before: int
) -> None:
    all_packs = packed(RUNS, most=before)
    done = {RUNS[number].key for number in ended}
    kept = [all_packs[number] for number in begun if number < len(all_packs)]
    packs = remaining(RUNS, done, kept, most=most)
    going = [pack for pack in kept if not done.issuperset(pack.keys)]
    assert packs[: len(going)] == going
    left = [key for pack in packs for key in pack.keys if key not in done]
    assert sorted(left) == sorted({run.key for run in RUNS} - done)
    # what is trained anew is trained once
    assert done.isdisjoint(key for pack in packs[len(going) :] for key in pack.keys)


def test_packs_of_which_nothing_is_done_stay_whole() -> None:
    packs = packed(RUNS, most=5)
    ended = {packs[1].keys[0], packs[3].keys[2]}
    rest = [key for key in packs[3].keys if key not in ended]
    found = keys(remaining(RUNS, ended, [packs[1]], most=5))
    assert found == [*keys([packs[1], packs[0], packs[2]]), rest]

"""Which stacks of recurrences judge nested brackets, and what others lack."""

from __future__ import annotations

import pytest
from support.each import each

import separatrix as sx
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Dyck
from separatrix.theory import THEOREMS
from separatrix.theory.base import counted
from separatrix.theory.solves.states import most_counted

PLAIN = "linear + deltanet + gdn @ heads=1, feature=identity, normaliser=false"


def verdict(spec: str, n: int, k: int, D: int) -> sx.Verdict:
    return sx.judge(Architecture.parse(spec), Dyck(n=n, k=k, D=D))[0]


@each("k", [1, 2, 5, 256])
@each("D", [1, 3, 16])
def test_the_state_has_room_for_every_class(k: int, D: int) -> None:
    """With slots just enough, Theorem I's count of stacks fits into the bits of the state."""
    bits = max(1, (k - 1).bit_length())
    spec = f"{PLAIN}, head_dim={D}, value_dim={bits}"
    found = verdict(spec, 96, k, D)
    assert (found.status, found.theorem) == ("SOLVABLE", "brackets")
    assert (found.numbers["slots"], found.numbers["bits_of_a_kind"]) == (D, bits)
    assert counted(Dyck(n=96, k=k, D=D)).ceil_log2() <= Architecture.parse(spec).cache_bits(96)


def test_no_more_slots_are_needed_than_brackets_can_be_closed() -> None:
    assert verdict(f"{PLAIN}, head_dim=4, value_dim=1", 8, 2, 100).status == "SOLVABLE"
    assert verdict(f"{PLAIN}, head_dim=3, value_dim=1", 8, 2, 100).theorem == "none"


@each(
    "spec",
    [
        *("gdn*3", "linear + deltanet*2", "linear*3 @ feature=relu, normaliser=false"),
        *(f"{PLAIN}, conv=4", f"{PLAIN}, head_dim=3", f"{PLAIN}, bf16"),
        "deltanet + linear + gdn @ feature=identity, normaliser=false",
    ],
)
def test_an_open_verdict_says_what_it_takes(spec: str) -> None:
    found = verdict(spec, 96, 2, 6)
    assert found.status == "OPEN"
    assert "6 key dimensions" in found.statement


@pytest.mark.parametrize(("name", "digits"), [("bf16", 8), ("fp16", 11), ("fp32", 24)])
def test_counts_stay_within_what_a_format_holds(name: str, digits: int) -> None:
    most = most_counted(name)
    assert 4 * (most + 2) == 2**digits
    spec = f"{PLAIN}, {name}"
    theorem = THEOREMS["brackets"]
    stack = Architecture.parse(spec)
    assert theorem.judge(stack, Dyck(n=most, k=2, D=4)) is not None
    assert theorem.judge(stack, Dyck(n=most + 2, k=2, D=4)) is None

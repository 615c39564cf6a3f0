"""Theorem S on released models against theory.md, section 12: how many maps of five points each
layer multiplies, how many layers that takes, and where it ends.
"""

from __future__ import annotations

import pytest

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture.resolve import preset
from separatrix.tasks import Parity, Permutation
from separatrix.theory import judge, recheck
from separatrix.theory.solves.products import at_once, cost


def tracked(name: str, n: int) -> Verdict:
    verdict = judge(preset(name), Permutation(n=n, k=5))[0]
    recheck(verdict)
    return verdict


def factors(verdict: Verdict) -> list[int]:
    return [verdict.numbers[f"maps_{i}"] for i in range(1, verdict.numbers["layers"] + 1)]


@pytest.mark.parametrize(
    ("name", "n", "maps"),
    [
        ("llama-3.1-8b", 131_072, [4] * 9),
        # 33^4 = 1,185,921; places are counted up to 2^20
        ("jamba-1.5-mini", 1_048_576, [33] * 4),
        ("granite-4.0-h-small", 131_072, [33] * 4),
        ("qwen3-next-80b", 262_144, [17] * 5),
        ("qwen3.5-27b", 262_144, [25] * 4),
        ("qwen3.5-35b-a3b", 262_144, [17] * 5),
        # windows of 128 read twice, and then are MLPs more for the full layers
        ("gpt-oss-20b", 131_072, [4, 4, 4, 12, 12, 12, 12]),
    ],
)
def test_layers_that_follow_five_things_at_every_prefix(name: str, n: int, maps: list[int]) -> None:
    verdict = tracked(name, n)
    assert verdict.status == "SOLVABLE"
    assert factors(verdict) == maps
    assert verdict.numbers["every_prefix"] == 1


@pytest.mark.parametrize(
    ("name", "n", "maps", "letters"),
    [
        # rotations no longer leave room for a start token, and still tell offsets
        ("llama-3.1-8b", 262_144, [4] * 10, 4**10 - 1),
        # a norm of queries and keys, and no dimension that is not turned
        ("qwen3-8b", 131_072, [4] * 9, 4**9 - 1),
        # half of 21,504 units make four at once in windows of 1,024: 4^3 (1 + 1023 // 64)
        ("gemma-3-27b", 1_023, [4, 4, 4, 16], 1_023),
        # fewer at once leave the last one more: 3^6 (1 + 1023 // 729)
        ("gemma-3-27b", 1_457, [3] * 6 + [2], 1_457),
    ],
)
def test_with_weights_for_one_length(name: str, n: int, maps: list[int], letters: int) -> None:
    verdict = tracked(name, n)
    assert verdict.status == "SOLVABLE"
    assert factors(verdict) == maps
    assert (verdict.numbers["every_prefix"], verdict.numbers["letters"]) == (0, letters)


@pytest.mark.parametrize(
    ("name", "n", "said"),
    [
        ("gemma-3-27b", 1_458, ("multiply 1,457 letters", "0.0042", "0.0704")),
        ("llama-3.1-8b", 1_048_576, ("0.1623", "0.1936")),
        ("gemma-2-9b", 8_192, ("capped",)),
    ],
)
def test_where_it_ends_and_why(name: str, n: int, said: tuple[str, ...]) -> None:
    verdict = tracked(name, n)
    assert (verdict.status, verdict.theorem) == ("OPEN", "none")
    assert all(text in verdict.statement for text in said)


def test_widths_of_an_mlp() -> None:
    """The table: five points, k maps; 14,336 units multiply five maps in fp32 and four in bf16."""
    assert [cost(5, k, "fp32") for k in (3, 4, 5)] == [305, 1_555, 7_805]
    assert [cost(5, k, "bf16") for k in (2, 3, 4, 5)] == [50, 305, 3_125, 15_625]
    assert at_once(5, 14_336, 1, "fp32") == 5
    assert at_once(5, 14_336, 1, "bf16") == 4
    # two MLPs of 11,520: 4 first made of 3, since 4 * 305 <= 11,520 < 4 * 3,125
    assert at_once(5, 11_520, 2, "bf16") == 12


def test_widths_that_files_state_and_those_that_are_assumed() -> None:
    def width(name: str) -> tuple[int, int]:
        numbers = tracked(name, 1_000).numbers
        return numbers["width"], numbers["width_stated"]

    assert width("llama-3.1-8b") == (14_336, 1)
    assert width("jamba-1.5-mini") == (14_336, 1)
    # eight of the ten experts of 512, and a shared one of 512
    assert width("qwen3-next-80b") == (9 * 512, 1)
    # four experts of 2,880
    assert width("gpt-oss-20b") == (11_520, 1)
    # the eight experts carry a factor that is no power of two; the shared one counts
    assert width("deepseek-v3") == (2_048, 1)
    # eight of the ten experts of 768, and a shared one of 1,536
    assert width("granite-4.0-h-small") == (8 * 768 + 1_536, 1)
    # four of the six experts of 768
    assert width("smallthinker-21b") == (4 * 768, 1)
    # the file that the preset holds states none: four times 32 heads of 128
    assert width("bamba-9b-fp8") == (4 * 32 * 128, 0)


def test_parity_by_one_layer_that_counts() -> None:
    """Where rotations do not serve; 1,024 value channels in bf16 end at 262,144 bits."""
    for name, n in (("gemma-3-27b", 131_072), ("llama-3.1-8b", 262_144), ("gemma-2-9b", 8_192)):
        verdict = judge(preset(name), Parity(n=n))[0]
        recheck(verdict)
        assert (verdict.status, verdict.theorem) == ("SOLVABLE", "S")
        assert any("divide once" in said for said in verdict.assumptions)
    assert judge(preset("llama-3.1-8b"), Parity(n=262_145))[0].numbers.get("channels") is None

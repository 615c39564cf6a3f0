"""The ratchet: each room has a budget of lines, today's count, which a change may lower only.

What it is to come down to is beside it. Raising a number needs a sentence in the change that says
what it buys.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from contract.test_floors import FLOOR, ROOT

BUDGETS: dict[str, tuple[int, int]] = {
    "core": (3_939, 2_600),
    "stacks": (9_184, 5_600),
    "tasks": (11_830, 8_600),
    "theory": (8_271, 6_000),
    "protocols": (921, 921),
    "cards": (3_560, 3_560),
    "mixers": (8_837, 7_200),
    "models": (3_363, 2_000),
    "constructions": (4_649, 4_000),
    "proofs": (9_420, 6_200),
    "checks": (2_655, 2_600),
    "training": (5_271, 3_800),
    "findings": (1_921, 1_800),
    "cli": (7_301, 4_000),
}
"""Room -> (lines at most, what they are to come down to)."""
COUNTED = {".py", ".md", ".txt", ".j2", ".html", ".js", ".mjs", ".ts", ".css", ".toml"}
BY_HAND = {"mechanisms.json"}
"""Sentences in files of their own and tables written by hand count; recorded results, sizes of
released models and generated data do not.
"""


def lines(root: Path) -> dict[str, int]:
    """Room -> lines of its files. Empty ones count."""
    found = dict.fromkeys(BUDGETS, 0)
    for path in root.rglob("*"):
        ours = path.suffix in COUNTED or path.name in BY_HAND
        if ours and len(path.relative_to(root).parts) > 1:
            room = path.relative_to(root).parts[0]
            found[room] = found.get(room, 0) + len(path.read_text("utf-8").splitlines())
    return found


def over(found: dict[str, int]) -> list[str]:
    """Which rooms are over their budget, by how much, and what to do."""
    said = []
    for room, count in sorted(found.items()):
        budget, aim = BUDGETS.get(room, (0, 0))
        if count > budget:
            said.append(
                f"{room}: {count:,} lines, {count - budget:,} over its budget of {budget:,} (aim"
                f" {aim:,}); take as many out of this room, or raise BUDGETS here and say in the"
                " change what that buys"
            )
    return said


def test_every_room_has_a_budget() -> None:
    assert set(BUDGETS) == set(FLOOR) - {"separatrix", "__main__"}
    assert all(aim <= budget for budget, aim in BUDGETS.values())


def test_no_room_is_over_its_budget() -> None:
    assert over(lines(ROOT)) == []


def test_a_budget_is_no_more_than_what_is_there() -> None:
    """A room that has shrunk keeps nothing in hand: lower its number."""
    found = lines(ROOT)
    assert [room for room, (budget, _) in BUDGETS.items() if found[room] < 0.98 * budget] == []


@pytest.mark.parametrize("name", ["a.py", "a.md", "b/page.js"])
def test_a_budget_exceeded_is_said(tmp_path: Path, name: str) -> None:
    budget, aim = BUDGETS["protocols"]
    path = tmp_path / "protocols" / name
    path.parent.mkdir(parents=True)
    path.write_text("\n" * (budget + 3))
    (tmp_path / "protocols" / "recorded.json").write_text("\n" * 99)
    (said,) = over(lines(tmp_path))
    assert said.startswith(f"protocols: {budget + 3:,} lines, 3 over")
    assert f"aim {aim:,}" in said


def test_a_room_without_a_budget_is_said(tmp_path: Path) -> None:
    (tmp_path / "attic").mkdir()
    (tmp_path / "attic" / "a.py").write_text("1\n")
    assert over(lines(tmp_path))[0].startswith("attic: 1 lines")

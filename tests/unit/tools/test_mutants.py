"""Changes are known by the bodies of their functions, wherever these stand."""

from __future__ import annotations

from pathlib import Path

import mutants

SOURCE = '''
def size(n):
    """How large."""
    from separatrix.core.numbers.counts import Power
    if n < 3:
        return n + 1
    return max(n - 2, 7)

class Box:
    side = 4 * 5

    def area(self):
        return self.side * self.side
'''


def _tree(root: Path, file: str, text: str) -> Path:
    path = root / "src" / "separatrix" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return root


def _keys(root: Path) -> list[str]:
    return [mutant.key for mutant in mutants.every_mutant(root)]


def test_a_moved_file_loses_none(tmp_path: Path) -> None:
    here = _tree(tmp_path / "a", "stacks/sizes.py", SOURCE)
    moved = SOURCE.replace("separatrix.core.numbers.counts", "separatrix.core.numbers.many.counts")
    moved = "import math\n\n\n" + moved.replace("How large.", "Its size, in tokens.")
    there = _tree(tmp_path / "b", "core/numbers/sizes.py", moved)
    assert len(_keys(here)) > 10
    assert _keys(here) == _keys(there)
    old, new = (
        mutants.chosen(mutants.every_mutant(root), 0, {room: 3})
        for root, room in ((here, "stacks"), (there, "core"))
    )
    assert [one.key for one in old] == [one.key for one in new]
    assert {one.line + 3 for one in old} == {one.line for one in new}


def test_a_changed_function_loses_its_own_changes_alone(tmp_path: Path) -> None:
    here = _tree(tmp_path / "a", "stacks/sizes.py", SOURCE)
    there = _tree(tmp_path / "b", "stacks/sizes.py", SOURCE.replace("n - 2", "n - 3"))
    lost = set(_keys(here)) - set(_keys(there))
    assert lost == {key for key in _keys(here) if key.startswith("size ")}


def test_equal_functions_count_once(tmp_path: Path) -> None:
    here = _tree(tmp_path / "a", "stacks/sizes.py", SOURCE)
    before = _keys(here)
    _tree(here, "tasks/sizes.py", SOURCE)
    assert _keys(here) == before


def test_rooms() -> None:
    assert mutants.room_of("src/separatrix/proofs/derivations/parts/stream.py") == "proofs"
    assert mutants.room_of("src/separatrix/__main__.py") == "cli"


def test_every_source_has_a_room() -> None:
    files = (mutants.ROOT / "src" / "separatrix").rglob("*.py")
    rooms = {mutants.room_of(path.relative_to(mutants.ROOT).as_posix()) for path in files}
    assert rooms == set(mutants.SHARES)


def test_rates_stand_by_room() -> None:
    results = [
        {"file": "src/separatrix/training/sweeps/store.py", "caught_by": "a test"},
        {"file": "src/separatrix/training/engine.py", "caught_by": ""},
        {"file": "src/separatrix/theory/judge.py", "caught_by": "a test"},
    ]
    assert mutants.report([results, results[2:]]).splitlines()[2:] == [
        "| theory | 1 of 1 | 1 of 1 |",
        "| training | 1 of 2 | |",
        "| together | 2 of 3 | 1 of 1 |",
    ]

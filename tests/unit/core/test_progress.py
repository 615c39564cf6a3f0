"""Progress bars: visible at 80 columns wherever a command may take its time, silent where stderr is
no terminal or JSON is wanted.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest

from separatrix.cli.main import run
from separatrix.core.progress import bar, seconds_of, shortened, told

COLUMNS = 80
_CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def attached(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Stderr as a terminal of 80 columns. No fixture: pytest sets its own stderr after them."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.setenv("TERM", "xterm")
    return stream


def seen(terminal: Terminal) -> list[str]:
    """The lines that were drawn, without the codes that move and colour."""
    text = _CODE.sub("", terminal.getvalue()).replace("\r", "\n")
    return [line.rstrip() for line in text.split("\n") if line.strip()]


def check(terminal: Terminal, title: str) -> None:
    drawn = seen(terminal)
    assert any(line.startswith(title) for line in drawn), drawn
    assert any(re.search(r"[━╺╸]{5}", line) for line in drawn), drawn
    assert max(map(len, drawn)) <= COLUMNS
    assert all(line.startswith((title, "Ctrl-C")) for line in drawn), drawn  # none goes on below


COMMANDS = {
    "searching": "refute 'linear @ heads=1, head_dim=2, p3' --task eva:n=8 --out {}",
    "checking shortconv": "check-mechanism shortconv",
    "exporting eva:n=8,V=8": "task eva:n=8,V=8 export --format jsonl --out {} --rows train=8",
    "auditing eva:n=6,V=6": "task eva:n=6,V=6 audit --number 100",
    "constructing eva:n=4,V=4": "construct eva:n=4 --out {}",
    "judging layouts": "design --task eva:V=64 --context 1k --cache 1MiB --layers 2 --set heads=1",
}


def words(command: str, folder: Path) -> list[str]:
    import shlex

    return shlex.split(command.format(folder / "out"))


@pytest.mark.parametrize(
    ("title", "command"),
    [
        pytest.param(
            title,
            command,
            id=title,
            marks=[pytest.mark.slow] if command.startswith("check-mechanism") else [],
        )
        for title, command in COMMANDS.items()
    ],
)
def test_a_command_that_takes_its_time_shows_a_bar(
    title: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = attached(monkeypatch)
    monkeypatch.chdir(tmp_path)
    assert run(words(command, tmp_path)) == 0
    check(terminal, title)
    terminal.seek(0)
    terminal.truncate()
    (tmp_path / "json").mkdir()
    assert run([*words(command, tmp_path / "json"), "--json"]) == 0
    assert terminal.getvalue() == ""


def test_long_titles_and_counts_leave_room(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = attached(monkeypatch)
    with bar("auditing composition-of-a-very-long-name:n=1", unit=" rows") as advance:
        advance(1_234_567, 12_345_678)
    check(terminal, "auditing composition-...")
    assert any("1,234,567/12,345,678 rows" in line for line in seen(terminal))
    assert shortened("short") == "short"


def test_what_is_told_beside_a_bar_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = attached(monkeypatch)
    with told("train", hint="Ctrl-C saves") as say:
        words = ("300/1,000,000 steps", "loss 12.345, 100.0 %", "", "123 steps/s", "1:02:03 left")
        say(300.0, 1e6, words)
    check(terminal, "train")
    assert any(
        "300/1,000,000 steps  loss" in line and line.endswith("left") for line in seen(terminal)
    )
    assert "Ctrl-C saves" in seen(terminal)


def test_without_a_terminal_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with told("train") as say:
        for passed in (1.0, 19.0, 21.0, 22.0):
            now[0] = 100 + passed
            say(passed, 30.0, ("", f"{passed:g} of 30"))
    with told("train", shown=False) as say:
        say(30.0, 30.0, ("nothing",))
    assert capsys.readouterr() == ("", "train: 21 of 30\n")


def test_no_terminal_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with bar("work") as advance:
        advance(1, 2)
    assert capsys.readouterr() == ("", "")


def test_a_budget_is_told_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    said: list[tuple[int, int]] = []
    tell = seconds_of(2.5, lambda done, total: said.append((done, total)))
    for passed in (0.0, 1.9, 2.1, 60.0):
        now[0] = 100 + passed
        tell(7, 1 << 20)
    assert said == [(0, 2), (1, 2), (2, 2), (2, 2)]

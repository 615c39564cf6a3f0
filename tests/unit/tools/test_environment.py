"""tools/environment.py on a small package with a build backend of its own: no network, no cache.
What a first set-up, a second, a changed, a failed, an interrupted and a crowded one do.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.interrupts import heeds_interrupts
from support.waiting import SAFETY, until

SCRIPT = Path(__file__).resolve().parents[3] / "tools" / "environment.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="belongs to a checkout")

PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "small"
version = "1"

[project.optional-dependencies]
test = ["missing-from-every-index==1"]
"""
BACKEND = '''
"""An editable wheel by hand."""
import os, pathlib, time, zipfile

def build_editable(directory, config_settings=None, metadata_directory=None):
    here = pathlib.Path(__file__).parent
    if (here / "slow").exists():
        (here / "building").touch()
        time.sleep(60)
    name = "small-1-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as wheel:
        wheel.writestr("small.pth", str(here))
        wheel.writestr("small_data.txt", "whole")
        about = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
        wheel.writestr("small-1.dist-info/WHEEL", about)
        extras = "Provides-Extra: test\\n"
        needs = 'Requires-Dist: missing-from-every-index==1; extra == "test"\\n'
        head = "Metadata-Version: 2.1\\nName: small\\nVersion: 1\\n"
        wheel.writestr("small-1.dist-info/METADATA", head + extras + needs)
        record = "small.pth,,\\nsmall_data.txt,,5\\n"
        for member in ("WHEEL", "METADATA", "RECORD"):
            record += f"small-1.dist-info/{member},,\\n"
        wheel.writestr("small-1.dist-info/RECORD", record)
    return name
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder like a checkout, whose package needs nothing and whose build tools are none."""
    root = tmp_path / "checkout"
    (root / "tools").mkdir(parents=True)
    script = SCRIPT.read_text().replace('BUILD = ("hatchling", "editables")', "BUILD = ('pip',)")
    assert "BUILD = ('pip',)" in script
    (root / "tools" / "environment.py").write_text(script)
    (root / "pyproject.toml").write_text(PROJECT)
    (root / "constraints.txt").write_text("")
    (root / "backend.py").write_text(BACKEND)
    return root


def command(root: Path, need: str = "run") -> subprocess.Popen[str]:
    nowhere = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(root),
        "PIP_NO_CACHE_DIR": "1",
        "HOME": str(root.parent),
        "PIP_CONFIG_FILE": os.devnull,
    }
    return subprocess.Popen(
        [sys.executable, "tools/environment.py", need],
        cwd=root,
        env=os.environ | nowhere,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heeds_interrupts,
    )


def bring(root: Path, need: str = "run") -> tuple[int, str, str]:
    process = command(root, need)
    out, err = process.communicate(timeout=SAFETY)
    return process.returncode, out, err


def met(root: Path) -> list[str]:
    return json.loads((root / ".venv" / ".needs").read_text())["met"]


def packages(root: Path) -> Path:
    (found,) = (root / ".venv" / "lib").glob("python*/site-packages")
    return found


SETTING_UP = "setting up .venv for `make reproduce` (once; it can take minutes)\n"
ANEW = "making .venv anew: it is unfinished, or another Python's\n"


@pytest.mark.slow
def test_once_and_again_only_after_a_change(project: Path) -> None:
    assert bring(project) == (0, SETTING_UP, "")
    assert met(project) == ["run"]
    stamp = (project / ".venv" / ".needs").stat().st_mtime_ns
    assert bring(project) == (0, "", "")
    assert (project / ".venv" / ".needs").stat().st_mtime_ns == stamp
    (project / "constraints.txt").write_text("numpy==1\n")
    assert bring(project) == (0, SETTING_UP, "")
    (project / "pyproject.toml").write_text(PROJECT + "\n")
    assert bring(project) == (0, SETTING_UP, "")


@pytest.mark.slow
def test_a_failure_says_why_and_leaves_no_stamp_and_what_worked_still_works(project: Path) -> None:
    assert bring(project)[0] == 0
    code, out, err = bring(project, "test")
    assert code == 1
    assert out.count("\n") == 1
    assert "make test" in out
    assert "missing-from-every-index" in err  # pip's own reason
    assert err.endswith("command starts again.\n")
    assert "Traceback" not in err
    assert not (project / ".venv" / ".needs").exists()
    assert bring(project) == (0, SETTING_UP, "")  # on top of what is there, and whole


@pytest.mark.slow
def test_what_an_interrupted_set_up_left_is_not_taken_for_good(project: Path) -> None:
    assert bring(project)[0] == 0
    (project / ".venv" / ".needs").unlink()
    (packages(project) / "small_data.txt").write_text("cut")
    code, out, _ = bring(project)
    assert (code, out) == (0, ANEW + SETTING_UP)
    assert (packages(project) / "small_data.txt").read_text() == "whole"
    (project / ".venv" / ".needs").unlink()
    shutil.rmtree(packages(project) / "pip")
    assert bring(project)[:2] == (0, ANEW + SETTING_UP)


@pytest.mark.slow
def test_an_environment_of_another_place_or_half_made_is_made_anew(project: Path) -> None:
    (project / ".venv" / "bin").mkdir(parents=True)
    assert bring(project)[:2] == (0, ANEW + SETTING_UP)
    moved = project.with_name("moved")
    project.rename(moved)
    assert bring(moved)[:2] == (0, ANEW + SETTING_UP)


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_set_up_starts_again(project: Path, sent: signal.Signals) -> None:
    (project / "slow").touch()
    process = command(project)
    wait(project / "building")
    os.killpg(process.pid, sent)
    _, err = process.communicate(timeout=SAFETY)
    assert process.returncode == (130 if sent == signal.SIGINT else -9)
    assert sent == signal.SIGKILL or err.endswith("command starts again\n")
    assert "in bring" not in err
    assert not (project / ".venv" / ".needs").exists()
    (project / "slow").unlink()
    assert bring(project)[0] == 0
    assert met(project) == ["run"]


@pytest.mark.slow
def test_two_at_once(project: Path) -> None:
    (project / "slow").touch()
    first = command(project)
    wait(project / "building")
    (project / "slow").unlink()
    second = command(project)
    assert second.stdout is not None
    assert second.stdout.readline().startswith("waiting")
    os.killpg(first.pid, signal.SIGKILL)  # the lock goes with its process
    first.communicate()
    out, err = second.communicate(timeout=SAFETY)
    assert (second.returncode, out, err) == (0, SETTING_UP, "")


@pytest.mark.slow
def test_a_need_includes_those_before_it_and_a_damaged_file_or_a_lost_python_is_repaired(
    project: Path,
) -> None:
    (project / "pyproject.toml").write_text(PROJECT.replace('"missing-from-every-index==1"', ""))
    (project / "backend.py").write_text(
        BACKEND.replace(
            "needs = 'Requires-Dist: missing-from-every-index==1; extra == \"test\"\\n'",
            "needs = ''",
        )
    )
    assert "needs = ''" in (project / "backend.py").read_text()
    code, out, err = bring(project, "test")
    assert (code, out.count("\n"), err) == (0, 1, "")
    assert bring(project) == (0, "", "")
    for damaged in ("[]", "null", '{"met": 5}', '{"inputs": 1}', "{"):
        (project / ".venv" / ".needs").write_text(damaged)
        assert bring(project) == (0, SETTING_UP, "")
    for python in (project / ".venv" / "bin").glob("python*"):
        python.unlink()
        python.symlink_to("gone")
    assert bring(project)[:2] == (0, ANEW + SETTING_UP)


@pytest.mark.slow
def test_an_ended_set_up_ends_pip_and_settings_that_lead_elsewhere_are_ignored(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "slow").touch()
    process = command(project)
    wait(project / "building")
    process.terminate()  # this process alone, not its group
    process.communicate(timeout=SAFETY)
    assert process.returncode == 143
    (project / "slow").unlink()
    for name, value in {
        "PIP_DRY_RUN": "1",
        "PIP_PREFIX": str(project / "x"),
        "PYTHONPATH": str(project),
        "PIP_USER": "1",
    }.items():
        monkeypatch.setenv(name, value)
    assert bring(project)[0] == 0
    assert (packages(project) / "small_data.txt").exists()
    assert not (project / "x").exists()


@pytest.mark.parametrize("link", [True, False])
def test_something_else_called_venv(project: Path, link: bool) -> None:
    venv = project / ".venv"
    venv.symlink_to("nowhere") if link else venv.write_text("")
    code, out, err = bring(project)
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert f"{venv} is no folder" in err


def wait(file: Path) -> None:
    until(file.exists)


def test_an_unknown_need(project: Path) -> None:
    assert bring(project, "coffee") == (
        2,
        "",
        "usage: python3 tools/environment.py run|test|peers|lint|docs\n",
    )
    assert not (project / ".venv").exists()

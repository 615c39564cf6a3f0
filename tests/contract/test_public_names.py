"""What `import separatrix` offers: every name is there, listed once, and loads lazily."""

from __future__ import annotations

import subprocess
import sys

import pytest

import separatrix


def test_lists_agree() -> None:
    assert list(separatrix._HOMES) == separatrix.__all__
    assert set(separatrix.__all__) <= set(dir(separatrix))


PACKAGES = ("audit", "export", "refute", "verify")
"""Packages that bear the name of a function: importing one of them must not hide the function."""


@pytest.mark.parametrize("name", separatrix.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(separatrix, name) is not None


def test_a_package_does_not_hide_the_function_of_its_name() -> None:
    assert all(separatrix._HOMES[name] == f"separatrix.{name}" for name in PACKAGES)
    program = "import separatrix, sys\n" + "".join(f"import separatrix.{name}\n" for name in PACKAGES)
    program += "import separatrix.tasks\n" + f"sys.exit(not all(callable(getattr(separatrix, name)) for name in {PACKAGES}))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'judgement'"):
        separatrix.judgement  # noqa: B018


def test_importing_is_silent_and_without_torch_or_numpy() -> None:
    program = "import separatrix, sys; sys.exit(bool({'torch', 'numpy', 'flint'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

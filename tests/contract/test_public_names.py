"""What `import separatrix` offers: every name is there, listed once, and loads lazily."""

from __future__ import annotations

import importlib
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


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_does_not_hide_the_function_of_its_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    home = f"separatrix.{name}"
    assert separatrix._HOMES[name] == home
    monkeypatch.delitem(sys.modules, home, raising=False)
    monkeypatch.delattr(separatrix, name, raising=False)
    assert vars(separatrix).get(name) is None
    importlib.import_module(home)  # as if for the first time: Python makes the package an attribute of separatrix
    assert callable(getattr(separatrix, name))


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'judgement'"):
        separatrix.judgement  # noqa: B018


def test_importing_is_silent_and_without_torch_or_numpy() -> None:
    program = "import separatrix, sys; sys.exit(bool({'torch', 'numpy', 'flint'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

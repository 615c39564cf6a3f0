"""What `import separatrix` offers: every name is there, listed once, and loads lazily."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

import separatrix


def test_lists_agree() -> None:
    assert list(separatrix._HOMES) == separatrix.__all__
    assert dir(separatrix) == sorted([*separatrix.__all__, "__version__"])


@pytest.mark.parametrize("name", separatrix.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(separatrix, name) is not None


def test_no_module_hides_a_function_of_its_name() -> None:
    """Python makes an imported module an attribute of the package, over a name that loads
    lazily.
    """
    modules = {module.name for module in pkgutil.iter_modules(separatrix.__path__)}
    assert modules & set(separatrix.__all__) == {"tasks"}


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="'judgement'"):
        separatrix.judgement  # noqa: B018


def test_importing_is_silent_and_without_torch_or_numpy() -> None:
    program = (
        "import separatrix, sys; sys.exit(bool({'torch', 'numpy', 'flint'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

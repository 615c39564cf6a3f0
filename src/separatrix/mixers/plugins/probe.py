"""A user's modules and classes by name (`my_module:MyMixer`, `folder/my_module.py:MyMixer`);
whether a state is one, and where an error comes from.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import jaxtyping
import torch
from torch import Tensor

from separatrix.core.errors import SizeError, SpecError, UnknownNameError

_LIBRARIES = (
    str(Path(__file__).resolve().parents[3]),
    *(str(Path(one.__file__ or "").resolve().parent) for one in (torch, jaxtyping, importlib)),
)


def check_state(name: str, state: Any, batch: int, method: str) -> None:
    """Raises SizeError unless `state` is a dict of floating-point tensors whose first axis is
    the batch.
    """
    if not isinstance(state, dict) or not all(isinstance(key, str) for key in state):
        raise SizeError(
            f"{name}: {method} returned {kind(state)} as its state; a state is a dict of tensors by"
            " name"
        )
    for key, tensor in state.items():
        where = f"{name}: state['{key}'] of {method}"
        if not isinstance(tensor, Tensor):
            raise SizeError(f"{where} is {kind(tensor)}; it must be a tensor")
        if not tensor.is_floating_point():
            raise SizeError(
                f"{where} is {tensor.dtype}; a state holds real floating-point numbers (step is"
                " given the number of tokens, t)"
            )
        if tensor.dim() == 0 or len(tensor) != batch:
            raise SizeError(
                f"{where} has shape {tuple(tensor.shape)}; its first axis must be the batch, here"
                f" {batch}"
            )


def stepped(module: Any, name: str, x: Tensor, state: Any, t: int) -> tuple[Any, Any]:
    """What `step` returns. Raises SizeError for anything but a pair."""
    result = module.step(x, state, t)
    if not isinstance(result, tuple) or len(result) != 2:
        raise SizeError(f"{name}: step returned {kind(result)}; it must return (y, state)")
    return result


@contextmanager
def apart(seed: int) -> Iterator[None]:
    """Random numbers of the CPU from `seed`, and afterwards as if none had been drawn."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


def describe_error(error: BaseException) -> str:
    """The error's type and last line, and the last place of the user's own code that it came
    through.
    """
    lines = [line for line in str(error).splitlines() if line.strip()]
    said = lines[-1].strip()[:200] if lines else "no message"
    return f"{type(error).__name__}: {said}{place_of(traceback.extract_tb(error.__traceback__))}"


def place_of(frames: list[traceback.FrameSummary]) -> str:
    """ " (mine.py:35)", the last of the places that is in nobody's library."""
    own = [
        frame
        for frame in frames
        if not frame.filename.startswith(_LIBRARIES) and not frame.filename.startswith("<")
    ]
    return f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""


def kind(value: Any) -> str:
    return (
        f"a tensor of shape {tuple(value.shape)}"
        if isinstance(value, Tensor)
        else f"{type(value).__name__} {str(value)[:40]!r}"
    )


def import_module(name: str) -> ModuleType:
    """The module of that dotted name or path to a .py file, looked for in the current folder
    first. Raises SpecError.
    """
    folder = Path.cwd()
    path = None
    if name.endswith(".py"):
        path = Path(name).expanduser().resolve()
        if not path.is_file():
            raise SpecError(f"{name}: there is no such file")
        folder = path.parent
        name = path.stem
    if not all(part.isidentifier() for part in name.split(".")):
        raise SpecError(
            f"'{name}' is no module; write a dotted name such as my_package.my_module, or a path"
            " such as folder/my_module.py"
        )
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    # finds a file that was written a moment ago
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name) if path is None else _from_file(name, path)
    # a script without a main guard may end with sys.exit
    except (Exception, SystemExit) as error:
        # the module asked for is missing, or a package above it; not one that it imports
        missing = getattr(error, "name", None) if type(error) is ModuleNotFoundError else None
        if path is None and missing and f"{name}.".startswith(f"{missing}."):
            said = f"there is no module '{name}' in this folder or among the installed packages"
        else:
            said = f"importing {name} raises {describe_error(error)}"
        raise SpecError(said) from None


def _from_file(name: str, path: Path) -> ModuleType:
    """The module of that very file, once: under its stem, or with a suffix where another module
    has that name.
    """
    suffixed = f"{name}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    for known in (name, suffixed):
        if getattr(sys.modules.get(known), "__file__", None) == str(path):
            return sys.modules[known]
    found = None if name in sys.modules else importlib.util.find_spec(name)
    if found is not None and found.origin == str(path):
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(suffixed, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # before it runs: dataclasses look up the module of their class there
    sys.modules[suffixed] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        # or the next import would find half a module
        del sys.modules[suffixed]
        raise
    return module


def load(target: str) -> Any:
    """What `module:name` names. Raises SpecError for a module that cannot be imported,
    UnknownNameError for a name it lacks.
    """
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise SpecError(f"'{target}' names no class; write module:Class, such as my_module:MyMixer")
    module = import_module(place)
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            known = [other for other in vars(module) if not other.startswith("_")]
            raise UnknownNameError.of("name", name, known, where=f" in {place}")
        value = getattr(value, part)
    return value

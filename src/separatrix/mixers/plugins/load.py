"""A user's modules and classes by name: `my_module:MyMixer`, `folder/my_module.py:MyMixer`."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from separatrix.core.errors import SpecError, UnknownNameError
from separatrix.mixers.plugins.probe import describe_error


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
    except ModuleNotFoundError as error:
        # the module asked for is missing, or a package above it; not one that it imports
        if (
            path is None
            and error.name is not None
            and (name == error.name or name.startswith(f"{error.name}."))
        ):
            raise SpecError(
                f"there is no module '{name}' in this folder or among the installed packages"
            ) from None
        raise SpecError(f"importing {name} raises {describe_error(error)}") from None
    # a script without a main guard may end with sys.exit
    except (Exception, SystemExit) as error:
        raise SpecError(f"importing {name} raises {describe_error(error)}") from None


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

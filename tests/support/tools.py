"""The scripts of tools/ and benchmarks/, loaded as modules."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from support.console import ROOT


def loaded(name: str, folder: str = "tools") -> ModuleType:
    """tools/NAME.py, executed anew."""
    spec = importlib.util.spec_from_file_location(f"tools_{name}", ROOT / folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # its dataclasses look their module up
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module

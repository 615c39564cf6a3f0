"""A family is one file and one line: no file is left out, and no type has two readers."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from separatrix.architecture.hf import CLASSES, FAMILIES, families

FILES = [found.name for found in pkgutil.iter_modules(families.__path__)]


def test_every_file_is_in_the_registry() -> None:
    """But for mamba_ssm's own files, which have no model type."""
    types: list[str] = []
    classes: list[str] = []
    for name in FILES:
        file = import_module(f"{families.__name__}.{name}")
        if name != "mamba_ssm":
            assert file.FAMILIES, name
            types += file.FAMILIES
            classes += file.CLASSES
    assert sorted(types) == sorted(FAMILIES)
    assert sorted(classes) == sorted(CLASSES)
    assert set(CLASSES.values()) <= set(FAMILIES)

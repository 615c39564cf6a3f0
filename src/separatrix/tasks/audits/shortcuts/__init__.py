"""Shortcuts to single tasks, which look at what these are made of: each is a function of its name
in one of these modules, and its docstring is what readers are told.
"""

from separatrix.tasks.audits.shortcuts import lookups, shapes
from separatrix.tasks.audits.shortcuts.views import SHORTCUTS, shortcut

__all__ = ["SHORTCUTS", "lookups", "shapes", "shortcut"]

"""The shortcuts of `separatrix.tasks.SHORTCUTS`, which look at what a task is made of: each is a
function of its name in one of these modules.
"""

from separatrix.tasks.audits.shortcuts import lookups, shapes
from separatrix.tasks.audits.shortcuts.views import shortcut

__all__ = ["lookups", "shapes", "shortcut"]

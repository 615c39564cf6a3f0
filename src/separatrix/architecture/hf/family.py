"""The reader of a family: a function from the fields of a file to the layers it describes."""

from __future__ import annotations

from collections.abc import Callable

from separatrix.architecture.hf.draft import Reading
from separatrix.architecture.hf.fields import Fields

Family = Callable[[Fields], Reading]

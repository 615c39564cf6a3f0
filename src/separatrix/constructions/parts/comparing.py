"""Full layers whose heads compare contents, in key dimensions that no rotation turns, whether or
not the stack knows places.
"""

from __future__ import annotations

from separatrix.constructions.parts.placement import in_float32
from separatrix.constructions.parts.readers import COVERED, Reader
from separatrix.core.errors import SizeError
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Fox, Full
from separatrix.tasks import Task

_AROUND = COVERED - {"qk_norm"}
"""Options that these heads are written around: a norm would make unlike keys equally long."""
_PLACES = ("embedded", "none")


def comparing(
    architecture: Architecture, *, keys: int, values: int, plain: bool = False
) -> list[Reader]:
    """The first kind of heads in each layer that compares so many numbers and hands on so many
    values, first layer first; with `plain` only heads without options.
    """
    found: list[Reader] = []
    if architecture.positions not in _PLACES:
        return found
    for layer, parts in enumerate(architecture):
        for number, part in enumerate(parts):
            if not isinstance(part, Full | Fox) or part.altered - _AROUND or not part.free_scores:
                continue
            if plain and not (isinstance(part, Full) and part.plain):
                continue
            head = part.retrieval_head
            turned = 0 if part.rotation is None else part.rotation.dims
            wide = head is not None and head.has_room(keys + turned, values)
            if wide and in_float32(part) and part.accumulator_bits >= 32:
                found.append(Reader((layer, number), start=turned))
                break
    return found


def last_comparing(task: Task, architecture: Architecture, *, keys: int, values: int) -> Reader:
    """The last such layer. Raises SizeError, saying what is needed, where there is none."""
    found = comparing(architecture, keys=keys, values=values)
    if not found:
        raise _too_small(task, architecture, 1, keys, values)
    return found[-1]


def two_comparing(
    task: Task,
    architecture: Architecture,
    *,
    keys: int,
    values: int = 1,
    last: tuple[int, int] = (1, 1),
    plain: bool = False,
) -> tuple[Reader, Reader]:
    """The last two such layers of which the second has only the key and value dimensions of
    `last`. Raises SizeError, saying what is needed, where there are none.
    """
    ends = comparing(architecture, keys=last[0], values=last[1], plain=plain)
    second = ends[-1] if ends else None
    for first in reversed(comparing(architecture, keys=keys, values=values, plain=plain)):
        if second is not None and first.place[0] < second.place[0]:
            return first, second
    raise _too_small(task, architecture, 2, max(keys, last[0]), max(values, last[1]), plain=plain)


def _too_small(
    task: Task,
    architecture: Architecture,
    layers: int,
    keys: int,
    values: int,
    *,
    plain: bool = False,
) -> SizeError:
    found = len(comparing(architecture, keys=keys, values=values, plain=plain))
    full = sum(any(isinstance(part, Full | Fox) for part in layer) for layer in architecture)
    return SizeError(
        f"'{architecture.spec}' cannot hold the construction for {task.spec}: it needs {layers}"
        f" full layer{'s' * (layers > 1)} with head_dim >= {keys} beside what rotations turn,"
        f" value_dim >= {values}, numbers of at least 32 bits, positions embedded or none, and no"
        f" {'options' if plain else 'norm or cap'}; {found} of its {full} full layers are such"
    )

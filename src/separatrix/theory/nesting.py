"""How deep brackets must nest before a memory of so many bits cannot hold which ones are open."""

from __future__ import annotations

from separatrix.errors import SizeError
from separatrix.tasks._base import LARGEST_SIZE
from separatrix.tasks.dyck import stack_classes
from separatrix.theory._base import first_size


def smallest_depth(k: int, bits: int) -> int | None:
    """The smallest depth D at which the prefixes of Dyck-(k, D), n = 2D, have more than 2^bits classes (theory.md, section 3).

    About bits / log2 k for k >= 2 kinds, 2^(bits + 1) - 2 for one; None beyond 10^12 / 2. Raises SizeError unless k >= 1 and bits >= 0 are integers.
    """
    for name, value, low in (("k", k, 1), ("bits", bits, 0)):
        if type(value) is not int or value < low:
            raise SizeError(f"smallest depth: {name} is {value!r}; it must be an integer of at least {low}")
    return first_size(lambda depth: stack_classes(k=k, D=depth, t=depth, dead=True).exceeds_bits(bits), 1, limit=LARGEST_SIZE // 2)

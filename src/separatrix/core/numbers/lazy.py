"""NumPy, loaded when something of it is first asked for: what a task says of itself needs none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["Bools", "Floats", "Ints", "NDArray", "np"]

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
else:

    class _NumPy:
        def __getattr__(self, name: str) -> Any:
            import numpy

            found = getattr(numpy, name)
            setattr(self, name, found)  # so that this is called once for each name
            return found

    np = _NumPy()
    # for annotations, which nobody evaluates
    Bools = Floats = Ints = NDArray = Any

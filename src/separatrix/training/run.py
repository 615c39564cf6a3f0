"""One training run, as plain data; needs no torch."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.errors import SizeError


@dataclass(frozen=True, kw_only=True)
class Run:
    """One model trained with one seed. Raises SizeError for a size below its minimum; the texts
    are checked when it runs.
    """

    architecture: str
    task: str
    seed: int
    steps: int = 1000
    batch: int = 128
    learning_rate: float = 3e-3
    width: int = 32
    hidden: int = 64
    weight_decay: float = 0.01
    tested: int = 2048
    """Fresh instances the accuracy is measured on."""
    stop_at: float = 0.995
    """Training ends early when the running accuracy of 20 steps reaches this."""

    def __post_init__(self) -> None:
        for name, low in (
            ("seed", 0),
            ("steps", 1),
            ("batch", 1),
            ("width", 1),
            ("hidden", 0),
            ("tested", 1),
        ):
            value = getattr(self, name)
            # a bool is an int to isinstance, but no size
            if type(value) is not int or value < low:
                raise SizeError(
                    f"training: {name} is {value!r}; it must be an integer of at least {low}"
                )

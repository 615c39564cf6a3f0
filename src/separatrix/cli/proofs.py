"""Proofs of constructions in the terminal: in which formats, layer by layer, up to which size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from separatrix.cli.commands.checkpoints import stock_named
from separatrix.core.errors import SizeError, SpecError
from separatrix.core.numbers.formats import NumberFormat

if TYPE_CHECKING:
    from separatrix.constructions import Built
    from separatrix.stacks.architecture import Architecture
    from separatrix.tasks import Task

PROVED = ("fp64", "fp32", "bf16", "fp16")
"""Formats that `--formats all` tells of."""
_SECONDS = 1.0
"""Of one proof, after which `--formats all` tries no larger size."""


def number_or_stock(text: str | None) -> tuple[str | None, str | None]:
    """A number format or a stock architecture, as --format names them."""
    if text is None:
        return None, None
    try:
        return NumberFormat(text).name, None
    except SpecError:
        return None, stock_named(text, *PROVED, "pN")


def formats_named(text: str | None) -> list[str]:
    """The formats of a list such as "fp64,bf16", or all. Raises SizeError for one without
    proofs.
    """
    from separatrix.proofs.arithmetic import arithmetic

    if text == "all":
        return list(PROVED)
    if text is None:
        return []
    return [arithmetic(name.strip()).name for name in text.split(",")]


def built_as(
    task: Task,
    architecture: Architecture | None,
    number: str | None,
    others: list[str],
    kind: str | None = None,
    *,
    unproved: bool,
) -> Built:
    """The construction in a number format, with its proofs in others. Raises SizeError, with the
    largest size that is proved, for one that is not.
    """
    from separatrix.constructions import construct
    from separatrix.constructions.parts.built import proved_in
    from separatrix.constructions.parts.limits import limit_below
    from separatrix.proofs.arithmetic import FP32, arithmetic

    wanted = None if number is None else arithmetic(number)
    if unproved:
        return construct(task, architecture, kind, (wanted or FP32).unproved)
    try:
        return proved_in(construct(task, architecture, kind, wanted), others)
    except SizeError as error:
        found = limit_below(task, architecture, kind, wanted)
        if found is None:
            raise
        title = (wanted or FP32).title
        least = "at least " * found.capped
        raise SizeError(
            f"{error} (the largest {found.size} proved in {title}, all else the same, is"
            f" {least}{found.n:,}; --formats none writes the weights without a proof)"
        ) from None


def limits_of(built: Built, architecture: Architecture | None) -> Iterator[str]:
    """How far this construction is proved in each format that the record tells of."""
    from separatrix.constructions.parts.limits import SHOWN, largest_proved
    from separatrix.proofs.arithmetic import FP32, arithmetic

    yield f"weights built alike, tried up to {SHOWN:,}, all else the same:"
    for name in dict.fromkeys((built.record.format or FP32.name, *built.record.proofs)):
        own = arithmetic(name)
        found = largest_proved(
            built.record.name,
            built.task,
            own,
            most=SHOWN,
            architecture=architecture,
            seconds=_SECONDS,
        )
        yield f"  {found.sentence(own.title)}"

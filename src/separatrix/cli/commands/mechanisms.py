"""`separatrix check-mechanism`."""

from __future__ import annotations

from typing import Any

from separatrix.cli.options import Asked, command
from separatrix.cli.printing import Answer, Told
from separatrix.core.errors import SizeError, SpecError, UnknownNameError
from separatrix.core.progress import bar


@command
def check_mechanism(asked: Asked) -> Answer:
    """Runs every law of a token mixer on a class of your own: equal forms, causality, measured
    cache, half formats, vmap, speed.

    Exit code 1 if a law is broken. Example: check-mechanism my_module:MyMixer --set state=32
    """
    # the bar comes before torch does: loading it is most of the waiting
    with bar(f"checking {asked.target}", shown=not asked.as_json) as advance:
        from separatrix.cli.report.check_card import check_document, check_json
        from separatrix.mixers.plugins.check import check, find

        formats = _formats(asked.formats)
        own = _sizes(asked.set or [])
        mixer, origin = find(asked.target, width=_width(own), sizes=own)
        card = check(
            mixer,
            origin=origin,
            within=asked.tolerance,
            formats=formats,
            seed=asked.seed,
            progress=advance,
        )
    return Told(check_json(card), check_document(card), code=int(bool(card.broken)))


def _width(sizes: dict[str, Any]) -> int | None:
    """The model's width, taken out of the sizes. Raises SizeError."""
    width = sizes.pop("model_width", None)
    if width is not None and (type(width) is not int or not 1 <= width <= 65_536):
        raise SizeError(
            f"--set model_width={str(width)[:20]}: a width is a number from 1 to 65,536"
        )
    return width


def _formats(text: str) -> list[str]:
    """Names of formats from a text such as "fp32,bf16". Raises UnknownNameError."""
    from separatrix.mixers.laws import FORMATS

    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in FORMATS:
            raise UnknownNameError.of("format", name[:60], FORMATS)
    return names


def _sizes(texts: list[str]) -> dict[str, Any]:
    """Sizes from texts such as "state=32", "negative=true", "bf16". Raises SpecError."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            name, value = "format", name
        if not name or not value:
            raise SpecError(
                f"--set {text[:60]!r} is no setting; write SIZE=VALUE, such as --set state=32"
            )
        if name in found:
            raise SpecError(f"--set {name} is given twice; keep one")
        number = value.replace("_", "")
        if number.isascii() and number.isdecimal() and len(number) < 14:
            found[name] = int(number)
        else:
            found[name] = {"true": True, "false": False}.get(value, value)
    return found

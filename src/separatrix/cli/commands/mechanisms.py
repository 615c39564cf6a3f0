"""`separatrix check-mechanism`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from separatrix.cli import complete
from separatrix.cli.options import Imports
from separatrix.cli.printing import JsonFlag, print_json, show
from separatrix.core.errors import SizeError, SpecError, UnknownNameError
from separatrix.core.progress import bar


def check_mechanism(
    target: Annotated[
        str,
        typer.Argument(
            help="module:Class, path/to/file.py:Class, or the name of a mechanism, such as gdn.",
            autocompletion=complete.mechanisms,
        ),
    ],
    sizes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A size, repeatable: state=32, negative=true, bf16, or model_width=64"
            " (default: the class's own, else 16).",
        ),
    ] = None,
    within: Annotated[
        float,
        typer.Option(
            "--tolerance",
            min=0,
            max=0.1,
            help=(
                "How far forms may differ, of the largest number; 1e-5 for a layer that computes in"
                " float32 inside."
            ),
        ),
    ] = 1e-9,
    formats: Annotated[
        str,
        typer.Option(
            "--formats",
            help="Formats that laws look at beside float64, such as fp32,bf16 for a layer that"
            " fp16 is too narrow for.",
        ),
    ] = "fp32,bf16,fp16",
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, help="What the laws draw follows from it (default: another one in each run)."
        ),
    ] = None,
    imports: Imports = None,
    as_json: JsonFlag = False,
) -> None:
    """Runs every law of a token mixer on a class of your own: equal forms, causality, measured
    cache, half formats, vmap, speed.

    Exit code 1 if a law is broken. Example: check-mechanism my_module:MyMixer --set state=32
    """
    # the bar comes before torch does: loading it is most of the waiting
    with bar(f"checking {target}", shown=not as_json) as advance:
        from separatrix.cli.report.check_card import check_document, check_json
        from separatrix.mixers.plugins.check import check, find

        asked = _formats(formats)
        own = _sizes(sizes or [])
        mixer, origin = find(target, width=_width(own), sizes=own)
        card = check(
            mixer, origin=origin, within=within, formats=asked, seed=seed, progress=advance
        )
    if as_json:
        print_json(check_json(card))
    else:
        show(check_document(card))
    if card.broken:
        raise typer.Exit(1)


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

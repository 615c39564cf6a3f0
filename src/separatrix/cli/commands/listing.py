"""`separatrix list [KIND] [NAME]`: what there is; one of them explained."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from importlib import import_module
from textwrap import indent
from typing import TYPE_CHECKING

from separatrix.cli.options import KINDS, PROVED, Asked, command, formats_named, given, used
from separatrix.cli.printing import Answer, Told, rows_table
from separatrix.core.document import Document, Heading, Line, Part
from separatrix.core.errors import UnknownNameError
from separatrix.core.evidence.canonical import canonical
from separatrix.core.evidence.folder import new_folder, write_atomic
from separatrix.core.progress import bar

if TYPE_CHECKING:
    from separatrix.constructions.precision import Line as Found

_SHOWN = 10
"""Tokens of an input that a table shows."""


@command
def list_(asked: Asked) -> Answer:
    """What there is; one of them explained. Examples: list mechanisms gdn; list theorems III; list
    constructions match2 --formats p14:32 --out map/; list experiments study
    """
    kind, name = asked.kind, asked.name
    if kind is None:
        used(asked, "list", "")
        rows = [{"list": one, "tells": tells} for one, tells in KINDS.items()]
        return Told(rows, Document(rows_table(rows)))
    if kind not in KINDS:
        raise UnknownNameError.of("kind", kind[:60], KINDS)
    own = import_module(f"separatrix.cli.report.{kind}")
    if name is None:
        used(asked, f"list {kind}", "")
        read = getattr(own, "cells", own.rows)()
        notes = [Line(f"\n{own.NOTE}")] if hasattr(own, "NOTE") else []
        return Told(own.rows(), Document(rows_table(read, own.SPARED), *notes))
    used(asked, f"list {kind} NAME", kind)

    def told(name: str) -> Answer:
        if kind == "constructions" and given(asked):
            return precision(name, asked)
        if kind == "experiments":
            from separatrix.cli.commands.experiment import described

            return described(name, asked)
        return explained(own.describe(name))

    try:
        return told(name)
    except UnknownNameError:
        # all are looked at only for one in another case
        keys: list[str] = [next(iter(row.values())) for row in own.rows()]
        folded = {key.casefold(): key for key in keys}
        if name in keys or name.casefold() not in folded:
            raise
    return told(folded[name.casefold()])


def explained(pairs: Iterable[tuple[str, str]]) -> Told:
    """Headings and texts; for machines by keys: "about" has the first, prefix_classes what stands
    under "prefix classes", and what stands in brackets, such as "(after 4,096 tokens)", belongs to
    no key.
    """
    data = {}
    for heading, text in pairs:
        key = heading.partition(" (")[0].replace(" ", "_") if data else "about"
        data[key] = {"heading": heading, "text": text}
    texts = (f"{one['heading']}\n{indent(one['text'], '  ')}" for one in data.values())
    return Told(data, Document(*map(Line, texts)))


def precision(name: str, asked: Asked) -> Told:
    """The precision map: for each number format the largest size at which a construction is proved
    right on every input, beside the smallest one at which a search finds an input that it answers
    wrongly. In formats pN every operation is rounded, with sums in a row and in pairs.
    """
    from separatrix.cli.report import charts
    from separatrix.constructions.precision import family_of, precision_map

    out, most, seed = asked.out, asked.most, asked.seed or 0
    family = family_of(name, asked.sizes)
    wanted = formats_named(",".join(asked.formats or PROVED))
    lines: list[Found] = []
    # an existing folder is refused before anything is computed
    with nullcontext() if out is None else new_folder(out) as folder:
        with bar(f"precision of {name}", shown=not asked.as_json) as advance:
            tried = {"most": most, "tokens": asked.tokens, "seed": seed}
            for line in precision_map(name, family, wanted, **tried):
                lines.append(line)
                advance(len(lines), len(wanted))
        data = {
            "construction": name,
            "sizes": family.text,
            "most": most,
            "seed": seed,
            "formats": [line.to_json() for line in lines],
        }
        if folder is not None:
            drawing = charts.precision(name, family, lines, most)
            write_atomic(folder / "precision.json", canonical(data) + "\n")
            drawing.write(folder / "precision.svg")
    parts: list[Part] = [Line(f"{name}, along {family.size} of {family.text}, up to {most:,}")]
    parts += [Heading(), rows_table([_row(line) for line in lines])]
    said = [_told(line) for line in lines if line.wrong is not None]
    for reason in dict.fromkeys(line.unrun for line in lines if line.unrun is not None):
        those = ", ".join(line.format for line in lines if line.unrun == reason)
        said.append(f"{those}: no larger size was run: {reason}")
    for text in said:
        parts += [Heading(), Line(text)]
    parts += [Heading(), *map(Line, charts.said_of_slopes(family, lines, most))]
    if out is not None:
        parts.append(Line(f"written to {out}"))
    return Told(data, Document(*parts))


def _row(line: Found) -> dict[str, str]:
    def size(number: int | None) -> str:
        return "none" if number is None else f"{number:,}"

    return {
        "format": line.format,
        "digits": str(line.digits),
        "proved up to": f"{size(line.proved)}{' (all tried)' if line.capped else ''}",
        "no failure up to": size(line.survived),
        "fails at": size(line.fails),
        "ratio": "" if line.ratio is None else f"{line.ratio:.2f}",
    }


def _told(line: Found) -> str:
    """The input that is answered wrongly, in a sentence."""
    assert line.wrong is not None
    wrong = line.wrong
    shown = " ".join(map(str, wrong.tokens[:_SHOWN]))
    rest = len(wrong.tokens) - _SHOWN
    more = f" ... ({rest:,} more)" if rest > 0 else ""
    said = "no number" if wrong.answer < 0 else f"{wrong.answer}"
    return (
        f"{line.format}, {wrong.how}, size {line.fails:,}: {shown}{more} is answered {said}, not"
        f" {wrong.right}"
    )

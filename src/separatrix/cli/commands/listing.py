"""`separatrix list [KIND] [NAME]`: what there is; one of them explained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from separatrix.cli import complete
from separatrix.cli.options import Imports, given, only
from separatrix.cli.printing import (
    JsonFlag,
    print_description,
    print_json,
    print_rows,
    print_text,
    width,
)
from separatrix.core.errors import SpecError, UnknownNameError

WIDE = 130
"""Columns of a terminal that has room for whole tables of tasks and mechanisms."""
PRECISION = ("sizes", "formats", "bits", "most", "tokens", "seed", "out")
KINDS = {
    "mechanisms": "token mixers: what they carry and read, what a token costs, other names",
    "tasks": "what models are asked: sizes, samplers, chance, sources",
    "presets": "released models known by name, or by their id on the Hugging Face hub",
    "theorems": "what `analyze` and `reproduce` apply, further statements, counts of prefixes",
    "constructions": "explicit weights with a proof, and how far each number format carries",
    "experiments": "what training found, beside what is proved",
}
"""Kind -> what its table tells."""


def list_(
    context: typer.Context,
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]", help=f"{', '.join(KINDS)}.", autocompletion=complete.kinds
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="One of them, explained.", autocompletion=complete.named
        ),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a kind's page of docs/ instead.")
    ] = False,
    formats: Annotated[
        str | None,
        typer.Option(
            help="How large a construction these number formats carry, such as fp64,fp32,bf16,p20:"
            " the largest size proved, and the smallest at which a wrong answer is found.",
        ),
    ] = None,
    bits: Annotated[
        str | None,
        typer.Option(
            metavar="FROM:TO", help="The same of formats of so many bits: 12:32 is p12, ..., p32."
        ),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            metavar="TASK", help="With {} for the size that grows: eva:n={},V=16, twosum:n=8,M={}."
        ),
    ] = None,
    most: Annotated[
        int, typer.Option(min=2, max=1 << 20, help="Largest size that --formats tries.")
    ] = 1 << 10,
    tokens: Annotated[
        int, typer.Option(min=1, max=1 << 26, help="Tokens that --formats searches at each size.")
    ] = 1 << 16,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, help="Of the inputs that --formats searches, or which run --check draws."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="New folder: the map of --formats, or an experiment's page and table."),
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option(help="Show an experiment's runs from a file with a run a line."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Train one recorded run of an experiment again; compare."),
    ] = False,
    imports: Imports = None,
    as_json: JsonFlag = False,
) -> None:
    """What there is; one of them explained. Examples: list mechanisms gdn; list theorems III; list
    constructions match2 --bits 14:32 --out map/; list experiments study --rows rows.jsonl
    """
    if kind is None:
        only(context, "list", ())
        print_rows([{"list": one, "tells": tells} for one, tells in KINDS.items()], as_json)
        return
    if kind not in KINDS:
        raise UnknownNameError.of("kind", kind[:60], KINDS)
    if name is None:
        only(context, f"list {kind}", ("markdown",) if kind in _PAGES else ())
        if markdown and as_json:
            raise SpecError("--markdown and --json are two forms of the same list; give one")
        if markdown:
            typer.echo(_PAGES[kind](), nl=False)
        else:
            _LISTS[kind](as_json)
        return
    if kind == "constructions":
        only(context, "list constructions NAME", PRECISION)
        if set(PRECISION) & set(given(context)):
            from separatrix.cli.commands.precision import precision

            precision(name, sizes, formats, bits, most, tokens, seed or 0, out, as_json)
            return
    elif kind == "experiments":
        from separatrix.cli.commands.experiment import show

        only(context, "list experiments NAME", ("rows", "check", "seed", "out"))
        show(name, rows=rows, check=check, seed=seed, out=out, as_json=as_json)
        return
    else:
        only(context, f"list {kind} NAME", ())
    from separatrix.cli.report.parts import keyed

    print_description(keyed(_EXPLAINED[kind](name)), as_json)


def _mechanisms(as_json: bool) -> None:
    from separatrix.cli.report.mechanisms import LEGEND, rows, shown

    if as_json:
        print_json(rows())
        return
    narrow = ("symbol", "grows", "elsewhere") if width() < WIDE else ()
    _table([shown(row) for row in rows()], without=narrow)
    more = "; a wider terminal also shows how the state grows, and other names" if narrow else ""
    print_text(f"\n{LEGEND}{more}")


def _tasks(as_json: bool) -> None:
    from separatrix.cli.report.tasks import rows

    if as_json:
        print_json(rows())
        return
    narrow = ("sizes", "source") if width() < WIDE else ()
    _table(rows(), without=narrow)
    more = "; a wider terminal lists sizes" if narrow else ""
    print_text(f"\n`separatrix list tasks NAME` tells sizes, sampler, chance and source{more}")


def _table(rows: Iterable[Mapping[str, str]], without: Sequence[str]) -> None:
    print_rows([{k: v for k, v in row.items() if k not in without} for row in rows], False)


def _presets(as_json: bool) -> None:
    from separatrix.cards.facts import layer_titles
    from separatrix.stacks.architecture.presets import preset
    from separatrix.stacks.architecture.released import PRESETS, hub_ids

    models = {name: preset(name) for name in PRESETS}
    if as_json:
        print_json(
            [
                {
                    "name": name,
                    "layers": len(model),
                    "spec": model.spec,
                    "source": PRESETS[name]["source"],
                    "hub_ids": hub_ids(name),
                }
                for name, model in models.items()
            ]
        )
        return
    print_rows(
        [
            {
                "name": name,
                "layers": "   ".join(f"{n:,} {title}" for n, title in layer_titles(model)),
                "hub id": " ".join(hub_ids(name)),
            }
            for name, model in models.items()
        ],
        False,
    )


def _preset(name: str) -> list[tuple[str, str]]:
    from separatrix.cards.facts import layer_titles
    from separatrix.stacks.architecture.presets import preset
    from separatrix.stacks.architecture.released import PRESETS, hub_ids, preset_named

    known = preset_named(name) or name
    model = preset(known)
    layers = ", ".join(f"{count:,} {title}" for count, title in layer_titles(model))
    return [
        (f"{known}: {len(model):,} layers", layers),
        ("spec", model.spec),
        ("hub ids", "\n".join(hub_ids(known))),
        ("source", PRESETS[known]["source"]),
    ]


def _theorems(as_json: bool) -> None:
    from separatrix.cli.report.listing import list_theorems

    print_rows(list_theorems(), as_json)


def _constructions(as_json: bool) -> None:
    from separatrix.cli.report.constructions.listing import LEGEND, brief, rows
    from separatrix.cli.report.constructions.recorded import read_recorded

    recorded = read_recorded()
    if as_json:
        print_json(rows(recorded))
    else:
        print_rows(brief(recorded), False)
        print_text(f"\n{LEGEND}")


def _experiments(as_json: bool) -> None:
    from separatrix.cli.commands.experiment import experiments

    print_rows(experiments(), as_json)


def _from(place: str) -> Callable[..., Any]:
    """A function of the report, imported when it is asked for."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"separatrix.cli.report.{module}"), name)


_LISTS: dict[str, Callable[[bool], None]] = {
    "mechanisms": _mechanisms,
    "tasks": _tasks,
    "presets": _presets,
    "theorems": _theorems,
    "constructions": _constructions,
    "experiments": _experiments,
}
_PAGES: dict[str, Callable[[], str]] = {
    "mechanisms": lambda: _from("mechanisms:page")(),
    "tasks": lambda: _from("tasks:page")(),
    "constructions": lambda: _from("constructions.listing:page")(),
}
_EXPLAINED: dict[str, Callable[[str], list[tuple[str, str]]]] = {
    "mechanisms": lambda name: _from("mechanisms:describe")(name),
    "tasks": lambda name: _from("tasks:describe")(name),
    "presets": _preset,
    "theorems": lambda name: _from("listing:describe_theorem")(name),
    "constructions": lambda name: _from("constructions.listing:describe")(name),
}

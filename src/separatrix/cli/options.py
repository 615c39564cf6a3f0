"""Options and arguments of commands, read from the table commands.toml."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from inspect import getdoc
from math import isnan
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click
import typer
from click.core import ParameterSource
from typer.core import TyperArgument, TyperCommand, TyperOption

from separatrix.cli.groups import ABOUT, COMMANDS, TABLE
from separatrix.cli.printing import Answer, Told, show
from separatrix.core.document import Document, Line, Table
from separatrix.core.errors import SpecError, Stopped, UnknownNameError

if TYPE_CHECKING:
    from separatrix.training.sweeps.planning import Plan


class _Real(click.FloatRange):
    """Click takes nan for a number in any range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        return self.fail(f"{found} is no number.", param, ctx) if isnan(found) else found


_KINDS = {"int": int, "float": float, "str": str}
_RANGES = {"int": click.IntRange, "float": _Real}
_TYPE = re.compile(
    r"(?P<word>word )?(?P<kind>\w+)(?P<many>\*?)(?P<needed>[?!]?)"
    r"(?: (?P<low>[\d.]+?)?\.\.(?P<high>[\d.]+)?)?(?: = (?P<default>.*))?"
)
_NAMES = {"json": "as_json", "import": "imports", "dry-run": "dry_run"}
"""Options -> what a command finds them under, where it is another name."""


class Asked(SimpleNamespace):
    """What was asked of a command: the value of each of its options, and the context of click as
    `ctx`.
    """

    if TYPE_CHECKING:
        ctx: click.Context

        def __getattr__(self, name: str) -> Any: ...


def _declared(name: str, row: Any) -> click.Parameter:
    """An option or an argument from a row of the table."""
    text, said, *others = TABLE["shared"][name] if row is True else row
    more: dict[str, Any] = dict(*others)
    match = _TYPE.fullmatch(text)
    assert match is not None, text
    kind, default = match["kind"], match["default"]
    more["help"] = " ".join(said.format_map(TABLE["texts"]).split())
    more["type"] = click.Path(path_type=Path) if kind == "path" else _KINDS.get(kind)
    if match["low"] or match["high"]:
        ends = (None if end is None else _KINDS[kind](end) for end in match.group("low", "high"))
        more["type"] = _RANGES[kind](*ends)
    if name == "import":
        more["callback"] = _import_all
    if match["word"]:
        nargs = -1 if match["many"] else 1
        return TyperArgument(param_decls=[name], required=not match["needed"], nargs=nargs, **more)
    return TyperOption(
        param_decls=[_NAMES.get(name, name), f"--{name}"],
        required=bool(match["needed"]),
        default=False if kind == "flag" else default,
        is_flag=kind == "flag" or None,
        multiple=bool(match["many"]),
        show_default=True,
        **more,
    )


def _import_all(ctx: click.Context, option: click.Parameter, modules: Any) -> Any:
    if modules:
        from separatrix.mixers.plugins.probe import import_module

        for module in modules:
            import_module(module)
    return modules


KINDS = {
    "mechanisms": "token mixers: what they carry and read, what a token costs, other names",
    "tasks": "what models are asked: sizes, samplers, chance, sources",
    "presets": "released models known by name, or by their id on the Hugging Face hub",
    "theorems": "what `analyze` and `reproduce` apply, further statements, counts of prefixes",
    "constructions": "explicit weights with a proof, and how far each number format carries",
    "experiments": "what training found, beside what is proved",
}
"""Kind of `list` -> what its table tells; separatrix.cli.report has a file for each."""


class _Command(TyperCommand):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As ever the last value of an option counts, but a task would be dropped unasked."""
        _, _, said = self.make_parser(ctx).parse_args(list(args))
        if any(one.name == "task" and not one.multiple and said.count(one) > 1 for one in said):
            raise click.UsageError("--task is given twice, and takes one task here.", ctx)
        return super().parse_args(ctx, args)


def command(body: Callable[[Asked], Answer]) -> TyperCommand:
    """A command that takes what the table says under the body's name, and prints its answer; an
    answer that is a failure ends with its code.
    """
    name = body.__name__.strip("_").replace("_", "-")

    @click.pass_context
    def run(ctx: click.Context, **values: Any) -> None:
        answer = body(Asked(ctx=ctx, **values))
        if ctx.params["as_json"]:
            typer.echo(answer.json())
        else:
            show(answer.document())
        if answer.after is not None:
            answer.after()
        if answer.code:
            raise typer.Exit(answer.code)

    rows = {one: row for one, row in COMMANDS[name].items() if one not in ABOUT}
    rows |= {"import": rows.get("import", True), "json": True}
    takes = [_declared(one, row) for one, row in rows.items() if row]
    return _Command(name, callback=run, params=takes, help=getdoc(body), rich_markup_mode=None)


STORE = Path("sweeps.sqlite")
"""Where runs are kept unless --store says otherwise: beside what the user is doing."""
_RAY = "ray://"


def engine_options(asked: Asked) -> dict[str, Any]:
    """Where and how many runs are trained, as `sweep` takes it."""
    head = asked.engine.removeprefix(_RAY) if asked.engine.startswith(_RAY) else ""
    kind = "ray" if head else asked.engine
    return {"engine": kind, "address": head, **engine_free(asked)}


def engine_free(asked: Asked) -> dict[str, Any]:
    """The same for a plan, which needs no engine."""
    return {name: getattr(asked, name) for name in ("store", "workers", "device")}


def planned(title: str, found: Plan) -> Told:
    """What --dry-run says."""
    rows = [(f"  {name}", said) for name, said in found.rows()]
    return Told(found.to_json(), Document(Line(title), Table(rows)))


def stopped(store: Path) -> Exception:
    """How to go on, in one line."""
    return Stopped(
        f"stopped; ended runs and checkpoints are in {store}, and the same command goes on"
    )


def tokens(asked: str | None, own: int | None, *, whose: str) -> tuple[int, str]:
    """A card's context, and in words who chose it, or that it is beyond the model's `own`."""
    from separatrix.core.numbers.amounts import DEFAULT_CONTEXT, parse_context

    if asked is None:
        return (DEFAULT_CONTEXT, "the default") if own is None else (own, whose)
    length = parse_context(asked, "--context")
    return length, f"beyond {own:,}, {whose}" if own is not None and own < length else ""


def pairs(
    option: str,
    texts: Iterable[str] | None,
    known: Collection[str],
    kind: str,
    example: str,
    several: Collection[str] = (),
) -> Iterator[tuple[str, str]]:
    """Names and values of NAME=VALUE texts. Raises UnknownNameError for a name that is not `known`
    (where any are), SpecError for no value, and for a name given twice, unless it may be `several`.
    """
    seen: set[str] = set()
    for text in texts or ():
        name, _, value = (part.strip() for part in text.partition("="))
        if known and name not in known:
            raise UnknownNameError.of(kind, name[:60], known)
        if not name or not value:
            wanted = f"write {name[:60] or 'NAME'}=VALUE, such as {option} {example}"
            raise SpecError(f"{option} {text[:60]}: {wanted}")
        if name in seen and name not in several:
            raise SpecError(f"{option} {name} is given twice; keep one, such as {example}")
        seen.add(name)
        yield name, value


PROVED = ("fp64", "fp32", "bf16", "fp16")
"""Number formats that --formats all tells of."""
_BITS = re.compile(r"p(\d{1,2}):(\d{1,2})")


def formats_named(text: str) -> list[str]:
    """The formats of a list such as "fp64,p12:32", or all. Raises SpecError for a range that is
    none, SizeError for a format without proofs.
    """
    from separatrix.proofs.arithmetic import arithmetic

    found: list[str] = []
    for one in PROVED if text == "all" else text.replace(" ", "").split(","):
        ends = _BITS.fullmatch(one)
        if ":" in one and (ends is None or int(ends[1]) > int(ends[2])):
            raise SpecError(f"--formats {one[:20]}: write a range such as p12:32")
        several = ends and [f"p{bits}" for bits in range(int(ends[1]), int(ends[2]) + 1)]
        found += several or [one]
    return [arithmetic(one).name for one in found]


EVERYWHERE = ("--json", "--import")


def given(asked: Asked) -> list[str]:
    """The options that were given, but those that are the same everywhere."""
    context = asked.ctx
    return [
        option.opts[0]
        for option in context.command.params
        if isinstance(option, click.Option)
        and context.get_parameter_source(str(option.name)) == ParameterSource.COMMANDLINE
        and option.opts[0] not in EVERYWHERE
    ]


def used(asked: Asked, said: str, use: str, words: Sequence[str] | None = None) -> None:
    """Holds a use of a command, in words as `said`, to the table: its options, and the words behind
    it where these are given. Raises SpecError, and UnknownNameError for a use that is none.
    """
    uses = COMMANDS[str(asked.ctx.info_name)]["uses"]
    actions = [one for one in uses if not one.isupper()]
    if words is not None and use not in actions:
        where = f" on `{said.rpartition(' ')[0]}`"
        raise UnknownNameError.of("action", use[:60], actions, where=where)
    takes = uses.get(use, "").split()
    # a word's name, and one that works
    places = dict(one.split(":") for one in takes if ":" in one)
    options = [f"--{one}" for one in takes if ":" not in one]
    for option in given(asked):
        if option not in options:
            known = ", ".join(options) or "no options of its own"
            raise SpecError(f"{option} says nothing to `{said}`, which takes {known}")
    needed = [word for name, word in places.items() if not name.startswith("[")]
    if words is not None and not len(needed) <= len(words) <= len(places):
        wanted = " ".join(places) or "no more words"
        raise SpecError(f"`{said}` takes {wanted}: separatrix {' '.join([said, *needed])}")

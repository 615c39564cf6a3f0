"""Options as data: how commands declare them, those that several take, and sizes of tasks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from inspect import Parameter, Signature
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from click.core import ParameterSource

from separatrix.cli import complete
from separatrix.cli.groups import former_option
from separatrix.cli.printing import print_json, print_text
from separatrix.core.errors import SpecError, Stopped

if TYPE_CHECKING:
    from separatrix.stacks.architecture import Architecture
    from separatrix.stacks.architecture.settings import Settings
    from separatrix.training.sweeps.planning import Plan


KEYWORD, EMPTY = Parameter.KEYWORD_ONLY, Parameter.empty


class Asked(SimpleNamespace):
    """What was asked of a command: the value of each of its options, and the context of click as
    `ctx`.
    """

    if TYPE_CHECKING:
        ctx: typer.Context

        def __getattr__(self, name: str) -> Any: ...


class Declared(NamedTuple):
    """An option or an argument: its type, what it is unless given, and what typer knows of it."""

    kind: Any
    default: Any
    info: Any


def opt(kind: Any, help: str, *flags: str, default: Any = None, **more: Any) -> Declared:
    """An option, --NAME unless it has other flags; None where it is not given and has no
    default.
    """
    own = kind if default is not None else kind | None
    return Declared(own, default, typer.Option(*flags, help=help, **more))


def flag(help: str, *flags: str) -> Declared:
    """A switch, off unless given."""
    return opt(bool, help, *flags, default=False)


def arg(kind: Any, help: str | None = None, *, default: Any = ..., **more: Any) -> Declared:
    """An argument, which must be given unless it has a default."""
    return Declared(kind, default, typer.Argument(help=help, **more))


def command(**declared: Declared) -> Callable[[Callable[[Asked], None]], Callable[..., None]]:
    """Makes a body a command of typer that takes what is declared, in this order."""

    def decorate(body: Callable[[Asked], None]) -> Callable[..., None]:
        kinds: dict[str, Any] = {"ctx": typer.Context}
        for name, one in declared.items():
            kinds[name] = Annotated[one.kind, one.info]
        defaults = {n: one.default for n, one in declared.items() if one.default is not ...}

        @wraps(body)
        def run(ctx: typer.Context | None = None, **values: Any) -> None:
            body(Asked(ctx=ctx, **(defaults | values)))

        run.__annotations__ = kinds
        run.__signature__ = Signature(  # pyright: ignore[reportAttributeAccessIssue]
            [
                Parameter(name, KEYWORD, default=defaults.get(name, EMPTY), annotation=kind)
                for name, kind in kinds.items()
            ]
        )
        return run

    return decorate


WAYS = "a preset or its id on the Hugging Face hub, a config.json or its folder, a spec, or -"
"""What names a model."""
STDIN = "-"
TOKENS_HELP = "131072, 128k (k = 1,024) or 1M (M = 1,048,576)"
CONTEXT = opt(str, f"Tokens of context: {TOKENS_HELP} (default: the model's own, else 8192).")
SET_SIZES = opt(
    list[str],
    "A size by hand, repeatable: mamba2.state=128, dtype=bf16, vocabulary=32000, kv=fp8 or"
    " kv=p4 (the format of keys and values). Wins over the file.",
    "--set",
)
MEMORY = opt(str, "Memory that serves the model, with its unit: 80GiB, 640GB.")
WEIGHTS_HELP = "What the weights take of it, with the unit: 16GiB"
BATCH = opt(int, "Sequences that are decoded together, and share the weights.", default=1)
STORE = Path("sweeps.sqlite")
"""Where runs are kept unless --store says otherwise: beside what the user is doing."""
STORE_FILE = opt(Path, "The SQLite file that keeps the runs.", default=STORE, metavar="FILE")
WHERE = {
    "store": STORE_FILE,
    "engine": opt(
        str,
        "local: processes of this machine; ray: a Ray cluster, found by Ray;"
        " ray://HOST:PORT: the cluster with this head.",
        default="local",
    ),
    "workers": opt(int, "Processes (default: one per core or GPU).", min=1, max=1024),
    "device": opt(str, "cpu, cuda or cuda:N.", default="cpu"),
    "dry_run": flag("Only say what would be trained, and how long.", "--dry-run"),
}
"""Where runs are trained."""
JSON = flag("Print JSON for machines.", "--json")
_RAY = "ray://"


class Where(NamedTuple):
    """Where and how many runs are trained."""

    store: Path
    engine: str
    address: str
    workers: int | None
    device: str
    dry_run: bool

    @classmethod
    def of(cls, asked: Asked) -> Where:
        head = asked.engine.removeprefix(_RAY) if asked.engine.startswith(_RAY) else ""
        kind = "ray" if head else asked.engine
        return cls(asked.store, kind, head, asked.workers, asked.device, asked.dry_run)

    def engine_options(self) -> dict[str, Any]:
        """What `sweep` takes of these."""
        return {name: getattr(self, name) for name in _OF_ENGINES}

    def say_plan(self, title: str, found: Plan, as_json: bool) -> None:
        if as_json:
            print_json(found.to_json())
            return
        print_text(title)
        for name, said in found.rows():
            print_text(f"  {name:<10}  {said}")


_OF_ENGINES = ("store", "engine", "address", "workers", "device")


def stopped(store: Path) -> Exception:
    """How to go on, in one line."""
    return Stopped(
        f"stopped; ended runs and checkpoints are in {store}, and the same command goes on"
    )


WHY = opt(
    str,
    "What stands behind an answer (theorem, numbers, assumptions, source): recall, recall-2,"
    " question-first, needle, needles, copy, induction, hops, composition, 2sum, pairs, equality,"
    " brackets, parity, s5, memory, costs, assumptions or all.",
    metavar="QUESTION",
)


def _import_all(modules: list[str] | None) -> list[str] | None:
    if modules:
        from separatrix.mixers.plugins.load import import_module

        for module in modules:
            import_module(module)
    return modules


IMPORTS = opt(
    list[str],
    "A module or .py file that registers mixers of your own, repeatable.",
    "--import",
    metavar="MODULE",
    callback=_import_all,
)


def tokens(asked: str | None, own: int | None, *, whose: str) -> tuple[int, str]:
    """The context that a card answers at, and who chose it, in words; "" where it was asked for."""
    from separatrix.core.numbers.amounts import DEFAULT_CONTEXT, parse_context

    if asked is not None:
        return parse_context(asked), ""
    return (DEFAULT_CONTEXT, "the default") if own is None else (own, whose)


def stack(
    text: str, *, settings: Settings | None = None, pattern: str | None = None
) -> Architecture:
    """The architecture that a text names; `-` is a config.json or a spec on standard input. Raises
    what `resolve` raises, and SpecError for an input that is empty or too long.
    """
    from separatrix.stacks.architecture.resolve import resolve

    return resolve(named(text), settings=settings, pattern=pattern)


def chosen_sizes(sizes: Sequence[str] | None) -> Settings:
    """The sizes set by hand. Raises what `Settings.parse` raises."""
    from separatrix.stacks.architecture.settings import Settings

    return Settings.parse(sizes or ())


def named(text: str) -> str:
    """The text itself, or standard input where it is `-`."""
    return _read_input() if text.strip() == STDIN else text


def _read_input() -> str:
    from separatrix.stacks.architecture.hf.file import LARGEST_FILE

    # None where a program was started without a standard input
    if sys.stdin is None:
        raise SpecError("standard input is closed; `-` reads a config.json or a spec from it")
    raw = sys.stdin.buffer.read(LARGEST_FILE + 1)
    if len(raw) > LARGEST_FILE:
        raise SpecError(
            f"standard input has more than {LARGEST_FILE // 2**20} MiB; a config.json has less"
        )
    try:
        text = raw.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise SpecError(
            "standard input is no UTF-8 text; `-` reads a config.json or a spec"
        ) from None
    if not text:
        raise SpecError("standard input is empty; `-` reads a config.json or a spec from it")
    return text


# Sizes of a task beside its name: `eva --n 64`, `eva -n 64`, `eva --n=64` and `eva:n=64` are alike.

SIZES = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Settings of a command that takes sizes of a task as further arguments."""
TASK_HELP = "A task with sizes, in one text (seqcomp:L=2,n=64) or beside it (seqcomp --L 2 --n 64)."
TASK = arg(str, TASK_HELP, autocompletion=complete.tasks)


def with_sizes(text: str, context: typer.Context) -> str:
    """A task's text with the sizes that stand beside it on the command line."""
    _check_former(context.args, str(context.info_name))
    return joined(text, context.args, options_of(context))


def split_sizes(words: Sequence[str], command: str) -> tuple[list[str], list[str]]:
    """The words of a command line that stand for themselves, and those that give sizes of a task:
    ["eva", "--n", "8", "sample"] are ["eva", "sample"] and ["--n", "8"]. Raises SpecError for an
    option that the command had once.
    """
    _check_former(words, command)
    own: list[str] = []
    sizes: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == STDIN:
            own.append(word)
            continue
        sizes.append(word)
        if "=" not in word and rest:
            sizes.append(rest.pop(0))
    return own, sizes


def _check_former(words: Iterable[str], command: str) -> None:
    for word in words:
        if word.startswith("--") and (hint := former_option(command, word)):
            raise SpecError(f"{word}: {hint}")


def given(context: typer.Context) -> list[str]:
    """The parameters of a command that were given."""
    names = [str(one.name) for one in context.command.params]
    source = context.get_parameter_source
    return [name for name in names if source(name) == ParameterSource.COMMANDLINE]


def only(context: typer.Context, what: str, taken: Iterable[str]) -> None:
    """Raises SpecError for an option that was given and that this use of a command does not
    take.
    """
    options = {str(one.name): one.opts[0] for one in context.command.params}
    for name in given(context):
        option = options[name]
        if option.startswith("-") and name not in (*taken, "as_json", "imports"):
            takes = ", ".join(options[one] for one in taken) or "no options of its own"
            raise SpecError(f"{option} says nothing to `{what}`, which takes {takes}")


def options_of(context: typer.Context) -> list[str]:
    """The long options of a command, without dashes."""
    found = (option for param in context.command.params for option in param.opts)
    return [option.removeprefix("--") for option in found if option.startswith("--")]


def joined(text: str, more: Sequence[str], options: Iterable[str] = ()) -> str:
    """A task's text with the sizes of further arguments: ["--L", "3", "-n", "64"] or ["--L=3"]
    adds L=3,n=64.

    Raises SpecError for anything else, and for a misspelt name of one of the command's `options`.
    """
    import difflib

    sizes = []
    rest = list(more)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not name:
            raise SpecError(
                f"'{word}' is no size of the task; write sizes as --n 64, or in the text:"
                f" {text.partition(':')[0]}:n=64"
            )
        # short names are sizes (n, V, k), so that only long ones can be misspelt options
        near = difflib.get_close_matches(name, options, n=1, cutoff=0.7) if len(name) > 3 else []
        if near:
            raise SpecError(f"{word} is no option. Did you mean --{near[0]}?")
        if not equals:
            if not rest:
                raise SpecError(f"{word} needs a value; write --{name.rstrip('0123456789')} 64")
            value = rest.pop(0)
        sizes.append(f"{name}={value}")
    from separatrix.tasks.base.described import add_sizes

    return add_sizes(text, sizes)

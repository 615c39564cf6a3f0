"""The command line: its commands, and what becomes of an error.

Exit codes: 0 fine, 1 a check failed, 2 bad input (one line on stderr), 70 an error of this
program, 130 interrupted.
"""

from __future__ import annotations

import errno
import sys
import traceback
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Annotated

import click
import typer
import typer.core

from separatrix import __version__
from separatrix.cli.groups import COMMANDS, EXAMPLES, FORMER, Commands
from separatrix.core.errors import CheckFailed, SeparatrixError, Stopped, printable

BROKEN = 70
INTERRUPTED = 130
OF_MODELS = ("analyze", "compare")
OF_TASKS = ("train", "task", "construct", "refute")
MOST_SHOWN = 2_000
"""Letters of an error that are printed."""
typer.core.HAS_RICH = False  # with it typer escapes the brackets of its plain help, too

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"separatrix {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
) -> None:
    """What a stack of full, linear, log-linear, sparse or hybrid attention provably cannot compute,
    what it provably can, and where training ends up in between.

    What is written goes to a new file or folder: nothing that exists is overwritten. The main job,
    train and task evaluate go on with what they began there.
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; a user's mistake becomes one line on stderr."""
    words = None if arguments is None else list(arguments)
    try:
        code = app(args=words, standalone_mode=False, prog_name="separatrix") or 0
    except Stopped as stop:
        print(printable(str(stop)), file=sys.stderr)
        return INTERRUPTED
    except SeparatrixError as error:
        return _fail(str(error), 1 if isinstance(error, CheckFailed) else 2)
    except click.exceptions.NoArgsIsHelpError as error:
        typer.echo(error.format_message())
        return 0
    except click.ClickException as error:
        return _fail(_misused(error, [*(sys.argv[1:] if words is None else words), ""][0]), 2)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "allocate memory" not in str(error):
            raise
        return _fail(
            "these sizes need more memory than there is; use a smaller n, fewer heads or a smaller"
            " batch",
            2,
        )
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except OSError as error:
        # a full disk behind standard output; files that a command reads or writes say so themselves
        if error.errno != errno.ENOSPC:
            raise
        return _fail(f"the output cannot be written: {error.strerror}", 2)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    if code == INTERRUPTED:  # typer turns Ctrl-C into this exit code
        print("interrupted; nothing is half-written", file=sys.stderr)
    return code


def _misused(error: click.ClickException, command: str) -> str:
    if isinstance(error, click.NoSuchOption):
        name = error.option_name.partition("=")[0]
        if name in FORMER:
            return f"{name} is now {FORMER[name]}"
        # by click's own measure one letter resembles another, and --help everything of two
        error.possibilities = get_close_matches(name, error.possibilities or (), cutoff=0.8)
        setting = name.removeprefix("--").replace("-", "_")
        if not error.possibilities and "set" in COMMANDS.get(command, ()):
            own = f", or gdn.{setting}=VALUE of one mechanism" if command in OF_MODELS else ""
            told = f"if it is a size or a setting: --set {setting}=VALUE{own}"
            return f"No such option: {name}; {told}"
        if not error.possibilities and command in OF_TASKS:
            return f"No such option: {name}; sizes stand in the text: seqcomp:L=2,n=64"
        error.message += "."
    message = " ".join(error.format_message().split()).replace(" (env var: 'None')", "")
    message += "." * (message[-1] not in ".?")
    if isinstance(error, click.MissingParameter) and command in EXAMPLES:
        return f"{message} For example: separatrix {EXAMPLES[command]}"
    more = f"`separatrix {command} --help`" if command in EXAMPLES else "`separatrix --help`"
    return f"{message} {more} lists the options."


def _fail(message: str, code: int) -> int:
    line = printable(" ".join(message.split()))
    shortened = line if len(line) <= MOST_SHOWN else f"{line[: MOST_SHOWN - 3]}..."
    print(f"error: {shortened}", file=sys.stderr)
    return code


def main() -> None:
    try:
        code = run()
    except Exception:
        # Python would exit with 1, which says that a claim does not hold
        traceback.print_exc()
        code = BROKEN
    sys.exit(code)

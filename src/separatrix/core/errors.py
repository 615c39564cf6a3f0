"""The error tree. Every message names the input, the rule it broke and the remedy, on one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def printable(text: str) -> str:
    """A text as a terminal may show it: what does not print (controls, escape sequences, marks that
    turn the direction of writing, halves of characters) becomes its escape; line ends stay.
    """
    if text.isprintable():
        return text
    return "".join(
        letter
        if letter.isprintable() or letter == "\n"
        else letter.encode("unicode_escape", "surrogatepass").decode("ascii")
        for letter in text
    )


class SeparatrixError(Exception):
    """Root of every error a user can cause; the command line prints it on one line and exits
    with 2. A message may quote a file of a stranger, so what does not print is escaped.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(message))


class SpecError(SeparatrixError):
    """A specification (architecture, task, sizes) that does not parse."""


class SizeError(SeparatrixError):
    """A size that is out of range, missing, or does not fit the others."""


_MOST_NAMED, _MOST_MEANT = 24, 4


class UnknownNameError(SeparatrixError):
    """A name that no registry knows."""

    kind: str = ""
    """What the name should have been, such as "mechanism"."""

    @classmethod
    def of(
        cls,
        kind: str,
        name: str,
        known: Iterable[str],
        *,
        where: str = "",
        listing: str = "",
        more: str = "",
    ) -> UnknownNameError:
        """An error for `name`, suggesting names of `known` that hold it, else the nearest; `where`
        tells its place, `listing` the command that lists all, `more` what else may be meant.
        """
        known = sorted(known)
        # names are compared in lower case: somebody who types GDN means gdn
        folded = {one.casefold(): one for one in reversed(known)}
        typed = name.casefold()
        having = sorted(one for one in folded if len(typed) > 2 and typed in one)
        having.sort(key=lambda one: not one.startswith(typed))
        having = having[:1] if typed in folded else having
        near = having[:_MOST_MEANT] or difflib.get_close_matches(typed, folded, n=1)
        left = len(known) - _MOST_NAMED
        named = ", ".join(known[:_MOST_NAMED]) + (f", and {left} more" if left > 0 else "")
        meant = "' or '".join(folded[one] for one in near)
        hint = f"Did you mean '{meant}'?" if near else f"Known: {named}."
        lists = f"`{listing}` lists all." if listing else ""
        told = filter(None, (f"unknown {kind} '{name}'{where}.", hint, lists, more))
        error = cls(" ".join(told))
        error.kind = kind
        return error


class ConfigError(SeparatrixError):
    """A model's config.json that cannot be read without guessing."""


class EvidenceError(SeparatrixError):
    """An evidence file that is damaged, edited, of another version, or not evidence at all."""


class CheckFailed(EvidenceError):
    """Well-formed evidence whose claim is not true; the command line exits with 1."""


class CannotCheck(EvidenceError):
    """Evidence that was not checked, so that nothing is said of its claim: a file beside it is
    missing or no plain file, a mixer of one's own is not imported, or checking would take more
    than the budget. The command line exits with 2.
    """


class OutputError(SeparatrixError):
    """An output that cannot be written."""


class StoreError(SeparatrixError):
    """A store of runs that is missing, locked, damaged, full, read-only or of another version."""


class ClaimLost(StoreError):
    """What was told of runs that somebody else works on by now, or that have ended: nothing of it
    was kept.
    """


class Stopped(SeparatrixError):
    """Ctrl-C, heeded: what was done is saved, and the message says how to go on. The command line
    exits with 130.
    """


class MissingExtraError(SeparatrixError):
    """An optional dependency that is not installed."""

    @classmethod
    def of(cls, feature: str, extra: str) -> MissingExtraError:
        return cls(f"{feature} needs the extra '{extra}': pip install 'separatrix[{extra}]'")


class BackendError(SeparatrixError):
    """Kernels that were asked for by name and cannot run."""


class EngineError(SeparatrixError):
    """Workers that are not to be had: processes that do not start, a device that is not there, a
    cluster that does not answer.
    """


class DriftWarning(UserWarning):
    """A model whose two forms differ by more than its number formats explain."""


class Undecided(SeparatrixError):
    """A comparison that neither integers nor ball arithmetic settled within the precision
    allowed.
    """


def first_line(error: BaseException) -> str:
    """The first line of an error's message, shortened; "" for one without a message."""
    return str(error).partition("\n")[0][:120]

"""Claims in the text of a page: `{{...}}` is computed from the rows, or the page fails.

    Every seed is sooner with the full layer last. {{steps("end") < steps("start") and apart}}
    It took {{steps("end")}} steps.

A comparison is a claim: where it holds it leaves no trace, and where it does not, the page fails. A
number is printed. Cells are named in quotes. A cell that is missing or grey (`results.py`) fails
the page as well, and so does a finding, a line that begins with `- `, without a claim.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from statistics import median
from typing import Any

from separatrix.core.errors import CheckFailed, SpecError, UnknownNameError
from separatrix.findings.results import Cell, Results, middle, shown

CLAIM = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_OF_CELL: dict[str, Callable[[Cell], Any]] = {
    "seeds": lambda cell: len(cell.seeds),
    "solved": lambda cell: cell.solved,
    "steps": lambda cell: middle(cell.to_solve),
    "limit": lambda cell: cell.steps,
    "median": lambda cell: Fraction(median(cell.accuracies)),
    "least": lambda cell: min(cell.accuracies),
    "most": lambda cell: max(cell.accuracies),
}
"""What a claim may ask of a cell. Steps are those to solve it, of the median seed; an unsolved seed
is later than all.
"""


@dataclass(frozen=True)
class Claims:
    """Computes the claims of one page."""

    results: Results
    contrasts: Mapping[tuple[str, str], Fraction | None]
    """By the names of their cells; None for one that is open."""
    where: str
    """The page."""

    def fill(self, text: str, parts: Mapping[str, str], first: int = 1) -> str:
        """The text with its claims computed, and `parts`, such as a table, in place of their names;
        `first` is the number of its first line.

        Raises CheckFailed for a claim that does not hold, SpecError for one that says nothing or is
        about a cell that is grey, and UnknownNameError for a cell that is missing.
        """

        def found(match: re.Match[str]) -> str:
            words = match[1].strip()
            line = first + text.count("\n", 0, match.start())
            return parts[words] if words in parts else self._told(words, f"{self.where}:{line}")

        for number, line in enumerate(text.splitlines(), first):
            if line.startswith("- ") and CLAIM.search(line) is None:
                raise SpecError(f"{self.where}:{number}: a finding without a claim: {line[:60]}")
        return re.sub(r" +\n", "\n", CLAIM.sub(found, text)).rstrip()

    def _told(self, words: str, place: str) -> str:
        said = f"{place}: {{{{{words}}}}}"
        try:
            tree = ast.parse(words, mode="eval").body
        except SyntaxError:
            raise SpecError(f"{said}: this claim cannot be read") from None
        claim = _Claim(self, said)
        value = claim.value(tree)
        if not claim.cells:
            raise SpecError(f"{said} holds whatever was measured")
        if value is False:
            seen = "; ".join(
                f"{cell.name}: {cell.solved} of {len(cell.seeds)} seeds solved it, accuracies"
                f" {', '.join(map(shown, cell.accuracies))}"
                for cell in claim.cells.values()
            )
            raise CheckFailed(f"{said}: the rows do not bear this claim: {seen}")
        return "" if value is True else shown(value)


class _Claim:
    """Computes one claim: names, numbers, comparisons and the functions above, nothing else."""

    def __init__(self, page: Claims, said: str) -> None:
        self._page = page
        self._said = said
        self.cells: dict[str, Cell] = {}
        self._timed = False

    def value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=bool() as word):
                return word
            case ast.Constant(value=int() | float() as number):
                # decimals as they are written
                return Fraction(str(number)) if isinstance(number, float) else number
            case ast.BoolOp(op=joint):
                # of every part: no short way, for each must make sense
                truths = [self._truth(part) for part in node.values]
                return all(truths) if isinstance(joint, ast.And) else any(truths)
            case ast.UnaryOp(op=ast.Not()):
                return not self._truth(node.operand)
            case ast.Compare() if all(type(sign) in _COMPARE for sign in node.ops):
                values = [self.value(part) for part in (node.left, *node.comparators)]
                signs = [_COMPARE[type(sign)] for sign in node.ops]
                return all(sign(*two) for sign, two in zip(signs, pairwise(values), strict=True))
            case ast.Name(id="apart"):
                return self._apart()
            case ast.Call(func=ast.Name(id=name), args=given, keywords=[]):
                return self._call(name, [x.value for x in given if isinstance(x, ast.Constant)])
            case _:
                raise SpecError(
                    f"{self._said}: `{ast.unparse(node)}` says nothing; a claim has"
                    f" {', '.join(_OF_CELL)} of a cell in quotes, p(one, other), apart, numbers"
                    " and comparisons"
                )

    def _truth(self, node: ast.expr) -> bool:
        found = self.value(node)
        if not isinstance(found, bool):
            raise SpecError(f"{self._said}: `{ast.unparse(node)}` is a number and no claim")
        return found

    def _call(self, name: str, names: list[object]) -> Any:
        cells = [self._cell(one, paired=name == "p") for one in names]
        if name == "p" and len(cells) == 2:
            key = (cells[0].name, cells[1].name)
            if key not in self._page.contrasts:
                raise SpecError(f"{self._said}: the contrast was not named before the first run")
            if (p := self._page.contrasts[key]) is None:
                raise SpecError(f"{self._said}: the contrast is open, so nothing follows from it")
            return p
        if name not in _OF_CELL or len(cells) != 1:
            raise SpecError(f"{self._said}: `{name}` takes one cell in quotes, or is no function")
        self._timed |= name in ("steps", "solved")
        return _OF_CELL[name](cells[0])

    def _cell(self, name: object, *, paired: bool) -> Cell:
        results = self._page.results
        found = results.cells.get(str(name))
        if found is None:
            where = f" in {self._said}"
            raise UnknownNameError.of("cell", str(name)[:80], results.cells, where=where)
        # a contrast that is not open was trained to the end, of its two cells
        if not paired and (reason := results.grey(found)):
            raise SpecError(f"{self._said}: '{name}' is grey and feeds no sentence: {reason}")
        self.cells[found.name] = found
        return found

    def _apart(self) -> bool:
        """Whether every seed of one of the claim's two cells is before every seed of the other: in
        steps to solve where the claim is about these, else in accuracy.
        """
        if len(self.cells) != 2:
            raise SpecError(f"{self._said}: `apart` is of two cells, named before it")
        one, other = (
            cell.to_solve if self._timed else cell.accuracies for cell in self.cells.values()
        )
        return max(one) < min(other) or max(other) < min(one)

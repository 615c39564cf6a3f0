"""Claims in the text of a page: `{{...}}` is computed from the rows, or the page fails.

    The median seed is sooner with the full layer last. {{steps("end") < steps("start")}}
    It took {{steps("end")}} steps.

Comparisons are a claim: where they hold they leave no trace, and where not, the page fails. A
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
from separatrix.findings.results import Cell, Results, shown

CLAIM = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
}
_OF_CELL: dict[str, Callable[[Cell], Any]] = {
    "seeds": lambda cell: len(cell.seeds),
    "solved": lambda cell: cell.solved,
    "steps": lambda cell: median(cell.to_solve),
    "median": lambda cell: Fraction(median(cell.accuracies)),
    "longest": lambda cell: median(cell.at_longest.values() or [Fraction(0)]),
}
"""What a claim may ask of a cell. Steps are those to solve it, of the median seed; an unsolved seed
is later than all. Answers at the longest size are of the median seed that solved it at its own.
"""


@dataclass(frozen=True)
class Claims:
    """Computes the claims of one page."""

    results: Results
    contrasts: Mapping[frozenset[str], tuple[Fraction, str]]
    """Those that are not open, by the names of their cells: p, and the cell that is ahead."""
    where: str
    """The page."""

    def fill(self, text: str, parts: Mapping[str, str]) -> str:
        """The text with its claims computed, and `parts`, such as a table, in place of their names.

        Raises CheckFailed for a claim that does not hold, SpecError for one that says nothing or is
        about a cell that is grey, and UnknownNameError for a cell that is missing.
        """

        def found(match: re.Match[str]) -> str:
            words = match[1].strip()
            line = 1 + text.count("\n", 0, match.start())
            return parts[words] if words in parts else self._told(words, f"{self.where}:{line}")

        for number, line in enumerate(text.splitlines(), 1):
            if line.startswith("- ") and CLAIM.search(line) is None:
                raise SpecError(f"{self.where}:{number}: a finding without a claim: {line[:60]}")
        return re.sub(r" +\n", "\n", CLAIM.sub(found, text)).strip()

    def _told(self, words: str, place: str) -> str:
        claim = _Claim(self, f"{place}: {{{{{words}}}}}")
        try:
            value = claim.value(ast.parse(words, mode="eval").body)
        except SyntaxError:
            raise SpecError(f"{claim.said}: this claim cannot be read") from None
        if not claim.cells:
            raise SpecError(f"{claim.said} holds whatever was measured")
        if value is False:
            seen = "; ".join(
                f"{cell.name}: {cell.solved} of {len(cell.seeds)} seeds solved it, accuracies"
                f" {', '.join(map(shown, cell.accuracies))}"
                for cell in claim.cells.values()
            )
            raise CheckFailed(f"{claim.said}: the rows do not bear this claim: {seen}")
        return "" if value is True else shown(value)


class _Claim:
    """Computes one claim: names, numbers, comparisons and the functions above, nothing else."""

    def __init__(self, page: Claims, said: str) -> None:
        self._page = page
        self.said = said
        self.cells: dict[str, Cell] = {}

    def value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int() | float() as number) if type(number) is not bool:
                # decimals as they are written
                return Fraction(str(number))
            case ast.BoolOp(op=ast.And()):
                # of every part: no short way, for each must make sense
                truths = [self.value(part) for part in node.values]
                if {*map(type, truths)} != {bool}:
                    raise SpecError(f"{self.said}: a number is no claim")
                return all(truths)
            case ast.Compare() if all(type(sign) in _COMPARE for sign in node.ops):
                values = [self.value(part) for part in (node.left, *node.comparators)]
                signs = [_COMPARE[type(sign)] for sign in node.ops]
                return all(sign(*two) for sign, two in zip(signs, pairwise(values), strict=True))
            case ast.Call(func=ast.Name(id="p"), args=[ast.Constant(one), ast.Constant(other)]):
                return self._p(self._cell(one), self._cell(other))
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant(of)]) if name in _OF_CELL:
                cell = self._cell(of)
                if reason := self._page.results.grey(cell):
                    raise SpecError(f"{self.said}: '{of}' is grey and feeds no sentence: {reason}")
                return _OF_CELL[name](cell)
            case _:
                raise SpecError(
                    f"{self.said}: `{ast.unparse(node)}` says nothing; a claim has"
                    f" {', '.join(_OF_CELL)} of a cell in quotes, p(ahead, behind), numbers,"
                    " comparisons, and"
                )

    def _p(self, one: Cell, other: Cell) -> Fraction:
        """Of a contrast, that the first cell is ahead; 1 where the other one is."""
        found = self._page.contrasts.get(frozenset((one.name, other.name)))
        if found is None:
            raise SpecError(
                f"{self.said}: the contrast is open or was not named before the first run, so"
                " nothing follows from it"
            )
        return found[0] if found[1] == one.name else Fraction(1)

    def _cell(self, name: object) -> Cell:
        cells = self._page.results.cells
        if name not in cells:
            where = f" in {self.said}"
            raise UnknownNameError.of("cell", str(name)[:80], cells, where=where)
        return self.cells.setdefault(str(name), cells[str(name)])

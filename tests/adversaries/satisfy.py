"""Does a protocol of these sizes exist? Every message function is an unknown table, every prompt a
constraint; a SAT solver decides.

The protocol's own code runs on unknowns instead of integers, so what is searched is what is run. A
protocol that is found is returned as tables and can be run; that there is none rests on the solver.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import product
from typing import Any

from pysat.solvers import Cadical153

from separatrix.protocols.tables import Tables, found

Unknown = tuple[int, ...]
"""One literal per value of a message, exactly one of them true."""
Cell = tuple[str, Hashable, tuple[int, ...]]

_TRUE = 1


class UnknownTables:
    """Tables whose entries are unknowns of a solver. Values of the messages in `interchangeable`
    may be renamed freely, so of all their namings only the one by first use, in the order of the
    first questions, is searched; each setting of `told` and of `known` but its last part for
    itself.
    """

    def __init__(self, *, interchangeable: Iterable[str] = ()) -> None:
        # a literal that is always true stands for messages of one value
        self._clauses: list[list[int]] = [[_TRUE]]
        self._count = _TRUE
        self._cells: dict[Cell, Unknown] = {}
        self._messages: dict[tuple[str, Hashable, tuple[Unknown, ...]], Unknown] = {}
        self._ordered = frozenset(interchangeable)
        self._used: dict[tuple[str, Hashable, tuple[int, ...]], Unknown] = {}

    def __call__(self, name: str, known: Hashable, told: tuple[Unknown, ...], size: int) -> Unknown:
        if size == 1:
            return (_TRUE,)
        key = (name, known, told)
        if key not in self._messages:
            self._messages[key] = self._message(name, known, told, size)
        return self._messages[key]

    def require(self, message: Unknown, value: int) -> None:
        """Only tables whose message has this value are searched."""
        self._clauses.append([message[value]])

    def forbid(self, literals: list[int]) -> None:
        """At least one of these literals is false."""
        self._clauses.append([-literal for literal in literals])

    def solve(self) -> Tables[int] | None:
        """Tables that meet every constraint, or None if there are none."""
        with Cadical153(bootstrap_with=self._clauses) as solver:
            if not solver.solve():
                return None
            model: Any = solver.get_model()
        true = {literal for literal in model if literal > 0}
        return found(
            {
                cell: next(i for i, literal in enumerate(unknown) if literal in true)
                for cell, unknown in self._cells.items()
            }
        )

    def _message(self, name: str, known: Hashable, told: tuple[Unknown, ...], size: int) -> Unknown:
        if all(len(unknown) == 1 for unknown in told):
            return self._cell((name, known, (0,) * len(told)), size)
        message = self._fresh(size)
        for values in product(*(range(len(unknown)) for unknown in told)):
            not_told = [
                -unknown[value]
                for unknown, value in zip(told, values, strict=True)
                if len(unknown) > 1
            ]
            # told these values, the message is what the cell holds
            cell = self._cell((name, known, values), size)
            self._clauses += [
                [*not_told, -entry, literal] for entry, literal in zip(cell, message, strict=True)
            ]
        return message

    def _cell(self, cell: Cell, size: int) -> Unknown:
        if cell not in self._cells:
            self._cells[cell] = unknown = self._fresh(size)
            if cell[0] in self._ordered:
                self._by_first_use(cell, unknown)
        return self._cells[cell]

    def _fresh(self, size: int) -> Unknown:
        unknown = self._literals(size)
        # at least one of them, and no two
        self._clauses.append(list(unknown))
        self._clauses += [[-a, -b] for i, a in enumerate(unknown) for b in unknown[:i]]
        return unknown

    def _literals(self, size: int) -> Unknown:
        self._count += size
        return tuple(range(self._count - size + 1, self._count + 1))

    def _by_first_use(self, cell: Cell, entry: Unknown) -> None:
        """Value v > 0 only where v - 1 was used by an earlier cell of this table; values may be
        renamed in each table by itself.
        """
        name, known, values = cell
        parts = (
            known
            if isinstance(known, tuple) and known and isinstance(known[-1], tuple)
            else (known,)
        )
        table = (name, parts[:-1], values)
        before = self._used.get(table)
        used = self._literals(len(entry))
        for v, literal in enumerate(entry):
            if v:
                self._clauses.append([-literal, before[v - 1]] if before else [-literal])
            # true only if this cell or an earlier one has the value: the converse is not needed
            self._clauses.append([-used[v], literal, *((before[v],) if before else ())])
        self._used[table] = used


def satisfy(
    run: Callable[[UnknownTables], Iterable[tuple[Unknown, int]]],
    *,
    interchangeable: Iterable[str] = (),
) -> Tables[int] | None:
    """Tables with which every (answer, right answer) of `run` agrees, or None if there are none."""
    tables = UnknownTables(interchangeable=interchangeable)
    for answer, right in run(tables):
        tables.require(answer, right)
    return tables.solve()

"""What the facts of a prompt say, hop by hop, and whether they are those of an instance."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.core.errors import SizeError
from separatrix.tasks.text.names import names
from separatrix.tasks.text.reader import Fact, Reading
from separatrix.tasks.text.relations import Relation

Table = dict[str, Fact]
"""Facts by subject."""


def facts_per_chain(k: int, decoys: int) -> int:
    """k facts; with decoys one beside each and one that leads on."""
    return 2 * k + 1 if decoys else k


def names_needed(k: int, n: int, decoys: int) -> int:
    """Names of n facts: k + 1 for every whole chain and those of a shorter one; with decoys k + 2
    and two for each fact left over.
    """
    whole, rest = divmod(n, facts_per_chain(k, decoys))
    if decoys:
        return whole * (k + 2) + 2 * rest
    return whole * (k + 1) + (rest + 1 if rest else 0)


def most_facts(k: int, decoys: int) -> int:
    """The largest n up to which there are names for every one."""
    every = len(names())
    each = facts_per_chain(k, decoys)
    # from the last number of chains that leave names for all facts left over
    n = (every - 2 * each) // (k + 1 + decoys) * each
    while names_needed(k, n + 1, decoys) <= every:
        n += 1
    return n


@dataclass(frozen=True, kw_only=True)
class Told:
    """What an instance of n facts and k hops has to tell: `decoys` are the other relations of the
    hops, none where there are none, and `onward` those that may follow.
    """

    spec: str
    k: int
    n: int
    decoys: tuple[Relation, ...]
    onward: tuple[Relation, ...]
    way: int
    order: str

    @property
    def _chains(self) -> int:
        return self.n // facts_per_chain(self.k, bool(self.decoys))

    def tables(self, reading: Reading) -> list[Table]:
        """For every hop its facts by subject, or SizeError where they are ambiguous or not those
        of an instance.
        """
        hop_of = {hop.sentence: place for place, hop in enumerate(reading.hops)}
        decoy_of = {decoy.sentence: place for place, decoy in enumerate(self.decoys)}
        further = {relation.sentence for relation in self.onward}
        tables: list[Table] = [{} for _ in reading.hops]
        decoys: list[Table] = [{} for _ in reading.hops]
        onward: Table = {}
        order: list[int] = []
        for fact in reading.facts:
            if fact.sentence in hop_of:
                order.append(hop_of[fact.sentence])
                table = tables[order[-1]]
            elif fact.sentence in decoy_of:
                order.append(decoy_of[fact.sentence])
                table = decoys[order[-1]]
            elif fact.sentence in further:
                order.append(self.k)
                table = onward
            else:
                raise SizeError(
                    f"{self.spec}: '{fact.text}' tells of a relation that is no hop of the question"
                )
            other = table.setdefault(fact.subject, fact)
            if other is not fact:
                what = (
                    "stands twice" if other.object == fact.object else f"contradicts '{other.text}'"
                )
                raise SizeError(f"{self.spec}: '{fact.text}' {what}")
        if len(order) != self.n:
            raise SizeError(
                f"{self.spec}: the prompt has {len(order)} facts; an instance has n={self.n}"
            )
        self._check_chains(tables)
        if self.decoys:
            for hop, (table, beside) in enumerate(zip(tables, decoys, strict=True)):
                self._check_decoys(hop, table, beside)
            self._check_onward(tables[-1], onward)
        self._check_names([*tables, onward])
        if self.way and order != sorted(order, key=lambda hop: self.way * hop):
            raise SizeError(
                f"{self.spec}: the facts do not stand in the order of facts={self.order}"
            )
        return tables

    def _check_chains(self, tables: list[Table]) -> None:
        """Raises SizeError unless the facts form whole chains, and without decoys one of the
        rest.
        """
        for hop, table in enumerate(tables):
            due = self._chains + (not self.decoys and hop < self.n % self.k)
            if len(table) != due:
                raise SizeError(
                    f"{self.spec}: {len(table)} facts are of hop {hop + 1}; an instance has {due}"
                )
            reached = _objects(tables[hop - 1]) if hop else table.keys()
            if not table.keys() <= reached:
                raise SizeError(
                    f"{self.spec}: no fact of hop {hop} leads to {min(table.keys() - reached)}; its"
                    " chain is broken"
                )

    def _check_decoys(self, hop: int, table: Table, decoys: Table) -> None:
        """Raises SizeError unless the decoys lead every subject of the hop to another's object."""
        if decoys.keys() != table.keys() or _objects(decoys) != _objects(table):
            raise SizeError(
                f"{self.spec}: the decoys of hop {hop + 1} do not join its subjects to its objects"
            )
        for subject, fact in decoys.items():
            if fact.object == table[subject].object:
                raise SizeError(
                    f"{self.spec}: '{fact.text}' leads where '{table[subject].text}' does; a decoy"
                    " leads to another chain"
                )

    def _check_onward(self, last: Table, onward: Table) -> None:
        """Raises SizeError unless one relation leads on from the end of every chain."""
        if len({fact.sentence for fact in onward.values()}) != 1:
            raise SizeError(f"{self.spec}: the ends of chains do not lead on by one relation")
        if left := _objects(last) - onward.keys():
            raise SizeError(f"{self.spec}: no fact leads on from {min(left)}, the end of a chain")

    def _check_names(self, tables: list[Table]) -> None:
        """Raises SizeError unless all things have names of their own."""
        things = {name for table in tables for name in (*table, *_objects(table))}
        if len(things) != names_needed(self.k, self.n, bool(self.decoys)):
            raise SizeError(
                f"{self.spec}: two things bear one name, or two chains meet; the names of an"
                " instance are distinct"
            )


def _objects(table: Table) -> set[str]:
    return {fact.object for fact in table.values()}

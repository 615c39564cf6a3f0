"""Theorem R: windows forget. A windowed layer's tokens are no memory: far enough behind a cut only
recurrent states have passed, so that they alone must tell prefixes apart.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.accuracy import WHOLE, highest_accuracy, stored_accuracy
from separatrix.core.numbers.binomials import Arrangements, Binomial, BinomialSum
from separatrix.core.numbers.counts import Count, Exact, Power, Product, Sum
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.forgetting import Forgetting, Lags
from separatrix.tasks import MQAR, Counting, Disjointness, Dyck, Equality, Recall, Task, TwoSum
from separatrix.tasks.base.layout import Table
from separatrix.tasks.tracking import tracked
from separatrix.theory.base import FAILS, MASKS, Theorem, first_failing, number, size_in_words
from separatrix.theory.fails.a_accuracy import TheoremA, more_than
from separatrix.theory.words import counted_as


class Cut(NamedTuple):
    """Prefixes that a task tells apart where it is cut, and what passes of them."""

    lost: Forgetting
    contents: Count
    table: Table | None = None
    """The facts, where the cut goes through them; None where a whole prefix is cut off."""

    @property
    def facts(self) -> int:
        """Facts before the cut."""
        return 0 if self.table is None else self.lost.cut // self.table.tokens

    @property
    def said(self) -> str:
        """What stands before it, in words."""
        if self.table is None:
            return f"{self.contents} prefixes of {counted_as(self.lost.cut, 'token')}"
        within = self.table.number - self.facts
        last = f", before {counted_as(within, 'fact')} more" if within else ""
        return f"{self.contents} lists of {counted_as(self.facts, 'fact')} of {_each(self)}{last}"


class TheoremR(Theorem):
    key = "R"
    shows = FAILS
    masked = True
    after_thought = True
    # a longer prompt can be cut at the same place, and has more tokens behind it
    larger_fail_too = True

    def shown(self, verdict: Verdict, task: Task) -> dict[str, str]:
        return super().shown(verdict, task) | _shown(verdict, task)

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        lags = Lags.of(architecture)
        if lags is None:
            return None
        least = self._least(lags, task)
        grows = task.family().grows
        cut = cut_of(lags, task)
        if least is not None and (cut is None or least.sizes()[grows] <= task.sizes()[grows]):
            # what fails at a smaller size fails here as well, cut at the same place
            cut = cut_of(lags, least)
        counted = task.prefix_classes() is not None
        if cut is None or (counted and not _forgets(cut.lost, architecture)):
            return None
        decisive = least is None or least.sizes()[grows] <= task.sizes()[grows]
        sign = cut.contents.compare_bits(cut.lost.bits)
        if least is None and not sign.positive:
            return None
        fails = decisive and sign.positive
        n, since = self.since(task, least)
        tells = "cannot tell" if sign.positive else "could tell"
        where = "" if decisive or not sign.positive else "at that size "
        reach = number(cut.lost.reach)
        # what is written between two questions may tell the later one what windows have lost
        written = " behind the prompt" * isinstance(task, MQAR)
        passes = f", all that passes beyond {reach} tokens," if cut.lost.reach else ""
        sentence = (
            f"{number(cut.lost.bits)} bits of state{passes} {where}{tells} {cut.said} apart (log2 ="
            f" {cut.contents.log2_str()}); {since}, with or without chain of thought{written}"
        )
        return self.verdict(
            architecture,
            task,
            "FAILS" if fails else "OPEN",
            sentence,
            n=n,
            numbers=_numbers(cut),
            sign=sign,
        )

    def _least(self, lags: Lags, task: Task) -> Task | None:
        """The smallest task of the family that is seen to fail; larger ones do, too."""

        def bites(larger: Task) -> bool:
            cut = cut_of(lags, larger)
            return cut is not None and cut.contents.exceeds_bits(cut.lost.bits)

        return first_failing(task, bites) if task.family().keeps_prefixes else None


class TheoremRAccuracy(TheoremA):
    key = "R-accuracy"
    anywhere = False
    masked = True

    def shown(self, verdict: Verdict, task: Task) -> dict[str, str]:
        return super().shown(verdict, task) | _shown(verdict, task)

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        facts = task.facts()
        table = task.table()
        # a sampler that asks for some of the facts only may ask for those within reach
        if facts is None or table is None or facts.number != table.number:
            return None
        lags = Lags.of(architecture)
        lost = lags and lags.latest(
            every=table.tokens,
            most=table.number,
            beyond=table.answered - 1,
            # what follows the facts may depend on the place that is asked for
            handed=lambda _: table.length,
        )
        if lost is None or not _forgets(lost, architecture):
            return None
        N, V = facts.number, facts.values
        far = lost.cut // table.tokens
        near = N - far
        contents = Arrangements(V - near, far) if facts.different else Power(V, far)
        cut = Cut(lost, contents, table)
        sign = contents.compare_bits(lost.bits)
        if not sign.positive:
            return None
        # of accuracies in whole millionths, rounded up again
        best = highest_accuracy(contents, far, V, lost.bits)
        ceiling = -(-(near * WHOLE + far * best) // N)
        sentence = (
            f"at {number(N)} {'different ' * facts.different}facts of {_each(cut)}, each one of"
            f" {number(V)} values, no weights answer {more_than(ceiling, task)}, with or without"
            f" chain of thought: beyond {number(lost.reach)} tokens only {number(lost.bits)} bits"
            f" of state pass of {contents} lists of the first"
            f" {number(far)} (log2 = {contents.log2_str()})"
        )
        numbers = _numbers(cut) | {
            "facts": N,
            "values": V,
            "different": int(facts.different),
            "ceiling_millionths": ceiling,
            "stored_millionths": (near * WHOLE + far * stored_accuracy(far, V, lost.bits)) // N,
        }
        return self.verdict(
            architecture,
            task,
            "FAILS",
            sentence,
            n=size_in_words(task)[1],
            numbers=numbers,
            sign=sign,
        )


def cut_of(lags: Lags, task: Task) -> Cut | None:
    """The latest cut behind which a task's answers are free of the windows; None where no prefixes
    of it are known to be told apart so.
    """
    same = alike_behind(task)
    found = same and lags.latest(
        every=same.every, most=same.most, beyond=same.answered - 1, handed=same.shared
    )
    return Cut(found, same.contents(found.cut), same.table) if same and found else None


class Alike(NamedTuple):
    """Prefixes of c tokens, c = `every`, 2 `every`, ..., that are told apart two by two by
    continuations which begin with the same tokens.
    """

    contents: Callable[[int], Count]
    """How many there are of c tokens."""
    most: int
    """The largest c over `every`."""
    shared: Callable[[int], int]
    """Up to which token of the prompt all continuations are the same, behind a prefix of c."""
    answered: int
    every: int = 1
    table: Table | None = None


def alike_behind(task: Task) -> Alike | None:
    """Such prefixes of a task; None where none are known here.

    Facts: any of them may be asked for, of MQAR in the last of its queries. Products: the same
    letters behind two different ones keep them different. Two strings: the first c bits differ, the
    rest of the first string is the same, and the second string tells. Brackets: c that open, then
    pairs that close at once, then c that close in turn; where more may be open, pairs one deeper.
    Counting: c symbols, then one and the same. Recall: c / 2 pairs of all keys but one, and that
    one again and again, with which a shorter list of last writes is filled up. 2-Sum: c values of
    all classes but one, and one value of that; a decision takes one of each class at most.
    """
    n, table, moved = task.asked.length, task.table(), tracked(task)

    def until(token: int) -> Callable[[int], int]:
        return lambda c: token

    def but_for_as_many(c: int) -> int:
        return n - c

    if table is not None:
        values, number, each = partial(_lists, task, table), table.number, table.tokens
        if isinstance(task, MQAR):
            # behind filler and all other queries each fact of the prefix, one of them last; what
            # stands at the end answers nothing
            return Alike(values, number, but_for_as_many, n - 1, each, table)
        return Alike(values, number, until(table.asked), table.answered, each, table)
    if moved is not None:

        def products(c: int) -> Count:
            return Exact(min(moved.order, moved.added * c + 1) if moved.added else moved.order)

        return Alike(products, task.length - 1, until(task.length), task.length)
    match task:
        case Equality(n=bits) | Disjointness(n=bits):
            return Alike(partial(Power, 2), bits, until(bits), n)
        case Dyck(k=k, D=deepest) if k > 1:

            def closing(c: int) -> int:
                return but_for_as_many(c) if c < deepest else c

            return Alike(partial(Power, k), min(deepest, n // 2), closing, n)
        case Counting(n=symbols, V=kinds):
            return Alike(partial(_multisets, kinds), symbols, until(symbols), n)
        case Recall(n=pairs, K=keys, V=kinds, form="last", question="last"):
            return Alike(partial(_some, keys - 1, kinds, 2), pairs, until(n - 1), n, every=2)
        case TwoSum(form="query", M=residues):
            return Alike(partial(_some, residues - 1, 1, 1), n - 1, until(n - 1), n)
        case TwoSum(pairs=classes) if classes > 1:
            return Alike(partial(_some, classes - 1, 2, 1), n - 1, until(n - 1), n)
        case _:
            contents = task.prefix_classes()
            if contents is None or task.several:
                return None
            # continuations share no tokens, and what is written comes behind the prompt
            whole = task.prefix_length

            def classes_of(c: int, found: Count = contents) -> Count:
                return found

            return Alike(classes_of, 1, until(whole), n, every=whole)


def _lists(task: Task, table: Table, c: int) -> Count:
    """What the first facts may say: their values, and their keys where one may be absent."""
    facts = c // table.tokens
    values = Power(table.values, facts)
    if not isinstance(task, Recall) or task.form != "absent":
        return values
    # those behind the cut have keys that stay the same
    return Product((Binomial(task.K - table.number + facts, facts), values))


def _multisets(V: int, c: int) -> Count:
    return Exact(c + 1) if V == 2 else Binomial(c + V - 1, V - 1)


def _some(things: int, states: int, each: int, c: int) -> Count:
    """How many ways there are to take some of so many things, each in one of so many states, with
    so many tokens each, c at most.
    """
    most = min(things, c // each)
    return Sum(((1, BinomialSum(things, most, states)), (1, Exact(1)))) if most else Exact(1)


def _numbers(cut: Cut) -> dict[str, int]:
    lost = cut.lost
    each = {} if cut.table is None else {"beyond": cut.facts, "tokens_each": cut.table.tokens}
    return {
        "cut": lost.cut,
        "reach": lost.reach,
        "handed": lost.handed - lost.cut,
        "state_bits": lost.bits,
    } | each


def _each(cut: Cut) -> str:
    return counted_as(1 if cut.table is None else cut.table.tokens, "token")


def _shown(verdict: Verdict, task: Task) -> dict[str, str]:
    """What the words of all three name beside numbers."""
    masked = [text.partition(":")[0] for text in verdict.assumptions if text.startswith(MASKS)]
    cut, bits = verdict.numbers["cut"], verdict.numbers["state_bits"]
    return {
        "first": "first token" if cut == 1 else f"first {number(cut)} tokens",
        "left": f"{number(bits)} bits of state" if bits else "nothing",
        "what": "windows" if masked else "its layers",
        "each": counted_as(verdict.numbers.get("tokens_each", 1), "token"),
        "masked": "".join(f"; assumes that {text}" for text in masked),
    }


def _forgets(lost: Forgetting, architecture: Architecture) -> bool:
    # else Theorems I and A say the same
    return lost.reach > 0 or lost.bits < architecture.cache_bits(lost.cut)

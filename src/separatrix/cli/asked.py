"""The questions of the command line in Python: texts or objects in, answers that show themselves.

An answer is a line in a console, in print() and in a notebook what the command prints, as data what
`--json` prints, and rows for a data frame.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from separatrix.cards import CardFacts, card_facts
from separatrix.cards.apart import Curve, few_contexts, recall_curve
from separatrix.cards.costs import Serving
from separatrix.cards.design.search import DesignResult
from separatrix.cards.design.search import design as search
from separatrix.cards.design.space import Choices, space_of, task_for_context
from separatrix.cards.facts import MEASURED
from separatrix.cli.printing import Answer
from separatrix.cli.report.card import card_document, card_json, tokens, why_document
from separatrix.cli.report.compare import compare_json, compared_why_document, comparison_document
from separatrix.core.document import Document, Table
from separatrix.core.errors import MissingExtraError, SizeError, UnknownNameError
from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.amounts import DEFAULT_CONTEXT, parse_bits, parse_context
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.resolve import Stack, stack_of
from separatrix.tasks import Task, task_of
from separatrix.theory import judge as decide
from separatrix.theory.base import Theorem

WIDTH = 100


class Shown(Answer):
    """An answer, and the ways to look at it."""

    @abstractmethod
    def rows(self) -> Sequence[dict[str, Any]]:
        """The answer as rows with the same keys."""

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame. Raises MissingExtraError without pandas."""
        try:
            from pandas import DataFrame
        except ImportError:
            raise MissingExtraError("a data frame needs pandas: pip install pandas") from None
        return DataFrame(list(self.rows()))

    def __str__(self) -> str:
        return self.document().text(WIDTH)

    def _repr_html_(self) -> str:
        return self.document().page()


class Verdicts(list[Verdict], Shown):
    """What theorems say of a stack on a task, the strongest first."""

    def __repr__(self) -> str:
        if not self:
            return "no theorem that was asked says anything"
        first = self[0]
        more = f" (and {len(self) - 1} more)" if len(self) > 1 else ""
        return f"{first.status} by {first.theorem}: {first.statement}{more}"

    def document(self) -> Document:
        return Document(Table([(one.status, one.theorem, one.statement) for one in self]))

    def to_json(self) -> list[Any]:
        return [one.envelope() for one in self]

    def rows(self) -> list[dict[str, Any]]:
        names = ("architecture", "task", "status", "theorem", "n", "statement")
        return [{name: getattr(one, name) for name in names} for one in self]


@dataclass(frozen=True, repr=False)
class Cards(Shown):
    """One model's card, or several side by side."""

    facts: tuple[CardFacts, ...]
    stacks: tuple[Architecture, ...]
    why: str = ""
    """The question or topic that is opened in place of the screen, or `MEASURED`: what training
    found of these very layouts is told as well; "" for none.
    """

    @property
    def measured(self) -> bool:
        return self.why == MEASURED

    @classmethod
    def of(
        cls,
        stacks: Sequence[Architecture],
        context: int,
        *,
        chosen: str = "",
        serving: Serving | None = None,
        why: str = "",
    ) -> Cards:
        """At one context, who chose it, and what they are served with."""
        served = serving or Serving()
        facts = (card_facts(one, context, context_from=chosen, serving=served) for one in stacks)
        return cls(tuple(facts), tuple(stacks), why)

    def __repr__(self) -> str:
        said: list[str] = []
        for one in self.facts:
            told = ", ".join(f"{row.asks.strip()} {row.status}" for row in one.table[:3])
            said.append(f"{one.name}: {told or 'nothing that is asked has room'}")
        return f"at {tokens(self.facts[0].context)}: {'; '.join(said)}"

    def document(self) -> Document:
        one, *others = self.facts
        why = "" if self.measured else self.why
        if not others:
            shown = why_document(one, why) if why else card_document(one)
        elif why:
            shown = compared_why_document(self.facts, self._curves(), why)
        else:
            shown = comparison_document(self.facts)
        if self.measured:
            from separatrix.cli.report.tried import measured_document

            shown += measured_document(self.stacks, one.context)
        return shown

    def to_json(self) -> dict[str, Any]:
        one, *others = self.facts
        found = compare_json(self.facts, self._curves()) if others else card_json(one)
        if self.measured:
            from separatrix.cli.report.tried import measured_json

            found |= measured_json(self.stacks, one.context)
        return found

    def _curves(self) -> list[Curve]:
        """What each recalls at the most, over contexts."""
        contexts = few_contexts(self.stacks, self.facts[0].context)
        return [recall_curve(stack, contexts) for stack in self.stacks]

    def rows(self) -> list[dict[str, Any]]:
        return [
            {
                "model": facts.name,
                "context": facts.context,
                "question": row.asks.strip(),
                "status": row.status,
                "decides": row.decides,
                "theorem": row.theorem,
            }
            for facts in self.facts
            for row in facts.table
        ]


@dataclass(frozen=True, repr=False)
class Designs(Shown):
    """Layouts within a budget of cache: those that provably do the tasks, and those that no theorem
    excludes.
    """

    result: DesignResult

    def __repr__(self) -> str:
        found = self.result
        return f"{len(found.proved)} proved sufficient, {len(found.not_excluded)} not excluded"

    def document(self) -> Document:
        from separatrix.cli.report.pareto import design_document

        return design_document(self.result)

    def to_json(self) -> dict[str, Any]:
        from separatrix.cli.report.pareto import design_json

        return design_json(self.result)

    def rows(self) -> list[dict[str, Any]]:
        groups = {"proved": self.result.proved, "not excluded": self.result.not_excluded}
        return [
            {
                "status": status,
                "layout": point.layout.architecture.spec,
                "cache_bits": point.cost.cache_bits,
                "flops": point.cost.flops,
            }
            for status, points in groups.items()
            for point in points
        ]


def judge(
    stack: Stack,
    task: str | Task,
    *,
    among: Callable[[Theorem], bool] | None = None,
) -> Verdicts:
    """What every theorem, or those `among` them, says of a stack (spec, preset, path of a
    config.json) on a task at its size. Raises what `resolve` and `parse_task` raise.
    """
    return Verdicts(decide(stack_of(stack), task_of(task), among=among))


def analyze(model: Stack, context: int | str | None = None) -> Cards:
    """A model's card at a context in tokens ("128k"); its own longest, or 8,192, where none is
    given. Raises what `resolve` raises, and SizeError for no context.
    """
    return _cards([model], context)


def compare(*models: Stack, context: int | str | None = None) -> Cards:
    """What separates models at one context in tokens; where none is given, the smallest of their
    own. Raises what `resolve` raises, and SizeError for fewer than two models and for no context.
    """
    if len(models) < 2:
        raise SizeError("compare needs at least two models; sx.analyze shows one")
    return _cards(models, context)


def _cards(models: Sequence[Stack], context: int | str | None) -> Cards:
    stacks = [stack_of(model) for model in models]
    own = min((one.context for one in stacks if one.context is not None), default=DEFAULT_CONTEXT)
    return Cards.of(stacks, _context(context, own))


def design(
    *tasks: str | Task,
    cache: str | int,
    context: int | str | None = None,
    base: Stack | None = None,
    **choices: Any,
) -> Designs:
    """Layouts that could do the tasks with so much cache ("8GiB", or bits) for one sequence, the
    layers of `base` varied; `choices` are fields of `separatrix.cards.design.Choices`, of several
    values a tuple. Raises SpecError, SizeError, and UnknownNameError for a choice that is none.
    """
    known = {"cache", "context", "base", *(one.name for one in fields(Choices))}
    for name in choices.keys() - known:
        where = " of design, whose tasks are its first arguments"
        raise UnknownNameError.of("choice", name, known, where=where)
    for one in fields(Choices):
        # a value alone where several may be varied
        if str(one.type).startswith("tuple") and isinstance(choices.get(one.name), str | int):
            choices[one.name] = (choices[one.name],)
    model = None if base is None else stack_of(base)
    own = DEFAULT_CONTEXT if model is None else model.context or DEFAULT_CONTEXT
    length = _context(context, own)
    asked = [
        task_for_context(one, length) if isinstance(one, str) else task_of(one) for one in tasks
    ]
    bits = parse_bits(cache, what="cache") if isinstance(cache, str) else cache
    space = space_of(Choices(**choices), model)
    return Designs(search(asked, context=length, cache_bits=bits, space=space))


def _context(context: int | str | None, own: int) -> int:
    if isinstance(context, str):
        return parse_context(context)
    return own if context is None else context

"""Composition on a card: how many steps at once, from how many it fails, and what thought adds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from separatrix.cards.question import UNDECIDED, Bound, CardLine, Question, beyond
from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.amounts import LONGEST_CONTEXT
from separatrix.core.numbers.first_size import first_size
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import SeqComp
from separatrix.tasks.seqcomp import MOST_STEPS
from separatrix.theory.base import Theorem
from separatrix.theory.judge import THEOREMS, judge
from separatrix.theory.words import Words, counted_as


def composition(architecture: Architecture, context: int) -> list[CardLine]:
    """The lines about composing steps, at prompts of `context` tokens where sizes must be known."""
    if not architecture.reading:
        title = "composition with chain of thought, 2 steps"
        # z_2 of N entries has N^N contents, and the prompt 2 N + 2 tokens
        two = replace(_steps(context, 2, 2), least=_composition(2, 2), after_thought=title)
        return two.answer(architecture) if _fits(context, 2) else []
    # of known constructions each reading layer takes a step, so that the next one is too many
    near = len(architecture.reading) + 1
    lines = _solved(architecture, context, near=near)
    steps = lines[0].steps[1] if lines else 0
    if steps < MOST_STEPS and _fits(context, steps + 1):
        lines += _beyond(architecture, steps + 1, context)
    return lines + _solved(architecture, context, thought=True)


def filling(context: int, steps: int) -> SeqComp:
    """The composition of so many steps, one value of each w_l, that fills a context."""
    return _composition(steps, max(2, (context - 2) // steps))


def _fits(tokens: int, steps: int) -> bool:
    return filling(tokens, steps).length <= tokens


def _composition(steps: int, m: int) -> SeqComp:
    return SeqComp(L=steps, m=m, branching=(1,) * (steps - 1))


def _steps(context: int, first: int, steps: int, asked: str = "", short: str = "") -> Question:
    return Question(
        title=f"composition, {asked or counted_as(steps, 'step')}",
        size=context,
        at=lambda n: filling(n, steps),
        solved=f"follow {counted_as(steps, 'step')} through tables that fill {context:,} tokens.",
        failed=_wrong(steps, "{most}"),
        unknown=UNDECIDED._replace(short=short),
        steps=(first, steps),
    )


def _solved(
    architecture: Architecture, context: int, *, near: int | None = None, thought: bool = False
) -> list[CardLine]:
    """The line of the most steps that some construction composes at a context, at once or with a
    chain of thought, for which the context holds a token for each step besides. `near` guesses the
    first number of steps beyond.
    """
    among = Theorem.solves_after_thought if thought else Theorem.solves_at_once

    def task(steps: int) -> SeqComp:
        return filling(context - thought * steps, steps)

    @cache
    def solved(steps: int) -> Verdict | None:
        if not _fits(context - thought * steps, steps):
            return None
        found = judge(architecture, task(steps), among=among)
        return next((verdict for verdict in found if verdict.status == "SOLVABLE"), None)

    beyond = first_size(lambda steps: solved(steps) is None, 1, limit=MOST_STEPS, near=near)
    most = MOST_STEPS if beyond is None else beyond - 1
    verdict = solved(most) if most else None
    if verdict is None:
        return []
    words = THEOREMS[verdict.theorem].told(verdict, task(most), architecture, thought=thought)
    up_to, how = counted_as(most, "step"), " with chain of thought" if thought else ""
    title, why = f"composition{how}, L <= {up_to}", words.why
    if not thought:
        why = (
            f"Some weights follow up to {up_to} in one go, each step a look-up whose place depends"
            f" on the step before, where tables of one size fill {context:,} tokens. {words.why}"
        )
    line = CardLine(title, "SOLVABLE", None, words.text, verdict.theorem, verdict, why)
    return [replace(line, steps=(0, most), thought=thought)]


def _beyond(architecture: Architecture, first: int, context: int) -> list[CardLine]:
    """From the first number of steps that no construction covers: the fewest at which a theorem
    shows failure at some n, else what else is known of them.
    """
    # a theorem that is silent at `first` can only begin to speak where its own steps begin
    begins = {theorem.begins(architecture) for theorem in THEOREMS.values()}
    counts = sorted({first, *(steps for steps in begins if steps > first)})
    for told in (_failing, _too_long):
        for steps in counts:
            line = told(architecture, steps, context)
            if line is None:
                continue
            lines = [replace(line, steps=(steps, steps))]
            if steps > first:
                between = counted_as(steps - 1, "step")
                title = between if steps - 1 == first else f"{first} to {between}"
                short = "more than built, fewer than any bound"
                lines[:0] = _steps(context, first, steps - 1, title, short).answer(architecture)
            # one step asks for a place that is known; two and more are bounded by more theorems
            return [*lines, *_beyond(architecture, 2, context)] if steps == 1 else lines
    steps, short = max(2, first), "no failing size is known"
    return _steps(context, steps, steps, f"from {steps} steps", short).answer(architecture)


def _failing(architecture: Architecture, steps: int, context: int) -> CardLine | None:
    """So many steps fail at some n, by the theorem with the smallest: within the context, or
    beyond it; None where none says so.
    """
    asked = _composition(steps, 2)

    def quick(theorem: Theorem) -> bool:
        # none that shows no failure in any prompt that is short enough to be written
        return theorem.fails_at_once() and not _far(theorem, architecture, steps)

    found = judge(architecture, asked, among=quick)
    first = next((verdict for verdict in found if verdict.n is not None), None)
    if first is None or first.n is None:
        return None
    theorem = THEOREMS[first.theorem]
    task = theorem.smallest(asked, first)
    there = [] if task is None else judge(architecture, task, among=quick)
    record = next(
        (found for found in there if (found.status, found.theorem) == ("FAILS", theorem.key)), None
    )
    words = theorem.told(record or first, asked if task is None else task, architecture)
    title = f"composition, {counted_as(steps, 'step')}"
    wrong = _wrong(steps, theorem.n_shown(first.n))
    explain = f"Whatever its weights, the model {wrong} {words.why}"
    if first.n <= context:
        return CardLine(title, "FAILS", first.n, words.text, theorem.key, record, explain)
    here = judge(architecture, filling(context, steps), among=quick)
    own = next((verdict for verdict in here if verdict.theorem == theorem.key), None)
    return beyond(title, Bound(theorem.key, first.n, context, verdict=record), own, words, explain)


def _too_long(architecture: Architecture, steps: int, context: int) -> CardLine | None:
    """So many steps fail at some n by a theorem that shows it of no prompt that is short enough to
    be written: its sizes are not searched for. None where there is no such theorem.
    """
    far = (theorem.key for theorem in THEOREMS.values() if _far(theorem, architecture, steps))
    key = next(far, "")
    words = Words(
        "counted; longer prompts were not searched",
        f"What its conditions ask of every function takes more than {LONGEST_CONTEXT:,} entries"
        " here: that was counted, and no failing size was searched for (`separatrix.judge` does).",
    )
    title = f"composition, {counted_as(steps, 'step')}"
    bound = Bound(key, None, context, beyond=LONGEST_CONTEXT)
    return beyond(title, bound, None, words, words.why) if key else None


def _far(theorem: Theorem, architecture: Architecture, steps: int) -> bool:
    return theorem.fails_at_once() and theorem.silent_up_to(architecture, steps, LONGEST_CONTEXT)


def _wrong(steps: int, tokens: str) -> str:
    if steps == 1:
        return (
            f"looks a value up wrongly in some prompt of {tokens} tokens when the place to look at"
            " comes before the last token."
        )
    return f"follows {counted_as(steps, 'step')} wrongly in some prompt of {tokens} tokens."

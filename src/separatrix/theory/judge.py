"""Architecture and task in, verdicts out, the strongest first; and verdicts checked again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import attrgetter

from separatrix.core.errors import CannotCheck, CheckFailed, EvidenceError, Undecided
from separatrix.core.evidence.canonical import canonical
from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Questions, Task, parse_task
from separatrix.tasks import Thought as Written
from separatrix.theory.base import Theorem
from separatrix.theory.fails.a_accuracy import TheoremA
from separatrix.theory.fails.asymptotic import Asymptotic, chen_peng_wu, ye_et_al
from separatrix.theory.fails.i_bounded_caches import TheoremI, TheoremIPrime
from separatrix.theory.fails.ii_block_messages import TheoremII
from separatrix.theory.fails.iii_one_reading_layer import TheoremIII, TheoremRDepth
from separatrix.theory.fails.iv_two_reading_layers import TheoremIV
from separatrix.theory.fails.many_layers import TheoremVI, TheoremVII
from separatrix.theory.fails.p_parity import TheoremP
from separatrix.theory.fails.r_windows_forget import TheoremR, TheoremRAccuracy
from separatrix.theory.fails.v_three_steps import TheoremV
from separatrix.theory.nothing import NothingKnown
from separatrix.theory.solves import contents, products, recall, states, steps
from separatrix.theory.solves.room import Construction

THEOREMS: dict[str, Theorem] = {
    theorem.key: theorem
    for theorem in (
        TheoremI(),
        TheoremA(),
        TheoremIPrime(),
        TheoremII(),
        TheoremIII(),
        TheoremIV(),
        TheoremV(),
        TheoremVI(),
        TheoremVII(),
        TheoremP(),
        TheoremR(),
        TheoremRAccuracy(),
        TheoremRDepth(),
        Asymptotic("CPW-1.1", chen_peng_wu),
        Asymptotic("Ye26-1.1", ye_et_al),
        Construction("retrieval", ("eva", "index"), recall.retrieval, full=1),
        Construction("block-retrieval", ("eva", "index"), recall.block_retrieval, embedded=True),
        Construction(
            "indexed-retrieval", ("eva", "index"), partial(recall.retrieval, indexed=True)
        ),
        Construction("recall", ("recall", "mqar"), recall.recall, embedded=True),
        Construction("last-layer", ("cgram", "recall", "mqar"), recall.last_layer, full=1),
        Construction("match2", ("twosum",), contents.match2, full=1),
        Construction("pairs", ("twosum",), contents.pairs, full=2),
        Construction(
            "lookup", ("cgram", "recall", "mqar", "noisy-recall", "twosum"), recall.lookup
        ),
        Construction("copying", ("copying",), recall.copying, full=2),
        Construction("counting", ("counting",), contents.counting, full=1),
        Construction("qsa", ("qsa",), contents.qsa, embedded=True, full=2),
        Construction("composition", ("seqcomp",), steps.composition, full=attrgetter("L")),
        Construction("equality", ("equality",), contents.equality, full=2),
        Construction("neighbour", ("neighbour",), contents.neighbour, full=2),
        Construction("k-hop", ("khop",), steps.k_hop),
        Construction("hops-kept", ("khop",), steps.hops_kept),
        Construction("encoder", ("seqcomp",), steps.encoder, embedded=True, both_ways=True),
        Construction("tightness", states.TOTAL, states.tightness, embedded=True),
        Construction("state-tracking", states.TRACKED, states.state_tracking),
        Construction("brackets", ("dyck",), states.brackets),
        Construction("levels", ("dyck",), contents.levels),
        Construction("S", states.TRACKED, products.products),
        Construction("question-first", ("recall",), recall.question_first),
        Construction("queue", ("recall", "noisy-recall"), recall.queue),
        steps.Thought(),
        NothingKnown(),
    )
}
"""Every theorem by its key: the only list of them. A new one is a file of its own, a construction a
function that says what it takes of a stack, and a line here; what is said of it stands in
theorems.md. `judge`, cards, `compare`, `design` and `theorems` find it.
"""


def judge(
    architecture: Architecture,
    task: Task,
    *,
    among: Callable[[Theorem], bool] | None = None,
) -> list[Verdict]:
    """Every theorem that says something about the architecture on the task at its size, strongest
    first. This is the only place that decides.

    `among` chooses the theorems that are asked, and the answer may be empty then; without it they
    are those about models that answer at once (of a task with its chain of thought, those about
    models that write first), and there is always an answer. OPEN is said only where none of them
    says FAILS or SOLVABLE. Among FAILS the smallest n comes first, and OPEN verdicts that name a
    finite n come before those that do not; theorems that say how badly it fails come last. Raises
    EvidenceError should two theorems contradict each other, which would be an error in this
    program.
    """
    chosen = among or _about(task)
    asked = [theorem for theorem in THEOREMS.values() if chosen(theorem)]
    found = [
        verdict
        for theorem in asked
        if theorem.key != NothingKnown.key
        and (verdict := said_by(theorem, architecture, task)) is not None
    ]
    if {"FAILS", "SOLVABLE"} <= {verdict.status for verdict in found}:
        sides = ", ".join(f"{verdict.theorem}: {verdict.status}" for verdict in found)
        raise EvidenceError(
            f"{architecture.spec} on {task.spec}: theorems contradict each other ({sides}); please"
            " report this"
        )
    decided = [verdict for verdict in found if verdict.status != "OPEN"]
    if found:
        return sorted(decided or found, key=_strength)
    # only now: it works out what the stack lacks
    nothing = THEOREMS[NothingKnown.key]
    verdict = nothing.judge(architecture, task) if nothing in asked else None
    return [] if verdict is None else [verdict]


def _strength(verdict: Verdict) -> tuple[bool, bool, int]:
    """The strongest verdict has the least."""
    return THEOREMS[verdict.theorem].grades, verdict.n is None, verdict.n or 0


def graded(architecture: Architecture, task: Task) -> Verdict | None:
    """How many of random questions any weights answer at the most, where a theorem says so and it
    is not all of them: `ceiling_millionths` among the verdict's numbers. None where it says so of
    some questions only.
    """
    facts = task.facts()
    if facts is None or facts.among:
        return None
    found = judge(architecture, task, among=attrgetter("grades"))
    return min(found, key=lambda verdict: verdict.numbers["ceiling_millionths"], default=None)


def _about(task: Task) -> Callable[[Theorem], bool]:
    """The theorems about models that answer the task as it is asked."""
    if isinstance(task, Written):
        return lambda theorem: theorem.after_thought or theorem.key == NothingKnown.key
    return attrgetter("at_once")


def said_by(theorem: Theorem, architecture: Architecture, task: Task) -> Verdict | None:
    """One theorem's verdict; None where silent, or a comparison is open at every precision."""
    if not theorem.speaks_of(architecture):
        return None
    try:
        return _as_asked(theorem, task, lambda one: theorem.judge(architecture, one))
    except Undecided:
        return None


def _as_asked(
    theorem: Theorem, task: Task, judged: Callable[[Task], Verdict | None]
) -> Verdict | None:
    """What is judged of a task; where it asks several questions of another's prompts, that it fails
    as the other does: whoever answers all of them answers each.
    """
    found = judged(task)
    if not isinstance(task, Questions) or theorem.grades or (found and found.status != "OPEN"):
        return found
    alone = judged(task.task)
    return replace(alone, task=task.spec) if alone and alone.status == "FAILS" else found


def recheck(verdict: Verdict) -> str:
    """Derives a verdict again from its architecture and task, in exact or ball arithmetic; a
    theorem whose parameters were searched for takes them from the verdict's numbers.

    Returns what is known now where a verdict says OPEN and this program says more, else "": such a
    record claims nothing, and was true of an earlier version. Raises CannotCheck where no more than
    the source differs, or the words of an OPEN verdict; CheckFailed when any other field but the
    notes of a file's reader does; UnknownNameError, SpecError or SizeError when architecture or
    task do not parse.
    """
    if verdict.theorem not in THEOREMS:
        raise CheckFailed(f"no theorem is called '{verdict.theorem}'")
    architecture = replace(Architecture.parse(verdict.architecture), notes=verdict.notes)
    task = parse_task(verdict.task)
    theorem = THEOREMS[verdict.theorem]
    about = theorem.speaks_of(architecture)
    again = about and _as_asked(
        theorem, task, lambda one: theorem.again(architecture, one, verdict.numbers)
    )
    if not again:
        raise CheckFailed(
            f"theorem {verdict.theorem} says nothing about {verdict.architecture} on {verdict.task}"
        )
    mine = again.body()
    theirs = verdict.body()
    wrong = [name for name in mine if canonical(mine[name]) != canonical(theirs[name])]
    words = ["source", *(["statement", "assumptions"] if verdict.status == "OPEN" else [])]
    if wrong and {*wrong}.issubset(words):
        known = _known_now(architecture, task, verdict) if verdict.status == "OPEN" else ""
        raise CannotCheck(
            "its numbers hold, but its words are not what this version says of them: it was"
            f" edited, or another version wrote it (now: {known or str(mine[wrong[0]])[:120]})"
        )
    if wrong:
        raise CheckFailed(
            f"theorem {verdict.theorem}, evaluated again, gives another {wrong[0]}:"
            f" {str(mine[wrong[0]])[:120]}"
        )
    return _known_now(architecture, task, verdict) if verdict.status == "OPEN" else ""


def _known_now(architecture: Architecture, task: Task, verdict: Verdict) -> str:
    """What some theorem decides of an OPEN verdict, or knows where the verdict says that nothing is
    known; "" where none does.
    """
    # a theorem about models that write first leaves open what such models can do
    among = None if THEOREMS[verdict.theorem].at_once else attrgetter("after_thought")
    for other in judge(architecture, task, among=among):
        told = f"theorem {other.theorem} says {other.status}: {other.statement}"
        if other.status != "OPEN":
            return f"OPEN then; decided now: {told}"
        if verdict.theorem == NothingKnown.key != other.theorem:
            return f"nothing known then; known now: {told}"
    return ""

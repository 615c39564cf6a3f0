"""What a designer should take from the experiments: a question a design has to answer, and what the
recorded tables say to it. Every number is read from a table; where nothing was recorded, nothing is
said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeVar

from separatrix.cards.found.tracking import FOLLOWED
from separatrix.evidence.records import SOLVED
from separatrix.experiments.length import LEARNED
from separatrix.experiments.saying import ahead, listed
from separatrix.practice.capacity import held
from separatrix.practice.depth import composed
from separatrix.practice.longer import by_length
from separatrix.practice.lookups import rows_of, values_of
from separatrix.practice.nearest import ALONE, PLACED
from separatrix.practice.placement import placed
from separatrix.practice.ratio import ratios
from separatrix.practice.shape import Beside, title
from separatrix.practice.table import Row
from separatrix.practice.tracking import tracked
from separatrix.practice.words import FEWEST_SEEDS, accuracy, bits, decimal, enough, interval
from separatrix.report.markdown import plain
from separatrix.theory.words import counted_as

_BESIDE: dict[Beside, str] = {
    "before": "a recurrent layer before them",
    "between": "a recurrent layer behind the first",
    "after": "a recurrent layer after them",
}
_TASKS = {"recall": "recall", "composition": "composition", "khop": "k-hop look-ups"}


Key = TypeVar("Key")
HEADING = "What a designer should take from this"
CAUTIONS = (
    "that what failed to train cannot be trained: these are short trainings of small models",
    "that an order of places, ratios or mechanisms holds at thousands of times the size",
    "that two numbers differ whose intervals or seeds overlap",
    "that a bound of bits learned is a capacity: it is what the best of a few trainings held",
)


class Lesson(NamedTuple):
    """A decision, and what was measured that bears on it."""

    question: str
    experiment: str
    found: tuple[str, ...]
    """Sentences, each with its numbers."""
    proved: str
    """What no measurement changes."""


def lessons() -> tuple[Lesson, ...]:
    """Those to which the recorded tables say something."""
    every = (
        Lesson(
            "How many full layers?",
            "depth",
            tuple(_steps()),
            "Explicit weights compose as many steps as there are full layers, where any other"
            " layer stands before the second of them, and else one fewer. That fewer layers fail is"
            " known from a length on that is mostly out of reach.",
        ),
        Lesson(
            "3:1 or 7:1?",
            "ratio",
            tuple(_ratios()),
            "One full layer that finds its place recalls any number of facts: no theorem asks for a"
            " ratio.",
        ),
        Lesson(
            "Where do the full layers stand?",
            "placement",
            tuple(_places()),
            "A recurrent layer before the second full one saves a layer of composition; no"
            " construction gains by one after the last.",
        ),
        Lesson(
            "How large a state?",
            "capacity",
            tuple(_states()),
            "A state of b bits holds at most b bits of facts (Theorem I), and of more facts at most"
            " a share that falls (Theorem A).",
        ),
        Lesson(
            "Which recurrence?",
            "state-tracking",
            tuple(_groups()),
            "Delta rules with negative eigenvalues follow parity and permutations with explicit"
            " weights, at every length; states that only move one way lose count (Theorem P).",
        ),
        Lesson(
            "Will it hold on longer prompts?",
            "length",
            tuple(_lengths()),
            "Nothing is proved of what weights trained on short prompts do on longer ones; a"
            " bounded cache that is too small for so many facts is too small for more.",
        ),
    )
    return tuple(lesson for lesson in every if lesson.found)


def section(heading: str) -> str:
    """The lessons as Markdown; says so where nothing was recorded."""
    found = lessons()
    parts = [f"{heading} {HEADING}"]
    if not found:
        parts.append("Nothing is recorded yet.")
    for lesson in found:
        sentences = "\n".join(f"- {plain(sentence)}" for sentence in lesson.found)
        parts.append(f"**{lesson.question}** (`{lesson.experiment}`)\n\n{sentences}")
        parts.append(f"*Proved, whatever was measured:* {plain(lesson.proved)}")
    if found:
        parts.append("**What not to conclude:**\n\n" + "\n".join(f"- {one}" for one in CAUTIONS))
        parts.append(
            "For a model of your own, `separatrix analyze MODEL` prints what of this bears on it,"
            " with how many times beyond the measurements it lies; `separatrix design --evidence"
            " measured` ranks layouts by it."
        )
    return "\n\n".join(parts) + "\n"


def _steps() -> Iterator[str]:
    """What one full layer more, and a recurrent one beside them, made of composition."""
    kinds = [kind for kind in _values("depth", "mechanism") if kind != "none"]
    counts = sorted(count for count in _numbers("depth", "full"))
    alone = {full: _known(composed(full, "none", None)) for full in counts}
    for steps in sorted({steps for rows in alone.values() for steps in rows}):
        rows = {full: found[steps] for full, found in alone.items() if steps in found}
        said = ", ".join(f"{full}: {accuracy(row)}" for full, row in rows.items())
        enough_full = next((full for full, row in rows.items() if row.median >= SOLVED), None)
        solved = (
            f"of these, {enough_full} were the fewest that solved it"
            if enough_full is not None
            else "none of them solved it in this budget"
        )
        yield f"{counted_as(steps, 'step')} by full layers alone ({said}): {solved}."
        for kind in kinds:
            for full, row in rows.items():
                beside = [
                    f"{words} {accuracy(found[steps])} ({_against(found[steps], row)})"
                    for where, words in _BESIDE.items()
                    if steps in (found := _known(composed(full, where, kind)))
                ]
                if beside:
                    asked = f"{counted_as(steps, 'step')}, {counted_as(full, 'full layer')}"
                    yield f"{asked} ({accuracy(row)}), {title(kind)}: {listed(beside)}."


def _ratios() -> Iterator[str]:
    """Up to how many bounded layers per full one a task held, for each kind."""
    for task in _values("ratio", "task"):
        for kind in _values("ratio", "mechanism"):
            rows = _known(ratios(kind, task))
            mixed = {ratio: row for ratio, row in rows.items() if ratio > 0}
            if not mixed:
                continue
            said = [f"{ratio}:1 {accuracy(row)}" for ratio, row in mixed.items()]
            if 0 in rows:
                said.insert(0, f"full layers alone {accuracy(rows[0])}")
            if ALONE in rows:
                said.append(f"no full layer {accuracy(rows[ALONE])}")
            first = rows.get(0, next(iter(mixed.values())))
            lost = [ratio for ratio, row in mixed.items() if _below(row, first)]
            held_up = [ratio for ratio in mixed if not lost or ratio < min(lost)]
            verdict = (
                "what was not learned well by the first of these, no ratio can lose"
                if first.median < LEARNED
                else f"up to {max(held_up)}:1 nothing was lost that all seeds show"
                + _in_median(mixed, first)
                if held_up
                else f"already {min(lost)}:1 lost some of it"
            )
            asked = f"{_TASKS.get(task, task).capitalize()} with {title(kind)}"
            yield f"{asked}: {listed(said)}; {verdict}."


def _in_median(rows: Mapping[int, Row], first: Row) -> str:
    """Which ratios lost some of it in the median alone, where seeds overlap."""
    lost = [
        f"{ratio}:1"
        for ratio, row in rows.items()
        if interval(row)[1] < interval(first)[0] and not _below(row, first)
    ]
    return f"; the median seed lost some at {listed(lost)}, and the seeds overlap" if lost else ""


def _places() -> Iterator[str]:
    """The best and the worst place, and whether the seeds tell them apart."""
    for task in _values("placement", "task"):
        for kind in _values("placement", "mechanism"):
            rows = _known(placed(kind, task))
            for full in sorted({count for count, _ in rows}):
                alike = {place: row for (count, place), row in rows.items() if count == full}
                named = {PLACED[place]: alike[place] for place in PLACED if place in alike}
                if len(named) < 2:
                    continue
                said = listed([f"{place} {accuracy(row)}" for place, row in named.items()])
                best = max(named, key=lambda place: named[place].median)
                behind = [place for place in named if _below(named[place], named[best])]
                verdict = f"{best} was better than {listed(behind)}" if behind else "not told apart"
                yield (
                    f"{_TASKS.get(task, task).capitalize()}, {counted_as(full, 'full layer')} among"
                    f" {title(kind)}: {said}; {verdict}."
                )


def _states() -> Iterator[str]:
    """Bits per number, most first; states of different sizes are no order of mechanisms."""
    found = [(kind, held(kind)) for kind in _values("capacity", "mechanism")]
    known = [(kind, one) for kind, one in found if one is not None and one.seeds >= FEWEST_SEEDS]
    known.sort(key=lambda item: -item[1].best)
    sizes = sorted({one.numbers for _, one in known})
    for size in sizes:
        alike = [(kind, one) for kind, one in known if one.numbers == size]
        said = [f"{title(kind)} {bits(one)}" for kind, one in alike]
        yield f"Bits learned per number, at least, of states of {size:,} numbers: {listed(said)}."
    if sizes:
        yield (
            "Plan with the numbers of the state times these bits over log2 of the values, and take"
            " what lies beyond the measured sizes for a guess."
        )


def _groups() -> Iterator[str]:
    """Which kinds of layers followed what, as trained and on longer prompts."""
    for group in _values("state-tracking", "group"):
        lengths = {
            kind: by_length(rows[max(rows)])
            for kind in _values("state-tracking", "mechanism")
            if (rows := _known(tracked(kind, group)))
        }
        trained = {kind: _trained(rows) for kind, rows in lengths.items()}
        able = [kind for kind, row in trained.items() if row.median >= SOLVED]
        rest = [title(kind) for kind in trained if kind not in able]
        if not trained:
            continue
        far = [
            f"{title(kind)} ({decimal(last.median)} at {length:,} tokens)"
            for kind in able
            for length, last in list(lengths[kind].items())[-1:]
        ]
        who = f"solved by {listed(far)}" if far else "solved by none of them in this budget"
        others = f"; not by {listed(rest)}" if rest and far else ""
        yield f"{FOLLOWED.get(group, group).capitalize()}: {who}{others}."


def _lengths() -> Iterator[str]:
    """What stacks that learned a task gave at the longest prompts that were tried."""
    for task in _values("length", "task"):
        rows = [row for row in rows_of("length", task=task) if enough(row)]
        lengths = {str(row.labels["mechanism"]): by_length(row) for row in rows}
        learned = {name: at for name, at in lengths.items() if _trained(at).median >= LEARNED}
        if not learned:
            continue
        first = next(iter(learned.values()))
        said = [
            f"{name} {accuracy(row)}"
            for name, at in learned.items()
            for row in list(at.values())[-1:]
        ]
        yield (
            f"{task.capitalize()}, learned at {min(first):,} tokens and asked at {max(first):,}:"
            f" {'; '.join(said)}."
        )


def _trained(lengths: Mapping[int, Row]) -> Row:
    """The row at the length that was trained."""
    return next(iter(lengths.values()))


def _against(row: Row, other: Row) -> str:
    if _below(other, row):
        return "better"
    return "worse" if _below(row, other) else "not told apart"


def _below(row: Row, other: Row) -> bool:
    """Whether a row's interval, and every one of its seeds, lies below another's."""
    return interval(row)[1] < interval(other)[0] and ahead(other, row)


def _known(rows: Mapping[Key, Row]) -> dict[Key, Row]:
    return {key: row for key, row in rows.items() if enough(row)}


def _values(experiment: str, label: str) -> list[str]:
    return [value for value in values_of(experiment, label) if isinstance(value, str)]


def _numbers(experiment: str, label: str) -> list[int]:
    return [value for value in values_of(experiment, label) if isinstance(value, int)]

"""The audit of a task: what shortcuts gain, against what the task says they may. Its subject is all
that it needs to know of a task, of tokens or of words.

Of words, every sentence becomes its wording, the names taken out, and then its names; one that
names nobody is like any other such. The cue after the question is the same in every prompt and left
out. The candidates of a prompt are numbered in the order in which they are first named, and the
number is the answer's class. The other names get numbers at random: their order would tell which
facts share a name, and so do a part of the task.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain
from math import exp, inf, sqrt
from statistics import NormalDist
from typing import Any, Literal

from separatrix.core.document import Document, Heading, Line, Table
from separatrix.core.errors import SizeError, SpecError, UnknownNameError
from separatrix.core.numbers.lazy import np
from separatrix.tasks import AUDITED, NO_ANSWER, PLAIN, PROBES, TASKS, Task, any_task_of
from separatrix.tasks.audits.probes import PROBE, Learner, Prompts, cut, words_of
from separatrix.tasks.audits.shortcuts import SHORTCUTS, shortcut
from separatrix.tasks.base.described import name_of, require
from separatrix.tasks.base.task import Tokens
from separatrix.tasks.drawing.distinct import one_of
from separatrix.tasks.measured import MEANT, stated
from separatrix.tasks.text import TEXT_TASKS, TextItem, TextTask
from separatrix.tasks.text.names import names

BOUND = 3.0
"""Standard errors above its level from which a probe is suspected."""
_NORMAL = NormalDist()
_FARTHEST = 8.0
"""Beyond it tails of the normal distribution are lost in rounding."""


def standard_error(level: Fraction, instances: int) -> float:
    """Of the share of right answers among `instances`, each right with probability `level`."""
    return sqrt(float(level * (1 - level)) / instances)


def above(right: int, instances: int, level: Fraction) -> float:
    """Standard errors by which `right` of `instances` lies above `level`."""
    error = standard_error(level, instances)
    excess = float(Fraction(right, instances) - level)
    if error:
        return excess / error
    # a level of 0 or 1 leaves nothing to luck
    return 0.0 if excess <= 0 else inf


def largest_above(targets: Tokens, answers: int, level: Fraction) -> float:
    """Standard errors of the most frequent of `answers` answers above `level` (Šidák)."""
    z = above(int(np.bincount(targets).max()), len(targets), level)
    if not -_FARTHEST < z < _FARTHEST:
        return z
    none = _NORMAL.cdf(z) ** answers
    return -_FARTHEST if none == 0 else z if none == 1 else _NORMAL.inv_cdf(none)


Finding = Literal["within", "above", "leak"]
Test = Literal["accuracy", "correlation", "most frequent"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One probe: `right` of `judged` instances it was not fitted to, and what it may reach."""

    probe: str
    sees: str
    right: int
    judged: int
    level: Fraction
    z: float
    """Standard errors above the level, by the test that sees most."""
    test: Test
    drawn: int
    """Instances drawn for this probe: to fit, to judge, and again where it was suspected at
    first.
    """

    promised: bool = True
    """Whether the task promises the level."""

    @property
    def accuracy(self) -> float:
        return self.right / self.judged

    @property
    def standard_error(self) -> float:
        return standard_error(self.level, self.judged)

    @property
    def verdict(self) -> Finding:
        return "within" if self.z <= BOUND else "leak" if self.promised else "above"


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What every shortcut gains on a task. `verdict` is "leak" if any row's is."""

    task: str
    seed: int
    fitted: int
    tested: int
    rows: tuple[Row, ...]
    note: str = ""
    """What a reader must know about this task's sampler; mostly empty."""

    @property
    def leaks(self) -> tuple[str, ...]:
        """Probes that found one."""
        return tuple(row.probe for row in self.rows if row.verdict == "leak")

    @property
    def verdict(self) -> Finding:
        return "leak" if self.leaks else "within"

    def __getitem__(self, probe: str) -> Row:
        """The row of a probe, or of "answers". Raises KeyError."""
        return {row.probe: row for row in self.rows}[probe]

    def to_json(self) -> dict[str, Any]:
        """Plain data for `evidence.canonical`: fractions, and numbers of six decimals."""
        named = ("task", "seed", "fitted", "tested", "verdict", "note")
        own = {name: getattr(self, name) for name in named}
        return own | {"rows": [_plain(row) for row in self.rows]}


def _plain(row: Row) -> dict[str, Any]:
    named = ("probe", "sees", "right", "judged", "test", "verdict", "drawn")
    measured = ("accuracy", "standard_error", "z")
    plain = {name: getattr(row, name) for name in named} | {"level": str(row.level)}
    return plain | {name: f"{getattr(row, name):.6f}" for name in measured}


HEADINGS = ("probe", "accuracy", "level", "z", "verdict")
_LONGEST = 9
"""Characters of a fraction that is written as one."""


def table(audit: Audit) -> Document:
    """What was drawn, one line per probe, and the outcome."""
    drawn = f"{audit.fitted:,} instances to fit, {audit.tested:,} others to judge"
    return Document(
        Line(f"{audit.task}   {drawn}, seed {audit.seed}"),
        *([Line(f"({audit.note})")] if audit.note else []),
        Heading(),
        Table([*map(_cells, audit.rows)], HEADINGS, labels=True),
        Heading(),
        Line(outcome(audit)),
        Line(f"level: {MEANT}"),
    )


def legend(audit: Audit) -> Table:
    """What every probe sees."""
    return Table([(row.probe, row.sees) for row in audit.rows], labels=True)


def outcome(audit: Audit) -> str:
    """One sentence."""
    if gains := [row.probe for row in audit.rows if row.verdict == "above"]:
        return f"{audit.task}: {', '.join(gains)} above the level of the task without its shift"
    if not audit.leaks:
        return f"{audit.task}: no shortcut goes beyond its level"
    return (
        f"{audit.task}: LEAK; {', '.join(audit.leaks)} above the level of the task twice, by more"
        " than 3 standard errors each time"
    )


def _cells(row: Row) -> tuple[str, ...]:
    z = f"{row.z:+.1f}" + ("" if row.test == "accuracy" else f" ({row.test})")
    more = (
        f" ({row.drawn:,} drawn)" if row.drawn > 2 * row.judged and row.probe != "answers" else ""
    )
    return (row.probe, f"{row.accuracy:.4f}", level(row.level), z, row.verdict + more)


def level(value: Fraction) -> str:
    """1/8 = 0.1250, or the decimals alone where the fraction is long."""
    text = str(value)
    return f"{text} = {float(value):.4f}" if len(text) <= _LONGEST else f"{float(value):.4f}"


Draw = Callable[[int, "np.random.Generator"], tuple[Prompts, Tokens]]


@dataclass(frozen=True, kw_only=True)
class Subject:
    """`draw(instances, rng)` gives prompts of at most `length` tokens and their right answers."""

    spec: str
    answers: int
    length: int
    chance: Fraction
    level: Callable[[str], Fraction]
    draw: Draw
    shortcuts: Mapping[str, Learner[Prompts]]
    """Probes that look at what this kind of task is made of."""
    shift: str = PLAIN
    """None promises its levels."""

    @property
    def note(self) -> str:
        """What a reader must know about its sampler; mostly empty."""
        if self.shift == PLAIN:
            return ""
        return (
            f"shift={self.shift} promises nothing about shortcuts; the levels are those of the task"
            " without it"
        )


def subject_of(task: Task | TextTask) -> Subject:
    """What probes see of a task. Raises SpecError for a chain of thought."""
    words = isinstance(task, TextTask)
    if not words and task.stepwise:
        raise SpecError(
            f"{task.spec}: a chain of thought is there to be followed, and no shortcut; audit the"
            f" task without it: {task.asked.spec}"
        )
    chance = Fraction(1, task.candidates) if words else task.chance
    return Subject(
        spec=task.spec,
        answers=task.candidates if words else task.answers,
        length=(1 + _NAMES_OF_A_FACT) * (task.sentences + 1) if words else task.length,
        chance=chance,
        # a shift may make its own chance larger than a level of the task without it
        level=lambda probe: max(stated(task, probe) or Fraction(1), chance),
        draw=partial(_told, task) if words else partial(_drawn, task),
        shortcuts={name: shortcut(name, task) for name in task.shortcuts},
        shift=getattr(task, "shift", PLAIN),
    )


def _drawn(task: Task, instances: int, rng: np.random.Generator) -> tuple[Prompts, Tokens]:
    """Prompts as they are, or cut at a uniform place where an answer is due."""
    tokens, targets = task.sample(instances, rng)
    if not task.several:
        return Prompts(tokens, tokens, task.vocabulary), targets
    places = one_of(targets != NO_ANSWER, rng)
    return cut(tokens, places, nothing=task.vocabulary), targets[np.arange(instances), places]


_SENTENCE = re.compile(r"[^.?!:\n]+")
_WORD = re.compile(r"\w+")
_NAMES_OF_A_FACT = 2


def _told(task: TextTask, instances: int, rng: np.random.Generator) -> tuple[Prompts, Tokens]:
    return _tokens(task, task.sample(instances, rng), frozenset(names()), rng)


def _tokens(
    task: TextTask, items: list[TextItem], known: frozenset[str], rng: np.random.Generator
) -> tuple[Prompts, Tokens]:
    wordings: dict[str, int] = {}
    rows = []
    answers = []
    for item in items:
        sentences = [_WORD.findall(sentence) for sentence in _SENTENCE.findall(item.prompt)]
        # the cue behind the question names nobody
        while sentences and not known.intersection(sentences[-1]):
            sentences.pop()
        mentioned = dict.fromkeys(word for word in chain(*sentences) if word in known)
        candidates = [name for name in mentioned if name in item.choices]
        others = [name for name in mentioned if name not in item.choices]
        numbers = chain(
            range(len(candidates)), (len(candidates) + rng.permutation(len(others))).tolist()
        )
        number = dict(zip(candidates + others, numbers, strict=True))
        row: list[int] = []
        for words in sentences:
            named = not known.isdisjoint(words)
            # filler, which names nobody, is one word
            wording = " ".join("_" if word in known else word for word in words) if named else ""
            row += [
                # negative, to stand apart from names until the largest number of a name is known
                -1 - wordings.setdefault(wording, len(wordings)),
                *(number[word] for word in words if word in known),
            ]
        rows.append(row)
        answers.append(number[task.audited(item)])
    return _aligned(rows, len(wordings)), np.array(answers)


def _aligned(rows: list[list[int]], wordings: int) -> Prompts:
    """Names keep their numbers; wordings, which are negative, follow the largest of these."""
    lengths = np.array([len(row) for row in rows])
    longest = int(lengths.max())
    tokens = np.array([row + [0] * (longest - len(row)) for row in rows])
    largest = int(tokens.max())
    tokens = np.where(tokens < 0, largest - tokens, tokens)
    nothing = largest + wordings + 1
    return (
        Prompts(tokens, tokens, nothing)
        if lengths.min() == longest
        else cut(tokens, lengths - 1, nothing=nothing)
    )


ANSWERS = "answers"
_SEES_NOTHING = "nothing: is any answer more frequent than stated"
MOST_ANSWERS = 1024
"""Of more, 4,000 instances do not show each answer often enough to learn anything about it."""
LEAST = 100
"""Instances to fit to and to judge, at least."""
MOST_TOKENS = 1 << 25
"""Of a first drawing; four times as many are drawn again."""
AGAIN = 4
"""How many times as many instances a suspected probe is tried on again."""


def audit(
    task: Task | TextTask | str, *, seed: int = 0, fitted: int = 4000, tested: int = 4000
) -> Audit:
    """Every probe of `tasks.PROBES` on a task, or the task of a text, the task's own `shortcuts`,
    and the answers' distribution. Fitted to `fitted` instances, judged on others.

    A row that lies more than 3 standard errors above its level is drawn again from a fresh seed
    with four times as many instances. It is a leak only if it is above again: one in 740 rows is
    above once by luck alone. For tasks answered yes or no whose level is chance, the score of a
    probe must not correlate with the answer either, which tells more than its accuracy. Where
    answers are due at several places, chance and the levels are those at a uniformly chosen one of
    them, and what stands after it is hidden. Under a shift no level is promised, and rows are
    within or above it. Raises SpecError for a chain of thought, which is there to be followed.
    Raises SizeError for a task with more than 1,024 answers or prompts too long to draw, and for
    bad numbers of instances; and for a size with fewer different prompts than are drawn.
    """
    subject = subject_of(any_task_of(task))
    _check(subject, seed, fitted, tested)
    names = (ANSWERS, *PROBES, *subject.shortcuts)
    rows = tried(names, subject, np.random.default_rng((seed, 0)), fitted, tested)
    if suspected := [name for name, row in rows.items() if row.verdict == "leak"]:
        # from another stream: the same instances again would be no second test
        rows |= tried(
            suspected,
            subject,
            np.random.default_rng((seed, 1)),
            AGAIN * fitted,
            AGAIN * tested,
            before=fitted + tested,
        )
    return Audit(
        task=subject.spec,
        seed=seed,
        fitted=fitted,
        tested=tested,
        rows=tuple(rows.values()),
        note=subject.note,
    )


def tried(
    names: Sequence[str],
    task: Subject,
    rng: np.random.Generator,
    fitted: int,
    tested: int,
    before: int = 0,
) -> dict[str, Row]:
    prompts, targets = task.draw(fitted + tested, rng)
    promised = task.shift == PLAIN
    if promised:
        _check_different(task, prompts)
    rows: dict[str, Row] = {}
    for name in names:
        tests: dict[Test, float] = {}
        if name == ANSWERS:
            judged, level, sees = targets, task.chance, _SEES_NOTHING
            right = int(np.bincount(targets).max())
            tests["most frequent"] = largest_above(targets, task.answers, level)
        else:
            judged, level = targets[fitted:], task.level(name)
            sees = words_of(PROBE[name]) if name in PROBE else SHORTCUTS[name]
            probe = PROBE[name] if name in PROBE else task.shortcuts[name]
            guess = probe(prompts[:fitted], targets[:fitted], task.answers, prompts[fitted:])
            right = guess.right(judged)
            tests["accuracy"] = above(right, len(judged), level)
            if task.answers == 2 and level == task.chance:
                # of what is independent of the answer its standard error is 1/sqrt(instances)
                tests["correlation"] = guess.correlation(judged) * len(judged) ** 0.5
        rows[name] = Row(
            probe=name,
            sees=sees,
            right=right,
            judged=len(judged),
            level=level,
            z=max(tests.values()),
            test=max(tests, key=lambda test: tests[test]),
            drawn=before + fitted + tested,
            promised=promised or name == ANSWERS,
        )
    return rows


def _check_different(task: Subject, prompts: Prompts) -> None:
    """Raises SizeError where a table of prompts seen before would pass for a shortcut."""
    drawn = len(prompts)
    mixed = np.random.default_rng(0).integers(1 << 63, size=prompts.front.shape[1], dtype=np.uint64)
    # two rows with one sum are equal, but for one pair in 2^63
    different = len(np.unique(prompts.front.astype(np.uint64) @ (mixed | np.uint64(1))))
    if different < (1 - exp(-1)) * drawn:
        raise SizeError(
            f"{task.spec}: of {drawn:,} prompts drawn only {different:,} differ, so that there are"
            " fewer than an audit draws; choose a larger size, or fewer instances"
        )


def _check(task: Subject, seed: int, fitted: int, tested: int) -> None:
    require("audit", "seed", seed, 0, (1 << 64) - 1)
    for name, value in (("fitted", fitted), ("tested", tested)):
        require("audit", name, value, LEAST, MOST_TOKENS)
    if task.answers > MOST_ANSWERS:
        raise SizeError(
            f"{task.spec}: {task.answers:,} answers are too many to audit; choose a size with at"
            f" most {MOST_ANSWERS:,}"
        )
    if (fitted + tested) * task.length > MOST_TOKENS:
        most = MOST_TOKENS // (fitted + tested)
        raise SizeError(
            f"{task.spec}: {fitted + tested:,} prompts of {task.length:,} tokens are too much to"
            f" audit; choose a size with at most {most:,} tokens"
        )


def audit_texts(name_or_text: str) -> tuple[str, ...]:
    """Of a bare name the first `AUDITED` of its grid, else the text. Raises UnknownNameError."""
    name = name_of(name_or_text)
    every = TASKS | TEXT_TASKS
    if name not in every:
        raise UnknownNameError.of("task", name, every, listing="separatrix list tasks")
    if ":" in name_or_text:
        return (name_or_text.strip(),)
    return tuple(f"{name}:{text}" for text in every[name].grid[:AUDITED])


MOST_LOOKED_AT = 1 << 20
"""Tokens of the prompts that accuracies are measured on; of long prompts there are fewer."""
LONGEST = 4096
"""Longest prompts that they are measured on."""


def accuracies(
    text: str, *, seed: int = 0, rules: Collection[str] | None = None
) -> tuple[int, dict[str, float]]:
    """On how many instances, and how often, every probe or those of `rules` are right on the task
    of a text, fitted to as many others: 4,000, but fewer of long prompts. None are tried where
    prompts are too long and answers too many to audit.

    Raises as `parse_any_task` does.
    """
    subject = subject_of(any_task_of(text))
    names = [name for name in (*PROBES, *subject.shortcuts) if rules is None or name in rules]
    if subject.length > LONGEST or subject.answers > MOST_ANSWERS or not names:
        return 0, {}
    number = max(LEAST, min(4000, MOST_LOOKED_AT // subject.length))
    found = tried(names, subject, np.random.default_rng((seed, 0)), number, number)
    return number, {name: row.accuracy for name, row in found.items()}

"""Theorem A: the highest accuracy on random questions that a bounded cache allows, whatever the
weights; and that no trained model is said to have more. Theorem I says that some question is
answered wrongly; this one, how many are.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import ClassVar, NamedTuple

from separatrix.core.errors import CheckFailed
from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.accuracy import WHOLE, highest_accuracy, luck, percent, stored_accuracy
from separatrix.core.numbers.counts import Power
from separatrix.core.numbers.first_size import first_size
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task
from separatrix.theory.base import FAILS, Theorem, number, size_in_words
from separatrix.theory.words import Words, WordsByTask

_WORDS = Words(
    "at {facts} facts no weights answer {too_many}",
    "It keeps {kept} of {cache_bits} bits, and every fact that is answered well takes its share of"
    " them. A table of as many bits, which stores the facts that fit and guesses the others,"
    " reaches {stored}.",
)


class TheoremA(Theorem):
    key = "A"
    title = "bounded caches: the highest accuracy on random questions"
    statement = (
        "One of N random facts of V values is asked for after all of them were read. With C bits of"
        " cache then, over all layers together, the accuracy a of every choice of weights obeys a"
        " <= 1/V or N D(a || 1/V) <= C + delta, where D(a || c) = a log2(a/c) + (1-a) log2((1-a) /"
        " (1-c)). Here delta = N log2 V - H, where H is the entropy of the facts: 0 for independent"
        " uniform ones, N log2 V - log2(V!/(V-N)!) where all differ. It holds with or without"
        " sampling and chain of thought, and for each of several questions after one prefix."
    )
    premises = (
        "the model is causal",
        "weights and position-wise functions are arbitrary; answers may be sampled",
        "the cache holds the declared number of bits",
        "questions are drawn as the task's sampler draws them: given what else the prefix says, the"
        " facts have the entropy H; the one asked for is uniform, whatever the prefix says; what"
        " else follows does not depend on the facts",
    )
    source = "theory.md, section 9, Theorem A; Fano's inequality"
    proof_sketch = (
        "phi(a) = h(a) + (1-a) log2(V-1) = log2 V - D(a || 1/V) is concave, and falls from a = 1/V"
        " on. By Fano, of a fact that is answered with accuracy a_j at most phi(a_j) bits are left"
        " unknown by the cache. So N phi(a) >= sum_j phi(a_j) >= sum_j H(f(j) | cache) >= H(f |"
        " cache) >= H - C: Jensen, Fano, and subadditivity; the last because a cache of C bits"
        " takes away no more than C. Given what else the prefix says, all that is written"
        " afterwards is a function of the cache, the question and coins. The bound is the"
        " rate-distortion curve of such facts: at a fixed C/N some code reaches it as N grows."
    )
    shows = FAILS
    anywhere = True
    after_thought = True
    grades = True
    words: ClassVar[WordsByTask] = dict.fromkeys(("eva", "index", "mqar", "recall"), _WORDS) | {
        "seqcomp": Words(
            "with {facts} entries in its last function no weights answer {too_many}",
            _WORDS.why,
        )
    }
    words_after_thought = words

    def smallest(self, task: Task, verdict: Verdict) -> Task | None:
        # its n is the size that was asked, with the shift that a family leaves out
        return task if verdict.n == size_in_words(task)[1] else None

    def shown(self, verdict: Verdict, task: Task) -> dict[str, str]:
        numbers = verdict.numbers
        return super().shown(verdict, task) | {
            "too_many": more_than(numbers["ceiling_millionths"], task),
            "stored": percent(numbers["stored_millionths"], up=False),
        }

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        facts = task.facts()
        if facts is None:
            return None
        prefix = task.prefix_length
        cache = architecture.cache_bits(prefix)
        sign = facts.contents.compare_bits(cache)
        if not sign.positive:
            return None
        N, V = facts.number, facts.values
        ceiling = highest_accuracy(facts.contents, N, V, cache)
        sentence = (
            f"at {number(N)} {'different ' * facts.different}facts, each one of {number(V)} values,"
            f" no weights answer {more_than(ceiling, task)}, with or without chain of thought:"
            f" {number(cache)} bits of cache after {prefix:,} tokens, and {facts.contents}"
            f" lists of facts (log2 = {facts.contents.log2_str()})"
        )
        numbers = {
            "prefix": prefix,
            "cache_bits": cache,
            "facts": N,
            "values": V,
            "different": int(facts.different),
            "ceiling_millionths": ceiling,
            "stored_millionths": stored_accuracy(N, V, cache),
        }
        n = size_in_words(task)[1]
        return self.verdict(architecture, task, "FAILS", sentence, n=n, numbers=numbers, sign=sign)


class Held(NamedTuple):
    """What the states of all layers of a kind hold together."""

    kind: str
    layers: int
    bits: int
    facts: int
    """The most facts that they tell for certain, whatever the weights."""


def held_by_state(architecture: Architecture, values: int, tokens: int) -> list[Held]:
    """How many facts of so many values fit into recurrent states alone after so many tokens, by
    kind of layer, each for itself: Theorem I with V^N lists of N facts.
    """
    kinds: dict[str, tuple[int, int]] = {}
    for layer, times in architecture.counted():
        for part in layer:
            bits = 0 if part.reading else part.handed_over(tokens).total
            if bits:
                layers, before = kinds.get(part.title, (0, 0))
                kinds[part.title] = layers + times, before + times * bits
    return [
        Held(kind, layers, bits, facts_held(bits, values)) for kind, (layers, bits) in kinds.items()
    ]


def facts_held(bits: int, values: int) -> int:
    """The largest N with V^N <= 2^bits."""
    near = max(1, int(bits / log2(values)))
    first = first_size(lambda n: Power(values, n).exceeds_bits(bits), 1, limit=bits + 1, near=near)
    return bits + 1 if first is None else first - 1


def more_than(ceiling: int, task: Task) -> str:
    """What no weights do; an accuracy below 1 by less than a millionth is not told in figures."""
    facts = task.facts()
    asked = "random questions" if facts is None else f"random questions {facts.among}".rstrip()
    return f"all {asked}" if ceiling == WHOLE else f"more than {percent(ceiling)} of {asked}"


TRAINED_BITS = 32
"""Models are trained in float32, whatever formats their spec declares."""
_UNLUCKY = 30
"""A measurement is too good where luck gives it in fewer than one of 2^30 cases."""


class Ceiling(NamedTuple):
    """Accuracies in millionths: what no weights exceed, and what storing facts reaches."""

    at_most: int
    stored: int


def trained_ceiling(architecture: Architecture, task: Task) -> Ceiling | None:
    """The ceiling of models trained here, which start with a token of their own and keep float32;
    None for tasks of which Theorem A speaks not at all, or of some questions only. Raises Undecided
    as comparisons do.
    """
    facts = task.facts()
    if facts is None or facts.among:
        return None
    carried = architecture.cache(task.prefix_length + 1).values()
    bits = sum(count * max(width, TRAINED_BITS) for kind in carried for count, width in kind.parts)
    return Ceiling(
        highest_accuracy(facts.contents, facts.number, facts.values, bits),
        stored_accuracy(facts.number, facts.values, bits),
    )


def check_answers(
    architecture: Architecture, task: Task, answers: Sequence[tuple[int, int]], prompts: int
) -> Ceiling | None:
    """As `check_trained`, of answers right and due, one pair for each seed, in so many prompts.

    Answers of one prompt depend on each other. The bound on luck holds for the mean of independent
    numbers in [0, 1], too: here of each prompt's share.
    """
    shares = [right * prompts // due if due else 0 for right, due in answers]
    return check_trained(architecture, task, shares, prompts)


def check_trained(
    architecture: Architecture, task: Task, correct: Sequence[int], total: int
) -> Ceiling | None:
    """The ceiling of right answers, one count for each seed, of `total` each. Where the task asks
    several questions at once and whole prompts are counted, fewer still are right.

    Raises CheckFailed where a seed, or all of them together, lies so far above the ceiling that
    luck does not explain it: then a mixer carries more than it declares, or this program is wrong.
    """
    ceiling = trained_ceiling(architecture, task)
    if ceiling is None or ceiling.at_most == WHOLE:
        return ceiling
    together = (sum(correct), total * len(correct))
    for right, tested in (*((count, total) for count in correct), together):
        if luck(right, tested, ceiling.at_most) >= _UNLUCKY:
            raise CheckFailed(
                f"{architecture.spec} on {task.spec}: {right:,} of {tested:,} answers are"
                f" said to be right, but no weights answer more than {percent(ceiling.at_most)} of"
                " random questions (Theorem A). Either a mixer carries more than it declares, or"
                " this program is wrong: please report this"
            )
    return ceiling

"""The questions of a capability card: families of tasks at the context, each with what an answer to
it means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isqrt

from separatrix.cards.question import AfterThought, CardLine, Question
from separatrix.cards.tracking import tracked_by, undecided
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import (
    MQAR,
    CGram,
    Copying,
    Dyck,
    Equality,
    Eva,
    KHop,
    NoisyRecall,
    Parity,
    Permutation,
    Recall,
    TwoSum,
)
from separatrix.tasks.base.task import LARGEST_SIZE
from separatrix.tasks.recall import Place
from separatrix.tasks.sums import Form
from separatrix.theory.nothing import NothingKnown
from separatrix.theory.solves.recall import waits
from separatrix.theory.words import counted_as

RATIO = 1024
"""M / n of 2-Sum: values are drawn from many more than there are tokens."""
KINDS = 2
"""Of brackets."""
DEEPEST = LARGEST_SIZE // 2
THINGS = 5
"""That permutations move."""
HOPS = 8
HOP_LETTERS = 64
LEAST_LETTERS = 4
NOISE = 16
MARKS = 3
"""Of copying."""
_NO_HELP = "Letting the model write before it answers does not help."


def one_of_facts(context: int, values: int) -> Question:
    """Recall of one of n facts of a vocabulary, which fill the context with the question."""
    task = Eva(n=max(1, context - 1), V=values)
    return Question(
        title=f"recall of one of n facts (vocabulary {values:,})",
        task=task,
        # its V stays, whatever n is, also where context and vocabulary are equal
        least=Eva(n=1, V=values),
        # with n = V the task would belong to the family in which both grow
        at=lambda n: Eva(n=n + (n == values), V=values),
        solved=(
            "Some weights answer every question of this kind at this context: name any of"
            f" {counted_as(task.n, 'fact')}, get its value."
        ),
        failed=(
            "Whatever its weights, the model answers some recall question wrongly once the prompt"
            " holds {n} fact{s}."
        ),
        after_thought=AfterThought("recall with chain of thought", _NO_HELP),
    )


def with_way_out(
    architecture: Architecture, values: int, lines: Sequence[CardLine]
) -> list[CardLine]:
    """Recall, with the way out where a recurrence that knows the question need not keep all."""
    first, *others = lines
    asked = waits(architecture, values)
    if first.status == "SOLVABLE" or asked is None:
        return [first, *others]
    bits = asked.numbers["key_bits"] + asked.numbers["answer_bits"] + 1
    out = f"asked before the facts: solvable in {bits} bits, whatever n (not built yet)"
    return [replace(first, text=f"{first.text}; {out}"), *others]


def one_of_pairs(context: int, values: int, place: Place) -> Question:
    """Recall of one of n pairs of a key and a value, asked for behind them or before."""

    def at(n: int) -> Recall:
        return Recall(n=n, K=max(n, values), V=values, question=place)

    task = at(max(1, (context - 1) // 2))
    where = "question before the facts" if place == "first" else "facts of 2 tokens"
    return Question(
        title=f"recall, {where}",
        task=task,
        at=at,
        solved=f"Some weights answer every prompt of {counted_as(task.n, 'pair')}.",
        failed="Whatever its weights, the model answers some prompt of {n} pair{s} wrongly.",
        after_thought=AfterThought(f"recall, {where}, with chain of thought", _NO_HELP),
    )


def looked_up(context: int, values: int) -> dict[str, Question]:
    """What else designers ask of memory, by the names of cards: a needle amid long filler, all
    facts in turn, a copy, what followed two tokens where they stood before, and hops.
    """
    # keys, values, noise and marks share the model's tokens
    half = max(2, (values - NOISE) // 2)
    letters = max(2, values - MARKS)
    filler = (context - 1) // 2 - 2
    ids, even = max(4, values), context // 2 * 2
    # no pair shares its key or its value with another one
    pairs = min(context // 4, ids // 2 - 1)
    hopped = min(HOP_LETTERS, context // (HOPS + 1))

    def amid(n: int) -> NoisyRecall:
        return NoisyRecall(n=n, noise=filler, K=max(n, half), V=half, N=NOISE)

    def all_of(n: int) -> MQAR:
        return MQAR(vocab_size=ids, input_seq_len=max(even, 4 * n), num_kv_pairs=n)

    def followed(n: int) -> CGram:
        # fewer ids do not make as many different contexts
        return CGram(n=n, V=max(values, 2 * isqrt(n) + 2), c=2)

    asked = {
        "needle": Question(
            title="a needle: one of 2 facts amid filler",
            task=amid(2),
            at=amid,
            alone=True,
            solved=f"Some weights name either of 2 facts amid {2 * filler:,} tokens of filler.",
            failed=(
                "Whatever its weights, the model names a fact wrongly in some prompt of {n} facts"
                f" amid {2 * filler:,} tokens of filler."
            ),
        ),
        "needles": Question(
            title="all of n facts asked for in turn (MQAR)",
            task=all_of(pairs),
            at=all_of,
            solved=f"Some weights answer all {pairs:,} questions about as many facts.",
            failed="Whatever its weights, the model misses some fact when all {n} are asked for.",
        ),
        "copy": Question(
            title="copying of n tokens",
            task=Copying(n=(context - 1) // 2, V=letters),
            at=lambda n: Copying(n=n, V=letters),
            solved=f"Some weights copy every string of up to {(context - 1) // 2:,} tokens.",
            failed="Whatever its weights, the model copies some string of {n} token{s} wrongly.",
        ),
        "induction": Question(
            title="continuing after 2 tokens as it went on before (c-gram)",
            task=followed(context),
            at=followed,
            solved="Some weights find where the last 2 tokens stood before, and what followed.",
            failed="Whatever its weights, the model continues some prompt of {n} tokens wrongly.",
        ),
    }
    if hopped >= LEAST_LETTERS:
        asked["hops"] = Question(
            title=f"{HOPS} hops from each token to what followed it before (k-hop)",
            task=KHop(n=context, V=hopped, k=HOPS),
            at=lambda n: KHop(n=n, V=hopped, k=HOPS),
            solved=f"Some weights follow {HOPS} hops through any {context:,} tokens.",
            failed="Whatever its weights, the model loses its way in some prompt of {n} tokens.",
        )
    return asked


def two_sum(context: int, form: Form) -> Question:
    """2-Sum of n values modulo M = 1,024 n, per query or of any pair; a smaller multiple of n where
    that is more than 10^12.
    """
    # asked per query, the last token is the query
    n = max(2, context - (form == "query"))
    ratio = min(RATIO, LARGEST_SIZE // n)

    def at(n: int) -> TwoSum:
        return TwoSum(n=n, M=ratio * n, form=form)

    solved = f"Some weights tell, for each new token, whether an earlier one of {n:,} cancels it."
    if form == "decision":
        solved = f"Some weights tell whether any two of {n:,} tokens cancel."
    return Question(
        title=f"2-Sum {'per query' if form == 'query' else 'of any pair'} (M = {ratio:,} n)",
        task=at(n),
        at=at,
        solved=solved,
        failed=(
            "Whatever its weights, the model misses a match, or sees one that is not there, in some"
            " prompt of {n} value{s}."
        ),
    )


def equal_strings(context: int) -> Question:
    """Equality of two strings that fill the context together."""
    n = max(1, context // 2)
    return Question(
        title="equality of two strings",
        task=Equality(n=n),
        at=lambda n: Equality(n=n),
        solved=f"Some weights compare two strings of {n:,} bits bit by bit.",
        failed=(
            "Whatever its weights, the model takes some two different strings of {n} bits for"
            " equal, or the reverse."
        ),
    )


def nested_brackets(architecture: Architecture, context: int) -> Question:
    """Brackets of two kinds that fill the context and may nest as deep as they fit."""
    n = 2 * min(max(1, context // 2), DEEPEST)
    return Question(
        title=f"nested brackets of {KINDS} kinds",
        task=Dyck(n=n, k=KINDS, D=n // 2),
        # where any depth is allowed, the longest prompts of the family nest the deepest
        least=Dyck(n=2, k=KINDS, D=DEEPEST),
        at=lambda n: Dyck(n=n, k=KINDS, D=n // 2),
        solved=f"Some weights judge every row of {n:,} brackets, however they nest.",
        failed="Whatever its weights, the model misjudges some brackets nested {half} deep.",
    )


def parity_of_bits(architecture: Architecture, context: int) -> list[CardLine]:
    """The parity of as many bits as the context has tokens."""
    n = max(2, min(context, LARGEST_SIZE))
    asked = Question(
        title="parity of bits",
        task=Parity(n=n),
        at=lambda n: Parity(n=n),
        solved=f"Some weights tell whether the ones among {n:,} bits are odd in number.",
        failed=(
            "Whatever its weights, the model takes an odd number of ones for even in some row of"
            " {n} bits, or the reverse."
        ),
        unknown=undecided(architecture, complete=False),
    )
    return _tracked(architecture, asked)


def permutations(architecture: Architecture, context: int) -> list[CardLine]:
    """The product of as many permutations of five things as the context has tokens, which is
    complete for NC^1.
    """
    n = max(2, min(context, LARGEST_SIZE))
    asked = Question(
        title=f"permutation tracking (S_{THINGS})",
        task=Permutation(n=n, k=THINGS),
        at=lambda n: Permutation(n=n, k=THINGS),
        solved=f"Some weights follow every row of {n:,} rearrangements of {THINGS} things.",
        failed=(
            f"Whatever its weights, the model loses track of {THINGS} things in some row of"
            " {n} rearrangements."
        ),
        unknown=undecided(architecture, complete=True),
        # reports of earlier versions hold no record here, and must still verify
        keeps_nothing_known=False,
    )
    return _tracked(architecture, asked)


def _tracked(architecture: Architecture, asked: Question) -> list[CardLine]:
    lines = asked.answer(architecture)
    first = lines[0]
    text = first.text
    if first.status == "SOLVABLE":
        # other lines list the layers anyway
        text = f"{text}; {tracked_by(architecture)}"
    elif first.status == "OPEN" and first.bound is None:
        # the layers first, then what the record says that they lack
        _, said, lacking = text.partition(f"{NothingKnown.title}: ")
        text = f"{asked.unknown.text}; {lacking}" if said else text
    return [replace(first, text=text), *lines[1:]]

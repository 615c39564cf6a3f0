"""The questions of a capability card: families of tasks at the context, each with what an answer to
it means.
"""

from __future__ import annotations

from math import isqrt

from separatrix import tasks
from separatrix.cards.question import UNDECIDED, Question
from separatrix.stacks.architecture import Architecture
from separatrix.tasks.base.task import LARGEST_SIZE
from separatrix.tasks.recall import Place
from separatrix.tasks.sums import Form
from separatrix.theory.fails.p_parity import layer_settles, standstill
from separatrix.theory.solves.recall import known_before, question_first
from separatrix.theory.words import KNOWN, Words, counted_as

DEFAULT_VOCABULARY = 50_000
SHORTEST = 12
"""Tokens that every question of what is looked up has room in."""
RATIO = 1024
"""M / n of 2-Sum: values are drawn from many more than there are tokens."""
KINDS = 2
"""Of brackets."""
DEEPEST = LARGEST_SIZE // 2
THINGS = 5
"""That permutations move."""
HOPS = 8
NOISE = 16
MARKS = 3
"""Of copying."""


def values_of(architecture: Architecture) -> int:
    """As many values of facts as the model has tokens."""
    return max(2, architecture.vocabulary or DEFAULT_VOCABULARY)


def questions(architecture: Architecture, context: int) -> dict[str, Question | None]:
    """The questions by their names, in order; None for composition, which takes more than one."""
    values = values_of(architecture)
    asked: dict[str, Question | None] = {"recall": one_of_facts(context, values)}
    if context >= SHORTEST:
        asked["recall-2"] = _one_of_pairs(context, values, "last")
        if question_first(architecture, known_before(values)) is not None:
            asked["question-first"] = _one_of_pairs(context, values, "first")
        asked |= looked_up(context, values)
    asked["composition"] = None
    # two tokens hold no query beside two values
    if context > 2:
        asked["2sum"] = _two_sum(context, "query")
    half = max(1, context // 2)
    brackets = 2 * min(half, DEEPEST)
    row = max(2, min(context, LARGEST_SIZE))
    return asked | {
        "pairs": _two_sum(context, "decision"),
        "equality": Question(
            title="equality of two strings",
            size=half,
            at=lambda n: tasks.Equality(n=n),
            solved=f"compare two strings of {half:,} bits bit by bit.",
            failed="takes some two different strings of {n} bits for equal, or the reverse.",
        ),
        "brackets": Question(
            title=f"nested brackets of {KINDS} kinds",
            size=brackets,
            # where any depth is allowed, the longest prompts of the family nest the deepest
            least=tasks.Dyck(n=2, k=KINDS, D=DEEPEST),
            at=lambda n: tasks.Dyck(n=n, k=KINDS, D=n // 2),
            solved=f"judge every row of {brackets:,} brackets, however they nest.",
            failed="misjudges some brackets nested {half} deep.",
        ),
        "parity": Question(
            title="parity of bits",
            size=row,
            at=lambda n: tasks.Parity(n=n),
            solved=f"tell whether the ones among {row:,} bits are odd in number.",
            failed="takes an odd number of ones for even in some row of {n} bits, or the reverse.",
            unknown=_untracked(architecture, complete=False),
        ),
        "s5": Question(
            title=f"permutation tracking (S_{THINGS})",
            size=row,
            at=lambda n: tasks.Permutation(n=n, k=THINGS),
            solved=f"follow every row of {row:,} rearrangements of {THINGS} things.",
            failed=f"loses track of {THINGS} things in some row of {{n}} rearrangements.",
            unknown=_untracked(architecture, complete=True),
        ),
    }


def one_of_facts(context: int, values: int) -> Question:
    """Recall of one of n facts of a vocabulary, which fill the context with the question."""
    n = max(1, context - 1)
    return Question(
        title=f"recall of one of n facts (vocabulary {values:,})",
        size=n,
        here=tasks.Eva(n=n, V=values),
        # its V stays, whatever n is, also where context and vocabulary are equal
        least=tasks.Eva(n=1, V=values),
        # with n = V the task would belong to the family in which both grow
        at=lambda n: tasks.Eva(n=n + (n == values), V=values),
        solved=(
            "answer every question of this kind at this context: name any of"
            f" {counted_as(n, 'fact')}, get its value."
        ),
        failed="answers some recall question wrongly once the prompt holds {n} fact{s}.",
        after_thought="recall with chain of thought",
    )


def _one_of_pairs(context: int, values: int, place: Place) -> Question:
    """Recall of one of n pairs of a key and a value, asked for behind them or before."""
    n = max(1, (context - 1) // 2)
    where = "question before the facts" if place == "first" else "facts of 2 tokens"
    return Question(
        title=f"recall, {where}",
        size=n,
        at=lambda n: tasks.Recall(n=n, K=max(n, values), V=values, question=place),
        solved=f"answer every prompt of {counted_as(n, 'pair')}.",
        failed="answers some prompt of {n} pair{s} wrongly.",
        after_thought=f"recall, {where}, with chain of thought",
    )


def looked_up(context: int, values: int) -> dict[str, Question]:
    """What else designers ask of memory, by the names of cards: a needle amid long filler, all
    facts in turn, a copy, what followed two tokens where they stood before, and hops.
    """
    # keys, values, noise and marks share the model's tokens
    half = max(2, (values - NOISE) // 2)
    letters = max(2, values - MARKS)
    filler = (context - 1) // 2 - 2
    copied = (context - 1) // 2
    ids, even = max(4, values), context // 2 * 2
    # no pair shares its key or its value with another one
    pairs = min(context // 4, ids // 2 - 1)
    hopped = min(64, context // (HOPS + 1))
    asked = {
        "needle": Question(
            title="a needle: one of 2 facts amid filler",
            size=2,
            at=lambda n: tasks.NoisyRecall(n=n, noise=filler, K=max(n, half), V=half, N=NOISE),
            alone=True,
            solved=f"name either of 2 facts amid {2 * filler:,} tokens of filler.",
            failed=(
                "names a fact wrongly in some prompt of {n} facts"
                f" amid {2 * filler:,} tokens of filler."
            ),
        ),
        "needles": Question(
            title="all of n facts asked for in turn (MQAR)",
            size=pairs,
            at=lambda n: tasks.MQAR(vocab_size=ids, input_seq_len=max(even, 4 * n), num_kv_pairs=n),
            solved=f"answer all {pairs:,} questions about as many facts.",
            failed="misses some fact when all {n} are asked for.",
        ),
        "copy": Question(
            title="copying of n tokens",
            size=copied,
            at=lambda n: tasks.Copying(n=n, V=letters),
            solved=f"copy every string of up to {copied:,} tokens.",
            failed="copies some string of {n} token{s} wrongly.",
        ),
        "induction": Question(
            title="continuing after 2 tokens as it went on before (c-gram)",
            size=context,
            least=tasks.CGram(n=SHORTEST, V=values, c=2) if 2 * isqrt(context) >= values else None,
            # fewer ids do not make as many different contexts, and with more fewer tokens fail
            at=lambda n: tasks.CGram(n=n, V=max(values, 2 * isqrt(n) + 2), c=2),
            solved="find where the last 2 tokens stood before, and what followed.",
            failed="continues some prompt of {n} tokens wrongly.",
        ),
    }
    if hopped >= 4:  # letters that a prompt of hops takes
        asked["hops"] = Question(
            title=f"{HOPS} hops from each token to what followed it before (k-hop)",
            size=context,
            at=lambda n: tasks.KHop(n=n, V=hopped, k=HOPS),
            solved=f"follow {HOPS} hops through any {context:,} tokens.",
            failed="loses its way in some prompt of {n} tokens.",
        )
    return asked


def _two_sum(context: int, form: Form) -> Question:
    """2-Sum of n values modulo M = 1,024 n, per query or of any pair; a smaller multiple of n where
    that is more than 10^12.
    """
    # asked per query, the last token is the query
    n = max(2, context - (form == "query"))
    ratio = min(RATIO, LARGEST_SIZE // n)
    solved = f"tell, for each new token, whether an earlier one of {n:,} cancels it."
    if form == "decision":
        solved = f"tell whether any two of {n:,} tokens cancel."
    return Question(
        title=f"2-Sum {'per query' if form == 'query' else 'of any pair'} (M = {ratio:,} n)",
        size=n,
        at=lambda n: tasks.TwoSum(n=n, M=ratio * n, form=form),
        solved=solved,
        failed="misses a match, or sees one that is not there, in some prompt of {n} value{s}.",
    )


def _untracked(architecture: Architecture, *, complete: bool) -> Words:
    """What is said where no theorem with an n decides: what is known without an n, or lacks.
    `complete`: whether the question is complete for NC^1, as products in S_5 are and parity is not.
    """
    layers = [layer for layer, _ in architecture.counted()]
    parts = [part for layer in layers for part in layer]
    if all(layer_settles(layer) is not None for layer in layers):
        # without places Theorem P names an n, which may be out of reach
        named = standstill(architecture) is not None
        short = "fails, but beyond 10^12 tokens" if named else "fails at some length, no n is known"
        return Words(short, KNOWN["aperiodic"].statement, short)
    shallow = (p.group in ("full", "windowed") or layer_settles((p,)) is not None for p in parts)
    if complete and all(shallow):
        short = "fails at some length if TC0 != NC1"
        return Words(short, KNOWN["tc0"].statement, short)
    if any(part.turning is not None for part in parts):
        why = (
            "Layers that turn their state over follow many things where there is room: for five"
            " that takes ten key numbers per head, four updates per token, and no convolution, norm"
            " or gate around them."
        )
        return Words("", why, "no room for the construction that is known")
    diagonal = any(
        all(p.group == "recurrent" and p.diagonal for p in layer) and layer_settles(layer) is None
        for layer in layers
    )
    return UNDECIDED._replace(short="no theorem about these recurrences" * diagonal)

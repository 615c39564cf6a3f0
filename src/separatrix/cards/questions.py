"""The questions of a capability card: families of tasks at the context, each with what an answer to
it means; and which layers can turn their state over, which is what state tracking takes.
"""

from __future__ import annotations

from functools import partial
from math import isqrt

from separatrix import tasks
from separatrix.cards.question import AfterThought, CardLine, Question
from separatrix.stacks.architecture import Architecture, Layer
from separatrix.tasks.base.task import LARGEST_SIZE
from separatrix.tasks.recall import Place
from separatrix.tasks.sums import Form
from separatrix.theory.fails.p_parity import layer_settles, standstill
from separatrix.theory.nothing import NothingKnown
from separatrix.theory.solves.recall import known_before, question_first
from separatrix.theory.words import Words, counted_as, title_of
from separatrix.theory.written import NOT_BUILT, recipe_in

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
HOP_LETTERS = 64
LEAST_LETTERS = 4
NOISE = 16
MARKS = 3
"""Of copying."""
_NO_HELP = "Letting the model write before it answers does not help."


def values_of(architecture: Architecture) -> int:
    """As many values of facts as the model has tokens."""
    return max(2, architecture.vocabulary or DEFAULT_VOCABULARY)


def questions(architecture: Architecture, context: int) -> dict[str, Question | None]:
    """The questions by their names, in order; None for composition, which takes more than one."""
    values = values_of(architecture)
    asked: dict[str, Question | None] = {"recall": one_of_facts(context, values)}
    if context >= SHORTEST:
        asked["recall-2"] = one_of_pairs(context, values, "last")
        if question_first(architecture, known_before(values)) is not None:
            asked["question-first"] = one_of_pairs(context, values, "first")
        asked |= looked_up(context, values)
    asked["composition"] = None
    # two tokens hold no query beside two values
    if context > 2:
        asked["2sum"] = two_sum(context, "query")
    return asked | {
        "pairs": two_sum(context, "decision"),
        "equality": equal_strings(context),
        "brackets": nested_brackets(context),
        "parity": parity_of_bits(architecture, context),
        "s5": permutations(architecture, context),
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
        after_thought=AfterThought("recall with chain of thought", _NO_HELP),
        told=_way_out,
    )


def _way_out(architecture: Architecture, line: CardLine) -> str:
    """Recall, with the way out where a recurrence that knows the question need not keep all."""
    task = known_before(values_of(architecture))
    asked = question_first(architecture, task)
    if line.status == "SOLVABLE" or asked is None:
        return line.text
    bits = asked.numbers["key_bits"] + asked.numbers["answer_bits"] + 1
    built = recipe_in("question-first", task, architecture)[0]
    said = "`construct` builds it" if built else NOT_BUILT
    return f"{line.text}; asked before the facts: solvable in {bits} bits, whatever n ({said})"


def one_of_pairs(context: int, values: int, place: Place) -> Question:
    """Recall of one of n pairs of a key and a value, asked for behind them or before."""
    n = max(1, (context - 1) // 2)
    where = "question before the facts" if place == "first" else "facts of 2 tokens"
    return Question(
        title=f"recall, {where}",
        size=n,
        at=lambda n: tasks.Recall(n=n, K=max(n, values), V=values, question=place),
        solved=f"answer every prompt of {counted_as(n, 'pair')}.",
        failed="answers some prompt of {n} pair{s} wrongly.",
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
    copied = (context - 1) // 2
    ids, even = max(4, values), context // 2 * 2
    # no pair shares its key or its value with another one
    pairs = min(context // 4, ids // 2 - 1)
    hopped = min(HOP_LETTERS, context // (HOPS + 1))
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
            # fewer ids do not make as many different contexts
            at=lambda n: tasks.CGram(n=n, V=max(values, 2 * isqrt(n) + 2), c=2),
            solved="find where the last 2 tokens stood before, and what followed.",
            failed="continues some prompt of {n} tokens wrongly.",
        ),
    }
    if hopped >= LEAST_LETTERS:
        asked["hops"] = Question(
            title=f"{HOPS} hops from each token to what followed it before (k-hop)",
            size=context,
            at=lambda n: tasks.KHop(n=n, V=hopped, k=HOPS),
            solved=f"follow {HOPS} hops through any {context:,} tokens.",
            failed="loses its way in some prompt of {n} tokens.",
        )
    return asked


def two_sum(context: int, form: Form) -> Question:
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


def equal_strings(context: int) -> Question:
    """Equality of two strings that fill the context together."""
    n = max(1, context // 2)
    return Question(
        title="equality of two strings",
        size=n,
        at=lambda n: tasks.Equality(n=n),
        solved=f"compare two strings of {n:,} bits bit by bit.",
        failed="takes some two different strings of {n} bits for equal, or the reverse.",
    )


def nested_brackets(context: int) -> Question:
    """Brackets of two kinds that fill the context and may nest as deep as they fit."""
    n = 2 * min(max(1, context // 2), DEEPEST)
    return Question(
        title=f"nested brackets of {KINDS} kinds",
        size=n,
        # where any depth is allowed, the longest prompts of the family nest the deepest
        least=tasks.Dyck(n=2, k=KINDS, D=DEEPEST),
        at=lambda n: tasks.Dyck(n=n, k=KINDS, D=n // 2),
        solved=f"judge every row of {n:,} brackets, however they nest.",
        failed="misjudges some brackets nested {half} deep.",
    )


def parity_of_bits(architecture: Architecture, context: int) -> Question:
    """The parity of as many bits as the context has tokens."""
    n = max(2, min(context, LARGEST_SIZE))
    return Question(
        title="parity of bits",
        size=n,
        at=lambda n: tasks.Parity(n=n),
        solved=f"tell whether the ones among {n:,} bits are odd in number.",
        failed="takes an odd number of ones for even in some row of {n} bits, or the reverse.",
        unknown=undecided(architecture, complete=False),
        told=partial(_tracked, complete=False),
    )


def permutations(architecture: Architecture, context: int) -> Question:
    """The product of a permutation of five things for each token, which is complete for NC^1."""
    n = max(2, min(context, LARGEST_SIZE))
    return Question(
        title=f"permutation tracking (S_{THINGS})",
        size=n,
        at=lambda n: tasks.Permutation(n=n, k=THINGS),
        solved=f"follow every row of {n:,} rearrangements of {THINGS} things.",
        failed=f"loses track of {THINGS} things in some row of {{n}} rearrangements.",
        unknown=undecided(architecture, complete=True),
        # reports of earlier versions hold no record here, and must still verify
        keeps_nothing_known=False,
        told=partial(_tracked, complete=True),
    )


def _tracked(architecture: Architecture, line: CardLine, *, complete: bool) -> str:
    if line.status == "SOLVABLE":
        # other lines list the layers anyway
        return f"{line.text}; {tracked_by(architecture)}"
    _, said, lacking = line.text.partition(f"{NothingKnown.title}: ")
    if line.status != "OPEN" or line.bound is not None or not said:
        return line.text
    # the layers first, then what the record says that they lack
    return f"{undecided(architecture, complete=complete).text}; {lacking}"


_TURNS = "turn{s} {its} state over"
_ONE_WAY = "only move{s} one way while a token repeats"
_NEAR = "see{s} the last tokens only"
_READS = "read{s} the prompt at a fixed depth"
_DIAGONAL = "{a} that Theorem P does not cover"
_SHRINKS = "shrink{s} {its} state along a key, and {be} not shown to turn it over"
_OTHER = "look{s} at places, or {be} not covered"
"""What layers of a kind do."""
_SAID = (
    {"s": "s", "its": "its", "be": "is", "a": "is a diagonal recurrence"},
    {"s": "", "its": "their", "be": "are", "a": "are diagonal recurrences"},
)
"""Of one layer, and of several."""


def tracked_by(architecture: Architecture) -> str:
    """The layers that mix tokens, by kind, each with what it does: "18 RG-LRU layers only
    move one way while a token repeats; 1 full attention layer reads the prompt at a fixed depth".
    """
    kinds: dict[tuple[str, str], int] = {}
    for layer, times in architecture.counted():
        if title := title_of(layer):
            kind = (title, _does(layer))
            kinds[kind] = kinds.get(kind, 0) + times
    return "; ".join(
        f"{counted_as(times, f'{titles} layer')} {does.format_map(_SAID[times != 1])}"
        for (titles, does), times in kinds.items()
    )


def undecided(architecture: Architecture, *, complete: bool) -> Words:
    """What is said where no theorem with an n decides. `complete`: whether the question is complete
    for NC^1, as products in S_5 are and parity is not.
    """
    listed = tracked_by(architecture)
    layers = [layer for layer, _ in architecture.counted()]
    if all(layer_settles(layer) is not None for layer in layers):
        return _far_away(architecture, listed)
    if complete and all(_shallow(layer) for layer in layers):
        return Words(
            f"{listed}; conditional: if TC0 != NC1 it fails at some length, and no n is known",
            "Softmax attention of fixed depth and states that only move one way lie in TC0"
            " (Merrill, Sabharwal, arXiv 2207.00729; 2404.08819), and following five things is"
            " complete for NC1 (Barrington 1989). That the two differ is believed and not proved,"
            " so this is no FAILS.",
            "fails at some length if TC0 != NC1",
        )
    if any(part.turning is not None for layer in layers for part in layer):
        return Words(
            f"{listed}; no theorem here decides it",
            "Layers that turn their state over can follow many things, where there is room for the"
            " construction. For five things that is ten key numbers per head, four updates per"
            " token, and no convolution, norm or gate around them.",
            "no room for the construction that is known",
        )
    one_way = [layer for layer in layers if _does(layer) is _DIAGONAL]
    return Words(
        f"{listed}; no theorem here decides it",
        "Following a long row of changes takes a state that every token can turn over. Where no"
        " layer is shown to do so, and no bound of this program covers the stack, nothing is"
        " claimed.",
        "no theorem about these recurrences" if one_way else "",
    )


def _far_away(architecture: Architecture, listed: str) -> Words:
    """Every layer only moves one way, and no n is named: places, or too many bits."""
    if standstill(architecture) is not None:
        return Words(
            f"{listed}; Theorem P's n is out of reach",
            "Runs of equal tokens bring such a stack to a standstill, so it fails. But that takes"
            " more tokens than any prompt here has.",
            "fails, but beyond 10^12 tokens",
        )
    where = {"embedded": "with position embeddings", "alibi": "with places"}
    why = where.get(architecture.positions, "with places unknown")
    return Words(
        f"{listed}; {why} it fails at some length, and no n is known (with positions=none"
        " Theorem P names one)",
        "Such states form an aperiodic monoid of constant size, which lies in AC0 with positions,"
        " too, and parity does not (Furst, Saxe, Sipser 1984). This is a remark about some length,"
        " so no FAILS.",
        "fails at some length, no n is known",
    )


def _shallow(layer: Layer) -> bool:
    """Whether all of it lies in TC0: softmax attention, or what only moves one way."""
    return all(
        part.group in ("full", "windowed") or layer_settles((part,)) is not None for part in layer
    )


def _does(layer: Layer) -> str:
    if any(part.turning is not None for part in layer):
        return _TURNS
    if layer_settles(layer) is not None:
        return _ONE_WAY if any(part.group == "recurrent" for part in layer) else _NEAR
    if any(part.reading for part in layer):
        return _READS
    if all(part.group == "recurrent" for part in layer):
        return _DIAGONAL if all(part.is_diagonal for part in layer) else _SHRINKS
    return _OTHER

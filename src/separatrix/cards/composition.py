"""Composition on a capability card: how many steps can be done at once, from how many it
provably fails, and what a chain of thought changes.
"""

from __future__ import annotations

from collections.abc import Callable

from separatrix.architecture import Architecture
from separatrix.cards.line import CardLine, kinds
from separatrix.evidence.records import Verdict
from separatrix.tasks import SeqComp
from separatrix.tasks.seqcomp import LARGEST_PROMPT, MOST_STEPS
from separatrix.theory.base import number
from separatrix.theory.fails.asymptotic import Bite, ChenPengWu, YeEtAl, hdp
from separatrix.theory.fails.i_bounded_caches import TheoremI
from separatrix.theory.fails.i_prime_one_layer import TheoremIPrime, sole_full_layer
from separatrix.theory.fails.iii_one_reading_layer import TheoremIII
from separatrix.theory.fails.iv_two_reading_layers import TheoremIV
from separatrix.theory.fails.v_three_steps import TheoremV
from separatrix.theory.nothing import NothingKnown
from separatrix.theory.solves.chain_of_thought import Thought
from separatrix.theory.solves.composition import Composition, composable
from separatrix.theory.solves.room import bits_of, full_heads

_OPEN = "Nothing here proves that these weights exist, and nothing proves that they do not. "


def composition(architecture: Architecture, context: int) -> list[CardLine]:
    """The lines about composing steps, at prompts of `context` tokens where sizes must be known."""
    address = bits_of(context)
    if not architecture.reading:
        return _bounded(architecture, _task(2, context, address))
    steps = _most_steps(architecture, address)
    lines = []
    if steps:
        task = _task(steps, context, address)
        verdict = Composition().judge(architecture, task)
        assert verdict is not None
        numbers = verdict.numbers
        how = (
            verdict.statement.split(" solve it ")[0]
            + f" suffice, {numbers['address_bits']} of their key dimensions used"
        )
        explain = (
            f"Some weights follow up to {_steps(steps)} in one go, each step a look-up whose place"
            f" depends on the step before, in prompts of up to {context:,} tokens. Each full layer"
            " takes one step, and one more layer, full or recurrent, brings the starting point"
            " along."
        )
        lines.append(
            CardLine(
                f"composition, L <= {_steps(steps)}",
                "SOLVABLE",
                None,
                how,
                verdict.theorem,
                verdict,
                explain,
            )
        )
    if steps < MOST_STEPS:
        lines += _beyond(architecture, steps + 1, lambda count: _task(count, context, address))
    return [*lines, *_with_thought(architecture, context, address)]


def _most_steps(architecture: Architecture, address: int) -> int:
    """The largest L that the constructions cover with addresses of that many bits, a tag for
    each level beside them.
    """
    fitting = sorted(
        {i for i, part in full_heads(architecture) if part.has_room(address + 3, address)}
    )
    steps, _ = composable(architecture, fitting, address)
    widest: dict[int, int] = {}
    for i, part in full_heads(architecture):
        widest[i] = max(widest.get(i, 0), part.head_dim)
    room = min((widest[i] for i in fitting), default=0)
    steps = max(0, min(steps, room - address - 1, MOST_STEPS))
    while steps and Composition().judge(architecture, _task(steps, 1 << address, address)) is None:
        steps -= 1
    return steps


def _task(steps: int, context: int, address: int) -> SeqComp:
    m = max(2, (context - 2) // max(1, steps))
    return SeqComp(L=steps, m=max(2, min(m, 1 << (address - 1))), branching=(1,) * (steps - 1))


def _bounded(architecture: Architecture, within: SeqComp) -> list[CardLine]:
    """Two steps: z_2 of N entries has N^N contents; with n_1 = 1 the prompt has 2N + 2 tokens."""
    theorem = TheoremI()
    question = "composition, 2 steps"
    n = theorem.threshold(architecture, SeqComp(L=2, m=2, branching=(1,)))
    if n is None:
        return [
            _open(
                architecture,
                within,
                question,
                "no bound up to 10^12 tokens",
                "The caches are too large to count here.",
            )
        ]
    verdict = theorem.judge(architecture, SeqComp(L=2, m=(n - 2) // 2, branching=(1,)))
    assert verdict is not None
    cache = number(verdict.numbers["cache_bits"])
    explain = (
        "Whatever its weights, the model composes two look-ups wrongly in some prompt of"
        f" {number(n)} tokens. The second function must be kept whole, since the place to look at"
        f" comes last, and {kinds(architecture)} of {cache} bits cannot hold every such function."
    )
    thought = (
        "Writing the steps down does not help. What is written is worked out from a cache that has"
        " already lost part of the function."
    )
    return [
        CardLine(
            question,
            "FAILS",
            n,
            "Theorem I on its last function: N log2 N > cache",
            "I",
            verdict,
            explain,
        ),
        CardLine(
            "composition with chain of thought, 2 steps",
            "FAILS",
            n,
            "what is written is a function of the cache",
            "I",
            verdict,
            thought,
        ),
    ]


def _beyond(
    architecture: Architecture, steps: int, task: Callable[[int], SeqComp]
) -> list[CardLine]:
    """From the first number of steps that no construction covers: a finite theorem where there is
    one, else the asymptotic one and where it bites.

    `task` gives the composition of so many steps that fills the context: what is said to be open is
    open there.
    """
    if steps == 1 and sole_full_layer(architecture) is not None:
        return [_one_step(architecture, task), *_beyond(architecture, 2, task)]
    for theorem in (TheoremIII(), TheoremIV(), TheoremV()):
        least = max(steps, theorem.least_steps)
        if (
            len(architecture.reading) != theorem.reading_layers
            or theorem.sizes(architecture, 1 << 10) is None
        ):
            continue
        found = theorem.threshold(architecture, least)
        if found is None:
            continue
        text = (
            f"whatever the weights, in some prompt of {number(found.n)} tokens, the shortest shown"
            " to fail"
        )
        explain = (
            f"Whatever its weights, the model follows {_steps(least)} wrongly in some prompt of"
            f" {number(found.n)} tokens; so it does for more steps. What one token can read of the"
            " past, and what the bounded layers carry, is too little to tell all functions apart."
        )
        record = _at_threshold(theorem, architecture, least, found.numbers)
        line = CardLine(
            f"composition, {_steps(least)}", "FAILS", found.n, text, theorem.key, record, explain
        )
        return [*([] if least == steps else [_between(architecture, steps, task(least - 1))]), line]
    return [_asymptotic(architecture, task(max(2, steps)))]


def _one_step(architecture: Architecture, task: Callable[[int], SeqComp]) -> CardLine:
    """One look-up whose place comes before the last token: too much for a single full layer at
    some n.
    """
    question = "composition, 1 step"
    theorem = TheoremIPrime()
    verdict = theorem.judge(architecture, SeqComp(L=1, m=2))
    if verdict is None or verdict.n is None:
        return _between(architecture, 1, task(1))
    record = theorem.judge(architecture, SeqComp(L=1, m=verdict.n - 2))
    explain = (
        "Whatever its weights, the model looks a value up wrongly in some prompt of"
        f" {number(verdict.n)} tokens when the place to look at comes before the last token. The"
        " last token has to ask without knowing the place, and reads too little in one go to take"
        " the whole table along."
    )
    text = (
        f"one full layer reads {number(verdict.numbers['h'])} bits, and the table has m^m contents"
    )
    return CardLine(question, "FAILS", verdict.n, text, theorem.key, record, explain)


def _steps(count: int) -> str:
    return f"{count} step{'s' if count > 1 else ''}"


def _between(architecture: Architecture, first: int, task: SeqComp) -> CardLine:
    question = (
        f"composition, {_steps(task.L)}"
        if first == task.L
        else f"composition, {first} to {_steps(task.L)}"
    )
    return _open(
        architecture, task, question, "between construction and bound", "It lies between the two."
    )


def _open(
    architecture: Architecture, task: SeqComp, question: str, text: str, why: str
) -> CardLine:
    return CardLine(
        question,
        "OPEN",
        None,
        text,
        NothingKnown.key,
        NothingKnown().judge(architecture, task),
        f"{_OPEN}{why}",
    )


def _asymptotic(architecture: Architecture, task: SeqComp) -> CardLine:
    question = f"composition, from {task.L} steps"
    verdict = YeEtAl().judge(architecture, task) or ChenPengWu().judge(architecture, task)
    if verdict is None:
        mixed = any(part.reading for layer in architecture for part in layer if len(layer) > 1)
        why = (
            "head-wise hybrids of more than two reading layers (three groups at L = 3)"
            if mixed
            else "this stack"
        )
        return _open(
            architecture,
            task,
            question,
            f"no theorem here covers {why}",
            f"No theorem covers {why}.",
        )
    bite = Bite(hdp(architecture), verdict.numbers["exponent"])
    cited = "Ye26" if verdict.theorem == YeEtAl.key else "CPW"
    text = (
        f"open at any finite n; [{cited}, Theorem 1.1] is vacuous here: it would bite at n ="
        f" (Hdp)^(2^{bite.exponent}), Hdp = {bite.base:,}"
    )
    explain = (
        f"{_OPEN}The paper's theorem says that prompts long enough defeat such a stack, but long"
        " enough means more tokens than any computer will ever see, so it rules nothing out in"
        " practice."
    )
    return CardLine(question, "OPEN", None, text, verdict.theorem, verdict, explain)


def _with_thought(architecture: Architecture, context: int, address: int) -> list[CardLine]:
    """The most steps that one full layer takes when it may write: as many as its keys have room
    for level tags.
    """
    for steps in (MOST_STEPS, *range(MOST_STEPS - 1, 0, -1)):
        task = _task(steps, context, address)
        verdict = Thought().solve(architecture, task)
        if verdict is not None:
            explain = (
                "If the model may write intermediate results, one full layer is enough: it looks"
                " up a step, writes the result, looks up the next. It then writes one token per"
                f" step; the limit of {steps} is where the proof was asked for, or the key's room"
                " for step tags."
            )
            text = f"one full layer suffices, {steps} tokens written for {steps} steps"
            return [
                CardLine(
                    f"composition with chain of thought, L <= {steps}",
                    "SOLVABLE",
                    None,
                    text,
                    verdict.theorem,
                    verdict,
                    explain,
                )
            ]
    return []


def _at_threshold(
    theorem: TheoremIII | TheoremIV | TheoremV,
    architecture: Architecture,
    steps: int,
    numbers: dict[str, int],
) -> Verdict | None:
    """The record at the smallest failing size; None when that prompt is longer than a task may
    be.
    """
    if numbers["m"] * numbers["n_1"] * numbers.get("n_2", 1) * steps >= LARGEST_PROMPT:
        return None
    branching = [numbers["n_1"], *([numbers["n_2"]] if "n_2" in numbers else [])]
    task = SeqComp(
        L=steps, m=numbers["m"], branching=(*branching, *(1,) * (steps - 1 - len(branching)))
    )
    verdict = theorem.judge(architecture, task)
    return verdict if verdict is not None and verdict.status == "FAILS" else None

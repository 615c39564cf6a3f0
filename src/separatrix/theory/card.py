"""The lines of a capability card: what a model of that architecture can and cannot do at a context, each with the theorem that says so."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.architecture import Architecture
from separatrix.evidence import Status, Verdict
from separatrix.tasks import Eva, SeqComp
from separatrix.tasks._base import LARGEST_SIZE
from separatrix.tasks.seqcomp import MOST_STEPS
from separatrix.theory._base import number
from separatrix.theory.asymptotic import Bite, ChenPengWu, YeEtAl, hdp
from separatrix.theory.classes import TheoremI
from separatrix.theory.judge import judge
from separatrix.theory.one_layer import sole_full_layer
from separatrix.theory.theorem_iii import TheoremIII
from separatrix.theory.theorem_iv import TheoremIV
from separatrix.theory.theorem_v import TheoremV
from separatrix.theory.upper import Composition, Retrieval, bits_of, composable, full_heads

DEFAULT_VOCABULARY = 50_000


@dataclass(frozen=True)
class CardLine:
    """One question and its answer; `n` is the smallest n of a FAILS, `verdict` the record behind the line where a task record exists."""

    question: str
    status: Status
    n: int | None
    text: str
    theorem: str
    verdict: Verdict | None = None


def card(architecture: Architecture, context: int) -> list[CardLine]:
    """The card's lines at a context of that many tokens. Raises SizeError for a context beyond 10^12."""
    values = architecture.vocabulary or DEFAULT_VOCABULARY
    lines = [*_recall(architecture, context, values), *_composition(architecture, context)]
    lines.append(_equality(architecture))
    kind = "no theorem here covers it" if not _diagonal(architecture) else "diagonal recurrence; no theorem here covers it"
    lines.append(CardLine("permutation tracking (S_5)", "OPEN", None, kind, "none"))
    return lines


def _equality(architecture: Architecture) -> CardLine:
    """Equality of two strings of n bits: 2^n classes after the first string."""
    question, h = "equality of two strings", sole_full_layer(architecture)
    if h is not None:
        return CardLine(question, "FAILS", h + 1, f"strings of n bits, of which one full layer reads {number(h)}", "I'")
    if architecture.reading:
        return CardLine(question, "OPEN", None, "no theorem here decides it for a cache that grows", "none")
    n = 1
    while n <= (cache := architecture.cache_bits(n)):  # caches only grow with n
        n = cache + 1
    return CardLine(
        question, "FAILS", n, f"two strings of n bits differ in 2^n ways; {number(architecture.cache_bits(n))} bits of cache", "I"
    )


def _diagonal(architecture: Architecture) -> bool:
    names = {part.name for layer in architecture for part in layer}
    return "rglru" in names and not names & {"gdn", "mamba2", "full"}


def _recall(architecture: Architecture, context: int, values: int) -> list[CardLine]:
    """Recall of one of n facts of that vocabulary: Eva with V values; with chain of thought the bound stays."""
    question = f"recall of one of n facts (vocabulary {values:,})"
    here = Eva(n=context, V=values)
    solvable = Retrieval().judge(architecture, here)
    if solvable is not None:
        return [CardLine(question, "SOLVABLE", None, solvable.statement, solvable.theorem, solvable)]
    theorem = TheoremI()
    n = theorem.threshold(architecture, here)
    if n is None:
        verdict = judge(architecture, here)[0]
        return [CardLine(question, verdict.status, verdict.n, verdict.statement, verdict.theorem, verdict)]
    verdict = theorem.judge(architecture, Eva(n=n, V=values))
    assert verdict is not None
    text = f"n log2 {values:,} > {number(verdict.numbers['cache_bits'])} bits of cache"
    return [
        CardLine(question, "FAILS", n, text, "I", verdict),
        CardLine("  with chain of thought", "FAILS", n, "what is written is a function of the cache", "I", verdict),
    ]


def _composition(architecture: Architecture, context: int) -> list[CardLine]:
    if not architecture.reading:
        return [_bounded_composition(architecture)]
    address = bits_of(context)
    fitting = sorted({i for i, part in full_heads(architecture) if address + 3 <= part.head_dim and address <= part.dv})
    steps, carried = composable(architecture, fitting, address)
    widest: dict[int, int] = {}
    for i, part in full_heads(architecture):
        widest[i] = max(widest.get(i, 0), part.head_dim)
    room = min((widest[i] for i in fitting), default=0)
    steps = max(0, min(steps, room - address - 1, MOST_STEPS))
    lines = []
    if steps:
        m = max(2, (context - 2) // (steps if steps > 1 else 1))
        task = SeqComp(L=steps, m=max(2, min(m, 1 << (address - 1))), branching=(1,) * (steps - 1))
        verdict = Composition().judge(architecture, task)
        assert verdict is not None
        how = f"{len(fitting)} full layers" + (
            ", a recurrent layer before the second carries z_0" if carried else ", the first fetches z_0"
        )
        lines.append(CardLine(f"composition, L <= {steps} steps", "SOLVABLE", None, how, verdict.theorem, verdict))
    return lines if steps == MOST_STEPS else [*lines, _beyond(architecture, steps + 1)]


def _bounded_composition(architecture: Architecture) -> CardLine:
    """Two steps: z_2 of N entries has N^N contents; with n_1 = 1 the prompt has 2N + 2 tokens."""
    theorem = TheoremI()
    n = theorem.threshold(architecture, SeqComp(L=2, m=2, branching=(1,)))
    if n is None:
        return CardLine("composition, 2 steps", "OPEN", None, "no bound up to 10^12 tokens", "none")
    verdict = theorem.judge(architecture, SeqComp(L=2, m=(n - 2) // 2, branching=(1,)))
    assert verdict is not None
    return CardLine("composition, 2 steps", "FAILS", n, "Theorem I on its last function: N log2 N > cache", "I", verdict)


def _beyond(architecture: Architecture, steps: int) -> CardLine:
    """The first number of steps that no construction covers: a finite theorem where there is one, else the asymptotic one and where it bites."""
    for theorem in (TheoremIII(), TheoremIV(), TheoremV()):
        least = max(steps, theorem.least_steps)
        if len(architecture.reading) != theorem.reading_layers or theorem.sizes(architecture, 1 << 10) is None:
            continue
        found = theorem.threshold(architecture, least)
        if found is None:
            continue
        text = f"for every choice of weights, from prompts of {number(found.n)} tokens on"
        return CardLine(
            f"composition, {least} steps", "FAILS", found.n, text, theorem.key, _at_threshold(theorem, architecture, least, found.numbers)
        )
    task = SeqComp(L=max(2, steps), m=2, branching=(1,) * (max(2, steps) - 1))
    question = f"composition, from {max(2, steps)} steps"
    verdict = YeEtAl().judge(architecture, task) or ChenPengWu().judge(architecture, task)
    if verdict is None:
        return CardLine(question, "OPEN", None, "no theorem here covers it", "none")
    bite, cited = Bite(hdp(architecture), verdict.numbers["exponent"]), "Ye26" if verdict.theorem == YeEtAl.key else "CPW"
    text = (
        f"open at any finite n; [{cited}, Theorem 1.1] is vacuous here: it would bite at n = (Hdp)^(2^{bite.exponent}), Hdp = {bite.base:,}"
    )
    return CardLine(question, "OPEN", None, text, verdict.theorem, verdict)


def _at_threshold(
    theorem: TheoremIII | TheoremIV | TheoremV, architecture: Architecture, steps: int, numbers: dict[str, int]
) -> Verdict | None:
    """The record at the smallest failing size; None when that size is beyond what a task may have."""
    if numbers["m"] * numbers["n_1"] * numbers.get("n_2", 1) * steps >= LARGEST_SIZE:
        return None
    branching = [numbers["n_1"], *([numbers["n_2"]] if "n_2" in numbers else [])]
    task = SeqComp(L=steps, m=numbers["m"], branching=(*branching, *(1,) * (steps - 1 - len(branching))))
    verdict = theorem.judge(architecture, task)
    return verdict if verdict is not None and verdict.status == "FAILS" else None

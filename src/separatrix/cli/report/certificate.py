"""A certificate in words, for the terminal."""

from __future__ import annotations

from separatrix.cli.report.prompts import Fold, Place, align
from separatrix.core.evidence.records import Certificate
from separatrix.tasks.base.runs import in_runs

_FORMS = {
    "collision": (
        "Two prompts that leave the same cache and have different answers: the model must answer"
        " one of them wrongly."
    ),
    "block_swap": (
        "Two prompts whose blocks send the same messages and have different answers: the model must"
        " answer one of them wrongly."
    ),
    "two_runs": (
        "Two runs of tokens that differ in one token where they meet: the model answers both"
        " prompts alike, and their right answers differ."
    ),
    "wrong_answer": "A prompt that the model answers wrongly.",
}


def describe_certificate(record: Certificate) -> str:
    """The form, the prompts with their differing tokens in brackets, the right answers and the
    model's answer.
    """
    places = align(record.inputs)
    lines = [_FORMS[record.form], f"  {record.architecture}  on  {record.task}"]
    for number, (prompt, answer) in enumerate(zip(record.inputs, record.answers, strict=True)):
        shown = " ".join(_word(place, number) for place in places)
        if record.form == "two_runs":
            shown = in_runs(prompt)
        lines.append(f"  {shown}   right answer {answer}")
    both = " both" if record.form == "two_runs" else ""
    lines.append(f"  the model answers {record.output}{both}")
    if record.details.get("equal_state"):
        lines.append("  both leave the same state behind, so whatever follows is answered alike")
    if record.cache_format:
        lines.append(f"  every carried number rounded to {record.cache_format}")
    return "\n".join(lines)


def _word(place: Place | Fold, number: int) -> str:
    if isinstance(place, Fold):
        return f"...{place.positions} tokens..."
    return f"[{place.tokens[number]}]" if place.differs else str(place.tokens[number])

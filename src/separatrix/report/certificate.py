"""A certificate in words, for the terminal."""

from __future__ import annotations

from separatrix.evidence.records import Certificate
from separatrix.report.prompts import Fold, Place, align

_FORMS = {
    "collision": (
        "Two prompts that leave the same cache and have different answers: the model must answer"
        " one of them wrongly."
    ),
    "block_swap": (
        "Two prompts whose blocks send the same messages and have different answers: the model must"
        " answer one of them wrongly."
    ),
    "wrong_answer": "A prompt that the model answers wrongly.",
}


def describe_certificate(record: Certificate) -> str:
    """The form, the prompts with their differing tokens in brackets, the right answers and the
    model's answer.
    """
    places = align(record.inputs)
    lines = [_FORMS[record.form], f"  {record.architecture}  on  {record.task}"]
    for number, answer in enumerate(record.answers):
        lines.append(
            f"  {' '.join(_word(place, number) for place in places)}   right answer {answer}"
        )
    lines.append(f"  the model answers {record.output}")
    if record.cache_format:
        lines.append(f"  every carried number rounded to {record.cache_format}")
    return "\n".join(lines)


def _word(place: Place | Fold, number: int) -> str:
    if isinstance(place, Fold):
        return f"...{place.positions} tokens..."
    return f"[{place.tokens[number]}]" if place.differs else str(place.tokens[number])

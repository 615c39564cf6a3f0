"""The card of a model whose file leaves sizes open: its layers are drawn and counted, what is
not known is named, nothing is guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from separatrix.cards.memory import FAR, largest_numbers, layer_counts, rows, symbols
from separatrix.cli.printing import Answer
from separatrix.cli.report.card import tokens
from separatrix.cli.report.card_json import held
from separatrix.core.document import Document, Heading, Line
from separatrix.core.numbers.amounts import check_context
from separatrix.stacks.architecture.outline import Outline
from separatrix.stacks.architecture.spec import fold
from separatrix.stacks.mechanisms import LayerKind

_GROWING: set[LayerKind] = {"full", "indexed"}
_HOLDS: dict[str, set[LayerKind]] = {
    "state_bytes": {"recurrent", "convolution"},
    "window_bytes": {"windowed"},
    "kv_bytes_per_token": _GROWING,
}


@dataclass(frozen=True)
class Outlined(Answer):
    """The outline of a model at a context. Raises SizeError for one that is not positive."""

    outline: Outline
    context: int

    def to_json(self) -> dict[str, Any]:
        """As `card_json`, null where a number depends on a size that is not known."""
        outline, context = self.outline, self.context
        check_context(context)
        known = outline.known
        memory = rows(known, context) if known else ()
        cache: dict[str, Any] = {
            "recurrent_numbers": _numbers(outline, "state", context, "recurrent"),
            "convolution_numbers": _numbers(outline, "convolution", FAR, "convolution"),
            **held(memory),
        }
        unsized = {cls.group for cls in outline.unsized}
        cache |= {key: None for key, groups in _HOLDS.items() if groups & unsized}
        return {
            "name": outline.name,
            "context": context,
            "layers": layer_counts(outline),
            "pattern": "".join(symbols(outline)),
            "cache": cache | {"total_bytes": None},
            "verdicts": [
                {
                    "question": question,
                    "task": None,
                    "status": "OPEN",
                    "theorem": "none",
                    "n": None,
                    "text": text,
                    "sizes": {},
                    "assumptions": list(outline.notes),
                }
                for question, text in _verdicts(outline)
            ],
            "assumptions": list(outline.notes),
            "unknown": [
                *outline.missing,
                *(name for name in ("vocabulary", "context") if getattr(outline, name) is None),
            ],
        }

    def document(self) -> Document:
        outline, data = self.outline, self.to_json()
        kinds = ", ".join(
            f"{number:,} {kind}"
            for kind, number in data["layers"].items()
            if number and kind != "total"
        )
        sets = " ".join(f"--set {name}=..." for name in outline.missing)
        like = f"; or take the preset '{outline.like}', which has them" if outline.like else ""
        return Document(
            Heading(outline.name, f"{len(outline):,} layers: {kinds}"),
            Line(fold(data["pattern"])),
            Heading(f"At {tokens(self.context)}"),
            *(Line(f"  {question}   OPEN: {text}") for question, text in _verdicts(outline)),
            Heading("Not known"),
            Line(f"  {', '.join(data['unknown'])}"),
            Line(f"  sizes are not guessed; supply them: {sets}{like}"),
        )


def _numbers(outline: Outline, kind: str, t: int, group: str) -> dict[str, int | None]:
    known = largest_numbers(outline.shaped, kind, t) if outline.shaped else {}
    return known | {
        cls.name: None
        for cls in outline.shapeless
        if group == cls.group or (kind == "convolution" and cls.group == "recurrent")
    }


def _verdicts(outline: Outline) -> list[tuple[str, str]]:
    parts = [part for layer, _ in outline.counted() for part in layer]
    if any(part.reading or part.name == "loglinear" for part in parts):
        return [("what it can compute", "depends on the sizes that are not known")]
    return [
        (
            "recall of one of n facts",
            (
                "fails from some n on (Theorem I: the cache is bounded); which n depends on the"
                " sizes that are not known"
            ),
        )
    ]

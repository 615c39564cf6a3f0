"""Real models in the report: the card's lines at the model's own context, each with its record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from separatrix.cards.facts import card_facts
from separatrix.core.errors import EvidenceError, SizeError
from separatrix.core.evidence.canonical import canonical, json_object
from separatrix.core.evidence.records import Evidence
from separatrix.core.numbers.amounts import format_bytes
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.hf.file import load_json, parse_json
from separatrix.stacks.architecture.released import PRESETS, preset_named
from separatrix.stacks.architecture.resolve import preset, resolve

DEFAULT_CONTEXT = 8192
MOST_LAYERS = 1000
LONGEST_SOURCE = 1 << 20
"""Characters of a spec or a config."""


@dataclass(frozen=True)
class Source:
    """Where a model comes from: the name of a preset, a spec, or the content of its config.json.

    A bundle holds the source, so that whoever checks it reads the model again.
    """

    preset: str = ""
    spec: str = ""
    config: str = ""
    """Canonical JSON."""

    def plain(self) -> dict[str, str]:
        """The source as a bundle holds it."""
        fields = {"preset": self.preset, "spec": self.spec, "config": self.config}
        return {name: text for name, text in fields.items() if text}

    @classmethod
    def from_plain(cls, data: object) -> Source:
        """Inverse of `plain`. Raises EvidenceError for anything else."""
        entry: Mapping[str, Any] = json_object(data) or {}
        if len(entry) != 1 or not set(entry) <= {"preset", "spec", "config"}:
            raise EvidenceError("a model of a report is a preset, a spec or a config")
        if not all(isinstance(text, str) and text for text in entry.values()):
            raise EvidenceError("the source of a model is a text")
        if max(map(len, entry.values())) > LONGEST_SOURCE:
            raise EvidenceError(f"the source of a model has at most {LONGEST_SOURCE:,} characters")
        if "preset" in entry and entry["preset"] not in PRESETS:
            raise EvidenceError(f"there is no preset {entry['preset'][:40]!r}")
        return cls(**entry)

    def read(self) -> Architecture:
        """The model. Raises SizeError for one of more layers than a card is asked for here, and
        what reading it raises.
        """
        architecture = self._read()
        if len(architecture) > MOST_LAYERS:
            raise SizeError(
                f"a model of {len(architecture):,} layers; a report tells of at most"
                f" {MOST_LAYERS:,}"
            )
        return architecture

    def _read(self) -> Architecture:
        if self.config:
            # the families of models load when one is read
            from separatrix.stacks.architecture.hf import from_config

            return from_config(parse_json(self.config, "the config of a model"))
        return Architecture.parse(self.spec) if self.spec else preset(self.preset)

    @property
    def name(self) -> str:
        """What a report calls the model."""
        if self.config:
            kind = parse_json(self.config, "the config of a model").get("model_type", "no type")
            return f"config.json ({str(kind)[:60]})"
        return self.spec or self.preset


def source(text: str) -> Source:
    """The source that a text names, read as every command reads it: a preset, a path, JSON, or a
    spec. Raises what reading it raises.
    """
    text = text.strip()
    architecture = resolve(text)
    known = preset_named(text)
    # a name of the hub may be a folder here as well, which then is what is meant
    if known is not None and ("/" not in text or not Path(text).exists()):
        return Source(preset=known)
    if text.startswith("{"):
        data = parse_json(text, "the JSON given")
    elif not architecture.name and not Path(text).expanduser().exists():
        return Source(spec=architecture.spec)
    else:
        data = load_json(Path(text).expanduser())
    # layers written out as JSON say no more than their spec, but for a name that nobody checks
    return (
        Source(config=canonical(data)) if "model_type" in data else Source(spec=architecture.spec)
    )


DEFAULT_MODELS = tuple(
    Source(preset=name) for name in ("qwen3-next-80b", "nemotron-h-8b", "recurrentgemma-2b")
)


def model_summary(
    architecture: Architecture, context: int, records: dict[str, Evidence]
) -> dict[str, Any]:
    """A real model's card in short; the verdicts behind its rows are added to `records`."""
    facts = card_facts(architecture, context)
    lines: list[dict[str, Any]] = []
    for row in facts.table:
        behind = [line.record for line in row.lines]
        behind += [line.grade.verdict for line in row.lines if line.grade is not None]
        found = {record.digest: record for record in behind if record is not None}
        records |= found
        # a row that goes on from the one above stands by itself here
        asks = row.asks.replace("  up to ", "compose up to ")
        said = {"question": asks, "status": row.status, "text": row.said}
        lines.append(said | {"records": list(found)})
    still = "does not grow"
    return {
        "spec": architecture.spec,
        "vocabulary": architecture.vocabulary,
        "pattern": " ".join("|".join(part.symbol for part in layer) for layer in architecture),
        "context": context,
        "memory": [
            [row.title, f"{format_bytes(row.bits)}, {row.growth if row.limit is None else still}"]
            for row in facts.memory
        ],
        "lines": lines,
    }


def model_entry(source: Source, records: dict[str, Evidence]) -> dict[str, Any]:
    """A model as the bundle holds it; the verdicts behind its lines are added to `records`."""
    architecture = source.read()
    summary = model_summary(architecture, architecture.context or DEFAULT_CONTEXT, records)
    return summary | {
        "name": source.name,
        "assumptions": list(architecture.assumptions),
        "notes": list(architecture.notes),
    }

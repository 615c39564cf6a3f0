"""The four kinds of evidence about an (architecture, task) pair, as canonical JSON with a content
hash.

Each record is plain data that a stranger can check: `separatrix.checks.verify` derives every claim
again without the code that found it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, cast, get_type_hints

from separatrix.core.errors import EvidenceError
from separatrix.core.evidence.canonical import canonical, json_list, json_object, sha256
from separatrix.core.evidence.typed import listed, typed

FORMAT_VERSION = 1
SOLVED = Fraction(99, 100)
"""The accuracy from which a trained model counts as having solved a task."""
Status = Literal["FAILS", "SOLVABLE", "OPEN"]


def enveloped(kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """A body as it is written to a file: format version, kind, content hash, body."""
    return {
        "separatrix": FORMAT_VERSION,
        "kind": kind,
        "sha256": sha256(canonical({"kind": kind, "body": body})),
        "body": dict(body),
    }


def opened(data: object, *kinds: str) -> tuple[str, dict[str, Any]]:
    """The kind and the body of an envelope, one of `kinds`, whose content hash fits. Raises
    EvidenceError for anything else.
    """
    envelope = json_object(data)
    if envelope is None or "separatrix" not in envelope:
        raise EvidenceError(
            "this JSON is not Separatrix evidence: the field 'separatrix' is missing"
        )
    version = envelope["separatrix"]
    if type(version) is not int or version != FORMAT_VERSION:
        raise EvidenceError(
            f"evidence of format version {repr(version)[:60]}; this program reads"
            f" version {FORMAT_VERSION}"
        )
    kind, body = envelope.get("kind"), json_object(envelope.get("body"))
    if set(envelope) != {"separatrix", "kind", "sha256", "body"} or body is None:
        raise EvidenceError(
            "evidence has the fields separatrix, kind, sha256, body, the last an object; this one"
            f" has {listed(sorted(map(str, envelope)))}"
        )
    if kind not in [*kinds]:
        raise EvidenceError(
            f"unknown kind of evidence {repr(kind)[:60]}; known: {', '.join(kinds)}"
        )
    if envelope["sha256"] != enveloped(kind, body)["sha256"]:
        raise EvidenceError(
            f"the content hash of this {kind} does not match its content: it was edited or damaged"
        )
    return kind, body


@dataclass(frozen=True, kw_only=True, repr=False)
class Evidence:
    """What every record holds: architecture and task, each as its canonical text."""

    kind: ClassVar[str] = ""
    later: ClassVar[tuple[str, ...]] = ()
    """Fields that records of earlier versions do not have: left out where they are empty, so that
    one content has one text.
    """
    architecture: str
    task: str

    def __repr__(self) -> str:
        return f"{self.kind} {self.digest[:12]}: {self.architecture} on {self.task}"

    def body(self) -> dict[str, Any]:
        values = {f.name: to_plain(getattr(self, f.name)) for f in fields(self)}
        return {name: value for name, value in values.items() if value or name not in self.later}

    @cached_property
    def digest(self) -> str:
        """sha256 of the canonical body and kind, in hex."""
        return enveloped(self.kind, self.body())["sha256"]

    def envelope(self) -> dict[str, Any]:
        """The record as it is written to a file."""
        return enveloped(self.kind, self.body())


@dataclass(frozen=True, kw_only=True, repr=False)
class Verdict(Evidence):
    """A theorem applied to exact numbers. `numbers` hold everything its inequality needs, so
    that anyone can evaluate it again.
    """

    kind: ClassVar[str] = "verdict"
    status: Status
    theorem: str
    """Key of the theorem registry, e.g. "I", "I'", "III", "Ye26-1.1"."""
    statement: str
    """One sentence with the exact numbers."""
    n: int | None = None
    """The smallest n at which this theorem bites, or a failing size that its search found; None
    where no n is named.
    """
    log2_n: str | None = None
    """For an n too large to write: its base-2 logarithm, an exact integer or formula as text."""
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    method: Literal["integers", "balls", ""] = ""
    slack: str = ""
    """Left side minus right side of the deciding inequality, in bits, enclosed; "" where nothing
    is compared.
    """
    premises: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    """What the sizes of the spec take for granted."""
    notes: tuple[str, ...] = ()
    """What the reader of a model's file said of it. The spec does not hold the file, so that no
    check derives these again.
    """
    source: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class Construction(Evidence):
    """Explicit weights that answer every input of the size, with a proof object."""

    kind: ClassVar[str] = "construction"
    later: ClassVar[tuple[str, ...]] = ("format", "proofs")
    name: str
    sizes: dict[str, int]
    model: dict[str, Any]
    """`ModelConfig.to_json()`."""
    weights: str
    """File name of the safetensors file, relative to the evidence file."""
    weights_sha256: str
    proof: dict[str, Any]
    """Per layer: score gap, off-target mass, rounding error, margin; as rigorous enclosures
    written as decimal strings. With "unproved" nothing is claimed.
    """
    statement: str = ""
    format: str = ""
    """The number format that `proof` is about; empty: fp32."""
    proofs: dict[str, Any] = field(default_factory=dict[str, Any])
    """The proofs, or what breaks them, in other formats by name."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Certificate(Evidence):
    """A concrete failure: two inputs that the model cannot tell apart with two answers, or one
    input answered wrongly.
    """

    kind: ClassVar[str] = "certificate"
    form: Literal["collision", "block_swap", "two_runs", "wrong_answer"]
    model: dict[str, Any]
    weights: dict[str, Any]
    """name -> {"dtype", "shape", "data" (base64, little endian)}: the model travels inside the
    certificate.
    """
    cache_format: str | None = None
    """Number format every carried number is rounded to after each token; None: float32 as
    computed.
    """
    inputs: list[list[int]]
    answers: list[int]
    """The task's right answer for each input."""
    output: int
    """What the model answers (to both inputs, for the forms with two)."""
    details: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, kw_only=True, repr=False)
class Measurement(Evidence):
    """Trained accuracy with everything needed to judge it."""

    kind: ClassVar[str] = "measurement"
    later: ClassVar[tuple[str, ...]] = ("longer", "repeats", "answers")
    seeds: tuple[int, ...]
    correct: tuple[int, ...]
    """Right answers per seed on `total` fresh inputs each."""
    total: int
    chance: str
    """Accuracy of the best constant guess, as a fraction such as "1/16"."""
    confidence: str = "0.95"
    intervals: tuple[tuple[str, str], ...]
    """Wilson interval of each seed's accuracy, six decimals."""
    budget: dict[str, Any]
    """Everything that shaped the runs (steps, batch, optimiser, learning rate, width, ...), the
    model's parameters, and for each seed how many steps it did and what ended it.
    """
    longer: tuple[dict[str, Any], ...] = ()
    """Accuracy on prompts longer than any trained on, each on `total` fresh inputs of its own:
    "task", "chance", and for each seed "correct" and "intervals".
    """
    repeats: str = ""
    """Where prompts are so few that tests repeat what training showed: a sentence that says so."""
    answers: tuple[dict[str, Any], ...] = ()
    """Where several answers are due in a prompt, or the test was repeated with rounded states: for
    the task, each longer size and each such test "task", and for each seed "right", "due" and
    "intervals" of single answers; for the task "bits" and "bits_squares", too, and with rounded
    states "format", "correct" and "bits".
    """

    @property
    def ended(self) -> tuple[str, ...]:
        """What ended each seed's training; nothing in records of earlier versions."""
        stopped = json_list(self.budget.get("stopped"))
        if stopped is None or len(stopped) != len(self.seeds):
            return ()
        return tuple(map(str, stopped))

    @property
    def diverged(self) -> int:
        """How many seeds diverged; they count with no answer right."""
        return self.ended.count("diverged")

    @property
    def solved(self) -> int:
        """How many seeds solved the task: right on at least `SOLVED` of their fresh inputs, or of
        the answers due in them where these are counted.
        """
        own = self.answers[0] if self.answers else {}
        right, due = (json_list(own.get(name)) for name in ("right", "due"))
        if right is None or due is None:
            return sum(count >= SOLVED * self.total for count in self.correct)
        # as a file says it: whoever checks the record looks at their types
        pairs = [pair for pair in zip(right, due, strict=False) if set(map(type, pair)) == {int}]
        return sum(asked > 0 and found >= SOLVED * asked for found, asked in pairs)


KINDS: dict[str, type[Evidence]] = {
    c.kind: c for c in (Verdict, Construction, Certificate, Measurement)
}


def to_plain(value: Any) -> Any:
    """The value as JSON writes it: mappings with keys of text, lists for tuples."""
    if isinstance(value, Mapping):
        mapping = cast("Mapping[object, Any]", value)
        return {str(key): to_plain(entry) for key, entry in mapping.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [to_plain(entry) for entry in cast("Sequence[Any]", value)]
    return value


def from_envelope(data: object) -> Evidence:
    """The record in an envelope. Raises EvidenceError for another version, an unknown kind or
    field, a wrong type or a wrong hash.
    """
    kind, body = opened(data, *KINDS)
    cls = KINDS[kind]
    every = {f.name for f in fields(cls)}
    # an empty one would be a second text of the same content
    names = every - {name for name in cls.later if not body.get(name)}
    if set(body) != names:
        raise EvidenceError(
            f"a {kind} must have exactly its own fields; missing or unknown:"
            f" {listed(sorted(names.symmetric_difference(body)))}; a file of an earlier version"
            " must be written again"
        )
    hints = get_type_hints(cls)
    return cls(**{name: typed(body[name], hints[name], name) for name in names})

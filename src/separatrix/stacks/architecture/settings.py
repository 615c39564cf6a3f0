"""Sizes given by hand, over what a file or spec says: `mamba2.state=128`, `dtype=bf16`,
`vocabulary=32000`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from separatrix.core.errors import SizeError, SpecError, UnknownNameError
from separatrix.core.numbers.formats import NumberFormat
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.engines import MOST_CARDS, Engine
from separatrix.stacks.mechanisms import (
    MECHANISMS,
    Mechanism,
    check_size_names,
    mechanism_named,
)
from separatrix.stacks.mechanisms.base import ATTENTION

_WAY = (
    "write --set MECHANISM.SIZE=VALUE, such as --set mamba2.state=128, or --set dtype=bf16,"
    " kv=fp8, vocabulary=N, context=N"
)
_MOST = {"vocabulary": 10**12, "context": 10**12, "tp": MOST_CARDS}
_SAID_OF = {
    "number format": {"format"},
    "keys and values": {"format", "kv"},
    "convolution buffers": {"format"},
    "token shifts": {"format"},
    "recurrent state": {"state_format"},
    "softmax accumulators": {"accumulator", "running_max"},
    "rotation of": {"rope", "rope_dims", "rope_base"},
    "every": {"rope"},
}
"""How a reader's note begins -> the sizes that it is about."""


@dataclass(frozen=True)
class Settings:
    """Sizes by (mechanism, size), and what holds for the whole model."""

    sizes: Mapping[tuple[str, str], Any] = field(default_factory=dict[tuple[str, str], Any])
    dtype: str | None = None
    kv: str | None = None
    """Number format of the keys and values of attention, whatever the rest is stored in."""
    vocabulary: int | None = None
    context: int | None = None
    like: str | None = None
    """The model type by whose row a config.json is read, whatever its own."""
    engine: str | None = None
    """What serves the model, a name in engines.toml; and how (`engines.Engine`)."""
    tp: int | None = None
    utilisation: Fraction | None = None
    """Share of each card's memory that serves it."""

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Settings:
        """Settings from texts such as "mamba2.state=128". Raises SpecError, UnknownNameError or
        SizeError that names the text.
        """
        sizes: dict[tuple[str, str], Any] = {}
        whole: dict[str, Any] = {}
        for text in texts:
            key, equals, value = (part.strip() for part in text.partition("="))
            if not equals or not key or not value:
                raise SpecError(f"--set {text[:60]!r} is no setting; {_WAY}")
            name, dot, size = key.partition(".")
            if dot:
                name = mechanism_named(name[:60], where=f" in --set {text[:60]!r}")
            target, place = (sizes, (name, size)) if dot else (whole, name)
            if place in target:
                raise SpecError(f"--set {key[:60]} is given twice; keep one")
            if dot:
                check_size_names(MECHANISMS[name], [size[:60]], where=f" in --set {text[:60]!r}")
                sizes[name, size] = _value(value)
            elif name in ("dtype", "kv"):
                whole[name] = NumberFormat(value).name
            elif name in ("engine", "like"):
                whole[name] = value
            elif name == "utilisation":
                whole[name] = _share(value, text)
            elif name in _MOST:
                number = _value(value)
                if type(number) is not int or not 1 <= number <= _MOST[name]:
                    raise SizeError(
                        f"--set {text[:60]}: {name} must be an integer from 1 to {_MOST[name]:,}"
                    )
                whole[name] = number
            else:
                raise UnknownNameError.of(
                    "setting",
                    name[:60],
                    ["dtype", "kv", "like", "engine", "utilisation", *_MOST],
                    where=f" in --set {text[:60]!r}; {_WAY}",
                )
        return cls(sizes, **whole)

    def __bool__(self) -> bool:
        return bool(self.sizes) or any(
            value is not None
            for value in (self.dtype, self.kv, self.vocabulary, self.context, self.like)
        )

    def over(self, cls: type[Mechanism], sizes: Mapping[str, Any]) -> dict[str, Any]:
        """`sizes` of a mechanism with what is set by hand in their place."""
        changed = dict(sizes)
        if self.dtype is not None:
            changed["format"] = self.dtype
        if self.kv is not None and cls.group in ATTENTION:
            changed["format"] = self.kv
        own = {size: value for (name, size), value in self.sizes.items() if name == cls.name}
        return changed | own

    @property
    def served(self) -> Engine | None:
        """The engine, None where none is set. Raises UnknownNameError and SizeError for what the
        table does not have.
        """
        if self.engine is None:
            if self.tp is not None:
                raise SizeError(
                    f"tp={self.tp}: what each card keeps is known of an engine; --set engine=vllm"
                )
            return None
        return Engine.named(self.engine, self.tp or 1)

    def check_used(self, among: Iterable[str]) -> None:
        """Raises UnknownNameError for a setting of a mechanism that the model does not have."""
        there = sorted(set(among))
        if self.kv is not None and not _keeps_keys(there):
            raise UnknownNameError(
                f"kv={self.kv}: no layer of this model keeps keys and values; it has"
                f" {', '.join(there)}"
            )
        for name, size in self.sizes:
            if name not in there:
                raise UnknownNameError(
                    f"--set {name}.{size}: no layer of this model is '{name}'; it has"
                    f" {', '.join(there)}"
                )

    def of(self, among: Iterable[str]) -> Settings:
        """The settings that fit a model with these mechanisms, and those of the whole model."""
        there = set(among)
        kept = {key: value for key, value in self.sizes.items() if key[0] in there}
        kv = self.kv if _keeps_keys(there) else None
        return replace(self, sizes=kept, kv=kv)

    def noted(self, notes: Iterable[str]) -> tuple[str, ...]:
        """A file's notes without those that a setting contradicts, and what was set by hand: to be
        printed with every verdict.
        """
        changed = {size for _, size in self.sizes}
        changed |= {"format"} if self.dtype is not None else set()
        changed |= {"kv"} if self.kv is not None else set()
        gone = tuple(said for said, sizes in _SAID_OF.items() if changed & sizes)
        return (*(note for note in notes if not note.startswith(gone)), *self.notes())

    def notes(self) -> list[str]:
        """What was set by hand."""
        words = [f"{name}.{size} = {value}" for (name, size), value in self.sizes.items()]
        whole = {"dtype": self.dtype, "kv": self.kv}
        words += [f"{name} = {value}" for name, value in whole.items() if value is not None]
        return [f"set by hand: {', '.join(words)}"] if words else []


def _share(value: str, text: str) -> Fraction:
    """A share of a memory. Raises SizeError for what is none."""
    plain = len(value) <= 10 and value.replace(".", "", 1).isdigit() and value.isascii()
    if not plain or not 0 < Fraction(value) <= 1:
        raise SizeError(f"--set {text[:60]}: utilisation must be a number above 0, at most 1")
    return Fraction(value)


def _keeps_keys(names: Iterable[str]) -> bool:
    """Whether one of these mechanisms is attention."""
    return any(MECHANISMS[name].group in ATTENTION for name in names)


def _value(text: str) -> Any:
    digits = text.replace("_", "")
    if digits.isascii() and digits.lstrip("-").isdigit():
        # longer numbers are refused all the same, so that none of thousands of digits is read
        return int(digits) if len(digits) <= 14 else 10**14
    return {"true": True, "false": False}.get(text.lower(), text)


def with_settings(architecture: Architecture, settings: Settings | None) -> Architecture:
    """The architecture with sizes set by hand in place of its own, and a note that says so. Raises
    UnknownNameError for a setting that fits no layer, SizeError or SpecError for a value that does
    not.
    """
    if settings is not None and settings.like is not None:
        raise SpecError(f"like={settings.like[:60]}: only a config.json is read as a model type")
    if not settings:
        return architecture
    among = {part.name for layer, _ in architecture.counted() for part in layer}
    settings.check_used(among)
    made: dict[Mechanism, Mechanism] = {}
    for layer, _ in architecture.counted():
        for part in layer:
            made[part] = type(part)(**settings.over(type(part), part.sizes()))
    return replace(
        architecture,
        layers=tuple(tuple(made[part] for part in layer) for layer in architecture.layers),
        notes=settings.noted(architecture.notes),
        vocabulary=settings.vocabulary or architecture.vocabulary,
        context=settings.context or architecture.context,
    )

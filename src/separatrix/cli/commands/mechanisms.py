"""`separatrix check-mechanism`."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from separatrix.cli.options import Asked, command, pairs
from separatrix.cli.printing import Answer, Told
from separatrix.core.document import Document, Heading, Line, Part, Table
from separatrix.core.errors import SizeError, SpecError, UnknownNameError
from separatrix.core.progress import bar
from separatrix.tasks import parse_task

if TYPE_CHECKING:
    from separatrix.mixers import Mixer
    from separatrix.mixers.plugins.check import LawResult, ReportCard
    from separatrix.models.model import Model

PROMPTS = 13
"""How many a checkpoint gets."""
LONGEST = 4096
"""Tokens of a prompt."""


@command
def check_mechanism(asked: Asked) -> Answer:
    """Runs every law of a token mixer on a class of your own: equal forms, causality, measured
    cache, half formats, vmap, speed.

    Exit code 1 if a law is broken. Examples: check-mechanism my_module:MyMixer --set state=32;
    check-mechanism mine.py:MyMixer --on trained/ --task eva:n=8
    """
    if asked.task is not None and asked.on is None:
        raise SpecError("--task says whose prompts a trained model gets; name its folder with --on")
    # the bar comes before torch does: loading it is most of the waiting
    with bar(f"checking {asked.target}", shown=not asked.as_json) as advance:
        from separatrix.mixers.laws.tools import RELATIVE
        from separatrix.mixers.plugins.check import BUDGET, check, find

        own = _sizes(asked.set or [])
        within = _number(own, "tolerance", RELATIVE, 0, 0.1)
        budget = _number(own, "budget", BUDGET, 1, 86_400)
        formats = _formats(own.pop("formats", "fp32,bf16,fp16"))
        width = _number(own, "model_width", None, 1, 65_536) if "model_width" in own else None
        mixer, origin = find(asked.target, width=width, sizes=own)
        seed = secrets.randbelow(1 << 31) if asked.seed is None else asked.seed
        card = check(
            mixer,
            origin=origin,
            within=within,
            formats=formats,
            budget=budget,
            seed=seed,
            layers=None if asked.on is None else _layers(asked.on, asked.task, mixer, seed),
            progress=advance,
        )
    return Told(check_json(card), check_document(card), code=int(bool(card.broken)))


def _layers(folder: str, text: str | None, mixer: Mixer, seed: int) -> dict[str, Any]:
    """The layers of a stored model that are of the mixer's kind, by their names, and what each of
    them gets of prompts. Raises SpecError and SizeError.
    """
    import numpy as np
    import torch

    from separatrix.cli.commands.evidence import from_folder, holds_model
    from separatrix.mixers.laws.fed import Fed
    from separatrix.models.stored.accuracy import reads

    name = mixer.mechanism.name
    if not holds_model(folder):
        raise SpecError(
            f"--on '{folder[:200]}' is no folder that `separatrix train` or `construct` has written"
        )
    found = from_folder(folder)
    task = parse_task(text or found.task)
    reads(found.model, parse_task(found.task), task)
    if task.length > LONGEST:
        raise SizeError(
            f"--task {task.spec}: prompts of {task.length:,} tokens; laws stream up to {LONGEST:,}:"
            " choose smaller sizes"
        )
    model = found.model.double().eval()
    kinds = {part: where for where, part in _parts(model) if part.mechanism.name == name}
    if not kinds:
        raise SpecError(f"--on {folder}: {model.config.architecture} has no layer of '{name}'")
    tokens = torch.from_numpy(task.sample(PROMPTS, np.random.default_rng([seed, 3])).tokens)
    got: dict[Mixer, Any] = {}
    hooks = [
        part.register_forward_pre_hook(lambda part, args: got.update({part: args[0]}))
        for part in kinds
    ]
    with torch.no_grad():
        model.every(tokens)
    for hook in hooks:
        hook.remove()
    start = ["start"] * model.config.bos
    said = [[*start, *map(str, row)] for row in tokens.tolist()]
    return {where: (part, Fed(got[part], said)) for part, where in kinds.items()}


def _parts(model: Model) -> Iterator[tuple[str, Mixer]]:
    """Every mixer of a model, and where it stands."""
    for place, block in enumerate(model._blocks(), 1):
        for heads, part in enumerate(block._mixers(), 1):
            yield f"layer {place}" + f", heads {heads}" * (heads > 1), part


def _number(sizes: dict[str, Any], name: str, default: Any, low: float, high: float) -> Any:
    """A setting of the laws, taken out of the sizes; a width is whole. Raises SizeError."""
    text = str(sizes.pop(name, default))
    kind = int if name == "model_width" else float
    try:
        found = kind(text)
    except ValueError:
        found = -1
    if not low <= found <= high:
        raise SizeError(f"--set {name}={text[:20]}: write a number from {low:,} to {high:,}")
    return found


def _formats(text: str) -> list[str]:
    """Names of formats from a text such as "fp32,bf16". Raises UnknownNameError."""
    from separatrix.mixers.laws import FORMATS

    names = [name.strip() for name in str(text).split(",")]
    for name in names:
        if name not in FORMATS:
            raise UnknownNameError.of("format", name[:60], FORMATS)
    return names


def _sizes(texts: list[str]) -> dict[str, Any]:
    """Sizes from texts such as "state=32", "negative=true", "bf16". Raises SpecError."""
    found: dict[str, Any] = {}
    named = [text if "=" in text else f"format={text}" for text in texts]
    for name, value in pairs("--set", named, (), "", "state=32"):
        number = value.replace("_", "")
        if number.isascii() and number.isdecimal() and len(number) < 14:
            found[name] = int(number)
        else:
            found[name] = {"true": True, "false": False}.get(value, value)
    return found


_NOT_ASKED = {
    "chunks": "the module has no `chunk` to vary",
    "monotone": "the mechanism does not say that it is monotone",
    "forgets": "the mechanism does not say how far back it reads; all it keeps counts as state",
}
"""Laws that may have nothing to be about, and why."""
_OF_A_LAW = ("law", "holds", "applies", "broken_by", "says")


def check_json(card: ReportCard) -> dict[str, Any]:
    """Plain data; `holds` is true if no law is broken."""
    from separatrix.mixers.plugins.check import LONGER, STEPS

    speed = card.speed
    return {
        "mechanism": card.mechanism.name,
        "origin": card.origin,
        "width": card.width,
        "sizes": card.mechanism.sizes(),
        "seed": card.seed,
        "holds": not card.broken,
        "laws": [{name: getattr(result, name) for name in _OF_A_LAW} for result in card.laws],
        "cache": [{"t": t, "numbers": numbers} for t, (numbers, _) in sorted(card.cache.items())],
        "growth": card.growth,
        "speed": (
            None
            if speed is None
            else {
                "tokens": STEPS,
                "step_seconds": speed.step,
                "forward_seconds": speed.forward,
                "longer": [LONGER, 2 * LONGER],
                "growth": speed.growth,
            }
        ),
        "notes": list(card.notes),
    }


def check_document(card: ReportCard) -> Document:
    """Laws, cache and speed, one block each."""
    from separatrix.mixers.plugins.check import LONGER, STEPS

    sizes = ", ".join(
        f"{name}={value}"
        for name, value in card.mechanism.sizes().items()
        if value is not None and name != "width"
    )
    parts: list[Part] = [
        Heading(card.mechanism.name, f"{card.origin}   model width {card.width}   {sizes}"),
        Heading(),
        Table([(result.law, *_outcome(result)) for result in card.laws], labels=True),
        Heading(),
    ]
    if card.cache:
        tokens = sorted(card.cache)
        kept = ("numbers kept", *(f"{card.cache[t][0]:,}" for t in tokens))
        parts.append(Table([("tokens", *(f"{t:,}" for t in tokens)), kept]))
        parts += [Line(f"growth: {card.growth}"), Heading()]
    if card.speed is not None:
        ratio = card.speed.step / card.speed.forward
        parts.append(
            Line(
                f"speed   {STEPS} tokens: step {1e3 * card.speed.step:.3g} ms, forward"
                f" {1e3 * card.speed.forward:.3g} ms ({ratio:.3g} times as fast); forward of"
                f" {2 * LONGER:,} tokens takes {card.speed.growth:.2g} times as long as of"
                f" {LONGER:,}"
            )
        )
    parts += map(Line, card.notes)
    parts.append(Line(f"drawn with seed {card.seed}; --seed {card.seed} draws the same again"))
    checked = sum(result.applies for result in card.laws)
    broken = f"{len(card.broken)} of {checked} laws broken: {', '.join(card.broken)}"
    return Document(*parts, Line(broken if card.broken else f"all {checked} laws hold"))


def _outcome(result: LawResult) -> tuple[str, str]:
    if not result.holds:
        return "FAIL", result.broken_by
    if not result.applies:
        return "-", _NOT_ASKED[result.law]
    return "ok", result.says.split(". ")[0].split(": ")[0].removesuffix(".")

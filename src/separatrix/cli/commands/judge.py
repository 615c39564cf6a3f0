"""`separatrix analyze`, `compare` and `design`: what theorems say of models, and which would do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from separatrix.cards.costs import Serving
from separatrix.cards.design.search import design as search
from separatrix.cards.design.space import Choices, space_of, task_for_context
from separatrix.cards.facts import opened
from separatrix.cli.asked import Cards
from separatrix.cli.options import Asked, command, pairs, tokens
from separatrix.cli.printing import Answer, Told
from separatrix.core.errors import SpecError
from separatrix.core.numbers.amounts import parse_bits
from separatrix.core.progress import bar
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.outline import UnknownSizes
from separatrix.stacks.architecture.resolve import resolve
from separatrix.stacks.architecture.settings import Settings

MOST_IN_A_RANGE = 10_000
_RANGE = re.compile(r"(\d{1,13})(?: *- *(\d{1,13}))?")
VARIED = {"state": "states", "window": "windows", "block": "blocks", "topk": "topks"}
"""What --set calls sizes that are varied -> what `Choices` does."""
CHOSEN = ("heads", "kv_heads", "head_dim")
FORMATS = ("format", "state_format")
LONGEST = "the longest it was made for"


@command
def analyze(asked: Asked) -> Answer:
    """One screen about a model: what it carries and reads, what some weights provably do and none
    do, each with the number that decides it.
    """
    settings = Settings.parse(asked.set or ())
    serving = Serving.parse(asked.memory, asked.weights, asked.batch, settings)
    why = "" if asked.why is None else opened(asked.why)
    if asked.context is not None:
        # before a file is read, so that a wrong one is refused first
        tokens(asked.context, None, whose="")
    architecture = resolve(asked.model, settings=settings)
    length, chosen = tokens(asked.context, architecture.context, whose=LONGEST)
    return Cards.of([architecture], length, chosen=chosen, serving=serving, why=why)


@command
def compare(asked: Asked) -> Answer:
    """What separates models: first what theorems do, then what costs do, then what nothing here
    does. Example: compare qwen3-next-80b recurrentgemma-2b. A size given with --set holds for
    every model that has it.
    """
    models = asked.models
    why = "" if asked.why is None else opened(asked.why)
    settings = Settings.parse(asked.set or ())
    serving = Serving.parse(asked.memory, asked.weights, asked.batch, settings)
    if len(models) < 2:
        raise SpecError("compare needs at least two models; `separatrix analyze` shows one")
    stacks = _stacks(models, settings)
    own = [stack.context for stack in stacks if stack.context is not None]
    whose = "the smallest of the models' own" if len(own) > 1 else "a model's own"
    length, chosen = tokens(asked.context, min(own, default=None), whose=whose)
    return Cards.of(stacks, length, chosen=chosen, serving=serving, why=why)


def _stacks(models: Sequence[str], settings: Settings) -> list[Architecture]:
    """The models, with each size that is set by hand in those that have such a layer. Raises
    UnknownNameError for a size that fits none of them.
    """
    if not settings:
        return [resolve(model) for model in models]
    there = [_mechanisms(model) for model in models]
    settings.check_used(set().union(*there))
    return [
        resolve(model, settings=settings.of(own)) for model, own in zip(models, there, strict=True)
    ]


def _mechanisms(model: str) -> set[str]:
    """The names of a model's mechanisms, also of one whose file leaves sizes open."""
    try:
        layers = resolve(model).counted()
    except UnknownSizes as error:
        layers = error.outline.counted()
    return {part.name for layer, _ in layers for part in layer}


@command
def design(asked: Asked) -> Told:
    """Layouts that could do the tasks within a cache budget, and those that provably do: how many
    reading layers, of which kind, where. Example: design --task seqcomp:L=3 --task eva:V=50000
    --context 262144 --cache 2GiB --base qwen3-next-80b. Exit code 1 if nothing fits.
    """
    from separatrix.cli.report.pareto import design_document, design_json

    budget = parse_bits(asked.cache, what="--cache")
    model = resolve(asked.base) if asked.base is not None else None
    own = model.context if model is not None else None
    length, chosen = tokens(asked.context, own, whose="the longest the base was made for")
    choices = Choices(
        layers=_integers("--layers", asked.layers),
        readings=None if asked.readers is None else _integers("--readers", asked.readers),
        places=tuple(asked.place.replace(" ", "").split(",")),
        reading=tuple(asked.reading or ()),
        bounded=tuple(asked.bounded or ()),
        **_sizes(asked.set or []),
    )
    tasks = [task_for_context(text, length) for text in asked.task]
    space = space_of(choices, model)
    with bar("judging layouts", shown=not asked.as_json) as progress:
        result = search(tasks, context=length, cache_bits=budget, space=space, progress=progress)
    shown = design_document(result, context_from=chosen)
    return Told(design_json(result), shown, code=int(not result.not_excluded))


def _sizes(texts: list[str]) -> dict[str, Any]:
    """Fields of `Choices` from texts such as "state=64,128". Raises UnknownNameError, SpecError."""
    found: dict[str, Any] = {}
    known = (*VARIED, *CHOSEN, *FORMATS)
    for name, text in pairs("--set", texts, known, "size", "state=64,128"):
        if name in FORMATS:
            found[name] = text
            continue
        values = _integers(f"--set {name}", text)
        if name in CHOSEN and len(values) != 1:
            raise SpecError(f"--set {name}={text[:40]}: one number of {name}, such as {name}=16")
        found[VARIED.get(name, name)] = values[0] if name in CHOSEN else values
    return found


def _integers(option: str, text: str | None) -> tuple[int, ...]:
    """Whole numbers from "4,8" or "0-4". Raises SpecError for anything else."""
    values: list[int] = []
    for part in text.split(",") if text is not None else ():
        ends = _RANGE.fullmatch(part.strip())
        first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (1, 0)
        if not 0 <= last - first <= MOST_IN_A_RANGE:
            raise SpecError(
                f"{option} {text!r}: '{part.strip()}' is no whole number and no range of them, the"
                " smaller first; write numbers such as 4,8 or a range such as 0-4"
            )
        values += range(first, last + 1)
    return tuple(values)

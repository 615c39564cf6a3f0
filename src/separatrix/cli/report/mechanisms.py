"""The token mixers as a table, which needs no torch, and one by one: everything is said by the
classes of mechanisms, and the maths of a mixer by the docstrings of its file in mixers/.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from dataclasses import fields

from separatrix.core.numbers.amounts import format_count
from separatrix.stacks.architecture import MECHANISMS, Mechanism
from separatrix.stacks.mechanisms import ALSO_CALLED, mechanism_named

TOKENS = 4096
"""Tokens at which costs and sizes are shown."""


def rows() -> list[dict[str, str | int | None]]:
    """One row per mechanism: sizes at the defaults after TOKENS tokens, cost of the next one,
    other names.
    """
    return [
        {
            "name": name,
            "symbol": cls.symbol,
            "mechanism": cls.title,
            "state": sum(item.bits.numbers for item in own.cache(TOKENS)),
            "grows": growth(own),
            "read": own.read_bits() // own.p if cls.reading else None,
            "flops": own.flops(TOKENS),
            "mixer": None if cls.declared_only else "yes",
            "elsewhere": "" if cls.facts is None else cls.facts.elsewhere,
        }
        for name, cls in MECHANISMS.items()
        for own in (cls(),)
    ]


def cells() -> list[dict[str, str]]:
    """The rows as people read them."""
    return [{key: _cell(value) for key, value in row.items()} for row in rows()]


def _cell(value: str | int | None) -> str:
    if value is None:
        return "-"
    return format_count(value, shorten_from=1000) if isinstance(value, int) else value


SPARED = ("elsewhere", "grows", "symbol")
NOTE = (
    f"state: numbers carried after {TOKENS:,} tokens at the default sizes; read: numbers one token"
    f" can take of a prefix; flops: operations to mix token {TOKENS:,}, projections not counted;"
    " mixer: yes where `separatrix` builds, trains and checks it, - where it knows the sizes only"
)


def describe(name: str) -> list[tuple[str, str]]:
    """(heading, text) pairs of one mechanism. Raises UnknownNameError."""
    name = mechanism_named(name)
    cls = MECHANISMS[name]
    facts, own = cls.facts, cls()
    maths = (not cls.origin and mathematics(name)) or " ".join((inspect.getdoc(cls) or "").split())
    mixer = f"your own, {cls.origin}: it is built, trained and checked as any" if cls.origin else ""
    if cls.declared_only and cls.mixes_tokens:
        mixer = "none: sizes are declared, so it can be judged, but no model of it can be built"
    formula = f"{facts.read} numbers; " if facts is not None else ""
    read = f"{formula}h = {own.read_bits():,} bits at the defaults" if cls.reading else ""
    sizes = [f"{f.name} = {f.default}   {f.metadata.get('text', '')}" for f in fields(cls)]
    carried = facts.carried if facts else ""
    if carried and any(f.name == "conv" and f.default == 0 for f in fields(cls)):
        carried += "   (+ min(t, conv - 1) inputs of each channel of a short convolution)"
    kept = [f"{item.kind}: {item.bits}" for item in own.cache(TOKENS) if item.bits.total]
    parts = [
        (f"{name}: {cls.title}", maths),
        ("mixer", mixer),
        ("sizes and their defaults", "\n".join(sizes)),
        ("numbers carried (after t tokens)", carried),
        (f"carried at the defaults (after {TOKENS:,} tokens)", "\n".join(kept) or "nothing"),
        ("read by one token", read),
        (f"operations at the defaults (to mix token {TOKENS:,})", f"{own.flops(TOKENS):,}"),
        ("called elsewhere", facts.elsewhere if facts else ""),
        ("also written (in any case)", ALSO_CALLED.get(name, "").replace(" ", ", ")),
        ("source", cls.source),
    ]
    return [(heading, text) for heading, text in parts if text]


def mathematics(name: str) -> str:
    """The docstrings of the files that hold the mixers of that name, in a family behind those of
    the classes; "" if there is none.
    """
    from separatrix.mixers import MIXERS, OTHER_FORMS

    every = {**{(one,): cls for one, cls in MIXERS.items()}, **OTHER_FORMS}
    homes = Counter(cls.__module__ for cls in every.values())
    found = [cls for key, cls in every.items() if key[0] == name]
    own = [inspect.getdoc(cls) or "" for cls in found if homes[cls.__module__] > 1]
    shared = dict.fromkeys(inspect.getdoc(sys.modules[cls.__module__]) or "" for cls in found)
    title = f"{MECHANISMS[name].title}."
    # one line would be the title again
    told = (*(text for text in own if "\n" in text), *shared)
    whole = "\n\n".join(text.removeprefix(title).lstrip("\n") for text in told)
    # lines of a paragraph are as long as a terminal has room; formulas are indented
    return re.sub(r"(?<=\S)\n(?=\S)", " ", whole)


def growth(mechanism: Mechanism) -> str:
    """How the cache grows with t: constant, log t or t."""
    one, two, four = (mechanism.cache_bits(1 << shift) for shift in (20, 21, 22))
    if one == two == four:
        return "constant"
    return "log t" if four - two == two - one else "t"

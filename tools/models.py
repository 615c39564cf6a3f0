"""Writes docs/models.md: what differs between all presets at 131,072 tokens, and who shares what.

.venv/bin/python tools/models.py [--check]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import log2
from pathlib import Path

from separatrix.cards import CardFacts, card_facts
from separatrix.cards.facts import ASKED
from separatrix.core.document.markdown import table
from separatrix.core.evidence.folder import write_atomic
from separatrix.core.numbers.amounts import bytes_of, format_bytes, format_count
from separatrix.stacks.architecture.released import PRESETS
from separatrix.stacks.architecture.resolve import preset

PAGE = Path(__file__).resolve().parent.parent / "docs" / "models.md"
CONTEXT = 131_072
MOST = 5
"""Facts that have a column."""
SIGNS = {"SOLVABLE": "yes", "FAILS": "no", "OPEN": "?"}
ABSENT = "-"


def grows(facts: CardFacts) -> str:
    row = next((row for row in facts.memory if row.limit is None), None)
    return "0" if row is None else f"{bytes_of(row.per_token):,}"


def composed(facts: CardFacts) -> str:
    """The most steps of composition that are solvable at once."""
    solved = (row for row in facts.table if row.key == "composition" and row.status == "SOLVABLE")
    lines = (line for row in solved for line in row.lines if not line.thought)
    return str(max((line.steps[1] for line in lines), default=0))


def answered(key: str) -> Callable[[CardFacts], str]:
    """A question's answer, with the number that decides it where a theorem names one."""

    def said(facts: CardFacts) -> str:
        row = next((row for row in facts.table if row.key == key), None)
        if row is None:
            return ABSENT
        bound = row.decides.partition(";")[0] if "n = " in row.decides else ""
        return " ".join(filter(None, (SIGNS[row.status], bound.removeprefix("fails "))))

    return said


FACTS: dict[str, Callable[[CardFacts], str]] = {
    "cache": lambda facts: format_bytes(facts.bits),
    "bytes a token adds": grows,
    "operations a token": lambda facts: format_count(facts.costs.here(facts.context).decode),
    "steps composed": composed,
    "forgets": lambda facts: facts.forgets.partition(", if")[0] or "never",
    **{ASKED[key]: answered(key) for key in ASKED if key != "composition"},
}


def statuses(facts: CardFacts) -> tuple[str, ...]:
    """Yes, no, ? for each question: the pattern that presets share."""
    found = {row.key: SIGNS[row.status] for row in reversed(facts.table)}
    return tuple(found.get(key, ABSENT) for key in ASKED)


def bits(values: Iterable[str]) -> float:
    """How much a fact tells presets apart: the entropy of its values."""
    counts = Counter(values)
    total = counts.total()
    return sum(count / total * log2(total / count) for count in counts.values())


def page(cards: Mapping[str, CardFacts]) -> str:
    told = {title: [fact(facts) for facts in cards.values()] for title, fact in FACTS.items()}
    most = sorted(told, key=lambda title: -bits(told[title]))[:MOST]
    shared = Counter(map(statuses, cards.values()))
    letters = {pattern: letter(i) for i, (pattern, _) in enumerate(shared.most_common())}
    rows = [
        [name, *(told[title][i] for title in most), letters[statuses(facts)]]
        for i, (name, facts) in enumerate(cards.items())
    ]
    patterns = [[letters[pattern], str(count), *pattern] for pattern, count in shared.most_common()]
    entropies = ", ".join(
        f"{title} {bits(values):.1f}"
        for title, values in sorted(told.items(), key=lambda item: -bits(item[1]))
    )
    return "\n\n".join(
        (
            f"# {len(cards)} released models in one table",
            f"At {CONTEXT:,} tokens, by `separatrix analyze NAME --context {CONTEXT}`;"
            f" `make models` writes this page. The columns are the {MOST} facts that tell the"
            " models apart best (by the entropy of their values over the models, in bits:"
            f" {entropies}); the last names the pattern of answers below.",
            "![Bits that a context needs, and bits that seven released models keep of it, over"
            " contexts: what does not grow lies below what is needed from some context on]"
            "(images/states.svg)",
            "Bits that a context of facts needs to be told apart, and bits that models keep of it:"
            " in the shaded part, no weights recall every fact (Theorem I). `make figures` draws"
            " it.",
            table(["model", *most, "pattern"], rows),
            "Yes: some weights do it. No: none do, by a theorem. ?: neither is known here; *from n*"
            " on it fails, beyond the context, in the n of the question. -: no layers that wait"
            " for a question.",
            "## Who answers alike",
            f"{len(shared)} patterns. *compose* is the first answer of a card, which is about the"
            " fewest steps.",
            table(["pattern", "models", *ASKED.values()], patterns) + "\n",
        )
    )


def letter(i: int) -> str:
    return chr(ord("A") + i) if i < 26 else f"A{chr(ord('A') + i - 26)}"


def cards(names: Sequence[str]) -> dict[str, CardFacts]:
    return {name: card_facts(preset(name), CONTEXT) for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    options = parser.parse_args()
    text = page(cards(list(PRESETS)))
    if not options.check:
        write_atomic(PAGE, text)
    elif PAGE.read_text(encoding="utf-8") != text:
        sys.exit(f"{PAGE.name} is not what `python tools/models.py` writes")


if __name__ == "__main__":
    main()

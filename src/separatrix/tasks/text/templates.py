"""The stories that facts are told in. A new one needs at least eight relations, and words by
which no two relations are confused.
"""

from __future__ import annotations

from typing import Final

from separatrix.tasks.text.relations import Kind, Relation, Template, relation

PERSON: Final = Kind("_")


def _path(start: Kind, *stages: tuple[tuple[str, str, str], Kind]) -> tuple[Relation, ...]:
    """Relations that lead from one kind to the next; a stage is the words of a relation (fact,
    phrase, question) and the kind it leads to.
    """
    kinds = (start, *(kind for _, kind in stages))
    return tuple(
        relation(kinds[place], kind, words=words) for place, (words, kind) in enumerate(stages)
    )


def _people(*nouns: str) -> tuple[Relation, ...]:
    words = (
        (f"the {noun} of {{s}} is {{o}}.", f"the {noun} of {{s}}", f"Who is the {noun} of {{s}}?")
        for noun in nouns
    )
    return tuple(relation(PERSON, PERSON, words=each) for each in words)


FAMILY: Final = Template(
    name="family",
    free=_people(
        "mother",
        "father",
        "oldest sister",
        "oldest brother",
        "youngest aunt",
        "youngest uncle",
        "godmother",
        "godfather",
    ),
)

PLACES: Final = Template(
    name="places",
    free=_people("teacher", "doctor", "dentist"),
    path=_path(
        PERSON,
        (
            ("{s} was born in {o}.", "the birthplace of {s}", "In which village was {s} born?"),
            Kind("the village of _"),
        ),
        (
            ("{s} belongs to {o}.", "the district around {s}", "In which district is {s}?"),
            Kind("the district of _"),
        ),
        (
            ("{s} lies in {o}.", "the country with {s}", "In which country is {s}?"),
            Kind("the country of _"),
        ),
        (
            ("{s} is ruled from {o}.", "the capital of {s}", "What is the capital of {s}?"),
            Kind("the city of _"),
        ),
        (
            ("{o} flows through {s}.", "the river through {s}", "Which river flows through {s}?"),
            Kind("the river _"),
        ),
        (
            ("{s} flows into {o}.", "the lake fed by {s}", "Which lake is fed by {s}?"),
            Kind("the lake _"),
        ),
        (
            (
                "the largest island in {s} is {o}.",
                "the largest island in {s}",
                "What is the largest island in {s}?",
            ),
            Kind("the island of _"),
        ),
        (("{s} was discovered by {o}.", "the discoverer of {s}", "Who discovered {s}?"), PERSON),
    ),
)

WORK: Final = Template(
    name="work",
    free=_people("manager", "deputy", "mentor", "lawyer", "assistant"),
    path=_path(
        PERSON,
        (
            ("{s} works for {o}.", "the company that employs {s}", "Which company employs {s}?"),
            Kind("the company _"),
        ),
        (
            ("{s} is owned by {o}.", "the group that owns {s}", "Which group owns {s}?"),
            Kind("the group _"),
        ),
        (
            ("{s} borrows from {o}.", "the bank that lends to {s}", "Which bank lends to {s}?"),
            Kind("the bank _"),
        ),
        (
            (
                "{s} has its head office in {o}.",
                "the home town of {s}",
                "Which town is home to {s}?",
            ),
            Kind("the town of _"),
        ),
    ),
)

BOXES: Final = Template(
    name="boxes",
    path=_path(
        Kind("the coin _"),
        (("{s} lies in {o}.", "the box with {s}", "In which box is {s}?"), Kind("the box _")),
        (
            ("{s} stands in {o}.", "the cupboard with {s}", "In which cupboard is {s}?"),
            Kind("the cupboard _"),
        ),
        (("{s} stands in {o}.", "the room with {s}", "In which room is {s}?"), Kind("the room _")),
        (("{s} is on {o}.", "the floor with {s}", "On which floor is {s}?"), Kind("the floor _")),
        (
            ("{s} is part of {o}.", "the house with {s}", "In which house is {s}?"),
            Kind("the house _"),
        ),
        (
            ("{s} stands in {o}.", "the street with {s}", "In which street is {s}?"),
            Kind("the street _"),
        ),
        (
            ("{s} runs through {o}.", "the town with {s}", "In which town is {s}?"),
            Kind("the town of _"),
        ),
        (
            ("{s} lies on {o}.", "the island with {s}", "On which island is {s}?"),
            Kind("the island of _"),
        ),
    ),
)

BOOKS: Final = Template(
    name="books",
    path=_path(
        Kind("the poem _"),
        (
            ("{s} is printed in {o}.", "the book with {s}", "In which book is {s}?"),
            Kind("the book _"),
        ),
        (("{o} wrote {s}.", "the author of {s}", "Who wrote {s}?"), PERSON),
        (("{s} studied under {o}.", "the tutor of {s}", "Who was the tutor of {s}?"), PERSON),
        (
            ("{s} taught at {o}.", "the academy that employed {s}", "Which academy employed {s}?"),
            Kind("the academy _"),
        ),
        (("{o} founded {s}.", "the founder of {s}", "Who founded {s}?"), PERSON),
        (
            ("{s} lived in {o}.", "the castle of {s}", "Which castle was the home of {s}?"),
            Kind("the castle _"),
        ),
        (
            ("{s} stands on {o}.", "the mountain with {s}", "On which mountain is {s}?"),
            Kind("the mountain _"),
        ),
        (
            ("{s} rises above {o}.", "the valley below {s}", "Which valley lies below {s}?"),
            Kind("the valley of _"),
        ),
    ),
)

TEMPLATES: Final[dict[str, Template]] = {
    template.name: template for template in (FAMILY, PLACES, WORK, BOXES, BOOKS)
}
MIXED: Final = "mixed"
"""A template of its own for every instance."""
MOST_HOPS: Final = min(len(template.relations) for template in TEMPLATES.values())

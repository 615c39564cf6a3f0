"""The stories that facts are told in. A new one needs at least nine stages, and words by which no
two relations are confused.
"""

from __future__ import annotations

from typing import Final

from separatrix.tasks.text.relations import Kind, Stage, Template, relation

PERSON: Final = Kind("_")
Words = tuple[str, str, str]
"""Of a relation: fact, phrase and question."""


def _path(start: Kind, *stages: tuple[Words, Words, Kind]) -> tuple[Stage, ...]:
    """Stages that lead from one kind to the next: the words of two relations, and the kind that
    both lead to.
    """
    kinds = (start, *(kind for _, _, kind in stages))
    return tuple(
        (relation(kinds[place], kind, words=one), relation(kinds[place], kind, words=other))
        for place, (one, other, kind) in enumerate(stages)
    )


def _people(*pairs: tuple[str, str]) -> tuple[Stage, ...]:
    """Stages that lead from people to people, by what the two are to them."""

    def of(noun: str) -> Words:
        return (
            f"the {noun} of {{s}} is {{o}}.",
            f"the {noun} of {{s}}",
            f"Who is the {noun} of {{s}}?",
        )

    return tuple(
        (relation(PERSON, PERSON, words=of(one)), relation(PERSON, PERSON, words=of(other)))
        for one, other in pairs
    )


FAMILY: Final = Template(
    name="family",
    free=_people(
        ("mother", "father"),
        ("oldest sister", "oldest brother"),
        ("youngest sister", "youngest brother"),
        ("oldest aunt", "oldest uncle"),
        ("youngest aunt", "youngest uncle"),
        ("godmother", "godfather"),
        ("oldest daughter", "oldest son"),
        ("youngest daughter", "youngest son"),
        ("favourite niece", "favourite nephew"),
    ),
)

PLACES: Final = Template(
    name="places",
    free=_people(
        ("teacher", "doctor"),
        ("dentist", "barber"),
        ("tailor", "baker"),
    ),
    path=_path(
        PERSON,
        (
            ("{s} was born in {o}.", "the birthplace of {s}", "In which village was {s} born?"),
            (
                "{s} got married in {o}.",
                "the wedding place of {s}",
                "In which village did {s} marry?",
            ),
            Kind("the village of _"),
        ),
        (
            ("{s} belongs to {o}.", "the district around {s}", "In which district is {s}?"),
            ("{s} pays taxes to {o}.", "the district that taxes {s}", "Which district taxes {s}?"),
            Kind("the district of _"),
        ),
        (
            ("{s} lies in {o}.", "the country with {s}", "In which country is {s}?"),
            (
                "{s} once belonged to {o}.",
                "the former country of {s}",
                "What was the former country of {s}?",
            ),
            Kind("the country of _"),
        ),
        (
            ("{s} is ruled from {o}.", "the capital of {s}", "What is the capital of {s}?"),
            (
                "{s} trades most with {o}.",
                "the trading city of {s}",
                "Which city trades most with {s}?",
            ),
            Kind("the city of _"),
        ),
        (
            ("{o} flows through {s}.", "the river through {s}", "Which river flows through {s}?"),
            (
                "{s} takes water from {o}.",
                "the river that waters {s}",
                "Which river gives water to {s}?",
            ),
            Kind("the river _"),
        ),
        (
            ("{s} flows into {o}.", "the lake fed by {s}", "Which lake is fed by {s}?"),
            ("{s} springs from {o}.", "the lake that feeds {s}", "Which lake feeds {s}?"),
            Kind("the lake _"),
        ),
        (
            (
                "the largest island in {s} is {o}.",
                "the largest island in {s}",
                "What is the largest island in {s}?",
            ),
            (
                "the smallest island in {s} is {o}.",
                "the smallest island in {s}",
                "What is the smallest island in {s}?",
            ),
            Kind("the island of _"),
        ),
        (
            ("{s} was discovered by {o}.", "the discoverer of {s}", "Who discovered {s}?"),
            ("{s} was first settled by {o}.", "the first settler of {s}", "Who first settled {s}?"),
            PERSON,
        ),
    ),
)

WORK: Final = Template(
    name="work",
    free=_people(
        ("manager", "deputy"),
        ("mentor", "assistant"),
        ("lawyer", "accountant"),
        ("driver", "secretary"),
        ("predecessor", "successor"),
    ),
    path=_path(
        PERSON,
        (
            ("{s} works for {o}.", "the company that employs {s}", "Which company employs {s}?"),
            (
                "{s} once worked for {o}.",
                "the company that dismissed {s}",
                "Which company dismissed {s}?",
            ),
            Kind("the company _"),
        ),
        (
            ("{s} is owned by {o}.", "the group that owns {s}", "Which group owns {s}?"),
            ("{s} competes with {o}.", "the group that rivals {s}", "Which group rivals {s}?"),
            Kind("the group _"),
        ),
        (
            ("{s} borrows from {o}.", "the bank that lends to {s}", "Which bank lends to {s}?"),
            (
                "{s} keeps its money at {o}.",
                "the bank that guards the money of {s}",
                "Which bank guards the money of {s}?",
            ),
            Kind("the bank _"),
        ),
        (
            (
                "{s} has its head office in {o}.",
                "the home town of {s}",
                "Which town is home to {s}?",
            ),
            (
                "{s} was founded in {o}.",
                "the founding town of {s}",
                "Which town saw the founding of {s}?",
            ),
            Kind("the town of _"),
        ),
    ),
)

BOXES: Final = Template(
    name="boxes",
    path=_path(
        Kind("the coin _"),
        (
            ("{s} lies in {o}.", "the box with {s}", "In which box is {s}?"),
            ("{s} used to lie in {o}.", "the earlier box of {s}", "In which box was {s} before?"),
            Kind("the box _"),
        ),
        (
            ("{s} stands in {o}.", "the cupboard with {s}", "In which cupboard is {s}?"),
            (
                "{s} belongs in {o}.",
                "the proper cupboard of {s}",
                "What is the proper cupboard of {s}?",
            ),
            Kind("the cupboard _"),
        ),
        (
            ("{s} stands in {o}.", "the room with {s}", "In which room is {s}?"),
            (
                "{s} was moved out of {o}.",
                "the earlier room of {s}",
                "What was the earlier room of {s}?",
            ),
            Kind("the room _"),
        ),
        (
            ("{s} is on {o}.", "the floor with {s}", "On which floor is {s}?"),
            ("{s} is heated from {o}.", "the floor that heats {s}", "Which floor heats {s}?"),
            Kind("the floor _"),
        ),
        (
            ("{s} is part of {o}.", "the house with {s}", "In which house is {s}?"),
            (
                "{s} was copied from {o}.",
                "the model house of {s}",
                "What was the model house of {s}?",
            ),
            Kind("the house _"),
        ),
        (
            ("{s} stands in {o}.", "the street with {s}", "In which street is {s}?"),
            (
                "{s} has its garage in {o}.",
                "the garage street of {s}",
                "What is the garage street of {s}?",
            ),
            Kind("the street _"),
        ),
        (
            ("{s} runs through {o}.", "the town with {s}", "In which town is {s}?"),
            ("{s} leads to {o}.", "the town at the end of {s}", "Which town is at the end of {s}?"),
            Kind("the town of _"),
        ),
        (
            ("{s} lies on {o}.", "the island with {s}", "On which island is {s}?"),
            (
                "{s} sends a ferry to {o}.",
                "the ferry island of {s}",
                "What is the ferry island of {s}?",
            ),
            Kind("the island of _"),
        ),
        (
            ("{s} lies in {o}.", "the sea around {s}", "In which sea is {s}?"),
            ("{s} trades across {o}.", "the trading sea of {s}", "What is the trading sea of {s}?"),
            Kind("the sea of _"),
        ),
    ),
)

BOOKS: Final = Template(
    name="books",
    path=_path(
        Kind("the poem _"),
        (
            ("{s} is printed in {o}.", "the book with {s}", "In which book is {s}?"),
            ("{s} is quoted in {o}.", "the book that quotes {s}", "Which book quotes {s}?"),
            Kind("the book _"),
        ),
        (
            ("{o} wrote {s}.", "the author of {s}", "Who wrote {s}?"),
            ("{o} translated {s}.", "the translator of {s}", "Who translated {s}?"),
            PERSON,
        ),
        (
            ("{s} studied under {o}.", "the tutor of {s}", "Who was the tutor of {s}?"),
            ("{s} quarrelled with {o}.", "the rival of {s}", "Who was the rival of {s}?"),
            PERSON,
        ),
        (
            ("{s} taught at {o}.", "the academy that employed {s}", "Which academy employed {s}?"),
            (
                "{s} was expelled from {o}.",
                "the academy that expelled {s}",
                "Which academy expelled {s}?",
            ),
            Kind("the academy _"),
        ),
        (
            ("{o} founded {s}.", "the founder of {s}", "Who founded {s}?"),
            ("{o} paid for {s}.", "the patron of {s}", "Who paid for {s}?"),
            PERSON,
        ),
        (
            ("{s} lived in {o}.", "the castle of {s}", "Which castle was the home of {s}?"),
            (
                "{s} was buried in {o}.",
                "the burial castle of {s}",
                "Which castle was the grave of {s}?",
            ),
            Kind("the castle _"),
        ),
        (
            ("{s} stands on {o}.", "the mountain with {s}", "On which mountain is {s}?"),
            (
                "{s} looks out on {o}.",
                "the mountain in sight of {s}",
                "Which mountain is in sight of {s}?",
            ),
            Kind("the mountain _"),
        ),
        (
            ("{s} rises above {o}.", "the valley below {s}", "Which valley lies below {s}?"),
            (
                "{s} is reached from {o}.",
                "the valley on the way to {s}",
                "Which valley lies on the way to {s}?",
            ),
            Kind("the valley of _"),
        ),
        (
            ("{s} is drained by {o}.", "the stream that drains {s}", "Which stream drains {s}?"),
            ("{s} was flooded by {o}.", "the stream that flooded {s}", "Which stream flooded {s}?"),
            Kind("the stream _"),
        ),
    ),
)

TEMPLATES: Final[dict[str, Template]] = {
    template.name: template for template in (FAMILY, PLACES, WORK, BOXES, BOOKS)
}
MIXED: Final = "mixed"
"""A template of its own for every instance."""
MOST_HOPS: Final = min(len(template.stages) for template in TEMPLATES.values()) - 1
"""One stage leads on from the last hop."""

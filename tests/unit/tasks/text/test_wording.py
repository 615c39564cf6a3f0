"""Names and wordings: no two are confused, none can be guessed from."""

from __future__ import annotations

import re
from itertools import combinations, pairwise

import numpy as np
import pytest
from support.each import each

from separatrix.tasks.text.names import PATTERN, names
from separatrix.tasks.text.templates import (
    BOOKS,
    FAMILY,
    HOLE,
    MOST_HOPS,
    PLACES,
    TEMPLATES,
    Relation,
    Template,
    partner,
)

RELATIONS = [relation for template in TEMPLATES for relation in template.relations]


def wordings(relation: Relation) -> tuple[str, ...]:
    return (
        relation.sentence,
        relation.phrase,
        relation.question,
        relation.subject,
        relation.object,
    )


def test_names_are_many_single_words_of_one_length() -> None:
    """One length, all different: no name is the beginning of another."""
    assert len(set(names())) == len(names()) > 10_000
    assert all(re.fullmatch("[A-Z][a-z]{5}", name) for name in names())
    assert not [name for name in names() if re.search("fuk|kak|pis|sex|tit", name.lower())]


def test_two_names_differ_in_two_letters() -> None:
    """With any one letter struck out they are still all different."""
    for place in range(6):
        assert len({name[:place] + name[place + 1 :] for name in names()}) == len(names())


def test_no_name_begins_another_word() -> None:
    words = {
        word.lower()
        for relation in RELATIONS
        for text in wordings(relation)
        for word in re.findall("[A-Za-z]+", text)
    }
    words |= {"question", "answer", "step", "the", "is"}
    assert not [word for word in words if word[:6].capitalize() in set(names())]


def test_the_pattern_of_names_matches_names_alone() -> None:
    words = {
        word
        for relation in RELATIONS
        for text in wordings(relation)
        for word in re.findall("[A-Za-z]+", text)
    }
    assert all(re.fullmatch(PATTERN, name) for name in names())
    assert not [
        word for word in words | {"answer", "question"} if re.match(PATTERN, word.capitalize())
    ]


def test_names_that_people_and_places_bear_are_left_out() -> None:
    """Razvan and Mavzer are people, Kazgan and Mazdok places; without the list they would be
    among the names.
    """
    assert not {"Razvan", "Mavzer", "Kazgan", "Mazdok"} & set(names())


def test_no_wording_begins_another() -> None:
    """Facts, questions and phrases are told apart over all templates, and a thing's own name is
    never a phrase.
    """
    plain = {
        kind.removesuffix(HOLE)
        for relation in RELATIONS
        for kind in (relation.subject, relation.object)
    } - {""}
    phrases = [relation.phrase.removesuffix("{s}") for relation in RELATIONS]
    assert all(relation.phrase.endswith(" {s}") for relation in RELATIONS)
    assert not [thing for thing in plain if thing.startswith(tuple(phrases))]
    for beginnings in ([relation.question.split("{s}")[0] for relation in RELATIONS], phrases):
        assert not [
            (one, other)
            for one, other in combinations(beginnings, 2)
            if one.startswith(other) or other.startswith(one)
        ]
    assert len({relation.sentence for relation in RELATIONS}) == len(RELATIONS)


@each("relation", RELATIONS)
def test_every_wording_is_one_sentence(relation: Relation) -> None:
    assert re.fullmatch(r"[A-Z_][A-Za-z_ ]+\.", relation.sentence)
    assert re.fullmatch(r"(Who|What|Which|In|On) [a-z{} ]*\{s\}[a-z ]*\?", relation.question)
    assert relation.sentence.count(HOLE) == 2
    assert re.fullmatch(r"(the [a-z ]+ )?_", relation.subject)


def test_told_by_hand() -> None:
    flows, takes = PLACES.path[4]
    assert flows.tell("Zegfin", "Mavgeb") == "The river Mavgeb flows through the city of Zegfin."
    assert takes.tell("Zegfin", "Mavgeb") == "The city of Zegfin takes water from the river Mavgeb."
    assert PLACES.path[0][0].tell("Zegfin", "Mavgeb") == "Zegfin was born in the village of Mavgeb."
    assert FAMILY.free[0][1].tell("Zegfin", "Mavgeb") == "The father of Zegfin is Mavgeb."


def test_the_two_relations_of_a_stage_join_the_same_kinds() -> None:
    for template in TEMPLATES:
        for one, other in template.stages:
            assert (one.subject, one.object) == (other.subject, other.object)
            assert partner(one, template.stages) == other != one == partner(other, template.stages)


@pytest.mark.parametrize("template", TEMPLATES)
def test_hops_follow_one_another(template: Template) -> None:
    rng = np.random.default_rng(0)
    drawn = set()
    for length in range(1, MOST_HOPS + 2):
        for _ in range(60):
            stages = template.line(length, rng)
            assert len(set(stages)) == length
            hops = [stage[rng.integers(2)] for stage in stages]
            assert all(hop.object == later.subject for hop, later in pairwise(hops))
            assert template.has(hops)
            drawn |= set(hops)
    assert drawn == set(template.relations)


def test_pieces_of_the_line_by_hand() -> None:
    teacher, doctor, dentist, barber, tailor, baker, born, married, district, _ = PLACES.relations[
        :10
    ]
    for hops in (
        [dentist, teacher],
        [baker, born, district],
        [married],
        [district],
        [teacher, barber, tailor, born],
    ):
        assert PLACES.has(hops)
    for hops in (
        [born, teacher],
        [doctor, district],
        [doctor, doctor],
        [doctor, teacher],
        [born, married],
        [district, born],
        [BOOKS.path[1][0]],
    ):
        assert not PLACES.has(hops)
    poem, author, tutor, academy = (stage[0] for stage in BOOKS.path[:4])
    assert BOOKS.has([poem, author, tutor, academy])
    assert not BOOKS.has([poem, author, academy])

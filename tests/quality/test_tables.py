"""What tasks say of the facts in their prompts: each may be asked for, at the token that is named,
behind tokens that are the same whichever is.
"""

from __future__ import annotations

import numpy as np
from support.each import each

from separatrix.tasks import Task, parse_task

MARK, BLANK = 3, 4
"""Of copying over three values."""


def prompt(text: str, facts: list[int], asked: int) -> list[int]:
    """A prompt with these values that asks for one of them; what stands between values and question
    is the same for all.
    """
    n = len(facts)
    name = text.partition(":")[0]
    match name:
        case "noisy-recall":  # keys 3 to 7, noise from 8 on
            pairs = [token for j, value in enumerate(facts) for token in (3 + j, value)]
            return [*pairs, *[8] * 6, 3 + asked]
        case "recall":
            return [token for j, v in enumerate(facts) for token in (3 + j, v)] + [3 + asked]
        case "mqar":  # keys from 1, values from 6; the key asked for, then the others
            pairs = [token for j, value in enumerate(facts) for token in (1 + j, 6 + value)]
            others = [1 + j for j in range(n) if j != asked]
            later = [token for key in others for token in (key, 0)]
            return [*pairs, 1 + asked, 0, *later, 0, 0, 0, 0][:12]
        case "cgram":  # contexts of the ids 0 and 1, then ids from 2 on
            contexts = ([0, 0], [0, 1], [1, 0])
            entries = [
                token for j, value in enumerate(facts) for token in (*contexts[j], 2 + value)
            ]
            return [*entries, *contexts[asked]]
        case "copying":
            return [*facts, MARK, *[BLANK] * n]
        case "selective-copying":
            return [*facts, *[3] * 4, *[4] * n]
        case "state-recall":  # three pointers of three cells, the one asked for to the fact
            cells = [asked, *(j for j in range(3) if j != asked)]
            return [*facts, *(3 + cell for cell in cells), 6, 6, 9]
        case _:
            raise AssertionError(name)


@each(
    "text",
    [
        "noisy-recall:n=3,noise=3,K=5,V=3",
        "recall:n=3,K=5,V=3,form=independent",
        "mqar:vocab_size=12,input_seq_len=12,num_kv_pairs=3",
        "cgram:n=11,V=5,c=2",
        "copying:n=3,V=3",
        "selective-copying:n=3,T=7,V=3",
        "state-recall:n=3,V=3,K=2,P=3",
    ],
)
def test_every_fact_of_a_table_is_asked_for_where_it_says(text: str) -> None:
    task = parse_task(text)
    table = task.table()
    assert table is not None
    assert (table.number, table.values >= 3) == (3, True)
    between: set[tuple[int, ...]] = set()
    for asked in range(3):
        for value in range(3):
            facts = [(value + j + 1) % 3 for j in range(3)]
            facts[asked] = value
            tokens = prompt(text, facts, asked)
            assert len(tokens) == task.length
            between.add(tuple(tokens[table.length : table.asked]))
            # several answers come one after the other, so that each is due there or later
            due = _answers(task, tokens)
            found = [place for place, answer in due if answer == value + 2 * (task.name == "cgram")]
            assert due[0][0] == table.answered or not task.several
            assert found
            assert max(found) >= table.answered
    assert len(between) == 1


def test_a_key_that_is_known_before_leaves_nothing_to_keep() -> None:
    assert parse_task("recall:n=3,K=5,V=3,question=first").table() is None
    assert parse_task("recall:n=3,K=5,V=3,form=last").table() is None


def _answers(task: Task, tokens: list[int]) -> list[tuple[int, int]]:
    """The tokens, counted from 1, after which answers are due, and these."""
    answers = np.asarray(task.answer(np.array([tokens])))[0]
    if not task.several:
        return [(task.length, int(answers))]
    return [(t + 1, int(answer)) for t, answer in enumerate(answers) if answer >= 0]

"""Replies of chat models: what is read rightly, what is not read, and that no other answer is ever
taken.
"""

from __future__ import annotations

import pytest
from support.each import each

from separatrix.tasks.exports.replies import Shape, read
from separatrix.tasks.text.names import PATTERN

NUMBER = Shape("number", 20)
NAME = Shape("names", 1, pattern=PATTERN)
ARRANGEMENT = Shape("arrangement", 3)
SEVERAL = Shape("names", 3, pattern=PATTERN)
ORDERED = Shape("names", 3, ordered=True, pattern=PATTERN)
TWO_WORDS = ("Anna Bell", "Anna Moss", "Rosa Bell")

NUMBERS = [
    "13",
    " 13.\n",
    "**13**",
    "`13`",
    "$13$",
    "\\boxed{13}",
    "The final answer is $\\boxed{13}$.",
    "i_2 = 13.",
    "First i_1 = z_1(3) = 7.\nThen i_2 = z_2(7) = 13.\n\n**Answer: 13**",
    "The answer is 13.",
    "the answer is: **13**",
    "<think>\nf(3) is 7 or 9? The answer is 7.\n</think>\n\n13",
    "z_1(3) is 7 here.</think>The answer is 13",
    "### Answer\n\n13",
    "Final answer:\n\n$$\n\\boxed{13}\n$$",
    "Answer \u2014 13",
    "13\n\nExplanation: place 3 holds it, while place 4 holds 7.",
    '{"answer": 13}',
    "<answer>13</answer>",
    "\uff11\uff13",
    "So, the final answer is:\n\n\\[ 13 \\]",
    "The answer is 13</s>",
    "\u2705 **Answer: 13**",
    "It isn't 7. Thus, the answer is 13.",
]
UNREAD_NUMBERS = [
    "i_1 = 7\ni_2 = 13.",
    "f(3)\u00a0\u2192 13",
    "The value of key 4 is 13.",
    "13 is the value of key 4.",
    "13, since f(3) = 13 and f(4) = 7.",
    "1. z_0 = 3\n2. i_1 = 7\n3. i_2 = 13\n\nSo the answer is 13 (place 7).",
    "The answer is 7. Wait, no. Following z_2 once more, the answer is 13.",
    "6 + 7 = 13 mod 20",
    "- i_1 = 7\n- i_2 = 13\n\nTherefore, we get 13.",
    "The answer is i_2 = 13 (not 7).",
    "The answer is 13, not 7.",
    "Answer: 13. No other place holds it.",
    "There are 13 ones.",
    "Answer: The value that goes with key k4 is 13.",
    "After 3 swaps, pointer 2 points to cell 7, which holds 13.",
    "To evaluate f(2), look at the third entry: f(0)=2, f(1)=0, f(2)=13.\n\nThus, **f(2) = 13**.",
    "Sure! The answer is 13. Let me know if you have questions!",
    "33 \u2261 13 (mod 20)",
    "The answer is 13 \U0001f389",
    "I believe it's 13.",
    "Key 4 is not there, so the answer is 13.",
    "The answer is thirteen.",
]
NO_NUMBERS = [
    "",
    "I cannot tell.",
    "12 or 13",
    "The answer is 12 or 13.",
    "Is the answer 13?",
    "The answer is not 13.",
    "not 13",
    "The answer is 13. Wait, actually it is 7.",
    "The answer is 13.\n\nHmm, let me re-check: z_2(7) = 7.",
    "<think>The answer is 13.",
    "There are 13 entries, and I am not sure.",
    "I read 13 numbers.",
    "5/13",
    "13.5",
    "1.3",
    "13th",
    "i_13",
    "f(13)",
    "\u221213",
    "-13",
    "113",
    "13, 7",
    "13\n7",
    "13\n\nThe answer is 7 or 13.",
    "The answer is between 12 and 14.",
    "The answer is at least 13.",
    "3*13",
    "13\u00b2",
    "The answer isn't 13.",
    "I don't know the answer: 13?",
    "f(2) = 13, f(0) = 7",
    "Key 13 is asked for.",
    "~~13~~",
    "If z_0 were 4, the answer would be 13.",
    "position 13",
    "The first is 13 and the second is 7.",
    "i = 13, j = 7",
    "Answer: 13/20",
    "13 or so",
    "The answer is 13. However, after re-checking, it should be 7.",
    "The answer is 13. But that is for the wrong key. For the right key it's 7.",
    "The answer is 13. Edit: it is 7.",
    "The answer is 13. Alternatively, 7.",
    "The answer is 7.\n\nNumbers: 13 2 4\nAnswer: 13",
    "7\n\nNumbers: 3 4 13\nAnswer: 13",
    "Option 1: 7\nOption 2: 13",
    "\\boxed{7} or \\boxed{13}",
    "\\boxed{7}\n\nWait, \\boxed{13} is wrong.",
    "13 is incorrect",
    "13 is excluded",
    "\u274c 13",
    "The answer is 13 mod 5.",
    "x_3 + q = 300 + 13 = 313 = 13 mod 300",
    "n = 13",
    "m = 13, so we compute modulo 13",
    "The depth returns to 13.",
    "final depth = 13",
    "Number of mismatches: 13",
    "Intersection: {13}",
]
NAMES = [
    "Batfeb",
    "Batfeb.",
    "**Batfeb**",
    "_Batfeb_",
    "batfeb",
    "BATFEB",
    "`Batfeb`",
    "\\boxed{\\text{Batfeb}}",
    "the castle Batfeb",
    "The castle Batfeb.",
    "The answer is Batfeb.",
    "The answer is **the castle Batfeb**.",
    "Answer: Batfeb",
    "**Answer**\n\nBatfeb",
    "Levgug was born in Mavdok.\nMavdok belongs to Batfeb.\n\nSo the answer is Batfeb.",
    "<think>\nIs it Mavdok or Levgug?\n</think>\nBatfeb",
    "Levgug, Mavdok, then ...</think>\n\n**Batfeb**",
    "1. Levgug \u2192 Mavdok\n2. Mavdok \u2192 Batfeb\n\nFinal answer: Batfeb",
    "<answer>Batfeb</answer>",
    '{"answer": "Batfeb"}',
    "The answer \u2013 Batfeb",
    "> Batfeb",
]
UNREAD_NAMES = [
    "The castle of Levgug is Batfeb.",
    "Batfeb is the castle of Levgug.",
    "Batfeb\n\nExplanation: Levgug lives there.",
    "Batfeb, for Levgug lives there.",
    "The answer is Mavdok. Wait, that is the village: the answer is Batfeb.",
]
NO_NAMES = [
    "",
    "Batfebs",
    "Batfeb or Levgug",
    "The answer is either Batfeb or Mavdok.",
    "The answer is not Batfeb.",
    "Is it Batfeb?",
    "<think>Batfeb",
    "Levgug",
    "Levgug\nBatfeb",
    "Batfeb, Levgug, Mavdok",
    "The answer is Batfeb. No, wait, it is Levgug.",
    "The answer is unknown.",
    "Batfeb is incorrect.",
    "The answer is Batfeb. However, on checking it should be Levgug.",
    "I first thought Batfeb, but it's Levgug.",
    "Mavdok was born in Batfeb, which lies in Levgug.",
    "There is no fact about Batfeb.",
    "\\boxed{Levgug} or \\boxed{Batfeb}",
    "The answer is Levgug.\n\nQuestion: Which?\nAnswer: Batfeb",
]
ARRANGEMENTS = [
    "[2,0,1]",
    "[2, 0, 1]",
    "(2, 0, 1)",
    "2 0 1",
    "2, 0, 1",
    "201",
    "2-0-1",
    "{2,0,1}",
    "\\boxed{[2, 0, 1]}",
    "$(2, 0, 1)$",
    "\\boxed{(2,\\,0,\\,1)}",
    "The answer is [2,0,1].",
    "The answer is **(2, 0, 1)**.",
    "p = [2, 0, 1]",
    "p_2 o p_1 = [2, 0, 1].",
    "[0,2,1] then [1,2,0] gives something else.\n\nThe answer is [2,0,1].",
    "<think>[0,1,2]?</think>[2,0,1]",
    "### Answer\n[2,0,1]",
    "```\n[2,0,1]\n```",
    '{"answer": [2, 0, 1]}',
    "Answer: 2 0 1",
    "<answer>[2,0,1]</answer>",
]
UNREAD_ARRANGEMENTS = [
    "After p_1: [0,2,1]\nAfter p_2: [2,0,1]",
    "0 \u2192 2, 1 \u2192 0, 2 \u2192 1",
    "The answer is 0 -> 2, 1 -> 0, 2 -> 1.",
    "0: 2, 1: 0, 2: 1",
    "Final product: [2; 0; 1]",
    "p(0) = 2, p(1) = 0, p(2) = 1",
]
NO_ARRANGEMENTS = [
    "",
    "[2,0,1] or [0,1,2]",
    "The answer is [2,0,1] or [1,0,2].",
    "[2,0,1,3]",
    "[2,0]",
    "[2,0,0]",
    "2 0 1 1 2 0",
    "12",
    "1201",
    "not [2,0,1]",
    "Is it [2,0,1]?",
    "<think>[2,0,1]",
    "The answer is [2,0,1]. Wait, actually it is [0,1,2].",
    "[2,0,1] is wrong.",
    "Initial arrangement: [2,0,1]",
    "Starting with [2,0,1]",
    "The answer is [2,0,1]. However, after checking it should be [0,1,2].",
]
LISTS = [
    "Batfeb, Fizgub, Mavdok",
    "Batfeb, Fizgub and Mavdok",
    "Batfeb, Fizgub, and Mavdok.",
    "Batfeb\nFizgub\nMavdok",
    "- Batfeb\n- Fizgub\n- Mavdok",
    "1. Batfeb\n2. Fizgub\n3. Mavdok",
    "* **Batfeb**\n* **Fizgub**\n* **Mavdok**",
    "[Batfeb, Fizgub, Mavdok]",
    '["Batfeb", "Fizgub", "Mavdok"]',
    '{"answer": ["Batfeb", "Fizgub", "Mavdok"]}',
    "The answer is Batfeb, Fizgub, Mavdok.",
    "Answer: Batfeb; Fizgub; Mavdok",
    "**Answer:**\n\n- Batfeb\n- Fizgub\n- Mavdok",
    "Levgug is told of early.\n\nThe answer is:\nBatfeb, Fizgub, Mavdok",
    "\\boxed{\\text{Batfeb, Fizgub, Mavdok}}",
    "\\boxed{Batfeb, Fizgub, Mavdok}",
    "<think>Levgug too?</think>\nBatfeb, Fizgub, Mavdok",
    "Batfeb Fizgub Mavdok",
    "batfeb, fizgub, mavdok",
    "Batfeb / Fizgub / Mavdok",
    "Batfeb \u2192 Fizgub \u2192 Mavdok",
    "<answer>Batfeb, Fizgub, Mavdok</answer>",
    "### Answer\nBatfeb, Fizgub, Mavdok",
    "`Batfeb`, `Fizgub`, `Mavdok`",
]
UNREAD_LISTS = [
    "The three words are Batfeb, Fizgub and Mavdok.",
    "I looked for Levgug.\n\nBatfeb, Fizgub, Mavdok",
]
NO_LISTS = [
    "",
    "Batfeb, Fizgub",
    "Batfeb, Fizgub, Mavdok, Levgug",
    "Batfeb, Fizgub or Mavdok",
    "The answer is Batfeb, Fizgub.",
    "<think>Batfeb, Fizgub, Mavdok",
    "not Batfeb, Fizgub, Mavdok",
    "Batfeb, Fizgub, Mavdok? ",
]


FORTY = [
    *(
        f"{before}{said}"
        for before in ("", "z_1(3) = 7, so i_2 = 13.\n\n")
        for said in (
            "Answer: 13",
            "**Answer:** 13",
            "Answer: **13**",
            "**Answer: 13**",
            "Answer: `13`",
            "Answer: $13$",
            "Answer: 13.",
            "answer: 13",
            "ANSWER: 13",
            "> Answer: 13",
            "- Answer: 13",
            "Answer:\n13",
            "### Answer\n\n13",
            "Final answer: 13",
            "The answer is 13.",
            "The final answer is: 13",
            "So the answer is 13.",
            "\\boxed{13}",
            "$$\\boxed{13}$$",
            "Answer: \\boxed{13}",
            '{"answer": 13}',
            '{"answer": "13"}',
            '```json\n{"answer": 13}\n```',
            "```\nAnswer: 13\n```",
            "<answer>13</answer>",
        )
    ),
    *(
        "13",
        "13.",
        "```\n13\n```",
        "<think>7?</think>\nAnswer: 13",
        "\uff11\uff13",
        "Answer: 13\u00a0",
    ),
]
"""Shapes of the one line that is asked for; each means 13."""


@each("reply", FORTY)
def test_the_line_that_is_asked_for_is_read(reply: str) -> None:
    assert read(reply, NUMBER) == "13"


@pytest.mark.parametrize(
    ("shape", "replies", "answer", "unread"),
    [
        (NUMBER, NUMBERS, "13", UNREAD_NUMBERS),
        (NAME, NAMES, "Batfeb", UNREAD_NAMES),
        (ARRANGEMENT, ARRANGEMENTS, "[2,0,1]", UNREAD_ARRANGEMENTS),
        (SEVERAL, LISTS, "Batfeb, Fizgub, Mavdok", UNREAD_LISTS),
        (ORDERED, LISTS, "Batfeb, Fizgub, Mavdok", UNREAD_LISTS),
    ],
    ids=["number", "name", "arrangement", "names", "names in order"],
)
def test_what_is_read_and_what_is_not(
    shape: Shape, replies: list[str], answer: str, unread: list[str]
) -> None:
    assert {reply: read(reply, shape) for reply in replies} == dict.fromkeys(replies, answer)
    assert {reply: read(reply, shape) for reply in unread} == dict.fromkeys(unread)


@pytest.mark.parametrize(
    ("shape", "replies", "wrong"),
    [
        (NUMBER, NO_NUMBERS, "13"),
        (NAME, NO_NAMES, "Batfeb"),
        (ARRANGEMENT, NO_ARRANGEMENTS, "[2,0,1]"),
        (SEVERAL, NO_LISTS, "Batfeb, Fizgub, Mavdok"),
    ],
    ids=["number", "name", "arrangement", "names"],
)
def test_what_is_ambiguous_is_no_answer(shape: Shape, replies: list[str], wrong: str) -> None:
    """None of these answers 13 (Batfeb, ...), and none of the first kind any other number."""
    found = {reply: read(reply, shape) for reply in replies}
    assert {reply: value for reply, value in found.items() if value == wrong} == {}
    taken = {reply: value for reply, value in found.items() if value is not None}
    # what stands before a question that the model itself goes on with, and another name
    assert all(value in ("7", "Levgug") for value in taken.values()), taken


def test_lists_that_have_an_order_keep_it() -> None:
    assert read("Mavdok, Batfeb, Fizgub", ORDERED) == "Mavdok, Batfeb, Fizgub"
    assert read("Mavdok, Batfeb, Fizgub", SEVERAL) == "Batfeb, Fizgub, Mavdok"


@each(
    "reply",
    [
        "Anna Bell",
        "anna bell.",
        "The answer is **Anna Bell**.",
        "Anna-Bell",
        "Answer: Anna\u00a0Bell",
        "<think>Anna Moss? Rosa Bell?</think>Anna Bell",
        "Her name is Anna Bell.",
    ],
)
def test_names_of_two_words(reply: str) -> None:
    assert read(reply, Shape("names", 1), TWO_WORDS) == "Anna Bell"


@each("reply", ["Anna", "Bell", "Anna Bell or Anna Moss", "Joanna Bell"])
def test_half_a_name_is_none(reply: str) -> None:
    assert read(reply, Shape("names", 1), TWO_WORDS) is None


def test_only_candidates_count_where_they_are_known() -> None:
    """ "Levgug" is whom the question is about, and no candidate."""
    assert read("the son of Levgug: Batfeb", NAME, ("Batfeb", "Mavdok")) is None
    assert read("Levgug: Batfeb", NAME, ("Batfeb", "Mavdok")) == "Batfeb"
    assert read("The answer is Levgug.", NAME, ("Batfeb", "Mavdok")) is None


@each("shape", [NUMBER, NAME, ARRANGEMENT, SEVERAL])
@each(
    "reply",
    [
        *(" word" * 2000, "*" * 2000, "a " * 500 + "-" * 500, "the answer is " * 400, "_a" * 1500),
        *("(" * 2000, "1 " * 2000, "1,2," * 1000, "= " * 2000, "\\boxed{" * 400, "$" * 3000),
        "\n" * 8000,
    ],
)
def test_replies_of_many_false_starts_hold_no_answer(shape: Shape, reply: str) -> None:
    assert read(reply, shape) is None

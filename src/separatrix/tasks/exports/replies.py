"""The answer in what a model wrote: `read(reply, shape)`, or None where it is not clear.

Standard library alone: every folder for lm-evaluation-harness carries this file beside its rows.

What a model thinks aloud is left out, then markup. The answer is what stands in the last box or
<answer>, else what follows "answer is", else the last line, else a first line that is an answer
alone. A place that names two answers has none: "4 or 5", "not 5", "5, no: 7", a question.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple


class Shape(NamedTuple):
    """What an answer looks like.

    kind "number": an integer from 0 to size - 1; "arrangement": the numbers 0 to size - 1 in some
    order; "names": `size` names, by their pattern, in the order asked for if `ordered`.
    """

    kind: str
    size: int
    ordered: bool = False
    pattern: str = ""


def read(reply: str, shape: Shape, choices: Sequence[str] = ()) -> str | None:
    """The answer as the rows of an export write it; None where there is none or it is not clear.

    `choices` are all names that can be part of an answer, where these are known.
    """
    said = _without_thoughts(reply)
    if said is None:
        return None
    answer = _answer(said, shape, choices)
    if (before := _before_the_next(said)) and _answer(before, shape, choices) != answer:
        return None
    return answer


_NEXT = re.compile(r"\n[ \t]*(?:Numbers|Input|Question):")


def _before_the_next(said: str) -> str:
    """What stands before a question that the model itself goes on with; nothing where none does."""
    return said[: found.start()] if (found := _NEXT.search(said)) else ""


def _answer(said: str, shape: Shape, choices: Sequence[str]) -> str | None:
    if shape.kind == "names":
        pattern = "|".join(map(_spaced, choices)) if choices else shape.pattern
        known = {_folded(name): name for name in choices}
        name = re.compile(rf"(?<![^\W_])(?:{pattern})(?![^\W_])", re.IGNORECASE)
        find = _names(name, known)
        if shape.size > 1:
            return _listed(said, shape, find)
        return _found(
            said, lambda text: _name(text, find), lambda text: _bare_name(text, name, find)
        )
    if shape.kind == "arrangement":
        return _found(
            said,
            lambda text: _arrangement(text, shape.size),
            lambda text: _arrangement(text, shape.size) if not _WORDS.search(text) else None,
        )
    return _found(
        said, lambda text: _number(text, shape.size), lambda text: _bare(text, shape.size)
    )


# what is not part of the reply

_THOUGHT_ENDS = re.compile(
    r"</(?:think|thinking|thought|thoughts|reasoning|analysis|scratchpad|reflection)>"
    r"|\[/THINK\]|◁/think▷|<\|end_of_thought\|>|<\|channel\|>final(?:<\|message\|>)?|<channel\|>",
    re.IGNORECASE,
)
_THOUGHT_BEGINS = re.compile(
    r"<(?:think|thinking|thought|thoughts|reasoning|analysis|scratchpad|reflection)>"
    r"|\[THINK\]|◁think▷|<\|begin_of_thought\|>|<\|channel\|>analysis|<\|channel>",
    re.IGNORECASE,
)


def _without_thoughts(reply: str) -> str | None:
    """What stands behind the last thought; None where a thought was cut off."""
    ends = list(_THOUGHT_ENDS.finditer(reply))
    said = reply[ends[-1].end() :] if ends else reply
    return None if _THOUGHT_BEGINS.search(said) else said


_PLAIN = {
    **{code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)},
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2212\ufe63\u02d7"), "-"),
    **dict.fromkeys(map(ord, "\u2014\u2015"), " - "),
    **dict.fromkeys(map(ord, "\u00a0\u2007\u2009\u202f\u3000"), " "),
    **dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff"), ""),
    **dict.fromkeys(map(ord, "“”„‟«»"), '"'),
    **dict.fromkeys(map(ord, "‘’‚‛"), "'"),
    **dict.fromkeys(map(ord, "⇒↦⟶⟹➜➡"), "→"),
    **dict.fromkeys(map(ord, "\u274c\u2717\u2718\u2716"), " wrong "),
    ord("。"): ". ",
    ord("："): ": ",
}
_MARKUP = (
    (re.compile(r"~~.*?~~"), " "),
    (re.compile("[\U0001f300-\U0001faff\u2600-\u27bf\ufe0f]|</s>"), " "),
    (re.compile(r"<br\s*/?>", re.IGNORECASE), "\n"),
    (re.compile(r"</?(?:b|i|em|strong|p|span|code|pre|div|answer)\b[^<>]*>", re.IGNORECASE), " "),
    (re.compile(r"<\|[a-z_]+\|>", re.IGNORECASE), " "),
    (re.compile(r"\\(?:to|rightarrow|mapsto|Rightarrow|longrightarrow|implies)\b"), "→"),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"\\(?:quad|qquad|left|right|displaystyle|[,;:! ])"), " "),
    (
        re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|mathsf|boxed)\s*\{([^{}]*)\}"),
        r"\1",
    ),
    (re.compile(r"\\[()\[\]]|\$+|`+"), " "),
    (re.compile(r"(?<![\w)*])\*{1,3}(?=[^\s*])([^*\n]+?)(?<=[^\s*])\*{1,3}(?![\w(*])"), r"\1"),
    (re.compile(r"(?<![\w_])_{1,3}(?=[^\s_])([^\n]+?)(?<=[^\s_])_{1,3}(?![\w_])"), r"\1"),
    (re.compile(r"^[ \t]*(?:#{1,6}|>+|[-*•‣◦+])[ \t]+", re.MULTILINE), ""),
)


def _plain(text: str) -> str:
    """Text without markup, dashes and spaces as on a keyboard."""
    text = text.translate(_PLAIN)
    for pattern, instead in _MARKUP:
        text = pattern.sub(instead, text)
    return text


# where the answer stands

_BOX = re.compile(
    r"\\(?:boxed|fbox)\s*\{((?:[^{}]|\{[^{}]*\})*)\}|<answer>(.*?)</answer>", re.DOTALL
)
_SAID = re.compile(
    r"\banswer\b[\"']?(?P<gap>(?:(?!\banswer\b)[^\n.:=?!]){0,60}?)"
    r"(?:\bis\b|\bwould be\b|\bshould be\b|\bmust be\b|\bwill be\b|[:=→]|\s-(?=\s))"
    r"|^\W*(?:the\s+)?(?:final\s+)?answer\W*$",
    re.IGNORECASE | re.MULTILINE,
)
_RETRACTED = re.compile(
    r"\b(?:wait|actually|correction|scratch that|mistake|mistaken|sorry|hmm|oops|on second thought"
    r"|re-?check(?:ing|ed)?|let me double-?check|or rather|no(?=\s*[,:;!])|however|alternatively"
    r"|edit(?=\s*:)|revis(?:ed|ing)|but (?:that|this|wait)|wrong|incorrect)\b",
    re.IGNORECASE,
)
_DOUBT = re.compile(
    r"\b(?:or|either|neither|nor|not|cannot|between|except|unless|unknown|undefined|unclear|none|if"
    r"|than|least|most|about|approximately|around|wrong|incorrect|invalid|impossible|excluded"
    r"|options?|depth|height|mismatch\w*|differences?|intersection|components?|cycles?|remaining"
    r"|unmatched|stack)\b|n't\b|\?\W*$|[<>≤≥≈~≠]|(?<!\w)[nmkd]\s*=",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9])")
_WORDS = re.compile(r"[A-Za-z]")

Reader = Callable[[str], str | None]


def _found(said: str, statement: Reader, bare: Reader) -> str | None:
    """The answer of a reply, by what one statement says and what is nothing but an answer."""
    boxes = [one or other for one, other in _BOX.findall(said)]
    if boxes and _disputed(said):
        return None
    if boxes:
        return statement(_sentences(_plain(boxes[-1]))[-1]) if boxes[-1].strip() else None
    text = _plain(said)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if not lines:
        return None
    last = bare(lines[-1])
    announced = list(_SAID.finditer(text))
    if announced:
        return _announced(text, announced[-1], statement, last)
    first = bare(_sentences(lines[0])[0])
    ending = statement(_sentences(lines[-1])[-1])
    if _doubtful(lines[-1]) or (first is not None and ending not in (None, first)):
        return None
    if ending is not None:
        return ending
    # a first line by itself counts unless what follows takes it back
    return None if _RETRACTED.search(text) else first


def _disputed(said: str) -> bool:
    """Whether the last box is one of two, or taken back by the rest of its sentence."""
    last = list(_BOX.finditer(said))[-2:]
    between = said[last[0].end() : last[-1].start()] if len(last) > 1 else ""
    rest = said[last[-1].end() :].partition("\n")[0]
    return bool(
        re.fullmatch(r"\W*or\W*", between, re.IGNORECASE)
        or re.match(
            r"\W*(?:is|was|would be)\s+(?:wrong|incorrect|not\b)|\W*\?", rest, re.IGNORECASE
        )
    )


def _announced(text: str, where: re.Match[str], statement: Reader, last: str | None) -> str | None:
    """What stands behind "the answer is", unless it is taken back later."""
    before = re.split(r"[.!?\n]|\b(?:so|thus|hence|therefore)\b", text[: where.start()])[-1]
    if _denied(f"{before} {where['gap'] or ''}"):
        return None
    rest = text[where.end() :]
    line, _, later = rest.lstrip(" \t\n:*").partition("\n")
    sentences = _sentences(line.strip())
    after = " ".join([*sentences[1:], later])
    found = statement(sentences[0]) if sentences[0] else None
    if _RETRACTED.search(after) or last not in (None, found):
        return None
    return found


def _denied(text: str) -> bool:
    return bool(re.search(r"\b(?:not|no|cannot|unknown|unsure|if|or)\b|n't\b", text, re.IGNORECASE))


def _doubtful(line: str) -> bool:
    """Whether a line ends in a question, or takes back what it says."""
    return bool(re.search(r"\?\W*$", line) or re.search(r"\bno,", line, re.IGNORECASE))


def _sentences(line: str) -> list[str]:
    return [part for part in _SENTENCE.split(line.strip()) if part] or [""]


# what a statement says

_DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.0+)?"
_LEAD = (
    r"(?:(?:the|a|an|simply|just|exactly|only|precisely|number|value|label|digit|integer|class|symbol"
    r"|letter|element|answer|result|output|remainder|residue|count|sum|bit|equal|equals|to|so|thus|hence"
    r"|therefore|then|indeed|i|believe|think|it|it's|that|is|be|final|correct|and|finally|we|get|have|which|again|still)"
    r"[\s,:]+)*"
)
_TAIL = (
    r"(?:[\s,]*\(?\s*\\?p?mod(?:ulo)?\s*\{?(?P<modulus>[0-9]+)\}?\s*\)?|\s+(?:exactly|indeed"
    r"|in total|in all|as required|times|ones|occurrences))*"
)
_EDGE = " \t\"'.,;:!()[]{}<>|*_\\&"
_BARE = re.compile(rf"{_LEAD}({_DIGITS}){_TAIL}", re.IGNORECASE)
_SPELT = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
_RELATION = re.compile(
    r"[=≡:→]|->|=>|\b(?:is|are|equals?|gives?|yields?|becomes?|returns?|maps to|goes to|holds?"
    r"|stores?|contains?)\b",
    re.IGNORECASE,
)
_EQUATION = re.compile(r"[=≡→]|->|=>")
_WHY = re.compile(
    r"[\s,;-]*\b(?:because|since|as|for|given|where|which|with|due to|from|after|when|i\.e\."
    r"|e\.g\.|that is|considering|based on|according to|following|rather than|instead of)\b"
    r"|,\s*(?:and\s+)?not\b",
    re.IGNORECASE,
)
_REASON = re.compile(r"\b(?:because|since|as|due to|given|considering)\b", re.IGNORECASE)
_SO = re.compile(
    r"[,;]?\s*\b(?:so|thus|hence|therefore|then|and so|finally)\b[\s,:]*", re.IGNORECASE
)
_VERB = re.compile(
    r"\b(?:gets?|got|obtain(?:ed|s)?|reach(?:es|ed)?|returns?|outputs?|arrives? at|ends? at"
    r"|ends? up (?:at|with|on)|lands? (?:on|at)|left with|comes? out (?:as|at|to)|equal to)"
    rf"[\s:]+{_LEAD}({_DIGITS}){_TAIL}\W*$",
    re.IGNORECASE,
)


def _bare(text: str, size: int) -> str | None:
    """The number, where there is nothing else."""
    text = text.strip(_EDGE).replace("(mod", " (mod")
    # an edge may have been half of "(mod 5)"
    text += ")" * (text.count("(") - text.count(")"))
    if text.lower() in _SPELT:
        return _within(_SPELT.index(text.lower()), size)
    found = _BARE.fullmatch(text)
    if found and found["modulus"] and int(found["modulus"]) != size:
        return None  # a sum that is still to be reduced, or one that is no answer
    return _within(int(found[1].split(".")[0].replace(",", "")), size) if found else None


def _within(value: int, size: int) -> str | None:
    return str(value) if 0 <= value < size else None


def _number(text: str, size: int) -> str | None:
    """The number that one sentence gives as its result."""
    head = _head(text)
    found = None if head is None else _stated(head, size)
    if found is None and not _REASON.search(text):
        # "the value that goes with key 4 is 13": what looked like an aside was none
        return _stated(_plainly(text), size)
    return found


def _stated(head: str, size: int) -> str | None:
    """The same of a sentence without asides and reasons."""
    if _DOUBT.search(re.sub(r"->|=>", "→", head)):
        return None
    whole = _bare(head, size)
    if whole is not None:
        return whole
    clauses = [
        part for part in re.split(r"[,;](?!\d{3}\b)|\band\b", _SO.sub(" ; ", head)) if part.strip()
    ]
    equations = [clause for clause in clauses if _RELATION.search(clause)]
    results = {_result(clause, size) for clause in equations}
    if len(results) > 1 and not _SO.search(head) and not _in_order(equations):
        return None
    sides = _RELATION.split(head)
    if len(sides) > 1:
        # "5 = f(3)" and "5 is the value of 3" begin with the answer, others end with it
        ends = [_bare(sides[0], size), _bare(sides[-1], size)]
        if ends[1] is not None:
            return ends[1]
        if ends[0] is not None and len(sides) == 2:
            return ends[0]
    alone = {value for clause in clauses if (value := _bare(clause, size)) is not None}
    if len(alone) == 1 and len(clauses) > 1 and len(sides) == 1:
        return alone.pop()
    if len(clauses) > 1 and len(sides) > 1 and len(equations) <= 1:
        ends_of = [_result(clause, size) for clause in (clauses[0], clauses[-1])]
        if (ends_of[0] is None) != (ends_of[1] is None):
            return ends_of[0] or ends_of[1]
    found = _VERB.search(head)
    return _within(int(found[1].split(".")[0].replace(",", "")), size) if found else None


def _result(clause: str, size: int) -> str | None:
    """What stands at the end of an equation, or a clause that is an answer."""
    return _bare(_RELATION.split(clause)[-1], size)


def _in_order(equations: list[str]) -> bool:
    """Whether the left sides count up, as in "i_1 = 7, i_2 = 5"."""
    numbers = [re.findall(r"[0-9]+", _RELATION.split(equation)[0])[:1] for equation in equations]
    counted = [int(found[0]) for found in numbers if found]
    return len(counted) == len(equations) and counted == [
        *range(counted[0], counted[0] + len(counted))
    ]


def _head(text: str) -> str | None:
    """A sentence without asides and reasons; None where it is nothing else."""
    text = _plainly(text)
    if found := _WHY.search(text):
        head = text[: found.start()]
        if re.search(r"\w", head):
            return head
        # a reason that comes first ends at the last comma or "so"
        clauses = re.split(r"[,;]|\bso\b|\bthen\b|\bthus\b", text)
        return clauses[-1] if len(clauses) > 1 else None
    return text


def _plainly(text: str) -> str:
    """A sentence without what stands in brackets, unless there is nothing else."""
    if not _outside(text):
        return text
    return re.sub(r"(?<=[\s\d.*])\((?!\s*mod)[^()]*\)", " ", f" {text}")


def _outside(text: str) -> bool:
    """Whether anything but brackets says something."""
    return bool(re.search(r"\w", re.sub(r"\([^()]*\)", "", text)))


# arrangements

_SEQUENCE = re.compile(r"(?<![\w.^-])[0-9]+(?:\s*(?:[,;]|\s|-(?=[0-9]))\s*[0-9]+)+(?![\w.]*[\w^])")
_TOGETHER = re.compile(r"(?<![\w.,-])[0-9]+(?![\w,]|\.[0-9])")
_ARROW = re.compile(r"(?<![\w.])([0-9]+)\)?\s*(?:→|->|=>|:|=)\s*([0-9]+)(?![\w.]*\w)")


def _arrangement(text: str, size: int) -> str | None:
    """The one arrangement that a statement gives; behind its last "=" where it gives several."""
    if _OPEN.search(text):
        return None
    pairs = _ARROW.findall(text)
    if len(pairs) == size:
        sent = {int(one): int(other) for one, other in pairs}
        if sorted(sent) == sorted(sent.values()) == list(range(size)):
            return _arranged([sent[place] for place in range(size)])
    for part in (text, _EQUATION.split(text)[-1]):
        found = {
            tuple(map(int, re.findall("[0-9]+", sequence))) for sequence in _SEQUENCE.findall(part)
        }
        # digits written together: 201
        found |= {tuple(map(int, digits)) for digits in _TOGETHER.findall(_SEQUENCE.sub(" ", part))}
        found = {one for one in found if sorted(one) == list(range(size))}
        if len(found) == 1:
            return _arranged(found.pop())
    return None


def _arranged(numbers: Iterable[int]) -> str:
    return f"[{','.join(map(str, numbers))}]"


# names

_OPEN = re.compile(
    r"\b(?:or|either|neither|nor|not|no|cannot|unless|except|unknown|none|first|wrong|incorrect"
    r"|options?|initial(?:ly)?|start(?:s|ing)?)\b|n't\b|\?\W*$",
    re.IGNORECASE,
)
_LINK = re.compile(r"[:=→]|->|=>|\b(?:is|are|was|were)\b", re.IGNORECASE)


def _spaced(name: str) -> str:
    """A pattern of a name of one word or several, however these are joined."""
    return r"[\s_-]+".join(map(re.escape, name.split()))


def _folded(name: str) -> str:
    return " ".join(re.split(r"[\s_-]+", name.lower()))


def _names(pattern: re.Pattern[str], known: dict[str, str]) -> Callable[[str], list[str]]:
    """What finds the names of a text, each once, as they are spelt in the rows."""

    def find(text: str) -> list[str]:
        found = (_folded(match.group()) for match in pattern.finditer(text))
        return list(dict.fromkeys(known.get(name, name.capitalize()) for name in found))

    return find


def _bare_name(text: str, pattern: re.Pattern[str], find: Callable[[str], list[str]]) -> str | None:
    """A name with at most its kind before it: "the castle Pefkor", "the city of Pefkor"."""
    found = find(text)
    around = pattern.sub(" ", text)
    few = re.fullmatch(r"\W*(?:[a-z]+\W+){0,3}", around, re.IGNORECASE)
    return found[0] if few and len(found) == 1 and not _OPEN.search(text) else None


def _name(text: str, find: Callable[[str], list[str]]) -> str | None:
    """The one name that a statement gives as its result."""
    head = _head(text) or text
    if _OPEN.search(head):
        return None
    found = find(head)
    if len(found) > 1 and set(find(text)) > set(found):
        return None  # "Mavdok was born in Levgug, which lies in Batfeb": a fact and what follows
    if len(found) < 2:
        return found[0] if found else None
    sides = _LINK.split(head)
    first = find(sides[0])
    last = find(sides[-1])
    if len(sides) < 2 or len(first) != 1:
        start, *rest = re.split(r"[,;(]", head, maxsplit=1)
        subject = find(start)
        # "the castle Pefkor, home of ...", but not a list of names
        said = bool(rest) and bool(re.search(r"\b[a-z]{2,}\b", rest[0]))
        return subject[0] if len(sides) < 2 and len(subject) == 1 and said else None
    # "Pefkor is the castle of ..." begins with the answer, "the castle of ... is Pefkor" ends so
    turned = re.match(r"\W*(?:the|a|an)\b[^.]*\bof\b", sides[-1], re.IGNORECASE)
    if turned and not re.search(r"\bof\b", sides[0]):
        return first[0]
    return last[0] if len(last) == 1 else None


def _listed(said: str, shape: Shape, find: Callable[[str], list[str]]) -> str | None:
    """As many names as are asked for: where the answer is announced, else in the last paragraph,
    else in the last line.
    """
    boxes = [one or other for one, other in _BOX.findall(said)]
    text = _plain(said)
    announced = list(_SAID.finditer(text))
    paragraphs = [part for part in re.split(r"\n\s*\n", text.strip()) if part.strip()]
    tries = (
        [_plain(boxes[-1])]
        if boxes
        else [text[announced[-1].end() :]]
        if announced
        else [paragraphs[-1], paragraphs[-1].split("\n")[-1], text]
        if paragraphs
        else []
    )
    for part in tries:
        short = part.strip().partition("\n")[0]
        for region in (part, short):
            found = find(region)
            if _OPEN.search(region) or _RETRACTED.search(region):
                return None
            if len(found) == shape.size:
                return ", ".join(found if shape.ordered else sorted(found))
    return None

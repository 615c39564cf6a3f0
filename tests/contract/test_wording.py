"""Sentences are pinned in the console blocks of README and docs and nowhere else: an assertion is
about a number, a name, a status; `raises` names the class and one value. Nor is anything judged by
the clock: tests wait for events.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from support.each import each

ROOT = Path(__file__).resolve().parent.parent
WORD = re.compile(r"[(\"'`\[]*[A-Za-z][a-z'-]+[\]).,:;!?'\"`]*")
MOST, MOST_RAISED, LONGEST = 3, 4, 40
"""Words that an asserted text has at most, and words and characters of a pattern of `raises`."""
TOLD_BY = {"startswith", "endswith", "count", "find", "index"}
"""Questions about a text, besides comparing it."""
MADE = {
    "contract/test_documents.py": "what the comparer of documents says of them",
    "contract/test_theory_page.py": "what the reader of formulas says of them",
    "peers/test_lm_eval.py": "prompts, whose last lines it reads",
    "unit/cli/report/test_tasks.py": "names of parts",
    "unit/constructions/test_encoder.py": "`fetches` of a proof record, a part of its format",
    "unit/constructions/test_khop.py": "`fetches` of a proof record, a part of its format",
    "unit/core/document/test_pages.py": "one page by each printer",
    "unit/core/test_errors.py": "the sentence of every error about an unknown name",
    "unit/findings/test_claims.py": "words that were given, with their numbers filled in",
    "unit/findings/test_own.py": "a row of given numbers",
    "unit/findings/test_page.py": "rows of a table in Markdown",
    "unit/tasks/exports/test_formats.py": "the command and files of an export",
    "unit/tasks/test_words.py": "words that were given, laid out anew",
    "unit/tasks/text/test_wording.py": "prompts: what a task asks, word by word",
    "unit/tools/test_website.py": "Markdown that was given, written anew",
    "unit/training/sweeps/test_file.py": "the name of a file that was given",
}
"""Files whose subject makes texts, and which."""


def said(node: ast.expr) -> str:
    """The text of a constant, of an f-string without what it fills in, or of their sum."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(said(part) or "{}" for part in node.values)
    return said(node.left) + said(node.right) if isinstance(node, ast.BinOp) else ""


def leaves(nodes: Iterable[ast.expr | None]) -> Iterator[ast.expr]:
    """Some nodes, with what stands in tuples, lists, sets and dictionaries in their place."""
    for node in nodes:
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            yield from leaves(node.elts)
        elif isinstance(node, ast.Dict):
            yield from leaves((*node.keys, *node.values))
        elif node is not None:
            yield node


def wordings(code: str) -> list[str]:
    """What a test pins of more words than it may: "line: text"."""
    tree = ast.parse(code)
    asserted, raised = [], []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            for one in ast.walk(node.test):
                if isinstance(one, ast.Compare):
                    asserted += [one.left, *one.comparators]
                elif isinstance(one, ast.Call) and asks(one) in TOLD_BY:
                    asserted += one.args
        elif isinstance(node, ast.keyword) and node.arg == "match":
            raised.append(node.value)
    handed = dict(handed_on(tree))
    return [
        f"{node.lineno}: {said(node)}"
        for nodes, most, longest in ((asserted, MOST, 10**6), (raised, MOST_RAISED, LONGEST))
        for node in leaves((*nodes, *of(nodes, handed)))
        if words(said(node)) > most or len(said(node)) > longest
    ]


def of(nodes: list[ast.expr], handed: dict[tuple[str, int, int], list[ast.expr]]) -> list[ast.expr]:
    """What `parametrize` and `each` hand on to the names that are some nodes."""
    named = [(leaf.id, leaf.lineno) for leaf in leaves(nodes) if isinstance(leaf, ast.Name)]
    return [
        value
        for (name, first, last), values in handed.items()
        if any(one == name and first <= line <= last for one, line in named)
        for value in values
    ]


def handed_on(tree: ast.Module) -> Iterator[tuple[tuple[str, int, int], list[ast.expr]]]:
    """The values of each argument that a test's decorators hand on, by its name and its lines."""
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        lines = (function.lineno, function.end_lineno or 0)
        for call in function.decorator_list:
            if not isinstance(call, ast.Call) or asks(call) not in {"parametrize", "each"}:
                continue
            names = [one.strip() for text in leaves(call.args[:1]) for one in said(text).split(",")]
            table = call.args[1]
            table = constants.get(table.id, table) if isinstance(table, ast.Name) else table
            rows = [cells(row, len(names)) for row in getattr(table, "elts", ())]
            for at, name in enumerate(names):
                yield (name, *lines), [row[at] for row in rows if at < len(row)]


def cells(row: ast.expr, columns: int) -> list[ast.expr]:
    """What a row of `parametrize` gives, `pytest.param` included."""
    if isinstance(row, ast.Call) and asks(row) == "param":
        return row.args
    return getattr(row, "elts", [row]) if columns > 1 else [row]


def words(text: str) -> int:
    return sum(bool(WORD.fullmatch(word)) for word in text.split())


def test_no_sentence_is_pinned() -> None:
    pinned = {
        name: found
        for path in sorted(ROOT.rglob("*.py"))
        if (name := path.relative_to(ROOT).as_posix()) not in MADE
        if (found := wordings(path.read_text(encoding="utf-8")))
    }
    assert pinned == {}


def test_an_exception_is_needed() -> None:
    assert [name for name in MADE if not wordings((ROOT / name).read_text())] == []


@each(
    "code, count",
    [
        ("assert 'some weights copy every string' in x", 1),
        ("assert x == ('a', 'some weights copy every string')", 1),
        ("assert f'some weights copy {n} strings' in x", 1),
        ("assert x == 'some weights copy' ' every string'", 1),
        ("with raises(E, match='some weights copy every string'): ...", 1),
        (f"with raises(E, match='{'x' * 41}'): ...", 1),
        ("@each('a', ['some weights copy every string'])\ndef f(a): assert a in x", 1),
        (
            "@each('a, b', [(1, 'some weights copy strings')])\ndef f(a, b): assert (b, 1) == x",
            1,
        ),
        (
            "@each('a, b', [(1, 'some weights copy every string')])\ndef f(a, b): assert a == x(b)",
            0,
        ),
        (
            "R = ['some weights copy every string']\n@each('a', R)\ndef f(a): raises(E, match=a)",
            1,
        ),
        ("assert x.startswith('some weights copy every string')", 1),
        ("assert 'n = 7,675,932 on' in x", 0),
        ("assert f('some weights copy every string') == 3", 0),
    ],
)
def test_a_sentence_is_known(code: str, count: int) -> None:
    assert len(wordings(code)) == count


CLOCKS = {"monotonic", "perf_counter", "process_time"}
TIMED = {
    "support/pretended.py": "training that ends a slice by the clock, as training does",
    "support/waiting.py": "the one limit that ends a test that hangs",
}


def asks(node: ast.AST) -> str:
    """The name of the function that is called; empty for what is no call."""
    called = node.func if isinstance(node, ast.Call) else None
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def judged_by_clock(code: str) -> list[int]:
    """The lines of assertions and loops that ask a clock; most files name none."""
    if not any(clock in code for clock in CLOCKS):
        return []
    return [
        node.lineno
        for node in ast.walk(ast.parse(code))
        if isinstance(node, (ast.Assert, ast.While))
        if any(asks(one) in CLOCKS for one in ast.walk(node.test))
    ]


def test_nothing_is_judged_by_the_clock() -> None:
    codes = {path.relative_to(ROOT).as_posix(): path.read_text() for path in ROOT.rglob("*.py")}
    assert {name for name, code in codes.items() if judged_by_clock(code)} == set(TIMED)


def test_a_clock_is_seen() -> None:
    assert judged_by_clock("while not true() and time.monotonic() < end:\n    pass") == [1]
    assert judged_by_clock("assert perf_counter() < 1") == [1]
    assert judged_by_clock("assert seconds < 1") == []
    assert judged_by_clock("assert time.perf_counter() - start < 1") == [1]

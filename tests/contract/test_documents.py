"""Documents say what is so: console blocks print what they show, and commands, options, make
targets and links that they name are there.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from support.console import (
    DOCUMENTS,
    ROOT,
    Command,
    fill,
    grouped,
    matches,
    parse,
    problem,
)
from support.each import each
from support.named import commands, links, make_targets, targets, wrong_command, wrong_link

from separatrix import __version__
from separatrix.stacks.architecture.hf.table import ROWS

SLOW = {
    "README.md": ("check-mechanism examples/my_mixer.py:MyMixer",),
    "docs/own-mixer.md": ("check-mechanism examples/my_mixer.py:MyMixer",),
    "docs/tasks-export.md": ("task seqcomp", "task mqar"),
}
"""Beginnings of commands that take four seconds of processor time or more. Of the documents,
only README's commands run in `make test`.
"""
MARKDOWN = (*DOCUMENTS, "CHANGELOG.md", "tests/README.md")


def read(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


def begins(command: Command, text: str) -> bool:
    return command.text.startswith(f"separatrix {text}")


def groups() -> list[object]:
    """A case for every command of every document, or for several that need one folder."""
    cases = []
    for document in DOCUMENTS:
        for group in grouped(parse(read(document), document)):
            slow = document != "README.md" or any(
                begins(command, text) for command in group for text in SLOW.get(document, ())
            )
            name = f"{document}:{group[0].line}-{'-'.join(command.words[0] for command in group)}"
            cases.append(pytest.param(group, id=name, marks=[pytest.mark.slow] if slow else []))
    return cases


@pytest.mark.parametrize("group", groups())
def test_commands_print_what_the_document_says(group: list[Command], tmp_path: Path) -> None:
    fill(tmp_path)
    found = [problem(command, tmp_path) for command in group]
    assert not any(found), "\n\n".join(["", *(text for text in found if text)])


@pytest.mark.slow
@pytest.mark.parametrize("document", [name for name in DOCUMENTS if "```python" in read(name)])
def test_python_blocks_run(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a document that are fenced as Python, one after the other."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", read(document), re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, document, "exec"), names)


@each("document", DOCUMENTS)
def test_no_command_escapes(document: str) -> None:
    """What looks like a command after a prompt is one that is run, in whatever kind of block it
    stands.
    """
    text = read(document)
    looks = {
        number
        for number, line in enumerate(text.splitlines(), 1)
        if re.match(r"[\s>*-]*\$ +separatrix\b", line)
    }
    assert looks == {command.line for block in parse(text, document) for command in block}


@pytest.mark.parametrize("document", SLOW)
def test_slow_commands_are_in_their_documents(document: str) -> None:
    there = [command for block in parse(read(document), document) for command in block]
    assert [
        text for text in SLOW[document] if not any(begins(command, text) for command in there)
    ] == []


@each("document", DOCUMENTS)
def test_named_commands_and_options_exist(document: str) -> None:
    """An option that stands alone may also be one of a script in benchmarks/ that the document
    names.
    """
    text = read(document)
    scripts = "".join(
        script.read_text(encoding="utf-8")
        for script in (ROOT / "benchmarks").glob("*.py")
        if script.name in text
    )
    named = [
        (line, code)
        for line, code in commands(text)
        if not (code.startswith("--") and f'"{code.split()[0]}"' in scripts)
    ]
    assert [
        f"{document}:{line}: `{code}`: {fault}"
        for line, code in named
        if (fault := wrong_command(code))
    ] == []


@each("document", DOCUMENTS)
def test_named_make_targets_exist(document: str) -> None:
    there = make_targets(read("Makefile"))
    assert [
        f"{document}:{line}: make {name}"
        for line, name in targets(read(document))
        if name not in there
    ] == []


@pytest.mark.parametrize("document", MARKDOWN)
def test_links_lead_somewhere(document: str) -> None:
    found = [(line, wrong_link(target, ROOT / document)) for line, target in links(read(document))]
    assert [f"{document}:{line}: {fault}" for line, fault in found if fault] == []


def test_readme_is_read_in_two_minutes() -> None:
    text = read("README.md")
    assert len(text) <= 9_000
    assert {"make reproduce", "make test"} <= set(re.findall("make (?:reproduce|test)", text))


def test_model_types_are_counted_once() -> None:
    refused = sum(bool(row.refused) for row in ROWS.values())
    assert [
        count
        for document in DOCUMENTS
        for count in re.findall(r"(\d+) model types", read(document))
    ] == [str(len(ROWS) - refused)]
    assert f"types are read and {refused} are refused" in read("docs/guide.md")


def test_the_citation_is_of_this_version() -> None:
    said = yaml.safe_load(read("CITATION.cff"))
    assert said["version"] == __version__
    assert said["license"] == "Apache-2.0"
    assert {"cff-version", "title", "message", "authors", "preferred-citation"} <= said.keys()


# The matcher.


@each(
    "expected, printed",
    [
        ("a b c", "a b c"),
        ("a ... c", "a b c"),
        ("a ... d", "a b c d"),
        ("... c", "a b c"),
        ("a ...", "a b c"),
        ("...", "a"),
        ("a ... c ... e", "a b c d e"),
        ("a ... b c ... e", "a b b c d e"),  # the first b is left out
        ("a ... ... d", "a b c d"),
    ],
)
def test_matches(expected: str, printed: str) -> None:
    assert matches(expected.split(), printed.split())


@each(
    "expected, printed",
    [
        ("a b", "a b c"),
        ("b c", "a b c"),
        ("a c", "a b c"),
        ("a b c d", "a b c"),
        ("b ...", "a b c"),  # unanchored before
        ("... b", "a b c"),  # unanchored behind
        ("a ... b", "a b"),  # nothing is left out
        ("a b ... b c", "a b c"),  # no line stands for two
        ("a ... c d ... f", "a b c x d e f"),  # not contiguous
        ("a ... c ... b ... e", "a b c d e"),  # not in order
        ("a... c", "ab c"),  # no wildcard inside a line
        ("...", ""),
    ],
)
def test_does_not_match(expected: str, printed: str) -> None:
    assert not matches(expected.split(), printed.split())


# What must be caught.

FAULT = (
    "error: unknown mechanism 'gnd' in --set 'gnd.heads=4'. Did you mean 'gdn'? `separatrix"
    " list mechanisms` lists all. A mixer of your own is known once its module is imported:"
    " --import MODULE."
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"$ separatrix analyze full --set gnd.heads=4\n{FAULT}", None),
        (f"$ separatrix analyze full --set gnd.heads=4\n{FAULT}   \n\n", None),
        ("$ separatrix list theorems I", None),
        (
            "$ separatrix analyze full --set gnd.heads=4\nerror: unknown",
            "-error: unknown\n+error: unknown mechanism 'gnd'",
        ),
        ("$ separatrix analyze full --set gnd.heads=4", "exit code 2, expected 0"),
        ("$ separatrix list theorems I\nerror: no", "exit code 0, expected 2"),
        (
            "$ separatrix theorem show I",
            "exit code 2, expected 0; it printed:\nerror: No such command",
        ),
        (
            "$ separatrix list theorems I\n...\n  there is no such proof",
            "-  there is no such proof",
        ),
    ],
)
def test_a_wrong_output_is_told_with_its_place(text: str, said: str | None, tmp_path: Path) -> None:
    fill(tmp_path)
    [[command]] = parse(f"Text\n\n```console\n{text}\n```", "a.md")
    found = problem(command, tmp_path)
    if said is None:
        assert found is None
    else:
        assert found is not None
        assert found.startswith(f"a.md:4: {text.splitlines()[0]}\n")
        assert said in found


@each(
    "text, faults",
    [
        (
            (
                "`separatrix analyze full --context 8`, `separatrix --help`, `--out f.png`,"
                " `list theorems I`, `.venv/bin/separatrix`"
            ),
            [],
        ),
        ("`separatrix task eva:n=64 audit` and `separatrix task eva evaluate d --n 8`", []),
        ("`construct seqcomp:L=3,n=8 --out x` and `refute full --task eva:n=8`", []),
        (
            "`separatrix task eva audit --numbr 3`",
            ["--numbr is no option of separatrix task; there is --number"],
        ),
        ("`list theorems III`, `task eva` and `runs show KEY`", []),
        ("    separatrix reproduce [--quick] [--config FILE]...   explains --this", []),
        ("    separatrix list | task   and others", []),
        ("`separatrix analyse full`", ["analyse is no command; there is analyze"]),
        (
            "`separatrix analyze full\n--contxt 8`",
            ["--contxt is no option of separatrix analyze; there is --context"],
        ),
        ("`separatrix lits theorems`", ["lits is no command; there is list"]),
        ("`separatrix task | lst`", ["lst is no command; there is list"]),
        (
            "    $ separatrix refute full \\\n        --tsk eva",
            ["--tsk is no option of separatrix refute; there is --task"],
        ),
        (
            "```sh\nseparatrix compare a b --jsn\n```",
            ["--jsn is no option of separatrix compare; there is --json"],
        ),
        ("`--contxt 8`", ["--contxt is no option of any command; there is --context"]),
        ("`construct eva --zzz x`", ["--zzz is no option of separatrix construct"]),
    ],
)
def test_wrong_commands_and_options_are_found(text: str, faults: list[str]) -> None:
    assert [fault for _, code in commands(text) if (fault := wrong_command(code))] == faults

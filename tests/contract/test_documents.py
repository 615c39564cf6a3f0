"""Documents say what is so: console blocks print what they show, and commands, options, make
targets and links that they name are there.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support.console import (
    CUT,
    DOCUMENTS,
    ROOT,
    Command,
    DocumentError,
    environment,
    fill,
    grouped,
    main,
    matches,
    parse,
    problem,
    recut,
    run,
    written,
)
from support.each import each
from support.named import commands, links, make_targets, spans, targets, wrong_command, wrong_link

from separatrix import __version__
from separatrix.mixers import MIXERS
from separatrix.stacks.architecture.hf.table import ROWS
from separatrix.stacks.mechanisms import MECHANISMS

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


# The runner: one process after the other.


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["analyze", "recurrentgemma-2b", "--context", "8192"], 0),
        pytest.param(["list", "mechanisms"], 0, marks=pytest.mark.slow),
        pytest.param(["analyze", "mamba2-2.7b/config.json"], 0, marks=pytest.mark.slow),
        (["analyze", "full", "--set", "gnd.heads=4"], 2),
    ],
    ids=["card", "table", "file", "error"],
)
def test_a_process_of_its_own_prints_the_same_bytes(
    words: list[str], code: int, tmp_path: Path
) -> None:
    fill(tmp_path)
    command = [sys.executable, "-m", "separatrix", *words]
    other = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    here = run(words, tmp_path)
    assert (here.code, here.text.encode()) == (other.returncode, other.stdout)
    assert here.code == code
    assert here.text


def test_a_command_leaves_the_process_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    own = type(sys)("my_mixer")
    monkeypatch.setitem(sys.modules, "my_mixer", own)
    before = (
        Path.cwd(),
        list(sys.path),
        dict(MECHANISMS),
        dict(MIXERS),
        set(sys.modules),
        dict(environment()),
    )
    for _ in range(2):
        assert (
            "moving averages"
            in run(["analyze", "my_mixer*4", "--import", "examples/my_mixer.py"], tmp_path).text
        )
    assert (Path.cwd(), list(sys.path), dict(MECHANISMS), dict(MIXERS), dict(environment())) == (
        *before[:4],
        before[5],
    )
    assert sys.modules["my_mixer"] is own
    assert not [name for name in set(sys.modules) - before[4] if "my_mixer" in name]
    assert run(["analyze", "my_mixer*4"], tmp_path).code == 2


# The parser.

DOCUMENT = """# Title

Text with an indented line:
    $ separatrix belongs to the paragraph

    $ separatrix one 'a b' --out there/   # or two
    first

    second
      ...
    $ separatrix two
    ...

```console
$ separatrix three \\
    --more
third
```

```sh
$ separatrix not this one
```

    no command here
"""


def test_blocks_are_found_with_their_lines() -> None:
    blocks = parse(DOCUMENT, "a.md")
    one, two, three = (command for block in blocks for command in block)
    assert [len(block) for block in blocks] == [2, 1]
    assert (one.words, one.line, one.output) == (
        ["one", "a b", "--out", "there/"],
        6,
        ("first", "", "second", "  ..."),
    )
    assert (two.words, two.line, two.output) == (["two"], 11, (CUT,))
    assert (three.words, three.line, three.output) == (["three", "--more"], 15, ("third",))
    lines = DOCUMENT.split("\n")
    assert [lines[slice(*command.rows)] for command in (two, three)] == [["    ..."], ["third"]]
    assert three.place == "a.md:15: $ separatrix three --more"


@each(
    "text, said",
    [
        ("    output\n    $ separatrix presets", "a.md:1: output before the first command"),
        ("    $ ls", "only `separatrix` is run here"),
        ("    $ separatrix tasks --markdown > page.md", "without a shell, so `>`"),
        ("    $ separatrix analyze 'full", "No closing quotation"),
    ],
)
def test_blocks_that_cannot_be_run_are_refused(text: str, said: str) -> None:
    with pytest.raises(DocumentError, match=said):
        print([command.words for block in parse(text, "a.md") for command in block])


def test_commands_stand_behind_those_whose_files_they_read() -> None:
    text = """
    $ separatrix analyze full
    $ separatrix refute full --task eva
    $ separatrix construct eva:n=4 --out model/

    $ separatrix verify model/construction.json
    $ separatrix verify certificate.json
    $ separatrix verify other.json
    """
    found = [[command.words[-1] for command in group] for group in grouped(parse(text, "a.md"))]
    assert found == [
        ["full"],
        ["eva", "certificate.json"],
        ["model/", "model/construction.json"],
        ["other.json"],
    ]


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


@each(
    "old, printed, new",
    [
        ("a old c", "a b c", "a b c"),
        ("a ... d", "a b c d", "a ... d"),
        ("a old ... y z", "a old b c y new z", "a old ... y new z"),
        ("a ... old d", "a b new c d", "a b new c d"),  # nothing tells where the second part begins
        ("a old ... d", "a b c d", "a b c d"),
        ("old ...", "a b", "a b"),
        ("a b ...", "new b c d", "new b ..."),
        ("... c d", "a b c new", "... c new"),
        ("a ... b x ... d", "a e b y d", "a e b y d"),
        ("a ... c", "a c", "a c"),
    ],
)
def test_cuts_are_kept_where_the_text_beside_them_is_found(
    old: str, printed: str, new: str
) -> None:
    assert recut(old.split(), printed.split()) == new.split()
    assert matches(recut(old.split(), printed.split()), printed.split())


# What must be caught.

FAULT = (
    "error: unknown mechanism 'gnd' in --set 'gnd.heads=4'. Did you mean 'gdn'? `separatrix"
    " list mechanisms` lists all."
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
                "`separatrix analyze full --context 8`, `separatrix --help`, `--plot f.png`,"
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


def test_make_targets_are_read_from_code() -> None:
    assert make_targets(".PHONY: a\nX := 1\none two: three\n\tcommand: no\nfour-5:\n") == {
        "one",
        "two",
        "four-5",
    }
    text = (
        "Make sure that `make one` and\n`make two ARGS=--quick` make sense; make three.\n\n    make"
        " four   makes five\n"
    )
    assert sorted(targets(text)) == [(1, "one"), (2, "two"), (4, "four")]


def test_links_are_read_from_prose_and_followed() -> None:
    text = (
        "[a](README.md) ![b](no.png)\n`[c](no)` [d](https://x.org/y) [e](README.md#no)\n\n   "
        " [f](no)\n\n[g](docs/guide.md#commands)\n"
    )
    found = list(links(text))
    assert found == [
        (1, "README.md"),
        (1, "no.png"),
        (2, "README.md#no"),
        (6, "docs/guide.md#commands"),
    ]
    faults = [wrong_link(target, ROOT / "README.md") for _, target in found]
    assert faults == [
        None,
        "no.png: there is no no.png",
        "README.md#no: no heading of README.md has this anchor",
        None,
    ]


def test_spans_may_run_over_a_line_but_not_over_a_paragraph() -> None:
    assert list(spans("a `b\n  c` and ``d`e``\n\nsingle ` tick\n\n`f`")) == [
        (1, "b c"),
        (2, "d`e"),
        (6, "f"),
    ]


def test_outputs_are_written_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.md"
    before = (
        "Text\n\n    $ separatrix analyze full --set gnd.heads=4\n    old\n\n    $ separatrix"
        " list theorems I\n\nMore\n"
    )
    file.write_text(before)
    main(["--write", str(file)])
    assert file.read_text() == before.replace("    old", f"    {FAULT}")
    assert (
        capsys.readouterr().out
        == f"{file}:3: $ separatrix analyze full --set gnd.heads=4: written anew\n"
    )
    main(["--write", str(file)])
    assert capsys.readouterr().out == f"{file}: nothing to write\n"


def test_a_cut_that_is_not_found_again_is_told() -> None:
    text, news = written(
        "    $ separatrix analyze full --set gnd.heads=4\n    old\n    ...", "a.md"
    )
    assert text == f"    $ separatrix analyze full --set gnd.heads=4\n    {FAULT}"
    assert news == [
        "a.md:1: $ separatrix analyze full --set gnd.heads=4: written anew, whole: the place of a"
        " cut was not found"
    ]

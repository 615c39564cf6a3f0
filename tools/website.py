"""The site: pages gathered from documents, docstrings and data, none over 20 kB of Markdown,
built by Zensical (or mkdocs-material), and every link of it looked up. `make site`; no request
leaves what it writes.

    .venv/bin/python tools/explorer.py; .venv/bin/python tools/website.py [--out build/site]
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import re
import shutil
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from html.parser import HTMLParser
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

import separatrix
from separatrix.cli.report import constructions, mechanisms, tasks
from separatrix.cli.report import theorems as statements
from separatrix.cli.report.html import render_html
from separatrix.cli.report.notation import formula, theorem_name
from separatrix.cli.report.view import View, view
from separatrix.constructions import CONSTRUCTIONS
from separatrix.core.errors import SeparatrixError
from separatrix.core.evidence.bundles import from_bundle, read_json
from separatrix.stacks.architecture import MECHANISMS
from separatrix.tasks import AUDITED, PROBES, Thought, parse_any_task
from separatrix.tasks.measured import best_rule, level, measured, rules, stated

ROOT = Path(__file__).resolve().parent.parent
KATEX = ROOT / "build" / "downloads" / "katex-0.19.1" / "package"
EXPLORER = ROOT / "build" / "explore"
EVIDENCE = ROOT / "report" / "evidence.json"
LESSON = "docs/lesson.py"
WIDEST = 100
"""Columns of printed prose that was broken; what is longer was not."""
LARGEST = 20_000
"""Bytes of a page, as Markdown."""
BUILDERS = ("zensical", "mkdocs")
"""What can build it; the second where mkdocs-material is installed, which `make site` does not."""
SPLIT = {"theory": 3, "analyze": 3, "benchmarks": 2, "experiments": 2}
"""Document -> down to which level of headings it becomes pages of its own."""
RENAMED = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
}
MADE = {
    "tasks": ([*tasks.every(), Thought.name], tasks.describe),
    "mechanisms": (MECHANISMS, mechanisms.describe),
    "constructions": (CONSTRUCTIONS, constructions.describe),
}
"""Folder of pages that are made from what the code says: their names, and what is said of one."""
_HEADING = re.compile(r"(#{1,6}) +(.+?) *#*$")
_LINK = re.compile(
    r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^()\s]+(?:\([^()\s]*\)[^()\s]*)*)\)"
)
_ITEM = re.compile(r"(?:[-*]|\d+\.) ")
_NAMED = re.compile(r"(?<!\[)`(separatrix [^`]+)`|(?<!\[)theory\.md, section (\d+)")
"""A command, or a section of the theory: where the site has a page of it, a link."""
_COLUMNS = re.compile(r"^ |\S {3,}\S.* {3,}\S")
_UNIT = re.compile(r"(?<=\d) (?=[kMG] \|)|(?<=\| >=) (?=\d)")
"""Blanks of a table's cell at which it is not broken."""
_KEY = re.compile(r"\(`([^`]+)`\)")


class Wrong(Exception):
    """What is wrong with the site, a line each."""


@dataclass
class Page:
    """A page to be written: the document it is from, and its lines with headings and links as they
    stand there.
    """

    path: str
    title: str
    source: str
    lines: list[str] = field(default_factory=list)


def code(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Lines, and whether each is of a block of code."""
    fence = ""
    for line in lines:
        mark = re.match(r" *(`{3,}|~{3,})", line)
        inside = bool(fence or mark or line.startswith("    "))
        if mark and not fence:
            fence = mark[1]
        elif mark and line.strip() == fence:
            fence = ""
        yield line, inside


def listed(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """The same with a blank line before each list that follows a paragraph, which GitHub does not
    need; printed blocks without columns are told apart from those with some, as they may be broken.
    """
    before = ""
    lines = list(lines)
    for place, (line, inside) in enumerate(code(lines)):
        if line == "```text":
            line = f"``` {{.text .{'prose' if prose(lines[place + 1 :]) else 'columns'}}}"
        begins = not inside and _ITEM.match(line)
        if begins and before and not _ITEM.match(before) and not before.startswith(" "):
            yield "", False
        yield line, inside
        before = line


def joined(lines: Iterable[str]) -> list[str]:
    """Broken prose in lines as long as they like: a line goes on in the next where that one's first
    word had no room in it.
    """
    done: list[str] = []
    before = ""
    for line in lines:
        full = len(before) <= WIDEST < len(before) + 9 + len(line.partition(" ")[0])
        if full and "   " not in line and re.match(r"(?!\w+: )[^ -]", line):
            done[-1] += f" {line}"
        else:
            done.append(line)
        before = line
    return done


def escaped(text: str) -> str:
    """Printed text as Markdown that shows it as it stands; between backquotes it is code."""
    return re.sub(r"(`[^`]+`)|[\\*_\[<&$|#]", lambda m: m[1] or f"&#{ord(m[0])};", text)


def printed(text: str) -> Iterator[str]:
    """What a command says of something, as Markdown: columns and formulas are a block of code,
    names with what they mean and lines that are all there is are lists, all else paragraphs.
    """
    blocks = [block.splitlines() for block in text.strip("\n").split("\n\n")]
    for columns, own in groupby(blocks, lambda lines: any(map(_COLUMNS.search, lines))):
        if columns:
            whole = "\n\n".join("\n".join(lines) for lines in own)
            yield from ("", "```text", *whole.splitlines(), "```")
            continue
        for lines in own:
            rows = [line.partition("   ") for line in joined(lines)]
            items = [
                f"`{name}` {escaped(rest.strip())}".strip()
                if rest or name.startswith("separatrix ")
                else escaped(name)
                for name, _, rest in rows
            ]
            if len(items) > 1 and (len(blocks) == 1 or all(rest for *_, rest in rows)):
                yield from ("", *(f"- {item}" for item in items))
            else:
                yield from (line for item in items for line in ("", item))


def prose(lines: Sequence[str]) -> bool:
    """Whether a printed block that begins here has no columns, which a broken line would lose."""
    block = lines[: lines.index("```")]
    return not any(re.search(r"\S {3}|^ {6}", line) for line in block)


def divided(source: str, text: str, level: int) -> list[Page]:
    """The pages of a document: one for each heading down to that level, its own first. Level 1 is
    the document as one page; of headings of level 3 those of theorems have a page, where some do,
    and what follows without one stays in its chapter.
    """
    stem = Path(RENAMED.get(source, source)).stem
    first = f"{stem}/index.md" if level > 1 else str(Path(RENAMED.get(source, source)))
    pages = [Page(first.removeprefix("docs/"), "", source)]
    page = chapter = pages[0]
    keyed = bool(re.search(r"^### .*\(`", text, re.MULTILINE))
    for line, inside in code(text.splitlines()):
        heading = None if inside else _HEADING.match(line)
        depth = len(heading[1]) if heading else 0
        if heading and 1 < depth <= level and (depth == 2 or not keyed or _KEY.search(line)):
            page = Page(f"{stem}/{named(heading[2], pages)}.md", plain(heading[2]), source)
            pages.append(page)
            chapter = page if depth == 2 else chapter
        elif heading and 1 < depth <= level:
            page = chapter
        elif heading and not page.title:
            page.title = plain(heading[2])
        page.lines.append(line)
    return pages


def parted(source: str, text: str, most: int = LARGEST // 2) -> list[Page]:
    """The pages of a document of one long list, in its order, each with the heading over it."""
    stem = Path(RENAMED[source]).stem
    pages = [Page(f"{stem}/index.md", "", source)]
    size, headings = 0, list[str]()
    for line in text.splitlines():
        heading = _HEADING.match(line)
        size += len(line.encode()) + 1
        if heading:
            headings.append(line)
            pages[0].title = pages[0].title or heading[2]
        elif size > most and line.startswith("- "):
            title = f"{pages[0].title}, part {len(pages) + 1}"
            pages.append(Page(f"{stem}/{len(pages) + 1}.md", title, source))
            over = headings[-1].lstrip("#").strip()
            pages[-1].lines = [f"# {title}: {over}", ""]
            size = len(line.encode()) + 1
        pages[-1].lines.append(line)
    return pages


def slug(title: str) -> str:
    """GitHub's anchor of a heading, by which documents link to each other."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
    return re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")


def plain(title: str) -> str:
    """A heading as a menu shows it: without the keys of theorems, and with what stands before the
    colon where a name does.
    """
    short = _KEY.sub("", title).strip()
    name, colon, _ = short.partition(": ")
    return name if colon and " " not in name else short.replace("$", "")


def named(title: str, pages: list[Page]) -> str:
    """A file's name for a heading: the key of a theorem, the name before the colon, else words."""
    key = _KEY.search(title)
    name = key[1].replace("'", "-prime") if key else plain(title)
    words = slug(name)[:48].strip("-") or "page"
    taken = {Path(page.path).stem for page in pages}
    return next(w for w in (words, *(f"{words}-{i}" for i in range(2, 99))) if w not in taken)


def up_from(page: Page) -> str:
    """The site's root, as a page there names it."""
    return "../" * page.path.count("/")


class Site:
    """Pages, and where each heading of each document went."""

    def __init__(self) -> None:
        self.pages: list[Page] = []
        self.places: dict[tuple[str, str], str] = {}
        self.theorems: dict[str, Page] = {}
        self.named = {"separatrix explore": "explore/index.html"}
        self.report = ""

    def add(self, pages: list[Page]) -> None:
        """Pages of one document; headings get the anchors that they have there."""
        seen: dict[str, int] = {}
        self.places.setdefault((pages[0].source, ""), pages[0].path)
        for page in pages:
            drop = next(
                (
                    len(m[1]) - 1
                    for line, c in code(page.lines)
                    if not c and (m := _HEADING.match(line))
                ),
                0,
            )
            done: list[str] = []
            for line, inside in code(page.lines):
                heading = None if inside else _HEADING.match(line)
                if heading:
                    base = slug(heading[2])
                    seen[base] = seen.get(base, -1) + 1
                    anchor = f"{base}-{seen[base]}" if seen[base] else base
                    self.places[page.source, anchor] = f"{page.path}#{anchor}"
                    section = re.match(r"## (\d+)\. ", f"{heading[1]} {heading[2]}")
                    if section and page.source == "docs/theory.md":
                        self.named[section[1]] = page.path
                    line = f"{heading[1][drop:] or '#'} {heading[2]} {{#{anchor}}}"
                done.append(line)
            page.lines = done
        self.pages += pages

    def text(self, page: Page) -> str:
        """A page with its links pointing into the site; what is no part of it is no link."""

        def target(match: re.Match[str]) -> str:
            address = match["target"]
            if re.match(r"[a-z]+:", address):
                return match[0]
            up = up_from(page)
            if address.startswith("/"):  # from the site's root: what is made here
                return f"{match['image']}[{match['text']}]({up}{address[1:]})"
            name, _, anchor = address.partition("#")
            folder = Path(page.source).parent
            file = (folder / name).as_posix() if name else page.source
            file = str(Path(ROOT / file).resolve().relative_to(ROOT))
            if file.startswith(("docs/images/", "docs/explore/")) or file.endswith(".ipynb"):
                found: str | None = file.removeprefix("docs/")
            else:
                found = self.places.get((file, anchor)) or self.places.get((file, ""))
            if found is None:
                return match["text"]
            said = match["text"]
            if said in (address, file):
                said = next((one.title for one in self.pages if one.path == found), said)
            shown = f"{match['image']}[{said}]({up}{found})"
            return f"[{shown}]({up}{found})" if match["image"] else shown

        def named(match: re.Match[str]) -> str:
            found = self.named.get(match[1] or match[2], page.path)
            return match[0] if found == page.path else f"[{match[0]}]({up_from(page)}{found})"

        lines = [
            line if inside else _UNIT.sub("&nbsp;", _NAMED.sub(named, _LINK.sub(target, line)))
            for line, inside in listed(page.lines)
        ]
        return "\n".join(lines) + "\n"


def explained(parts: Iterable[tuple[str, str]]) -> list[str]:
    """(heading, text) pairs as they are printed, the first as the page's own."""
    (title, first), *others = parts
    lines = [f"# {title}", *printed(first)]
    for heading, text in others:
        lines += ["", f"## {heading[:1].upper()}{heading[1:]}", *printed(text)]
    return lines


def theorems(site: Site) -> None:
    """What the software applies, in its own words: behind the section of theory.md that derives it,
    where one does, else as a page of its own.
    """
    sections = {
        key: page
        for page in site.pages
        if page.source == "docs/theory.md"
        for line in page.lines[:1]
        for key in _KEY.findall(line)
    }
    rows = [
        "# Theorems, statements and counts as the software applies them",
        "",
        "| key | says | source |",
        "|---|---|---|",
    ]
    for row in statements.rows():
        key = row["key"]
        if key == "none":
            continue
        told = statements.describe(key)
        page = sections.get(key)
        if page is not None:
            own = explained(told)[1:]
            first = page.lines[0].count("(`") == 1
            page.lines += [
                "",
                f"## As the software applies {'it' if first else key}",
                "",
                f"`separatrix list theorems {key}`",
                "",
                *(f"#{line}" if line.startswith("## ") else line for line in own),
            ]
        else:
            page = Page(
                f"theory/{slug(key.replace(':', '-'))}.md", key, f"theorems/{key}", explained(told)
            )
            site.add([page])
        cells = (cell.replace("|", "\\|") for cell in (row["title"], row["source"]))
        site.theorems[key] = page
        site.named[f"separatrix list theorems {key}"] = page.path
        rows.append(f"| [`{key}`](/{page.path}) | {' | '.join(cells)} |")
    site.pages.append(Page("theory/all.md", "All, by key", "docs/theory.md", []))
    site.pages[-1].lines = rows


def made(site: Site) -> None:
    """A page for each task, mechanism and construction, to which the table of all leads."""
    for folder, (names, describe) in MADE.items():
        table = next(page for page in site.pages if page.path == f"{folder}/index.md").lines
        for name in names:
            # index.md is the folder's own page
            path = f"{folder}/{name if name != 'index' else 'index-2'}.md"
            tables = ["", "## Audit", "", *audit(name)] if name in tasks.every() else []
            told = [*explained(describe(name)), *(tables if folder == "tasks" else [])]
            site.add([Page(path, name, f"{folder}/{name}", told)])
            site.named[f"separatrix list {folder} {name}"] = path
            row = re.compile(rf"\| {re.escape(name)} \|")
            table[:] = [row.sub(f"| [{name}](/{path}) |", line, count=1) for line in table]


def audit(name: str) -> list[str]:
    """The audit's tables: every probe at the first sizes, the best one at every size and shift."""
    texts = list(measured(name))
    first = texts[:AUDITED]
    lines = [
        f"| accuracy of level | {' | '.join(text.partition(':')[2] for text in first)} |",
        f"|---|{'---|' * len(first)}",
    ]
    for probe in (*PROBES, *tasks.every()[name].shortcuts):
        cells = (_reached(text, probe) if probe in rules(text) else "-" for text in first)
        lines.append(f"| {probe} | {' | '.join(cells)} |")
    lines += ["", "| size | best rule | accuracy of level | level of all |", "|---|---|---|---|"]
    lines += [_best(text) for text in texts]
    return lines


def _best(text: str) -> str:
    """The rule that is right most often, its accuracy and level, and the largest of all levels."""
    best, most = best_rule(text), level(parse_any_task(text))
    cells = "none tried | too large | -"
    if best is not None:
        end = f"{best.accuracy:.3f} | -"
        cells = f"{best.name} | {end if most is None else _reached(text, best.name, most)}"
    return f"| `{text.partition(':')[2]}` | {cells} |"


def _reached(text: str, probe: str, *more: Fraction) -> str:
    """What a probe reached, of what it may."""
    may = [stated(parse_any_task(text), probe), *more]
    return f"{rules(text)[probe]:.3f} of {' | '.join(f'{float(each or 1):.3f}' for each in may)}"


def references(site: Site) -> dict[str, str]:
    """Where the report finds what it names: "theorems/I" -> "../theory/i.html"."""
    found = {f"theorems/{key}": page.path for key, page in site.theorems.items()}
    found["site"] = "index.md"
    for page in site.pages:
        folder, _, name = page.path.removesuffix(".md").partition("/")
        if folder in MADE and name != "index":
            found[f"{folder}/{'index' if name == 'index-2' else name}"] = page.path
        if "*hybrid by layers*" in "\n".join(page.lines):
            found["mechanisms/hybrid"] = page.path
    return {name: f"../{path.removesuffix('.md')}.html" for name, path in found.items()}


_UNTOLD = re.compile(r"(<(head|svg|script|a|code)\b.*?</\2>|<[^>]*>)", re.DOTALL)
"""Where no name becomes a link: tags, and what stands in some of them."""


def linked(page: str, seen: View, links: Mapping[str, str]) -> str:
    """The report with a way back, and a link wherever it names what the site explains."""
    for kind, own in (("tasks", seen.columns), ("mechanisms", seen.rows)):
        for one in own:
            title, target = escape(formula(one["title"])), links.get(f"{kind}/{one['key']}")
            there = f'<b><a href="{target}">{title}</a></b><span>'
            page = page.replace(f"<b>{title}</b><span>", there, 1) if target else page
    called = {"theorems": theorem_name, "constructions": "weights of {}".format}
    parted = ((name.partition("/"), target) for name, target in links.items())
    names = {escape(called[kind](key)): to for (kind, _, key), to in parted if kind in called}
    every = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    found = re.compile(rf"(?<!\w)(?:{every})(?!\w|&#x27;)")
    # a text, what stands as it is, and the name of its tag
    pieces = _UNTOLD.split(page)
    for place in range(0, len(pieces), 3):
        pieces[place] = found.sub(lambda m: f'<a href="{names[m[0]]}">{m[0]}</a>', pieces[place])
    whole = "".join(piece for place, piece in enumerate(pieces) if place % 3 < 2)
    scheme = (ROOT / "docs" / "site" / "scheme.js").read_text(encoding="utf-8")
    back = f'<script>\n{scheme}</script><nav><a href="{links["site"]}">Site</a></nav>'
    return whole.replace("<header>", f"<header>{back}", 1)


def report(site: Site, evidence: Path | None) -> None:
    """The report's page; of a bundle, the report itself with links into the site, and links back
    from the pages of theorems to the cells that they decide. A bundle that cannot be read, as one
    of another version, is no part of the site, and its page says so.
    """
    made = "`make reproduce ARGS=--quick` writes it in minutes, `make site` then shows it here."
    lines = ["# The report", "", "The table of results, with the evidence behind every cell.", ""]
    site.add([Page("report.md", "The report", "report", lines)])
    page = site.pages[-1].lines
    if evidence is None or not evidence.exists():
        page.append(f"None was at hand when this copy of the site was built: {made}")
        return
    try:
        body, _ = from_bundle(read_json(evidence))
        seen = view(body)
        site.report = linked(render_html(body), seen, references(site))
    except SeparatrixError as error:
        said = f"The one at hand could not be shown: {error}."
        print(f"warning: {evidence}: {error}; the site is built without it", file=sys.stderr)
        page.append(f"{said} {made}")
        return
    page.append(f"[Open it](/report/index.html). {made}")
    for key, theorem in site.theorems.items():
        cells = (
            f"[{cell.row['title']} on {cell.column['title']}](/report/index.html#cell-{cell.key})"
            for cell in seen.cells.values()
            if any(verdict.theorem == key for verdict in cell.verdicts)
        )
        if told := ", ".join(cells):
            theorem.lines += ["", f"In the report: {told}."]


def gathered(lesson: str = "# Lesson\n", evidence: Path | None = None) -> Site:
    """Every page, its links not yet turned."""
    site = Site()
    documents = [
        *RENAMED,
        *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
    ]
    for source in documents:
        text = (ROOT / source).read_text(encoding="utf-8")
        if source == "CHANGELOG.md":
            pages = parted(source, text)
        else:
            pages = divided(source, text, SPLIT.get(Path(source).stem, 1))
        if Path(source).stem in MADE and "/tutorials/" not in source:
            pages[0].path = f"{Path(source).stem}/index.md"
        if "/tutorials/" in source:
            pages[0].path = f"tutorials/{Path(source).name}"
        site.add(pages)
    site.add([Page("lesson.md", "A lesson in five steps", LESSON, lesson.splitlines())])
    for path in sorted((ROOT / "examples").glob("*.py")):
        lines = [f"# examples/{path.name}", "", "```python", *path.read_text("utf-8").splitlines()]
        page = f"examples/{path.stem}.md"
        site.add([Page(page, lines[0][2:], f"examples/{path.name}", [*lines, "```"])])
    theorems(site)
    made(site)
    python(site)
    report(site, evidence)
    for page in list(site.pages):
        own = [
            one
            for one in site.pages
            if one is not page and Path(one.path).parent == Path(page.path).parent
        ]
        if page.path.endswith("/index.md") and not any(
            re.search(rf"\((/{folder})?{Path(one.path).name}", line)
            for folder in (f"{Path(page.path).parent}/",)
            for one in own[:1]
            for line in page.lines
        ):
            page.lines += ["", *(f"- [{one.title}](/{one.path})" for one in own)]
    return site


def python(site: Site) -> None:
    """A page for each public name, by mkdocstrings."""
    names = [name for name in separatrix.__all__ if separatrix._HOMES.get(name) and name != "tasks"]
    lines = ["# Python", "", "`import separatrix as sx`", ""]
    lines += [f"- [sx.{name}](/python/{name}.md)" for name in names]
    site.add([Page("python/index.md", "Python", "python", lines)])
    for name in names:
        docs = [f"::: {separatrix._HOMES[name]}.{name}"]
        site.add([Page(f"python/{name}.md", name, f"python/{name}", docs)])


def navigation(entries: Any, site: Site) -> Any:
    """The navigation with `@name` replaced by the pages of that folder."""
    if isinstance(entries, str) and entries.startswith("@"):
        inside = [page for page in site.pages if page.path.startswith(f"{entries[1:]}/")]
        return [
            page.path if page.path.endswith("/index.md") else {page.title: page.path}
            for page in inside
        ]
    if isinstance(entries, list):
        return [navigation(one, site) for one in entries]
    if isinstance(entries, dict):
        return {name: navigation(one, site) for name, one in entries.items()}
    return entries


def cells(script: str) -> list[tuple[bool, bool, str]]:
    """The cells of a script in percent format: whether each is text, whether a page folds its code
    under its first line, and what it holds.
    """
    found = []
    for cell in re.split(r"^# %%", script, flags=re.MULTILINE)[1:]:
        head, _, body = cell.partition("\n")
        text = "markdown" in head
        lines = (re.sub(r"^# ?", "", line) if text else line for line in body.strip().splitlines())
        found.append((text, "hide-input" in head, "\n".join(lines)))
    return found


def run(script: str) -> str:
    """A lesson as a page: under each block what it prints, and the value of its last line, as HTML
    where it draws itself.
    """
    page: list[str] = []
    names: dict[str, Any] = {"__name__": "lesson"}
    for text, hidden, body in cells(script):
        if text:
            page.append(body)
            continue
        tree = ast.parse(body)
        last = end if isinstance(end := tree.body[-1], ast.Expr) else None
        tree.body = tree.body[:-1] if last else tree.body
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, "lesson", "exec"), names)
            value = last and eval(compile(ast.Expression(last.value), "lesson", "eval"), names)
        block = f"```python\n{body}\n```"
        if hidden:
            said = body.partition("\n")[0].lstrip("# ")
            block = f'<details markdown="1">\n<summary>{said}</summary>\n\n{block}\n\n</details>'
        page.append(block)
        if printed.getvalue():
            page.append(f"```text\n{printed.getvalue()}```")
        if value is not None:
            page.append(value._repr_html_())
    return "\n\n".join(page) + "\n"


def alone(text: str) -> str:
    """Text that is read away from the site: pictures are inside it (as `<img>`: JupyterLab takes no
    SVG as an attachment), and links name the document.
    """

    def put(match: re.Match[str]) -> str:
        target, said = match["target"], match["text"]
        if re.match(r"[a-z]+:", target):
            return match[0]
        if match["image"]:
            data = b64encode((ROOT / "docs" / target).read_bytes()).decode()
            return f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(said)}">'
        return f"{said} (docs/{target})" if target.endswith(".md") else said

    return _LINK.sub(put, text)


def notebook(script: str) -> str:
    """The same as a notebook that has not been run, whole in one file."""
    return json.dumps(
        {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {"language_info": {"name": "python"}},
            "cells": [
                {"id": f"cell-{number}", "source": alone(body) if text else body}
                | {"metadata": {"jupyter": {"source_hidden": True}} if hidden else {}}
                | (
                    {"cell_type": "markdown"}
                    if text
                    else {"cell_type": "code", "execution_count": None, "outputs": []}
                )
                for number, (text, hidden, body) in enumerate(cells(script))
            ],
        },
        indent=1,
    )


class Anchors(HTMLParser):
    """What a built page links to, what it loads, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.names |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") not in ("canonical", "prev", "next", "edit"):
            self.loads.append(given.get("href", ""))
        elif "src" in given:
            self.loads.append(given["src"])


def checked(public: Path) -> Iterator[str]:
    """Links of built pages that name no file or no anchor, and what they load from elsewhere."""
    parsed = {
        path: Anchors(path.read_text(encoding="utf-8")) for path in sorted(public.rglob("*.html"))
    }
    for path, page in parsed.items():
        for address in (*page.links, *page.loads):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in page.loads and parts.scheme != "data":
                    yield f"{path.relative_to(public)} loads {address}"
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            file = file / "index.html" if file.is_dir() else file
            if path.name == "404.html":
                continue
            if not file.exists():
                yield f"{path.relative_to(public)}: {address}: no such file"
            elif (
                parts.fragment
                and file in parsed
                and unquote(parts.fragment) not in parsed[file].names | {"__search"}
            ):
                yield f"{path.relative_to(public)}: {address}: no such heading"


def katex(folder: Path, out: Path) -> bool:
    """KaTeX beside the pages, where it was fetched (tools/explorer.py)."""
    if not folder.exists():
        return False
    (out / "fonts").mkdir(parents=True)
    for name in ("katex.min.js", "katex.min.css"):
        shutil.copy(folder / "dist" / name, out)
    for font in (folder / "dist" / "fonts").glob("*.woff2"):
        shutil.copy(font, out / "fonts")
    return True


def build(out: Path, katex_from: Path, explorer: Path, evidence: Path, builder: str) -> str:
    """Writes the pages and builds them. Raises Wrong."""
    pages = out / "pages"
    shutil.rmtree(out, ignore_errors=True)
    pages.mkdir(parents=True)
    shutil.copytree(ROOT / "docs" / "images", pages / "images")
    for file in (ROOT / "docs" / "site").glob("site.*"):
        shutil.copy(file, pages)
    shutil.copytree(explorer, pages / "explore")
    formulas = katex(katex_from, pages / "katex")
    script = (ROOT / LESSON).read_text(encoding="utf-8")
    (pages / "lesson.ipynb").write_text(notebook(script), encoding="utf-8")
    lesson = run(script)
    for number, data in enumerate(re.findall(r"data:image/svg\+xml;base64,([^\"]+)", lesson), 1):
        picture = f"images/lesson-{number}.svg"
        (pages / picture).write_bytes(b64decode(data))
        lesson = lesson.replace(f"data:image/svg+xml;base64,{data}", picture)
    site = gathered(lesson, evidence)
    if site.report:
        (pages / "report").mkdir()
        (pages / "report" / "index.html").write_text(site.report, encoding="utf-8")
    start = pages / "explore" / "start.json"
    links = {key: f"../{page.path.removesuffix('.md')}.html" for key, page in site.theorems.items()}
    start.write_text(json.dumps({**read_json(start), "links": links}), encoding="utf-8")
    for page in site.pages:
        path = pages / page.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(site.text(page), encoding="utf-8")
    large = [
        f"{page.path}: {size:,} bytes"
        for page in site.pages
        if (size := (pages / page.path).stat().st_size) > LARGEST
    ]
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    settings["nav"] = navigation(settings["nav"], site)
    if not formulas:
        for key in ("extra_css", "extra_javascript"):
            settings[key] = [name for name in settings[key] if not name.startswith("katex/")]
        settings["copyright"] = "Formulas stand as TeX: KaTeX could not be fetched for this copy."
    (out / "mkdocs.yml").write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    words = [builder, "build", "--strict", "--clean", "-f", str(out / "mkdocs.yml")]
    done = subprocess.run([sys.executable, "-m", *words], check=False)
    if done.returncode:
        raise Wrong(f"{builder} found what is wrong; its own words are above")
    wrong = [*large, *checked(out / "public")]
    if wrong:
        raise Wrong("\n".join(wrong))
    files = [path for path in (out / "public").rglob("*") if path.is_file()]
    return json.dumps(
        {"pages": len(site.pages), "bytes": sum(path.stat().st_size for path in files)}
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds the site and looks up its links.")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site", help="made anew")
    parser.add_argument("--katex", type=Path, default=KATEX, help="a folder that holds KaTeX")
    parser.add_argument("--explorer", type=Path, default=EXPLORER, help="of tools/explorer.py")
    parser.add_argument("--evidence", type=Path, default=EVIDENCE, help="of `make reproduce`")
    parser.add_argument("--builder", choices=BUILDERS, default=BUILDERS[0])
    given = parser.parse_args()
    try:
        print(build(given.out, given.katex, given.explorer, given.evidence, given.builder))
    except Wrong as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The report: one HTML file that needs no network, from the body of a bundle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from separatrix.cards import CardFacts
from separatrix.checks.verify import Checked, Progress
from separatrix.checks.verify import verify_path as verified
from separatrix.cli.report import charts, evidence
from separatrix.cli.report.card import card_page
from separatrix.cli.report.notation import SIGNS, formula, label, number, theorem_name, where
from separatrix.cli.report.view import MARKS, SHORT, Cell, View, view
from separatrix.core.document import Document, Fold, Heading, Line, Part, Plot, Table
from separatrix.core.document.html import STATUSES
from separatrix.core.document.plot import Drawing, palette
from separatrix.core.evidence.bundles import bundle_envelope
from separatrix.core.evidence.canonical import package_version, sha256
from separatrix.core.evidence.folder import write_atomic
from separatrix.core.evidence.records import SOLVED, Certificate, Construction, Verdict

_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:;"
    " base-uri 'none'; form-action 'none'"
)
_PURPOSE = (
    "What each kind of attention provably cannot compute, what it provably can, and where training"
    " ends up. Every cell opens the evidence behind it."
)
_MEANINGS = {
    "SOLVABLE": "explicit weights do it",
    "FAILS": "no weights do it, at the n in the cell",
    "OPEN": "neither is known at this size",
}
_CHECK = {
    "■ proved": "a theorem on exact integers or in ball arithmetic, or explicit weights with"
    " margins enclosed for all inputs of the size; no floating-point number decides",
    "◆ witnessed": "a concrete model that goes wrong: the prompts, the cache they leave behind, and"
    " the answer; the checker runs the model again on them",
    "● measured": "trained accuracy on fresh inputs: every seed with its own 95 % interval over its"
    " test prompts; a low accuracy proves nothing by itself",
}


def render_html(bundle_body: Mapping[str, Any]) -> str:
    """The report of a bundle's body; equal bodies give equal text. Raises EvidenceError for one
    that is damaged or incomplete.
    """
    seen = view(bundle_body)
    parts = [
        f"<header><h1>{_text(seen.title)}</h1><p>{_PURPOSE}</p></header>",
        _section("table", "", _legend(), *_matrix(seen), *_columns(seen)),
        *(_panel(cell) for cell in seen.cells.values()),
    ]
    if seen.models:
        parts.append(_section("models", "Real models", _shown(*_models(seen.models))))
    settings = [(label(key), number(value)) for key, value in seen.settings.items()]
    rows = [*_CHECK.items(), *settings, ("records", number(len(seen.records)))]
    checked = _shown(
        Line("One command derives every claim again without the code that found it:"),
        Plot("the command", ["separatrix verify evidence.json"]),
        Table(rows, labels=True),
    )
    parts.append(_section("check", "How to check this", checked))
    foot = (
        f"<footer>Written by Separatrix {package_version()}. This file holds everything it shows"
        " and loads nothing.</footer>"
    )
    body = "\n".join(parts)
    page = "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<title>{escape(seen.title)}</title>\n<link rel="icon" href="data:,">',
            f"<style>\n{base_style()}{_asset('style.css')}</style>\n</head>\n<body>\n<main>\n{body}\n</main>",
            f"{foot}\n<script>\n{_asset('page.js')}</script>\n</body>\n</html>\n",
        ]
    )
    digest = bundle_envelope(dict(bundle_body))["sha256"]
    return f"{page}<!-- evidence {digest}, page {sha256(page)} -->\n"


def write_report(bundle_body: Mapping[str, Any], path: Path) -> None:
    """Writes the report to `path`, whole or not at all. Raises OutputError, or as `render_html`."""
    write_atomic(Path(path), render_html(bundle_body))


def verify_path(
    path: Path | str, *, progress: Progress | None = None, budget: float = 1.0
) -> list[Checked]:
    """Checks a file or a folder of evidence, as `separatrix.checks.verify.verify_path` does. A
    report.html beside a bundle is printed again and must be the same to the letter.
    """
    return verified(path, printer=render_html, progress=progress, budget=budget)


def base_style() -> str:
    """What the report and the explorer's page share of their looks."""
    return palette() + _asset("base.css")


def _asset(name: str) -> str:
    return files("separatrix.cli.report").joinpath(name).read_text(encoding="utf-8")


def _text(text: str) -> str:
    return escape(formula(text))


def _shown(*parts: Part) -> str:
    return Document(*parts).html(formula)


def _section(name: str, title: str, *inside: str) -> str:
    head = f"<h2>{title}</h2>\n" if title else ""
    return f'<section class="part" id="{name}">\n{head}{chr(10).join(inside)}\n</section>'


def _legend() -> str:
    faces = (
        f'<li><span class="swatch {STATUSES[status]}">{sign}</span><b>{status}</b>'
        f" {_MEANINGS[status]}"
        for status, sign in SIGNS.items()
    )
    marks = (f"<li>{there} {name}" for name, (there, _) in MARKS.items())
    return f'<ul class="legend">{"".join([*faces, *marks])}<li>hollow: not</ul>'


def _marks(cell: Cell) -> str:
    words = ", ".join(f"{'' if there else 'not '}{name}" for name, there in cell.marks.items())
    signs = " ".join(MARKS[name][0 if there else 1] for name, there in cell.marks.items())
    return f'<span class="marks" role="img" aria-label="({words})" title="{words}">{signs}</span>'


def _matrix(seen: View) -> Iterator[str]:
    """The table: in each cell the answer, the number that decides it, and what stands behind it."""
    yield '<table class="results">\n<thead><tr><td></td>'
    for column in seen.columns:
        title = _text(column["title"])
        yield f'<th scope="col"><b>{title}</b><span>{SHORT.get(column["key"], "")}</span></th>'
    yield "</tr></thead>\n<tbody>"
    for row in seen.rows:
        title = _text(row["title"])
        yield f'<tr><th scope="row"><b>{title}</b><span>{SHORT.get(row["key"], "")}</span></th>'
        for column in seen.columns:
            cell = seen.cells[row["key"], column["key"]]
            look = STATUSES[cell.status]
            paper = f"paper: {_text(cell.paper)}" if cell.paper else "paper: no entry"
            yield (
                f'<td><a class="cell {look}" href="#cell-{cell.key}"><span class="top">'
                f"{SIGNS[cell.status]} {cell.status}{_marks(cell)}</span>"
                f'<span class="figure">{_text(cell.number)}</span>'
                f'<span class="paper">{paper}</span></a></td>'
            )
        yield "</tr>"
    yield "</tbody>\n</table>"


def _columns(seen: View) -> Iterator[str]:
    """Under each column what training reached: over n, and at the largest n at which every stack
    was trained.
    """
    yield '<div class="columns">'
    for column in seen.columns:
        cells = [seen.cells[row["key"], column["key"]] for row in seen.rows]
        drawn = charts.accuracy_chart(
            {cell.row["title"]: cell.own for cell in cells},
            {cell.row["title"]: at for cell in cells if (at := _fails(cell))},
        )
        if drawn is None:
            continue
        said = f"{column['title']}, trained alike: {column['size_class']}."
        parts: list[Part] = [_figure(drawn, f"{said} Dashed: the n at which no weights do it.")]
        if (n := seen.shared[column["key"]]) is not None:
            rows = [(cell.row["title"], cell.trained_at(n)) for cell in cells]
            parts.append(evidence.trained_table(rows, n))
        yield f"<div>{_shown(*parts)}</div>"
    yield "</div>"
    yield _shown(
        Line(
            f"Solved: seeds right on at least {float(SOLVED):.0%} of fresh prompts. Highest: no"
            " weights answer more of random questions (Theorem A). Dotted: the same over n."
        )
    )


def _fails(cell: Cell) -> tuple[int, str] | None:
    """At which n no weights do it, and that in words."""
    shown = cell.failing
    return (shown.n, where(shown.n, shown.theorem)) if shown and shown.n else None


def _figure(drawn: Drawing, caption: str) -> Plot:
    return Plot(drawn.words, svg=drawn.svg, caption=caption)


def _panel(cell: Cell) -> str:
    """All evidence of a cell; shown while its address is open."""
    look = STATUSES[cell.status]
    title = f"{_text(cell.row['title'])} on {_text(cell.column['title'])}"
    paper = f" Paper: {_text(cell.paper)}." if cell.paper else ""
    return "\n".join(
        [
            f'<section class="panel {look}" id="cell-{cell.key}" tabindex="-1"'
            f' aria-label="{title}">',
            f'<a class="back" href="#table">back to the table</a><h2>{title}</h2>',
            f'<p class="chips"><b class="{look}">{SIGNS[cell.status]} {cell.status}</b>'
            f" <b>{_text(cell.number)}</b> {_marks(cell)}{paper}</p>",
            f'<p class="headline">{_text(cell.headline)}</p>',
            _shown(*_evidence(cell)),
            "</section>",
        ]
    )


def _evidence(cell: Cell) -> Iterator[Part]:
    column = cell.column
    if cell.story:
        yield Line(cell.story)
    yield Line(
        f"The stack is {cell.stack}: {column['size_class']}, as every stack of this column;"
        f" {column['training']}. {cell.training[:1].upper()}{cell.training[1:]}. {cell.reach}"
    )
    yield from _charts(cell)
    kinds: dict[str, Sequence[Verdict | Construction | Certificate]] = {
        "Theorems": cell.verdicts,
        "Constructions": cell.of(Construction),
        "Witnesses": cell.of(Certificate),
    }
    for kind, found in kinds.items():
        if found:
            yield Heading(kind)
            yield from (_record(one, cell, opened=one is found[0]) for one in found)
    if cell.measurements:
        yield Heading("Measurements")
        yield from evidence.measurement_parts(cell.measurements)


def _charts(cell: Cell) -> Iterator[Plot]:
    title, fails = cell.row["title"], _fails(cell)
    bites = {title: fails} if fails else {}
    drawn = charts.accuracy_chart({title: cell.own}, bites, intervals=True)
    if drawn is not None:
        said = (
            "Every seed with its own 95 % interval over its test prompts, a line through the"
            " medians; grey: the best constant guess. Dotted: no weights exceed it (Theorem A)."
            " Dashed upright: the n at which no weights do it."
        )
        yield _figure(drawn, f"Accuracy after training\n{said}")


def _record(record: Verdict | Construction | Certificate, cell: Cell, *, opened: bool) -> Fold:
    """What a record says in a line, and the rest behind it."""
    match record:
        case Verdict():
            named = theorem_name(record.theorem)
            said = f"{record.status} {f'{named}. ' if named else ''}{record.statement}"
            parts = evidence.verdict_parts(record)
        case Construction():
            said = f"{record.statement} (weights of {record.name})"
            parts = evidence.construction_parts(record)
        case Certificate():
            said, parts = evidence.FORMS.get(record.form, ""), evidence.certificate_parts(record)
    other = f" Another stack: {record.architecture}." if record.architecture != cell.stack else ""
    return Fold((f"{said}{other}",), parts, opened)


def _models(cards: Sequence[CardFacts]) -> Iterator[Part]:
    """What a context needs and what their states hold, and each one's card."""
    yield _figure(
        charts.states({facts.name: facts.architecture for facts in cards}),
        "Bits a context needs, bits each model keeps of it.\nThe context holds facts of one token;"
        " where it needs more than a model keeps, no weights recall every one of them.",
    )
    for facts in cards:
        yield from card_page(facts)

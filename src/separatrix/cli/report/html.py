"""The report: one HTML file that needs no network, from the body of a bundle."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from separatrix.cards.table.models import DEFAULT_MODELS
from separatrix.cli.report import charts, facts, notation, prompts
from separatrix.cli.report.side_by_side import side_by_side
from separatrix.cli.report.statuses import CSS, theorem_name, where
from separatrix.cli.report.view import MARKS, SHORT, Cell, View, task_size, view
from separatrix.core.document.plot import Drawing
from separatrix.core.errors import MissingExtraError
from separatrix.core.evidence.atomic import write_atomic
from separatrix.core.evidence.bundles import bundle_envelope, stamped
from separatrix.core.evidence.code import package_version
from separatrix.core.evidence.records import SOLVED


def require_libraries() -> Any:
    """jinja2, when everything a report needs is installed. Raises MissingExtraError if not."""
    try:
        import jinja2
    except ImportError:
        raise MissingExtraError.of("the HTML report", "report") from None
    return jinja2


def render_html(bundle_body: Mapping[str, Any]) -> str:
    """The report of a bundle's body. Equal bodies give equal text.

    Raises MissingExtraError without the extra 'report', EvidenceError for a bundle that is damaged
    or incomplete.
    """
    jinja2 = require_libraries()
    seen = view(bundle_body)
    drawn = {cell.key: _charts(cell) for cell in seen.cells.values()}
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("separatrix", "cli/report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {
        "maths": notation.maths,
        "enclosure": notation.enclosure,
        "bound": notation.bound,
        "number": notation.number,
        "label": notation.label,
        "theorem": theorem_name,
        "svg": _safe,
    }
    environment.globals |= {
        "css": CSS,
        "marks": MARKS,
        "short": SHORT,
        "align": prompts.align,
        "differences": prompts.differences,
        "task_size": task_size,
        "where": where,
        "accuracy_lines": charts.accuracy_lines,
        "alternative": {"accuracy": charts.accuracy_words, "bound": charts.bound_words},
        "solved_at": f"{float(SOLVED):.0%}",
        "proof_parts": facts.proof_parts,
        "certificate_facts": facts.certificate_facts,
        "budget_words": facts.budget_words,
        "form_sentence": facts.FORMS,
    }
    page = environment.get_template("template.html.j2").render(
        view=seen,
        sides=list(side_by_side(seen)),
        version=package_version(),
        command=command(seen),
        charts=drawn,
        style=_safe(_asset("style.css")),
        script=_safe(_asset("page.js")),
    )
    return stamped(page, bundle_envelope(dict(bundle_body))["sha256"])


def command(seen: View) -> str:
    """The command that makes the report again, as far as the bundle tells it."""
    settings = seen.settings
    words = ["separatrix reproduce"]
    words += ["--quick"] if settings.get("kind") == "quick" else []
    words += [f"--seed {settings['seed']}"] if settings.get("seed") else []
    usual = [source.preset for source in DEFAULT_MODELS]
    named = [] if seen.chosen == usual else seen.chosen
    return " ".join([*words, *(f"--config {shlex.quote(name)}" for name in named)])


def write_report(bundle_body: Mapping[str, Any], path: Path) -> None:
    """Writes the report to `path`, whole or not at all. Raises OutputError, or as `render_html`."""
    write_atomic(Path(path), render_html(bundle_body))


def _safe(text: str) -> Any:
    """Text made here (SVG, style, script), which the template must not escape."""
    from markupsafe import Markup

    return Markup(text)


def _asset(name: str) -> str:
    return files("separatrix.cli.report").joinpath(name).read_text(encoding="utf-8")


def _charts(cell: Cell) -> dict[str, Drawing]:
    solvable = cell.status == "SOLVABLE"
    drawn = {
        "bound": charts.bound_chart(cell.bound, bites=cell.bites) if cell.bound else None,
        "accuracy": charts.accuracy_chart(cell.measurements, bites=cell.bites, solvable=solvable),
    }
    return {kind: chart for kind, chart in drawn.items() if chart is not None}

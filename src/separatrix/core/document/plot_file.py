"""Drawings that commands write beside their tables: the look that they share, as HTML, SVG or
PNG.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

from separatrix.core.document.drawing import libraries, vega_javascript, vega_lite_version
from separatrix.core.errors import OutputError
from separatrix.core.evidence.atomic import write_atomic

SUFFIXES = (".html", ".svg", ".png")
INK, MUTED, LINE, SOLVES, FAILS, PAGE = (
    "#16202a",
    "#56626e",
    "#e2e5e9",
    "#0a62a0",
    "#bf4a0b",
    "#fdfdfc",
)
WIDTH = 620
HEIGHT = 380
_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"


def check_plot(path: Path) -> None:
    """Raises OutputError before any work is done: for a suffix that cannot be drawn, and a file
    that exists already.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise OutputError(
            f"--plot {path}: '{path.suffix or path.name}' cannot be drawn; name a file that ends in"
            f" {', '.join(SUFFIXES)}"
        )
    if path.is_dir():
        raise OutputError(f"--plot {path}: this is a folder; name a file in it")
    if path.exists():
        raise OutputError(f"--plot {path}: the file exists; remove it or choose another name")
    if not path.parent.is_dir():
        raise OutputError(f"--plot {path}: there is no folder {path.parent}; create it first")
    libraries()


def plot_spec(chart: Any, title: str, subtitle: list[str]) -> dict[str, Any]:
    """The Vega-Lite specification of an altair chart in the common look, under a title."""
    alt, _ = libraries()
    words = alt.TitleParams(
        [title],
        subtitle=subtitle,
        anchor="start",
        color=INK,
        subtitleColor=MUTED,
        fontSize=14,
        subtitleFontSize=12,
        font=_FONT,
        subtitleFont=_FONT,
        offset=14,
    )
    axis = {
        "gridColor": LINE,
        "domainColor": MUTED,
        "tickColor": MUTED,
        "labelColor": MUTED,
        "titleColor": MUTED,
    }
    sizes = {
        "labelFontSize": 11.5,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 10,
        "labelFont": _FONT,
        "titleFont": _FONT,
    }
    chart = chart.properties(width=WIDTH, height=HEIGHT, title=words)
    chart = (
        chart.configure(background=PAGE, font=_FONT, padding=14)
        .configure_axis(**axis, **sizes)
        .configure_view(stroke=None)
    )
    return chart.to_dict()


def write_spec(spec: dict[str, Any], title: str, path: Path) -> None:
    """Writes a drawing to a file, whole or not at all. Raises OutputError and MissingExtraError as
    `check_plot` does.
    """
    check_plot(path)
    _, vl_convert = libraries()
    kind = path.suffix.lower()
    text = json.dumps(spec, sort_keys=True)
    if kind == ".png":
        write_atomic(
            path, vl_convert.vegalite_to_png(text, vl_version=vega_lite_version(), scale=2)
        )
        return
    svg = vl_convert.vegalite_to_svg(text, vl_version=vega_lite_version())
    write_atomic(path, svg if kind == ".svg" else _page(title, text, svg))


def _page(title: str, spec: str, svg: str) -> str:
    """One HTML file that needs no network: the drawing, made interactive where scripts run."""
    safe = spec.replace("<", "\\u003c")
    style = (
        f"body{{margin:24px;background:{PAGE};color:{INK};font-family:{_FONT}}}"
        "svg{max-width:100%;height:auto}"
    )
    draw = f'vegaEmbed("#front", {safe}, {{actions: false, renderer: "svg"}});'
    lines = [
        "<!doctype html>",
        f'<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>',
        f"<style>{style}</style>",
        f'<div id="front">{svg}</div>',
        f"<script>{vega_javascript()}</script>",
        f"<script>{draw}</script>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"

"""Vega-Lite to SVG, the scripts that make charts interactive, and the look all charts share.

Colours are CSS variables of the page, so one drawing serves light, dark and print.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from separatrix.core.errors import MissingExtraError

HEIGHT = 230
INK = "var(--ink)"
MUTED = "var(--muted)"
LINE = "var(--line)"
LINE_STRONG = "var(--line-strong)"
SOLVES = "var(--solves)"
FAILS = "var(--fails)"
MEASURED = "var(--ink)"
_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"


@dataclass(frozen=True)
class Chart:
    """A Vega-Lite specification and the same chart drawn as SVG for readers without JavaScript."""

    spec: dict[str, Any]
    svg: str


def libraries() -> tuple[Any, Any]:
    """altair and vl_convert. Raises MissingExtraError when the extra is not installed."""
    try:
        import altair
        import vl_convert
    except ImportError:
        raise MissingExtraError.of("the HTML report", "report") from None
    return altair, vl_convert


@cache
def vega_lite_version() -> str:
    """The newest Vega-Lite that vl-convert carries, up to the version altair writes."""
    altair, vl_convert = libraries()
    wanted = tuple(int(x) for x in re.findall(r"\d+", altair.SCHEMA_VERSION)[:2])
    versions = sorted(
        tuple(int(x) for x in text.split(".")) for text in vl_convert.get_vegalite_versions()
    )
    fitting = [v for v in versions if v[0] == wanted[0] and v <= wanted] or versions
    return ".".join(str(x) for x in fitting[-1])


@cache
def vega_javascript() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that needs no network, safe inside a script
    element.
    """
    _, vl_convert = libraries()
    return vl_convert.javascript_bundle(vl_version=vega_lite_version()).replace(
        "</script", "<\\/script"
    )


def draw(chart: Any, *, name: str, width: int) -> Chart:
    """An altair chart in the common look, with its SVG; `name` keeps element ids apart on one
    page.
    """
    axis = {
        "gridColor": LINE,
        "domainColor": LINE_STRONG,
        "tickColor": LINE_STRONG,
        "labelColor": MUTED,
        "titleColor": MUTED,
        "labelFontSize": 11.5,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelFont": _FONT,
        "titleFont": _FONT,
    }
    chart = chart.properties(width=width, height=HEIGHT).resolve_scale(
        color="independent", shape="independent"
    )
    chart = (
        chart.configure(background="transparent", font=_FONT, padding=4)
        .configure_axis(**axis)
        .configure_view(stroke=None)
    )
    spec = chart.to_dict()
    _, vl_convert = libraries()
    return Chart(
        spec,
        _own_ids(
            vl_convert.vegalite_to_svg(
                json.dumps(spec, sort_keys=True), vl_version=vega_lite_version()
            ),
            name,
        ),
    )


def _own_ids(svg: str, name: str) -> str:
    """The SVG with ids of its own (vl-convert counts them on from chart to chart) and
    coordinates to two decimals.
    """
    seen = dict.fromkeys(re.findall(r'id="([^"]+)"', svg))
    for count, old in enumerate(seen):
        svg = svg.replace(f'id="{old}"', f'id="{name}-{count}"').replace(
            f"url(#{old})", f"url(#{name}-{count})"
        )
    return re.sub(r"(\d+\.\d\d)\d+", r"\1", svg)

"""The two charts of a cell as Vega-Lite: bits needed against bits there are, and trained accuracy against n.

Colours are CSS variables of the page, so one drawing serves light, dark and print.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

from separatrix.errors import EvidenceError, MissingExtraError
from separatrix.evidence import Measurement

if TYPE_CHECKING:
    import altair as alt

_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
_WIDTH, _HEIGHT = 430, 230
_ROLE_COLOURS = {"solver": "var(--solves)", "non-solver": "var(--fails)", "other": "var(--muted)"}
_ROLE_SHAPES = {"solver": "circle", "non-solver": "square", "other": "diamond"}


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


def vega_lite_version() -> str:
    """The newest Vega-Lite that vl-convert carries, up to the version altair writes."""
    altair, vl_convert = libraries()
    wanted = tuple(int(x) for x in re.findall(r"\d+", altair.SCHEMA_VERSION)[:2])
    versions = sorted(tuple(int(x) for x in text.split(".")) for text in vl_convert.get_vegalite_versions())
    fitting = [v for v in versions if v[0] == wanted[0] and v <= wanted] or versions
    return ".".join(str(x) for x in fitting[-1])


@cache
def vega_javascript() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that needs no network, safe inside a script element."""
    _, vl_convert = libraries()
    return vl_convert.javascript_bundle(vl_version=vega_lite_version()).replace("</script", "<\\/script")


def draw(spec: dict[str, Any], *, name: str) -> Chart:
    """The chart with its SVG; `name` keeps element ids apart on one page."""
    _, vl_convert = libraries()
    svg = vl_convert.vegalite_to_svg(json.dumps(spec, sort_keys=True), vl_version=vega_lite_version())
    seen: dict[str, str] = {}
    for found in re.findall(r'id="([^"]+)"', svg):
        seen.setdefault(found, f"{name}-{len(seen)}")
    for old, new in seen.items():
        svg = svg.replace(f'id="{old}"', f'id="{new}"').replace(f"url(#{old})", f"url(#{new})")
    return Chart(spec, re.sub(r"(\d+\.\d\d)\d+", r"\1", svg))


def bound_chart(bound: dict[str, Any], *, name: str, bites: Sequence[int] = ()) -> Chart | None:
    """Bits needed against bits there are, log axes, the crossing marked; None when fewer than two points can be drawn.

    `bites` holds the exact n of verdicts; the first that lies at the drawn crossing labels it. Raises EvidenceError for lists of unequal length.
    """
    alt, _ = libraries()
    if not len(bound["n"]) == len(bound["have"]) == len(bound["need"]):
        raise EvidenceError(f"bound of {name}: n, have and need have {len(bound['n'])}, {len(bound['have'])} and {len(bound['need'])} entries")
    points = [(_real(n), _real(have), _real(need)) for n, have, need in zip(bound["n"], bound["have"], bound["need"], strict=True)]
    rows = [{"n": n, "have": have, "need": need} for n, have, need in sorted(points) if 0 < min(n, have, need) and max(n, have, need) < 1e300]
    if len(rows) < 2:
        return None
    crossing = _crossing(rows, bites)
    data = alt.Data(values=rows)
    x = alt.X("n:Q", title=bound["x"], scale=alt.Scale(type="log", base=2, nice=False), axis=_n_axis(alt, [row["n"] for row in rows]))
    y = alt.Scale(type="log", nice=True)
    y_axis = alt.Axis(format="~s", tickCount=5)
    tooltip = [
        alt.Tooltip("n:Q", format=",", title=bound["x"]),
        alt.Tooltip("need:Q", format=",.1f", title=f"needed: {bound['need_title']}"),
        alt.Tooltip("have:Q", format=",.0f", title=f"there are: {bound['have_title']}"),
    ]
    layers: list[Any] = []
    if crossing is not None:
        beyond = [{"n": crossing["n"], "have": crossing["bits"], "need": crossing["bits"]}, *(r for r in rows if r["n"] > crossing["n"])]
        layers.append(
            alt.Chart(alt.Data(values=beyond)).mark_area(color="var(--fails)", opacity=0.14).encode(x=x, y=alt.Y("have:Q", scale=y), y2="need:Q")
        )
    last = rows[-1]
    for key, colour, dash in (("need", "var(--fails)", [1, 0]), ("have", "var(--solves)", [1, 0])):
        line = alt.Chart(data).encode(x=x, y=alt.Y(f"{key}:Q", scale=y, axis=y_axis, title="bits"), tooltip=tooltip)
        layers += [line.mark_line(color=colour, strokeWidth=2.2, strokeDash=dash), line.mark_point(color=colour, size=34, filled=True, opacity=1)]
        above = (last[key] >= last["need" if key == "have" else "have"])
        end = alt.Chart(alt.Data(values=[{"n": last["n"], "bits": last[key], "title": bound[f"{key}_title"]}]))
        layers.append(
            end.mark_text(align="right", dx=-2, dy=-11 if above else 14, color=colour, fontSize=12, fontWeight="bold").encode(
                x=x, y=alt.Y("bits:Q", scale=y), text="title:N"
            )
        )
    if crossing is not None:
        mark = alt.Chart(alt.Data(values=[crossing]))
        layers.append(mark.mark_rule(color="var(--ink)", strokeDash=[3, 3]).encode(x=x))
        layers.append(
            mark.mark_text(align="left", baseline="top", dx=5, color="var(--ink)", fontSize=12, fontWeight="bold").encode(
                x=x, y=alt.value(2), text="label:N"
            )
        )
    return draw(_finish(alt.layer(*layers)), name=name)


def accuracy_chart(measured: Sequence[Measurement], *, name: str) -> Chart | None:
    """Accuracy of the best seed against n with its Wilson interval, every seed as a faint dot, chance as a dashed line; None without measurements."""
    alt, _ = libraries()
    rows, seeds, chances = [], [], {}
    for m in sorted(measured, key=lambda m: (m.role, m.architecture, task_size(m.task))):
        n = float(task_size(m.task))
        chances[n] = float(Fraction(m.chance))
        common = {"n": n, "role": m.role, "architecture": m.architecture, "series": f"{m.role}: {m.architecture}"}
        rows.append({**common, "best": max(m.correct) / m.total, "low": float(m.interval[0]), "high": float(m.interval[1])})
        seeds += [{**common, "accuracy": c / m.total, "seed": s} for s, c in zip(m.seeds, m.correct, strict=True)]
    if not rows:
        return None
    ns = sorted(chances)
    domain = [ns[0] / 1.35, ns[-1] * 1.35]
    x = alt.X("n:Q", title="n", scale=alt.Scale(type="log", base=2, nice=False, domain=domain), axis=_n_axis(alt, ns))
    y = alt.Scale(domain=[0, 1])
    axis = alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1])
    roles = [role for role in _ROLE_COLOURS if any(row["role"] == role for row in rows)]
    colour = alt.Color("role:N", scale=alt.Scale(domain=roles, range=[_ROLE_COLOURS[r] for r in roles]), legend=None)
    shape = alt.Shape("role:N", scale=alt.Scale(domain=roles, range=[_ROLE_SHAPES[r] for r in roles]), legend=None)
    tooltip = [
        alt.Tooltip("role:N", title="role"), alt.Tooltip("architecture:N"), alt.Tooltip("n:Q", format=","),
        alt.Tooltip("best:Q", format=".2%", title="best seed"), alt.Tooltip("low:Q", format=".2%", title="95 % from"), alt.Tooltip("high:Q", format=".2%", title="95 % to"),
    ]  # fmt: skip
    line = [{"n": domain[0], "chance": chances[ns[0]]}, *({"n": n, "chance": chances[n]} for n in ns), {"n": domain[1], "chance": chances[ns[-1]]}]
    chance = alt.Chart(alt.Data(values=line))
    base = alt.Chart(alt.Data(values=rows))
    ends = [max((row for row in rows if row["series"] == series), key=lambda row: row["n"]) for series in dict.fromkeys(row["series"] for row in rows)]
    layers = [
        chance.mark_line(color="var(--muted)", strokeDash=[5, 4], strokeWidth=1.5).encode(x=x, y=alt.Y("chance:Q", scale=y, axis=axis, title="accuracy")),
        alt.Chart(alt.Data(values=line[:1])).mark_text(align="left", dx=3, dy=-8, color="var(--muted)", fontSize=11).encode(x=x, y=alt.Y("chance:Q", scale=y), text=alt.value("chance")),
        alt.Chart(alt.Data(values=seeds)).mark_point(filled=True, size=16, opacity=0.35).encode(x=x, y=alt.Y("accuracy:Q", scale=y), color=colour, shape=shape, tooltip=["role:N", "seed:Q", alt.Tooltip("accuracy:Q", format=".2%")]),
        base.mark_line(strokeWidth=2.2).encode(x=x, y=alt.Y("best:Q", scale=y), color=colour, detail="series:N"),
        base.mark_rule(strokeWidth=2).encode(x=x, y=alt.Y("low:Q", scale=y), y2="high:Q", color=colour),
        base.mark_point(filled=True, size=70, opacity=1).encode(x=x, y=alt.Y("best:Q", scale=y), color=colour, shape=shape, tooltip=tooltip),
        *(_role_label(alt, end, x, y) for end in ends),
    ]  # fmt: skip
    return draw(_finish(alt.layer(*layers)), name=name)


def task_size(task: str) -> int:
    """The n a measurement stands at: the task's own size n, or the length of its prompts where it has none."""
    named = re.search(r"[:,]n=(\d+)(?:,|$)", task)
    if named:
        return int(named[1])
    from separatrix.tasks import parse_task

    return parse_task(task).length


def _real(value: Any) -> float:
    """A drawn coordinate from an integer or a decimal string; infinite when it is too large to draw."""
    try:
        return float(Decimal(str(value).strip("[] ").split(" ")[0]))
    except (InvalidOperation, OverflowError, IndexError):
        raise EvidenceError(f"a bound holds {value!r:.60}, which is no number") from None


def _crossing(rows: Sequence[dict[str, float]], bites: Sequence[int]) -> dict[str, Any] | None:
    """Where more is needed than there is for good: the exact n if a verdict names it, else a straight line between two points, unlabelled."""
    after = next((i for i in range(len(rows)) if all(row["need"] > row["have"] for row in rows[i:])), None)
    if after is None or after == 0:
        return None
    left, right = rows[after - 1], rows[after]
    gap_left, gap_right = (math.log(row["need"] / row["have"]) for row in (left, right))
    share = gap_left / (gap_left - gap_right)
    exact = next((n for n in bites if left["n"] <= n <= right["n"]), None)
    n = left["n"] * (right["n"] / left["n"]) ** share if exact is None else float(exact)
    bits = left["have"] * (right["have"] / left["have"]) ** share
    return {"n": n, "bits": bits, "label": "more is needed" if exact is None else f"n = {exact:,}"}


def _n_axis(alt: Any, values: Sequence[float]) -> Any:
    step = -(-len(values) // 8)
    return alt.Axis(values=list(values)[::step], format="," if values[-1] < 1e6 else ".3~s", labelOverlap=True, grid=False)


def _role_label(alt: Any, end: dict[str, Any], x: Any, y: Any) -> Any:
    mark = alt.Chart(alt.Data(values=[end])).mark_text(
        align="right", dx=8, dy=17 if end["best"] > 0.85 else -13, color=_ROLE_COLOURS[end["role"]], fontSize=12, fontWeight="bold"
    )
    return mark.encode(x=x, y=alt.Y("best:Q", scale=y), text="role:N")


def _finish(chart: Any) -> dict[str, Any]:
    axis = {
        "gridColor": "var(--line)", "domainColor": "var(--line-strong)", "tickColor": "var(--line-strong)", "labelColor": "var(--muted)",
        "titleColor": "var(--muted)", "labelFontSize": 11.5, "titleFontSize": 12, "titleFontWeight": "normal", "labelFont": _FONT, "titleFont": _FONT,
    }  # fmt: skip
    chart = chart.properties(width=_WIDTH, height=_HEIGHT).resolve_scale(color="independent", shape="independent")
    chart = chart.configure(background="transparent", font=_FONT, padding=4).configure_axis(**axis).configure_view(stroke=None)
    return chart.to_dict()

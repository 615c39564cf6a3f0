"""The curves of `compare` drawn: what share of random facts no weights exceed, over contexts, and
dashed beside it what storing as many facts as fit reaches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from separatrix.cards.curve import Curve
from separatrix.cli.report.charts import CEILING_TIPS, share, share_tips, spread
from separatrix.core.document.drawing import libraries
from separatrix.core.document.plot_file import FAILS, INK, MUTED, SOLVES, plot_spec
from separatrix.core.numbers.accuracy import WHOLE

_COLOURS = (FAILS, SOLVES, INK, "#6a3d9a", "#2e7d32", MUTED)
_LABEL_GAP = 0.05
_ROOM = 0.35
"""Room for labels, as a share of the curves' own."""
_LOWEST = 0.03
"""Where labels of the lowest curves stand, clear of the axis."""
_LONGEST_NAME = 24
_TICKS = "".join(
    f"datum.value >= {2**power} ? datum.value / {2**power} + '{unit}' : "
    for power, unit in ((40, "T"), (30, "G"), (20, "M"), (10, "k"))
)
"""Contexts as commands read them: k is 1,024 tokens."""


def curves_spec(curves: Mapping[str, Curve]) -> dict[str, Any]:
    """The Vega-Lite specification; models without a bound lie on top, at 100 %."""
    alt, _ = libraries()
    contexts = [point.context for point in next(iter(curves.values()))]
    colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(curves)}
    beyond = contexts[-1] * (contexts[-1] / contexts[0]) ** _ROOM
    doublings = range(contexts[0].bit_length(), contexts[-1].bit_length())
    x = alt.X(
        "context:Q",
        title="tokens of context, all but the question facts (k is 1,024)",
        scale=alt.Scale(type="log", base=2, nice=False, domain=[contexts[0], beyond]),
        axis=alt.Axis(
            values=[1 << power for power in doublings][:: -(-len(doublings) // 8)],
            labelExpr=f"{_TICKS}datum.value",
            grid=False,
        ),
    )
    layers: list[Any] = []
    ends: list[tuple[float, str, str]] = []
    for name, curve in curves.items():
        rows = [
            {
                "context": point.context,
                "ceiling": (WHOLE if point.at_most is None else point.at_most) / WHOLE,
                "stored": point.stored / WHOLE,
                "model": name,
            }
            for point in curve
        ]
        data = alt.Chart(alt.Data(values=rows))
        tips = [
            alt.Tooltip("model:N"),
            alt.Tooltip("context:Q", format=","),
            *share_tips(CEILING_TIPS),
        ]
        for key, dash in (("ceiling", [1, 0]), ("stored", [5, 4])):
            line = data.mark_line(color=colours[name], strokeWidth=2.2, strokeDash=dash)
            layers.append(line.encode(x=x, y=share(key), tooltip=tips))
        short = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."
        ends.append((max(rows[-1]["ceiling"], _LOWEST), short, colours[name]))
    for height, name, colour in spread(ends, gap=_LABEL_GAP):
        row = {"context": contexts[-1], "at": height, "label": name}
        text = alt.Chart(alt.Data(values=[row])).mark_text(
            align="left", dx=6, color=colour, fontSize=12, fontWeight="bold"
        )
        layers.append(text.encode(x=x, y=share("at"), text="label:N"))
    return plot_spec(
        alt.layer(*layers),
        "Random facts recalled",
        [
            "solid: no weights exceed it, with or without chain of thought (Theorem A)",
            "dashed: what storing as many facts as fit in the cache, and guessing the others,"
            " reaches",
        ],
    )

"""Drawings: where marks stand, by hand."""

from __future__ import annotations

import base64
import re

from separatrix.core.document.plot import COLOURS, Axis, Drawing, Stroke, Words


def test_words_stand_beside_their_point() -> None:
    """2 of 10 to the right and 8 of 10 up, in a field of 100 by 50 that begins at 24 and 12."""
    words = Words(2, 8, "here", right=3, below=5)
    axes = [Axis(title, 0, 10, (), log=False) for title in ("x", "y")]
    drawn = Drawing(x=axes[0], y=axes[1], marks=[words], width=100, height=50)
    found = re.search(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>here<', drawn.svg)
    assert found is not None
    assert [float(number) for number in found.groups()] == [24 + 20 + 3, 12 + 10 + 5]


def test_a_picture_in_a_notebook_has_its_colours_and_words() -> None:
    line = Stroke([(0, 0), (1, 1)], told='rises "so" <fast>')
    axes = [Axis(title, 0, 1, (), log=False) for title in ("", "y")]
    html = Drawing(x=axes[0], y=axes[1], marks=[line], title="T")._repr_html_()
    assert 'alt="T. y. rises &quot;so&quot; &lt;fast&gt;"' in html
    found = re.search(r"data:image/svg\+xml;base64,([^\"]+)", html)
    assert found is not None
    drawn = base64.b64decode(found[1]).decode()
    light, dark = COLOURS["ink"]
    assert f'stroke="{light}"' in drawn
    assert f'[stroke="{light}"]{{stroke:{dark}}}' in drawn
    assert "var(" not in drawn

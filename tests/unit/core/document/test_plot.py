"""Drawings: where marks stand, by hand."""

from __future__ import annotations

import re

from separatrix.core.document.plot import Axis, Drawing, Words


def test_words_stand_beside_their_point() -> None:
    """2 of 10 to the right and 8 of 10 up, in a field of 100 by 50."""
    words = Words(2, 8, "here", right=3, below=5)
    axes = [Axis(title, 0, 10, (), log=False) for title in ("x", "y")]
    drawn = Drawing(x=axes[0], y=axes[1], marks=[words], width=100, height=50)
    left, top, *_ = drawn.field
    found = re.search(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>here<', drawn.svg)
    assert found is not None
    assert [float(number) for number in found.groups()] == [left + 20 + 3, top + 10 + 5]

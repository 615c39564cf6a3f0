"""The chart of bits that a context needs beside bits that models keep of it."""

from __future__ import annotations

import re

from separatrix.cli.report.charts import states
from separatrix.core.document.plot import Dot
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.resolve import preset


def test_a_cross_stands_where_a_cache_becomes_too_small() -> None:
    """By hand: RecurrentGemma keeps 1,474,560 + 2,211,840 + 134,217,728 bits, and a fact of 50,000
    values takes 15.60964: as many as 8,834,548.6 facts.
    """
    models = {"r": preset("recurrentgemma-2b"), "q": preset("qwen3-8b")}
    crosses = [mark for mark in states(models).marks if isinstance(mark, Dot)]
    assert [(dot.x, dot.y) for dot in crosses] == [(8_834_549, 137_904_128)]
    assert "too small at 8,834,549" in crosses[0].told


def test_the_same_in_words() -> None:
    """By hand: 2^30 facts of log2(50,000) bits are 16.8 Gbit; one head of 64 x 64 in fp32 keeps
    131,072 bits.
    """
    model = Architecture.parse("gla @ heads=1, head_dim=64")
    words = states({"g": model}).words
    assert re.findall(r"\d[\d,.]* [KMG]iB at \w+", words) == [
        "2 KiB at 1k",
        "2 GiB at 1G",
        "16 KiB at 1k",
        "16 KiB at 1G",
    ]


def test_a_model_that_keeps_nothing_lies_at_the_foot() -> None:
    drawing = states({"none": Architecture.parse("shortconv @ conv=1, width=4")})
    (cross,) = (mark for mark in drawing.marks if isinstance(mark, Dot))
    assert cross.y == drawing.y.low

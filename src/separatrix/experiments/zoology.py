"""Multi-query associative recall against width: the shape of Zoology's known figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from separatrix.experiments.base import LEAST_SEEDS, Cell, Experiment, cell, claimed, grouped
from separatrix.experiments.saying import listed
from separatrix.experiments.showing import share
from separatrix.practice.table import Row, Scale, Table
from separatrix.training.run import Run

SOLVES = 0.9
"""Accuracy per answer from which a width is called enough."""


class _Prompt(NamedTuple):
    """Prompts of a length, with the pairs that Zoology's figure has in as many tokens."""

    length: int
    pairs: int
    steps: int


class _Size(NamedTuple):
    """What is trained at a scale."""

    prompts: tuple[_Prompt, ...]
    widths: tuple[int, ...]
    vocabulary: int
    batch: int
    rates: tuple[float, ...]
    mechanisms: tuple[str, ...]


_EVERY = ("full", "shortconv", "linear", "mamba2", "gdn")
_SCALES: dict[Scale, _Size] = {
    "smoke": _Size(
        prompts=(_Prompt(32, 4, 120),),
        widths=(16,),
        vocabulary=32,
        batch=32,
        rates=(1e-2,),
        mechanisms=("full", "linear"),
    ),
    # 300 steps of 16 prompts, a first run, left all below 50 %: these are what attention needs
    "laptop": _Size(
        prompts=(_Prompt(64, 8, 400),),
        widths=(16, 32),
        vocabulary=64,
        batch=32,
        rates=(5e-3, 1e-2),
        mechanisms=_EVERY,
    ),
    # the lengths, pairs and vocabulary of the figure
    "gpu": _Size(
        prompts=(
            _Prompt(64, 4, 3000),
            _Prompt(128, 8, 3000),
            _Prompt(256, 16, 3000),
            _Prompt(512, 64, 3000),
        ),
        widths=(32, 64, 128, 256),
        vocabulary=8192,
        batch=64,
        rates=(1e-3, 3e-3),
        mechanisms=_EVERY,
    ),
}


class Zoology(Experiment):
    """Two layers of one mechanism on MQAR."""

    name: ClassVar[str] = "zoology"
    title: ClassVar[str] = "Associative recall against width"
    question: ClassVar[str] = (
        "Which mechanisms need a width that grows with the prompt to recall many pairs, and which"
        " recall them at any?"
    )
    says: ClassVar[str] = (
        "Explicit weights of one full layer recall at every length; with a bounded state, the"
        " accuracy is at most what Theorem A allows its bits, far above what is found at these"
        " widths. Published (Arora et al. 2023, arXiv 2312.04927, figure 2): attention solves every"
        " length at every width, gated convolutions and recurrences need a width that grows."
    )
    labels: ClassVar[dict[str, str]] = {
        "mechanism": "of both layers; shortconv: a gated convolution as long as the prompt",
        "width": "of the model, and of each layer's one head",
        "length": "tokens of a prompt",
        "pairs": "of key and value in a prompt, each asked for once",
    }
    x: ClassVar[str] = "width"
    x_title: ClassVar[str] = "model width"
    series: ClassVar[tuple[str, ...]] = ("mechanism",)
    panels: ClassVar[tuple[str, ...]] = ("length",)
    even: ClassVar[bool] = True

    def cells(self, scale: Scale) -> tuple[Cell, ...]:
        size = _SCALES[scale]
        return tuple(
            self._cell(scale, prompt, mechanism, width)
            for prompt in size.prompts
            for width in size.widths
            for mechanism in size.mechanisms
        )

    def findings(self, table: Table) -> tuple[str, ...]:
        found: list[str] = []
        for length, rows in grouped(table.rows, lambda row: f"{row.labels['length']}").items():
            found += _shape_said(length, [row for row in rows if claimed([row])])
        return tuple(found)

    @staticmethod
    def _cell(scale: Scale, prompt: _Prompt, mechanism: str, width: int) -> Cell:
        size = _SCALES[scale]
        sizes = f"input_seq_len={prompt.length},num_kv_pairs={prompt.pairs},random_non_queries=0"
        run = Run(
            architecture=stack(mechanism, width, prompt.length),
            task=f"mqar:vocab_size={size.vocabulary},{sizes}",
            seed=0,
            steps=prompt.steps,
            batch=size.batch,
            width=width,
            # as in Zoology, which trains mixers alone there
            hidden=0,
            stop_at=0.99,
            tested=256,
        )
        labels = {
            "mechanism": mechanism,
            "width": width,
            "length": prompt.length,
            "pairs": prompt.pairs,
        }
        return cell(labels, run, seeds=LEAST_SEEDS[scale], rates=size.rates)


def stack(mechanism: str, width: int, length: int) -> str:
    """Two layers as wide as the model."""
    if mechanism == "shortconv":
        # a prompt and its start token
        return f"shortconv(width={width}, conv={length + 1})*2"
    state = f", state={width}" if mechanism == "mamba2" else ""
    return f"{mechanism}(heads=1, head_dim={width}{state}, conv=2)*2"


def _shape_said(length: str, rows: Sequence[Row]) -> list[str]:
    """From which width on each mechanism recalls prompts of a length, in the median."""
    by = grouped(rows, lambda row: str(row.labels["mechanism"]))
    if "full" not in by or len(by) < 2:
        return []
    widths = sorted({int(row.labels["width"]) for row in rows})
    enough = {
        name: min((int(row.labels["width"]) for row in of if row.median >= SOLVES), default=None)
        for name, of in by.items()
    }
    others = {name: width for name, width in enough.items() if name != "full"}
    full = enough["full"]
    # at the smallest width of all nothing shows who needs less
    alike = [name for name, width in others.items() if width == full == min(widths)]
    sooner = [
        name
        for name, width in others.items()
        if width and (full is None or width <= full) and name not in alike
    ]
    said: list[str] = []
    if full is None:
        said.append(
            f"n = {length}: full attention reaches {SOLVES:.0%} at no width up to {max(widths)} in"
            " this budget, against the published figure: it failed to train, which is not that it"
            " cannot."
        )
    elif full > min(widths):
        said.append(
            f"n = {length}: full attention reaches {SOLVES:.0%} first at width {full}, not at"
            f" {min(widths)}; the published one does at every width that was tried."
        )
    if sooner:
        said.append(
            f"n = {length}: {', '.join(sooner)} reach it at no larger width than full attention,"
            " against the published order."
        )
    told = ", ".join(
        f"{name} {f'first at {width}' if width else 'at none'}" for name, width in enough.items()
    )
    best = ", ".join(f"{name} {share(max(row.median for row in of))}" for name, of in by.items())
    said.append(
        f"n = {length}: widths with a median of {SOLVES:.0%}: {told}. Best median of each: {best}."
    )
    if alike:
        said.append(
            f"n = {length}: {listed(alike)} reach it at the smallest width that was tried, as full"
            " attention does, so that prompts of this length do not tell them apart."
        )
    if full is not None and not sooner and not alike:
        said.append(
            f"n = {length}: the published order of attention before all others holds at this scale."
        )
    return said

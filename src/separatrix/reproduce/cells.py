"""The fifteen cells of the table: what each claims, at which size, and what is built, refuted and
trained to back it.

Rows and columns, and the paper's entries, are those of [Ye26] (theory.md, section 8). States are
kept tiny (one number per feature), so that a bound bites at a size at which a solver can still be
trained in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

ROWS = {
    "full": "full attention",
    "linear": "linear attention",
    "loglinear": "log-linear attention",
    "sparse": "(B, k)-sparse attention",
    "hybrid": "hybrid",
}
COLUMNS = {"eva": "Eva", "twosum": "2-Sum", "seqcomp": "L-SeqComp"}

SMALL = "heads=1, head_dim=1"
TRAINED = "heads=1, head_dim=32"


@dataclass(frozen=True)
class Pair:
    """An architecture and a task to be judged."""

    architecture: str
    task: str


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell. The first of `judged` decides its status and headline; the others stand beside
    it.
    """

    row: str
    column: str
    paper: str = ""
    judged: tuple[Pair, ...]
    built: tuple[tuple[str, str | None], ...] = ()
    """(task, architecture or None for the smallest) to construct weights for."""
    refuted: tuple[tuple[str, str, str | None], ...] = ()
    """(architecture, task, cache format) to search a certificate for."""
    wrong: bool = False
    """Whether a trained non-solver's wrong answer is certified."""
    solver: str
    non_solver: str
    bound: bool = False
    """Whether the chart of Theorem I (bits needed against bits carried) belongs to the cell."""
    story: str


def task_at(column: str, size: int) -> str:
    """The task a column trains on at a size: Eva with n values, 2-Sum of n tokens modulo 4n,
    SeqComp with L = 2 over m = n values.
    """
    return {
        "eva": f"eva:n={size},V={size}",
        "twosum": f"twosum:n={size},M={4 * size},form=query",
        "seqcomp": f"seqcomp:L=2,m={size},n_1=1",
    }[column]


_LINEAR = f"linear @ {SMALL}"
_LOGLINEAR = f"loglinear @ {SMALL}"
_SPARSE = f"sparse @ {SMALL}, block=32, topk=1"
_SPARSE_TRAINED = f"sparse @ {SMALL}, block=4, topk=1"
_HYBRID = f"full + linear @ {SMALL}"
_TWO_FULL = f"full*2 @ {TRAINED}"
_TWO_FULL_WIDE = "full*2 @ heads=2, head_dim=16"
_THREE_FULL = f"full*3 @ {TRAINED}"
_MIXED = f"linear + full @ {TRAINED}"
_ROUNDED = "linear @ heads=1, head_dim=2, p3"
_ROUNDED_LOG = "loglinear @ heads=1, head_dim=1, p4"
_EVA = "eva:n=4096,V=4096"
_TWOSUM = "twosum:n=4096,M=5000,form=query"
_SEQCOMP = "seqcomp:L=2,n=4096"
_SPARSE_BUILT = "sparse @ heads=1, head_dim=16, block=64, topk=1"
_PAPER = "heads=1, head_dim=4, p8, accumulator=p8, running_max=false"
_STACK = "linear*3 + full @ heads=1, head_dim=32"

CELLS: tuple[Cell, ...] = (
    Cell(
        row="full",
        column="eva",
        paper="O(polylog n), 1 layer",
        judged=(Pair(f"full @ {TRAINED}", _EVA),),
        built=((_EVA, None),),
        solver=_TWO_FULL,
        non_solver=_LINEAR,
        story=(
            "One full layer looks the answer up: the last token asks for one address and the right"
            " token outweighs all others together. The weights are written down, not trained, and"
            " proved right for every input of the size."
        ),
    ),
    Cell(
        row="full",
        column="twosum",
        paper="O(log n), 1 layer, d = 3",
        judged=(Pair("full @ heads=1, head_dim=3", _TWOSUM),),
        built=((_TWOSUM, None),),
        solver=_TWO_FULL_WIDE,
        non_solver=_LINEAR,
        story=(
            "A head of three dimensions scores every earlier token by how nearly it cancels the"
            " last one modulo M; a start token takes the weight when nothing does. The weights are"
            " written down and proved right for every input of the size."
        ),
    ),
    Cell(
        row="full",
        column="seqcomp",
        paper="O(polylog n) with L+1 layers; n^Omega(1) with L",
        judged=(
            Pair(_THREE_FULL, _SEQCOMP),
            Pair(f"full @ {_PAPER}", "seqcomp:L=2,m=12,n_1=1"),
            Pair(f"full*2 @ {_PAPER}", "seqcomp:L=2,m=34,n_1=349"),
        ),
        built=((_SEQCOMP, None), ("seqcomp:L=3,n=4096", None)),
        solver=_THREE_FULL,
        non_solver=f"full @ {SMALL}",
        story=(
            "L+1 full layers follow L steps, one layer each after the first has fetched the start."
            " With fewer layers there is a wall at finite n: for one head of 4 dimensions and 8"
            " bits, one layer fails from n = 26 and two layers from n = 11,902, whatever the"
            " weights."
        ),
    ),
    Cell(
        row="linear",
        column="eva",
        paper="Omega(n log n), also with chain of thought",
        judged=(Pair(_LINEAR, task_at("eva", 32)),),
        refuted=((_ROUNDED, task_at("eva", 16), None),),
        solver=_TWO_FULL,
        non_solver=_LINEAR,
        bound=True,
        story=(
            "The state has a fixed number of bits and n values need n log2 n. From there on two"
            " functions leave the same state, and the model gives one answer where two are right;"
            " writing out thoughts changes nothing, since they are computed from that state."
        ),
    ),
    Cell(
        row="linear",
        column="twosum",
        paper="Omega(n log n), also with chain of thought",
        judged=(Pair(_LINEAR, task_at("twosum", 32)),),
        refuted=((_ROUNDED, task_at("twosum", 8), None),),
        solver=_TWO_FULL_WIDE,
        non_solver=_LINEAR,
        bound=True,
        story=(
            "The state must tell apart every set of values that could have come before the query."
            " There are more sets than states."
        ),
    ),
    Cell(
        row="linear",
        column="seqcomp",
        judged=(Pair(_LINEAR, task_at("seqcomp", 32)),),
        refuted=((_ROUNDED, task_at("seqcomp", 16), None),),
        solver=_THREE_FULL,
        non_solver=_LINEAR,
        bound=True,
        story=(
            "The function that is needed last is read first, so the state must hold all of it: N"
            " log2 N bits. The paper has no entry here; Theorem I gives one."
        ),
    ),
    Cell(
        row="loglinear",
        column="eva",
        paper="Omega(n), also with chain of thought",
        judged=(Pair(_LOGLINEAR, task_at("eva", 64)),),
        refuted=((_ROUNDED_LOG, task_at("eva", 16), None),),
        solver=_TWO_FULL,
        non_solver=_LOGLINEAR,
        bound=True,
        story=(
            "The cache grows, but only by one state per doubling of the prompt; n values still need"
            " n log2 n bits."
        ),
    ),
    Cell(
        row="loglinear",
        column="twosum",
        paper="Omega(n), also with chain of thought",
        judged=(Pair(_LOGLINEAR, task_at("twosum", 128)),),
        refuted=((_ROUNDED_LOG, task_at("twosum", 8), None),),
        solver=_TWO_FULL_WIDE,
        non_solver=_LOGLINEAR,
        bound=True,
        story=(
            "The cache grows by one state per doubling; the sets it must tell apart grow much"
            " faster."
        ),
    ),
    Cell(
        row="loglinear",
        column="seqcomp",
        judged=(Pair(_LOGLINEAR, task_at("seqcomp", 64)),),
        refuted=((_ROUNDED_LOG, task_at("seqcomp", 16), None),),
        solver=_THREE_FULL,
        non_solver=_LOGLINEAR,
        bound=True,
        story=(
            "As for linear attention: the function needed last is read first. The paper has no"
            " entry here; Theorem I gives one."
        ),
    ),
    Cell(
        row="sparse",
        column="eva",
        judged=(Pair(_SPARSE_BUILT, _EVA),),
        built=((_EVA, _SPARSE_BUILT),),
        solver="sparse*2 @ heads=1, head_dim=32, block=4, topk=2",
        non_solver=_SPARSE_TRAINED,
        story=(
            "The paper has no entry here. Opening one block is enough when its message leads there:"
            " pooled over a block, the address bits keep their high part, so the right block scores"
            " highest, and inside it the layer looks the answer up. The weights are written down"
            " and proved."
        ),
    ),
    Cell(
        row="sparse",
        column="twosum",
        paper="Omega(B log n), 1 layer",
        judged=(Pair(_SPARSE, task_at("twosum", 128)),),
        refuted=(
            (
                "sparse @ heads=1, head_dim=1, block=8, topk=1, p6",
                "twosum:n=32,M=64,form=query",
                None,
            ),
        ),
        solver=_TWO_FULL_WIDE,
        non_solver=_SPARSE_TRAINED,
        story=(
            "Each block sends a short message, and the layer opens the few that look best. Two"
            " blocks with one message, one with the value that cancels the query and one without:"
            " where it is not opened, the answer is the same and one of the two is wrong."
        ),
    ),
    Cell(
        row="sparse",
        column="seqcomp",
        judged=(Pair(_SPARSE_TRAINED, "seqcomp:L=2,m=31,n_1=35"),),
        wrong=True,
        solver=_THREE_FULL,
        non_solver=_SPARSE_TRAINED,
        story=(
            "One sparse layer is one reading layer, only with a larger h: Theorem III applies with"
            " it. The paper has no entry here."
        ),
    ),
    Cell(
        row="hybrid",
        column="eva",
        judged=(Pair(_STACK, _EVA),),
        built=((_EVA, _STACK),),
        solver=_MIXED,
        non_solver=f"linear*2 @ {SMALL}",
        story=(
            "One full layer at the end of a recurrent stack closes the gap: the recurrent layers"
            " may write nothing, and the full layer looks the answer up. The trained non-solver is"
            " the same stack without it."
        ),
    ),
    Cell(
        row="hybrid",
        column="twosum",
        judged=(Pair(_STACK, _TWOSUM),),
        built=((_TWOSUM, _STACK),),
        solver="linear + full*2 @ heads=2, head_dim=16",
        non_solver=f"linear*2 @ {SMALL}",
        story="One full layer among recurrent ones does what it does alone.",
    ),
    Cell(
        row="hybrid",
        column="seqcomp",
        paper="n^Omega(1) with L-1 full layers",
        judged=(
            Pair(_HYBRID, "seqcomp:L=2,m=14,n_1=19"),
            Pair("linear + full*2 @ heads=1, head_dim=32", _SEQCOMP),
        ),
        built=((_SEQCOMP, "linear + full*2 @ heads=1, head_dim=32"),),
        wrong=True,
        solver=_THREE_FULL,
        non_solver=_HYBRID,
        story=(
            "Recurrent layers do not replace a full one: with L-1 full layers L steps fail at a"
            " finite n, whatever the weights. With L full layers a single recurrent layer before"
            " the first one saves the extra layer: that stack is built and proved."
        ),
    ),
)

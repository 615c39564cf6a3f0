"""Experiments on sparse layers and on heads side by side: what they count, and what they conclude
of tables written by hand.
"""

from __future__ import annotations

from math import comb, log2

import pytest
from support.practice_tables import row, table, trial

from separatrix.experiments.head_wise import HEAD_WISE, HeadWise
from separatrix.experiments.multi_layer_sparse import MultiLayerSparse
from separatrix.experiments.sparse_capacity import SparseCapacity, least_message, load, sizes
from separatrix.practice.table import Longer, Row

SUMS = "twosum:n=16,M=48,queries=8"


def sparse(d: int, *rights: int, block: int = 4, opened: int = 1) -> Row:
    labels = {"kind": "sparse", "block": block, "opened": opened, "head_dim": d, "n": 16}
    stack = f"sparse(heads=2, head_dim={d}, block={block}, topk={opened})"
    return row(
        labels | {"stack": stack},
        {1e-2: [trial(seed, right) for seed, right in enumerate(rights)]},
        architecture=stack,
        task=SUMS,
    )


def full(d: int, *rights: int) -> Row:
    labels = {"kind": "full", "block": 0, "opened": 0, "head_dim": d, "n": 16}
    stack = f"full(heads=2, head_dim={d})"
    return row(
        labels | {"stack": stack},
        {1e-2: [trial(seed, right) for seed, right in enumerate(rights)]},
        architecture=stack,
        task=SUMS,
    )


def test_the_load_of_a_layer() -> None:
    """Two heads of a key and a value of 8 float32 numbers are 1,024 bits; B log2 n = 4 x 4."""
    assert load(sparse(8, 1)) == 2 * 2 * 8 * 32 // (4 * 4)
    assert load(full(8, 1)) is None


def test_the_message_that_theorem_ii_asks_for() -> None:
    """4 blocks, 2 of them opened by two heads: u_1 = 48 (1 - 2/4) = 24 values, on which a block of
    4 tokens leaves 1 + 24 + 276 + 2,024 + 10,626 traces.
    """
    found = sizes(sparse(8, 1))
    assert found is not None
    traces = sum(comb(24, j) for j in range(5))
    assert least_message(found) == -int(-log2(traces) // 1)


def test_heads_that_open_all_blocks_are_not_bounded() -> None:
    found = sizes(sparse(8, 1, opened=2))
    assert found is not None
    assert least_message(found) is None


def test_what_a_longer_message_gives() -> None:
    rising = table("sparse-capacity", sparse(8, 600, 610, 620), sparse(16, 800, 810, 820))
    falling = table("sparse-capacity", sparse(8, 800, 810, 820), sparse(16, 600, 610, 620))
    assert not any("Against expectation" in one for one in SparseCapacity().findings(rising))
    first, *_ = SparseCapacity().findings(falling)
    assert "heads of 8 dimensions answer better (81.0 %) than those of 16 (61.0 %)" in first


@pytest.mark.parametrize(
    ("rights", "said"),
    [((600, 610, 620), "Accuracies lie on one curve"), ((900, 910, 920), "No collapse")],
)
def test_layers_of_one_load(rights: tuple[int, ...], said: str) -> None:
    """Blocks of 2 with heads of 8 and blocks of 4 with heads of 16 both have 128 bits per unit."""
    one = sparse(8, 601, 611, 621, block=2)
    other = sparse(16, *rights)
    assert load(one) == load(other)
    lowest = sparse(4, 500, 505, 510)
    found = SparseCapacity().findings(
        table("sparse-capacity", one, other, lowest, full(32, 950, 960, 970))
    )
    assert any(text.startswith(said) for text in found)


def test_full_attention_with_heads_as_wide() -> None:
    found = SparseCapacity().findings(
        table("sparse-capacity", sparse(8, 600, 610, 620), full(8, 700, 710, 720))
    )
    assert any("ahead of 1 of 1 sparse layers" in text for text in found)


def layers(kind: str, many: int, d: int, *rights: int) -> Row:
    block = ", block=4, topk=1" if kind == "sparse" else ""
    stack = f"{kind}(heads=2, head_dim={d}{block})*{many}"
    return row(
        {"kind": kind, "layers": many, "head_dim": d, "stack": stack},
        {1e-2: [trial(seed, right) for seed, right in enumerate(rights)]},
        architecture=stack,
        task=SUMS,
    )


def test_a_second_sparse_layer() -> None:
    found = MultiLayerSparse().findings(
        table(
            "multi-layer-sparse",
            layers("sparse", 1, 8, 600, 610, 620),
            layers("sparse", 2, 8, 900, 910, 920),
            layers("sparse", 1, 16, 700, 710, 720),
            layers("sparse", 2, 16, 600, 610, 620),
        )
    )
    # harm is said first
    assert "heads of 16 dimensions: layer 2 does harm" in found[0]
    assert "layer 2 helps: every seed is ahead (61.0 % to 91.0 %; 0 of 3 seeds" in found[1]
    assert (
        "two sparse layers with heads of 8 dimensions (91.0 %) beat one with heads of 16"
        in (found[2])
    )
    assert "not cannot" in found[3]


def laid(layout: str, stack: str, *rights: int) -> Row:
    """A row on composition; over both answers of a question everything is half right."""
    seeds = [
        trial(seed, 500, longer=(Longer("stages=0", 0, right, 1000),))
        for seed, right in enumerate(rights)
    ]
    return row(
        {"layout": layout, "task": "composition", "mechanism": "gdn", "stack": stack},
        {1e-2: seeds},
        architecture=stack,
        task="seqcomp:L=2,m=4,n_1=4,split=1,stages=1,queries=8",
        longer=["stages=0"],
    )


def test_heads_side_by_side_are_compared_by_the_last_answer() -> None:
    found = HeadWise().findings(
        table(
            "head-wise",
            laid("recurrent, then full", "gdn + full", 900, 910, 920),
            laid("full, then recurrent", "full + gdn", 300, 310, 320),
            laid(HEAD_WISE, "(gdn|full)*2", 600, 610, 620),
        )
    )
    # two reading layers were expected to be ahead of one
    assert "learned less than recurrent, then full (91.0 %" in found[0]
    assert "learned more than full, then recurrent (31.0 %" in found[1]


@pytest.mark.parametrize("task", ["recall", "composition"])
def test_layouts_have_one_cache(task: str) -> None:
    """To the bit, whatever the length: as much state, and as much for every token."""
    cells = [cell for cell in HeadWise().cells("laptop") if cell.labels["task"] == task]
    stacks = [cell.runs[0].stack for cell in cells]
    assert len(stacks) == 3
    for tokens in (0, 40, 41):
        assert len({stack.cache_bits(tokens) for stack in stacks}) == 1


def test_what_full_attention_did_not_learn_either_is_said() -> None:
    """Both failed: then the budget is as likely short as the layer."""
    sparse_rows = (layers("sparse", 1, 8, 600, 610, 620), layers("sparse", 2, 8, 640, 650, 660))
    for right, said in ((750, True), (1000, False)):
        control = layers("full", 1, 8, right, right, right)
        *_, last = MultiLayerSparse().findings(table("multi-layer-sparse", *sparse_rows, control))
        assert ("and no full one did" in last) == said

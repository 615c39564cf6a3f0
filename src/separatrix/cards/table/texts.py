"""What a cell tells beside its evidence: the paper's entry, and why it is so in plain English."""

from __future__ import annotations

PAPER = {
    ("full", "eva"): "O(polylog n), 1 layer",
    ("full", "twosum"): "O(log n), 1 layer, d = 3",
    ("full", "seqcomp"): "O(polylog n) with L+1 layers; n^Omega(1) with L",
    ("linear", "eva"): "Omega(n log n), also with chain of thought",
    ("linear", "twosum"): "Omega(n log n), also with chain of thought",
    ("loglinear", "eva"): "Omega(n), also with chain of thought",
    ("loglinear", "twosum"): "Omega(n), also with chain of thought",
    ("sparse", "twosum"): "Omega(B log n), 1 layer",
    ("hybrid", "seqcomp"): "n^Omega(1) with L-1 full layers",
}
"""(row, column) -> the entry of [Ye26]; none where the paper has none."""

STORIES = {
    ("full", "eva", "SOLVABLE"): (
        "One full layer looks the answer up: the last token asks for one address and the right"
        " token outweighs all others together. The weights are written down, not trained, and"
        " proved right for every input of the size."
    ),
    ("full", "twosum", "SOLVABLE"): (
        "A head of three dimensions scores every earlier token by how nearly it cancels the last"
        " one modulo M; a start token takes the weight when nothing does. The weights are written"
        " down and proved right for every input of the size."
    ),
    ("full", "seqcomp", "SOLVABLE"): (
        "L+1 full layers follow L steps, one layer each after the first has fetched the start. With"
        " fewer layers there is a wall at finite n, whatever the weights: the verdicts on stacks of"
        " fewer layers say where."
    ),
    ("linear", "eva", "FAILS"): (
        "The state has a fixed number of bits and n values need n log2 n. From there on two"
        " functions leave the same state, and the model gives one answer where two are right;"
        " writing out thoughts changes nothing, since they are computed from that state."
    ),
    ("linear", "twosum", "FAILS"): (
        "The state must tell apart every set of values that could have come before the query."
        " There are more sets than states."
    ),
    ("linear", "seqcomp", "FAILS"): (
        "The function that is needed last is read first, so the state must hold all of it: N log2 N"
        " bits. The paper has no entry here; Theorem I gives one."
    ),
    ("loglinear", "eva", "FAILS"): (
        "The cache grows, but only by one state per doubling of the prompt; n values still need n"
        " log2 n bits."
    ),
    ("loglinear", "twosum", "FAILS"): (
        "The cache grows by one state per doubling; the sets it must tell apart grow much faster."
    ),
    ("loglinear", "seqcomp", "FAILS"): (
        "The function that is needed last is read first; a state per doubling of the prompt does"
        " not hold it. The paper has no entry here; Theorem I gives one."
    ),
    ("sparse", "eva", "SOLVABLE"): (
        "Blocks are chosen by their pooled keys. Keys of address bits survive the pooling: pooled"
        " over a block, the address bits keep their high part, so the right block scores highest,"
        " and inside it the layer looks the answer up. The weights are written down and proved."
    ),
    ("sparse", "twosum", "FAILS"): (
        "Each block sends a short message, and the layer opens the few that look best. Two blocks"
        " with one message, one with the value that cancels the query and one without: where it is"
        " not opened, the answer is the same and one of the two is wrong."
    ),
    ("sparse", "seqcomp", "OPEN"): (
        "A sparse layer is a reading layer with a larger h. No theorem here speaks of as many"
        " reading layers as steps and one more; stacks of fewer sparse layers fail at the sizes"
        " that the verdicts on them name. The paper has no entry here."
    ),
    ("hybrid", "eva", "SOLVABLE"): (
        "A full head closes the gap that a linear one beside it leaves: the linear head may write"
        " nothing, and the full one looks the answer up."
    ),
    ("hybrid", "twosum", "SOLVABLE"): "One full head beside a linear one does what it does alone.",
    ("hybrid", "seqcomp", "FAILS"): (
        "Recurrent layers do not replace a full one: with L-1 full layers L steps fail at a finite"
        " n, whatever the weights. With L full layers a single recurrent layer before the first one"
        " saves the extra layer; that is another stack, which the full report builds."
    ),
}
"""(row, column, status) -> why it is so; told only where the theorems give that status."""

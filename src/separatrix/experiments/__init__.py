"""The experiments, a file each: what training finds, beside what is proved."""

from __future__ import annotations

from separatrix.errors import UnknownNameError
from separatrix.experiments.base import Experiment
from separatrix.experiments.capacity import Capacity
from separatrix.experiments.cot import ChainOfThought
from separatrix.experiments.depth import Depth
from separatrix.experiments.head_wise import HeadWise
from separatrix.experiments.length import Length
from separatrix.experiments.multi_layer_sparse import MultiLayerSparse
from separatrix.experiments.placement import Placement
from separatrix.experiments.ratio import Ratio
from separatrix.experiments.recurrence_ablation import RecurrenceAblation
from separatrix.experiments.shift import Shift
from separatrix.experiments.sparse_capacity import SparseCapacity
from separatrix.experiments.state_tracking import StateTracking
from separatrix.experiments.zoology import Zoology

_ALL: tuple[Experiment, ...] = (
    Capacity(),
    Depth(),
    Ratio(),
    Zoology(),
    Length(),
    Placement(),
    ChainOfThought(),
    RecurrenceAblation(),
    Shift(),
    StateTracking(),
    SparseCapacity(),
    MultiLayerSparse(),
    HeadWise(),
)
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}
"""Name -> experiment."""


def experiment(name: str) -> Experiment:
    """Raises UnknownNameError, suggesting the nearest name."""
    if name not in EXPERIMENTS:
        raise UnknownNameError.of(
            "experiment", name[:60], EXPERIMENTS, listing="separatrix experiment"
        )
    return EXPERIMENTS[name]

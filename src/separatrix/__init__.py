"""Separatrix: what a stack of attention layers provably cannot compute, what it provably can, and
where training ends up in between.

The public names load on first use, so that importing the package costs nothing and never imports
torch by itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from separatrix import tasks
    from separatrix.architecture import Architecture
    from separatrix.architecture.presets import preset
    from separatrix.architecture.resolve import resolve
    from separatrix.audits import audit
    from separatrix.cards import card
    from separatrix.checks import verify, verify_path
    from separatrix.constructions import construct
    from separatrix.errors import SeparatrixError
    from separatrix.evidence.records import Certificate, Construction, Measurement, Verdict
    from separatrix.exports import export
    from separatrix.model import Model, ModelConfig, build
    from separatrix.plugins import register_mechanism
    from separatrix.plugins.adapt import adapt
    from separatrix.report.html import write_report
    from separatrix.reproduce import reproduce_table
    from separatrix.searches import NotFound, refute
    from separatrix.sweeps.sweep import sweep
    from separatrix.tasks import parse_task
    from separatrix.theory import judge
    from separatrix.training.alone import train
    from separatrix.training.run import Run

__version__ = "0.1.0"

_HOMES = {
    "Architecture": "separatrix.architecture",
    "Certificate": "separatrix.evidence.records",
    "Construction": "separatrix.evidence.records",
    "Measurement": "separatrix.evidence.records",
    "Model": "separatrix.model",
    "ModelConfig": "separatrix.model",
    "NotFound": "separatrix.searches",
    "Run": "separatrix.training.run",
    "SeparatrixError": "separatrix.errors",
    "Verdict": "separatrix.evidence.records",
    "adapt": "separatrix.plugins.adapt",
    "audit": "separatrix.audits",
    "build": "separatrix.model",
    "card": "separatrix.cards",
    "construct": "separatrix.constructions",
    "export": "separatrix.exports",
    "judge": "separatrix.theory",
    "parse_task": "separatrix.tasks",
    "preset": "separatrix.architecture.presets",
    "refute": "separatrix.searches",
    "register_mechanism": "separatrix.plugins",
    "reproduce_table": "separatrix.reproduce",
    "resolve": "separatrix.architecture.resolve",
    "sweep": "separatrix.sweeps.sweep",
    "tasks": "separatrix.tasks",
    "train": "separatrix.training.alone",
    "verify": "separatrix.checks",
    "verify_path": "separatrix.checks",
    "write_report": "separatrix.report.html",
}

__all__ = [
    "Architecture",
    "Certificate",
    "Construction",
    "Measurement",
    "Model",
    "ModelConfig",
    "NotFound",
    "Run",
    "SeparatrixError",
    "Verdict",
    "adapt",
    "audit",
    "build",
    "card",
    "construct",
    "export",
    "judge",
    "parse_task",
    "preset",
    "refute",
    "register_mechanism",
    "reproduce_table",
    "resolve",
    "sweep",
    "tasks",
    "train",
    "verify",
    "verify_path",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'separatrix' has no attribute '{name}'")
    home = import_module(_HOMES[name])
    value = home if name == "tasks" else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])

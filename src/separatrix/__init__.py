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
    from separatrix.cards import card
    from separatrix.checks.refute import NotFound, refute
    from separatrix.checks.verify import verify
    from separatrix.cli.asked import analyze, compare, design, judge
    from separatrix.cli.constructed import construct
    from separatrix.cli.report.html import verify_path, write_report
    from separatrix.cli.reproduce import reproduce_table
    from separatrix.cli.trials import trial
    from separatrix.core.errors import SeparatrixError
    from separatrix.core.evidence.records import Certificate, Construction, Measurement, Verdict
    from separatrix.mixers.plugins import register_mechanism
    from separatrix.mixers.plugins.adapt import adapt
    from separatrix.mixers.plugins.monotone import MonotoneMixer
    from separatrix.models.model import Model, ModelConfig, build
    from separatrix.models.stored.run import Run
    from separatrix.stacks.architecture import Architecture
    from separatrix.stacks.architecture.resolve import preset, resolve
    from separatrix.tasks import parse_task
    from separatrix.tasks.audits import audit
    from separatrix.tasks.exports import export
    from separatrix.training.alone import train
    from separatrix.training.sweeps.sweep import sweep

__version__ = "0.1.0"

_HOMES = {
    "Architecture": "separatrix.stacks.architecture",
    "Certificate": "separatrix.core.evidence.records",
    "Construction": "separatrix.core.evidence.records",
    "Measurement": "separatrix.core.evidence.records",
    "Model": "separatrix.models.model",
    "ModelConfig": "separatrix.models.model",
    "MonotoneMixer": "separatrix.mixers.plugins.monotone",
    "NotFound": "separatrix.checks.refute",
    "Run": "separatrix.models.stored.run",
    "SeparatrixError": "separatrix.core.errors",
    "Verdict": "separatrix.core.evidence.records",
    "adapt": "separatrix.mixers.plugins.adapt",
    "analyze": "separatrix.cli.asked",
    "audit": "separatrix.tasks.audits",
    "build": "separatrix.models.model",
    "card": "separatrix.cards",
    "compare": "separatrix.cli.asked",
    "construct": "separatrix.cli.constructed",
    "design": "separatrix.cli.asked",
    "export": "separatrix.tasks.exports",
    "judge": "separatrix.cli.asked",
    "parse_task": "separatrix.tasks",
    "preset": "separatrix.stacks.architecture.resolve",
    "refute": "separatrix.checks.refute",
    "register_mechanism": "separatrix.mixers.plugins",
    "reproduce_table": "separatrix.cli.reproduce",
    "resolve": "separatrix.stacks.architecture.resolve",
    "sweep": "separatrix.training.sweeps.sweep",
    "tasks": "separatrix.tasks",
    "train": "separatrix.training.alone",
    "trial": "separatrix.cli.trials",
    "verify": "separatrix.checks.verify",
    "verify_path": "separatrix.cli.report.html",
    "write_report": "separatrix.cli.report.html",
}

__all__ = [
    "Architecture",
    "Certificate",
    "Construction",
    "Measurement",
    "Model",
    "ModelConfig",
    "MonotoneMixer",
    "NotFound",
    "Run",
    "SeparatrixError",
    "Verdict",
    "adapt",
    "analyze",
    "audit",
    "build",
    "card",
    "compare",
    "construct",
    "design",
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
    "trial",
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

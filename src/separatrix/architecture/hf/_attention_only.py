"""Families of softmax attention alone (full, sliding, chunked, latent, indexed, compressed), by `model_type` and by class."""

from __future__ import annotations

from separatrix.architecture.hf._family import Family

FAMILIES: dict[str, Family] = {}
"""`model_type` -> reader."""

CLASSES: dict[str, str] = {}
"""`architectures[0]` -> `model_type`, for files without one."""

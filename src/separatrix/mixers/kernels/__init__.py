"""Kernels of flash-linear-attention, where they run."""

from separatrix.mixers.kernels.backends import backend, chosen
from separatrix.mixers.kernels.fla import KERNELS

__all__ = ["KERNELS", "backend", "chosen"]

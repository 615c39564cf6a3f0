"""What makes a CPU quick: matrix products through oneDNN where they are as accurate as float32, one
thread, and memory that is kept for the next step.

`torch.set_float32_matmul_precision("medium")` lets PyTorch on CPUs take oneDNN's products. On some
CPUs those are float32 and quicker, on others bfloat16: what they are here is measured once.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch

_SHAPES = (((256, 64), (64, 64)), ((4, 256, 32), (4, 32, 64)), ((16, 64, 64), (16, 64, 64)))
"""Products that training takes: of matrices, and of stacks of them."""
_KEEP = {-3: 32 << 20, -1: (1 << 31) - 1, -2: 64 << 20}
"""mallopt's M_MMAP_THRESHOLD, M_TRIM_THRESHOLD and M_TOP_PAD in bytes: as large as they may be,
and growth by 64 MiB.
"""
_ACCURATE = 2e-6
"""Largest error of a float32 product over the largest number in it: 32 roundings."""


@contextmanager
def quick_cpu(device: str) -> Iterator[None]:
    """One thread, and on a CPU oneDNN's products where they are accurate; afterwards both are as
    they were. A process of one thread per core beats threads that wait for each other.
    """
    keep_memory()
    threads = torch.get_num_threads()
    precision = torch.get_float32_matmul_precision()
    if threads != 1:
        # sums are split among threads, so their number changes roundings
        torch.set_num_threads(1)
    try:
        if device == "cpu" and onednn_is_accurate():
            torch.set_float32_matmul_precision("medium")
        yield
    finally:
        torch.set_float32_matmul_precision(precision)
        if threads != 1:
            torch.set_num_threads(threads)


@cache
def keep_memory() -> None:
    """Tells the C library, where it is glibc, to keep what is freed for what is asked for next.

    A step asks for the same tensors of megabytes again and again. By default each would come from
    the system as new pages, filled with zeros: a quarter of a step's time.
    """
    if not sys.platform.startswith("linux"):
        return
    library = ctypes.CDLL(None)
    # musl has another allocator, and no such function
    if hasattr(library, "mallopt"):
        for option, size in _KEEP.items():
            library.mallopt(option, size)


@cache
def onednn_is_accurate() -> bool:
    """Whether products of float32 matrices through oneDNN are float32-accurate on this CPU,
    compared with float64.
    """
    precision = torch.get_float32_matmul_precision()
    generator = torch.Generator().manual_seed(0)
    try:
        torch.set_float32_matmul_precision("medium")
        for left, right in _SHAPES:
            a = torch.randn(left, generator=generator)
            b = torch.randn(right, generator=generator)
            exact = a.double() @ b.double()
            if not ((a @ b).double() - exact).abs().max() <= _ACCURATE * exact.abs().max():
                return False
    finally:
        torch.set_float32_matmul_precision(precision)
    return True

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
_TRIM_THRESHOLD = -1
_TOP_PAD = -2
_MMAP_THRESHOLD = -3
_MOST = (1 << 31) - 1
"""Options of mallopt, as glibc's malloc.h numbers them, and its largest number of bytes."""
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
    # sums are split among threads, so their number changes roundings
    torch.set_num_threads(1)
    try:
        if device == "cpu" and onednn_is_accurate():
            torch.set_float32_matmul_precision("medium")
        yield
    finally:
        torch.set_float32_matmul_precision(precision)
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
    if not hasattr(library, "mallopt"):
        return
    library.mallopt(_TRIM_THRESHOLD, _MOST)
    library.mallopt(_TOP_PAD, 64 << 20)
    # some versions take no more than half of a heap for the largest buffer that is kept
    if not library.mallopt(_MMAP_THRESHOLD, _MOST):
        library.mallopt(_MMAP_THRESHOLD, 32 << 20)


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

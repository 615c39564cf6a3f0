"""Sizes of stacks as Theorems III, IV and V name them, and the parameters of VII's corollary."""

from __future__ import annotations

from separatrix.theory.arguments import Sizes
from separatrix.theory.fails.many_proof import Parameters


def three(h: int, sigma_0: int, sigma_1: int, open_block: int = 0, lag: int = 0) -> Sizes:
    """One reading layer."""
    return Sizes((h,), (sigma_0, sigma_1), (open_block,), lag)


def four(h_1: int, h_2: int, sigma_1: int, sigma_2: int, open_2: int = 0) -> Sizes:
    """Two reading layers, nothing before or between them."""
    return Sizes((h_1, h_2), (0, sigma_1, sigma_2), (0, open_2))


def five(
    h_1: int, h_2: int, sigma_0: int, sigma_1: int, sigma_2: int, open_1: int = 0, open_2: int = 0
) -> Sizes:
    """Two reading layers."""
    return Sizes((h_1, h_2), (sigma_0, sigma_1, sigma_2), (open_1, open_2))


def closed_form(h: int) -> Parameters:
    """The corollary's parameters: three reading layers of at most h bits each, none bounded."""
    return Parameters(
        m=556 * h**6,
        n=(3 * h, 6 * h * h),
        part=278 * h**5,
        G=2 * h,
        g=3 * h,
        t=18 * h**3,
        x=18 * h**3,
        contents=(13 * h * h, 3 * h),
        y_1=95 * h**5,
        hit=(526 * h**8,),
        flags=(0, 0),
    )

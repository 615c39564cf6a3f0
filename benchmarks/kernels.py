"""flash-linear-attention's kernels against our chunked forms on a CUDA device, forward and backward
together: medians of interleaved rounds, the largest differences, and the traffic that a form cannot
do without per second, against the device's memory bandwidth. A Markdown table.

Recurrences alone, without projections, as the mixers call them: queries, keys and values of a
bfloat16 layer, gates in float32. The kernels multiply bfloat16, our forms float32. Least traffic:
inputs read forwards and backwards, their gradients written, outputs written and their gradients
read; what a form keeps between chunks is not counted.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from separatrix.mixers import backend, linear, loglinear
from separatrix.mixers.base.recurrent import unit
from separatrix.mixers.kernels import chosen, missing
from separatrix.mixers.ops import decay, delta_rule, scan
from separatrix.mixers.rwkv import DECAY

BATCH = 1
HEADS = 16
DIM = 64
LENGTHS = (2_048, 8_192, 32_768)
WARM_UPS = 3
ROUNDS = 11
CHUNK = 64
COPIED = 1 << 30
Form = Callable[..., Tensor]


def inputs(kind: str, tokens: int) -> dict[str, Tensor]:
    """Tensors (b h t .) with gradients, in the format the recurrence takes them in."""
    generator = torch.Generator("cuda").manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, device="cuda")

    shape = (BATCH, HEADS, tokens)
    q, k, v = (normal(*shape, DIM) for _ in range(3))
    each = -F.softplus(normal(*shape, DIM) - 3)
    one = -F.softplus(normal(*shape, 1) - 3)
    b = normal(*shape, 1).sigmoid()
    short = unit(k)
    match kind:
        case "linear":
            found = {"q": q, "k": k, "v": v}
        case "decay":
            found = {"q": q, "k": k, "v": v, "log_a": one}
        case "decay per dimension":
            found = {"q": q, "k": k, "v": v, "log_a": each}
        case "delta":
            found = {"q": unit(q), "k": short, "v": v, "log_a": one, "b": b}
        case "delta per dimension":
            found = {"q": unit(q), "k": short, "v": v, "log_a": each, "b": b}
        case "low rank":
            bounded = DECAY * normal(*shape, DIM).sigmoid()
            found = {
                "q": q,
                "k": k,
                "v": v,
                "log_a": bounded,
                "r": -short,
                "s": short * normal(*shape, DIM).sigmoid(),
            }
        case "channels":
            found = {
                "log_a": each.transpose(1, 2).flatten(2),
                "added": v.transpose(1, 2).flatten(2),
            }
        case "levels":
            found = {
                "q": q,
                "k": k,
                "v": v,
                "weights": F.softplus(normal(*shape, (tokens - 1).bit_length() + 1)),
            }
        case _:
            raise ValueError(kind)
    return {name: x.contiguous().requires_grad_() for name, x in found.items()}


def summed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return linear.chunked("identity", q, k, v, chunk=CHUNK)


def decayed(q: Tensor, k: Tensor, v: Tensor, log_a: Tensor) -> Tensor:
    return decay.decayed(q, k, v, log_a, chunk=CHUNK)


def overwritten(q: Tensor, k: Tensor, v: Tensor, log_a: Tensor, b: Tensor) -> Tensor:
    return delta_rule.Delta(k, v, log_a, b, q, chunk=CHUNK).outputs()


def low_rank(*tensors: Tensor) -> Tensor:
    return delta_rule.low_rank(*tensors, chunk=CHUNK, least=DECAY)


def scanned(log_a: Tensor, added: Tensor) -> Tensor:
    return scan.scan(log_a, added, chunk=CHUNK)


def levelled(q: Tensor, k: Tensor, v: Tensor, weights: Tensor) -> Tensor:
    return loglinear.fenwick("identity", q, k, v, weights, chunk=CHUNK)


CASES: dict[str, tuple[str, str, Form, tuple[Any, ...]]] = {
    # mechanisms: (kernel, inputs, our form, further arguments of the kernel)
    "linear": ("linear", "linear", summed, (None,)),
    "lightning, retnet, mamba2": ("simple_gla", "decay", decayed, ()),
    "gla, hgrn2": ("gla", "decay per dimension", decayed, ()),
    "deltanet, gdn, deltaproduct": ("gated_delta_rule", "delta", overwritten, ()),
    "kda": ("kda", "delta per dimension", overwritten, ()),
    "rwkv": ("rwkv7", "low rank", low_rank, ()),
    "rglru": ("hgrn", "channels", scanned, ()),
    "loglinear": ("log_linear", "levels", levelled, ()),
}


def run(
    form: Form, tensors: dict[str, Tensor], further: tuple[Any, ...]
) -> tuple[list[Tensor], float]:
    """Outputs and gradients, and milliseconds."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    y = form(*tensors.values(), *further)
    gradients = torch.autograd.grad(y, list(tensors.values()), torch.ones_like(y))
    end.record()
    torch.cuda.synchronize()
    return [y.detach(), *gradients], start.elapsed_time(end)


def copying() -> float:
    """Bytes per second that a copy reads and writes: the bandwidth one can reach."""
    x = torch.empty(COPIED, dtype=torch.uint8, device="cuda")
    y = torch.empty_like(x)
    times = []
    for _ in range(WARM_UPS + ROUNDS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        y.copy_(x)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return 2 * COPIED / (statistics.median(times[WARM_UPS:]) / 1e3)


def peak() -> float | None:
    """Bytes per second by the memory's clock and width, where the driver tells them."""
    device = torch.cuda.get_device_properties(0)
    clock = getattr(device, "memory_clock_rate", 0)
    width = getattr(device, "memory_bus_width", 0)
    return 2 * clock * 1e3 * width / 8 or None


def row(name: str, tokens: int, most: float) -> str:
    kernel, kind, ours, further = CASES[name]
    tensors = inputs(kind, tokens)
    values = list(tensors.values())
    k, v = (values[1], values[2]) if len(values) > 2 else (values[0][:, None], values[1][:, None])
    with backend("fla"):
        theirs = chosen(kernel, k, v, torch.bfloat16)
    assert theirs is not None
    times: tuple[list[float], list[float]] = ([], [])
    results: list[list[Tensor]] = [[], []]
    for _ in range(WARM_UPS + ROUNDS):
        for i, (form, more) in enumerate(((theirs, further), (ours, ()))):
            results[i], spent = run(form, tensors, more)
            times[i].append(spent)
    fla, torch_ = (statistics.median(spent[WARM_UPS:]) for spent in times)
    output = results[0][0]
    gradients = results[0][1:]
    width = 4 if kernel == "hgrn" else 2
    wide = {"log_a", "b", "weights"}
    read = sum(x.numel() * (4 if name in wide else width) for name, x in tensors.items())
    traffic = 3 * read + 2 * output.numel() * width
    gaps = [float((a - b).abs().max() / b.abs().max()) for a, b in zip(*results, strict=True)]
    assert len(gradients) == len(gaps) - 1
    rate = traffic / (fla / 1e3)
    return (
        f"| {name} | {tokens:,} | {fla:.2f} | {torch_:.2f} | {torch_ / fla:.1f} | {gaps[0]:.1e} |"
        f" {max(gaps[1:]):.1e} | {rate / 1e9:,.0f} | {rate / most:.0%} |"
    )


def main() -> int:
    if not torch.cuda.is_available():
        print("benchmarks/kernels.py: no CUDA device here; nothing was measured.")
        return 0
    if missing() is not None:
        print(f"benchmarks/kernels.py: {missing()}")
        return 1
    copied = copying()
    told = peak()
    most = told or copied
    print(
        f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, batch {BATCH}, {HEADS} heads"
        f" of {DIM} numbers, bfloat16."
    )
    print(
        f"Memory: {'unknown' if told is None else f'{told / 1e9:,.0f}'} GB/s by its clock,"
        f" {copied / 1e9:,.0f} GB/s in a copy.\n"
    )
    print(
        "| mechanism | tokens | fla, ms | ours, ms | ratio | outputs differ by | gradients differ"
        " by | GB/s | of the bandwidth |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in CASES:
        for tokens in LENGTHS:
            try:
                print(row(name, tokens, most), flush=True)
            except Exception as error:  # one that fails must not hide the rest
                print(
                    f"| {name} | {tokens:,} | {type(error).__name__}:"
                    f" {' '.join(str(error).split())[:80]} | | | | | | |",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())

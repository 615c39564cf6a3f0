"""How many floating-point operations a forward pass over one prompt takes, from declared sizes;
needs no torch.

A multiply-add counts 2. Per prompt of T tokens, with the start token T + 1:

    maps     2 for each weight of a mixer's maps, token by token
    mixing   what mechanisms declare (`Mechanism.flops`), their convolutions included
    mlp      4 width hidden for each layer and token
    head     2 width answers for each token of the prompt

Looking embeddings up, norms, softmaxes and activations are not counted. Every token goes through
every layer here, as in other people's counts: a trainer that skips what nothing asks for does less.
"""

from __future__ import annotations

from functools import lru_cache

from separatrix.models.stored.run import Run
from separatrix.stacks.mechanisms import Mechanism


def forward_flops(run: Run, parameters: int) -> int:
    """Of one prompt of the run's task, by a model of so many parameters."""
    task, stack = run.trained, run.stack
    tokens = task.length + 1
    parts = [(part, times) for layer, times in stack.counted() for part in layer]
    convolved = sum(_convolution_weights(part) * times for part, times in parts)
    maps = 2 * (parameters - _beside_mixers(run) - convolved) * tokens
    mixing = sum(_mixing(part, tokens) * times for part, times in parts)
    mlp = 4 * run.width * run.hidden * len(stack) * tokens
    return maps + mixing + mlp + 2 * run.width * task.answers * task.length


def _beside_mixers(run: Run) -> int:
    """Parameters of embeddings, norms, MLPs and head."""
    task = run.trained
    width = run.width
    layers = len(run.stack)
    places = run.length + 1 if run.stack.positions == "embedded" else 0
    mlp = 2 * width * run.hidden + run.hidden + width if run.hidden else 0
    norms = (2 * layers + 1) * width
    head = (width + 1) * task.answers
    return (task.vocabulary + 1 + places) * width + layers * mlp + norms + head


def _convolution_weights(part: Mechanism) -> int:
    """Of a short convolution, which carries all inputs of its kernel but the last."""
    kernel = part.sizes().get("conv", 0)
    if kernel < 2:
        return 0
    carried = [item.bits for item in part.cache(kernel) if item.kind == "convolution"]
    return sum(bits.numbers for bits in carried) // (kernel - 1) * kernel


@lru_cache(maxsize=1024)
def _mixing(part: Mechanism, tokens: int) -> int:
    """Of all tokens, the first seeing itself alone."""
    if not part.mixes_tokens:
        return 0
    if part.grows_as_told:
        return part.work().total(tokens)
    return sum(part.flops(t) for t in range(1, tokens + 1))

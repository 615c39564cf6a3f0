"""What is known, from declared sizes alone, of stacks that no model can be trained of."""

from __future__ import annotations

from separatrix.core.errors import SizeError
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Mechanism


def check_stack(stack: Architecture, *, width: int, prompt: int) -> None:
    """Raises SizeError for a stack that cannot be trained in a model of that width on prompts of at
    most `prompt` tokens, naming the layer, the numbers and the remedy.
    """
    if stack.positions not in ("embedded", "none"):
        raise SizeError(
            f"positions={stack.positions}: such a stack can be judged, but not trained; take"
            " positions=embedded or positions=none"
        )
    for layer, _ in stack.counted():
        for part in layer:
            _check_part(part, width, prompt)


def _check_part(part: Mechanism, width: int, prompt: int) -> None:
    if part.declared_only and part.mixes_tokens:
        raise SizeError(
            f"'{part.name}' has declared sizes but no mixer: it can be judged, but not trained"
        )
    needed = part.model_width
    if needed is not None and needed != width:
        raise SizeError(
            f"{part.name} is made for models {needed:,} wide, but width={width:,}; set"
            f" width={needed} for the run, or {part.name}(width={width})"
        )
    size = part.varied_sizes().get("window", "window")
    window = part.sizes().get(size) or 0
    if window > prompt:
        raise SizeError(
            f"{part.name}: {size}={window:,} is longer than the longest prompt, {prompt:,} tokens;"
            f" take {size}={prompt} or less, or attention without a window"
        )

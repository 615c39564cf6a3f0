"""c-gram retrieval in one plain full layer behind a layer of short convolutions [Wen25].

B = ceil(log2 V) bits for a letter, +-1, lowest first; s = 4. No place is asked for, and none is
known: positions hold nothing.

    space      width   token t
    letter     B       bits of t
    one        1       1
    before     c B     0; the short convolution writes the letters 1, ..., c tokens back
    fetched    B       written by attention
    answer     B       written by the MLP

The head at the last place n - 1, whose last c letters are g_1, ..., g_c, the last one first:

    Q x_{n-1}  = s (g_1, ..., g_c)             its own letter, and those 1, ..., c - 1 tokens back
    K x_j      = s (letters 1, ..., c back)
    V x_j      = letter

    score(j) = s^2 (c B - 2 hamming), over the letters that stand before j

Letters that are missing before the first tokens are 0. The task promises one place where all agree.
"""

from __future__ import annotations

from separatrix.constructions.lookups import Moved, write_taps
from separatrix.constructions.parts.built import recipe
from separatrix.constructions.parts.placement import (
    SCALE,
    empty_model,
    fits,
    mlp_after,
)
from separatrix.constructions.parts.readers import Reader
from separatrix.constructions.parts.spaces import Spaces, signs, threshold
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.stacks.architecture import Architecture, stack
from separatrix.stacks.mechanisms import Full, ShortConvolution
from separatrix.tasks import CGram
from separatrix.theory.written import bits_for, slots


@recipe(
    "cgram",
    CGram,
    theorem="last-layer",
    takes=(
        "one full layer with c ceil(log2 V) key and ceil(log2 V) value dimensions, behind a layer"
        " of short convolutions with conv >= c + 1 and as many channels as key dimensions"
    ),
)
def cgram(task: CGram, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """A short convolution and one plain full layer."""
    fits(task, arithmetic)
    bits = bits_for(task.V)
    dims = task.c * bits
    if architecture is None:
        taps = ShortConvolution(width=dims, conv=task.c + 1)
        architecture = stack([taps, Full(heads=1, head_dim=dims)])
    tap, place = (slot.place for slot in slots("cgram", task, architecture))
    space = Spaces(letter=bits, one=1, before=dims, fetched=bits, answer=bits)
    model = empty_model(task, architecture, width=space.width, hidden=2 * bits, placed=False)
    model.embed.weight[:, space["letter"]] = signs(task.V, bits)
    model.embed.weight[:, space["one"]] = 1.0
    start = space["before"].start
    before = [slice(start + bits * back, start + bits * (back + 1)) for back in range(task.c)]
    moved = [Moved(space["letter"], target, back) for back, target in enumerate(before, 1)]
    write_taps(model, tap, space["one"], moved)
    Reader(place).write(
        model,
        query=[(one, SCALE) for one in (space["letter"], *before[:-1])],
        key=[(one, SCALE) for one in before],
        value=[(space["letter"], 1.0)],
        target=space["fetched"],
    )
    threshold(mlp_after(model, place), space["fetched"], space["answer"])
    model.head.weight[:, space["answer"]] = signs(task.answers, bits)
    return model

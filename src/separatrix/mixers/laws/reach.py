"""The law on how far back a layer reads, and what passes beyond: Theorem R rests on it."""

from __future__ import annotations

import torch

from separatrix.mixers import Mixer
from separatrix.mixers.base.mixer import BUFFERS
from separatrix.mixers.laws.tools import demand, inputs

CUT = 9
"""Tokens before the cut, no border of a chunk of 2, 4 or 8."""
AFTER = 3
"""Outputs that are looked at beyond the reach."""


@torch.no_grad()
def forgets(mixer: Mixer) -> None:
    """Two inputs differ in their first 9 tokens, and one is given the other's recurrent state where
    the mechanism hands it over. Beyond the reach that the mechanism declares, their outputs are
    then equal bit for bit, and not one token earlier; the state has as many numbers as declared.
    """
    reach = mixer.mechanism.reach
    if reach is None or mixer.mechanism.origin:
        return
    handed = reach.handed(CUT)
    beyond = reach.beyond(CUT)
    ours = inputs(mixer, 1, beyond + AFTER, seed=91)
    theirs = torch.cat([inputs(mixer, 1, CUT, seed=92), ours[:, CUT:]], 1)
    one = mixer.init_state(1)
    other = mixer.init_state(1)
    for t in range(beyond + AFTER):
        y, one = mixer.step(ours[:, t], one, t)
        z, other = mixer.step(theirs[:, t], other, t)
        if t + 1 == handed:
            states = {name: x.clone() for name, x in one.items() if name not in BUFFERS}
            found = sum(x.numel() for x in states.values())
            wanted = mixer.mechanism.handed_over(handed).numbers
            demand(
                found == wanted,
                f"after {handed} tokens the recurrent state holds {found:,} numbers; {wanted:,} are"
                " declared to be handed over",
            )
            other = other | states
        if t + 1 == beyond:
            demand(
                not torch.equal(y, z),
                f"{beyond - CUT} tokens behind the cut are declared to be within reach, and the"
                " last of them sees nothing of what stands before it",
            )
        demand(
            t < beyond or torch.equal(y, z),
            f"{t + 1 - CUT} tokens behind a cut an output still depends on what stands before it,"
            f" though states are equal; the declared reach is {beyond - CUT}",
        )

"""A token mixer of your own: moving averages with learned decays, several per channel.

    m_i = a m_{i-1} + (1 - a) V x_i,   y_i = O m_i,   a = sigmoid(s) in (0, 1), one per average

Check it with `separatrix check-mechanism examples/my_mixer.py:MyMixer`, see what it cannot do with
`separatrix analyze "my_mixer*4" --import examples/my_mixer.py`; docs/own-mixer.md tells the rest.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import separatrix as sx


@sx.register_mechanism(title="moving averages", source="this example")
class MyMixer(nn.Module):
    """m_i = a m_{i-1} + (1 - a) V x_i, y_i = O m_i, with a learned decay a for each of width *
    averages averages.
    """

    def __init__(self, width: int, *, averages: int = 2) -> None:
        super().__init__()
        self.v = nn.Linear(width, width * averages, bias=False)
        self.o = nn.Linear(width * averages, width, bias=False)
        self.s = nn.Parameter(torch.linspace(-2, 4, width * averages))

    @staticmethod
    def cache_numbers(t: int, *, width: int, averages: int) -> int:
        """Numbers kept after t tokens; optional here, since it can be measured: it does not
        grow.
        """
        return width * averages

    def init_state(self, batch: int) -> dict[str, Tensor]:
        return {"m": torch.zeros(batch, len(self.s))}

    def step(self, x: Tensor, state: dict[str, Tensor], t: int) -> tuple[Tensor, dict[str, Tensor]]:
        a = self.s.sigmoid()
        m = a * state["m"] + (1 - a) * self.v(x)
        return self.o(m), {"m": m}

    def forward(self, x: Tensor) -> Tensor:
        """Sums over 2, 4, 8, ... tokens: after k doublings m holds the last 2^k terms of a sum over
        j of a^j (1 - a) V x_{i-j}.
        """
        a = self.s.sigmoid()
        m, reach = (1 - a) * self.v(x), 1
        while reach < x.shape[1]:
            m = m + a**reach * F.pad(m, (0, 0, reach, 0))[:, : x.shape[1]]
            reach *= 2
        return self.o(m)

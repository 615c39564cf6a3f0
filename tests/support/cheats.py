"""Mixers that are not what they say, each in one way that a single law sees; and the honest one
beneath them.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

State = dict[str, Tensor]


class Sums(nn.Module):
    """y_i = O sum_{j<=i} V x_j, honest."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.v = nn.Linear(width, width, bias=False)
        self.o = nn.Linear(width, width, bias=False)

    def init_state(self, batch: int) -> State:
        return {"S": torch.zeros(batch, self.width)}

    def forward(self, x: Tensor) -> Tensor:
        return self.o(self.v(x).cumsum(1))

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        total = state["S"] + self.v(x)
        return self.o(total), {"S": total}


class RowsSeeEachOther(Sums):
    """Every row also sees the mean of the batch, in both forms."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + 0.1 * x.mean(0, keepdim=True)

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, state = super().step(x, state, t)
        return y + 0.1 * x.mean(0, keepdim=True), state


class LeaksInFloat32(Sums):
    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y + 0.1 * x.mean(1, keepdim=True) if x.dtype == torch.float32 else y


class LeaksWhenLong(Sums):
    """Beyond 512 tokens every output sees the mean of all tokens."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y + 0.1 * x.mean(1, keepdim=True) if x.shape[1] > 512 else y


class WrongStepWhenLong(Sums):
    """Right for 210 tokens."""

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, state = super().step(x, state, t)
        return (1.01 if t > 210 else 1.0) * y, state


class SharedWrongBackward(Sums):
    """Both forms have half of the true gradient by the input."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward((x + x.detach()) / 2)

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        return super().step((x + x.detach()) / 2, state, t)


class SummaryOnSelf(Sums):
    """The state sums the last block of 128 tokens; the blocks before it are summed on self."""

    past: Tensor

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        now = state["S"] + self.v(x)
        before = self.past if t >= 128 else torch.zeros_like(now)
        y = self.o(before + now)
        if (t + 1) % 128 == 0:
            self.past = before + now
            now = torch.zeros_like(now)
        return y, {"S": now}


class WrongFromTheFifthRow(Sums):
    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return torch.cat([y[:4], 1.1 * y[4:]])

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, state = super().step(x, state, t)
        return torch.cat([y[:4], 1.1 * y[4:]]), state


class GrowsLate(Sums):
    """Keeps every token from the 2,000th on, and declares nothing."""

    def init_state(self, batch: int) -> State:
        return super().init_state(batch) | {"late": torch.zeros(batch, 0, self.width)}

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, new = super().step(x, state, t)
        late = state["late"]
        return y, new | {"late": torch.cat([late, x[:, None]], 1) if t >= 2000 else late}


SEVEN: dict[type[Sums], str] = {
    RowsSeeEachOther: "rows",
    LeaksInFloat32: "formats",
    LeaksWhenLong: "causal",
    WrongStepWhenLong: "step=forward",
    SharedWrongBackward: "derivatives",
    SummaryOnSelf: "alone",
    WrongFromTheFifthRow: "rows",
    GrowsLate: "cache",
}
"""A law that catches each."""


class OverwritesNothingButKeeps(Sums):
    """The input itself is a part of the state."""

    def init_state(self, batch: int) -> State:
        return super().init_state(batch) | {"x": torch.zeros(batch, 1, self.width)}

    def forward(self, x: Tensor) -> Tensor:
        before = torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1)
        return super().forward(x) + before

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, new = super().step(x, state, t)
        return y + state["x"][:, 0], new | {"x": x[:, None]}


class KeepsALargerTensor(OverwritesNothingButKeeps):
    """The state is a view of twice the memory."""

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, new = super().step(x, state, t)
        return y, new | {"x": torch.stack([x, x], 1)[:, 1:]}


class WritesInPlace(Sums):
    """Changes the state that it is given."""

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        if x.requires_grad or torch.is_grad_enabled():
            return super().step(x, state, t)
        state["S"] += self.v(x)
        return self.o(state["S"]), {"S": state["S"].clone()}


class SmuggledBehindTheView(Sums):
    """Its state is empty: it reads the tokens before from the memory behind its input."""

    def init_state(self, batch: int) -> State:
        return {}

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        base = x._base
        if base is None or base.dim() != 3 or base.shape[1] <= t:
            return self.o(self.v(x)), {}
        return self.o(self.v(base[:, : t + 1].sum(1))), {}


class InAClosure(Sums):
    """The sum is in a closure of the step, the state is a zero."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        kept: dict[str, Tensor] = {}

        def add(v: Tensor, t: int) -> Tensor:
            kept["sum"] = v + (kept["sum"] if t else 0)
            return kept["sum"]

        self.add = add

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        return self.o(self.add(self.v(x), t)), state


class InAList(Sums):
    """The tokens stand in a list on self."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.tokens: list[Tensor] = []

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        self.tokens = [*self.tokens[:t], self.v(x)]
        return self.o(torch.stack(self.tokens).sum(0)), state


class InABuffer(Sums):
    """The sum is in a buffer that no file holds."""

    kept: Tensor

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.register_buffer("kept", torch.zeros(()), persistent=False)

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        self.kept = self.v(x) + (self.kept if t else 0)
        return self.o(self.kept), state


class InAGlobalTable(Sums):
    """The state is a key to a table of sums that all mixers of the process share: one number per
    row instead of a vector.
    """

    TABLE: ClassVar[dict[float, Tensor]] = {}

    def init_state(self, batch: int) -> State:
        return {"key": torch.zeros(batch, 1)}

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        if x.device.type == "meta" or torch._C._are_functorch_transforms_active():
            return self.o(self.v(x)), {"key": state["key"] * 1}
        keys = state["key"][:, 0].tolist()
        zero = torch.zeros_like(x[0])
        total = torch.stack([self.TABLE.get(key, zero) if t else zero for key in keys]) + self.v(x)
        new = total.detach().sum(1)
        for key, row in zip(new.tolist(), total, strict=True):
            self.TABLE[key] = row
        return self.o(total), {"key": new[:, None]}


class InTheRandomNumbers(Sums):
    """One number of each row is carried in the seed of PyTorch's generator."""

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, state = super().step(x, state, t)
        torch.manual_seed(t)
        return y, state


class DroppedAtAnOddCut(Sums):
    """Knows where it was called last, and goes wrong where it is continued at an odd place."""

    last: int = -1

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        moved = t > 100 and self.last != t - 1 and t % 2 == 1
        self.last = t
        return super().step(1.5 * x if moved else x, state, t)


class NoiseOfTheContent(Sums):
    """Noise that its content seeds: the same in both forms, and no function that has slopes."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x + self._noise(x))

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        return super().step(x + self._noise(x), state, t)

    def _noise(self, x: Tensor) -> Tensor:
        return 0.01 * (1e6 * x.detach()).sin()


class OfTheLength(Sums):
    """Outputs beyond 300 tokens are divided by how many there will be."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y / x.shape[1] if x.shape[1] > 300 else y


class OfTheFormat(Sums):
    """Another function in bfloat16, in both forms."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(-x if x.dtype == torch.bfloat16 else x)

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        return super().step(-x if x.dtype == torch.bfloat16 else x, state, t)


class OfGradients(Sums):
    """Another function where gradients are taken, in both forms."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(2 * x if x.requires_grad else x)

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        return super().step(2 * x if x.requires_grad else x, state, t)


class OfABatchOfOne(Sums):
    """Sees ahead where it has the batch to itself and no gradients are taken."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y + 0.1 * x[:, :1] if len(x) == 1 and not torch.is_grad_enabled() else y


class NormOverTime(Sums):
    """Divides by the deviation over all tokens, in train mode only."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y / y.std(1, keepdim=True) if self.training else y


class NormOverRows(Sums):
    """A batch norm in train mode."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y - y.mean(0, keepdim=True) if self.training else y


class WrongStepInFloat32(Sums):
    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, state = super().step(x, state, t)
        return y * 1.01 if x.dtype == torch.float32 else y, state


class LooksAheadAtMultiples(Sums):
    """A sequence of a multiple of 256 tokens sees its end."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y + 0.1 * x[:, -1:] if x.shape[1] % 256 == 0 else y


class InBatchesOfThree(Sums):
    """Rows see each other where there are three of them, in both forms."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y + 0.1 * x.mean(0, keepdim=True) if len(x) == 3 else y

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, state = super().step(x, state, t)
        return y + 0.1 * x.mean(0, keepdim=True) if len(x) == 3 else y, state


class RowsOfTwoInTraining(Sums):
    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y + x.flip(0) if self.training and len(x) == 2 else y


class LeaksInFloat32WhenLong(Sums):
    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        far = x.dtype == torch.float32 and x.shape[1] > 200
        return y + 0.1 * x.mean(1, keepdim=True) if far else y


class WrongStepInFloat32WhenLong(Sums):
    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        y, state = super().step(x, state, t)
        return y * 1.5 if x.dtype == torch.float32 and t >= 200 else y, state


class SharedWrongBackwardOfTwo(Sums):
    """Half of the gradient by the input, in batches of two, in both forms."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward((x + x.detach()) / 2 if len(x) == 2 else x)

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        return super().step((x + x.detach()) / 2 if len(x) == 2 else x, state, t)


class OfInferenceMode(Sums):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(2 * x if torch.is_inference_mode_enabled() else x)


class LongNormOverTime(Sums):
    """Divides by the deviation over all tokens, in train mode and beyond 130 of them."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y / y.std(1, keepdim=True) if self.training and x.shape[1] > 130 else y


class InATableWhenLong(Sums):
    """From 300 tokens on, the sums stand in a table that all mixers of the process share."""

    TABLE: ClassVar[dict[int, Tensor]] = {}

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        before = self.TABLE.get(t - 1, state["S"]) if t >= 300 else state["S"]
        total = before + self.v(x)
        self.TABLE[t] = total
        return self.o(total), {"S": total if t < 299 else torch.zeros_like(total)}


class PacksTwoInOne(Sums):
    """Half as many numbers: two of them in the digits of one float64, which float32 has not."""

    def init_state(self, batch: int) -> State:
        return {"S": torch.zeros(batch, self.width // 2)}

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        packed = state["S"]
        high = (packed * 2**12).round() / 2**12
        low = (packed - high) * 2**24
        total = torch.cat([high, low], 1) + self.v(x)
        high, low = (total * 2**12).round().chunk(2, 1)
        return self.o(total), {"S": high / 2**12 + low / 2**36}


class WrongGradientInFloat32(Sums):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward((x + x.detach()) / 2 if x.dtype == torch.float32 else x)


class WrongBackwardWhenLong(Sums):
    """The gradient of the step forgets what is older than 300 tokens."""

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        kept = {name: s.detach() for name, s in state.items()} if t == 300 else state
        return super().step(x, kept, t)


class WrongForLargeInputs(Sums):
    """Inputs beyond 20 are cut off by the step."""

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        return super().step(x.clamp(-20, 20), state, t)


class ClearedByNaN(Sums):
    """NaN in the state is taken for a sign to forget."""

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        return super().step(x, {"S": state["S"].nan_to_num()}, t)


class OneLength(Sums):
    """Wrong at 777 tokens, and nowhere else."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * (2.0 if x.shape[1] == 777 else 1.0)


class GrowsVeryLate(GrowsLate):
    """From 5,000 tokens on."""

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        return super().step(x, state, 0 if t < 5000 else 2000)


FURTHER: dict[type[Sums], str] = {
    OverwritesNothingButKeeps: "given",
    KeepsALargerTensor: "given",
    WritesInPlace: "given",
    SmuggledBehindTheView: "step=forward",
    InAClosure: "alone",
    InAList: "alone",
    InABuffer: "alone",
    InAGlobalTable: "fed",
    InTheRandomNumbers: "alone",
    DroppedAtAnOddCut: "fed",
    NoiseOfTheContent: "derivatives",
    OfTheLength: "step=forward",
    OfTheFormat: "formats",
    OfGradients: "alone",
    OfABatchOfOne: "rows",
    NormOverTime: "causal",
    NormOverRows: "rows",
    WrongStepInFloat32: "formats",
    LooksAheadAtMultiples: "causal",
    PacksTwoInOne: "step=forward",
    WrongGradientInFloat32: "formats",
    WrongBackwardWhenLong: "step=forward",
    WrongForLargeInputs: "fed",
    InBatchesOfThree: "rows",
    RowsOfTwoInTraining: "rows",
    LeaksInFloat32WhenLong: "formats",
    WrongStepInFloat32WhenLong: "formats",
    SharedWrongBackwardOfTwo: "derivatives",
    OfInferenceMode: "alone",
    LongNormOverTime: "causal",
    InATableWhenLong: "fed",
}
"""A law that catches each."""
UNSEEN: tuple[type[Sums], ...] = (ClearedByNaN, OneLength, GrowsVeryLate)
"""What no law sees; docs/own-mixer.md says so."""


def made(cls: type[Sums], width: int = 4) -> Any:
    """A drawn mixer of the class."""
    from separatrix.mixers.laws import drawn
    from separatrix.mixers.plugins import OwnMixer, own_mechanism

    return drawn(OwnMixer(own_mechanism(cls)(width=width), width=width))

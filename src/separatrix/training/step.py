"""One step of training for all members of a pack: losses, clipped gradients, optimisers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from separatrix.training.muon import Muon
from separatrix.training.run import Run
from separatrix.training.stacked import Forward, Loss
from separatrix.training.stream import Prompts

BETAS = (0.9, 0.98)
_EPS = 1e-8


class AdamW:
    """AdamW for several models at once: the running moments of parameters (members, numbers), of
    which the first `decayed` decay, each model with a learning rate and a weight decay of its own.

        m = b_1 m + (1 - b_1) g,   v = b_2 v + (1 - b_2) g^2
        p = p - rate (decay p + (m / (1 - b_1^t)) / (sqrt(v / (1 - b_2^t)) + eps))

    Source: Loshchilov and Hutter 2019, arXiv 1711.05101. `torch.optim.AdamW` has one rate for all
    models of a stack; tests compare both, model by model.
    """

    def __init__(self, parameters: Tensor, decayed: int) -> None:
        self.decayed = decayed
        self.first = torch.zeros_like(parameters)
        self.second = torch.zeros_like(parameters)

    @staticmethod
    def corrections(step: int) -> tuple[float, float]:
        """1 / (1 - b_1^t) and sqrt(1 - b_2^t) of step t, which counts from 1."""
        return 1 / (1 - BETAS[0] ** step), (1 - BETAS[1] ** step) ** 0.5

    @torch.no_grad()
    def step(
        self, parameters: Tensor, gradient: Tensor, rates: Tensor, decay: Tensor, clock: Tensor
    ) -> None:
        """One step in place. `rates` and `decay` (members, 1): learning rate, and its product with
        the weight decay; `clock` (2,) holds `corrections`.
        """
        self.first.lerp_(gradient, 1 - BETAS[0])
        self.second.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        # sqrt(v) + eps c instead of sqrt(v)/c + eps: the same quotient, a pass less
        lower = self.second.sqrt().add_(clock[1] * _EPS)
        change = torch.div(self.first, lower, out=lower).mul_(rates * (clock[0] * clock[1]))
        parameters[:, : self.decayed].mul_(1 - decay)
        parameters.sub_(change)


_BEFORE = 3
"""Steps of one shape that run as usual before one is recorded: libraries set themselves up then."""
Function = Callable[..., tuple[Tensor, ...]]


class Captured:
    """A function of tensors (None where there is none) that runs as CUDA graphs, one for each shape
    of its inputs, once it has run a few times. A step of small models is hundreds of small kernels,
    and starting them from Python takes longer than they run.

    The function may change tensors in place, those of its own that it keeps from call to call, and
    must not wait for a number. What cannot be recorded runs as usual.
    """

    def __init__(self, function: Function) -> None:
        self._function = function
        self._runs: dict[tuple[object, ...], int] = {}
        self._graphs: dict[tuple[object, ...], _Recorded] = {}
        self._records = True

    def __call__(self, *inputs: Tensor | None) -> tuple[Tensor, ...]:
        """The function's outputs. Those of a recorded step are overwritten by the next one."""
        if not self._records:
            return self._function(*inputs)
        shape = tuple(None if part is None else part.shape for part in inputs)
        if shape in self._graphs:
            return self._graphs[shape](*inputs)
        self._runs[shape] = self._runs.get(shape, 0) + 1
        if self._runs[shape] <= _BEFORE:
            return self._function(*inputs)
        try:
            self._graphs[shape] = _Recorded(self._function, inputs)
        except torch.cuda.OutOfMemoryError:
            raise
        except RuntimeError as error:
            self._records = False
            warnings.warn(
                f"a step cannot be recorded as a CUDA graph and runs slower: {error}", stacklevel=2
            )
            return self._function(*inputs)
        return self._graphs[shape](*inputs)


class _Recorded:
    """The kernels of one call, with the memory of its inputs and outputs."""

    def __init__(self, function: Function, inputs: tuple[Tensor | None, ...]) -> None:
        self._inputs = tuple(None if part is None else part.clone() for part in inputs)
        self._graph = torch.cuda.CUDAGraph()
        # recording runs nothing: what is changed in place is as it was
        with torch.cuda.graph(self._graph):
            self._outputs = function(*self._inputs)

    def __call__(self, *inputs: Tensor | None) -> tuple[Tensor, ...]:
        for own, part in zip(self._inputs, inputs, strict=True):
            if own is not None and part is not None:
                own.copy_(part)
        self._graph.replay()
        return self._outputs


_LARGEST_NORM = 1.0
"""A longer gradient of a member is cut to this length."""


class Step:
    """The parameters of a pack (members, numbers), its optimisers, and what changes them."""

    def __init__(self, forward: Forward, rows: Tensor, runs: Sequence[Run]) -> None:
        self.forward = forward
        self.rows = rows.requires_grad_()
        layout = forward.layout
        self.adamw = AdamW(self.rows.detach()[:, : layout.plain], layout.decayed)
        half = torch.bfloat16 if rows.is_cuda else torch.float32
        self.muon = (
            Muon(self.rows.detach(), layout.plain, layout.matrices, half)
            if layout.matrices
            else None
        )
        rates = [[run.learning_rate] for run in runs]
        decays = [[run.learning_rate * run.weight_decay] for run in runs]
        self._rates = torch.tensor(rates, device=rows.device)
        self._decays = torch.tensor(decays, device=rows.device)
        self._run = self._quickest()

    def clocks(self, factors: Sequence[float], first: int) -> Tensor:
        """What changes from step to step, a row each: the schedule's factor, and the corrections of
        AdamW. Steps count from 1; `first` is that of the first row.
        """
        rows = [[factor, *AdamW.corrections(first + i)] for i, factor in enumerate(factors)]
        return torch.tensor(rows, device=self.rows.device)

    def __call__(self, prompts: Prompts, clock: Tensor) -> Loss:
        """One step in place, and the losses before it. Nothing waits for a number."""
        return Loss(*self._run(*prompts, clock))

    def _change(
        self, tokens: Tensor, places: Tensor | None, answers: Tensor, clock: Tensor
    ) -> tuple[Tensor, Tensor]:
        loss = self.forward.losses(self.rows, Prompts(tokens, places, answers))
        (gradient,) = torch.autograd.grad(loss.loss.sum(), self.rows)
        with torch.no_grad():
            norms = torch.linalg.vector_norm(gradient, dim=1, keepdim=True)
            gradient.mul_((_LARGEST_NORM / (norms + 1e-6)).clamp(max=1.0))
            rates = self._rates * clock[0]
            decays = self._decays * clock[0]
            plain = self.forward.layout.plain
            rows = self.rows.detach()
            self.adamw.step(rows[:, :plain], gradient[:, :plain], rates, decays, clock[1:])
            if self.muon is not None:
                self.muon.step(rows, gradient, rates, decays)
        return loss.loss.detach(), loss.accuracy

    def keep(self, members: Tensor) -> None:
        """Goes on with these members only."""
        self._rates = self._rates[members]
        self._decays = self._decays[members]
        self.load({name: tensor[members] for name, tensor in self.tensors().items()})

    def tensors(self) -> dict[str, Tensor]:
        """Everything that a step changes, a row for each member."""
        muon = {} if self.muon is None else {"muon.momentum": self.muon.momentum}
        return {
            "parameters": self.rows.detach(),
            "adamw.first": self.adamw.first,
            "adamw.second": self.adamw.second,
        } | muon

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Inverse of `tensors`."""
        self.rows = tensors["parameters"].to(self.rows.device).requires_grad_()
        self.adamw.first = tensors["adamw.first"].to(self.rows.device)
        self.adamw.second = tensors["adamw.second"].to(self.rows.device)
        if self.muon is not None:
            self.muon.momentum = tensors["muon.momentum"].to(self.rows.device)
        # what was recorded changes the tensors before
        self._run = self._quickest()

    def _quickest(self) -> Function:
        return Captured(self._change) if self.rows.is_cuda else self._change

"""One step of training for all members of a pack: losses, clipped gradients, optimisers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from separatrix.training.adamw import AdamW
from separatrix.training.captured import Captured, Function
from separatrix.training.forward import Forward, Loss
from separatrix.training.muon import Muon
from separatrix.training.run import Run
from separatrix.training.stream import Prompts

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

"""Logits, losses and accuracies of several models of one shape at once."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import vmap

from separatrix.models.model import Model
from separatrix.tasks.base.task import NO_ANSWER
from separatrix.training.stacked import Layout
from separatrix.training.stream import Prompts


class Loss(NamedTuple):
    """Of each member: the mean over the places asked, and how many answers of them are right."""

    loss: Tensor
    accuracy: Tensor


class Forward:
    """Models whose parameters are rows of one matrix, in the form of `model`.

    Several run together with a leading dimension, a single one without. Layers that do not take
    such a dimension run one by one.
    """

    def __init__(self, model: Model, layout: Layout, dtype: torch.dtype, compile: bool) -> None:
        self.layout = layout
        self.dtype = dtype
        self.one_by_one = False
        self._model = model
        # where each parameter is looked up: setting it there costs less than a functional call
        self._slots = [
            (model.get_submodule(path)._parameters, leaf) for path, leaf in _split(layout)
        ]
        self._loss = torch.compile(self._losses, dynamic=False) if compile else self._losses

    def losses(self, rows: Tensor, prompts: Prompts) -> Loss:
        """The losses of models (members, numbers) on a batch each."""
        return self._loss(rows, prompts)

    def logits(self, rows: Tensor, tokens: Tensor, places: Tensor | None) -> Tensor:
        """(members, b, k, answers) of tokens (members, b, t) at places (members, b, k)."""
        if len(rows) > 1 and not self.one_by_one:
            inside = (0, 0, None if places is None else 0)
            return vmap(self._alone, in_dims=inside)(rows, tokens, places)
        each = range(len(rows))
        alone = [
            self._alone(rows[i], tokens[i], None if places is None else places[i]) for i in each
        ]
        return torch.stack(alone) if len(alone) > 1 else alone[0][None]

    def try_together(self, rows: Tensor, prompts: Prompts) -> None:
        """Finds out with two prompts whether these models can run with a leading dimension."""
        if len(rows) == 1:
            return
        tokens, places, answers = prompts
        few = Prompts(
            tokens[:, :2], None if places is None else places[:, :2], answers[:, :2].clamp(min=0)
        )
        try:
            torch.autograd.grad(self._losses(rows, few).loss.sum(), rows)
        except torch.cuda.OutOfMemoryError:
            raise
        # a layer of one's own: what fails for other reasons fails again, alone
        except RuntimeError:
            self.one_by_one = True

    def _alone(self, row: Tensor, tokens: Tensor, places: Tensor | None) -> Tensor:
        views = self.layout.views(row.to(self.dtype))
        for (parameters, leaf), part in zip(self._slots, views.values(), strict=True):
            # a view is no leaf of the graph, but the layers only read it
            parameters[leaf] = part  # pyright: ignore[reportArgumentType]
        # without places: after the last token
        if places is None:
            return self._model(tokens)[:, None]
        return self._model.at(tokens, places)

    def _losses(self, rows: Tensor, prompts: Prompts) -> Loss:
        logits = self.logits(rows, prompts.tokens, prompts.places).float()
        answers = prompts.answers
        # sums in float32, whatever the models are computed in
        each = F.cross_entropy(
            logits.flatten(0, 2), answers.flatten(), reduction="none", ignore_index=NO_ANSWER
        )
        # a batch in which nothing is asked has no loss
        asked = (answers != NO_ANSWER).flatten(1).sum(1).clamp(min=1)
        right = (logits.detach().argmax(-1) == answers).flatten(1).sum(1)
        return Loss(each.view(len(rows), -1).sum(1) / asked, right / asked)


def _split(layout: Layout) -> list[tuple[str, str]]:
    """Names of parameters as the path of a module and a name in it."""
    parts = [name.rpartition(".") for name in layout.names]
    return [(path, leaf) for path, _, leaf in parts]

"""Several models of one shape at once: their parameters as one matrix, a row for each model, and
their logits, losses and accuracies.

A gradient is then one tensor too, so that a step of an optimiser is a handful of operations however
many parameters a model has.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import vmap

from separatrix.models.model import Model
from separatrix.tasks.base.task import NO_ANSWER
from separatrix.training.stream import Prompts


@dataclass(frozen=True)
class Matrices:
    """Hidden matrices of one shape that stand one after another in a row."""

    start: int
    count: int
    rows: int
    columns: int

    @property
    def end(self) -> int:
        return self.start + self.count * self.rows * self.columns

    def before(self, start: int) -> Matrices:
        """Those in rows whose first `start` numbers are left out."""
        return replace(self, start=self.start - start)

    def of(self, flat: Tensor) -> Tensor:
        """Those of rows (members, numbers): (members, count, rows, columns)."""
        return flat[:, self.start : self.end].unflatten(1, (self.count, self.rows, self.columns))


@dataclass(frozen=True)
class Layout:
    """Where each parameter stands in a row: first those that decay, then vectors, which do not,
    then the hidden matrices, those of one shape together.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    decayed: int
    """Numbers of embeddings, head and the like."""
    plain: int
    """Where the hidden matrices begin."""
    matrices: tuple[Matrices, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(prod(shape) for shape in self.shapes)

    @property
    def numbers(self) -> int:
        return sum(self.sizes)

    def views(self, rows: Tensor) -> dict[str, Tensor]:
        """The parameters in rows (..., numbers), by name."""
        parts = rows.split(self.sizes, -1)
        named = zip(self.names, parts, self.shapes, strict=True)
        return {name: part.unflatten(-1, shape) for name, part, shape in named}

    def row(self, model: nn.Module) -> Tensor:
        """The parameters of a model, as a row."""
        own = dict(model.named_parameters())
        return torch.cat([own[name].detach().reshape(-1) for name in self.names])

    @torch.no_grad()
    def write(self, row: Tensor, model: nn.Module) -> None:
        """Inverse of `row`."""
        own = dict(model.named_parameters())
        for name, part in self.views(row).items():
            own[name].copy_(part)


def layout(model: Model, *, muon: bool) -> Layout:
    """The layout of a model's parameters. Hidden matrices are the linear maps of its blocks; all
    else, and without `muon` everything, is for AdamW.
    """
    maps = {
        f"{name}.weight"
        for name, part in model.named_modules()
        if muon and name.startswith("blocks.") and isinstance(part, nn.Linear)
    }
    own = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    hidden: dict[tuple[int, ...], list[str]] = {}
    for name in own:
        if name in maps:
            hidden.setdefault(own[name], []).append(name)
    rest = [name for name in own if name not in maps]
    decayed = [name for name in rest if len(own[name]) >= 2]
    vectors = [name for name in rest if len(own[name]) < 2]
    start = plain = sum(prod(own[name]) for name in rest)
    matrices: list[Matrices] = []
    for (rows, columns), names in hidden.items():
        matrices.append(Matrices(start, len(names), rows, columns))
        start = matrices[-1].end
    names = (*decayed, *vectors, *(name for names in hidden.values() for name in names))
    return Layout(
        names=names,
        shapes=tuple(own[name] for name in names),
        decayed=sum(prod(own[name]) for name in decayed),
        plain=plain,
        matrices=tuple(matrices),
    )


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

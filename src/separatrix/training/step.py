"""One step of training for several models of one shape at once. Their parameters are the rows of
one matrix, so that a gradient is one tensor too, and an optimiser a handful of operations however
many parameters a model has. `torch.optim` has one rate for all models of a stack; tests compare
both optimisers with it, model by model.

AdamW of the running moments m and v of gradients g (Loshchilov and Hutter 2019, arXiv 1711.05101):

    m = b_1 m + (1 - b_1) g,   v = b_2 v + (1 - b_2) g^2
    p = p - rate (decay p + (m / (1 - b_1^t)) / (sqrt(v / (1 - b_2^t)) + eps))

Muon of a hidden matrix W (a, b) with the gradient G (Jordan 2024,
kellerjordan.github.io/posts/muon; the factor, which gives U the size of a step of AdamW, so that
one learning rate serves both: Liu et al. 2025, arXiv 2502.16982):

    B = mu B + (1 - mu) G,   U = orthogonal((1 - mu) G + mu B)
    W = W - rate (decay W + 0.2 sqrt(max(a, b)) U)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import vmap

from separatrix.models.model import Model
from separatrix.models.stored.run import Run
from separatrix.tasks.base.task import NO_ANSWER
from separatrix.training.stream import Prompts


@dataclass(frozen=True)
class Layout:
    """Where each parameter stands in a row: first those that decay, then vectors, which do not,
    then the hidden matrices. Those stand as wide ones, tall ones turned, and of equal sides one
    after another.
    """

    shapes: dict[str, tuple[int, ...]]
    """Of the parameters by name, in the order in which they stand."""
    decayed: int
    """Numbers of embeddings, head and the like."""
    plain: int
    """Where the hidden matrices begin."""
    wide: dict[tuple[int, int], list[str]]
    """Their names by their sides, the shorter first."""

    @property
    def numbers(self) -> int:
        return sum(map(prod, self.shapes.values()))

    def views(self, rows: Tensor) -> dict[str, Tensor]:
        """The parameters in rows (..., numbers), by name."""
        found: dict[str, Tensor] = {}
        parts = rows.split([prod(shape) for shape in self.shapes.values()], -1)
        hidden = {name for names in self.wide.values() for name in names}
        for (name, shape), part in zip(self.shapes.items(), parts, strict=True):
            turned = name in hidden and shape[0] > shape[1]
            found[name] = (
                part.unflatten(-1, shape[::-1]).mT if turned else part.unflatten(-1, shape)
            )
        return found

    @torch.no_grad()
    def row(self, model: nn.Module) -> Tensor:
        """The parameters of a model, as a row."""
        row = torch.empty(self.numbers, device="cpu")
        own = dict(model.named_parameters())
        for name, part in self.views(row).items():
            part.copy_(own[name])
        return row

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
    hidden: dict[tuple[int, int], list[str]] = {}
    for name in filter(maps.__contains__, own):
        hidden.setdefault((min(own[name]), max(own[name])), []).append(name)
    decayed = [name for name in own if name not in maps and len(own[name]) >= 2]
    vectors = [name for name in own if name not in maps and len(own[name]) < 2]
    names = [*decayed, *vectors, *(name for names in hidden.values() for name in names)]
    return Layout(
        shapes={name: own[name] for name in names},
        decayed=sum(prod(own[name]) for name in decayed),
        plain=sum(prod(own[name]) for name in [*decayed, *vectors]),
        wide=hidden,
    )


BETAS = (0.9, 0.98)
_EPS = 1e-8
MOMENTUM = 0.95
_A, _B, _C = 3.4445, -4.7750, 2.0315
_ITERATIONS = 5
_SHORTEST = 1e-7


def corrections(step: int) -> tuple[float, float]:
    """1 / (1 - b_1^t) and sqrt(1 - b_2^t) of step t, which counts from 1."""
    return 1 / (1 - BETAS[0] ** step), (1 - BETAS[1] ** step) ** 0.5


def adamw(
    rows: Tensor,
    gradient: Tensor,
    first: Tensor,
    second: Tensor,
    *,
    decayed: int,
    rates: Tensor,
    decay: Tensor,
    clock: Tensor,
) -> None:
    """One step in place of models (members, numbers), whose first `decayed` numbers decay; `rates`
    and `decay` (members, 1): learning rate, and its product with the weight decay; `clock` (2,)
    holds `corrections`.
    """
    first.lerp_(gradient, 1 - BETAS[0])
    second.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
    # sqrt(v) + eps c instead of sqrt(v)/c + eps: the same quotient, a pass less
    lower = second.sqrt().add_(clock[1] * _EPS)
    change = torch.div(first, lower, out=lower).mul_(rates * (clock[0] * clock[1]))
    rows[:, :decayed].mul_(1 - decay)
    rows.sub_(change)


def muon(
    rows: Tensor,
    gradient: Tensor,
    momentum: Tensor,
    *,
    wide: dict[tuple[int, int], list[str]],
    rates: Tensor,
    decay: Tensor,
    dtype: torch.dtype,
) -> None:
    """One step in place of hidden matrices (members, numbers); the rest as for `adamw`, but for
    `dtype`, in which matrices are made orthogonal.
    """
    momentum.lerp_(gradient, 1 - MOMENTUM)
    ahead = gradient.lerp(momentum, MOMENTUM)
    rows.mul_(1 - decay)
    sizes = [len(names) * prod(sides) for sides, names in wide.items()]
    for sides, part, own in zip(wide, ahead.split(sizes, 1), rows.split(sizes, 1), strict=True):
        change = orthogonal(part.reshape(-1, *sides).to(dtype)).to(ahead.dtype)
        own.sub_(change.view(own.shape) * (0.2 * sides[1] ** 0.5 * rates))


def orthogonal(matrices: Tensor) -> Tensor:
    """Matrices (n, a, b), a <= b, with their singular values near 1, about 0.7 to 1.2, by five
    steps of Newton and Schulz.
    """
    x = matrices / matrices.norm(dim=(1, 2), keepdim=True).clamp(min=_SHORTEST)
    for _ in range(_ITERATIONS):
        square = torch.bmm(x, x.mT)
        step = torch.baddbmm(square, square, square, beta=_B, alpha=_C)
        x = torch.baddbmm(x, step, x, beta=_A)
    return x


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
        self._known: dict[tuple[object, ...], int | Function] = {}
        """By shape: how often it has run, or its graph."""
        self._records = True

    def __call__(self, *inputs: Tensor | None) -> tuple[Tensor, ...]:
        """The function's outputs. Those of a recorded step are overwritten by the next one."""
        shape = tuple(None if part is None else part.shape for part in inputs)
        known = self._known.get(shape, 0)
        if known == _BEFORE and self._records:
            try:
                known = _recorded(self._function, inputs)
            except torch.cuda.OutOfMemoryError:
                raise
            except RuntimeError as error:
                self._records = False
                warnings.warn(
                    f"a step cannot be recorded as a CUDA graph and runs slower: {error}",
                    stacklevel=2,
                )
        elif isinstance(known, int):
            known += 1
        self._known[shape] = known
        return (self._function if isinstance(known, int) else known)(*inputs)


def _recorded(function: Function, inputs: tuple[Tensor | None, ...]) -> Function:
    """The kernels of one call, with memory of their own for its inputs and outputs."""
    own = [None if part is None else part.clone() for part in inputs]
    graph = torch.cuda.CUDAGraph()
    # recording runs nothing: what is changed in place is as it was
    with torch.cuda.graph(graph):
        outputs = function(*own)

    def replayed(*inputs: Tensor | None) -> tuple[Tensor, ...]:
        for mine, part in zip(own, inputs, strict=True):
            if mine is not None and part is not None:
                mine.copy_(part)
        graph.replay()
        return outputs

    return replayed


class Loss(NamedTuple):
    """Of each member: the mean over the places asked, and how many answers of them are right."""

    loss: Tensor
    accuracy: Tensor


_LARGEST_NORM = 1.0
"""A longer gradient of a member is cut to this length."""


class Step:
    """The parameters of a pack (members, numbers), what its optimisers remember, and what changes
    both. `model` says what is computed from a row, in its own number format.

    Several models run together with a leading dimension, a single one without. Layers that do not
    take such a dimension run one by one.
    """

    def __init__(
        self,
        model: Model,
        layout: Layout,
        rows: Tensor,
        runs: Sequence[Run],
    ) -> None:
        self.layout = layout
        self.rows = rows.requires_grad_()
        self.one_by_one = False
        self._tried = False
        self._model = model
        # where each parameter is looked up: setting it there costs less than a functional call
        self._slots = [
            (model.get_submodule(path)._parameters, leaf)
            for path, _, leaf in (name.rpartition(".") for name in layout.shapes)
        ]
        self._remembered = {
            "first": torch.zeros_like(rows[:, : layout.plain]).detach(),
            "second": torch.zeros_like(rows[:, : layout.plain]).detach(),
            "momentum": torch.zeros_like(rows[:, layout.plain :]).detach(),
        }
        rates = [[run.learning_rate, run.learning_rate * run.weight_decay] for run in runs]
        self._rates = torch.tensor(rates, device=rows.device)
        """(members, 2): learning rate, and its product with the weight decay."""
        self._run = self._quickest()

    def clocks(self, factors: Sequence[float], first: int) -> Tensor:
        """What changes from step to step, a row each: the schedule's factor, and the corrections of
        AdamW. Steps count from 1; `first` is that of the first row.
        """
        rows = [[factor, *corrections(first + i)] for i, factor in enumerate(factors)]
        return torch.tensor(rows, device=self.rows.device)

    def __call__(self, prompts: Prompts, clock: Tensor) -> Loss:
        """One step in place, and the losses before it. Nothing waits for a number."""
        if not self._tried:
            self._tried = True
            self._try_together(prompts)
        return Loss(*self._run(*prompts, clock))

    def _quickest(self) -> Function:
        return Captured(self._change) if self.rows.is_cuda else self._change

    def _change(
        self, tokens: Tensor, places: Tensor | None, answers: Tensor, clock: Tensor
    ) -> tuple[Tensor, Tensor]:
        loss = self.losses(self.rows, Prompts(tokens, places, answers))
        (gradient,) = torch.autograd.grad(loss.loss.sum(), self.rows)
        with torch.no_grad():
            norms = torch.linalg.vector_norm(gradient, dim=1, keepdim=True)
            gradient.mul_((_LARGEST_NORM / (norms + 1e-6)).clamp(max=1.0))
            rates, decay = (self._rates * clock[0]).split(1, 1)
            rows = self.rows.detach()
            plain = self.layout.plain
            kept = self._remembered
            adamw(
                rows[:, :plain],
                gradient[:, :plain],
                kept["first"],
                kept["second"],
                decayed=self.layout.decayed,
                rates=rates,
                decay=decay,
                clock=clock[1:],
            )
            if self.layout.wide:
                muon(
                    rows[:, plain:],
                    gradient[:, plain:],
                    kept["momentum"],
                    wide=self.layout.wide,
                    rates=rates,
                    decay=decay,
                    dtype=torch.bfloat16 if rows.is_cuda else torch.float32,
                )
        return loss.loss.detach(), loss.accuracy

    def losses(self, rows: Tensor, prompts: Prompts) -> Loss:
        """Of models with these parameters on a batch each."""
        tokens, places, answers = prompts
        if len(rows) > 1 and not self.one_by_one:
            inside = (0, 0, None if places is None else 0)
            logits = vmap(self._logits, in_dims=inside)(rows, tokens, places)
        else:
            asked = [None] * len(rows) if places is None else places
            logits = torch.stack(list(map(self._logits, rows, tokens, asked)))
        # sums in float32, whatever the models are computed in
        logits = logits.float()
        each = F.cross_entropy(
            logits.flatten(0, 2), answers.flatten(), reduction="none", ignore_index=NO_ANSWER
        )
        # a batch in which nothing is asked has no loss
        asked = (answers != NO_ANSWER).flatten(1).sum(1).clamp(min=1)
        right = (logits.detach().argmax(-1) == answers).flatten(1).sum(1)
        return Loss(each.view(len(rows), -1).sum(1) / asked, right / asked)

    def _logits(self, row: Tensor, tokens: Tensor, places: Tensor | None) -> Tensor:
        """(b, k, answers) of one model's tokens (b, t) at places (b, k)."""
        views = self.layout.views(row.to(self._model.head.weight.dtype))
        for (parameters, leaf), part in zip(self._slots, views.values(), strict=True):
            # a view is no leaf of the graph, but the layers only read it
            parameters[leaf] = part  # pyright: ignore[reportArgumentType]
        # without places: after the last token
        return self._model(tokens)[:, None] if places is None else self._model.at(tokens, places)

    def _try_together(self, prompts: Prompts) -> None:
        """Finds out with two prompts whether these models can run with a leading dimension."""
        if len(self.rows) == 1:
            return
        tokens, places, answers = prompts
        few = Prompts(tokens[:, :2], None if places is None else places[:, :2], answers[:, :2])
        try:
            torch.autograd.grad(self.losses(self.rows, few).loss.sum(), self.rows)
        except torch.cuda.OutOfMemoryError:
            raise
        # a layer of one's own: what fails for other reasons fails again, alone
        except RuntimeError:
            self.one_by_one = True

    def keep(self, members: Tensor) -> None:
        """Goes on with these members only."""
        self._rates = self._rates[members]
        self.load({name: tensor[members] for name, tensor in self.tensors().items()})

    def tensors(self) -> dict[str, Tensor]:
        """Everything that a step changes, a row for each member."""
        return {"parameters": self.rows.detach()} | self._remembered

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Inverse of `tensors`."""
        device = self.rows.device
        self.rows = tensors["parameters"].to(device).requires_grad_()
        self._remembered = {name: tensors[name].to(device) for name in self._remembered}
        # what was recorded changes the tensors before
        self._run = self._quickest()

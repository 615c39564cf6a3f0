"""Multinomial logistic regression in float64 by L-BFGS: deterministic, one thread, a fraction of
a second.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from separatrix.tasks.audits.learners import Guess
from separatrix.tasks.base.task import Tokens

RIDGE = 10.0
"""Of half the squared weights, beside the sum of the losses of all instances."""
ITERATIONS = 40

Features = NDArray[np.float64]


def regression(features: Features, targets: Tokens, answers: int, asked: Features) -> Guess:
    """The likeliest answers for `asked` (batch, features) after a fit to `features` (instances,
    features), and how likely 1 is.
    """
    threads = torch.get_num_threads()
    # one thread adds in one order, whatever the number of cores
    torch.set_num_threads(1)
    try:
        # the bias has no ridge: centring moves no optimum and is for the optimiser alone
        mean = features.mean(axis=0)
        weights = _fit(torch.from_numpy(features - mean), torch.from_numpy(targets), answers)
        likely = torch.softmax(_logits(torch.from_numpy(asked - mean), weights), dim=1)
        return Guess(likely.argmax(dim=1).numpy(), likely[:, 1].numpy())
    finally:
        torch.set_num_threads(threads)


def _logits(x: Tensor, weights: Tensor) -> Tensor:
    """The last row of `weights` (features + 1, answers) is the bias."""
    return torch.addmm(weights[-1], x, weights[:-1])


def _fit(x: Tensor, targets: Tensor, answers: int) -> Tensor:
    """Weights (features + 1, answers) from zero; the gradient is written out, which takes half
    the time of automatic differentiation.
    """
    weights = torch.zeros(x.shape[1] + 1, answers, dtype=torch.float64)
    weights.grad = torch.zeros_like(weights)
    grad = weights.grad
    rows = torch.arange(len(x))
    optimiser = torch.optim.LBFGS(
        [weights],
        max_iter=ITERATIONS,
        tolerance_grad=1e-3,
        tolerance_change=1e-6,
        line_search_fn="strong_wolfe",
    )

    def loss() -> Tensor:
        logs = torch.log_softmax(_logits(x, weights), dim=1)
        value = RIDGE / 2 * (weights[:-1] ** 2).sum() - logs[rows, targets].sum()
        # in place: the loss has been read off
        error = logs.exp_()
        error[rows, targets] -= 1
        torch.mm(x.T, error, out=grad[:-1])
        grad[:-1] += RIDGE * weights[:-1]
        grad[-1] = error.sum(dim=0)
        return value

    optimiser.step(loss)
    return weights

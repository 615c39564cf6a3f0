"""A plain training loop: AdamW with warm-up and cosine decay, fresh data every step, one thread,
one seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
import torch.nn.functional as F

from separatrix.architecture import Architecture
from separatrix.errors import SizeError
from separatrix.model import Model, build
from separatrix.stored.accuracy import count_correct, prompt_stream
from separatrix.tasks import parse_task
from separatrix.tasks.base.task import NO_ANSWER, Batch, Task
from separatrix.theory.trained import check_trained
from separatrix.training.run import Run

Progress = Callable[[int, int], None]
"""Called with (steps done, steps in all)."""


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What one run gave: right answers among `run.tested` fresh instances, steps done, and the
    model.
    """

    run: Run
    correct: int
    steps_done: int
    parameters: int
    model: Model = field(repr=False)


def train(run: Run, *, progress: Progress | None = None, device: str = "cpu") -> Trained:
    """Trains one model. The same run on the same machine gives the same result.

    Raises what parsing the texts and building the model raise, SizeError when a parameter is no
    longer finite, and CheckFailed for an accuracy that no weights can have.
    """
    run.check()
    _can(run)
    task = parse_task(run.task)
    threads = torch.get_num_threads()
    # sums are split among threads, so their number changes roundings
    torch.set_num_threads(1)
    try:
        return _train(run, task, progress, device)
    finally:
        torch.set_num_threads(threads)


def _can(run: Run) -> None:
    """Raises SizeError for what this loop does not do."""
    plain = replace(
        run,
        optimiser="adamw",
        schedule="cosine",
        precision="fp32",
        seconds=0.0,
        curriculum=(),
        longer=(),
        plateau=0,
    )
    for name, value in run.to_json().items():
        if value != plain.to_json()[name]:
            raise SizeError(
                f"training: {name}={value} is not trained yet; take {name}={plain.to_json()[name]}"
            )


def _train(run: Run, task: Task, progress: Progress | None, device: str) -> Trained:
    model = build(
        Architecture.parse(run.architecture),
        task,
        width=run.width,
        hidden=run.hidden,
        seed=run.seed,
    ).to(device)
    # a stream of its own: the tests below draw from another, 2
    rng = np.random.default_rng([run.seed, 1])
    # weights decay, biases and gains do not
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": run.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=run.learning_rate, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate(step, run.steps))
    recent: list[float] = []
    done = 0
    for done in range(1, run.steps + 1):
        tokens, targets = _tensors(task.sample(run.batch, rng), device)
        logits, targets = _asked(model, task, tokens, targets)
        loss = F.cross_entropy(logits, targets)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        recent = [*recent[-19:], float((logits.argmax(-1) == targets).float().mean())]
        if progress is not None:
            progress(done, run.steps)
        if len(recent) == 20 and sum(recent) >= 20 * run.stop_at:
            break
    # what is not finite stays so under AdamW: one look at the end is enough
    if not all(torch.isfinite(p).all() for p in model.parameters()):
        raise SizeError(
            f"training of {run.architecture} on {run.task} diverged (seed {run.seed}); lower"
            f" learning_rate={run.learning_rate}"
        )
    correct = count_correct(model, task, run.tested, prompt_stream(run.seed), device=device)
    check_trained(model.architecture, task, [correct], run.tested)
    return Trained(
        run=run,
        correct=correct,
        steps_done=done,
        parameters=sum(p.numel() for p in model.parameters()),
        model=model,
    )


def _rate(step: int, steps: int) -> float:
    """Learning rate over its peak: linear warm-up over the first 5 % (at least 10 steps), then a
    cosine down to 10 %.
    """
    warm = max(10, steps // 20)
    if step < warm:
        return (step + 1) / warm
    progress = min(1.0, (step - warm) / max(1, steps - warm))
    return 0.1 + 0.45 * (1 + float(np.cos(np.pi * progress)))


def _tensors(batch: Batch, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.from_numpy(batch.tokens).to(device), torch.from_numpy(batch.targets).to(device)


def _asked(
    model: Model, task: Task, tokens: torch.Tensor, targets: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits (asked, answers) and targets (asked,) of all places where an answer is due."""
    if not task.several:
        return model(tokens), targets
    due = targets != NO_ANSWER
    return model.every(tokens)[due], targets[due]

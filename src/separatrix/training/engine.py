"""Training a pack: models of one shape, each with its own seed, learning rate and weight decay."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from separatrix.core.errors import EvidenceError
from separatrix.core.evidence.outcome import FormatOutcome, Outcome, Stopped
from separatrix.core.evidence.rule import WINDOW
from separatrix.models.model import Model, build
from separatrix.models.stored.accuracy import Tally, prompt_stream, tally
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task, parse_task
from separatrix.theory.fails.a_accuracy import check_answers
from separatrix.training.checkpoint import ENDED, WINDOW_NAME, packed_bytes, unpacked
from separatrix.training.packs import Metric, Pack
from separatrix.training.probe import quick_cpu
from separatrix.training.run import Run
from separatrix.training.stacked import Forward, layout
from separatrix.training.step import Step
from separatrix.training.stream import Streams
from separatrix.training.watch import Watch, rate


class Trainer:
    """The training of a pack. The same pack on the same machine gives the same result.

    Raises what building the model raises, and CheckFailed for an accuracy that no weights can have.
    """

    def __init__(self, pack: Pack, *, device: str = "cpu", compile: bool = False) -> None:
        for run in pack.runs:
            run.check()
        self.pack = pack
        self.step = 0
        """Steps done."""
        self.seconds = 0.0
        """Seconds of training, without tests."""
        self._run = pack.runs[0]
        self._task = parse_task(self._run.task)
        self._device = device
        with torch.device("cpu"):
            models = [_drawn(run, self._task) for run in pack.runs]
        self._layout = layout(models[0], muon=self._run.optimiser == "muon")
        rows = torch.stack([self._layout.row(model) for model in models]).to(device)
        forward = Forward(models[0].to(device), self._layout, torch.float32, compile)
        if self._run.precision == "bf16":
            half = _drawn(self._run, self._task).to(device, torch.bfloat16)
            forward = Forward(half, self._layout, torch.bfloat16, compile)
        self._members = list(range(len(pack.runs)))
        """Those still training, as places in the pack."""
        self._models = Step(forward, rows, pack.runs)
        self._streams = Streams(self._run, self._seeds(), torch.device(device))
        self._tried = False
        self._clocks: Tensor | None = None
        self._watches = [Watch() for _ in pack.runs]
        self._shares = [0.0] * len(pack.runs)
        self._window = torch.zeros(2, WINDOW, len(pack.runs), device=device)
        """Loss and accuracy of every member in the steps since they were read."""
        self._metrics: list[Metric] = []
        self._outcomes: dict[str, Outcome] = {}
        self._ended: dict[str, Tensor] = {}
        """The parameters of members that have ended, by key."""

    @property
    def active(self) -> bool:
        """Whether a member is still training."""
        return bool(self._members)

    def advance(self, steps: int) -> None:
        """Up to so many more steps for every member that still trains. Members end, and are tested,
        when their losses are read.
        """
        with quick_cpu(self._device):
            for _ in range(steps):
                if not self._members:
                    break
                self._advance()

    def metrics(self) -> list[Metric]:
        """The metrics since the last call."""
        new = self._metrics
        self._metrics = []
        return new

    def outcomes(self) -> dict[str, Outcome]:
        """What the members gave that have ended, by key."""
        return dict(self._outcomes)

    def model(self, key: str) -> Model:
        """A plain model with the weights that a member has now."""
        place = self.pack.keys.index(key)
        row = self._ended.get(key)
        if row is None:
            row = self._models.rows.detach()[self._members.index(place)]
        model = _drawn(self.pack.runs[place], self._task)
        self._layout.write(row.cpu(), model)
        return model

    def checkpoint(self) -> bytes:
        """Everything that training goes on from, bit for bit on the same kind of CPU."""
        tensors = self._models.tensors() | {WINDOW_NAME: self._window}
        ended = {f"{ENDED}{key}": row for key, row in self._ended.items()}
        state = {
            "pack": self.pack.key,
            "keys": self.pack.keys,
            "step": self.step,
            "seconds": self.seconds,
            "members": self._members,
            "shares": self._shares,
            "watches": [(watch.best, watch.since) for watch in self._watches],
            "streams": self._streams.state() if self._members else None,
            "outcomes": {key: outcome.to_json() for key, outcome in self._outcomes.items()},
        }
        return packed_bytes(tensors | ended, state)

    @classmethod
    def resumed(
        cls, pack: Pack, data: bytes, *, device: str = "cpu", compile: bool = False
    ) -> Trainer:
        """The trainer that wrote a checkpoint. Raises EvidenceError for one of another pack."""
        tensors, state = unpacked(data)
        if state["pack"] != pack.key:
            raise EvidenceError("a checkpoint belongs to another pack")
        trainer = cls(pack, device=device, compile=compile)
        trainer._restore(tensors, state)
        return trainer

    def _restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        self.step = state["step"]
        self.seconds = state["seconds"]
        self._keep(state["members"])
        self._shares = state["shares"]
        for watch, (best, since) in zip(self._watches, state["watches"], strict=True):
            watch.best = best
            watch.since = since
        if self._members:
            self._streams.restore(state["streams"])
        self._outcomes = {
            key: Outcome.from_json(outcome) for key, outcome in state["outcomes"].items()
        }
        self._ended = {key: tensors[f"{ENDED}{key}"] for key in self._outcomes}
        self._models.load(tensors)
        self._window = tensors[WINDOW_NAME].to(self._device)

    def _advance(self) -> None:
        started = time.perf_counter()
        prompts = self._streams.next()
        if not self._tried:
            self._tried = True
            self._models.forward.try_together(self._models.rows, prompts)
        at = self.step % WINDOW
        if at == 0 or self._clocks is None:
            self._clocks = self._clocks_from(self.step - at)
        self.step += 1
        loss = self._models(prompts, self._clocks[at])
        self._window[0, at] = loss.loss
        self._window[1, at] = loss.accuracy
        spent = self.seconds + time.perf_counter() - started
        over = 0 < self._run.seconds <= spent
        due = over or at == WINDOW - 1 or self.step == self._run.steps
        # on a GPU, reading waits for the steps behind
        read = self._window[:, : at + 1].cpu() if due else None
        took = time.perf_counter() - started
        self.seconds += took
        for member in self._members:
            self._shares[member] += took / len(self._members)
        if read is not None:
            self._read(read)

    def _clocks_from(self, first: int) -> Tensor:
        """What the optimisers need of the next `WINDOW` steps, where they need it."""
        factors = [self._rate(step) for step in range(first, first + WINDOW)]
        return self._models.clocks(factors, first + 1)

    def _rate(self, step: int) -> float:
        run = self._run
        return rate(run.schedule, step, run.steps, run.warmup)

    def _read(self, read: Tensor) -> None:
        """Notes the metrics of the last steps and ends the members that have come to an end."""
        ends: dict[int, tuple[Stopped, int]] = {}
        factor = self._rate(self.step - 1)
        for column, member in enumerate(self._members):
            run = self.pack.runs[member]
            losses, accuracies = read[:, :, column].tolist()
            stopped, counted = self._watches[member].ended(run, losses, accuracies, self.step)
            if stopped != "diverged":
                finite = bool(self._models.rows.detach()[column].isfinite().all())
                self._metrics.append(
                    Metric(
                        key=self.pack.keys[member],
                        step=self.step,
                        loss=sum(losses) / len(losses),
                        accuracy=sum(accuracies) / len(accuracies),
                        learning_rate=run.learning_rate * factor,
                    )
                )
                if not finite:
                    stopped = "diverged"
            if stopped is None and run.seconds and self.seconds >= run.seconds:
                stopped = "seconds"
            if stopped is not None:
                ends[member] = stopped, counted
        if ends:
            self._end(ends)

    def _end(self, ends: dict[int, tuple[Stopped, int]]) -> None:
        """Tests the members that have ended and goes on without them."""
        for member, (stopped, counted) in ends.items():
            run = self.pack.runs[member]
            key = self.pack.keys[member]
            nothing = (0,) * len(run.longer)
            outcome = Outcome(
                seed=run.seed,
                rule=run.rule,
                status="diverged",
                stopped=stopped,
                correct=0,
                tested=0,
                longer=nothing,
                longer_right=nothing,
                longer_due=nothing,
                steps_done=counted,
                parameters=self._layout.numbers,
                seconds=self._shares[member],
            )
            if stopped != "diverged":
                outcome = self._tested(outcome, member)
            self._outcomes[key] = outcome
            self._ended[key] = self._models.rows.detach()[self._members.index(member)].cpu()
        self._keep([member for member in self._members if member not in ends])

    def _tested(self, outcome: Outcome, member: int) -> Outcome:
        """The outcome with what tests gave: on the task, at each of the longer sizes, and on the
        task with rounded states.
        """
        run = self.pack.runs[member]
        model = self.model(self.pack.keys[member]).to(self._device)

        def count(task: Task, number: int = 0, rounded: str = "") -> Tally:
            stream = prompt_stream(run.seed, number)
            found = tally(model, task, run.tested, stream, device=self._device, rounded=rounded)
            check_answers(model.architecture, task, [(found.right, found.due)], run.tested)
            return found

        own = count(self._task)
        longer = [count(task, 1 + place) for place, task in enumerate(run.longer_tasks)]
        rounded = {name: count(self._task, rounded=name) for name in run.formats}
        return replace(
            outcome,
            status="done",
            tested=run.tested,
            **_counts(own),
            bits_squares=own.bits_squares,
            longer=tuple(found.correct for found in longer),
            longer_right=tuple(found.right for found in longer),
            longer_due=tuple(found.due for found in longer),
            formats=tuple(
                FormatOutcome(format=name, **_counts(found)) for name, found in rounded.items()
            ),
        )

    def _keep(self, members: Sequence[int]) -> None:
        """Goes on with these members only."""
        places = torch.tensor(
            [self._members.index(member) for member in members],
            dtype=torch.int64,
            device=self._device,
        )
        self._members = list(members)
        self._models.keep(places)
        self._window = self._window[:, :, places]
        if members:
            self._streams.keep(self._seeds())

    def _seeds(self) -> list[int]:
        return [self.pack.runs[member].seed for member in self._members]


def _counts(found: Tally) -> dict[str, Any]:
    return {name: getattr(found, name) for name in ("correct", "right", "due", "bits")}


def _drawn(run: Run, task: Task) -> Model:
    """The model that a run begins with."""
    return build(
        Architecture.parse(run.architecture),
        task,
        width=run.width,
        hidden=run.hidden,
        seed=run.seed,
        length=run.length,
    )

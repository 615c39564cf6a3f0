"""Training a pack: models of one shape, each with its own seed, learning rate and weight decay; and
its checkpoints, tensors and plain numbers in the format of safetensors, behind their sha256.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from separatrix.core.errors import EvidenceError
from separatrix.core.evidence.canonical import code_version
from separatrix.core.evidence.outcome import FormatOutcome, Outcome, Stopped
from separatrix.core.evidence.rule import WINDOW
from separatrix.models.model import Model, build
from separatrix.models.stored.accuracy import Tally, prompt_stream, tally
from separatrix.models.stored.run import Run
from separatrix.tasks import Task
from separatrix.theory.fails.a_accuracy import check_answers
from separatrix.training.packs import Metric, Pack
from separatrix.training.probe import quick_cpu
from separatrix.training.step import Step, layout
from separatrix.training.stream import Streams

END = 0.1
"""What is left of the rate at the end, of cosine and linear schedules."""


def rate(schedule: str, step: int, steps: int, warmup: int = 0) -> float:
    """Learning rate over its peak at `step`, which counts from 0: a linear warm-up over so many
    steps (0: the first 5 %, 10 at least), then the schedule.
    """
    warm = warmup or max(10, steps // 20)
    if step < warm:
        return (step + 1) / warm
    done = min(1.0, (step - warm) / max(1, steps - warm))
    match schedule:
        case "cosine":
            return END + (1 - END) * (1 + math.cos(math.pi * done)) / 2
        case "linear":
            return 1 - (1 - END) * done
        case _:
            return 1.0


_PROGRESS = 0.01
"""A running loss that is lower by this part than any before is progress."""


@dataclass
class Watch:
    """How one member stands: the best of its running losses, since when none was better, and the
    seconds that it took of its pack's time.
    """

    best: float = math.inf
    since: int = 0
    seconds: float = 0.0

    def ended(
        self, run: Run, losses: Sequence[float], accuracies: Sequence[float], step: int
    ) -> tuple[Stopped | None, int]:
        """Why training ends after `step` steps, and how many steps count. The numbers are those of
        the last steps, `WINDOW` of them at most.
        """
        first = step - len(losses) + 1
        for number, loss in enumerate(losses):
            if not math.isfinite(loss):
                return "diverged", first + number
        trained_alone = step - (run.stages[-1].until if run.stages else 0)
        # what is easier says nothing about the task itself
        whole = len(losses) == WINDOW <= trained_alone
        if whole and sum(accuracies) >= run.stop_at * WINDOW:
            return "solved", step
        running = sum(losses) / len(losses)
        if not whole or running < self.best * (1 - _PROGRESS):
            self.best = running if whole else math.inf
            self.since = step
        if run.plateau and step - self.since >= run.plateau:
            return "plateau", step
        return ("steps" if step >= run.steps else None), step


_STATE = "state"
_WINDOW = "window"
_ENDED = "ended."
_HASH = 32
"""Bytes of a sha256, with which a checkpoint begins."""


def unpacked(data: bytes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and plain numbers of a checkpoint. Raises EvidenceError for one whose hash is
    another, as of a file in which a bit has turned over, and for what is none.
    """
    kept, data = data[:_HASH], data[_HASH:]
    if sha256(data).digest() != kept:
        raise EvidenceError("a checkpoint is damaged, or is none of a training")
    # safetensors: 8 bytes of length, then a header of JSON
    length = int.from_bytes(data[:8], "little")
    return load(data), json.loads(json.loads(data[8 : 8 + length])["__metadata__"][_STATE])


class Trainer:
    """The training of a pack. The same pack on the same machine gives the same result.

    Raises what building the model raises, and CheckFailed for an accuracy that no weights can have.
    """

    def __init__(self, pack: Pack, *, device: str = "cpu") -> None:
        for run in pack.runs:
            run.check()
        self.pack = pack
        self.step = 0
        """Steps done."""
        self.seconds = 0.0
        """Seconds of training, without tests."""
        self._run = pack.runs[0]
        self._device = device
        with torch.device("cpu"):
            models = [_drawn(run) for run in pack.runs]
        self._layout = layout(models[0], muon=self._run.optimiser == "muon")
        rows = torch.stack([self._layout.row(model) for model in models]).to(device)
        half = self._run.precision == "bf16"
        form = models[0].to(device, torch.bfloat16 if half else torch.float32)
        self._models = Step(form, self._layout, rows, pack.runs)
        self._members = dict(zip(pack.keys, pack.runs, strict=True))
        """Those still training, in the order of the rows."""
        self._streams = Streams(self._run, self._seeds(), torch.device(device))
        self._clocks: Tensor | None = None
        self._watches = {key: Watch() for key in pack.keys}
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
                if self._members:
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
        row = self._ended[key] if key in self._ended else self._row(key)
        model = _drawn(self.pack.runs[self.pack.keys.index(key)])
        self._layout.write(row.cpu(), model)
        return model

    def _row(self, key: str) -> Tensor:
        return self._models.rows.detach()[list(self._members).index(key)]

    def checkpoint(self) -> bytes:
        """Everything that training goes on from, bit for bit on the same kind of CPU."""
        tensors = self._models.tensors() | {_WINDOW: self._window}
        tensors |= {f"{_ENDED}{key}": row for key, row in self._ended.items()}
        state = {
            "version": code_version(),
            "pack": self.pack.key,
            "step": self.step,
            "seconds": self.seconds,
            "members": list(self._members),
            "watches": {key: asdict(watch) for key, watch in self._watches.items()},
            "streams": self._streams.state() if self._members else None,
            "outcomes": {key: outcome.to_json() for key, outcome in self._outcomes.items()},
        }
        own = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        data = save(own, metadata={_STATE: json.dumps(state)})
        return sha256(data).digest() + data

    @classmethod
    def resumed(cls, pack: Pack, data: bytes, *, device: str = "cpu") -> Trainer:
        """The trainer that wrote a checkpoint. Raises EvidenceError for one of another pack, or of
        another version of this code.
        """
        tensors, state = unpacked(data)
        if state["pack"] != pack.key:
            raise EvidenceError("a checkpoint of another training, which was interrupted")
        if state["version"] != code_version():
            raise EvidenceError(
                f"a checkpoint of another version of this program ({state['version']}, this is"
                f" {code_version()})"
            )
        trainer = cls(pack, device=device)
        trainer._restore(tensors, state)
        return trainer

    def _restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        self.step = state["step"]
        self.seconds = state["seconds"]
        self._watches = {key: Watch(**watch) for key, watch in state["watches"].items()}
        self._outcomes = {key: Outcome.from_json(one) for key, one in state["outcomes"].items()}
        self._ended = {key: tensors[f"{_ENDED}{key}"] for key in self._outcomes}
        self._keep(state["members"])
        self._models.load(tensors)
        self._window = tensors[_WINDOW].to(self._device)
        if self._members:
            self._streams.restore(state["streams"])

    def _advance(self) -> None:
        started = time.perf_counter()
        prompts = self._streams.next()
        at = self.step % WINDOW
        if at == 0 or self._clocks is None:
            # what the optimisers need of the next steps, where they need it
            first = self.step - at
            factors = [self._rate(step) for step in range(first, first + WINDOW)]
            self._clocks = self._models.clocks(factors, first + 1)
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
        for key in self._members:
            self._watches[key].seconds += took / len(self._members)
        if read is not None:
            self._read(read)

    def _rate(self, step: int) -> float:
        run = self._run
        return rate(run.schedule, step, run.steps, run.warmup)

    def _read(self, read: Tensor) -> None:
        """Notes the metrics of the last steps and ends the members that have come to an end."""
        ends: dict[str, Outcome] = {}
        factor = self._rate(self.step - 1)
        for column, (key, run) in enumerate(self._members.items()):
            losses, accuracies = read[:, :, column].tolist()
            stopped, counted = self._watches[key].ended(run, losses, accuracies, self.step)
            if stopped != "diverged":
                self._metrics.append(
                    Metric(
                        key=key,
                        step=self.step,
                        loss=sum(losses) / len(losses),
                        accuracy=sum(accuracies) / len(accuracies),
                        learning_rate=run.learning_rate * factor,
                    )
                )
                if not self._models.rows.detach()[column].isfinite().all():
                    stopped = "diverged"
            if stopped is None and run.seconds and self.seconds >= run.seconds:
                stopped = "seconds"
            if stopped is not None:
                ends[key] = self._outcome(key, stopped, counted)
        if ends:
            self._outcomes |= ends
            self._ended |= {key: self._row(key).cpu() for key in ends}
            self._keep([key for key in self._members if key not in ends])

    def _outcome(self, key: str, stopped: Stopped, steps: int) -> Outcome:
        """What a member gave that has ended, and what tests gave unless it diverged: on the task,
        at each of the longer sizes, and on the task with rounded states.
        """
        run = self._members[key]
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
            steps_done=steps,
            parameters=self._layout.numbers,
            seconds=self._watches[key].seconds,
        )
        if stopped == "diverged":
            return outcome
        model = self.model(key).to(self._device)

        def count(task: Task, number: int = 0, rounded: str = "") -> Tally:
            stream = prompt_stream(run.seed, number)
            found = tally(model, task, run.tested, stream, device=self._device, rounded=rounded)
            check_answers(model.architecture, task, [(found.right, found.due)], run.tested)
            return found

        own = count(run.trained)
        longer = [count(task, 1 + place) for place, task in enumerate(run.longer_tasks)]
        rounded = {name: count(run.trained, rounded=name) for name in run.formats}
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

    def _keep(self, keys: Sequence[str]) -> None:
        """Goes on with these members only."""
        columns = torch.tensor([list(self._members).index(key) for key in keys]).long()
        self._members = {key: self._members[key] for key in keys}
        self._models.keep(columns.to(self._device))
        self._window = self._window[..., columns.to(self._device)]
        if keys:
            self._streams.keep(self._seeds())

    def _seeds(self) -> list[int]:
        return [run.seed for run in self._members.values()]


def _counts(found: Tally) -> dict[str, Any]:
    return {name: getattr(found, name) for name in ("correct", "right", "due", "bits")}


def _drawn(run: Run) -> Model:
    """The model that a run begins with."""
    return build(
        run.stack,
        run.trained,
        width=run.width,
        hidden=run.hidden,
        seed=run.seed,
        length=run.length,
    )

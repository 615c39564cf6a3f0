"""Zoology's own model and trainer on MQAR, driven from outside, for benchmarks/training.py.

The checkout is an argument; commit dbcb60d (2026-01-11) is what was measured. The commit after it
does not train: its model returns embeddings where its trainer expects logits. wandb and
torchvision, of which nothing is used here, are stood in for where they are not installed.
"""

from __future__ import annotations

import contextlib
import io
import sys
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn


def import_zoology(checkout: Path) -> None:
    """Puts the checkout on the path, silent, and stands in for what it imports and does not use."""
    sys.path.insert(0, str(checkout))
    for name in ("wandb", "torchvision", "torchvision.ops"):
        try:
            __import__(name)
        except ImportError:
            sys.modules[name] = types.ModuleType(name)

    class StochasticDepth(nn.Module):
        """The identity that torchvision's is at the probability 0."""

        def __init__(self, p: float, mode: str) -> None:
            super().__init__()
            assert p == 0.0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x

    ops = sys.modules["torchvision.ops"]
    if not hasattr(ops, "StochasticDepth"):
        ops.StochasticDepth = StochasticDepth  # type: ignore[attr-defined]


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Its prints and progress bars go nowhere."""
    nowhere = io.StringIO()
    with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        yield


class Zoology:
    """Two layers of attention as its experiments have them, an MLP of four times the width, and its
    trainer: AdamW, dropout 0.1, losses read at every step.
    """

    def __init__(
        self,
        *,
        tokens: int,
        pairs: int,
        vocabulary: int,
        width: int,
        batch: int,
        batches: int,
        learning_rate: float = 1e-3,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        from zoology import config as settings
        from zoology.data.multiquery_ar import MQARConfig
        from zoology.data.utils import prepare_data
        from zoology.model import LanguageModel
        from zoology.utils import set_determinism

        def data(examples: int) -> Any:
            return MQARConfig(
                num_examples=examples,
                vocab_size=vocabulary,
                input_seq_len=tokens,
                num_kv_pairs=pairs,
            )

        model = settings.ModelConfig(
            vocab_size=vocabulary,
            max_position_embeddings=tokens,
            d_model=width,
            n_layers=2,
            sequence_mixer=settings.ModuleConfig(
                name="zoology.mixers.attention.MHA", kwargs={"dropout": 0.1, "num_heads": 1}
            ),
        )
        self.settings = settings.TrainConfig(
            data=settings.DataConfig(
                train_configs=[data(batches * batch)],
                test_configs=[data(512)],
                batch_size=batch,
                seed=seed,
            ),
            model=model,
            learning_rate=learning_rate,
            seed=seed,
        )
        set_determinism(seed)
        with silent():
            self.model = LanguageModel(model)
            train, test = prepare_data(self.settings.data)
        # the embeddings make their places on 'cuda' whatever the model is on
        self.model.backbone.embeddings.device = device
        self.model.to(device)
        self.train = train
        self.tests = list(test)
        self.device = device

    def epoch_seconds(self) -> float:
        """Seconds of its `fit` for one epoch without a test at its end: of the processor, or on
        CUDA of the clock.
        """
        clock = time.process_time if self.device == "cpu" else time.perf_counter
        start = clock()
        with silent():
            self._trainer(self.train, lambda epoch: {}, epochs=1, metric=None).fit()
        if self.device != "cpu":
            torch.cuda.synchronize()
        return clock() - start

    def solve(self, *, every: int, at: float, most: int) -> tuple[int | None, float]:
        """Steps until the accuracy on fresh prompts reaches `at`, looked at after `every` steps,
        or None after `most`; and the seconds of training alone.

        Its cosine runs over 64 epochs of 100,000 examples, so that the rate hardly falls.
        """
        batches = list(self.train)
        spent = 0.0
        steps = 0
        start = time.process_time()
        found: list[int] = []
        trainer: Any = None

        def test(epoch: int) -> dict[str, float]:
            nonlocal spent, steps, start
            spent += time.process_time() - start
            steps += len(trainer.train_dataloader)
            accuracy = self.accuracy()
            if accuracy >= at:
                found.append(steps)
            first = steps % len(batches)
            trainer.train_dataloader = batches[first : first + every]
            start = time.process_time()
            # anything above the threshold ends its loop
            return {"valid/accuracy": 1.0 if found or steps >= most else 0.0}

        with silent():
            trainer = self._trainer(batches[:every], test, epochs=2000, metric="valid/accuracy")
            trainer.fit()
        return (found[0] if found else None), spent

    @torch.no_grad()
    def accuracy(self) -> float:
        """Share of answers that are right, over its test prompts."""
        self.model.eval()
        right = asked = 0
        for inputs, targets, _ in self.tests:
            due = targets != -100
            right += int((self.model(inputs).argmax(-1) == targets)[due].sum())
            asked += int(due.sum())
        return right / asked

    def _trainer(
        self,
        batches: Any,
        test: Callable[[int], dict[str, float]],
        *,
        epochs: int,
        metric: str | None,
    ) -> Any:
        from zoology.logger import WandbLogger
        from zoology.train import Trainer

        logger = WandbLogger(self.settings)
        trainer = Trainer(
            model=self.model,
            train_dataloader=batches,
            test_dataloader=[],
            max_epochs=epochs,
            learning_rate=self.settings.learning_rate,
            weight_decay=self.settings.weight_decay,
            early_stopping_metric=metric,
            early_stopping_threshold=0.99,
            device=self.device,
            logger=logger,
        )
        trainer.test = test
        return trainer

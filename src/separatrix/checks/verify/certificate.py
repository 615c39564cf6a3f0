"""Checks a certificate: rebuilds the model inside it, runs it on the inputs and derives every
recorded detail again.

It imports nothing of the searches. `separatrix.models.caches` defines what a model with rounded
numbers is; every claim about the run is checked here.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from separatrix.checks.verify.same import holding, told_by
from separatrix.core.errors import EvidenceError, first_line
from separatrix.core.evidence.canonical import canonical
from separatrix.core.evidence.records import Certificate
from separatrix.models.caches import (
    LEAST_ALIKE,
    LEAST_BORDER,
    LEAST_FLOAT32_MARGIN,
    LEAST_MARGIN,
    MESSAGES,
    Grid,
    RoundedRun,
    cache_codes,
    cache_digest,
    declared_bits,
    decoded,
    exact,
    margin,
    run,
    same_states,
    selection_gap,
    sparse_blocks,
)
from separatrix.models.model import Model, ModelConfig
from separatrix.models.stored.accuracy import fits
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task
from separatrix.tasks.base.layout import in_runs
from separatrix.tasks.base.task import Tokens


@holding("this certificate")
def verify_certificate(record: Certificate) -> list[str]:
    """What was checked, in sentences. Raises CheckFailed when a claim of the certificate is not
    true.
    """
    _, task = told_by(record)
    model = embedded_model(record.model, record.weights)
    fits(model, task)
    inputs = _inputs(record, task)
    said, derived = _CHECKS_BY_FORM[record.form](record, task, model, inputs)
    _compare(record.details, derived)
    numbers = sum(p.numel() for p in model.parameters())
    answers = " and ".join(map(str, record.answers))
    return [
        (
            f"the model was built again from the {numbers:,} weights inside the certificate:"
            f" {record.architecture}"
        ),
        (
            f"the {'prompts are instances' if len(inputs) > 1 else 'prompt is an instance'} of"
            f" {record.task}; right: {answers}"
        ),
        *said,
    ]


_TYPES = {"float32": ("<f4", np.float32), "float64": ("<f8", np.float64)}


def embedded_model(description: dict[str, Any], weights: dict[str, Any]) -> Model:
    """The model of a description and its embedded weights. Raises EvidenceError where they do
    not belong together.
    """
    config = ModelConfig.from_json(description)
    try:
        with torch.device("meta"):  # shapes only: a description of a huge model costs nothing
            model = Model(config)
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        raise EvidenceError(f"the model described cannot be built: {first_line(error)}") from None
    wanted = model.state_dict()
    if set(weights) != set(wanted):
        odd = sorted(set(weights).symmetric_difference(wanted))
        raise EvidenceError(
            "the weights are not those of the model described; missing or unknown:"
            f" {', '.join(odd)[:120]}"
        )
    decoded = {name: _decode(name, weights[name], tuple(wanted[name].shape)) for name in wanted}
    if len({tensor.dtype for tensor in decoded.values()}) > 1:
        raise EvidenceError("the weights mix float32 and float64; a model holds one of them")
    model.load_state_dict(decoded, assign=True)
    return model.requires_grad_(False).eval()


def _decode(name: str, entry: Any, shape: tuple[int, ...]) -> Tensor:
    """Raises EvidenceError unless its entry is the one that its numbers have."""
    array = None
    try:
        little, native = _TYPES[entry["dtype"]]
        data = base64.b64decode(entry["data"], validate=True)
        # the copy makes it writable and in the machine's own byte order
        array = np.frombuffer(data, little).astype(native).reshape(shape)
        # several texts decode to the same bytes; only the canonical one is accepted
        text = base64.b64encode(data).decode()
        again = {"dtype": entry["dtype"], "shape": list(shape), "data": text}
    except (KeyError, TypeError, ValueError):
        again = None
    if array is None or canonical(again) != canonical(entry):
        raise EvidenceError(
            f"weights '{name}' must have exactly the fields dtype ({' or '.join(_TYPES)}), shape"
            f" ({list(shape)}) and data, as many numbers in base64; the file was edited or damaged"
        )
    if not np.isfinite(array).all():
        raise EvidenceError(f"weights '{name}' hold a number that is not finite")
    return torch.from_numpy(array)


def _inputs(record: Certificate, task: Task) -> Tokens:
    """The prompts (1 or 2, length), once they are instances with the recorded answers and the
    model's output is wrong on one of them.
    """
    if record.form not in _CHECKS_BY_FORM:
        known = ", ".join(_CHECKS_BY_FORM)
        raise EvidenceError(
            f"unknown form of certificate '{str(record.form)[:20]}'; known: {known}"
        )
    rounded = record.form in ("collision", "block_swap")
    if rounded != (record.cache_format is not None):
        raise EvidenceError(
            f"a certificate of the form '{record.form}' is about the model"
            f" {'in' if rounded else 'as it is, without'} the cache format {record.cache_format!r}"
        )
    wanted = 1 if record.form == "wrong_answer" else 2
    if len(record.inputs) != wanted or len(record.answers) != wanted:
        raise EvidenceError(
            f"a certificate of the form {record.form} has {wanted} inputs and answers"
        )
    for prompt in record.inputs:
        if len(prompt) != task.length or not all(0 <= token < task.vocabulary for token in prompt):
            raise EvidenceError(
                f"an input is no prompt of {task.spec}: {task.length} tokens from 0 to"
                f" {task.vocabulary - 1}"
            )
    inputs = np.array(record.inputs, np.int64)
    right = task.answer(inputs).tolist()
    if right != record.answers:
        raise EvidenceError(f"the right answers are {right}; the certificate says {record.answers}")
    if wanted == 2 and right[0] == right[1]:
        raise EvidenceError(f"both prompts have the right answer {right[0]}: nothing is refuted")
    if wanted == 1 and record.output == right[0]:
        raise EvidenceError(f"the output {record.output} is the right answer: nothing is refuted")
    return inputs


def _collision(
    record: Certificate, task: Task, model: Model, inputs: Tokens
) -> tuple[list[str], dict[str, Any]]:
    grid = _grid(record)
    copy = exact(model)
    cut = record.details.get("prefix_length")
    if type(cut) is not int or not 0 < cut < task.length:
        raise EvidenceError(
            f"the prefix length {str(cut)[:20]} does not lie between 0 and the prompt's"
            f" {task.length}"
        )
    if not np.array_equal(inputs[0, cut:], inputs[1, cut:]):
        raise EvidenceError(f"the prompts do not end alike after their first {cut} tokens")
    before, derived = _twice(copy, inputs, cut, grid, None, record.output)
    bits = cache_codes(before[0].cache, grid).shape[1] * grid.bits
    said = [
        (
            f"their first {cut} tokens differ and leave the same cache, all {bits:,} bits of it"
            f" ({grid.bits} bits per number, {grid})"
        ),
        _ending(record, task.length - cut, derived),
    ]
    return said, {
        "prefix_length": cut,
        "cache_bits": bits,
        "cache_sha256": cache_digest(before[0].cache, grid),
        **derived,
    }


def _block_swap(
    record: Certificate, task: Task, model: Model, inputs: Tokens
) -> tuple[list[str], dict[str, Any]]:
    grid = _grid(record)
    copy = exact(model)
    cut = task.length - 1
    size = sparse_blocks(model).block
    bos = int(model.config.bos)
    # positions count the start token, prompts do not
    blocks = (cut + bos) // size
    slots = {int(place + bos) // size for place in np.flatnonzero(inputs[0] != inputs[1])}
    if len(slots) != 1 or not max(slots) < blocks:
        raise EvidenceError(
            f"the prompts differ in the blocks {sorted(slots)}; they must differ in one of {blocks}"
            " complete blocks"
        )
    before, derived = _twice(copy, inputs, cut, grid, MESSAGES, record.output)
    gap = min(selection_gap(copy, int(inputs[0, cut]), one.cache, cut) for one in before)
    if gap < LEAST_MARGIN:
        raise EvidenceError(
            f"the scores of the last block opened and the next differ by {gap:.1e}: which is opened"
            " depends on rounding"
        )
    numbers = cache_codes(before[0].cache, grid, names=MESSAGES).shape[1]
    message = numbers // blocks * grid.bits
    (slot,) = slots
    said = [
        (
            f"they differ in block {slot} only, whose two contents send one message of {message:,}"
            f" bits; the other {blocks - 1} are equal"
        ),
        _ending(record, 1, derived),
    ]
    return said, {
        "block": slot,
        "blocks": blocks,
        "message_bits": message,
        "messages_sha256": cache_digest(before[0].cache, grid, names=MESSAGES),
        "selection_gap": gap,
        **derived,
    }


def _wrong_answer(
    record: Certificate, task: Task, model: Model, inputs: Tokens
) -> tuple[list[str], dict[str, Any]]:
    tokens = torch.from_numpy(inputs)
    copy = exact(model)
    # states are rounded as the stack declares: the model meant is the one that decodes
    model.exact_state = True
    with torch.no_grad():
        # two forms, two formats: an answer that both give is no accident of rounding
        own = model(tokens)[0].double()
    logits, _ = decoded(copy, tokens)
    _output(own, record.output, LEAST_FLOAT32_MARGIN)
    gap = _output(logits[0], record.output, LEAST_FLOAT32_MARGIN)
    kind = str(model.head.weight.dtype).removeprefix("torch.")
    return [
        f"the model answers {record.output}, in {kind} and token by token in float64, by a margin"
        f" of {gap:.3e}"
    ], {"margin": gap}


def _two_runs(
    record: Certificate, task: Task, model: Model, inputs: Tokens
) -> tuple[list[str], dict[str, Any]]:
    model.exact_state = True
    ends = [decoded(model, torch.from_numpy(prompt[None])) for prompt in inputs]
    gap = min(_output(logits[0].double(), record.output, LEAST_ALIKE) for logits, _ in ends)
    equal = bool(same_states(*(cache for _, cache in ends))[0])
    kind = str(model.head.weight.dtype).removeprefix("torch.")
    left = "leave one state behind, number for number" if equal else "leave different states behind"
    said = (
        f"token by token in {kind}, states rounded as declared, both prompts are answered"
        f" {record.output}, by a margin of {gap:.3e} at least, and {left}"
    )
    shown = [in_runs(prompt.tolist()) for prompt in inputs]
    return [said], {"first": shown[0], "second": shown[1], "equal_state": equal}


_CHECKS_BY_FORM: dict[
    str, Callable[[Certificate, Task, Model, Tokens], tuple[list[str], dict[str, Any]]]
] = {
    "collision": _collision,
    "block_swap": _block_swap,
    "two_runs": _two_runs,
    "wrong_answer": _wrong_answer,
}


def _grid(record: Certificate) -> Grid:
    assert record.cache_format is not None
    grid = Grid.parse(record.cache_format)
    declared = declared_bits(Architecture.parse(record.architecture))
    if declared != grid.bits:
        what = "no single format pN" if declared is None else f"numbers of {declared} bits"
        raise EvidenceError(
            f"its cached numbers are rounded to {grid.bits} bits, and the architecture declares"
            f" {what} for them: this is about another stack"
        )
    return grid


def _twice(
    copy: Model, inputs: Tokens, cut: int, grid: Grid, names: frozenset[str] | None, output: int
) -> tuple[list[RoundedRun], dict[str, Any]]:
    """Each prompt run alone up to the cut, and the distances of the whole runs. Raises
    EvidenceError unless both leave the same numbers there, and answer `output` alike.
    """
    prompts = [torch.from_numpy(prompt[None]) for prompt in inputs]
    before = [run(copy, prompt[:, :cut], grid, names=names) for prompt in prompts]
    if not torch.equal(*(cache_codes(one.cache, grid, names=names) for one in before)):
        left = "leave different caches" if names is None else "send different messages"
        raise EvidenceError(f"the first {cut} tokens of the prompts {left}")
    ends = [
        run(copy, p[:, cut:], grid, names=names, after=b, seen=cut)
        for p, b in zip(prompts, before, strict=True)
    ]
    if not torch.equal(ends[0].logits, ends[1].logits):
        raise EvidenceError("the model's logits on the two prompts differ")
    border = min(float(one.border[0]) for one in ends)
    gap = _output(ends[0].logits[0], output, LEAST_MARGIN)
    if border < LEAST_BORDER:
        raise EvidenceError(
            f"a number comes within {border:.1e} of a rounding border: another machine might round"
            " it the other way"
        )
    return before, {"border_distance": border, "margin": gap}


def _output(logits: Tensor, output: int, least: float) -> float:
    """The margin of the answer, if it is the recorded one and safe."""
    gap = margin(logits)
    if int(logits.argmax()) != output:
        raise EvidenceError(
            f"the model answers {int(logits.argmax())}; the certificate says {output}"
        )
    if not gap >= least:
        raise EvidenceError(
            f"the two largest logits differ by {gap:.1e} only; at least {least:g} is needed to"
            " reproduce the answer"
        )
    return gap


def _ending(record: Certificate, tokens: int, derived: dict[str, Any]) -> str:
    return (
        f"after the {tokens:,} token{'s' if tokens > 1 else ''} they share, both have the same"
        f" logits and get the answer {record.output}, by a margin of {derived['margin']:.3e}; no"
        f" number came closer than {derived['border_distance']:.3e} to a rounding border"
    )


def _compare(recorded: dict[str, Any], derived: dict[str, Any]) -> None:
    """Raises EvidenceError unless exactly the derived details are recorded; distances agree to
    the four digits recorded.
    """
    if set(recorded) != set(derived):
        odd = sorted(set(recorded).symmetric_difference(derived))
        raise EvidenceError(
            f"the details are not those of this form; missing or unknown: {', '.join(odd)[:120]}"
        )
    for name, value in derived.items():
        # another machine may differ in the last digits of float64, which can move the rounding
        near = (
            [f"{value * (1 + off):.3e}" for off in (-1e-6, 0.0, 1e-6)]
            if isinstance(value, float)
            else [value]
        )
        if recorded[name] not in near or type(recorded[name]) is not type(near[0]):
            told = near[0] if isinstance(value, float) and math.isfinite(value) else value
            raise EvidenceError(
                f"{name} is {told}; the certificate says {str(recorded[name])[:70]!r}"
            )

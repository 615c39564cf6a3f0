"""Certificates must be refused as soon as what they say is not true, with the content hash as it
was and with a fitting one.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from separatrix.checks.refute import refute
from separatrix.checks.refute.record import embed_weights
from separatrix.checks.verify import verify, verify_path
from separatrix.checks.verify.certificate import verify_certificate
from separatrix.core.errors import CheckFailed, EvidenceError, SeparatrixError
from separatrix.core.evidence.canonical import canonical
from separatrix.core.evidence.records import Certificate, from_envelope
from separatrix.models.model import Model, ModelConfig
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task

CASES = {
    "collision": ("linear @ heads=1, head_dim=2, p2", "eva:n=8,V=8"),
    "window": ("window(size=3) @ heads=1, head_dim=2, p3", "seqcomp:L=2,m=4,n_1=2"),
    "block_swap": ("sparse(block=4, topk=1) @ heads=1, head_dim=2, p3", "twosum:n=12,M=32"),
    "wrong_answer": ("full @ heads=1, head_dim=2", "eva:n=8,V=8"),
}


@cache
def found(case: str) -> Certificate:
    spec, task = CASES[case]
    certificate = refute(Architecture.parse(spec), parse_task(task), budget=600, seed=5)
    assert isinstance(certificate, Certificate)
    assert certificate.form == {"window": "collision"}.get(case, case)
    return certificate


def _model(record: Certificate) -> Model:
    model = Model(ModelConfig.from_json(record.model))
    model.load_state_dict(
        {
            name: torch.from_numpy(_numbers(entry).copy()).view(entry["shape"])
            for name, entry in record.weights.items()
        }
    )
    return model.double()


def _numbers(entry: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(entry["data"]), "<f4")


def holds(record: Certificate) -> bool:
    """The claim itself, evaluated plainly: the prompts are wrong for this model, and for the
    forms with two, cannot be told apart.
    """
    task = parse_task(record.task)
    right = np.array(record.inputs)
    model = _model(record)
    carried, logits = zip(
        *(_stream(model, prompt, record) for prompt in record.inputs), strict=True
    )
    answers = [int(x.argmax()) for x in logits]
    honest = task.answer(right).tolist() == record.answers and answers == [record.output] * len(
        answers
    )
    if record.form == "wrong_answer":
        return honest and record.answers != [record.output]
    return (
        honest
        and record.answers[0] != record.answers[1]
        and carried[0] == carried[1]
        and bool((logits[0] == logits[1]).all())
    )


@torch.no_grad()
def _stream(
    model: Model, prompt: list[int], record: Certificate
) -> tuple[list[float], torch.Tensor]:
    """What is carried to the continuation, and the logits, with plain rounding in each step."""
    cut = record.details.get("prefix_length", len(prompt) - 1)
    bits, step = (
        (int(x) for x in record.cache_format[1:].split(":step=2^"))
        if record.cache_format
        else (64, 0)
    )

    def rounded(name: str, x: torch.Tensor) -> torch.Tensor:
        if record.form == "wrong_answer" or (
            record.form == "block_swap" and not name.startswith("compressed")
        ):
            return x
        return (x * 2.0**-step).round().clamp(
            -(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1
        ) * 2.0**step

    def all_rounded(cache: Any) -> Any:
        return [
            [{n: rounded(n, x) for n, x in state.items()} for state in states] for states in cache
        ]

    cache = all_rounded(model.init_cache(1))
    carried = []
    logits = torch.empty(0)
    for place, token in enumerate(prompt):
        if place == cut:
            named = [
                (n, x) for states in cache for state in states for n, x in sorted(state.items())
            ]
            carried = [
                float(v)
                for n, x in named
                if record.form != "block_swap" or n.startswith("compressed")
                for v in x.flatten()
            ]
        logits, cache = model.step(torch.tensor([token]), cache, place)
        cache = all_rounded(cache)
    return carried, logits[0]


@pytest.mark.parametrize("case", CASES)
def test_what_is_found_holds(case: str) -> None:
    assert holds(found(case))
    assert len(verify(found(case), folder=Path()).checks) >= 4


@pytest.mark.parametrize("case", CASES)
def test_any_changed_byte_is_refused(case: str, tmp_path: Path) -> None:
    """Every 31st byte of the file: it is no longer JSON, not evidence, or its hash no longer
    fits.
    """
    text = canonical(found(case).envelope())
    path = tmp_path / "certificate.json"
    path.write_text(text)
    verify_path(path)
    for place in range(len(text) % 31, len(text), 31):
        path.write_text(_changed(text, place))
        with pytest.raises(EvidenceError):
            verify_path(path)


@pytest.mark.parametrize("case", CASES)
def test_a_cut_off_file_is_refused(case: str, tmp_path: Path) -> None:
    text = canonical(found(case).envelope())
    for length in (0, 1, len(text) // 2, len(text) - 1):
        (tmp_path / "certificate.json").write_text(text[:length])
        with pytest.raises(EvidenceError, match="not JSON"):
            verify_path(tmp_path)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow
def test_what_a_liar_with_a_fitting_hash_gets_through_is_true(case: str) -> None:
    """Every third byte outside the weights, changed, and the hash computed anew: refused, unless
    the claim is still true as it then stands.
    """
    record = found(case)
    body = record.body()
    weights = body.pop("weights")
    text = canonical(body)
    refused = 0
    places = range(0, len(text), 3)
    for place in places:
        try:
            changed = Certificate(**(json.loads(_changed(text, place)) | {"weights": weights}))
            changed = from_envelope(json.loads(canonical(changed.envelope())))
        except (ValueError, TypeError, EvidenceError):
            refused += 1
            continue
        assert isinstance(changed, Certificate)
        try:
            verify_certificate(changed)
        except EvidenceError:
            refused += 1
        else:
            assert holds(changed), canonical(changed.body() | {"weights": {}})
    assert refused > 0.97 * len(places)


def _changed(text: str, place: int) -> str:
    old = text[place]
    new = str((int(old) + 1) % 10) if old.isdigit() else ("b" if old != "b" else "c")
    return text[:place] + new + text[place + 1 :]


Edit = Callable[[dict[str, Any]], None]


def _put(*path: str | int, value: Any) -> Edit:
    def edit(body: Any) -> None:
        for key in path[:-1]:
            body = body[key]
        old = body[path[-1]]
        body[path[-1]] = value(old) if callable(value) else value

    return edit


def _drop(*path: str) -> Edit:
    def edit(body: dict[str, Any]) -> None:
        for key in path[:-1]:
            body = body[key]
        del body[path[-1]]

    return edit


def _weights(
    body: dict[str, Any],
    change: Callable[[np.ndarray], np.ndarray],
    *,
    ending: tuple[str, ...] = ("",),
) -> None:
    for name, entry in body["weights"].items():
        if name.endswith(ending):
            entry["data"] = base64.b64encode(
                change(_numbers(entry)).astype("<f4").tobytes()
            ).decode()


EVERYWHERE: dict[str, Edit] = {
    "another answer": _put("answers", 0, value=lambda a: (a + 1) % 2),
    "an answer too many": _put("answers", value=lambda a: [*a, 0]),
    "another output": _put("output", value=lambda a: a + 1),
    "no such output": _put("output", value=10**30),
    "another token": _put("inputs", 0, 0, value=lambda t: (t + 1) % 4),
    "a token that is none": _put("inputs", 0, 0, value=-1),
    "a token too large": _put("inputs", 0, 0, value=10**30),
    "a token more": _put("inputs", 0, value=lambda p: [*p, 0]),
    "a prompt more": _put("inputs", value=lambda p: [*p, p[0]]),
    "no prompt": _put("inputs", value=[]),
    "an unknown form": _put("form", value="proof"),
    "another architecture": _put("architecture", value="gdn @ heads=1, head_dim=2"),
    "an unreadable architecture": _put("architecture", value="linear ++"),
    "another spelling of the architecture": _put("architecture", value=lambda a: a + " "),
    "another task": _put("task", value="eva:n=9,V=8"),
    "another spelling of the task": _put("task", value=lambda t: t.replace("=", " = ", 1)),
    "an unknown task": _put("task", value="evo:n=8,V=8"),
    "a vocabulary too large": _put("model", "vocabulary", value=1 << 40),
    "another width": _put("model", "width", value=lambda w: w + 1),
    "another start": _put("model", "bos", value=False),
    "a model without norms": _put("model", "norm", value=False),
    "another model": _put("model", "architecture", value="full*2 @ heads=1, head_dim=2"),
    "an endless model": _put(
        "model", "architecture", value="linear(heads=1000000000000, head_dim=1000000000000)"
    ),
    "a model of no layers": _put("model", "architecture", value=""),
    "a size of the model missing": _drop("model", "hidden"),
    "a weight missing": _drop("weights", "head.bias"),
    "a weight too many": _put("weights", value=lambda w: w | {"more": w["head.bias"]}),
    "weights of another type": _put("weights", "head.bias", "dtype", value="float64"),
    "weights of no type": _put("weights", "head.bias", "dtype", value="pickle"),
    "weights of another shape": _put("weights", "head.bias", "shape", value=lambda s: [1, *s]),
    "weights of a shape that is no list": _put("weights", "head.bias", "shape", value="8"),
    "weights cut off": _put("weights", "head.bias", "data", value=lambda d: d[:-8]),
    "weights that are not base64": _put(
        "weights", "head.bias", "data", value=lambda d: "*" + d[1:]
    ),
    "weights that are a number": _put("weights", "head.bias", value=3),
    "weights that are not finite": lambda body: _weights(body, lambda x: x * np.nan),
    "weights that are zero": lambda body: _weights(body, lambda x: x * 0),
    "weights of the other sign": lambda body: _weights(body, lambda x: -x),
    "another margin": _put(
        "details", "margin", value=lambda x: x[:-5] + str((int(x[-5]) + 1) % 10) + x[-4:]
    ),
    "a margin that is a number": _put("details", "margin", value=float),
    "a margin that is none": _put("details", "margin", value=None),
    "no margin": _drop("details", "margin"),
    "a detail more": _put("details", value=lambda d: d | {"seed": 0}),
    "no details": _put("details", value={}),
}
ROUNDED: dict[str, Edit] = {
    "another grid": _put("cache_format", value=lambda g: g.replace("p", "p1")),
    "another step": _put("cache_format", value=lambda g: g[:-1] + str((int(g[-1]) + 1) % 10)),
    "no grid": _put("cache_format", value=None),
    "a format that is no grid": _put("cache_format", value="bf16"),
    "one prompt twice": _put("inputs", value=lambda p: [p[0], p[0]]),
    "one prompt and one answer": lambda body: body.update(
        inputs=body["inputs"][:1], answers=body["answers"][:1]
    ),
    "the prompts exchanged": _put("inputs", value=lambda p: p[::-1]),
    "another ending of one prompt": _put("inputs", 1, -1, value=lambda t: (t + 1) % 8),
    "another border distance": _put("details", "border_distance", value="9.999e-01"),
    "no border distance": _drop("details", "border_distance"),
    "a wrong answer": _put("form", value="wrong_answer"),
}


def _end_at_the_last_difference(body: dict[str, Any]) -> None:
    """A prefix that leaves out the last token in which the prompts differ: false for any draw."""
    first, second = body["inputs"]
    differ = [i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]
    body["details"]["prefix_length"] = differ[-1]


COLLISION: dict[str, Edit] = {
    "another prefix length": _end_at_the_last_difference,
    "a prefix of the whole prompt": _put("details", "prefix_length", value=lambda n: n + 1),
    "a prefix of nothing": _put("details", "prefix_length", value=0),
    "a prefix length that is none": _put("details", "prefix_length", value=8.0),
    "a prefix length that is true": _put("details", "prefix_length", value=True),
    "no prefix length": _drop("details", "prefix_length"),
    "another number of bits": _put("details", "cache_bits", value=lambda n: n + 1),
    "a number of bits that is a float": _put("details", "cache_bits", value=float),
    "another cache": _put("details", "cache_sha256", value=lambda d: d[::-1]),
    "a block swap": _put("form", value="block_swap"),
}
SWAP: dict[str, Edit] = {
    "another block": _put("details", "block", value=lambda b: b + 1),
    "another number of blocks": _put("details", "blocks", value=lambda b: b + 1),
    "another message size": _put("details", "message_bits", value=lambda b: b + 1),
    "other messages": _put("details", "messages_sha256", value=lambda d: d[::-1]),
    "another gap": _put("details", "selection_gap", value="1.000e+00"),
    "two blocks that differ": (
        lambda body: body["inputs"][0].__setitem__(-3, (body["inputs"][0][-3] + 1) % 32)
    ),
    "a collision": _put("form", value="collision"),
}
WRONG: dict[str, Edit] = {
    "the right answer": lambda body: body.update(output=body["answers"][0]),
    "a grid": _put("cache_format", value="p3:step=2^0"),
    "a collision": _put("form", value="collision"),
}
LIES = [
    *((case, EVERYWHERE) for case in CASES),
    *((case, ROUNDED) for case in ("collision", "window", "block_swap")),
    *((case, COLLISION) for case in ("collision", "window")),
    ("block_swap", SWAP),
    ("wrong_answer", WRONG),
]


def _slow(case: str, edits: dict[str, Edit], number: int) -> bool:
    """A window's certificate is a collision too. Lies about any certificate are told of a
    collision fast, of each other form every second one.
    """
    return case == "window" or (
        edits is EVERYWHERE and case != "collision" and number % 2 == (case == "block_swap")
    )


@pytest.mark.parametrize(
    ("case", "name", "edit"),
    [
        pytest.param(
            case,
            name,
            edit,
            marks=[pytest.mark.slow] if _slow(case, edits, number) else [],
            id=f"{case}-{name}",
        )
        for case, edits in LIES
        for number, (name, edit) in enumerate(edits.items())
    ],
)
def test_a_lie_with_a_fitting_hash_is_refused(case: str, name: str, edit: Edit) -> None:
    body = json.loads(canonical(found(case).body()))
    edit(body)
    record = Certificate(**body)
    with pytest.raises(SeparatrixError) as refused:
        verify_certificate(record)
    assert isinstance(refused.value, EvidenceError), refused.value
    assert "\n" not in str(refused.value)
    # what is too large to build is refused before anything is said of it
    with (
        pytest.raises(CheckFailed, match="does not hold")
        if "large" not in name
        else (pytest.raises(EvidenceError, match=r"the limit is|does not hold"))
    ):
        verify(record, folder=Path())


def _with_its_own_output(body: dict[str, Any]) -> Certificate:
    """The record with the output that its model gives to the first prompt."""
    record = Certificate(**body)
    _, logits = _stream(_model(record), record.inputs[0], record)
    return dataclasses.replace(record, output=int(logits.argmax()))


def test_a_number_on_a_rounding_border_is_refused() -> None:
    """With zero keys phi = 1 and Z counts the tokens: on a grid of step 2 the number 1 after the
    first token is a border.
    """
    body = json.loads(canonical(found("collision").body())) | {"cache_format": "p2:step=2^1"}
    _weights(body, lambda x: 0 * x, ending=("k.weight", "v.weight"))
    record = _with_its_own_output(body)
    with pytest.raises(EvidenceError, match=r"comes within 0\.0e"):
        verify_certificate(record)


@pytest.mark.slow
def test_blocks_chosen_by_a_tie_are_refused() -> None:
    """With zero queries every block has the score 0, and the first is opened; here another one
    is swapped.
    """
    spec, task = CASES["block_swap"]
    swaps = (
        refute(Architecture.parse(spec), parse_task(task), budget=600, seed=seed)
        for seed in range(11, 30)
    )
    swap = next(
        swap for swap in swaps if isinstance(swap, Certificate) and swap.details["block"] > 0
    )
    body = json.loads(canonical(swap.body()))
    _weights(body, lambda x: 0 * x, ending=("q.weight",))
    with pytest.raises(EvidenceError, match="depends on rounding"):
        verify_certificate(_with_its_own_output(body))


@pytest.mark.parametrize(
    ("case", "place", "message"),
    [("collision", 7, "different caches"), ("block_swap", None, "different messages")],
)
def test_one_output_is_not_enough(case: str, place: int | None, message: str) -> None:
    """A head that ignores the stream answers everything alike; the caches, and the messages,
    must be equal nevertheless.
    """
    body = json.loads(canonical(found(case).body()))
    _weights(body, lambda x: 0 * x, ending=("head.weight",))
    _weights(body, lambda x: np.arange(len(x), dtype="<f4"), ending=("head.bias",))
    first, second = body["inputs"]
    if place is None:
        if body["answers"][
            0
        ]:  # change the prompt without a match, so that the answers go on differing
            first, second = second, first
        place = next(i for i in range(len(first)) if first[i] != second[i])
        first[place] = next(
            t for t in range(32) if t not in (first[place], -first[-1] % 32, second[place])
        )
    else:
        first[:-1], second[:-1] = [0] * 8, [7] * 8
    body["answers"] = parse_task(body["task"]).answer(np.array(body["inputs"])).tolist()
    with pytest.raises(EvidenceError, match=message):
        verify_certificate(_with_its_own_output(body))


@pytest.mark.parametrize("name", ["vocabulary", "answers", "length"])
def test_a_model_of_another_task_is_refused(name: str) -> None:
    """One size alone is another; the weights fit it."""
    record = found("wrong_answer")
    config = ModelConfig.from_json(record.model)
    more = -1 if name == "length" else 1
    other = dataclasses.replace(config, **{name: getattr(config, name) + more})
    weights = embed_weights(Model(other))
    with pytest.raises(SeparatrixError, match="does not fit"):
        verify_certificate(dataclasses.replace(record, model=other.to_json(), weights=weights))

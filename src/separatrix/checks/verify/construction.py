"""Checks a construction: derives the whole proof again from the weights, for every input of the
task, and runs the model against the oracle.
"""

from __future__ import annotations

import copy
import itertools
import re
import secrets
from math import prod
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from separatrix.checks.verify.checkpoint import verify_checkpoint
from separatrix.checks.verify.same import difference, holding, told_by
from separatrix.core.errors import CannotCheck, CheckFailed, EvidenceError
from separatrix.core.evidence.canonical import canonical, sha256
from separatrix.core.evidence.records import Construction
from separatrix.mixers.base.mixer import DTYPES
from separatrix.models.model import Model, ModelConfig
from separatrix.models.stored.weights import EITHER, SINGLE, described, filled, weight_file
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.arithmetic import arithmetic as named
from separatrix.proofs.balls import down
from separatrix.proofs.derivations import DERIVATIONS, Derivation, Derived
from separatrix.proofs.derivations.parts.derivation import (
    adversarial,
    all_right,
    at_once,
    claimed,
    drawn,
    logits_of,
)
from separatrix.proofs.derivations.parts.live_parts import declared_otherwise
from separatrix.tasks import Task
from separatrix.tasks.base.task import Tokens

EXHAUSTIVE_UP_TO = 5_000
"""Where a task has no more inputs than this, the model is run on all of them."""
_RANDOM_INPUTS = 64
_HARD = 8
"""So many at least are of the kinds on which constructions are likelier to fail."""
_WORK = 1 << 28
_PER_TOKEN = 1 << 10
"""Of a recurrent layer."""


@holding("this construction")
def verify_construction(record: Construction, folder: Path) -> list[str]:
    """What was checked, in plain sentences. `folder` holds the weights.

    Raises CheckFailed when the weights cannot be read, or do not do what the record claims.
    """
    if record.name not in DERIVATIONS:
        raise CheckFailed(f"unknown construction '{record.name}'; known: {', '.join(DERIVATIONS)}")
    derivation = DERIVATIONS[record.name]
    _, task = told_by(record)
    if not isinstance(task, derivation.task):
        raise CheckFailed(f"'{record.task}' is no task that '{record.name}' solves")
    arithmetic = named(record.format or FP32.name)
    if record.format == FP32.name:
        raise CheckFailed("records about float32 name no format")
    config = _config(record, task)
    model = _model(record, config, folder)
    if "unproved" in record.proof:
        _unproved(record, task, model, arithmetic)
    derived = derivation.proved(task, model, arithmetic)
    lead = down(derived.margin)
    declared = None if derived.exact else declared_otherwise(model, arithmetic)
    if declared is not None:
        raise CheckFailed(declared)
    _compare(record, task, model, derived, arithmetic)
    others = _other_proofs(record, derivation, task, model)
    ran, tokens = _run(derivation, task, model, derived)
    formats = ", ".join(named(name).title for name in derived.formats)
    return [
        (
            "the weights are the file the record names, and the model is built from its own"
            " description"
        ),
        f"every mixer and MLP that is not among the {len(derived.layers)} of the proof is exactly"
        " zero",
        (
            "the proof derived again from the weights, for every input: the same numbers; the"
            f" right logit leads by at least {lead} in {formats}"
        ),
        *others,
        ran,
        *verify_checkpoint(record, folder, model, tokens),
    ]


def _unproved(record: Construction, task: Task, model: Model, arithmetic: Arithmetic) -> NoReturn:
    """Raises CannotCheck: a record that claims nothing. Raises CheckFailed where it does claim
    something.
    """
    said = claimed(task, model, None, arithmetic)
    if any(canonical(getattr(record, name)) != canonical(value) for name, value in said.items()):
        raise CheckFailed(f"a record without a proof says no more than: {said['statement']}")
    if record.proofs:
        raise CheckFailed("a record without a proof has proofs in other formats")
    raise CannotCheck(said["statement"])


def _other_proofs(
    record: Construction, derivation: Derivation[Any], task: Task, model: Model
) -> list[str]:
    """What was checked of proofs in other formats. Raises CheckFailed where one is not what the
    weights have.
    """
    said: list[str] = []
    for name, proof in record.proofs.items():
        told = derivation.told(task, model, named(name))
        if canonical(proof) != canonical(told):
            raise CheckFailed(
                f"the proof recorded in {name} is not the one the weights have:"
                f" {difference(told, proof, 'it')}"
            )
        if "breaks" in told:
            said.append(f"in {named(name).title} nothing is proved, as recorded: {told['breaks']}")
            continue
        derived = derivation.proved(task, model, named(name))
        ran, _ = _run(derivation, task, model, derived)
        said.append(
            f"the proof in {named(name).title} derived again: the same numbers; the right logit"
            f" leads by at least {told['final_margin']}; {ran}"
        )
    return said


def _config(record: Construction, task: Task) -> ModelConfig:
    """The model's description. Raises CheckFailed when it is not for this task and architecture."""
    config = ModelConfig.from_json(record.model)
    if config.architecture != record.architecture:
        raise CheckFailed(f"architecture '{record.architecture}' is not the one of the model")
    if (config.vocabulary, config.length, config.answers, config.norm) != (
        task.vocabulary,
        task.length,
        task.answers,
        False,
    ):
        raise CheckFailed(
            f"the model's vocabulary, length and answers are not those of {task.spec}, or it has"
            " norms"
        )
    return config


def _model(record: Construction, config: ModelConfig, folder: Path) -> Model:
    """The model with the weights of the file. Raises EvidenceError for a file that is missing,
    changed, or does not fit.
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]+\.safetensors", record.weights):
        raise EvidenceError(
            f"'{record.weights}' is no name of a safetensors file beside the record"
        )
    path = folder / record.weights
    model = described(config)
    dtypes = EITHER if record.format else SINGLE
    data = weight_file(path, model, dtypes)
    # hashed before it is parsed, so that only the named file is read as tensors
    if sha256(data) != record.weights_sha256:
        raise CheckFailed(f"{path}: the weights were changed (another sha256 than the record's)")
    if record.weights != f"{record.name}-{record.weights_sha256[:12]}.safetensors":
        raise CheckFailed(f"'{record.weights}' is not named after its construction and its sha256")
    return filled(model, data, path, dtypes)


def _compare(
    record: Construction, task: Task, model: Model, derived: Derived, arithmetic: Arithmetic
) -> None:
    """Raises CheckFailed, naming the field, where the record says something else than was
    derived.
    """
    for name, value in claimed(task, model, derived, arithmetic).items():
        said = getattr(record, name)
        if canonical(said) != canonical(value):
            raise CheckFailed(
                f"the {name} recorded is not what the weights give: {difference(value, said, name)}"
            )


def _run(
    derivation: Derivation[Any], task: Task, model: Model, derived: Derived
) -> tuple[str, Tokens]:
    """In which formats the model was run, on what, in words; and these inputs: all, where they are
    few; else random ones, other ones each time, and hard ones. Raises CheckFailed when an answer is
    wrong.
    """
    ids = derivation.ids(task)
    # prompts of that many positions have more inputs still: nothing to multiply out
    count = prod(ids) if len(ids) <= EXHAUSTIVE_UP_TO else EXHAUSTIVE_UP_TO + 1
    seeded = ""
    if count <= EXHAUSTIVE_UP_TO:
        tokens = np.array(list(itertools.product(*map(range, ids))), np.int64)
        tokens = tokens[derivation.asked(task, tokens)]
        what = f"all {len(tokens):,} inputs"
    else:
        seed = secrets.randbits(64)
        # said with a wrong answer, so that it can be met again
        seeded = f" (seed {seed})"
        rng = np.random.default_rng(seed)
        cost = _cost(model, task.length)
        if derived.exact:
            # its one layer reads every token, wherever it stands, in each of the formats
            cost += _PER_TOKEN * task.length
        number = max(1, min(_RANDOM_INPUTS, _WORK // cost))
        some = drawn(task, np.tile(np.array(ids, np.int64), (number, 1)), rng)
        some = some[derivation.asked(task, some)]
        hard = adversarial(derivation, task, max(_HARD, number // 2), rng)
        tokens = np.concatenate([some, hard])
        what = (
            f"{len(some)} random input{'s' * (len(some) > 1)}, and {len(hard)} likelier to fail:"
            " ties, extremes, one token among equal ones"
        )
    runs = [name for name in derived.formats if name in DTYPES]
    if not runs:
        return f"not run: nothing here computes in {derived.formats[0]}", tokens
    for name in runs:
        other = copy.deepcopy(model).to(DTYPES[name])
        how = f" in {named(name).title}{seeded}"
        all_right(logits_of(other), task, tokens, at_once(model, task), how)
    titles = ", ".join(named(name).title for name in runs)
    right = f"every {'written token and ' * task.stepwise}answer right"
    return f"run in {titles} on {what}: {right}", tokens


def _cost(model: Model, tokens: int) -> int:
    """Roughly, the work of one input: every layer but the last for every pair of tokens, or as
    much again per token.
    """
    before = (part for layer in model.architecture.layers[:-1] for part in layer)
    heads = sum(getattr(part, "heads", 1) for part in before)
    return max(1, heads * tokens * max(tokens, 512))

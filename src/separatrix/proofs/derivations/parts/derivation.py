"""How the proof of a construction is derived from the weights alone; and what its model answers: at
once, after several tokens, or after the tokens that it writes itself.

Inputs on which a construction is likelier to fail than on random ones: ties, extremes, repeated
values, one token among equal ones, and the task's own draws with one token changed.

They are drawn from the ids that may stand at each position, whatever the task.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from separatrix.core.errors import CheckFailed, SizeError
from separatrix.core.numbers.formats import DIGITS
from separatrix.models.model import Model
from separatrix.models.stored.accuracy import MOST_NUMBERS, numbers_of
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.balls import down
from separatrix.proofs.derivations.parts.live_parts import Live
from separatrix.proofs.entries import UNPROVED, construction_statement, entry, unproved_statement
from separatrix.proofs.exact import ARITHMETIC, Digits
from separatrix.tasks import Task, Thought
from separatrix.tasks.base.task import NO_ANSWER, Tokens
from separatrix.tasks.labels import asked

Logits = Callable[[Tokens, Tokens | None], NDArray[np.floating]]
"""Logits (batch, k, answers) of prompts at some places (batch, k), or after the last token
alone.
"""


def prompts_of(task: Task) -> Task:
    """The task whose prompts are given: of a chain of thought the one that is thought about."""
    return task.asked if task.stepwise else task


def instances(task: Task, tokens: Tokens) -> NDArray[np.bool_]:
    """Which rows are instances of a task: of what the oracle refuses each half is asked again."""
    try:
        task.answer(tokens)
    except SizeError:
        if len(tokens) == 1:
            return np.zeros(1, np.bool_)
        half = len(tokens) // 2
        return np.concatenate([instances(task, tokens[:half]), instances(task, tokens[half:])])
    return np.ones(len(tokens), np.bool_)


def due(task: Task, prompts: Tokens) -> Tokens:
    """What the model is to give, (batch, answers): the tokens that it writes, the last one last;
    the answers to several questions, in their order, the last again where others ask more; or one.
    """
    if isinstance(task, Thought):
        return task.due_after(prompts)
    right = task.answer(prompts)
    places = _asked(task, right)
    return right[:, None] if places is None else np.take_along_axis(right, places, 1)


def given(logits: Logits, task: Task, prompts: Tokens) -> tuple[Tokens, NDArray[np.bool_]]:
    """The ids with the largest logits, of the shape of what is due; and which rows had finite
    logits only. Each token that is written stands behind the prompt before the next is asked for.
    """
    if not task.stepwise:
        return _largest(logits(prompts, _asked(task, task.answer(prompts))))
    finite = np.ones(len(prompts), np.bool_)
    read = prompts
    for _ in range(due(task, prompts[:1]).shape[1]):
        found, numbers = _largest(logits(read, None))
        finite &= numbers
        read = np.concatenate([read, found], 1)
    return read[:, prompts.shape[1] :], finite


def logits_of(model: Model) -> Logits:
    """Those of the model, as PyTorch computes them."""

    def logits(prompts: Tokens, places: Tokens | None) -> NDArray[np.floating]:
        with torch.inference_mode():
            tokens = torch.from_numpy(prompts)
            if places is None:
                return model(tokens)[:, None].double().numpy()
            return model.at(tokens, torch.from_numpy(places)).double().numpy()

    return logits


def all_right(logits: Logits, task: Task, tokens: Tokens, batch: int, how: str) -> None:
    """Raises CheckFailed, naming the input, where an answer is wrong; `batch` inputs at a time."""
    for start in range(0, len(tokens), batch):
        some = tokens[start : start + batch]
        wanted = due(task, some)
        found, finite = given(logits, task, some)
        wrong = np.flatnonzero((found != wanted).any(1) | ~finite)
        if len(wrong):
            said = found[wrong[0]].tolist()
            raise CheckFailed(
                f"input {some[wrong[0]].tolist()[:20]}{how} is answered"
                f" {said if len(said) > 1 else said[0]}, which is wrong"
            )


def at_once(model: Model, task: Task) -> int:
    """Inputs of a task that a model reads at a time."""
    return max(1, MOST_NUMBERS // numbers_of(model, task.length))


def _asked(task: Task, right: Tokens) -> Tokens | None:
    """Where answers are due within prompts that ask several questions, (batch, questions), of one
    that asks fewer its last again; None where all are last.
    """
    places, answers = asked(task, right)
    if places is None:
        return None
    last = (answers != NO_ANSWER).sum(1, keepdims=True) - 1
    return np.take_along_axis(places, np.minimum(np.arange(places.shape[1]), last), 1)


def _largest(logits: NDArray[np.floating]) -> tuple[Tokens, NDArray[np.bool_]]:
    # argmax of NaN is the place of the NaN
    return logits.argmax(-1), np.asarray(np.isfinite(logits).all((1, 2)), np.bool_)


TaskT = TypeVar("TaskT", bound=Task)


class Derived(NamedTuple):
    """What a record must say, as the weights give it."""

    layers: list[dict[str, Any]]
    """The proof, layer by layer."""
    margin: Fraction
    """The right logit leads by at least this."""
    used: dict[str, int]
    """Layers by kind, and the key and value numbers that carry something."""
    arithmetic: str = FP32.said
    """What is assumed of the arithmetic."""
    formats: tuple[str, ...] = ("fp32",)
    """Number formats of weights and states that the proof is about."""
    exact: bool = False
    """Whether nothing is rounded at all: then the weights serve prompts of every length, token by
    token and in parallel.
    """


class Layer(NamedTuple):
    """What is proved of one layer."""

    entry: dict[str, Any]
    kind: str = "layers"
    """Under what name the record counts it."""
    key_numbers: int = 0
    value_numbers: int = 0
    """Numbers of keys and of values that carry something."""
    assumes: tuple[str, ...] = ()
    """What it takes for granted of the arithmetic, beyond what every proof does."""


def derived(
    arithmetic: Arithmetic, layers: Sequence[Layer], margin: Fraction, /, **sizes: int
) -> Derived:
    """A proof in one arithmetic. `sizes`: what the record lists beside its layers, or instead."""
    said = dict.fromkeys([arithmetic.said, *(one for layer in layers for one in layer.assumes)])
    used = {
        **Counter(layer.kind for layer in layers),
        "head_dim": max(layer.key_numbers for layer in layers),
        "value_dim": max(layer.value_numbers for layer in layers),
        **sizes,
    }
    entries = [layer.entry for layer in layers]
    return Derived(entries, margin, used, "; ".join(said), (arithmetic.name,))


def unrounded(
    layers: Sequence[tuple[Live, dict[str, Any]]],
    digits: Digits,
    arithmetic: Arithmetic,
    margin: Fraction,
    **sizes: int,
) -> Derived:
    """A proof in which nothing is rounded: layers, what is said of each, and the digits that all of
    it takes. Raises CheckFailed where the arithmetic does not hold these, or a layer declares a
    format that does not.
    """
    formats = digits.formats()
    for part, _ in layers:
        declared = part.mixer.mechanism.formats
        if not declared <= {*formats, "fp64"}:
            raise CheckFailed(
                f"{part.where} declares {', '.join(sorted(declared))}, and nothing is rounded only"
                f" in {', '.join(formats)}: {digits.own} binary digits are asked for"
            )
    digits.hold(arithmetic)
    entries = [
        entry(part.place, mechanism=part.mixer.mechanism.name, **said) for part, said in layers
    ]
    return Derived(entries, margin, sizes, ARITHMETIC, formats, exact=True)


def ids_of(task: Task) -> list[int]:
    """How many ids may stand at each place of a task's prompts, by its layout."""
    found = np.full(task.length, task.vocabulary)
    for meaning, places, number, _ in task.layout().parts.values():
        ids = task.token_ids[meaning]
        found[places] = ids.stop if number is None else ids.start + number
    return found.tolist()


@dataclass(frozen=True, kw_only=True)
class Derivation(Generic[TaskT]):
    """One construction as it is derived: by the checker, and for the record by its builder, whose
    half (`separatrix.constructions`) it shares name and kind of task with, and no code.
    """

    name: str
    """What records call the construction."""
    task: type[TaskT]
    """The kind of task that it solves."""
    derive: Callable[..., Derived]
    """The proof of a task's model in an arithmetic, from the weights. Raises CheckFailed where they
    do not bear it out.
    """
    ids: Callable[[Any], list[int]] = ids_of
    """How many ids may stand at each position of prompts."""
    about: Callable[[TaskT, Tokens], NDArray[np.bool_]] | None = None
    """Which instances of the task the claim is about, where it is not about all."""
    hard: Callable[[TaskT, np.random.Generator], Tokens] | None = None
    """Inputs of the task that random ones, and values repeated or exchanged, never come near."""

    def asked(self, task: TaskT, tokens: Tokens) -> NDArray[np.bool_]:
        """Which of these prompts the claim is about."""
        found = instances(prompts_of(task), tokens)
        return found if self.about is None else found & self.about(task, tokens)

    def proved(self, task: TaskT, model: Model, arithmetic: Arithmetic) -> Derived:
        """The proof. Raises CheckFailed where there is none, or where a weight is no number of the
        format.
        """
        for name, tensor in model.state_dict().items():
            if not _held(tensor.detach().numpy(), arithmetic):
                raise CheckFailed(
                    f"weight {name} holds what {arithmetic.title} has not as a normal number"
                )
        derived = self.derive(task, model, arithmetic)
        if derived.margin <= 0:
            raise CheckFailed(
                f"rounding of {arithmetic.title} eats the lead of the right logit: nothing is left"
                f" but {down(derived.margin)}"
            )
        return derived

    def told(self, task: TaskT, model: Model, arithmetic: Arithmetic) -> dict[str, Any]:
        """The proof as an object, or what breaks it."""
        try:
            return proof_object(task, self.proved(task, model, arithmetic))
        except (CheckFailed, SizeError) as error:
            return {"arithmetic": arithmetic.said, "breaks": str(error)}


def _held(numbers: NDArray[Any], arithmetic: Arithmetic) -> bool:
    """Whether a format stores all of these numbers, float32 or float64, as they are."""
    if numbers.dtype == np.float32 and arithmetic.digits >= DIGITS["fp32"]:
        # all but those that are no numbers, and those that may be read as 0
        size = np.abs(numbers)
        return bool(((size == 0) | (size >= arithmetic.tiny) & (size < np.inf)).all())
    return bool(arithmetic.held(numbers.astype(np.float64)).all())


def proof_object(task: Task, derived: Derived) -> dict[str, Any]:
    """A proof as records hold it, numbers rounded so that it never claims more."""
    n = task.sizes().get("n")
    return {
        "arithmetic": derived.arithmetic,
        "layers": derived.layers,
        "final_margin": down(derived.margin),
        # n, where the task has one; else the tokens of its prompts
        "exact_up_to": n if isinstance(n, int) else task.length,
    }


def claimed(
    task: Task, model: Model, derived: Derived | None, arithmetic: Arithmetic
) -> dict[str, Any]:
    """What a record says of weights: sizes (of the task, of what the proof uses, of the model),
    proof and statement; of weights without a proof that nothing is proved.
    """
    spec = model.config.architecture
    sizes = {key: value for key, value in task.sizes().items() if isinstance(value, int)}
    sizes |= derived.used if derived is not None else {}
    sizes |= {"width": model.config.width, "hidden": model.config.hidden}
    sizes |= {"parameters": sum(p.numel() for p in model.parameters())}
    if derived is None:
        return {
            "sizes": sizes,
            "proof": {"arithmetic": arithmetic.said, "unproved": UNPROVED},
            "statement": unproved_statement(task.spec, spec),
        }
    statement = construction_statement(
        task=task.spec,
        architecture=spec,
        sizes=sizes,
        margin=down(derived.margin),
        formats=derived.formats if derived.exact else (),
        title=arithmetic.title,
    )
    return {"sizes": sizes, "proof": proof_object(task, derived), "statement": statement}


Drawing = Callable[[Tokens, np.random.Generator], Tokens]
_TRIES = 8
"""Rounds without enough inputs that the task asks for, after which it draws them itself."""
_ALL = 1 << 20
"""As many inputs as are all written down where neither finds one."""


def adversarial(
    derivation: Derivation[Any],
    task: Task,
    number: int,
    rng: np.random.Generator,
) -> Tokens:
    """So many inputs: the derivation's hard ones, then as many of each kind, among them the task's
    own draws. Only inputs that the construction is about; fewer where they are rare and the task
    draws none of its size. Raises SizeError where none is found.
    """
    ids = np.array(derivation.ids(task), np.int64)
    found = [] if derivation.hard is None else [derivation.hard(task, rng)[:number]]
    missing = number - sum(map(len, found))
    for _ in range(_TRIES):
        if missing <= 0:
            break
        kinds = [*_KINDS, partial(drawn, task), partial(_near, task)]
        # rows of each kind, in a random order of kinds where they do not come out even
        which = rng.permutation(np.arange(missing) % len(kinds))
        rows = np.empty((missing, len(ids)), np.int64)
        for kind, draw in enumerate(kinds):
            mine = which == kind
            if mine.any():
                rows[mine] = draw(np.broadcast_to(ids, (int(mine.sum()), len(ids))), rng)
        found.append(rows[derivation.asked(task, rows)])
        missing -= len(found[-1])
    if missing > 0:
        try:
            found.append(prompts_of(task).sample(missing, rng).tokens)
        except SizeError:
            # fewer, but not none
            if missing == number:
                found.append(rng.permutation(_written(derivation, task, ids))[:number])
            if not any(map(len, found)):
                raise
    return np.concatenate(found)


def _written(derivation: Derivation[Any], task: Task, ids: Tokens) -> Tokens:
    """All inputs of so many ids a position that the claim is about, where they are few."""
    if math.prod(ids.tolist()) > _ALL:
        return np.empty((0, len(ids)), np.int64)
    every = np.stack(np.unravel_index(np.arange(ids.prod()), ids), 1)
    return every[derivation.asked(task, every)]


def _same(ids: Tokens, rng: np.random.Generator) -> Tokens:
    """One value everywhere, the last token drawn."""
    return _with_last(np.minimum(_column(ids, rng), ids - 1), ids, rng)


def _one_other(ids: Tokens, rng: np.random.Generator) -> Tokens:
    """One value everywhere but at one place."""
    return _with_last(_changed(np.minimum(_column(ids, rng), ids - 1), ids, rng), ids, rng)


def _few(ids: Tokens, rng: np.random.Generator) -> Tokens:
    """Three values, repeated."""
    palette = rng.integers(ids.max(), size=(len(ids), 3))
    chosen = rng.integers(3, size=ids.shape)
    return _with_last(np.minimum(np.take_along_axis(palette, chosen, 1), ids - 1), ids, rng)


def _extremes(ids: Tokens, rng: np.random.Generator) -> Tokens:
    """The least and the greatest id of each position; the last token, too."""
    return np.where(rng.integers(2, size=ids.shape) == 1, ids - 1, 0)


def _opposite(ids: Tokens, rng: np.random.Generator) -> Tokens:
    """A value and its complement, which differs from it in every bit where ids are a power of
    two.
    """
    value = np.minimum(_column(ids, rng), ids - 1)
    rows = np.where(rng.integers(2, size=ids.shape) == 1, value, ids - 1 - value)
    return _with_last(rows, ids, rng)


def _counted(ids: Tokens, rng: np.random.Generator) -> Tokens:
    """0, 1, 2, ... from some start on, upwards or downwards."""
    step = rng.choice([-1, 1], size=(len(ids), 1))
    return _with_last((_column(ids, rng) + step * np.arange(ids.shape[1])) % ids, ids, rng)


def drawn(task: Task, ids: Tokens, rng: np.random.Generator) -> Tokens:
    """What the task draws, a row for each row of ids; of sizes at which it draws none, uniform
    ids.
    """
    try:
        return prompts_of(task).sample(len(ids), rng).tokens
    except SizeError:
        return rng.integers(ids)


def _near(task: Task, ids: Tokens, rng: np.random.Generator) -> Tokens:
    """The same with one token changed."""
    return _changed(drawn(task, ids, rng), ids, rng)


def _changed(rows: Tokens, ids: Tokens, rng: np.random.Generator) -> Tokens:
    """The rows with any id at one place of each."""
    place = rng.integers(ids.shape[1], size=(len(ids), 1))
    np.put_along_axis(rows, place, rng.integers(np.take_along_axis(ids, place, 1)), 1)
    return rows


def _column(ids: Tokens, rng: np.random.Generator) -> Tokens:
    """One value for each row: the extremes often."""
    most = int(ids.max())
    value = rng.integers(most, size=(len(ids), 1))
    kind = rng.integers(4, size=(len(ids), 1))
    return np.where(kind == 0, 0, np.where(kind == 1, most - 1, value))


def _with_last(rows: Tokens, ids: Tokens, rng: np.random.Generator) -> Tokens:
    """The last token drawn: it is what most tasks ask with."""
    rows[:, -1] = rng.integers(ids[:, -1])
    return rows


_KINDS: tuple[Drawing, ...] = (_same, _one_other, _few, _extremes, _opposite, _counted)

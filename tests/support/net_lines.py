"""What the net holds: every section of tests/net.py, as keys and how their values are found.

Names of modules stand in import lines alone, so that a move leaves the lines as they are.
"""

from __future__ import annotations

import hashlib
import io
import json
import shlex
import tempfile
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import typer
from net import Absent, Part, Section, Value

import separatrix as sx
from separatrix.cli import main
from separatrix.core.evidence.records import Evidence, enveloped, to_plain
from separatrix.protocols.iii_adversary import adversary_iii
from separatrix.protocols.one_reading import OneReading, OneReadingSizes
from separatrix.protocols.tables import random_tables
from separatrix.stacks.architecture.released import PRESETS
from separatrix.stacks.architecture.settings import Settings
from separatrix.stacks.mechanisms import MECHANISMS
from separatrix.tasks import PROBES, TASKS, parse_task
from separatrix.tasks.exports.replies import Shape
from separatrix.tasks.exports.replies import read as read_reply
from separatrix.tasks.questions import QUESTIONS
from separatrix.tasks.text import TEXT_TASKS, parse_text_task
from support.hf_configs import SHARED
from support.net_inputs import (
    ADVERSARIES,
    BAD_INPUTS,
    COMPARED,
    CONSTRUCTED,
    CURVES,
    DESIGNS,
    DRAWN,
    FEW_PRESETS,
    FORGERIES,
    PRECISION,
    REFUTED,
    REPLIES,
    SEARCHED,
    STACKS,
    VERDICTS,
)

LONGEST = 2048
"""Tokens of the longest prompts that are drawn."""
CONTEXTS = (8_192, 131_072)
FORMATS = ("fp64", "fp32", "bf16", "fp16")


def digest(data: bytes | str) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()[:16]


def of_json(value: object) -> str:
    return digest(json.dumps(to_plain(value), sort_keys=True, default=str))


def of_array(*arrays: Any) -> str:
    """Of numbers with their types and shapes; bytes in the order of small ends."""
    told = hashlib.sha256()
    for array in map(np.asarray, arrays):
        told.update(f"{array.dtype.str} {array.shape};".encode())
        told.update(np.ascontiguousarray(array).tobytes())
    return told.hexdigest()[:16]


class Commands:
    """The command line, built once: building it takes a third of a second. `raised` is the class of
    the last command's error.
    """

    def __init__(self) -> None:
        self.command = typer.main.get_command(main.app)
        self.raised = ""

    def __call__(self, **options: Any) -> Any:
        self.raised = ""
        try:
            return self.command(**options)
        except Exception as error:
            self.raised = type(error).__name__
            raise


commands = cache(Commands)


def of_command(words: list[str]) -> tuple[int, str]:
    """Exit code and standard output of a command, in this process."""
    said = io.StringIO()
    with (
        patch.object(main, "app", commands()),
        redirect_stdout(said),
        redirect_stderr(io.StringIO()),
    ):
        code = main.run(words)
    return code, said.getvalue()


def outcome(words: list[str]) -> str:
    """Exit code of a command and the class of its error."""
    code, _ = of_command(words)
    return f"{code} {commands().raised}".strip()


# ---- tasks


def samples() -> Iterator[Part]:
    for text in _drawn():
        yield f"{text} facts", partial(_facts, text)
        yield f"{text} levels", partial(_levels, text)
        for seed in (0, 1):
            yield f"{text} seed={seed}", partial(_sample, text, seed)
    for name, kind in TEXT_TASKS.items():
        for sizes in kind.grid[:3]:
            for seed in (0, 1):
                yield f"{name}:{sizes} seed={seed}", partial(_words, f"{name}:{sizes}", seed)


def _drawn() -> Iterator[str]:
    """Every task at the sizes of its grid; at the first of them every shift, several questions and
    chains of thought too.
    """
    for name, kind in TASKS.items():
        first = f"{name}:{kind.grid[0]}"
        more = [f"shift={shift}" for shift in kind.shifts]
        more += [f"thought={form}" for form in kind.thoughts]
        more += ["queries=all", "queries=2"] if name in QUESTIONS else []
        for sizes in kind.grid:
            if parse_task(f"{name}:{sizes}").length <= LONGEST:
                yield f"{name}:{sizes}"
        yield from (f"{first},{one}" for one in more)


def _sample(text: str, seed: int) -> str:
    task = parse_task(text)
    batch = task.sample(5, np.random.default_rng(seed))
    return of_array(batch.tokens, batch.targets, task.answer(batch.tokens))


def _facts(text: str) -> str:
    task = parse_task(text)
    family = task.family()
    grown = (family.described, family.smallest, family.grows, family.at(family.smallest).spec)
    return of_json(
        [
            *(task.length, task.vocabulary, task.answers, str(task.chance), task.prefix_length),
            *(str(task.prefix_classes()), str(task.prompts()), str(task.facts())),
            *(str(task.two_runs()), *grown, sorted(map(str, task.token_ids.items()))),
        ]
    )


def _levels(text: str) -> str:
    """What each probe and each shortcut gets right, as fractions."""
    task = parse_task(text)
    probes = (*PROBES, *task.shortcuts)
    return f"{len(probes)} probes, {of_json([[one, str(task.level(one))] for one in probes])}"


def _words(text: str, seed: int) -> str:
    task = parse_text_task(text)
    return of_json(
        [
            [*item, task.target(item), task.answer(item.prompt)]
            for item in task.sample(3, np.random.default_rng(seed))
        ]
    )


def prompts() -> Iterator[Part]:
    for name, kind in (TASKS | TEXT_TASKS).items():
        for form in ("jsonl", "lm-eval"):
            yield f"{name} {form}", partial(_exported, f"{name}:{kind.grid[0]}", form)


def _exported(text: str, form: str) -> str:
    made = parse_text_task(text) if text.partition(":")[0] in TEXT_TASKS else parse_task(text)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        rows = {"train": 2, "validation": 0, "test": 3}
        sx.export(made, format=form, out=out, splits=rows, seed=3)
        files = sorted(path for path in out.rglob("*") if path.is_file())
        # it names versions of libraries; the reader of replies is a module of its own
        own = [path for path in files if path.name != "metadata.json" and path.suffix != ".py"]
        return of_json({path.name: digest(path.read_bytes()) for path in own})


def replies() -> Iterator[Part]:
    for number, (shape, choices, reply) in enumerate(REPLIES):
        told = partial(read_reply, reply, Shape(*shape), choices)
        yield f"{number:03} {shape[0]} {digest(reply)}", partial(_reply, told)


def _reply(told: Callable[[], str | None]) -> str:
    answer = told()
    return "nothing" if answer is None else f"'{answer}'"


# ---- what is decided


def verdicts() -> Iterator[Part]:
    for stack, task in (*product(STACKS, VERDICTS), *SEARCHED):
        yield f"{stack} on {task}", partial(_verdicts, stack, task)


def _verdicts(stack: str, task: str) -> str:
    """Of each theorem its status and n, then everything in numbers, then everything in words."""
    found = sx.judge(sx.Architecture.parse(stack), parse_task(task))
    said = [
        f"{one.theorem} {one.status}{'' if one.n is None else f' n={_short(one.n)}'}"
        for one in found
    ]
    numbers = [[one.n, one.log2_n, one.numbers, one.method] for one in found]
    return f"{'; '.join(said)} | {of_json(numbers)} {of_json([one.body() for one in found])}"


def _short(number: int) -> str:
    text = str(number)
    return text if len(text) <= 12 else f"{text[:3]}...({len(text)} digits)"


def cards(names: Iterable[str]) -> Iterator[Part]:
    for name in names:
        for context in CONTEXTS:
            line = f"analyze {name} --context {context} --json"
            yield from _parts(f"{name} at {context}", partial(_printed, line))


def _parts(key: str, data: Callable[[], Any]) -> Iterator[Part]:
    """A line for each entry of an object, and one that names them."""
    found = data()
    yield f"{key}: entries", partial(" ".join, found)
    for name, value in found.items():
        yield f"{key}: {name}", partial(of_json, value)


def _printed(line: str) -> Any:
    """What a command prints as JSON; of a list, its entries by place."""
    code, said = of_command(shlex.split(line))
    assert said, f"'{line}' prints nothing: {commands().raised}"
    value = json.loads(said)
    found = value if isinstance(value, dict) else dict(enumerate(value))
    return {"exit code": code} | {str(name): entry for name, entry in found.items()}


def comparisons() -> Iterator[Part]:
    for line in COMPARED:
        yield from _unmeasured(line, f"compare {line} --json")


def adversaries() -> Iterator[Part]:
    """What the adversary of Theorem III makes of a protocol drawn at random."""
    for m, n_1, t, c0, k, c1 in ADVERSARIES:
        sizes = OneReadingSizes(m=m, n_1=n_1, t=t, caches_0=c0, reads=k, caches_1=c1)
        yield str(sizes), partial(_collided, sizes)


def _collided(sizes: OneReadingSizes) -> str:
    found = adversary_iii(OneReading(sizes, random_tables(7)))
    return f"{found.right}, {of_json([found.first, found.second, found.view, found.answer])}"


def designs() -> Iterator[Part]:
    for line in DESIGNS:
        yield from _unmeasured(line, f"design {line} --json")


def _unmeasured(key: str, line: str) -> Iterator[Part]:
    """Without what is measured: the study's rows become more."""
    for part in _parts(key, partial(_printed, line)):
        if isinstance(part, Absent) or not part[0].endswith(": measured"):
            yield part


def configs() -> Iterator[Part]:
    for name in PRESETS:
        yield f"preset {name}", partial(_architecture, name)
    if not SHARED.is_dir():
        yield Absent("file ", "the shared model files are not beside this checkout")
        return
    for path in sorted(SHARED.glob("*.json")):
        yield f"file {path.name}", partial(_architecture, str(path))


def _architecture(model: str) -> str:
    made = sx.resolve(model, settings=Settings.parse([]))
    return f"{len(made)} layers, {of_json([made.spec, made.context, made.vocabulary, made.notes])}"


# ---- what is computed


def mixers() -> Iterator[Part]:
    from contract.test_mixers import EVERY_MIXER

    for case, mechanism in EVERY_MIXER.items():
        computed = cache(partial(_mixed, mechanism))
        for name in ("forward", "step", "last", "state", "gradients"):
            yield f"{case}: {name}", partial(_entry, computed, name)


def _entry(computed: Callable[[], Mapping[str, Any]], name: str) -> Any:
    return computed()[name]


def _mixed(mechanism: Any) -> dict[str, list[float]]:
    """In float64: each as two sums and some of its numbers."""
    import torch

    from separatrix.mixers import mixer
    from separatrix.mixers.laws import drawn, inputs, stream

    torch.set_num_threads(1)
    one = drawn(mixer(mechanism, width=6))
    x = inputs(one, 2, 21)
    with torch.no_grad():
        steps, state = stream(one, x)
        last = one.last(x)
    x.requires_grad_(True)
    forward = one(x)
    slopes = torch.linspace(-1, 1, forward.numel(), dtype=torch.float64).view_as(forward)
    one.zero_grad()
    (forward * slopes).sum().backward()
    assert x.grad is not None
    gradients = [x.grad, *(p.grad for p in one.parameters() if p.grad is not None)]
    return {
        "forward": _some(forward.detach()),
        "step": _some(steps),
        "last": _some(last),
        "state": [number for name in sorted(state) for number in _some(state[name].double(), 2)],
        "gradients": [number for gradient in gradients for number in _some(gradient, 2)],
    }


def _some(tensor: Any, number: int = 6) -> list[float]:
    flat = tensor.detach().double().flatten()
    if not len(flat):
        return [0.0]
    places = np.linspace(0, len(flat) - 1, number).round().astype(int).tolist()
    return [float(flat.sum()), float(flat.abs().sum()), *(float(flat[place]) for place in places)]


@cache
def _built(name: str, form: str) -> Any:
    from separatrix.proofs.arithmetic import arithmetic

    return sx.construct(parse_task(CONSTRUCTED[name]), kind=name, arithmetic=arithmetic(form))


def constructions() -> Iterator[Part]:
    from separatrix.constructions import CONSTRUCTIONS

    for name in CONSTRUCTIONS:
        for form in FORMATS:
            yield f"{name} in {form}", partial(_weights, name, form)


def _weights(name: str, form: str) -> str:
    tensors = sorted(_built(name, form).model.state_dict().items())
    told = {key: [str(x.dtype), of_array(x.double().numpy())] for key, x in tensors}
    return f"{len(told)} tensors, {of_json(told)}"


def proofs() -> Iterator[Part]:
    from separatrix.constructions import CONSTRUCTIONS

    for name in CONSTRUCTIONS:
        for form in FORMATS:
            yield f"{name} in {form}: numbers", partial(_proof, name, form, "numbers")
            yield f"{name} in {form}: texts", partial(_proof, name, form, "texts")
            yield f"{name} in {form}: statement", partial(_statement, name, form)


def _proof(name: str, form: str, wanted: str) -> Any:
    """Its enclosures, in the order of their names, or its texts and whole numbers."""
    numbers, texts = apart(_built(name, form).record.proof)
    return numbers if wanted == "numbers" else texts


def apart(data: object) -> tuple[list[float], str]:
    """What is written as a decimal or is of floating point, in the order of names; and a hash of
    everything else, with the places of those.
    """
    numbers: list[float] = []
    texts: list[str] = []

    def gather(value: Any, at: str) -> None:
        if isinstance(value, Mapping):
            for key in sorted(value):
                gather(value[key], f"{at}.{key}")
        elif isinstance(value, list | tuple):
            for place, entry in enumerate(value):
                gather(entry, f"{at}[{place}]")
        elif isinstance(value, float) or (isinstance(value, str) and _decimal(value)):
            numbers.append(float(value))
            texts.append(at)
        else:
            texts.append(f"{at}={value}")

    gather(data, "")
    return numbers, of_json(texts)


def _decimal(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _statement(name: str, form: str) -> str:
    record = _built(name, form).record
    return of_json([record.statement, record.sizes, record.model, record.format])


def precision() -> Iterator[Part]:
    for line in PRECISION:
        yield from _parts(line, partial(_printed, f"list constructions {line} --json"))


def curves() -> Iterator[Part]:
    for stack, task in CURVES:
        yield f"{stack} on {task}", partial(_curve, stack, task)


def _curve(stack: str, task: str) -> list[float]:
    """The losses of ten steps."""
    import torch

    from separatrix.training.engine import Trainer, unpacked
    from separatrix.training.packs import Pack

    torch.set_num_threads(1)
    settings: dict[str, Any] = {"seed": 1, "steps": 100, "batch": 16, "width": 16, "hidden": 16}
    trainer = Trainer(Pack((sx.Run(architecture=stack, task=task, **settings),)))
    trainer.advance(10)
    tensors, _ = unpacked(trainer.checkpoint())
    return tensors["window"][0, :10, 0].tolist()


# ---- evidence


def certificates() -> Iterator[Part]:
    """What was found, and its distances and weights as numbers."""
    assert set(DRAWN) == {name for name, kind in MECHANISMS.items() if not kind.declared_only}
    for stack, task in (*((stack, "eva:n=8,V=8") for stack in DRAWN.values()), *REFUTED):
        for wanted in ("form", "numbers"):
            yield f"{stack} on {task}: {wanted}", partial(_refuted, stack, task, wanted)


@cache
def _found(stack: str, task: str) -> sx.Certificate:
    # ended by the number of tries and not by the clock
    found = sx.refute(
        sx.Architecture.parse(stack), parse_task(task), budget=600, tries=1 << 12, seed=5
    )
    assert isinstance(found, sx.Certificate), found
    return found


def _refuted(stack: str, task: str, wanted: str) -> Value:
    found = _found(stack, task)
    distances, texts = apart(found.body() | {"weights": {}})
    weights = {name: found.weights[name] for name in sorted(found.weights)}
    if wanted == "form":
        shapes = [[name, one["dtype"], one["shape"]] for name, one in weights.items()]
        return f"{found.form}, {of_json([texts, shapes])}"
    read = [np.frombuffer(b64decode(one["data"]), one["dtype"]) for one in weights.values()]
    return [*distances, *(float(x) for one in read for x in (one.sum(dtype=float), one[-1]))]


def forgeries() -> Iterator[Part]:
    """Records with one thing changed, under the old hash and under one that fits."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        kept = _records(Path(folder))
        for kind, (record, path) in kept.items():
            yield f"{kind}: honest", partial(_verified, path, record.envelope())
            for name, edit in FORGERIES[kind.partition(" ")[0]].items():
                body = json.loads(json.dumps(to_plain(record.body())))
                old = record.envelope()
                edit(body)
                yield f"{kind}: {name}", partial(_verified, path, old | {"body": body})
                fitting = enveloped(record.kind, body)
                yield f"{kind}: {name}, hash anew", partial(_verified, path, fitting)
            for name, change in ENVELOPES.items():
                yield (
                    f"{kind}: {name}",
                    partial(_verified, path, record.envelope() | change),
                )
        record, path = kept["construction"]
        weights = path.parent / record.weights  # type: ignore[attr-defined]
        whole = weights.read_bytes()
        for name, data in {
            "weights cut": whole[:-4],
            "weights with a bit turned": whole[:-1] + bytes([whole[-1] ^ 1]),
            "no weights": b"",
        }.items():
            yield f"construction: {name}", partial(_with_weights, weights, data, path, record)


ENVELOPES: dict[str, dict[str, Any]] = {
    "another version": {"separatrix": 2},
    "another kind": {"kind": "proof"},
    "another hash": {"sha256": "0" * 64},
    "a field beside the body": {"more": 1},
}


def _records(folder: Path) -> dict[str, tuple[Evidence, Path]]:
    """An honest record of each kind, and a verdict of each status."""
    from unit.checks.verify.test_measurement import made

    judged = {
        "verdict": ("gdn @ heads=1, head_dim=2, p2", "eva:n=64,V=8"),
        "verdict OPEN": ("full*2 @ heads=2, head_dim=64", "seqcomp:L=2,m=4,n_1=2"),
        "verdict SOLVABLE": ("full*2 @ heads=1, head_dim=8", "eva:n=4,V=4"),
    }
    built = sx.construct(parse_task("seqcomp:L=2,m=4,n_1=2"))
    found = _found(*REFUTED[0])
    return {
        **{
            kind: (
                sx.judge(sx.Architecture.parse(stack), parse_task(task))[0],
                folder / f"{kind}.json",
            )
            for kind, (stack, task) in judged.items()
        },
        "construction": (built.record, built.save(folder / "built")),
        "certificate": (found, folder / "certificate.json"),
        "measurement": (made(), folder / "measurement.json"),
    }


def _verified(path: Path, envelope: Any) -> str:
    path.write_text(json.dumps(envelope))
    return outcome(["verify", str(path)])


def _with_weights(weights: Path, data: bytes, path: Path, record: Evidence) -> str:
    whole = weights.read_bytes()
    weights.write_bytes(data)
    try:
        return _verified(path, record.envelope())
    finally:
        weights.write_bytes(whole)


def bad_inputs() -> Iterator[Part]:
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        Path("text.json").write_text("no JSON")
        Path("list.json").write_text("[1, 2]")
        Path("config.json").write_text('{"model_type": "no-such-model"}')
        Path("short.json").write_text('{"model_type": "llama"}')
        Path("old.json").write_text(
            '{"separatrix": 0, "kind": "verdict", "sha256": "", "body": {}}'
        )
        Path("sweep.yaml").write_text("baseline: {architecture: full}\n")
        Path("broken.yaml").write_text("grid: [\n")
        Path("empty").mkdir()
        for line in BAD_INPUTS:
            yield line, partial(outcome, shlex.split(line))


NARROW = tuple(f"{name} in bf16" for name in ("counting", "khop", "qsa"))
"""Constructions whose few bits reach no prompt."""
SECTIONS: dict[str, Section] = {
    "samples": Section(samples),
    "verdicts": Section(verdicts),
    "cards": Section(partial(cards, FEW_PRESETS)),
    "bad inputs": Section(bad_inputs),
    "configs": Section(configs, refused=("file state-spaces--mamba2-2.7b.json",)),
    "replies": Section(replies),
    "comparisons": Section(comparisons),
    "adversaries": Section(adversaries),
    "designs": Section(designs, slow=True),
    "mixers": Section(mixers, tolerance=1e-8, slow=True),
    "constructions": Section(constructions, slow=True, refused=NARROW),
    # six digits are written
    "proofs": Section(proofs, tolerance=2e-5, each=True, slow=True, refused=NARROW),
    "precision": Section(precision, slow=True),
    # float32, and steps that magnify what rounding began
    "curves": Section(curves, tolerance=1e-4, slow=True),
    # a distance has four digits
    "certificates": Section(certificates, tolerance=2e-3, each=True, slow=True),
    "forgeries": Section(forgeries, slow=True),
    "prompts": Section(prompts, slow=True),
    "all cards": Section(
        partial(cards, [name for name in PRESETS if name not in FEW_PRESETS]), slow=True
    ),
}
"""The quick ones together take under half a minute."""

"""Constructions in heads with options: right on every input of small sizes, in the parallel form
and token by token; edited weights are refused.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from support.construction_tools import every, wrong

from separatrix.constructions import Built, construct
from separatrix.core.errors import CheckFailed, SizeError
from separatrix.mixers.full import FullMixer
from separatrix.proofs.arithmetic import FP32
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Eva, Task, parse_task
from separatrix.tasks.base.task import Tokens

EVA = "eva:n=4,V=3"
OPTIONS = [
    "conv=4",
    "sink=true",
    "gate=sigmoid",
    "gate=head, kv_heads=1",
    "qk_norm=head",
    "qk_norm=each, kv_heads=1",
    "qk_norm=all",
    "rope=true, rope_dim=2",
    "rope=true, head_dim=4",
    "rope=true, positions=none",
    "rope=true, rope_dim=4, positions=none, kv_heads=1",
    "rope=true, qk_norm=all, gate=sigmoid, sink=true, conv=2, kv_heads=1, positions=none",
]


def inputs(task: Task, kind: str) -> Tokens:
    return every(DERIVATIONS[kind].ids(task))


def in_stack(task: Task, options: str, layers: int = 1) -> Built:
    """In full layers with these options behind one without."""
    sizes = [size for size in options.split(", ") if "positions" not in size]
    positions = "none" if "positions=none" in options else "embedded"
    spec = f"linear + full({', '.join(sizes)}){f'*{layers}' if layers > 1 else ''}"
    return construct(
        task, Architecture.parse(f"{spec} @ heads=2, head_dim=8, positions={positions}")
    )


OTHERS = [
    "fox(qk_norm=head, gate=head, kv_heads=1) @ heads=2, head_dim=8",
    "gdn + mla(latent=16, rope_dim=4) @ heads=2, head_dim=8",
    "mla(latent=8, conv=3) + mlp @ heads=2, head_dim=4",
    "mla(latent=4, rope_dim=8) @ heads=1, head_dim=2, positions=none",
]
"""Full attention under other names."""


@pytest.mark.parametrize("stack", OTHERS)
def test_other_layers_that_see_every_token(stack: str) -> None:
    task = parse_task(EVA)
    built = construct(task, Architecture.parse(stack))
    tokens = inputs(task, "retrieval")
    assert not wrong(built, tokens, task.answer(tokens))
    # the last token alone reads latents as decoding does; every token, keys and values
    with torch.inference_mode():
        whole = built.model.every(torch.from_numpy(tokens))[:, -1].argmax(-1).numpy()
    assert (whole == task.answer(tokens)).all()


@pytest.mark.parametrize("options", OPTIONS)
def test_every_input_is_answered_right(options: str) -> None:
    task = parse_task(EVA)
    built = in_stack(task, options)
    tokens = inputs(task, "retrieval")
    answers = tokens[np.arange(len(tokens)), tokens[:, -1]]
    assert not wrong(built, tokens, answers)
    cache = built.model.init_cache(len(tokens))
    out = torch.empty(0)
    with torch.inference_mode():
        for t in range(task.length):
            out, cache = built.model.step(torch.from_numpy(tokens[:, t]), cache, t)
    assert (out.argmax(-1).numpy() == answers).all()


SEQCOMP = [
    ("(full(conv=2, sink=true)|gdn)*3 @ heads=2, head_dim=8", "seqcomp:L=2,m=2,n_1=2"),
    ("full(rope=true)*2 @ heads=1, head_dim=8", "seqcomp:L=1,m=4"),
    ("full(rope=true)*3 @ heads=1, head_dim=8, positions=none", "seqcomp:L=2,m=2,n_1=2"),
    # by addresses, by rotations behind a norm, by rotations
    (
        "full(rope=true, rope_dim=2) + full(rope=true, qk_norm=all) + full(rope=true, gate=head)"
        " @ heads=2, head_dim=6",
        "seqcomp:L=2,m=2,n_1=2",
    ),
    ("linear + full(rope=true, sink=true)*2 @ heads=1, head_dim=8", "seqcomp:L=2,m=2,n_1=2"),
    ("gdn + full(qk_norm=each, kv_heads=1)*2 @ heads=2, head_dim=8", "seqcomp:L=2,m=2,n_1=2"),
    (
        "mla(rope_dim=4) + fox + full(rope=true) @ heads=1, head_dim=8, latent=16",
        "seqcomp:L=2,m=2,n_1=2",
    ),
]


@pytest.mark.parametrize(("stack", "text"), SEQCOMP)
def test_composition_is_answered_right_on_every_input(stack: str, text: str) -> None:
    task = parse_task(text)
    built = construct(task, Architecture.parse(stack))
    tokens = inputs(task, built.record.name)
    assert not wrong(built, tokens, task.answer(tokens))


def test_a_table_of_rows_and_columns_by_rotations() -> None:
    """The last hop asks for each of 4 rows and columns with a query of its own: 3 rows of 4."""
    task = parse_task("seqcomp:L=2,m=4,n_1=3")
    built = construct(task, Architecture.parse("full(rope=true)*3 @ heads=1, head_dim=16"))
    assert built.record.proof["layers"][2]["queries"] == 12
    batch = task.sample(200, np.random.default_rng(0))
    assert not wrong(built, batch.tokens, batch.targets)
    # without the two hidden units of one entry its query asks for nothing
    built.model.blocks[1].get_parameter("mlp.down.weight")[:, 2 * 2 : 2 * 2 + 2] = 0.0
    with pytest.raises(CheckFailed, match=r"scores? no less|may score"):
        DERIVATIONS["seqcomp"].derive(task, built.model, FP32)


@pytest.mark.parametrize(
    "options",
    ["rope=true, rope_dim=4", "conv=3, sink=true, gate=head, kv_heads=1", "gate=sigmoid"],
)
def test_match2_is_answered_right_on_every_input(options: str) -> None:
    task = parse_task("twosum:n=3,M=6,form=query")
    stack = f"full({options}) @ heads=2, head_dim=7"
    built = construct(task, Architecture.parse(stack), "match2")
    tokens = every([6] * 4)
    assert not wrong(built, tokens, task.answer(tokens))


def test_a_sink_above_the_blank_key_is_refused() -> None:
    task = parse_task("twosum:n=3,M=6,form=query")
    stack = Architecture.parse("full(sink=true) @ heads=1, head_dim=3")
    built = construct(task, stack, "match2")
    (head,) = [m for m in built.model.modules() if isinstance(m, FullMixer)]
    assert head.sink is not None
    head.sink[0] = 20.0
    with pytest.raises(CheckFailed, match="above the blank key"):
        DERIVATIONS["match2"].derive(task, built.model, FP32)


@pytest.mark.parametrize(
    ("options", "adds"),
    [
        ("conv=4", ""),
        ("rope=true", "and cosine within 8"),
        ("qk_norm=all", "reciprocal roots"),
    ],
)
def test_the_proof_says_what_it_assumes(options: str, adds: str) -> None:
    said = in_stack(parse_task(EVA), options).record.proof["arithmetic"]
    plain = construct(parse_task(EVA)).record.proof["arithmetic"]
    assert said.startswith(plain)
    assert adds in said
    assert (said == plain) is not bool(adds)


def _kernel(head: FullMixer) -> None:
    assert head.conv is not None
    head.conv.weight[0, 0] = 2.0**-60


def _sink(head: FullMixer) -> None:
    assert head.sink is not None
    head.sink[0] = 60.0


def _other_sink(head: FullMixer) -> None:
    assert head.sink is not None
    head.sink[1] = 1.0


def _gate(head: FullMixer) -> None:
    assert head.gate is not None
    head.gate.weight[0] = -100.0


def _norm(head: FullMixer) -> None:
    assert head.k_norm is not None
    head.k_norm.weight[0] = 0.0


def _query(head: FullMixer) -> None:
    head.q.weight[:, :] = head.q.weight.roll(1, 0)


@pytest.mark.parametrize(
    ("options", "edit", "says"),
    [
        ("conv=4", _kernel, "mixes tokens"),
        ("sink=true", _sink, "sink scores no less"),
        ("sink=true", _other_sink, "a head that is not"),
        ("gate=head", _gate, "and the MLP|not the largest|switches"),
        ("qk_norm=head, kv_heads=2", _norm, "scores? no less"),
        ("rope=true, positions=none", _query, "scores? no less|not zero"),
    ],
)
def test_edited_weights_are_refused(
    options: str, edit: Callable[[FullMixer], None], says: str
) -> None:
    task = parse_task(EVA)
    built = in_stack(task, options)
    (head,) = [m for m in built.model.modules() if isinstance(m, FullMixer)]
    edit(head)
    with pytest.raises(CheckFailed, match=says):
        DERIVATIONS["retrieval"].derive(task, built.model, FP32)


@pytest.mark.parametrize(
    ("stack", "name", "index", "value", "says"),
    [
        ("fox", "f.bias", 0, 900.0, "forget gate is not 1"),
        ("fox", "f.weight", 0, 1.0, "forget gate is not 1"),
        ("mla(latent=8)", "v.weight", 0, 1.0, "adds numbers up"),
        ("mla(latent=8)", "k.weight", 4, 1.0, "k of a head that is"),
        # the norm weighs what a token says against where it stands
        ("mla(latent=8)", "c.weight", 0, 3.0, "no less|not the largest|off, and the MLP"),
        ("mla(latent=8, conv=2)", "conv.weight", 0, 0.5, "mixes or scales"),
    ],
)
def test_edited_weights_of_other_layers_are_refused(
    stack: str, name: str, index: int, value: float, says: str
) -> None:
    task = parse_task(EVA)
    built = construct(task, Architecture.parse(f"{stack} @ heads=2, head_dim=4"))
    built.model.blocks[0].get_submodule("mixers.0").get_parameter(name)[index] = value
    with pytest.raises(CheckFailed, match=says):
        DERIVATIONS["retrieval"].derive(task, built.model, FP32)


def test_rotations_that_tell_too_few_places_apart_are_refused() -> None:
    """One pair that turns by 1: after 710 tokens it has turned 113 times but for 6e-5."""
    with pytest.raises(SizeError, match="1,001"):
        construct(Eva(n=1000, V=2), Architecture.parse("full(rope=true) @ heads=1, head_dim=2"))


def test_a_rotated_query_stands_for_its_place() -> None:
    """By hand: rotated at the last place, the query for place p is the key at p, weighted; so the
    score of key j is s sum_r w_r cos((p - j) f_r), with f = (1, 1/100) of base 10,000.
    """
    built = construct(
        Eva(n=3, V=2), Architecture.parse("full(rope=true) @ heads=1, head_dim=4, positions=none")
    )
    (head,) = [m for m in built.model.modules() if isinstance(m, FullMixer)]
    q, k, _ = head._qkv(head._project(built.model._embed(torch.tensor([[0, 1, 1, 1]]))))
    scores = (q[0, 0, -1] @ k[0, 0].T).tolist()
    pairs = [(abs(q[0, 0, -1, r]) ** 2 + q[0, 0, -1, r + 2] ** 2) ** 0.5 for r in range(2)]
    by_hand = [
        sum(w * np.cos((1 - j) * f) for w, f in zip(pairs, (1.0, 0.01), strict=True))
        for j in range(4)
    ]
    assert scores == pytest.approx([float(score) for score in by_hand], rel=1e-5)
    assert max(range(4), key=lambda j: scores[j]) == 1

"""Induction heads in two full layers: every prompt of small sizes, scores by hand, long prompts by
rotations alone, what the checker refuses, and what the layers need.
"""

from __future__ import annotations

import copy
import itertools
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.construction_tools import every, refused
from support.each import each

from separatrix.checks.verify import verify
from separatrix.constructions import Built, construct
from separatrix.core.errors import CheckFailed, SizeError
from separatrix.core.numbers.rotary import Rotation
from separatrix.core.numbers.selection import Slow, slow_bits
from separatrix.mixers.full import FullMixer
from separatrix.proofs.arithmetic import FP32, arithmetic
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.proofs.derivations.parts.derivation import given, logits_of
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import NO_ANSWER, Recall, Task, parse_task
from separatrix.tasks.base.task import Tokens
from separatrix.theory import judge
from separatrix.theory.solves.places import Attending
from separatrix.theory.written import built_by

ROTATED = "full(rope=true, rope_dim=16)*2 @ heads=2, kv_heads=1, head_dim=32, positions=none"
BESIDE = (
    "gdn + full(rope=true, rope_dim=8, qk_norm=head, gate=sigmoid) + window + full(rope=true,"
    " rope_dim=8, sink=true) @ heads=3, kv_heads=1, head_dim=24, positions=none"
)
NORMED = (
    "(gdn + full(rope=true, rope_dim=8, qk_norm=head, gate=sigmoid))*2 @ heads=2, kv_heads=1,"
    " head_dim=16, positions=none"
)
SLOW = "full(rope=true, rope_base=500000)*2 @ heads=2, kv_heads=1, head_dim=32, positions=none"
SLOW_NORMED = f"{SLOW.replace('=500000', '=500000, qk_norm=head')}"
STACKS = ("", ROTATED, BESIDE, SLOW, "full*2 @ heads=2, head_dim=16")


@cache
def made(text: str, stack: str = "") -> Built:
    task = parse_task(text)
    return construct(task, Architecture.parse(stack) if stack else None, f"induction-{task.name}")


def taken(task: Task, tokens: Tokens) -> Tokens:
    """The prompts that the oracle takes, which are those that the claim is about."""
    asked = DERIVATIONS[f"induction-{task.name}"].asked
    assert asked is not None
    kept = np.array([_accepted(task, row) for row in tokens])
    assert asked(task, tokens).tolist() == kept.tolist()
    return tokens[kept]


@cache
def prompts(text: str) -> Tokens:
    task = parse_task(text)
    return taken(task, every(DERIVATIONS[f"induction-{task.name}"].ids(task)))


def _accepted(task: Task, row: Tokens) -> bool:
    try:
        task.answer(row[None])
    except SizeError:
        return False
    return True


def answered(built: Built, tokens: Tokens) -> None:
    """By looking the context up, token by token: an oracle of its own, and the task's."""
    c = getattr(built.task, "c", 1)
    first = getattr(built.task, "first_value", 0)
    found, finite = given(logits_of(built.model), built.task, tokens)
    assert finite.all()
    targets = built.task.answer(tokens)
    for row, wanted, said in zip(tokens.tolist(), np.atleast_2d(targets.T).T, found, strict=True):
        places = [len(row) - 1] if len(wanted) == 1 else np.flatnonzero(wanted != NO_ANSWER)
        right = []
        for p in map(int, places):
            behind = [j for j in range(c, p + 1) if row[j - c : j] == row[p - c + 1 : p + 1]]
            assert len(behind) == 1
            right.append(row[behind[0]] - first)
        assert said.tolist() == right == wanted[wanted != NO_ANSWER].tolist()


@pytest.mark.parametrize(
    ("text", "stack"),
    list(
        itertools.product(
            (
                "recall:n=2,K=2,V=2",
                "recall:n=2,K=3,V=3,form=independent",
                "mqar:vocab_size=5,input_seq_len=4,num_kv_pairs=1",
                "noisy-recall:n=2,noise=1,K=2,V=2,N=1",
            ),
            (*STACKS, NORMED, SLOW_NORMED),
        )
    ),
)
def test_every_prompt_is_answered(text: str, stack: str, tmp_path: Path) -> None:
    built = made(text, stack)
    tokens = prompts(text)
    assert len(tokens)
    answered(built, tokens)
    built.save(tmp_path)
    assert "every answer right" in " ".join(verify(built.record, folder=tmp_path).checks)


@each("stack", STACKS)
def test_every_c_gram_of_two_letters_is_answered(stack: str) -> None:
    """Of the smallest size, whose vocabulary has 4 letters."""
    built = made("cgram:n=11,V=4,c=2", stack)
    answered(built, taken(built.task, np.array([0, 3])[every([2] * 11)]))


def test_scores_are_those_derived_by_hand() -> None:
    """s^2 (c B - 2 hamming) with s = 4, B = 2, c = 2; 0 for what is missing before the first."""
    built = made("cgram:n=11,V=4,c=2")
    row = [3, 0, 1, 3, 2, 2, 3, 2, 1, 3, 0]
    last = [module for module in built.model.modules() if isinstance(module, FullMixer)][1]
    seen: list[torch.Tensor] = []
    last.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with torch.inference_mode():
        built.model.every(torch.tensor([row]))
        q, k, _ = last._project(seen[0])
    bits = {0: (-1, -1), 1: (1, -1), 2: (-1, 1), 3: (1, 1)}
    asked = [*bits[0], *bits[3]]  # the last token, then the one before
    wanted = [0.0]
    for place in range(11):
        key = [x for back in (1, 2) for x in (bits[row[place - back]] if place >= back else (0, 0))]
        wanted.append(16.0 * sum(a * b for a, b in zip(asked, key, strict=True)))
    scores = q[0, -1] @ k[0].T
    assert scores.tolist() == pytest.approx(wanted, abs=1e-3)
    # 3 0 stands at the places 0 and 1: the place behind has every bit
    assert wanted[3] == 64.0 == max(wanted)


@pytest.mark.slow
@each(
    "text, stack",
    [
        ("cgram:n=1024,V=64,c=3", "full(rope=true, rope_dim=64)*2 @ heads=3, head_dim=128"),
        (
            "mqar:vocab_size=8192,input_seq_len=512,num_kv_pairs=64",
            "(gdn*3 + full(rope=true, rope_dim=64, rope_base=10000000, qk_norm=head, gate=sigmoid))"
            " + full(rope=true, rope_dim=64) @ heads=4, kv_heads=2, head_dim=128, positions=none",
        ),
        ("noisy-recall:n=512,noise=1536,K=4096,V=64", "full*2 @ heads=1, head_dim=16"),
        (
            "recall:n=2000,K=4096,V=512",
            ROTATED.replace("rope_dim=16", "rope_dim=16, rope_base=500"),
        ),
        (
            "mqar:vocab_size=8192,input_seq_len=4096,num_kv_pairs=64",
            "full(rope=true, rope_base=500000, rope_scaling=llama3_8_1_4_8192)*2 @ heads=4,"
            " kv_heads=2, head_dim=128, positions=none, bf16",
        ),
        (
            "mqar:vocab_size=4096,input_seq_len=2048,num_kv_pairs=64",
            "gdn + full(rope=true, rope_base=1000000, qk_norm=head)*2 @ heads=4, kv_heads=2,"
            " head_dim=128, positions=none, bf16",
        ),
    ],
)
def test_long_prompts(text: str, stack: str) -> None:
    built = made(text, stack)
    for shift in ("none", *list(built.task.shifts)[:1]):
        task = replace(built.task, shift=shift)
        tokens = task.sample(20, np.random.default_rng(5)).tokens
        found, _ = given(logits_of(built.model), built.task, tokens)
        targets = built.task.answer(tokens)
        assert found.ravel().tolist() == targets[targets != NO_ANSWER].tolist()


@each(
    "edits, said",
    [
        # a place reads two back
        ({"position.weight": ((4, 5), 1.0)}, "no less"),
        # a token's code is another's
        ({"embed.weight": ((1, 8), 1.0)}, "no less"),
        # a key of the second layer hears its own token
        ({"blocks.1.mixers.0.k.weight": ((0, 6), 64.0)}, "no less"),
        # the bits that the first layer brings are not cleaned
        ({"blocks.0.mlp.down.weight": ((14, 0), 0.0)}, "no less"),
        ({"blocks.1.mlp.down.bias": ((21,), 3.0)}, "largest logit"),
        ({"head.weight": ((0, 21), 9.0)}, "largest logit"),
    ],
)
def test_other_weights_are_refused(
    edits: dict[str, tuple[tuple[int, ...], float]], said: str, tmp_path: Path
) -> None:
    refused(made("recall:n=3,K=4,V=2", ""), tmp_path, edits, said)


def test_a_first_layer_that_looks_back_otherwise_is_refused() -> None:
    """Heads that change places bring the two tokens that are due, in another order."""
    built = made("cgram:n=11,V=4,c=2", ROTATED)
    model = copy.deepcopy(built.model)
    query = model.get_parameter("blocks.0.mixers.0.q.weight")
    query[:32], query[32:] = query[32:].clone(), query[:32].clone()
    with pytest.raises(CheckFailed, match="no less"):
        DERIVATIONS["induction-cgram"].proved(built.task, model, FP32)
    query[:32] = query[32:]
    with pytest.raises(CheckFailed, match=r"\[1, 1\] places"):
        DERIVATIONS["induction-cgram"].proved(built.task, model, FP32)


TURNED = "full(rope=true)*2 @ heads=1, head_dim=64, positions=none"


def test_contents_compare_in_pairs_that_turn_slowly() -> None:
    """Seven bits over 2,000 tokens: asked in the middle they lead, from one end they need not."""
    built = made("mqar:vocab_size=128,input_seq_len=2000,num_kv_pairs=4", TURNED)
    how = slow_bits(Rotation(10_000, 64), 2_001, 7, 1, "fp32")
    assert how is not None
    # from the slowest pair on, first those of two bits
    off = 10_000.0 ** (-np.arange(31, 24 + how.doubled, -1) / 32) * 1_000
    two, alone = np.split(off, [how.doubled])
    lacking = ((1 - np.cos(two)) / (1 - np.sin(two))).sum() + (np.tan(alone / 2) ** 2).sum()
    assert how.doubled > 0
    assert 0.5 < 1 - lacking < 1
    # s^2 = 16, twice the lead, and twice that where a half to all of it is left
    found = float(built.record.proof["layers"][1]["score_gap"])
    assert found == pytest.approx(64 * (1 - lacking), rel=0.01)
    model = copy.deepcopy(built.model)
    # the other way round: a query that asks for what is far misses by all of the turn
    model.get_parameter("blocks.1.mixers.0.q.weight")[32:] *= -1
    with pytest.raises(CheckFailed, match="no less"):
        DERIVATIONS["induction-mqar"].proved(built.task, model, FP32)


def test_what_is_alike_may_score_more_at_another_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two tokens the one that is the same at a wrong place, nearer the middle, makes up for a
    bit of the other: weights that answer a prompt of this kind wrongly are refused.
    """
    task, stack = parse_task("cgram:n=38,V=8,c=2"), "full(heads=2, head_dim=16) + full({}) @ fp32"
    turned = "heads=1, rope=true, rope_base={}, head_dim=128"
    # the worst lead found over all distances of the two
    for base, worst in ((36, 51.67), (60, 49.99), (200, 62.89)):
        layers = Architecture.parse(stack.format(turned.format(base)))
        found = construct(task, layers, "induction-cgram").record.proof["layers"][1]
        assert float(found["score_gap"]) <= worst
    monkeypatch.setattr(Attending, "slow", lambda *_, **__: Slow(0.03, 0))
    with pytest.raises(SizeError, match="no less"):
        construct(task, Architecture.parse(stack.format(turned.format(27))), "induction-cgram")


@each("form", ["absent", "last"])
def test_keys_that_may_be_missing_or_written_again_are_refused(form: str) -> None:
    built = made("recall:n=3,K=4,V=2", "")
    other = parse_task(f"recall:n=3,K=4,V=2,form={form}")
    assert isinstance(other, Recall)
    with pytest.raises(CheckFailed, match="stands among the pairs"):
        DERIVATIONS["induction-recall"].proved(other, built.model, FP32)
    with pytest.raises(SizeError, match="promised"):
        construct(other, Architecture.parse("full*2"), "induction-recall")


@each(
    "text, stack, said",
    [
        ("cgram:n=26,V=8,c=2", "full*2 @ heads=1", "2 heads"),
        ("cgram:n=26,V=8,c=2", "full @ heads=2", "full layer with 2 heads"),
        # no dimension in which contents compare
        ("recall:n=8,K=9,V=8", "full(rope=true)*2 @ head_dim=4", "what rotations turn"),
        # a key of no token needs a pair beside those of the bits
        (
            "recall:n=8,K=9,V=8",
            "full(rope=true, qk_norm=head, head_dim=64) + full(rope=true, qk_norm=head)"
            " @ head_dim=6, positions=none",
            "what rotations turn",
        ),
        # it has places, and no pair that is slow enough
        ("recall:n=8,K=9,V=8", "full + full(rope=true, rope_base=9, head_dim=16)", "slowly enough"),
        ("recall:n=8,K=9,V=8", "full*2 @ positions=none", "it has 0"),
        ("recall:n=8,K=9,V=8", "full*2 @ head_dim=4", "head_dim >= 5"),
        ("cgram:n=26,V=8,c=2", NORMED, "no norm or cap"),
        ("recall:n=8,K=9,V=8", "full(conv=2) + full(softcap=9)", "no softcap"),
        ("mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4", "gdn + full", "full layer"),
    ],
)
def test_stacks_without_room_are_told_what_is_needed(text: str, stack: str, said: str) -> None:
    task = parse_task(text)
    with pytest.raises(SizeError, match=said):
        construct(task, Architecture.parse(stack), f"induction-{task.name}")


@each("text", ["noisy-recall:n=4,noise=4,K=7,V=4", "cgram:n=26,V=8,c=2"])
def test_a_card_promises_it(text: str) -> None:
    stack = Architecture.parse(ROTATED)
    task = parse_task(text)
    verdict = judge(stack, task)[0]
    assert (verdict.status, verdict.theorem) == ("SOLVABLE", "lookup")
    assert built_by(verdict) == (f"induction-{task.name}",)


@each("name", ["bf16", "fp16", "fp64"])
def test_other_formats(name: str) -> None:
    """Each with its own proof, where its rounding leaves a lead."""
    stack = None if name == "fp64" else Architecture.parse(f"{ROTATED}, format={name}")
    built = construct(
        parse_task("recall:n=9,K=16,V=4"), stack, "induction-recall", arithmetic(name)
    )
    tokens = built.task.sample(200, np.random.default_rng(1)).tokens
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp64": torch.float64}[name]
    with torch.inference_mode():
        found = copy.deepcopy(built.model).to(dtype)(torch.from_numpy(tokens)).argmax(-1).tolist()
    assert found == built.task.answer(tokens).tolist()


@each(
    "text, stack",
    [
        ("cgram:n=40,V=256,c=2", "full*2 @ heads=2, head_dim=24"),
        ("cgram:n=60,V=16,c=4", "full*2 @ heads=4, head_dim=24"),
        ("recall:n=10,K=6000,V=64", "full + full(qk_norm=head) @ head_dim=24"),
        ("cgram:n=11,V=4,c=2", ROTATED),
    ],
)
def test_codes_that_half_formats_hold_are_compared_as_exactly_as_in_float32(
    text: str, stack: str
) -> None:
    """The bits of a token are -1 and 1 whatever the format, though those of none are not 0: many
    of them are compared in bf16, too, as the card promises where there are addresses.
    """
    task, declared = parse_task(text), Architecture.parse(f"{stack}, bf16")
    if "rope" not in stack:
        assert built_by(judge(declared, task)[0]) == (f"induction-{task.name}",)
    built = construct(task, declared, f"induction-{task.name}")
    assert [float(layer["score_error"]) < 0.5 for layer in built.record.proof["layers"]] == [
        True
    ] * 2
    tokens = task.sample(100, np.random.default_rng(3)).tokens
    with torch.inference_mode():
        found = copy.deepcopy(built.model).bfloat16()(torch.from_numpy(tokens)).argmax(-1).tolist()
    assert found == task.answer(tokens).tolist()


GATED = f"{SLOW.replace('=500000', '=500000, gate=sigmoid')}"
STACKED = ("", ROTATED, SLOW, SLOW_NORMED, GATED)


SINKS = f"full(rope=true) + {SLOW.replace('=500000', '=500000, sink=true')}"


@each("stack", [*STACKED, SINKS])
@each("text", ["twosum:n=3,M=6", "twosum:n=4,M=5", "twosum:n=4,M=6,form=decision"])
def test_what_would_cancel_is_looked_up_and_compared(text: str, stack: str) -> None:
    """0 and M/2 cancel themselves, and no token is earlier than itself."""
    decision = "decision" in text
    built = made(text, stack.replace("*2", "*3") if decision else stack)
    tokens = every([built.task.vocabulary] * built.task.length)
    logits = logits_of(built.model)(tokens, None)[:, 0]
    later = range(1, tokens.shape[1]) if decision else [-1]
    cancelled = np.any(
        [((tokens[:, :i] + tokens[:, [i]]) % built.task.vocabulary == 0).any(1) for i in later], 0
    )
    lead = np.where(cancelled, logits[:, 1] - logits[:, 0], logits[:, 0] - logits[:, 1])
    assert lead.min() >= float(built.record.proof["final_margin"])


@each(
    "name, rows, by",
    [
        # a bit that is not compared, one way or both; one that counts for what cancels
        ("blocks.1.mlp.up.weight", [0, 3], 0.0),
        ("blocks.1.mlp.down.weight", slice(None), -1.0),
        ("blocks.1.mlp.down.weight", slice(None), 0.5),
        ("head.weight", slice(None), 0.25),
    ],
)
def test_what_may_average_to_what_cancels_is_refused(
    name: str, rows: slice | list[int], by: float
) -> None:
    built = made("twosum:n=4,M=6,form=query")
    model = copy.deepcopy(built.model)
    model.get_parameter(name)[rows] *= by
    with pytest.raises(CheckFailed):
        DERIVATIONS["induction-twosum"].proved(built.task, model, FP32)


WRITES = ("mixers.0.o.weight", "mlp.down.weight")


def test_a_unit_that_rounding_alone_opens_is_counted() -> None:
    """Of large terms, whose sum is at most 0 whatever is read: computed, it may be 4, and what it
    writes hides all that differs.
    """
    built = made("twosum:n=2,M=8,form=query", "full*2 @ head_dim=16, heads=1")
    model = copy.deepcopy(built.model)
    up, down, head, embed = (
        model.get_parameter(name)
        for name in (
            "blocks.1.mlp.up.weight",
            "blocks.1.mlp.down.weight",
            "head.weight",
            "embed.weight",
        )
    )
    partner, read = up[:3].argmax(1), up[:3].argmin(1)
    unit = int((down == 0).all(0).nonzero()[0])
    (differs,) = head[0].nonzero()[:, 0].tolist()
    # a column in which no letter has a number, and nothing is written
    written = [model.get_parameter(f"blocks.{i}.{name}") for i in (0, 1) for name in WRITES]
    zero = torch.cat([head.T, embed[:-1].T, model.get_parameter("position.weight").T, *written], 1)
    free = int((zero == 0).all(1).nonzero()[0])
    # what the token 1 asks for, and what is one bit away
    wanted = embed[1, partner]
    large = (2.0**24 * torch.tensor([1.25, 1.1, 1.7])).float() * wanted
    small = 256.0 * wanted * torch.tensor([-1.0, 1.0, 1.0])
    up[unit, partner], up[unit, read] = large, small
    bias = model.get_parameter("blocks.1.mlp.up.bias")
    bias[unit] = -float(large.double().abs().sum() + 768.0) - 8.0
    down[[differs, free], unit] = 2.0**24
    head[0, free] = -1.0
    with pytest.raises(CheckFailed):
        DERIVATIONS["induction-twosum"].proved(built.task, model, FP32)


@each("power", [127, 126])
def test_logits_that_overflow_where_nothing_cancels_are_refused(power: int) -> None:
    built = made("twosum:n=3,M=4,form=query", "full*2 @ head_dim=16, heads=1")
    model = copy.deepcopy(built.model)
    # a margin below what cancels, so that all units are closed there, and so large a head
    bias = model.get_parameter("blocks.1.mlp.up.bias")
    bias[:4] = -0.25
    head = model.get_parameter("head.weight")
    head[:] *= 2.0**power
    with pytest.raises(CheckFailed, match="overflow"):
        DERIVATIONS["induction-twosum"].proved(built.task, model, FP32)


def test_averages_of_many_tokens_are_not_promised() -> None:
    stack = Architecture.parse("full*2 @ rope=true, rope_base=500000, head_dim=128")
    for text, found, promised in (
        ("twosum:n=60000,M=256,form=query", True, True),
        ("twosum:n=90000,M=256,form=query", True, False),
        ("twosum:n=600000,M=256,form=query", False, False),
    ):
        verdicts = judge(stack, parse_task(text))
        solved = [one for one in verdicts if (one.theorem, one.status) == ("lookup", "SOLVABLE")]
        assert bool(solved) == found, text
        assert any(map(built_by, solved)) == promised, text
    narrow = Architecture.parse("full*2 @ accumulator=bf16, head_dim=128, rope=true, bf16")
    verdicts = judge(narrow, parse_task("twosum:n=60,M=256,form=query"))
    assert all(one.status == "OPEN" for one in verdicts)


def test_two_layers_are_for_the_query_form() -> None:
    task = parse_task("twosum:n=4,M=6,form=decision")
    with pytest.raises(SizeError, match="full layer"):
        construct(task, Architecture.parse("full(rope=true)*2 @ head_dim=32"), "induction-twosum")
    model = made("twosum:n=4,M=6,form=query").model
    with pytest.raises(CheckFailed, match="2 layers write"):
        DERIVATIONS["induction-twosum"].proved(task, model, FP32)


@each(
    "name, at, by",
    [
        # a start token that asks for what it reads, or whose flag is told as found
        ("embed.weight", (-1, "partner"), 0.0),
        # tokens that are alike unless two bits differ, or even then
        ("blocks.1.mlp.down.bias", ("differs",), 2.5),
        ("blocks.1.mlp.down.weight", ("differs",), 0.25),
        # the one who looks asks for none, or for those that found nothing
        ("blocks.2.mixers.0.k.weight", (), -1.0),
        ("blocks.2.mixers.0.q.weight", (), 2.0**-6),
    ],
)
@each("stack", ["", SLOW.replace("*2", "*3")])
def test_flags_that_may_be_missed_or_are_none_are_refused(
    name: str, at: tuple[Any, ...], by: float, stack: str
) -> None:
    built = made("twosum:n=4,M=6,form=decision", stack)
    model = copy.deepcopy(built.model)
    spaces: dict[Any, Any] = {
        "partner": model.get_parameter("embed.weight")[-1] == 2.0,
        "differs": model.get_parameter("blocks.1.mlp.down.weight").any(1),
    }
    tensor = model.get_parameter(name)
    tensor[tuple(spaces.get(one, one) for one in at)] *= by
    with pytest.raises(CheckFailed):
        DERIVATIONS["induction-twosum"].proved(built.task, model, FP32)


def test_a_flag_is_not_told_where_the_slowest_pair_turns_too_far() -> None:
    """A quarter may be lost: arccos(3/4) = 0.7227, and the last of 16 pairs turns by 10^(-15/4) a
    token, 4,064 times until there.
    """
    stack = Architecture.parse("full(rope=true)*3 @ head_dim=32, positions=none")
    for n, form, solved in (
        (4050, "decision", True),
        (4070, "decision", False),
        (4070, "query", True),
    ):
        verdict = judge(stack, parse_task(f"twosum:n={n},M=4,form={form}"))[0]
        assert (verdict.theorem == "lookup") == solved, (n, form)
    with pytest.raises(SizeError, match="up to 41 degrees"):
        construct(parse_task("twosum:n=4070,M=4,form=decision"), stack, "induction-twosum")

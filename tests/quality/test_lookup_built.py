"""The theorem `lookup` in weights: recall, many queries, needles and c-grams by rotations alone and
one head that compares, or behind a short convolution in bf16.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from separatrix.constructions.parts.built import Spaces, empty_model, mixer_at
from separatrix.constructions.parts.readers import InPairs, LookBack, Reader
from separatrix.core.numbers.selection import selection_lead
from separatrix.mixers import mixer as mixer_for
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.models.model import Model, ModelConfig
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import MQAR, Copying, KHop, Task, parse_task
from separatrix.theory import judge, recheck
from separatrix.theory.solves.places import full_heads
from separatrix.theory.solves.recall import wanted_by
from separatrix.theory.written import Slot


def built(spec: str, task: Task) -> Model:
    """Stream: 1 but for the start token, start, a token's bits, those of the c tokens before with
    their flags, and the bits that are found. Behind layer 1 all is linear.
    """
    wanted = wanted_by(task)
    assert wanted is not None
    c, B = wanted.before, wanted.letter
    config = ModelConfig(
        architecture=spec,
        vocabulary=task.vocabulary,
        length=task.length,
        answers=task.answers,
        width=2 + B + c * (B + 1) + B,
        hidden=1,
        norm=False,
        bos=True,
    )
    model = Model(config).requires_grad_(False)
    weights = dict(model.named_parameters())
    for weight in weights.values():
        weight.zero_()
    codes = 2.0 * (torch.arange(task.vocabulary)[:, None] >> torch.arange(B) & 1) - 1
    weights["embed.weight"][: task.vocabulary, 0] = 1
    weights["embed.weight"][: task.vocabulary, 2 : 2 + B] = codes
    weights["embed.weight"][task.vocabulary, 1] = 1
    one, two = "blocks.0.mixers.0.", "blocks.1.mixers.0."
    brought = [2 + B + j * (B + 1) for j in range(c)]
    # a flag and the bits of a token, copied for each head or offset
    copied = [1, *range(2, 2 + B)]
    for j, start in enumerate(brought):
        for number, source in enumerate(copied):
            channel = j * (B + 1) + number
            weights[one + "v.weight"][channel, source] = 1
            weights[one + "o.weight"][start + number, channel] = 1
            if one + "conv.weight" in weights:
                weights[one + "conv.weight"][channel, -2 - j] = 1
    if one + "conv.weight" in weights:
        for gate in ("b.weight", "c.weight"):
            weights[one + gate][:, :2] = 1
    else:
        part = Architecture.parse(spec).layers[0][0]
        assert part.rotation is not None
        lead = selection_lead(part.rotation, task.length + 1, "fp32")
        assert lead is not None
        first = torch.tensor(part.rotation.frequencies, dtype=torch.float64)
        shares = lead.ratio ** torch.arange(len(first), dtype=torch.float64)
        scale = (math.log(task.length + 1) + 17) / (lead.gap - lead.rounding) / shares.sum()
        half = len(first)
        for j in range(c):
            rows = slice(2 * half * j, 2 * half * (j + 1))
            turn = first * (j + 1)
            query = torch.cat([shares * turn.cos(), -shares * turn.sin()]) * scale
            for both in (0, 1):
                weights[one + "q.weight"][rows, both] = query.float()
                weights[one + "k.weight"][rows.start : rows.start + half, both] = 1
    # the last c tokens against those before: bits, and a tag that is below 0 where one is missing
    bits = [2, *(start + 1 for start in brought)]
    for j in range(c):
        for b in range(B):
            weights[two + "q.weight"][j * B + b, bits[j] + b] = 8.0
            weights[two + "k.weight"][j * B + b, bits[j + 1] + b] = 8.0
    tag = c * B
    weights[two + "q.weight"][tag, :2] = 8.0
    weights[two + "k.weight"][tag, :2] = 8.0
    for start in brought:
        weights[two + "k.weight"][tag, start] = -16.0
    found = 2 + B + c * (B + 1)
    for b in range(B):
        weights[two + "v.weight"][b, 2 + b] = 1
        weights[two + "o.weight"][found + b, b] = 1
    offset = task.vocabulary // 2 if isinstance(task, MQAR) else 0
    weights["head.weight"][:, found:] = codes[offset : offset + task.answers]
    return model


TASKS = [
    "recall:n=40,K=90,V=30,form=independent",
    "recall:n=40,K=90,V=10",
    "mqar:vocab_size=64,input_seq_len=96,num_kv_pairs=20",
    "noisy-recall:n=5,noise=40,K=64,V=16",
    "cgram:n=64,V=32,c=2",
]


@pytest.mark.parametrize("text", TASKS)
@pytest.mark.parametrize("first", ["full", "shortconv"])
def test_every_drawn_prompt_is_answered(text: str, first: str) -> None:
    task = parse_task(text)
    wanted = wanted_by(task)
    assert wanted is not None
    c, B = wanted.before, wanted.letter
    rope = f"full(heads={c}, head_dim=64, value_dim={B + 1}, rope=true, positions=none)"
    conv = f"shortconv(conv={c + 1}, width={c * (B + 1)}, positions=none)"
    brings = rope if first == "full" else conv
    spec = f"{brings} + full(heads=1, head_dim=32, value_dim={B}, positions=none)"
    verdict = next(v for v in judge(Architecture.parse(spec), task) if v.theorem == "lookup")
    recheck(verdict)
    assert verdict.status == "SOLVABLE"
    model = built(spec, task)
    drawn = task.draw(200, np.random.default_rng(3))
    tokens = torch.from_numpy(drawn.tokens)
    if first == "shortconv":
        model = model.bfloat16()
    if task.several:
        due = drawn.targets >= 0
        assert (model.every(tokens).argmax(-1).numpy()[due] == drawn.targets[due]).all()
    else:
        assert (model(tokens).argmax(-1).numpy() == drawn.targets).all()


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_strings_are_copied_by_two_heads_that_address_places(dtype: torch.dtype) -> None:
    """Between them a token's own place less that of the mark, less 1."""
    task = Copying(n=40, V=10)
    stack = Architecture.parse("full(heads=1, head_dim=16, value_dim=8)*2")
    verdict = next(v for v in judge(stack, task) if v.theorem == "copying")
    recheck(verdict)
    address = verdict.numbers["address_bits"]
    part = stack.layers[0][0]
    bits = 2.0 * (torch.arange(256)[:, None] >> torch.arange(address) & 1) - 1
    drawn = task.draw(50, np.random.default_rng(4))
    tokens = torch.from_numpy(drawn.tokens)

    def read(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """One head of the layer: query, key and value stand side by side in its input."""
        x = torch.cat([query * 8, key * 8, value], -1).to(dtype)
        mixer = mixer_for(part, width=x.shape[-1])
        weights = dict(mixer.named_parameters())
        for weight in weights.values():
            weight.zero_()
        starts = (0, query.shape[-1], 2 * query.shape[-1])
        for name, start, size in zip("qkv", starts, (16, 16, 8), strict=True):
            used = min(size, x.shape[-1] - start, query.shape[-1] if name != "v" else size)
            weights[f"{name}.weight"][:used, start : start + used] = torch.eye(used)
        weights["o.weight"][:8, :8] = torch.eye(8)
        return mixer.to(dtype)(x)[..., :8].float()

    n = task.length
    mark = torch.where(tokens == task.V, 1.0, -1.0)[..., None]
    one = torch.ones(len(tokens), n, 1)
    own = bits[torch.arange(n)].expand(len(tokens), n, address)
    found = read(one, mark, own)[..., :address] > 0
    place = (found.long() << torch.arange(address)).sum(-1)
    wanted = (torch.arange(n) - place - 1).clamp(0)
    values = bits[tokens][..., :4]
    copied = read(bits[wanted], own, values)[..., :4] > 0
    answers = (copied.long() << torch.arange(4)).sum(-1).numpy()
    due = drawn.targets >= 0
    assert (answers[due] == drawn.targets[due]).all()


def looked_up(
    stack: Architecture,
    dtype: torch.dtype,
    asked: torch.Tensor,
    own: torch.Tensor,
    value: torch.Tensor,
    *,
    single: bool = False,
    many: int = 1,
) -> torch.Tensor:
    """What a head of one layer reads that compares these bits in slow pairs; those of several
    tokens beside a number in a pair that none asks with.
    """
    (_, tokens, wide), read = own.shape, value.shape[-1]
    bits = (wide - (many > 1)) // many
    how = next(full_heads(stack)).slow(bits, many, tokens, single=single)
    assert how is not None
    space = Spaces(asked=wide, own=wide, value=read, found=read)
    model = empty_model(Copying(n=2, V=2), stack, space, hidden=0, bos=True, placed=False)
    slow = InPairs(how, bits, many, tokens)
    Reader((0, 0)).write(model, space, {"asked": 2}, {"own": 2}, "value", "found", slow=slow)
    x = torch.cat([asked, own, value, 0 * value], -1).to(dtype)
    return mixer_at(model, (0, 0), SoftmaxMixer).to(dtype)(x).float()[..., space["found"]]


@torch.no_grad()
@pytest.mark.parametrize(("form", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
@pytest.mark.parametrize("norm", ["", ", qk_norm=head"])
def test_strings_are_copied_where_rotations_turn_every_dimension(
    form: str, dtype: torch.dtype, norm: str
) -> None:
    """Three layers of four heads tell 125 places; between layers stand maps of single tokens."""
    task = Copying(n=40, V=10)
    parts = f"full(rope=true, rope_base=500000, head_dim=64, heads=4, kv_heads=2{norm})"
    stack = Architecture.parse(f"{parts}*5 @ positions=none, {form}")
    verdict = next(v for v in judge(stack, task) if v.theorem == "copying")
    recheck(verdict)
    assert (verdict.numbers["layers"], verdict.numbers["second"]) == (5, 4)
    tokens, bits = task.length + 1, verdict.numbers["address_bits"]
    drawn = task.draw(20, np.random.default_rng(4))
    # the start token is an id more
    ids = torch.nn.functional.pad(torch.from_numpy(drawn.tokens), (1, 0), value=task.vocabulary)
    codes = 2.0 * (torch.arange(1 << bits)[:, None] >> torch.arange(bits) & 1) - 1
    one = Architecture.parse(f"{parts} @ positions=none")
    rotation = one.layers[0][0].rotation
    assert rotation is not None

    def layer(**spaces: int) -> tuple[Model, Spaces]:
        space = Spaces(letter=1, beside=1, **spaces)
        fresh = empty_model(task, one, space, hidden=0, bos=True, placed=False)
        return fresh, space

    def run(model: Model, space: Spaces, out: str, **held: torch.Tensor) -> torch.Tensor:
        x = torch.zeros(len(ids), tokens, space.width)
        x[..., space["letter"]] = 1.0
        for name, numbers in held.items():
            x[..., space[name]] = numbers.float()
        return mixer_at(model, (0, 0), SoftmaxMixer).to(dtype)(x.to(dtype)).float()[..., space[out]]

    def number(read: torch.Tensor) -> torch.Tensor:
        return ((read > 0).long() << torch.arange(read.shape[-1])).sum(-1)

    heads = next(full_heads(one))
    lead = heads.place_lead(tokens)
    assert lead is not None
    slot = Slot(start=64, lead=lead, score=(math.log(tokens) + 17) / (lead.gap - lead.rounding))
    # a place that is told, or none; only a start token knows its own
    place = torch.where(ids == task.vocabulary, 0, -1)
    for told in (1, 5, 25):
        model, space = layer(known=1, code=bits, fetched=4 * (bits + 1))
        for head in range(4):
            at = space["fetched"].start + head * (bits + 1)
            read = slice(space["known"].start, space["code"].stop)
            back = LookBack(slot, head, told * (head + 1))
            back.write(model, space, read, slice(at, at + bits + 1))
        known = torch.where(place >= 0, 1.0, -1.0)[..., None]
        fetched = run(model, space, "fetched", known=known, code=codes[place])
        for head in reversed(range(4)):
            some = fetched[..., head * (bits + 1) : (head + 1) * (bits + 1)]
            here = (some[..., 0] > 0) & (known[..., 0] < 0)
            place = torch.where(here, number(some[..., 1:]) + told * (head + 1), place)
    assert (place == torch.arange(tokens)).all()

    model, space = layer(mark=1, code=bits, found=bits)
    flagged = Reader((0, 0), start=31)
    flagged.write(model, space, {"letter": 2}, {"mark": 2}, "code", "found")
    mark = torch.where(ids == task.V, 1.0, -1.0)[..., None]
    behind = number(run(model, space, "found", mark=mark, code=codes[place]))
    wanted = (torch.arange(tokens) - behind).clamp(0)

    found = looked_up(one, dtype, codes[wanted], codes[place], codes[ids][..., :4])
    copied = number(found)[:, 1:].numpy()
    due = drawn.targets >= 0
    assert (copied[due] == drawn.targets[due]).all()


@torch.no_grad()
@pytest.mark.parametrize(("form", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_two_letters_are_compared_behind_a_norm(form: str, dtype: torch.dtype) -> None:
    """The first two places lack a letter before them: their keys stand in a pair of their own."""
    task = parse_task("cgram:n=64,V=32,c=2")
    part = "full(rope=true, rope_base=500000, head_dim=64, heads=2, qk_norm=head)"
    stack = Architecture.parse(f"{part}*2 @ positions=none, {form}")
    verdict = next(v for v in judge(stack, task) if v.theorem == "lookup")
    recheck(verdict)
    assert (verdict.status, verdict.numbers["key_bits"]) == ("SOLVABLE", 10)
    one = Architecture.parse(f"{part.replace('heads=2', 'heads=1')} @ positions=none")
    drawn = task.draw(200, np.random.default_rng(6))
    ids = torch.from_numpy(drawn.tokens)
    codes = 2.0 * (torch.arange(32)[:, None] >> torch.arange(5) & 1) - 1
    letters = codes[ids]
    spare = torch.zeros(*ids.shape, 1)
    last, before = letters, letters.roll(1, 1)
    asked = torch.cat([last, before, spare], -1)
    own = torch.cat([before, letters.roll(2, 1), spare], -1)
    own[:, :2] = 0
    own[:, :2, -1] = math.sqrt(10)
    found = looked_up(one, dtype, asked, own, letters, many=2)[:, -1] > 0
    assert ((found.long() << torch.arange(5)).sum(-1).numpy() == drawn.targets).all()


@torch.no_grad()
@pytest.mark.parametrize(("form", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
@pytest.mark.parametrize("norm", ["", ", qk_norm=head"])
def test_hops_are_made_where_rotations_turn_every_dimension(
    form: str, dtype: torch.dtype, norm: str
) -> None:
    """Where places are told, and each token knows the letter before it: the latest token with its
    own letter before it is looked up by two binary digits of its place at a time. Then each token
    reads what the one that it points to knows, which doubles the hops.
    """
    task = KHop(n=40, V=5, k=6, shift="random")
    parts = f"full(rope=true, rope_base=500000, head_dim=64, heads=4, kv_heads=2{norm})"
    stack = Architecture.parse(f"{parts}*10 @ positions=none, {form}")
    verdict = next(v for v in judge(stack, task) if v.theorem == "k-hop")
    recheck(verdict)
    # 5^3 places, the token before, 6 digits two by two, and 6 hops are 110
    assert verdict.numbers["layers"] == 3 + 1 + 3 + 3
    assert judge(Architecture.parse(f"{parts}*9 @ positions=none"), task)[0].status == "OPEN"
    one = Architecture.parse(f"{parts} @ positions=none")
    drawn = task.draw(50, np.random.default_rng(5))
    # the start token has a letter of its own, and so has none
    ids = torch.nn.functional.pad(torch.from_numpy(drawn.tokens), (1, 0), value=task.V)
    tokens, place, letter = task.n + 1, 6, 3
    codes = 2.0 * (torch.arange(64)[:, None] >> torch.arange(6) & 1) - 1
    highest = torch.arange(6).flip(0)
    where = codes[torch.arange(tokens)][:, highest].expand(len(ids), tokens, place)
    letters = codes[ids][..., :letter]
    before = torch.cat([codes[task.V, :letter].expand(len(ids), 1, letter), letters[:, :-1]], 1)
    own = torch.cat([before, where], -1)

    # the digits of the latest such place so far; what is not asked for is 0
    asked = torch.cat([letters, torch.zeros(len(ids), tokens, place)], -1)
    some = torch.ones(len(ids), tokens, dtype=torch.bool)
    for first in range(letter, letter + place, 2):
        found = torch.zeros(len(ids), tokens, dtype=torch.bool)
        for value in range(4):
            tried = asked.clone()
            tried[..., first : first + 2] = torch.tensor(
                [2.0 * (value >> 1) - 1, 2.0 * (value & 1) - 1]
            )
            read = looked_up(one, dtype, tried, own, own, single=True)
            differs = ((tried - read).abs() * (tried != 0)).sum(-1)
            here = differs < 1
            asked = torch.where(here[..., None], tried, asked)
            found |= here
            # a later value starts from the same digits before
        some &= found
    pointer = ((asked[..., letter:] > 0).long() << highest).sum(-1)
    pointer = torch.where(some, pointer, 0)
    # the start token points to itself
    pointer[:, 0] = 0

    # behind a jump: the place that twice as many hops lead to, and the letter where k says so
    reached = torch.arange(tokens).expand(len(ids), tokens)
    for digit in range(task.k.bit_length()):
        known = torch.cat([codes[pointer], codes[reached]], -1)
        read = looked_up(
            one,
            dtype,
            codes[pointer],
            codes[torch.arange(tokens)].expand(len(ids), tokens, 6),
            known,
        )
        ahead = (read > 0).long()
        twice, there = (
            (ahead[..., at] << torch.arange(6)).sum(-1) for at in (slice(6), slice(6, 12))
        )
        if task.k >> digit & 1:
            reached = there
        pointer = twice
    answers = ids.gather(1, reached[:, -1:])[:, 0]
    assert (answers.numpy() == drawn.targets).all()
    assert set(drawn.targets.tolist()) == set(range(task.V + 1))

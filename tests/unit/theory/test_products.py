"""Theorem S where arithmetic decides: what value channels tell apart, and what a verdict holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from separatrix.core.errors import CheckFailed
from separatrix.mixers import mixer as mixer_for
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.hf import from_config
from separatrix.tasks import Modular, Parity, Permutation, parse_task
from separatrix.theory import THEOREMS, judge, recheck
from separatrix.theory.solves.products import channels_needed


def bf16(values: np.ndarray) -> np.ndarray:
    return torch.tensor(values, dtype=torch.float32).bfloat16().double().numpy()


@pytest.mark.parametrize(
    "n", [257, 1_000, 4_097, 65_535, 65_536, 65_537, 131_071, 131_072, 262_143, 300_001]
)
def test_value_channels_in_bf16_tell_every_count_from_the_next(n: int) -> None:
    """By trying: thresholds of numbers that bf16 holds, sums that fp32 holds, one division; at the
    largest n of so many channels by the rule, the numbers are the same.
    """
    channels = channels_needed(n)
    most = 256 * channels
    d = max(0, (most - 1).bit_length() - 16)
    apart = np.zeros(n, bool)
    for j in range(channels):
        middle = 256 * j + 128
        constant = -round(middle * 2**d / most) / 2**d
        start = -middle - constant * most
        held = np.array([constant, 1 + constant, start])
        assert (bf16(held) == held).all()
        threshold = -constant * n - start
        near = range(max(0, int(threshold) - 200), min(n, int(threshold) + 200) + 1)
        sums = np.array(near) + constant * n + start
        assert (np.float32(sums).astype(float) == sums).all()
        for given in (
            bf16((sums.astype(np.float32) / np.float32(n + 1)).astype(float)),
            bf16((sums.astype(np.float32) * (1 / np.float32(n + 1))).astype(float)),
        ):
            last = given[:-1] != given[1:]
            apart[near[0] : near[-1]] |= last
    assert apart.all()


def test_fewer_bits_take_no_more_value_channels() -> None:
    """Bf16 counted 65,536 bits with 256 channels, and 65,535 not."""
    sizes = [*range(2, 3_000), *range(65_000, 66_600), *range(130_500, 133_000), 1 << 20]
    needed = [channels_needed(n) for n in sizes]
    assert needed == sorted(needed)
    assert [channels_needed(n) for n in (65_535, 65_536, 131_071, 262_144)] == [256, 256, 512, 1024]


@pytest.mark.parametrize(("spec", "added"), [("parity:n={}", 1), ("group:n={},G=C720", 719)])
def test_fp32_tells_all_sums_of_letters_apart(spec: str, added: int) -> None:
    n = ((1 << 23) - 1) // added
    sums = np.arange(added * n + 1, dtype=np.float32)
    for size in (n, n - 1):
        assert (np.diff(sums[: added * size + 1] / np.float32(size)) > 0).all()
        # as FlashAttention divides
        assert (np.diff(sums[: added * size + 1] * (1 / np.float32(size))) > 0).all()
    stack = Architecture.parse("full(positions=none) @ heads=1, head_dim=2, fp32")
    for size, status in ((n, "SOLVABLE"), (n + 1, "OPEN")):
        assert judge(stack, parse_task(spec.format(size)))[0].status == status
    assert judge(stack, Modular(n=n // 11, m=12))[0].status == "SOLVABLE"


@pytest.mark.parametrize(
    "spec",
    [
        "full(positions=none) @ heads=1, head_dim=2, fp32",
        "full(positions=none)*2 @ heads=8, head_dim=128, bf16",
        "automaton(bits=2, rules=400)",
        "deltanet(negative=true) @ heads=1, head_dim=8",
        "window(size=4)*3 @ heads=2, head_dim=16",
        "linear(format=bf16)",
    ],
)
@pytest.mark.parametrize("n", [8, 80, 300_000])
def test_what_a_task_is_called_decides_nothing(spec: str, n: int) -> None:
    """The same prompts with the same answers."""
    stack = Architecture.parse(spec)
    for names in (
        ("parity", "modular:m=2", "group:G=C2", "permutation:k=2"),
        ("group:G=A3", "group:G=C3"),
        ("eva:V=4", "index:V=4"),
    ):
        tasks = [parse_task(f"{name}{',' if ':' in name else ':'}n={n}") for name in names]
        said = [[(v.status, v.theorem, v.n) for v in judge(stack, task)] for task in tasks]
        assert said == said[:1] * len(said), said


def test_what_a_layer_multiplies_is_bound_by_heads_width_and_window() -> None:
    """By hand: embedded places, 32 dimensions for addresses and 25 numbers of a map."""

    def letters(layers: str, n: int) -> int:
        stack = Architecture.parse(f"{layers} @ head_dim=32, fp32")
        return judge(stack, Permutation(n=n, k=5))[0].numbers.get("letters", 0)

    # two heads fetch two words beside a token's own, but 256 units multiply two maps
    assert letters("full(heads=2)*3", 8) == 8
    # 384 units multiply three, for which 305 are needed
    assert letters("full(heads=3)*3", 20) == 27
    assert letters("full(heads=3)*3", 28) == 0
    # 64 heads assume an MLP of 8,192 units: five maps in fp32 take 7,805
    assert letters("full(heads=64)*2", 20) == 25
    # 2,048 units multiply four: all that the window sees, and four words of four
    assert letters("window(size=4, heads=16) + full(heads=16)", 9) == 16
    assert letters("window(size=3, heads=16) + full(heads=16)", 9) == 12
    # a window that sees no second word is one MLP more for the layer before it: 4 made of 3
    assert letters("full(heads=16) + window(size=4, heads=16)", 5) == 12
    assert letters("full(heads=16) + window(size=4, heads=16)", 13) == 0


def test_more_heads_lose_no_product() -> None:
    """Two words in each of two windows of three are four letters; three in the first one, which a
    wider MLP multiplies, leave the second one none.
    """
    for heads in (1, 2, 4, 16):
        stack = Architecture.parse(f"shortconv(conv=3)*2 + window(size=3) @ heads={heads}, fp32")
        assert judge(stack, Parity(n=4))[0].status == "SOLVABLE", heads


def test_a_bounded_width_is_part_of_the_verdict() -> None:
    config = {
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 60,
        "num_attention_heads": 2,
        "head_dim": 32,
        "num_hidden_layers": 4,
        "num_key_value_heads": 2,
        "rope_theta": 10000.0,
        "torch_dtype": "float32",
        "vocab_size": 200,
    }
    stack = from_config(config)
    verdict = judge(stack, Permutation(n=16, k=5))[0]
    # 60 units multiply two maps, and three take 305
    assert [verdict.numbers[f"maps_{i}"] for i in (1, 2, 3, 4)] == [2, 2, 2, 2]
    assert "of 60 units in" in " ".join(verdict.assumptions)
    recheck(verdict)
    for numbers in ({"width": 14_336}, {"width": 0}, {"maps_1": 3}, {"letters": 17}):
        with pytest.raises(CheckFailed):
            recheck(replace(verdict, numbers=verdict.numbers | numbers))
    assert judge(stack, Permutation(n=17, k=5))[0].status == "OPEN"


@pytest.mark.parametrize("task", ["group:n=40,G=C7", "modular:n=40,m=6", "group:n=40,G=A4"])
def test_other_groups(task: str) -> None:
    stack = Architecture.parse("full*4 @ heads=4, head_dim=64, fp32")
    verdict = THEOREMS["S"].judge(stack, parse_task(task))
    assert verdict is not None
    assert verdict.status == "SOLVABLE"


def test_recurrences_that_move_one_way_are_not_spoken_of() -> None:
    stack = Architecture.parse("mamba2(positions=none)*2 @ bf16")
    assert THEOREMS["S"].judge(stack, Parity(n=300_000)) is None
    assert judge(stack, Parity(n=2**34 + 2**20))[0].status in ("FAILS", "OPEN")


def test_a_convolution_multiplies_first() -> None:
    """By hand: four letters at a time, then what heads and MLPs multiply; never behind."""

    def maps(layers: str, n: int, k: int = 5) -> list[int]:
        verdict = judge(Architecture.parse(f"{layers} @ fp32"), Permutation(n=n, k=k))[0]
        return [
            verdict.numbers[f"maps_{i}"] for i in range(1, verdict.numbers.get("layers", 0) + 1)
        ]

    head = "full(heads=3, head_dim=32)"
    conv = "shortconv(conv=4, width=100)"
    # 3 heads of 32 assume an MLP of 384 units, which multiply three maps
    assert maps(f"{conv} + {head}", 9) == [3, 3]
    # not asked where it is not needed; behind a layer of three it sees a second word: 1 + 3 // 3
    assert maps(f"{conv} + {head}", 3) == [3]
    assert maps(f"{head} + {conv}", 6) == [3, 2]
    assert maps(f"{head} + shortconv(conv=3, width=100)", 6) == []
    # 49 channels are one word of 25 numbers beside a token's own
    assert maps("shortconv(conv=4, width=49) + " + head, 6) == [2, 3]
    assert maps("shortconv(conv=4, width=24) + " + head, 6) == []
    # a recurrence that forgets all brings them too; the delta rule's norm is not worked out
    assert maps(f"rglru(conv=4, width=100) + {head}", 9) == [3, 3]
    assert maps(f"gdn(conv=4, heads=4, head_dim=64) + {head}", 9) == []
    stack = Architecture.parse(f"{conv} + {head} @ fp32")
    verdict = judge(stack, Permutation(n=9, k=5))[0]
    assert "2 layers of 2 (1 short" in verdict.statement
    recheck(verdict)


@torch.no_grad()
@pytest.mark.parametrize("format", ["fp32", "bf16"])
@pytest.mark.parametrize("spec", ["shortconv", "rglru", "mamba", "mamba(norms=true)"])
def test_what_convolutions_bring_is_unrounded(spec: str, format: str) -> None:
    """Each channel another token's number, exactly; 0 before the first."""
    name, _, options = spec.rstrip(")").partition("(")
    mechanism = Architecture.parse(f"{name}({options + ', ' * bool(options)}width=8, conv=4)").only
    assert mechanism is not None
    assert mechanism.brought == 8
    mixer = mixer_for(mechanism, width=8)
    weights = dict(mixer.named_parameters())
    for weight in weights.values():
        weight.zero_()
    scale = 1.0 if name == "shortconv" else 128.0
    for linear in ("v.weight", "o.weight"):
        weights[linear].copy_(torch.eye(8))
    back = [c % 4 for c in range(8)]
    for channel, tokens in enumerate(back):
        weights["conv.weight"][channel, -1 - tokens] = scale
    if name == "shortconv":
        weights["v.weight"][7] = torch.eye(8)[0]
        weights["b.weight"][:, 7] = 1
        weights["c.weight"][:, 7] = 1
    elif name == "rglru":
        for gate in ("rate", "r.bias", "g.bias"):
            weights[gate].fill_(40)
    else:
        weights["skip"].fill_(1)
    mixer = mixer.to({"fp32": torch.float32, "bf16": torch.bfloat16}[format])
    x = torch.randint(2, (3, 20, 8), generator=torch.Generator().manual_seed(3)).to(
        next(mixer.parameters()).dtype
    )
    x[..., 7] = 1
    y = mixer(x)
    for channel, tokens in enumerate(back):
        source = 0 if name == "shortconv" and channel == 7 else channel
        wanted = torch.zeros(3, 20, dtype=x.dtype)
        wanted[:, tokens:] = x[:, : 20 - tokens, source] * scale
        assert torch.equal(y[..., channel], wanted)


@pytest.mark.parametrize("other", ["gdn(heads=1, head_dim=8, fp32)|{}", "{}|gdn(fp32)", "{}"])
def test_words_are_multiplied_in_the_format_of_the_heads_that_keep_them(other: str) -> None:
    """Numbers of a path of k maps of 5 points reach 5^k, and bf16 holds 256: 3 maps in each of two
    layers, 9 letters. In fp32 the same 2,048 units make 4 of them.
    """
    layer = other.format("rglru(width=512, conv=4, bf16)")
    for n, wanted in ((9, "SOLVABLE"), (10, "OPEN")):
        (verdict, *_) = judge(Architecture.parse(f"({layer})*2"), Modular(n=n, m=5))
        assert verdict.status == wanted, n
    wide = Architecture.parse(f"({layer.replace('bf16', 'fp32')})*2")
    (verdict, *_) = judge(wide, Modular(n=16, m=5))
    assert verdict.status == "SOLVABLE"


@torch.no_grad()
@pytest.mark.parametrize("format", ["fp32", "bf16"])
def test_words_that_recurrences_keep_are_multiplied(format: str) -> None:
    """Form (d) by real recurrences and an exact product after each: blocks of 3, 12 and 36 letters,
    every prefix of 20 words; beyond 36 letters the first ones are cleared.
    """
    rng = np.random.default_rng(8)
    n, parts, points = 40, (3, 4, 3), 5
    letters = np.stack(
        [rng.permuted(np.tile(np.arange(points), (n, 1)), axis=1) for _ in range(20)]
    )
    own, length = letters.copy(), 1
    for count in parts:
        slots = count - 1
        # half of its channels are counted: released gates read blocks, whose ends hold no word
        mechanism = Architecture.parse(f"rglru(width={2 * slots * (points + 2)}, conv=4)").only
        assert mechanism is not None
        assert mechanism.slotted == slots * (points + 2)
        width = points + 2 * slots
        mixer = mixer_for(mechanism, width=width)
        weights = dict(mixer.named_parameters())
        for weight in weights.values():
            weight.zero_()
        weights["rate"].fill_(40)
        for gate in ("r", "g"):
            weights[f"{gate}.bias"].fill_(-256)
        x = np.zeros((20, n, width), np.float32)
        # a word as what it moves each point by, so that 0 is the identity
        x[..., :points] = own - np.arange(points)
        place = np.arange(n)
        for slot in range(slots):
            words = slice(slot * (points + 2), slot * (points + 2) + points)
            weights["v.weight"][words, :points] = torch.eye(points)
            weights["conv.weight"][words, -2] = 1
            for number, gate in enumerate(("r", "g")):
                channel = words.stop + number
                weights["v.weight"][channel, points + 2 * slot + number] = 1
                weights["conv.weight"][channel, -1] = 1
                weights[f"{gate}.weight"][words, channel] = 512
            writes = place % (count * length) == (slot + 1) * length
            x[..., points + 2 * slot] = writes | (place % (count * length) == 0)
            x[..., points + 2 * slot + 1] = writes
        dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[format]
        mixer = mixer.to(dtype)
        kept = []
        for slot in range(slots):
            for number in range(points):
                mixer.get_parameter("o.weight").zero_()
                mixer.get_parameter("o.weight")[0, slot * (points + 2) + number] = 1
                kept.append(
                    mixer(torch.from_numpy(x).to(mixer.get_parameter("rate").dtype))[..., 0]
                )
        words_kept = torch.stack(kept, -1).float().numpy().reshape(20, n, slots, points)
        assert (words_kept == np.round(words_kept)).all()
        product = np.broadcast_to(np.arange(points), own.shape)
        for slot in range(slots):
            word = words_kept[:, :, slot].astype(int) + np.arange(points)
            product = np.take_along_axis(word, product, -1)
        own = np.take_along_axis(own, product, -1)
        length *= count
    wanted = letters.copy()
    for t in range(1, n):
        wanted[:, t] = np.take_along_axis(letters[:, t], wanted[:, t - 1], -1)
    assert (own[:, :36] == wanted[:, :36]).all()
    assert (own[:, 36:] != wanted[:, 36:]).any(-1).mean() > 0.9


def test_recurrences_that_keep_words_multiply_as_far_as_places_are_told() -> None:
    """An MLP of 1,024 units, four times 256, multiplies three maps; 256 numbers hold nine words."""
    for spec, n, status in (
        ("rglru(conv=2)*3", 27, "SOLVABLE"),
        ("rglru(conv=2)*3", 28, "OPEN"),
        ("rglru*3", 9, "OPEN"),
        ("rglru(conv=2, positions=none)*3", 9, "OPEN"),
        ("rglru(conv=2, width=27)*3", 8, "OPEN"),
    ):
        verdict = judge(Architecture.parse(spec), Permutation(n=n, k=5))[0]
        recheck(verdict)
        assert verdict.status == status, spec

"""What is evaluated to arrive at the last token encloses what the model computes, and is refused
where it cannot be evaluated.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
from support.each import each

from separatrix.constructions import Built, construct
from separatrix.core.errors import CheckFailed
from separatrix.mixers.window import WindowMixer
from separatrix.models.model import Block
from separatrix.proofs.arithmetic import BF16, FP16, FP32, Arithmetic
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.proofs.derivations.parts.carriers import Seen, Written, arrived, convolve
from separatrix.proofs.derivations.parts.gates import features, unit
from separatrix.proofs.derivations.parts.live_parts import live_parts
from separatrix.proofs.derivations.parts.recurrences import arrival as arrives_at
from separatrix.proofs.derivations.parts.stream import Stream
from separatrix.proofs.derivations.seqcomp import windowed
from separatrix.proofs.machine import Enclosure, hull
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import SeqComp

TASK = SeqComp(L=1, m=3)
TIGHT = [
    "linear(feature=identity)",
    "linear(feature=identity, normaliser=false)",
    "linear(feature=relu)",
    "gdn",
    "gdn(heads=2, key_heads=1)",
    "deltanet(negative=true)",
    "kda",
    "gla",
    "mamba2",
    "retnet(head_dim=4)",
    "lightning",
]
"""Those through which the value arrives times the query."""
OTHERS = [
    "linear(feature=elu, head_dim=3)",
    "linear(feature=elu, normaliser=false)",
    "linear(feature=taylor)",
    "linear(feature=taylor, normaliser=false)",
    "hgrn2(head_dim=2)",
    "deltaproduct(householders=2)",
    "mlstm(head_dim=2)",
    "loglinear",
    "loglinear(feature=elu)",
    "loglinear(base=mamba2)",
    "loglinear(base=gdn)",
    "rwkv(width=24)",
    "rwkv(version=6, width=24)",
    "rwkv(version=6, width=24, shifts=2)",
    "gdn(conv=4, gate=silu)",
    "gla(conv=2, gate=norm)",
    "linear(feature=identity, conv=1, gate=sigmoid)",
    "mlstm(conv=3)",
    "shortconv(width=4)",
    "shortconv(width=4, conv=2)",
    "window(size=2)",
    "window(conv=2, sink=true)",
    "rglru(width=4)",
    "rglru(width=4, conv=4)",
    "rglru(width=4, conv=1)",
    "mamba(width=4, state=2)",
    "mamba(width=4, state=2, conv=4)",
    "mamba(width=4, state=2, conv=1)",
    "mamba(width=4, state=2, conv=3, norms=true)",
]


def carried(options: str) -> Built:
    return construct(
        TASK,
        Architecture.parse(f"{options} + full @ heads=1, head_dim=4, value_dim=4"),
        "carried",
    )


def arrival(built: Built) -> tuple[Enclosure, Enclosure]:
    """At the last token, a row for each token at z_0; and anywhere."""
    part = live_parts(built.model)[0]
    stream = Stream.of(built.model, TASK.length, 1)
    at_z0 = Stream.of(built.model, TASK.position_z0 + 1, TASK.m).last
    read = windowed if isinstance(part.mixer, WindowMixer) else arrives_at
    found = read(stream, part, TASK.position_z0, at_z0)
    return found.last, found.anywhere


def arrives(built: Built) -> tuple[np.ndarray, np.ndarray]:
    """What the recurrent layer writes in 50 prompts, and their tokens at z_0."""
    tokens = torch.from_numpy(TASK.sample(50, np.random.default_rng(0)).tokens)
    block = built.model.blocks[0]
    assert isinstance(block, Block)
    with torch.inference_mode():
        written = block.mixers[0](built.model._embed(tokens)).double().numpy()
    return written, tokens[:, TASK.position_z0].numpy()


def enclosed(built: Built) -> Enclosure:
    """What is written is within what was evaluated, at the last token and anywhere."""
    last, anywhere = arrival(built)
    written, token = arrives(built)
    assert (written[:, -1] >= last.low[token]).all()
    assert (written[:, -1] <= last.high[token]).all()
    assert (written >= anywhere.low).all()
    assert (written <= anywhere.high).all()
    return last


@each("scale", [1.0, 4.0, -0.5, 3.0, 2.0**-30])
@each("options", TIGHT)
def test_what_is_written_is_enclosed_tightly(options: str, scale: float) -> None:
    """Any scale of the queries: the value arrives times <q, k>, or as it is behind a normaliser."""
    built = carried(options)
    built.model.get_parameter("blocks.0.mixers.0.q.weight").mul_(scale)
    if "relu" in options and scale < 0:
        with pytest.raises(CheckFailed, match="may be 0"):
            arrival(built)
        return
    last = enclosed(built)
    # a few roundings for each of five tokens, and gates within 80 u each
    size = np.abs(last.mid).max()
    assert size > 0
    assert last.rad.max() <= size * 1600 * float(FP32.summed)


QUICK = {"gdn", "hgrn2(head_dim=2)", "mlstm(conv=3)", "rglru(width=4)", "rwkv(width=24)"}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(options, marks=() if options in QUICK else pytest.mark.slow)
        for options in [*TIGHT, *OTHERS]
    ],
)
def test_whatever_the_weights_what_is_written_is_enclosed_or_refused(options: str) -> None:
    """Every number of the layer times another factor, and gates' biases moved: of 12 draws some
    must not be refused.
    """
    built = carried(options)
    block = built.model.blocks[0]
    assert isinstance(block, Block)
    mixer = block.mixers[0]
    kept = {name: parameter.clone() for name, parameter in mixer.named_parameters()}
    taken = 0
    for seed in range(12):
        generator = torch.Generator().manual_seed(seed)
        for name, parameter in mixer.named_parameters():
            change = 1 + 0.3 * torch.randn(parameter.shape, generator=generator)
            parameter.copy_(kept[name] * (change if seed else 1.0))
            if seed > 6 and ("bias" in name or name in ("rate", "conv.weight")):
                # of the head and the channels that are used
                parameter[:1] += torch.randn(parameter[:1].shape, generator=generator)
        try:
            enclosed(built)
        except CheckFailed:
            continue
        taken += 1
    assert taken >= 3


def test_short_vectors_are_divided_by_the_shortest_length() -> None:
    """2^-22 is shorter than 1e-6: what comes out is 2^-22 / 1e-6 = 0.238."""
    for power in (-22, -21, -20, -19, 0, 30):
        x = torch.tensor([[2.0**power, 0.0]])
        exact = torch.nn.functional.normalize(x, dim=-1, eps=1e-6).double().numpy()
        found = unit(Enclosure.point(x.double().numpy()), "k")
        assert (np.abs(found.mid - exact) <= found.rad).all()
        assert found.rad.max() <= 40 * float(FP32.summed)
        assert found.size[0, 0] == pytest.approx(min(1.0, 2.0**power / 1e-6), rel=1e-5)
    assert not unit(Enclosure.point(np.zeros((1, 2))), "k").size.any()


def test_a_unit_vector_of_an_interval_is_no_longer_than_one() -> None:
    hull = Enclosure.between(np.array([[0.0, 0.0]]), np.array([[4.0, 1.0]]))
    found = unit(hull, "k")
    assert (found.low <= 0).all()
    assert (found.high >= 1).all()
    assert (found.high <= 1.001).all()


@each(
    "options, name, value, message",
    [
        ("linear(feature=elu)", "k.weight", 0.0, "may be 0|no less|largest"),
        ("gdn", "a.bias", 40.0, "may be 0"),
        ("gdn", "rate", 65.0, "is of no use"),
        ("kda", "q.weight", 0.0, "may be 0"),
        ("gla", "k.weight", 0.25, "may be 0|no less|largest logit"),
        ("rwkv(width=24)", "erased", 1.0, "erased is taken as 0"),
        ("rwkv(version=6, width=24)", "bonus", 1.0, "bonus is taken as 0"),
        ("mamba2", "skip", 1.0, "skip is taken as 0"),
        ("mlstm", "i.bias", 9.0, "input gate may be"),
        ("window", "k.weight", 0.0, "scores no less"),
        (
            "deltaproduct(householders=2)",
            "k.weight",
            1.0,
            "that of position|is not zero",
        ),
    ],
)
def test_what_carries_something_else_is_refused(
    options: str, name: str, value: float, message: str
) -> None:
    """The first weight of a row, or of the coordinate that differs between positions."""
    built = carried(options)
    parameter = built.model.get_parameter(f"blocks.0.mixers.0.{name}")
    parameter[0] = value
    with pytest.raises(CheckFailed, match=message):
        DERIVATIONS["carried"].proved(TASK, built.model, FP32)


def test_every_gate_enters_what_arrives() -> None:
    """b = 1/2 and, for the one token after z_0, a = exp(-e^s ln(1 + e^c)): with c = 1, s = ln 2 it
    is (1 + e)^-2. The output map has a factor of 2.
    """
    built = carried("gdn")
    built.model.get_parameter("blocks.0.mixers.0.a.bias")[0] = 1.0
    built.model.get_parameter("blocks.0.mixers.0.rate")[0] = math.log(2)
    last, _ = arrival(built)
    assert np.abs(last.mid).max() == pytest.approx((1 + math.e) ** -2, rel=1e-5)
    written, token = arrives(built)
    assert (np.abs(written[:, -1] - last.mid[token]) <= last.rad[token]).all()


@pytest.mark.parametrize("number", [8.0, -8.0])
def test_strengths_are_known_for_each_thing_at_the_place(number: float) -> None:
    """Where the gate reads the value itself each is written by another share of itself."""
    built = carried("gdn")
    built.model.get_parameter("blocks.0.mixers.0.b.weight")[0] = number
    last = enclosed(built)
    assert last.rad.max() < 1e-3


def test_keys_elsewhere_are_not_covered_by_the_gated_delta_rule() -> None:
    built = carried("gdn")
    used = int(built.model.get_parameter("blocks.0.mixers.0.k.weight").nonzero()[0, 1])
    built.model.position.weight[0, used] = 2.0**-60
    with pytest.raises(CheckFailed, match="other than that"):
        arrival(built)


def test_full_attention_is_no_carrier() -> None:
    other = construct(TASK, Architecture.parse("linear + full*2 @ heads=1, head_dim=4"), "seqcomp")
    part = live_parts(other.model)[0]
    with pytest.raises(CheckFailed, match="full carries"):
        arrives_at(
            Stream.of(other.model, TASK.length, 1),
            part,
            TASK.position_z0,
            Stream.of(other.model, TASK.position_z0 + 1, TASK.m).last,
        )


def test_a_normaliser_without_a_bound_is_refused() -> None:
    """With queries at every position a denominator may be as small as it likes."""
    built = carried("linear(feature=relu)")
    query = built.model.get_parameter("blocks.0.mixers.0.q.weight")
    used = int(query.nonzero()[0, 1])
    built.model.position.weight[0, used] = 1.0
    with pytest.raises(CheckFailed, match="close to 0"):
        arrival(built)


SUMS = "linear(feature=identity)"


@pytest.mark.parametrize(
    ("options", "queries", "keys", "what"),
    [
        (SUMS, 2.0**60, 2.0**10, "overflow"),
        *((options, 2.0**-80, 2.0**80, "state") for options in (SUMS, "gla", "retnet(head_dim=4)")),
        *((options, 2.0**-80, 2.0**80, "state") for options in ("lightning", "mamba2")),
        ("loglinear(feature=identity)", 2.0**-80, 2.0**80, "state"),
    ],
)
def test_sums_that_overflow_are_refused(
    options: str, queries: float, keys: float, what: str
) -> None:
    """With values of 2^60 the state is 2^140, or what is read of it 2^130; the weights of the
    places, and what is left after the division, are numbers.
    """
    built = carried(options)
    scales = {"q": queries, "k": keys, "v": 2.0**60, "o": 2.0**-60}
    for name, scale in scales.items():
        built.model.get_parameter(f"blocks.0.mixers.0.{name}.weight").mul_(scale)
    cache = built.model.init_cache(1)
    tokens = torch.from_numpy(TASK.sample(1, np.random.default_rng(0)).tokens)
    logits = torch.zeros(1)
    with torch.inference_mode():
        for place, token in enumerate(tokens.unbind(1)):
            logits, cache = built.model.step(token, cache, place)
    assert not logits.isfinite().all()
    with pytest.raises(CheckFailed, match=what):
        arrival(built)


@pytest.mark.parametrize("options", ["linear(feature=identity, normaliser=false)", "gla"])
def test_what_the_state_gives_is_held_by_the_format_that_it_is_stored_in(options: str) -> None:
    """A product of 2^17 in float32, of numbers that float16 holds, times 2^-13."""
    built = carried(options)
    for name, scale in (("q", 2.0**10), ("v", 2.0**7), ("o", 2.0**-13)):
        built.model.get_parameter(f"blocks.0.mixers.0.{name}.weight").mul_(scale)
    part = live_parts(built.model)[0]
    at_z0 = Stream.of(built.model, TASK.position_z0 + 1, TASK.m, FP16).last
    stream = Stream.of(built.model, TASK.length, 1, FP16)
    with pytest.raises(CheckFailed, match="overflow fp16"):
        arrives_at(stream, part, TASK.position_z0, at_z0)


@pytest.mark.parametrize(
    ("options", "keys", "decay", "what"),
    [
        ("rwkv(width=24)", 2.0**122, ("w.up.bias", 8.0), "its state"),
        ("rwkv(width=24)", 2.0**60, ("w.up.bias", 8.0), "no less|largest logit"),
        ("gla", 2.0**115, ("a.up.bias", -112.0), "no less|largest logit"),
        ("mamba2", 2.0**115, ("dt.bias", 1.0), "no less|largest logit"),
    ],
)
def test_queries_that_decay_to_nothing_before_they_meet_large_keys_are_refused(
    options: str, keys: float, decay: tuple[str, float], what: str
) -> None:
    """A chunk of RWKV-7 multiplies keys by up to e^40 and queries by e^-40; others multiply a query
    by a decay, which may be flushed to zero, before a key makes much of it.
    """
    built = carried(options)
    block = "blocks.0.mixers.0"
    built.model.get_parameter(f"{block}.q.weight").mul_(1 / keys)
    built.model.get_parameter(f"{block}.k.weight").mul_(keys)
    name, number = decay
    built.model.get_parameter(f"{block}.{name}").fill_(number)
    with pytest.raises(CheckFailed, match=what):
        DERIVATIONS["carried"].proved(TASK, built.model, FP32)


@each("down, mu", [(2.0**121, 2.0**20), (0.0, 2.0**126)])
def test_what_rwkv_6_mixes_is_a_number_for_the_largest_mu(down: float, mu: float) -> None:
    """x + (x' - x) mu, times a map: infinity less infinity is no number, nor is 0 times it."""
    built = carried("rwkv(version=6, width=24)")
    built.model.get_parameter("blocks.0.mixers.0.down.weight").fill_(down)
    arrival(built)
    built.model.get_parameter("blocks.0.mixers.0.mu").fill_(mu)
    with pytest.raises(CheckFailed, match="what it mixes"):
        arrival(built)


def test_decays_close_to_1_are_rounded_at_every_token() -> None:
    """Of 1,000 tokens: e^0, within 64 u, multiplied as often; and the most that a channel holds,
    which is what comes in over 1 - a, where a may be 64 u larger.
    """
    u = float(FP32.summed)
    one = point(1.0)
    every = Seen(*[one] * 4)
    held = 1 / (1 - math.exp(-0.01) * (1 + 64 * u))
    for channels, decay, least in ((0, 0.0, 1000 * (1 + 32e3 * u)), (1, 0.01, held)):
        found = Written(
            keys=every,
            queries=every,
            values=every,
            log_decay=every.all(-decay),
            strength=every,
            channels=channels,
        )
        _, anywhere, _ = arrived(found, 1000, "layer 1")
        assert anywhere.high[0, 0] >= least


def point(number: float) -> Enclosure:
    return Enclosure.point(np.array([[number]]))


def summed(query: float, key: float, last: float, value: float, **more: Any) -> Written:
    """Plain sums over two tokens."""
    keys = Seen(point(key), point(last), point(0.0), point(max(key, last)))
    return Written(
        keys=keys,
        queries=keys.all(query),
        values=keys.all(value),
        log_decay=keys.all(0.0),
        strength=keys.all(1.0),
        decays=False,
        **more,
    )


def test_sums_by_hand() -> None:
    """Weights 1 and 1/4 of values of 2: what is summed is 5/2; of an average the other token moves
    the value by 2 (1/4) 2 / (1 - 1/4) at the most.
    """
    found, _, mass = arrived(summed(1.0, 1.0, 0.25, 2.0), 2, "layer 1")
    assert mass == pytest.approx(0.25, rel=1e-6)
    assert found.mid[0, 0] == 2.5
    # 1 other token, 1 dimension and 8 more: 10 roundings of (1 + 1/4) 2
    assert found.rad[0, 0] == pytest.approx(10 * float(FP32.summed) * 2.5, rel=1e-6)
    divided, _, _ = arrived(summed(1.0, 1.0, 0.25, 2.0, averages="positive"), 2, "layer 1")
    assert divided.rad[0, 0] == pytest.approx(4 / 3, rel=1e-4)
    assert divided.rad[0, 0] > 4 / 3 + 10 * float(FP32.summed)


def test_what_sums_flush_to_zero_is_multiplied_with_the_query() -> None:
    """A product of 2^-130 may be lost; a query of 2^20 makes 2^-106 of it."""
    found, _, _ = arrived(summed(2.0**20, 2.0**-100, 0.0, 2.0**-30), 2, "layer 1")
    assert found.rad[0, 0] >= 2.0**-106


def test_averages_whose_roundings_may_take_the_denominator_are_refused() -> None:
    """Each weight is 1/2 or more, but is made of terms of 2^24, rounded to multiples of 1 or 2."""
    every = summed(1.0, 1.0, 0.25, 2.0, averages="half")
    arrived(every, 2, "layer 1")
    queries = every.queries._replace(before=point(2.0**24))
    with pytest.raises(CheckFailed, match="close to 0"):
        arrived(replace(every, queries=queries), 2, "layer 1")


def test_elu_is_within_8_u() -> None:
    x = np.array([[-200.0, -64.0, -1.0, 0.0, 0.5, 3.0]])
    found = features("elu", Enclosure.point(x))
    exact = np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))
    assert (found.low <= np.maximum(exact - 8 * float(FP32.summed), 0)).all()
    assert (found.high >= exact + 8 * float(FP32.summed)).all()
    assert (found.low >= -1e-18).all()
    assert (found.rad <= 12 * float(FP32.summed) * (1 + exact)).all()


def test_what_other_keys_weigh_is_relative_to_the_least_that_arrives() -> None:
    """The place writes q_0 with q_0 in [1/2, 1], the other token q_1 in [-1, 1]: at q = (1/2, 1) it
    weighs twice what arrives.
    """
    one, key, other = (Enclosure.point(np.array([row])) for row in ([1.0], [1.0, 0.0], [0.0, 1.0]))
    query = one.spanning(np.array([[0.5, -1.0]]), np.array([[1.0, 1.0]]))
    keys = Seen(key, other, key.like(0 * key.mid, key.rad), hull(key, other))
    found = Written(
        keys=keys,
        queries=keys.map(lambda _: query),
        values=keys.all(1.0),
        log_decay=keys.all(0.0),
        strength=keys.all(1.0),
    )
    y, _, mass = arrived(found, 2, "layer 1")
    assert 2.0 <= mass <= 2.001
    assert y.low[0, 0] <= 0.5 - 1.0
    assert y.high[0, 0] >= 1.0 + 1.0


def orders(terms: np.ndarray, dtype: torch.dtype) -> set[float]:
    """Sums of these terms in float32, in every order, as they are stored."""
    found: set[float] = set()
    for order in permutations(terms.astype(np.float32).tolist()):
        total = torch.zeros((), dtype=torch.float32)
        for term in order:
            total = total + term
        found.add(float(total.to(dtype)))
    return found


@pytest.mark.parametrize(("form", "dtype"), [(FP32, torch.float32), (BF16, torch.bfloat16)])
@pytest.mark.parametrize(
    "numbers",
    [
        (1.0, 0.75 * 2**-8, 0.75 * 2**-8, 0.75 * 2**-8),  # 1 in bfloat16, unless added up at first
        (2.0**30, -(2.0**30), 1.0, 0.0),  # 1, or 0 where the large ones come last
        (1.0, 2.0**30, -(2.0**30), 1.0),
    ],
)
def test_a_convolution_adds_up_in_any_order_and_is_stored_once(
    numbers: tuple[float, ...], form: Arithmetic, dtype: torch.dtype
) -> None:
    read = [Enclosure.point(np.array([[number]]), form) for number in numbers]
    found = convolve(np.ones((1, 4)), read, "")
    for total in orders(np.array(numbers), dtype):
        assert found.low[0, 0] <= total <= found.high[0, 0]
    # one number alone is not rounded
    alone = convolve(np.array([[0.0, 1.0]]), [read[0], read[1]], "")
    assert (alone.mid[0, 0], alone.rad[0, 0]) == (numbers[0], 0)

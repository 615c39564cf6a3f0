"""Theorem R: lags worked out by hand, the numbers of theory.md, section 12, and what it is silent
about.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from support.bounds import holds
from support.depth_sizes import three
from support.each import each

from separatrix.core.errors import CheckFailed
from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.bits import Bits
from separatrix.core.numbers.lazy import Ints
from separatrix.models.model import Model, ModelConfig
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.forgetting import Lags
from separatrix.stacks.architecture.resolve import preset
from separatrix.stacks.mechanisms import CacheItem, Mechanism
from separatrix.tasks import MQAR, Recall, Task, parse_task
from separatrix.theory import THEOREMS, judge, recheck
from separatrix.theory.base import granted
from separatrix.theory.fails.iii_one_reading_layer import Parameters, TheoremRDepth
from separatrix.theory.judge import graded
from separatrix.theory.solves.room import SEEN_WHOLE

TINY = "heads=1, head_dim=1, p2"


def lost(spec: str, cut: int = 0) -> tuple[int, int, int]:
    """G, G_S and S behind a cut."""
    lags = Lags.of(Architecture.parse(spec))
    assert lags is not None
    found = lags.at(cut)
    return found.reach, found.handed - cut, found.bits


def said(model: Architecture, text: str, key: str = "R") -> Verdict | None:
    found = judge(model, parse_task(text), among=lambda theorem: theorem.key == key)
    return found[0] if found else None


@each(
    "spec, cut, wanted",
    [
        ("window(size=5)", 0, (4, 0, 0)),
        ("window(size=5, conv=3)", 7, (6, 0, 0)),  # a convolution on the keys adds
        ("window(size=5)*3", 0, (12, 0, 0)),
        ("shortconv(conv=4) + window(size=5)", 0, (7, 0, 0)),
        # heads side by side: the slowest counts; a convolution beside them is added
        ("window(size=5)|window(size=9)", 0, (8, 0, 0)),
        ("window(size=5)|shortconv(conv=4)", 0, (7, 0, 0)),
        ("mlp + reused_window(size=3)", 0, (2, 0, 0)),
        # to the next border: 3 tokens from 5 on, none from 8 on; a second chunk adds nothing
        ("chunked(size=8)", 5, (3, 0, 0)),
        ("chunked(size=8)*9", 5, (3, 0, 0)),
        ("chunked(size=8)", 8, (0, 0, 0)),
        ("chunked(size=8) + window(size=2) + chunked(size=8)", 5, (11, 0, 0)),
        # states: 3 numbers of 2 bits, handed over after the own convolution, not after windows
        ("rglru(width=3) @ p2", 4, (0, 0, 6)),
        ("rglru(width=3, conv=3) @ p2", 4, (2, 2, 6)),
        ("rglru(width=3, conv=3) + window(size=9) @ p2", 4, (10, 2, 6)),
        ("window(size=9) + rglru(width=3, conv=3) @ p2", 4, (10, 10, 6)),
        ("rwkv4(width=3) @ p2", 0, (2, 1, 18)),  # token shifts of time and channel mixing
        ("rwkv(heads=1, head_dim=2, shifts=2) @ p2", 0, (2, 1, 8)),
        # log-linear: one bucket more at each power of two, where the state is handed over
        ("window(size=4) + loglinear @ heads=1, head_dim=1, p2", 4, (3, 3, 6)),
        ("window(size=5) + loglinear @ heads=1, head_dim=1, p2", 4, (4, 4, 8)),
        ("automaton(bits=5)", 3, (0, 0, 5)),
    ],
)
def test_lags(spec: str, cut: int, wanted: tuple[int, int, int]) -> None:
    assert lost(spec, cut) == wanted


@each("spec", ["full", "window + sparse", "reused", "mla + rglru", "fox", "nsa"])
def test_it_is_silent_where_a_layer_reads_every_token(spec: str) -> None:
    model = Architecture.parse(f"{spec} @ heads=1")
    assert Lags.of(model) is None
    assert said(model, "eva:n=100000,V=7") is None


@pytest.mark.parametrize(
    ("name", "text", "n", "reach", "bits"),
    [
        ("recurrentgemma-2b", "eva:n=98507,V=256000", 98_507, 16_430, 1_474_560),
        (
            "recurrentgemma-2b",
            "recall:n=90292,K=256000,V=256000,form=independent",
            90_292,
            16_430,
            1_474_560,
        ),
        ("mistral-7b-v0.1", "eva:n=131041,V=32000", 131_041, 131_040, 0),
        ("rwkv-4-7b-pile", "eva:n=805752,V=50277", 805_752, 64, 12_582_912),
    ],
)
def test_numbers_of_the_theory(name: str, text: str, n: int, reach: int, bits: int) -> None:
    """theory.md, section 12: the first failing size, and silence one below."""
    model = preset(name)
    verdict = said(model, text)
    assert verdict is not None
    assert (verdict.status, verdict.n) == ("FAILS", n)
    assert (verdict.numbers["reach"], verdict.numbers["state_bits"]) == (reach, bits)
    recheck(verdict)
    task = parse_task(text)
    below = said(model, task.family().at(n - 1).spec)
    assert below is not None
    assert (below.status, below.n) == ("OPEN", n)
    # a card asks for the n at which models fail by the smallest task
    least = said(model, task.family().at(task.family().smallest).spec)
    assert least is not None
    assert (least.status, least.n) == ("OPEN", n)
    with pytest.raises(CheckFailed):
        recheck(replace(verdict, numbers=verdict.numbers | {"state_bits": bits + 1}))


@pytest.mark.parametrize(
    ("name", "facts", "values", "shown"),
    [
        ("recurrentgemma-2b", 131_071, 256_000, "79.1 %"),
        ("recurrentgemma-2b", 1_048_575, 256_000, "12.1 %"),
        ("mistral-7b-v0.1", 1_048_575, 32_000, "12.5 %"),
    ],
)
def test_accuracies_of_the_theory(name: str, facts: int, values: int, shown: str) -> None:
    verdict = graded(preset(name), parse_task(f"eva:n={facts},V={values}"))
    assert verdict is not None
    assert verdict.theorem == "R-accuracy"
    assert f"more than {shown} " in verdict.statement
    recheck(verdict)


def test_accuracy_of_windows_alone_by_hand() -> None:
    """Of 10 facts 4 are within reach; of the others nothing is known, and one of 2 is guessed:
    0.4 + 0.6 / 2, rounded up by at most a millionth.
    """
    model = Architecture.parse("window(size=5)")
    verdict = graded(model, parse_task("eva:n=10,V=2"))
    assert verdict is not None
    assert verdict.numbers["ceiling_millionths"] in (700_000, 700_001)
    pairs = Architecture.parse("window(size=9)")
    other = graded(pairs, parse_task("recall:n=10,K=99,V=2,form=independent"))
    assert other is not None
    assert other.numbers["ceiling_millionths"] in (700_000, 700_001)


def test_windows_below_one_full_layer() -> None:
    """theory.md: n = 19,896 with 32 heads of 128 in fp32, without a running maximum; with one h
    is 133,120 = 32 x 130 x 32, and 10,016 log2 10,016 = 133,113, 10,017 log2 10,017 = 133,128.
    """
    for option, n in (("running_max=false", 19_896), ("running_max=true", 20_036)):
        model = Architecture.parse(f"window(size=100)*9 + full({option}) @ heads=32, head_dim=128")
        m = (n - 2) // 2
        here = said(model, f"seqcomp:L=2,m={m},n_1=1", "R-depth")
        assert here is not None
        assert (here.status, here.n, here.numbers["lag"]) == ("FAILS", n, 891)
        assert "lag 891 tokens" in here.statement
        below = said(model, f"seqcomp:L=2,m={m - 1},n_1=1", "R-depth")
        assert below is not None
        assert (below.status, below.n) == ("OPEN", n)
        recheck(here)
        # entries that stay fixed need room, whatever a record says
        for numbers in ({"m": 1_782, "r": 1}, {"t": m}, {"lag": 0}, {"sigma_0": 1}):
            with pytest.raises(CheckFailed):
                recheck(replace(here, numbers=here.numbers | numbers))
    # half of z_1's entries must be out of reach, and one more
    long = Architecture.parse("window(size=5001)*2 + full @ heads=32, head_dim=128")
    for m, status in ((20_000, "OPEN"), (20_001, "FAILS")):
        late = said(long, f"seqcomp:L=2,m={m},n_1=1", "R-depth")
        assert late is not None
        assert late.status == status
    for spec in ("rglru + full", "full", "window + full*2", "chunked + full", "window"):
        model = Architecture.parse(f"{spec} @ {TINY}")
        assert said(model, "seqcomp:L=2,m=4096,n_1=1", "R-depth") is None


@given(
    m=st.integers(1, 12),
    n_1=st.integers(1, 6),
    r=st.integers(1, 12),
    t=st.integers(1, 12),
    h=st.integers(0, 30),
    bits=st.tuples(st.integers(0, 20), st.integers(0, 40)),
    lag=st.integers(0, 5),
)
# one entry too few, and else nothing that is wrong: 1 + 2 x 4 = 9, and 8 > 2
@example(m=8, n_1=1, r=1, t=1, h=1, bits=(0, 0), lag=4)
@example(m=9, n_1=1, r=1, t=1, h=1, bits=(0, 0), lag=4)
def test_states_alone_before_one_reading_layer(
    m: int, n_1: int, r: int, t: int, h: int, bits: tuple[int, int], lag: int
) -> None:
    """m^t > (r-1)^t 2^S_0, and N_1^(n_1 r) > 2^right, written out, with room for 2 G_0 entries."""
    s0, s1 = bits
    r, t = min(r, m), min(t, m)
    right = s0 + n_1 * h + min(r * s1, s1 + (r * (t + lag) + 1) * h)
    shown = (
        t + 2 * lag <= m
        and (r == 1 or m**t > (r - 1) ** t * 2**s0)
        and (n_1 * m) ** (n_1 * r) > 2**right
    )
    sizes = three(h, s0, s1, 0, lag)
    assert holds(TheoremRDepth(), Parameters(m=m, n_1=n_1, r=r, t=t), sizes) is shown


@pytest.mark.parametrize(
    ("spec", "n"),
    [
        # 1 + 2 x 4 tokens are seen, and the first of 2 x 5 is not
        ("window(size=5)*2", 5),
        # six bits of state, of seven bits or more: no room is needed where they are handed over
        # at once, and four tokens where a window stands before
        (f"rglru(width=3) + window(size=5) @ {TINY}", 7),
        (f"window(size=5) + rglru(width=3) @ {TINY}", 11),
    ],
)
def test_strings_need_room_behind_the_cut(spec: str, n: int) -> None:
    """Equality: what states say must be handed over before the second string begins."""
    for asked in (n - 1, n, n + 5):
        found = said(Architecture.parse(spec), f"equality:n={asked}")
        assert found is not None
        assert (found.n, found.status) == (n, "FAILS" if asked >= n else "OPEN")
        recheck(found)


def every_prompt(task: Task) -> Ints:
    if not isinstance(task, Recall):
        return np.array(list(product(range(task.vocabulary), repeat=task.length)))
    keys, values = range(task.V, task.vocabulary), range(task.V)
    found = product(*[keys, values] * task.n, keys)
    different = task.n if task.form == "absent" else 0
    return np.array([one for one in found if len({*one[:-1:2]}) >= different])


@each(
    "text, sizes",
    [
        ("equality:n={}", (1, 2, 3, 4, 5)),
        ("disjointness:n={}", (2, 3, 4, 5)),
        ("dyck:n={},k=2,D=3", (2, 4, 6, 8)),
        ("dyck:n={},k=2,D=1", (2, 4, 6, 8)),
        ("counting:n={}", (2, 3, 4, 5, 6, 7)),
        ("counting:n={},form=queried,V=3", (2, 3, 4, 5)),
        ("recall:n={},K=3,V=2,form=last", (3,)),
        ("recall:n={},K=4,V=2,form=absent", (2, 3)),
        ("twosum:n={},M=5", (2, 3, 4, 5)),
        ("twosum:n={},M=5,form=decision", (3, 4, 5)),
    ],
)
@each("size", [3, 4, 5])
def test_windows_alone_fail_exactly_where_two_prompts_look_alike(
    text: str, sizes: tuple[int, ...], size: int
) -> None:
    """By brute force: what a window of so many tokens leaves of all prompts, and their answers."""
    model = Architecture.parse(f"window(size={size})")
    for n in sizes:
        task = parse_task(text.format(n))
        prompts = every_prompt(task)
        seen: dict[bytes, set[int]] = {}
        for prompt, answer in zip(prompts, task.answer(prompts), strict=True):
            seen.setdefault(prompt[-size:].tobytes(), set()).add(int(answer))
        alike = any(len(answers) > 1 for answers in seen.values())
        found = said(model, task.spec)
        fails = found is not None and found.status == "FAILS"
        # a window that begins between a key and its value is not looked into
        assert fails == alike or (not fails and task.name == "recall" and size == 4), task.spec


def test_a_bit_of_state_does_not_help_where_it_is_said_to_fail() -> None:
    """All automata of one bit before a window: at the size named, two prompts that leave the same
    states and tokens in the window have different answers, whichever automaton it is.
    """
    found = said(Architecture.parse("automaton(bits=1) + window(size=3)"), "equality:n=9")
    assert found is not None
    # two bits of three stand before the cut, and two tokens behind it are seen with the last
    assert found.n == 3
    task = parse_task(f"equality:n={found.n}")
    prompts = np.array(list(product(range(2), repeat=task.length)))
    answers = task.answer(prompts)
    for rule in product(range(2), repeat=4):
        for start in range(2):
            seen: dict[tuple[int, ...], set[int]] = {}
            for prompt, answer in zip(prompts, answers, strict=True):
                states = [start]
                for token in prompt:
                    states.append(rule[2 * states[-1] + token])
                view = (*states[-3:], *(int(token) for token in prompt[-3:]))
                seen.setdefault(view, set()).add(int(answer))
            assert any(len(answers) > 1 for answers in seen.values())


@each(
    "spec, text, n",
    [
        # 1 + 2 x 3 tokens are seen, so that the eighth is asked for a bit that is lost
        ("window(size=4)*2", "parity:n=9", 8),
        ("window(size=4)*2", "permutation:n=9,k=3", 8),
        ("window(size=4)*2 + shortconv(conv=2)", "modular:n=9,m=3", 9),
        # one bit of state is enough for two products, and not for six
        ("window(size=4)*2 + automaton(bits=1)", "permutation:n=9,k=3", 8),
        ("window(size=4)*2 + automaton(bits=1)", "parity:n=9", None),
        # of two keys beside the one of the filler 1 + 4 + 4 last writes, which takes two pairs
        ("window(size=4)*2", "recall:n=9,K=3,V=2,form=last", 4),
        ("window(size=4)*2 + automaton(bits=3)", "recall:n=9,K=3,V=2,form=last", 5),
        # 1 + 4 + 6 sets of two of four values
        ("window(size=4)*2 + automaton(bits=3)", "twosum:n=9,M=5", 8),
    ],
)
def test_letters_that_windows_forget(spec: str, text: str, n: int | None) -> None:
    model = Architecture.parse(f"{spec} @ heads=8")
    found = said(model, text)
    assert (found and found.n) == n
    if found is None:
        return
    recheck(found)
    assert found.status == "FAILS"
    # Theorem S never reaches as far
    assert found.n is not None
    before = judge(model, parse_task(text).family().at(found.n - 1))[0]
    assert before.status != "FAILS"


@each(
    "spec, text, wanted",
    [
        # the last query is token 7 of 8, the value token 2, and 5 or 6 tokens are seen
        ("window(size=5)", "mqar:vocab_size=6,input_seq_len=8,num_kv_pairs=2", "FAILS of 1"),
        ("window(size=6)", "mqar:vocab_size=6,input_seq_len=8,num_kv_pairs=2", ""),
        ("window(size=3)*3", "mqar:vocab_size=12,input_seq_len=10,num_kv_pairs=2", "FAILS of 1"),
        # three pairs take 12 tokens
        ("window(size=3)*4", "mqar:vocab_size=12,input_seq_len=10,num_kv_pairs=2", "OPEN of 3"),
        # two of three values are nine lists, and three bits hold eight
        (
            "automaton(bits=3) + window(size=3)",
            "mqar:vocab_size=6,input_seq_len=8,num_kv_pairs=2",
            "FAILS of 2",
        ),
        (
            "automaton(bits=4) + window(size=3)",
            "mqar:vocab_size=6,input_seq_len=8,num_kv_pairs=2",
            "",
        ),
        # 32 x 4,095 tokens reach back from token 131,043 to token 3, from 131,041 to token 1
        (
            "window(size=4096)*32",
            "mqar:vocab_size=32000,input_seq_len=131044,num_kv_pairs=1",
            "FAILS of 1",
        ),
        (
            "window(size=4096)*32",
            "mqar:vocab_size=4,input_seq_len=131042,num_kv_pairs=1",
            "",
        ),
    ],
)
def test_the_last_of_many_questions(spec: str, text: str, wanted: str) -> None:
    found = said(Architecture.parse(spec), text)
    assert (f"{found.status} of {found.n}" if found else "") == wanted
    if found is not None:
        recheck(found)
        # fewer tokens are within reach, and text between questions hands on what is asked later
        length = parse_task(text).length
        assert f", {length:,} tokens or more)" in found.statement
        assert found.statement.endswith("behind the prompt")


def every_mqar(task: MQAR) -> Iterator[list[int]]:
    """Every prompt of a few keys, filler of all values and 0 in the tokens between."""
    k, n, first = task.num_kv_pairs, task.length, task.first_value
    values = range(first, task.vocab_size)
    for keys in permutations(range(1, first), k):
        for told in product(values, repeat=k):
            pairs = [token for pair in zip(keys, told, strict=True) for token in pair]
            for places in permutations(range(2 * k, n, 2), k):
                asked = dict(zip(places, keys, strict=True))
                free = [t for t in range(2 * k, n) if t not in asked]
                for filler in product((0, *values), repeat=len(free)):
                    placed = asked | dict(zip(free, filler, strict=True))
                    yield pairs + [placed[t] for t in range(2 * k, n)]


@each("n, k", [(4, 1), (6, 1), (8, 1), (8, 2)])
def test_windows_alone_fail_mqar_exactly_where_two_prompts_look_alike(n: int, k: int) -> None:
    """By brute force, at every token that is answered, whose place is known."""
    task = MQAR(vocab_size=6, input_seq_len=n, num_kv_pairs=k)
    prompts = np.array(list(every_mqar(task)))
    answers = task.answer(prompts)
    rows, places = np.nonzero(answers >= 0)
    for size in range(1, n + 1):
        seen: dict[tuple[int, bytes], set[int]] = {}
        for row, t in zip(rows.tolist(), places.tolist(), strict=True):
            view = prompts[row, max(0, t - size + 1) : t + 1].tobytes()
            seen.setdefault((t, view), set()).add(int(answers[row, t]))
        alike = any(len(told) > 1 for told in seen.values())
        found = judge(Architecture.parse(f"window(size={size})"), task)[0]
        # a window of the whole prompt is judged as what keeps every token
        assert (found.status == "FAILS") == alike, (size, found.statement)


@pytest.mark.parametrize("text", ["parity:n=64", "seqcomp:L=2,m=31,n_1=1", "twosum:n=64,M=405"])
def test_several_questions_fail_where_one_does(text: str) -> None:
    model = Architecture.parse("window(size=4)*2")
    alone, *several = (judge(model, parse_task(text + more))[0] for more in ("", ",queries=2"))
    assert [found.status for found in (alone, *several)] == ["FAILS", "FAILS"]
    for found in several:
        assert (found.task, found.numbers) == (f"{alone.task},queries=2", alone.numbers)
        recheck(found)


def test_what_a_verdict_takes_for_granted() -> None:
    verdict = said(Architecture.parse("window(size=5) + window(size=9)"), "eva:n=99,V=2")
    assert verdict is not None
    assert verdict.assumptions[0].split(" masks at ")[1].startswith("5 and 9 ")
    words = THEOREMS["R"].told(verdict, parse_task("eva:n=99,V=2"), Architecture.parse("window"))
    assert "facts of 1 token" in words.text
    assert "at 5 and 9 tokens" in words.text


def test_a_window_of_the_whole_prompt_is_full_attention() -> None:
    """Phi-3.5-mini's window of 262,144 tokens at 4,096."""
    spec = "window(size=262144)*32 @ heads=32, head_dim=96, bf16"
    text = "eva:n=4095,V=32064"
    here = judge(Architecture.parse(spec), parse_task(text))[0]
    full = judge(Architecture.parse("full*32 @ heads=32, head_dim=96, bf16"), parse_task(text))[0]
    assert (here.status, here.theorem) == (full.status, full.theorem) == ("SOLVABLE", "retrieval")
    assert SEEN_WHOLE in here.assumptions
    recheck(here)
    near = Architecture.parse(spec.replace("262144", "4095"))
    assert judge(near, parse_task(text))[0].status == "OPEN"


@torch.no_grad()
@pytest.mark.parametrize(
    "spec",
    [
        "window(size=4, conv=2) + shortconv(conv=3) + window(size=3, rope=true)",
        "chunked(size=4) + window(size=3)",
        "window(size=3)|chunked(size=4) + mlp + window(size=2)",
    ],
)
def test_real_models_forget_exactly_there(spec: str) -> None:
    """Outputs of two prompts that differ up to a cut are equal bit for bit behind G, not before."""
    stack = f"{spec} @ heads=2, head_dim=4"
    cut = 6
    reach, _, _ = lost(stack, cut)
    config = ModelConfig(
        architecture=stack, vocabulary=9, length=40, answers=9, width=8, hidden=8, norm=True,
        bos=False,
    )  # fmt: skip
    model = Model(config).double().eval()
    model.reset(torch.Generator().manual_seed(5))
    tokens = torch.randint(9, (2, cut + reach + 4), generator=torch.Generator().manual_seed(4))
    tokens[1, :cut] = (tokens[0, :cut] + 1) % 9
    tokens[1, cut:] = tokens[0, cut:]
    outputs = []
    for row in tokens:
        cache = model.init_cache(1)
        said_by: list[torch.Tensor] = []
        for t, token in enumerate(row):
            y, cache = model.step(token[None], cache, t)
            said_by.append(y[0])
        outputs.append(torch.stack(said_by))
    same = (outputs[0] == outputs[1]).all(1).tolist()
    # tokens are counted from 1: the last one within reach is token cut + reach
    assert not same[cut + reach - 1]
    assert all(same[cut + reach :])


@dataclass(frozen=True, kw_only=True)
class Own(Mechanism):
    """A user's own: it says what it keeps, and not how far back it reads."""

    name: ClassVar[str] = "own"
    origin: ClassVar[str] = "somewhere:Own"

    def cache(self, t: int) -> tuple[CacheItem, ...]:
        return (CacheItem("state", Bits.of(7, self.p)),)


def test_all_that_an_undeclared_reach_keeps_is_state() -> None:
    layers = Architecture.parse("window(size=5) @ heads=1").layers
    model = Architecture((*layers, (Own(),), *layers))
    lags = Lags.of(model)
    assert lags is not None
    assert lags.at(3) == (3, 11, 7, 7 * 32)
    assert any("'own' reads" in said for said in granted(model))

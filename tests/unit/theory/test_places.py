"""Sources of positions: what each makes SOLVABLE, what stays OPEN and why, and models of this
program that do what the words say.
"""

from __future__ import annotations

from math import cos, log

import numpy as np
import pytest
import torch
from support.each import each
from torch import Tensor

from separatrix.core.numbers.rotary import Rotation
from separatrix.core.numbers.selection import RATIOS, selection_lead, slow_turn
from separatrix.models.model import Model, ModelConfig
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import GatedDeltaNet
from separatrix.tasks import Copying, Equality, Eva, KHop, SeqComp, Task, TwoSum, parse_task
from separatrix.theory import judge, recheck
from separatrix.theory.solves.recall import told_places
from separatrix.theory.written import built_by

ROTATED = "rope=true, positions=none"
LLAMA = f"{ROTATED}, rope_base=500000, rope_scaling=llama3_8_1_4_8192, head_dim=128, bf16"
EVA = Eva(n=4_000, V=1_000)
STEPS = SeqComp(L=2, m=1_000, branching=(1,))
EQUAL = Equality(n=2_000)
PAIRS = TwoSum(n=64, M=65_536, form="decision")
QUERY = TwoSum(n=64, M=65_536, form="query")


def decided(spec: str, task: Task) -> tuple[str, str, tuple[str, ...]]:
    """Status, sentence with numbers, and sources of positions of the strongest verdict."""
    verdict = judge(Architecture.parse(spec), task)[0]
    sources = tuple(text for text in verdict.assumptions if text.startswith("positions:"))
    return verdict.status, f"{verdict.statement}; {verdict.numbers}", sources


@pytest.mark.parametrize("task", [EVA, STEPS, EQUAL], ids=lambda task: task.name)
def test_rotations_alone_find_places(task: Task) -> None:
    status, sentence, (source,) = decided(f"full*3 @ {LLAMA}", task)
    assert status == "SOLVABLE"
    assert "address" not in sentence
    assert "(base 500,000, 128 dimensions" in source


@pytest.mark.parametrize(("layers", "task"), [("full*2", PAIRS), ("full", QUERY)])
def test_contents_do_not_compare_under_rotation(layers: str, task: Task) -> None:
    status, sentence, _ = decided(f"{layers} @ {LLAMA}", task)
    assert status == "OPEN"
    # slow pairs do, behind one more layer
    assert " bring" in sentence
    assert decided(f"{layers} + full @ {LLAMA}", task)[0] == "SOLVABLE"
    # 16 bits and two tags
    assert decided(f"{layers} @ {LLAMA}, rope_dim=110", task)[0] == "SOLVABLE"
    status, sentence, _ = decided(f"{layers} @ {LLAMA}, rope_dim=112", task)
    assert status == "OPEN"
    assert "have 16 that" in sentence
    assert "takes 18" in sentence


def test_what_would_cancel_is_looked_up_in_slow_pairs() -> None:
    """A layer before brings every token the one before it, so that the last one is left out."""
    status, sentence, _ = decided(f"full*2 @ {LLAMA}", QUERY)
    assert status == "SOLVABLE"
    # two tags would be two bits more
    assert "'key_bits': 16," in sentence
    assert decided(f"window(size=1) + full @ {LLAMA}", QUERY)[0] == "OPEN"


@pytest.mark.parametrize("task", [EVA, STEPS, EQUAL], ids=lambda task: task.name)
def test_layers_without_positions_see_a_multiset(task: Task) -> None:
    """Unless layers before them count, which in fp16 they are not shown to do."""
    status, sentence, _ = decided("full*3 @ positions=none, fp16", task)
    assert status == "OPEN"
    assert "no embeddings, no" in sentence
    assert decided("full*4 @ positions=none", task)[0] == "SOLVABLE"
    # what is asked of a multiset needs no places
    assert decided("full*3 @ positions=none, fp16", PAIRS)[0] == "SOLVABLE"
    (assumed,) = decided("full*3", task)[2]
    assert assumed.startswith("positions: ")


@pytest.mark.parametrize("task", [EVA, STEPS, EQUAL, PAIRS, QUERY], ids=lambda task: task.spec)
@pytest.mark.parametrize(
    ("sizes", "why"),
    [
        ("positions=alibi", "scores fall (ALiBi)"),
        ("positions=unknown", "is not known"),
        ("positions=unknown, rope=true", "is not known"),
    ],
)
def test_positions_of_another_kind_leave_it_open(task: Task, sizes: str, why: str) -> None:
    status, sentence, _ = decided(f"full*3 @ {sizes}", task)
    assert status == "OPEN"
    assert why in sentence


def test_capped_scores_leave_it_open() -> None:
    """50 tanh(s/50) keeps all scores within 100 of each other: what a cap leaves of a lead is not
    worked out.
    """
    for sizes in ("softcap=50", "bounded=true"):
        for task in (EVA, EQUAL, PAIRS):
            status, sentence, _ = decided(f"full*2 @ {sizes}", task)
            assert status == "OPEN"
            assert "(or bounded, or" in sentence


@pytest.mark.parametrize("task", [EVA, STEPS, EQUAL], ids=lambda task: task.name)
def test_embeddings_beside_rotations_take_nothing_away(task: Task) -> None:
    """A table of embeddings may be all zeros."""
    stack = f"full*3 @ {LLAMA}".replace("positions=none", "positions=embedded")
    assert decided(stack, task)[0] == "SOLVABLE"


@each("stack", ["sparse*2", "moba*2", "compressed*2", "full*2 @ fp8"])
def test_rotations_are_no_reason_where_there_are_none(stack: str) -> None:
    status, sentence, _ = decided(stack, EQUAL)
    assert status == "OPEN"
    assert "rotation" not in sentence


def test_a_start_token_needs_a_number_of_the_latent_beside_the_payload() -> None:
    """One number of a latent that holds a bit scores +-1 too, and the slower of two pairs turns by
    2 over 200 tokens.
    """
    stack = f"mla*2 @ {ROTATED}, rope_dim=4, head_dim=8, fp32"
    assert decided(f"{stack}, latent=2", Equality(n=100))[0] == "SOLVABLE"
    assert decided(f"{stack}, latent=1", Equality(n=100))[0] == "OPEN"


def test_rounding_may_hide_neighbouring_places() -> None:
    """Gemma 3's full layers turn by 1/8 a token at the most: 1 - cos(1/8) = 0.0078 of a score, and
    bf16 has 8 bits.
    """
    sizes = f"{ROTATED}, rope_base=1000000, rope_scaling=linear_8, head_dim=128"
    status, sentence, _ = decided(f"full*3 @ {sizes}, bf16", EVA)
    assert status == "OPEN"
    assert "4,001 of them in bf16" in sentence
    assert decided(f"full*3 @ {sizes}, fp32", EVA)[0] == "SOLVABLE"


def test_a_stack_with_rotations_and_embeddings_has_both() -> None:
    both = "full*2 @ rope=true, head_dim=64"
    assert "address" not in decided(both, EVA)[1]
    # with 14 dimensions left as they are, 12 address bits and two tags fit
    assert "'address_bits': 12}" in decided(f"{both}, rope_dim=50", EVA)[1]


@each(
    "first, solves",
    [
        ("gdn(conv=4, head_dim=64)", True),
        ("gdn(conv=1, head_dim=64)", False),
        ("gdn(head_dim=64)", False),
        ("mamba2(conv=4, head_dim=64)", True),
        ("shortconv(conv=2)", True),
        ("shortconv(conv=1)", False),
        ("window(size=64, head_dim=64, rope=true, positions=none)", True),
        ("window(size=64, head_dim=64, positions=none)", False),
    ],
)
def test_a_carrier_without_embedded_positions_must_see_its_neighbour(
    first: str, solves: bool
) -> None:
    task = SeqComp(L=2, m=16, branching=(1,))
    spec = f"{first} + full(rope=true, positions=none, head_dim=64)*2"
    assert (decided(spec, task)[0] == "SOLVABLE") is solves


def bare(spec: str, task: Task, *, width: int, hidden: int, bos: bool) -> Model:
    """A model without norms whose parameters are all zero."""
    config = ModelConfig(
        architecture=Architecture.parse(spec).spec,
        vocabulary=task.vocabulary,
        length=task.length,
        answers=task.answers,
        width=width,
        hidden=hidden,
        norm=False,
        bos=bos,
    )
    model = Model(config).requires_grad_(False)
    for parameter in model.parameters():
        parameter.zero_()
    return model


def set_weight(model: Model, name: str, rows: slice, columns: slice, value: Tensor | float) -> None:
    model.get_parameter(name)[rows, columns] = torch.as_tensor(value, dtype=torch.float32)


def code(rotation: Rotation, offset: Tensor, scale: float) -> Tensor:
    """Queries (tokens, dims) that ask for the token `offset` places back, with scores up to
    `scale`.
    """
    ratio = max(RATIOS, key=lambda ratio: gap(rotation, ratio))
    weights = ratio ** torch.arange(rotation.dims // 2)
    weights *= scale / weights.sum()
    turn = offset[:, None].double() * torch.tensor(rotation.frequencies, dtype=torch.float64)
    return torch.cat([weights * turn.cos(), -weights * turn.sin()], -1)


def gap(rotation: Rotation, ratio: float, offsets: int = 300) -> float:
    weights = ratio ** np.arange(rotation.dims // 2)
    back = np.arange(1, offsets)[:, None] * np.array(rotation.frequencies)
    return float(((1 - np.cos(back)) @ weights).min() / weights.sum())


def test_one_rotated_layer_answers_eva_by_offsets() -> None:
    """The weights that the words describe, in this program's own mixer: every token asks for the
    offset n - x, keys are all equal, values are the bits of the token.
    """
    task = Eva(n=48, V=16)
    rotation = Rotation(10_000, 32)
    lead = selection_lead(rotation, task.length, "fp32")
    assert lead is not None
    assert lead.holds
    model = bare(f"full @ heads=1, head_dim=32, {ROTATED}", task, width=41, hidden=0, bos=False)
    ids = torch.arange(task.vocabulary)
    bits = 2.0 * ((ids[:, None] >> torch.arange(4)) & 1) - 1
    every = slice(None)
    queries = code(rotation, task.n - ids, log(100 * task.n) / lead.gap)
    set_weight(model, "embed.weight", every, slice(32), queries)
    set_weight(model, "embed.weight", every, slice(32, 36), bits)
    set_weight(model, "embed.weight", every, slice(36, 37), 1.0)
    mixer = "blocks.0.mixers.0"
    set_weight(model, f"{mixer}.q.weight", slice(32), slice(32), torch.eye(32))
    set_weight(model, f"{mixer}.k.weight", slice(16), slice(36, 37), 1.0)
    set_weight(model, f"{mixer}.v.weight", slice(4), slice(32, 36), torch.eye(4))
    set_weight(model, f"{mixer}.o.weight", slice(37, 41), slice(4), torch.eye(4))
    set_weight(model, "head.weight", every, slice(37, 41), bits[: task.answers])
    tokens = task.sample(512, np.random.default_rng()).tokens
    assert (model(torch.from_numpy(tokens)).argmax(-1).numpy() == task.answer(tokens)).all()


def test_a_start_token_beside_the_offset_asked_for() -> None:
    """Qwen3-Next at 262,144 tokens: the lead is 0.153, rounding takes 0.085 of it, and the start
    token's one product 4/256 more. Rotated throughout, it would have to stand in the slowest pair.
    """
    sizes = "rope=true, positions=none, rope_base=10000000, head_dim=256, heads=16, bf16"
    half = Equality(n=131_072)
    assert decided(f"full*2 @ {sizes}, rope_dim=64", half)[0] == "SOLVABLE"
    status, sentence, _ = decided(f"full*2 @ {sizes.replace('256', '64')}", half)
    assert status == "OPEN"
    assert "start token" in sentence


@pytest.mark.parametrize("n", [3, 24])
def test_two_rotated_layers_compare_strings_by_offsets(n: int) -> None:
    """Every token asks for the offset n. The start token's key stands in the slowest pair and takes
    the weight of tokens without a partner; the second layer compares flags in that pair.
    """
    task = Equality(n=n)
    rotation = Rotation(10_000, 32)
    lead = selection_lead(rotation, task.length, "fp32")
    assert lead is not None
    falls = slow_turn(rotation, task.length)
    assert lead.gap > 2 * lead.rounding + falls
    scale = 4 * log(400 * n) / lead.gap
    model = bare(f"full*2 @ heads=1, head_dim=32, {ROTATED}", task, width=37, hidden=2, bos=True)
    every = slice(None)
    start = slice(2, 3)
    queries = code(rotation, torch.tensor([n]), scale)
    # a query has length w in its slowest pair, so a key of b / w there scores up to b
    slowest = float(torch.linalg.vector_norm(queries[0, [15, 31]]))
    set_weight(model, "embed.weight", every, slice(32), queries)
    bit, one, begins, fetched, flag = (slice(i, i + 1) for i in range(32, 37))
    set_weight(model, "embed.weight", slice(2), bit, torch.tensor([[-1.0], [1.0]]))
    set_weight(model, "embed.weight", slice(2), one, 1.0)
    set_weight(model, "embed.weight", start, begins, 1.0)
    first = "blocks.0.mixers.0"
    set_weight(model, f"{first}.q.weight", slice(32), slice(32), torch.eye(32))
    set_weight(model, f"{first}.k.weight", slice(16), one, 1.0)
    middle = scale * (1 - lead.gap / 2)
    set_weight(model, f"{first}.k.weight", slice(15, 16), begins, middle / slowest)
    set_weight(model, f"{first}.v.weight", slice(1), bit, 1.0)
    set_weight(model, f"{first}.o.weight", fetched, slice(1), 1.0)
    # flag = 1 where the fetched bit and the own one are 1 and -1, or -1 and 1; 0 where one is 0
    for unit, sign in ((0, 1.0), (1, -1.0)):
        row = slice(unit, unit + 1)
        set_weight(model, "blocks.0.mlp.up.weight", row, fetched, -sign)
        set_weight(model, "blocks.0.mlp.up.weight", row, bit, sign)
        model.get_parameter("blocks.0.mlp.up.bias")[unit] = -1.5
        set_weight(model, "blocks.0.mlp.down.weight", flag, row, 2.0)
    second = "blocks.1.mixers.0"
    far = log(400 * n) / cos(rotation.frequencies[-1] * task.length)
    set_weight(model, f"{second}.q.weight", slice(15, 16), one, far)
    set_weight(model, f"{second}.k.weight", slice(15, 16), flag, 2.0)
    set_weight(model, f"{second}.k.weight", slice(15, 16), one, -1.0)
    set_weight(model, f"{second}.v.weight", slice(1), flag, 1.0)
    set_weight(model, f"{second}.o.weight", slice(34, 35), slice(1), 1.0)
    # answer 0 (they differ) where what was read exceeds a half
    set_weight(model, "head.weight", slice(0, 1), slice(34, 35), 1.0)
    model.get_parameter("head.bias")[1] = 0.5
    if n == 3:
        tokens = np.array(list(np.ndindex(*(2,) * 6)), np.int64)
    else:
        tokens = task.sample(256, np.random.default_rng()).tokens
        # strings that differ in one place are the hardest
        flipped = tokens.copy()
        flipped[:, n:] = flipped[:, :n]
        flipped[np.arange(256), n + np.arange(256) % n] ^= 1
        tokens = np.concatenate([tokens, flipped])
    assert (model(torch.from_numpy(tokens)).argmax(-1).numpy() == task.answer(tokens)).all()


@each(
    "stack, tokens",
    [
        ("gdn*3 + full @ positions=none, heads=4, bf16, state_format=fp32", 2**18),
        ("gdn*2 + full @ positions=none, heads=4, bf16, state_format=fp32", 2**12),
        ("gdn*5 + full @ positions=none, heads=4, bf16, state_format=fp32", 2**20),
        ("gdn + full @ positions=none, heads=4", 2**20),
        ("gdn*3 + full @ positions=none, heads=4, bf16", 0),
        ("gdn*3 + full @ positions=none, heads=2, bf16, state_format=fp32", 0),
        ("retnet*3 + full @ positions=none, heads=4, bf16, state_format=fp32", 0),
        ("full + gdn*3 @ positions=none, heads=4, bf16, state_format=fp32", 0),
    ],
)
def test_recurrent_layers_count_for_those_behind(stack: str, tokens: int) -> None:
    """bf16 resolves 8 bits, of which 6 are sure; three layers tell 2^18 tokens apart."""
    last = max(tokens, 4_097)
    for n, solves in ((tokens - 1, True), (last, False)):
        if n < 1:
            continue
        status, sentence, sources = decided(stack, Eva(n=n, V=2))
        assert (status == "SOLVABLE") is solves, sentence
        if solves:
            assert "address_bits" in sentence
            assert any(source.startswith("positions: counted by") for source in sources)
        else:
            assert "see no places" in sentence


def test_how_much_is_counted_before_each_layer() -> None:
    """By hand: 6 bits of a count in bf16, and nothing from a layer with two heads."""
    stack = Architecture.parse(
        "gdn(heads=4) + full + gdn(heads=2) + gdn(heads=4)|full + full"
        " @ positions=none, bf16, state_format=fp32"
    )
    assert stack.counted_before == ((0, 0), (1, 6), (1, 6), (1, 6), (2, 12))


def test_deep_stacks_are_counted_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of layer is asked once, however many there are."""
    asked: list[int] = []
    own = GatedDeltaNet.counted_bits.fget
    assert own is not None
    monkeypatch.setattr(
        GatedDeltaNet, "counted_bits", property(lambda part: asked.append(1) or own(part))
    )
    stack = Architecture.parse("(gdn + full)*500 @ positions=none, heads=4")
    assert judge(stack, SeqComp(L=2, m=64, branching=(1,)))[0].status == "SOLVABLE"
    # once to count, and once for each layer that may carry
    assert len(asked) <= 1 + 2


def test_rotations_of_any_width_are_judged_at_once() -> None:
    sizes = f"{ROTATED}, heads=1"
    stack = f"full(head_dim=64) + full(head_dim=1000000000000) @ {sizes}"
    assert decided(stack, Equality(n=8))[0] == "OPEN"


def test_counted_places_are_said_once_and_not_built() -> None:
    hybrid = Architecture.parse(
        "(mamba2(conv=4)*4 + full)*3 @ positions=none, heads=4, head_dim=64"
    )
    verdict = judge(hybrid, SeqComp(L=3, m=64, branching=(1, 1)))[0]
    assert verdict.status == "SOLVABLE"
    (source,) = (text for text in verdict.assumptions if text.startswith("positions:"))
    assert source.startswith("positions: counted by 4 ")
    assert built_by(verdict) == ()
    assert built_by(judge(hybrid, Eva(n=64, V=4))[0]) == ()
    assert built_by(judge(Architecture.parse("full"), Eva(n=64, V=4))[0]) == ("retrieval",)


def round_to_bf16(x: np.ndarray) -> np.ndarray:
    return torch.from_numpy(x).to(torch.bfloat16).float().numpy()


def counts(emptied: np.ndarray, step: np.float32, form: str) -> np.ndarray:
    """A state in float32 that grows by `step` at each token, and is 0 where it is emptied."""
    value = np.float32(0)
    kept = np.float32(1) - step if form == "delta" else np.float32(1)
    values = np.empty(len(emptied), np.float32)
    for t, now in enumerate(emptied):
        value = np.float32(0) if now else np.float32(value * kept) + step
        values[t] = value
    return values


@pytest.mark.parametrize("form", ["delta", "sum"])
@pytest.mark.parametrize(
    ("layers", "tokens"), [(1, 64), (2, 4_096), pytest.param(3, 2**18, marks=pytest.mark.slow)]
)
def test_each_layer_counts_runs_that_the_one_before_could_not_resolve(
    form: str, layers: int, tokens: int
) -> None:
    """The recurrences themselves, token by token: heads that count in turn, emptied while the other
    counts; what is handed on is normed beside a constant four times as large, then rounded.
    """
    step = np.float32(2.0**-21)
    address = np.zeros((0, tokens), np.float32)
    run = np.zeros(tokens, np.int64)
    for _ in range(layers):
        heads = [counts((run + head) % 2 == 1, step, form) for head in (0, 1)]
        # the head that counts now; the other is empty
        value = np.maximum(*heads)
        constant = np.float32(4 * tokens) * step
        normed = value / np.sqrt(value * value + constant * constant)
        handed_on = round_to_bf16(normed)
        address = np.concatenate([address, handed_on[None]])
        # a new run where anything handed on so far changes
        changed = (address[:, 1:] != address[:, :-1]).any(0)
        run = np.concatenate([[0], np.cumsum(changed)])
    assert len(np.unique(address, axis=1).T) == tokens


@each(
    "layers, n, many, told",
    [
        # 5^3 = 125 places: of a start token and 2 n + 1 others
        ("full*5", 61, 5, [0, 1, 2]),
        ("full*5", 62, None, [0, 1, 2, 3]),
        # by places below 24, heads of a window look back 24 and 48, and no further
        ("window(size=60, heads=23)*2 + full*2", 35, 4, [0, 1]),
        ("window(size=60, heads=23)*2 + full*2", 36, None, [0, 1, 2]),
        ("full*2 + gdn", 62, None, [0, 1]),
        # beside 41 others the start token is out of reach, also where those are the whole prompt
        ("window(size=42, heads=41) + full(heads=1)*2", 20, 3, [0]),
        ("window(size=41, heads=41) + full(heads=1)*2", 20, None, [0, 1]),
    ],
)
def test_looking_back_tells_places(layers: str, n: int, many: int | None, told: list[int]) -> None:
    stack = Architecture.parse(f"{layers} @ {ROTATED}")
    verdict = judge(stack, Copying(n=n, V=5))[0]
    assert verdict.theorem == ("none" if many is None else "copying")
    assert verdict.numbers.get("layers") == many
    assert [*next(told_places(stack, 2 * n + 2)).layers] == told


@each("behind", ["", " + shortconv(conv=2, width=4)"])
def test_hops_take_the_earliest_layer_that_brings_the_letter_before(behind: str) -> None:
    """A convolution behind the layers that hop brings it too late, and takes nothing away."""
    stack = Architecture.parse(f"full*10{behind} @ {ROTATED}")
    assert judge(stack, KHop(n=40, V=5, k=6))[0].numbers["first"] == 3


def test_hops_in_half_formats_go_digit_by_digit() -> None:
    """129 places take eight bits, two for four heads: a layer brings the letter before, four look
    for the latest of a letter, three double the hops.
    """
    task = parse_task("khop:n=128,k=4,V=8")
    for spec, status in (
        ("full*8 @ bf16", "SOLVABLE"),
        ("full*7 @ bf16", "OPEN"),
        ("full*8 @ bf16, heads=1", "OPEN"),
        # a head for each binary digit, in fp32
        ("full*4 @ heads=8", "SOLVABLE"),
    ):
        (verdict,) = judge(Architecture.parse(spec), task)
        assert verdict.status == status, spec
        recheck(verdict)


def test_layers_that_tell_places_are_not_taken_where_others_do() -> None:
    """1,024 letters were OPEN where 4,096 are SOLVABLE: the two layers that look back told places,
    and none was left to bring the letter before, which a full layer that counts leaves to them.
    """
    layers = "full(qk_norm=head, rope=true, rope_base=1000000)*2 + full*6"
    stack = Architecture.parse(f"{layers} @ fp32, head_dim=32, heads=32, positions=none")
    found = [judge(stack, KHop(n=n, V=16, k=2))[0] for n in (1_024, 4_096)]
    assert [verdict.status for verdict in found] == ["SOLVABLE"] * 2

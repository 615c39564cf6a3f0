"""What forget gates, QK-norm and softcap leave of the theorems about full attention."""

from __future__ import annotations

import pytest

from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Equality, Eva, SeqComp, Task, TwoSum
from separatrix.theory import THEOREMS, judge
from separatrix.theory.fails.i_bounded_caches import sole_full_layer
from separatrix.theory.written import built_by

QUERY = TwoSum(n=64, M=128)
PAIR = TwoSum(n=64, M=128, form="decision")
SIZES = range(45, 65)
"""Around 57 offsets, where the lead of two pairs lies between 16 u and 18 u."""


def status(spec: str, task: Task) -> str:
    return judge(Architecture.parse(spec), task)[0].status


@pytest.mark.parametrize(
    "task", [Eva(n=64, V=4), pytest.param(QUERY, marks=pytest.mark.slow), PAIR, Equality(n=64)]
)
def test_open_gates_solve_what_full_attention_solves(task: Task) -> None:
    assert status("fox*2 @ heads=1, head_dim=16", task) == "SOLVABLE"
    verdict = judge(Architecture.parse("fox*2 @ heads=1, head_dim=16"), task)[0]
    assert built_by(verdict) != ()


@pytest.mark.parametrize("name", ["full", "fox"])
def test_what_a_cap_leaves_of_a_lead_is_open(name: str) -> None:
    assert status(f"{name}*2 @ heads=1, head_dim=16, softcap=50", Eva(n=64, V=4)) == "OPEN"


def test_gates_tell_a_query_how_much_was_forgotten_so_one_layer_is_not_known_to_fail() -> None:
    """Theorem I' asks for a query that is the same whatever stands between; of full attention of
    the same sizes it shows failure.
    """
    sizes = "heads=1, head_dim=4, p8, accumulator=p8, running_max=false"
    task = SeqComp(L=2, m=34, branching=(1,))
    assert sole_full_layer(Architecture.parse(f"full @ {sizes}")) == 40
    assert sole_full_layer(Architecture.parse(f"fox @ {sizes}")) is None
    assert status(f"full @ {sizes}", task) == "FAILS"


def test_one_layer_of_windows_or_chunks_reads_no_more_than_a_full_one() -> None:
    """A window of at least the prompt is full attention, and was not seen to fail; a vector that is
    key and value at once is not worked out, and a convolution is a layer of its own.
    """
    sizes = "heads=1, head_dim=4, p8, accumulator=p8, running_max=false"
    for kind in ("window(size=2)", "window(size=9999)", "chunked(size=3)", "full|window(size=2)"):
        bits = 40 * len(kind.split("|"))
        stack = Architecture.parse(f"{kind} @ {sizes}")
        assert sole_full_layer(stack) == bits
        assert status(stack.spec, Equality(n=bits + 1)) == "FAILS"
    for kind in ("window(size=9, conv=2)", "window(size=9, shared=true)", "window(size=9)*2"):
        assert sole_full_layer(Architecture.parse(f"{kind} @ {sizes}")) is None


@pytest.mark.parametrize(
    ("stack", "key"),
    [
        ("full + reused @ heads=1, head_dim=4, p8", "I'"),
        ("window(size=9) + reused_window(size=9) @ heads=1, head_dim=4, p8", "I'"),
        ("sparse(block=2, topk=1) + reused @ heads=1, head_dim=2, p1", "II"),
        ("moba(block=2, topk=1) + reused @ heads=1, head_dim=2, p1", "II"),
    ],
)
def test_a_layer_that_reads_the_cache_of_another_is_a_second_one(stack: str, key: str) -> None:
    """The first fetches z_0, and the second one asks the same keys for its entry: it was taken for
    a layer without memory, and such stacks were said to fail as the first one alone does.
    """
    alone = stack.partition(" +")[0] + stack[stack.index(" @") :]
    theorem = THEOREMS[key]
    for form in ("query", "decision"):
        task = TwoSum(n=100, M=405, form=form)
        assert theorem.judge(Architecture.parse(stack), task) is None
    assert theorem.fails_at(Architecture.parse(alone), task)


@pytest.mark.parametrize(
    ("stack", "owned"),
    [
        ("full + reused", True),
        ("window(size=8) + full + reused_window(size=8)", True),
        ("window(size=9)*2 + reused_window(size=8)", True),
        ("reused + full", False),
        ("full|reused", False),
        ("window(size=8) + reused", False),
        ("full + reused_window(size=8)", False),
        ("window(size=2) + reused_window(size=2000)", False),
        ("dsa(topk=4) + dsa_shared(topk=4)", True),
        ("dsa_shared", False),
        ("full + dsa_shared", False),
        ("dsa(topk=4) + dsa_shared(topk=1)", False),
    ],
)
def test_a_cache_that_nobody_keeps_is_not_counted_as_none(stack: str, owned: bool) -> None:
    """What is read of it is in no sum of bits: of `full + reused_window` Theorem III said that it
    fails from n = 76 on, as if the window held nothing; of `dsa_shared`, whose tokens no indexer
    chooses, from n = 36 on.
    """
    latent = ", latent=4" * ("dsa" in stack)
    found = Architecture.parse(f"{stack} @ heads=1, head_dim=4, p8{latent}")
    assert found.owned is owned
    task = SeqComp(L=2, m=62, branching=(1,))
    assert (judge(found, task)[0].theorem == "none") is not owned


def test_a_layer_may_read_the_keys_of_one_whose_tokens_see_later_ones() -> None:
    """Such a layer has no cache after so many tokens: asked for it, theorems of these stacks said
    that there is none and nothing else. Two steps take three layers that see every token.
    """
    found = Architecture.parse("full(causal=false)*3 + reused @ heads=1, head_dim=16, fp32")
    assert found.owned
    (verdict,) = judge(found, SeqComp(L=2, m=4, branching=(2,)))
    assert (verdict.theorem, verdict.status) == ("encoder", "SOLVABLE")


def test_sums_of_gates_count_as_a_bounded_layer_before() -> None:
    """One number per head, as wide as accumulators: 3 x 32 bits."""
    fox = Architecture.parse("fox @ heads=3, kv_heads=1, head_dim=8, bf16")
    full = Architecture.parse("full @ heads=3, kv_heads=1, head_dim=8, bf16")
    assert [(g.inside, g.between) for g in full.groups(99)] == [(0, 0), (0, 0)]
    assert [(g.inside, g.between) for g in fox.groups(99)] == [(0, 3 * 32), (0, 0)]


@pytest.mark.slow
def test_a_norm_of_queries_and_keys_asks_for_more_dimensions() -> None:
    """7 bits of M = 128 and two tags: 9 dimensions, behind a norm 18, or 10 in fp32."""
    for norm, dims, form, wanted in (
        ("none", 9, "bf16", "SOLVABLE"),
        ("none", 9, "fp32", "SOLVABLE"),
        ("head", 9, "fp32", "OPEN"),
        ("head", 10, "fp32", "SOLVABLE"),
        ("all", 17, "bf16", "OPEN"),
        ("all", 18, "bf16", "SOLVABLE"),
    ):
        spec = f"full*2 @ heads=1, head_dim={dims}, value_dim=1, qk_norm={norm}, {form}"
        assert status(spec, PAIR) == wanted, spec
    # cosines are not worked out: 7 bits and two tags instead of 3 dimensions
    assert status("full @ heads=1, head_dim=3, fp32", QUERY) == "SOLVABLE"
    assert status("full @ heads=1, head_dim=9, qk_norm=head, fp32", QUERY) == "OPEN"
    # addresses are equally long anyway
    assert status("full @ heads=1, head_dim=8, qk_norm=head, bf16", Eva(n=64, V=4)) == "SOLVABLE"


@pytest.mark.parametrize(
    ("latent", "wanted"), [(18, "OPEN"), pytest.param(19, "SOLVABLE", marks=pytest.mark.slow)]
)
def test_a_latent_behind_a_norm_holds_contents_twice(latent: int, wanted: str) -> None:
    """7 bits of M = 128 and two tags, twice, and a value. Three numbers of cosines would fit, but
    tokens' latents are scaled to one length, and theirs are not equally long.
    """
    for layers, task in ((1, QUERY), (2, PAIR)):
        assert status(f"mla(latent={latent})*{layers} @ heads=1, head_dim=16", task) == wanted


def test_queries_from_a_latent_are_rounded_once_more() -> None:
    """As behind a norm of queries and keys: DeepSeek-V3 maps them from a latent behind one."""
    turned = "rope_base=20, rope_dim=4, positions=none"
    found = [
        [status_at(Architecture.parse(f"{spec} @ heads=1, head_dim=64, bf16"), n) for n in SIZES]
        for spec in (
            f"mla(latent=512, {turned})",
            f"full(rope=true, qk_norm=head, {turned})",
            f"full(rope=true, {turned})",
        )
    ]
    assert found[0] == found[1] != found[2]


def test_a_norm_rounds_more() -> None:
    spec = "full(rope=true, positions=none) @ heads=1, head_dim=64, bf16"
    leads = []
    for text in (spec, spec.replace("rope=true", "rope=true, qk_norm=head")):
        architecture = Architecture.parse(text)
        leads += [max(n for n in range(2, 200) if status_at(architecture, n))]
    assert leads[0] >= leads[1] > 1


def status_at(architecture: Architecture, n: int) -> bool:
    return judge(architecture, Eva(n=n, V=2))[0].status == "SOLVABLE"

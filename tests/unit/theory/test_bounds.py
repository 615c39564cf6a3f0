"""Theorems I, I' and II at hand-worked sizes, and by brute force over all protocols at tiny
ones.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bounds import threshold
from support.each import each
from support.paper_sizes import paper_sizes

from separatrix.stacks.architecture import Architecture
from separatrix.tasks import MQAR, Disjointness, Equality, Eva, SeqComp, Task, TwoSum, parse_task
from separatrix.theory import judge, recheck
from separatrix.theory.fails.asymptotic import log2_of
from separatrix.theory.fails.i_bounded_caches import TheoremI, TheoremIPrime
from separatrix.theory.fails.ii_block_messages import BlockSizes, TheoremII
from separatrix.theory.solves.steps import composable

TINY = "heads=1, head_dim=1"


@each(
    "spec, task, n",
    [
        (
            f"linear @ {TINY}",
            "eva:n=8,V=8",
            17,
        ),  # 64 bits: 16 log2 16 = 64 is not more, 17 log2 17 = 69.5 is
        (f"linear @ {TINY}", "eva:n=8,V=2", 65),  # n bits > 64
        (
            f"loglinear @ {TINY}",
            "eva:n=8,V=8",
            37,
        ),  # 192 bits for 32 <= n < 64: 37 log2 37 = 192.7, 36 log2 36 = 186.1
        (f"linear @ {TINY}", "seqcomp:L=2,m=4,n_1=1", 36),  # m = 17, n = 2 m + 2
        (f"linear*2 @ {TINY}, p8", "eva:n=8,V=16", 9),  # 32 bits: 4 n > 32
    ],
)
def test_theorem_i_thresholds_by_hand(spec: str, task: str, n: int) -> None:
    assert threshold(Architecture.parse(spec), parse_task(task)) == n


def test_recurrent_gemma_of_ux_md() -> None:
    """137,904,128 bits / log2 256,000 = 7,675,931.4."""
    cache = Architecture.parse("rglru(width=4309504) @ fp32")
    assert cache.cache_bits(1) == 137_904_128
    assert threshold(cache, Eva(n=10, V=256_000)) == 7_675_932


def test_full_attention_is_not_refuted_by_theorem_i() -> None:
    assert threshold(Architecture.parse(f"full @ {TINY}"), Eva(n=64, V=64)) is None


@each(
    "values, entries, h, fails",
    [(2, 2, 2, False), (2, 2, 1, True), (3, 3, 4, True), (3, 3, 5, False)],
)
def test_theorem_i_prime_by_exhausting_protocols(
    values: int, entries: int, h: int, fails: bool
) -> None:
    """A protocol sends one of 2^h messages about g and then knows f(x): it works iff some map of
    the g's to messages is injective on classes.
    """
    tables = list(itertools.product(range(values), repeat=entries))
    assert (len(tables) > 2**h) is fails  # all tables differ at some point that some f asks for
    task = SeqComp(L=2, m=entries, branching=(1,))
    assert task.first_part().contents.exceeds_bits(h) is fails
    verdict = TheoremIPrime().judge(
        Architecture.parse(f"full @ {paper_sizes(1, h - 1 or 1, 1)}"), task
    )
    assert h == 1 or (verdict is not None and verdict.numbers["h"] == h)
    assert h == 1 or (verdict is not None and verdict.status == ("FAILS" if fails else "OPEN"))


def _protocol_exists(T: int, B: int, k: int, c: int, N: int) -> bool:
    """Every message function of T blocks tried out: for each query value, at most k blocks leave
    it undecided.
    """
    contents = [
        frozenset(block)
        for size in range(1, B + 1)
        for block in itertools.combinations(range(N), size)
    ]
    partitions = list(_maps(len(contents), 2**c))
    for choice in itertools.product(partitions, repeat=T):
        clear = [{v for v in range(N) if _decided(v, contents, messages)} for messages in choice]
        if all(sum(v not in block for block in clear) <= k for v in range(N)):
            return True
    return False


def _decided(value: int, contents: list[frozenset[int]], messages: tuple[int, ...]) -> bool:
    """Whether a block's message always says if the block has the value."""
    seen = {
        (message, value in content) for message, content in zip(messages, contents, strict=True)
    }
    return len(seen) == len(set(messages))


def _maps(items: int, values: int):
    """Maps of items to values up to renaming (restricted growth strings)."""

    def grow(prefix: list[int]):
        if len(prefix) == items:
            yield tuple(prefix)
            return
        for value in range(min(values, max(prefix, default=-1) + 2)):
            yield from grow([*prefix, value])

    return grow([])


@each(
    "T, B, k, N",
    [(1, 1, 0, 2), (2, 1, 1, 2), (2, 1, 1, 3), (2, 2, 1, 2), (2, 1, 1, 4), (2, 2, 1, 3)],
)
@each("c", [0, 1, 2])
def test_theorem_ii_is_an_equivalence_at_tiny_sizes(T: int, B: int, k: int, N: int, c: int) -> None:
    """Repeats allowed: a block's content is any non-empty set of at most B values. v is clear
    for a block if its message decides it.
    """
    sign = BlockSizes(T=T, B=B, k=k, c=c, N=N).compare()
    assert sign is not None
    assert sign.positive is not _protocol_exists(T, B, k, c, N)


@each("u, B, N", [(0, 2, 5), (1, 1, 3), (2, 3, 5), (4, 2, 4), (3, 3, 3), (5, 2, 9)])
def test_traces_by_enumeration(u: int, B: int, N: int) -> None:
    """Traces of a block on u of N values, repeats allowed."""
    seen = {
        frozenset(set(block) & set(range(u))) for block in itertools.product(range(N), repeat=B)
    }
    count = BlockSizes(T=2, B=B, k=1, c=1, N=N).traces(u)
    assert count.exact() == len(seen)
    assert count.compare_bits(len(seen).bit_length()).sign == -1


def test_theorem_ii_needs_whole_blocks_and_one_sparse_layer() -> None:
    theorem = TheoremII()
    task = TwoSum(n=64, M=128)
    sparse = Architecture.parse("sparse @ heads=1, head_dim=1, block=16, topk=1")
    sizes = theorem.sizes(sparse, task)
    assert sizes == BlockSizes(T=4, B=16, k=1, c=64, N=128)
    assert theorem.sizes(sparse, TwoSum(n=66, M=128)) == BlockSizes(
        T=4, B=16, k=1, c=64, N=128
    )  # a filler in the open block takes no value
    assert theorem.sizes(Architecture.parse("sparse + linear"), task) is None
    assert theorem.sizes(sparse, Eva(n=64, V=4)) is None


@each(
    "carrier, steps",
    [
        ("window(size=2)", 3),  # from z_0 to w, the next token
        ("window(size=1)", 2),
        ("window(size=2, accumulator=p1)", 2),
        ("shortconv(width=64, conv=2)", 3),
        ("shortconv(width=64, conv=1)", 2),
        ("shortconv(width=7, conv=2)", 2),
        ("chunked(size=1000)", 2),  # a border between chunks may come in between
        ("gdn", 3),
        ("mamba(width=64)", 3),
    ],
)
def test_a_carrier_hands_bits_to_the_next_token(carrier: str, steps: int) -> None:
    architecture = Architecture.parse(f"{carrier} + full*3 @ head_dim=64")
    layers = list(architecture.reading)
    assert composable(architecture, layers, 8) == steps


@pytest.mark.parametrize(
    ("spec", "task", "n"),
    [
        (
            "loglinear(heads=1,head_dim=1,format=p2)",
            "eva:n=8,V=2",
            7,
        ),  # 3 buckets of 2 bits after 7 tokens, 4 after 8: 6 < 7, 8 = 8
        ("window(heads=1,head_dim=1,size=14,format=p1)", "twosum:n=14,M=6", 1),
    ],
)
def test_a_prefix_that_was_too_much_decides_although_the_caches_have_grown_since(
    spec: str, task: str, n: int
) -> None:
    verdict = TheoremI().judge(Architecture.parse(spec), parse_task(task))
    assert verdict is not None
    assert (verdict.status, verdict.n, verdict.numbers["prefix"]) == ("FAILS", n, n)
    assert TheoremI().fails_at(Architecture.parse(spec), parse_task(task))
    recheck(verdict)


def test_whether_m_is_a_multiple_of_n_decides_nothing() -> None:
    """8 bits after one token, and 405 values: more tokens of as many values tell no less."""
    stack = Architecture.parse("moba(block=7, topk=2) @ heads=1, head_dim=4, p1")
    for n in (1, 14, 15, 16):
        verdict = judge(stack, TwoSum(n=n, M=405))[0]
        assert (verdict.status, verdict.numbers["prefix"]) == ("FAILS", 1)
        recheck(verdict)


PARTS = st.sampled_from(
    [
        *(
            "loglinear(heads=1,head_dim=1,format=p2)",
            "window(heads=1,head_dim=1,size=14,format=p1)",
            "rglru(width=7,format=p1)",
        ),
        *(
            "gdn(heads=1,head_dim=2,format=p1,conv=3)",
            "full(heads=1,head_dim=2,format=p2)",
            "sparse(heads=1,head_dim=1,block=4,topk=1,format=p2)",
        ),
    ]
)
SMALL = (
    st.builds(Eva, n=st.integers(1, 80), V=st.integers(2, 5))
    | st.builds(
        TwoSum,
        n=st.integers(2, 40),
        M=st.integers(3, 50),
        form=st.sampled_from(["query", "decision"]),
    )
    | st.builds(lambda m: SeqComp(L=2, m=m, branching=(2,)), st.integers(2, 9))
)


@settings(max_examples=40, deadline=None)
@given(st.lists(PARTS, min_size=1, max_size=2), SMALL)
def test_a_record_never_contradicts_the_n_it_names(parts: list[str], task: Task) -> None:
    """Where n is the smallest of a family, a task at or above it fails and one below it does
    not; and a search of layouts, which asks for this size alone, hears the same.
    """
    stack = Architecture.parse(" + ".join(parts))
    own = TheoremI().judge(stack, task)
    failing = own is not None and own.status == "FAILS"
    assert TheoremI().fails_at(stack, task) == failing
    for verdict in judge(stack, task):
        if verdict.n is not None and verdict.theorem in ("I", "I'", "II"):
            own = task.length if isinstance(task, SeqComp) else task.sizes()["n"]
            assert (verdict.status == "FAILS") == (own >= verdict.n), verdict


def test_theorem_ii_names_the_smallest_n_whole_blocks_or_not() -> None:
    spec = Architecture.parse("sparse(heads=1,head_dim=1,block=4,topk=1,format=p2)")
    for n in range(4, 60):
        verdict = TheoremII().judge(spec, TwoSum(n=n, M=n))
        if verdict is not None and verdict.n is not None:
            assert (verdict.status == "FAILS") == (n >= verdict.n)


def test_block_retrieval_needs_wide_accumulators() -> None:
    found = judge(
        Architecture.parse("sparse(heads=1,head_dim=32,accumulator=p1,format=fp32)"),
        parse_task("eva:n=64,V=64"),
    )
    assert "SOLVABLE" not in {verdict.status for verdict in found}


def test_block_retrieval_needs_blocks_of_a_power_of_two() -> None:
    """Low bits of a place cancel in the mean over a whole block of 2^k tokens only."""
    for block, solved in ((1, False), (2, True), (6, False), (8, True), (12, False)):
        stack = f"sparse(heads=1,head_dim=32,block={block},topk=1,format=fp32)"
        found = judge(Architecture.parse(stack), parse_task("eva:n=64,V=64"))
        said = [one.theorem for one in found if one.status == "SOLVABLE"]
        assert ("block-retrieval" in said) == solved, block


def test_latent_attention_retrieves_where_the_latent_holds_keys_and_values() -> None:
    """64 addresses of 6 bits and 2 tags, 6 bits of answer: 8 + 6 = 14 numbers of a latent."""
    for latent, solved in ((14, True), (13, False)):
        found = judge(
            Architecture.parse(f"mla(heads=1,head_dim=8,value_dim=6,latent={latent})"),
            parse_task("eva:n=64,V=64"),
        )
        assert ("SOLVABLE" in {verdict.status for verdict in found}) == solved


def test_indexed_attention_retrieves_with_room_in_the_indexer() -> None:
    for width, solved in ((8, True), (7, False)):
        text = f"indexed(heads=1,head_dim=8,value_dim=6,index_dim={width},topk=1)"
        found = judge(Architecture.parse(text), parse_task("eva:n=64,V=64"))
        assert ("SOLVABLE" in {verdict.status for verdict in found}) == solved


def test_demand_and_supply_that_grow_side_by_side_end_the_search() -> None:
    """Two bits of cache per token and two bits of demand: no n ever fails, and none is claimed."""
    architecture = Architecture.parse("full @ heads=1, head_dim=1, format=p1")
    assert architecture.cache_bits(1000) == 2000
    assert threshold(architecture, Eva(n=1, V=4)) is None


@each("kind", [Equality, Disjointness])
@each("n", [2, 3, 5])
def test_theorem_i_prime_counts_strings_under_one_last_bit(
    kind: type[Equality | Disjointness], n: int
) -> None:
    """All first strings, all second ones that end in q; the better q."""
    task = kind(n=n)
    strings = list(itertools.product((0, 1), repeat=n))
    rows = {
        q: {
            tuple(task.answer(np.array([(*u, *v) for v in strings if v[-1] == q])).tolist())
            for u in strings
        }
        for q in (0, 1)
    }
    first = task.first_part()
    assert first is not None
    assert first.contents.exact() == max(len(found) for found in rows.values())


def test_pairs_of_a_prompt_that_stays_as_long_do_not_decide_for_fewer_pairs() -> None:
    """160 bits of cache hold 20 values of 8 bits: 21 pairs are too many, 2 are not, whatever the
    length of the prompt.
    """
    model = Architecture.parse("linear @ heads=1, head_dim=4, p8")
    for pairs, status in ((2, "OPEN"), (20, "OPEN"), (21, "FAILS"), (30, "FAILS")):
        verdict = judge(model, MQAR(vocab_size=512, input_seq_len=1000, num_kv_pairs=pairs))[0]
        assert (verdict.status, verdict.theorem, verdict.n) == (status, "I", 21)
        assert "from num_kv_pairs = 21 on" in verdict.statement
        recheck(verdict)


def test_where_an_asymptotic_bound_would_bite() -> None:
    """n = 65,536^(2^10) = 2^(16 x 1,024) (docs/theory.md, section 5); 3^2 = 2^3.1699250; too
    long to write beyond.
    """
    assert log2_of(65_536, 10) == "16384"
    assert log2_of(3, 1).startswith("3.16992")

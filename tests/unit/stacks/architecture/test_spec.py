"""The architecture grammar: printing and parsing are inverse, sizes go where they belong, and
errors point at the place.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.each import each

from separatrix.core.errors import SeparatrixError, SizeError, SpecError, UnknownNameError
from separatrix.stacks.architecture import MECHANISMS, Architecture, bounded_bits, stack
from separatrix.stacks.architecture.spec import parse_layers
from separatrix.stacks.mechanisms import (
    NSA,
    Compressed,
    Full,
    GatedDeltaNet,
    LatentCache,
    Linear,
    Mamba2,
    Mechanism,
    RetNet,
    Sparse,
    Window,
)

SCALINGS = st.sampled_from([None, "linear_4", "llama3_8_1_4_8192", "yarn_40_32_1_4096"])
FORMATS = st.sampled_from(["fp64", "fp32", "bf16", "fp16", "fp8", "int8", "int4", "p1", "p4096"])


@st.composite
def mechanisms(draw: st.DrawFn) -> Mechanism:
    """Any mechanism at any legal sizes, some left at their defaults."""
    cls = draw(st.sampled_from(sorted(MECHANISMS.values(), key=lambda c: c.name)))
    heads = draw(st.integers(1, 12))
    divisors = st.sampled_from([d for d in range(1, heads + 1) if heads % d == 0])
    sizes: dict[str, Any] = {}
    for f in fields(cls):
        if f.name == "heads":
            sizes["heads"] = heads
        elif not draw(st.booleans()):
            continue
        elif f.name in ("kv_heads", "key_heads", "groups"):
            sizes[f.name] = draw(divisors)
        elif "format" in f.metadata:
            sizes[f.name] = draw(FORMATS)
        elif "options" in f.metadata:
            sizes[f.name] = draw(st.sampled_from(f.metadata["options"]))
        elif "scaling" in f.metadata:
            sizes[f.name] = draw(SCALINGS)
        elif f.name == "version":
            sizes["version"] = draw(st.sampled_from((6, 7)))
        elif isinstance(f.default, bool):
            sizes[f.name] = draw(st.booleans())
        else:
            sizes[f.name] = draw(st.one_of(st.integers(1, 300), st.just(10**12)))
    if sizes.get("shared"):
        sizes.pop("value_dim", None)
    if sizes.get("base", "linear") != "linear":
        sizes.pop("feature", None)
    if sizes.get("rope") or (cls is RetNet and "head_dim" in sizes):
        sizes["head_dim"] = 2 * draw(st.integers(1, 150))
        if sizes.get("rope_base") == 1:
            sizes.pop("rope_base")
        if "rope_dim" in sizes:
            sizes["rope_dim"] = 2 * draw(st.integers(1, sizes["head_dim"] // 2))
        if sizes.get("shared"):
            sizes.pop("shared")
    if issubclass(cls, LatentCache) and "rope_dim" in sizes:
        sizes["rope_dim"] = 2 * draw(st.integers(0, 150))
        if sizes.get("rope_base") == 1:
            sizes.pop("rope_base")
        if "index_dim" in {f.name for f in fields(cls)}:
            sizes["index_dim"] = sizes["rope_dim"] + draw(st.integers(1, 150))
    if cls is NSA:
        sizes["stride"] = draw(st.integers(1, 30))
        sizes["block"], sizes["selected"] = (
            sizes["stride"] * draw(st.integers(1, 9)) for _ in range(2)
        )
        sizes["first"], sizes["near"] = (draw(st.integers(1, 9)) for _ in range(2))
        sizes["topk"] = sizes["first"] + sizes["near"] + draw(st.integers(0, 9))
    if cls is Compressed and ("topk" in sizes) != ("index_dim" in sizes):
        sizes |= {"topk": 7, "index_dim": 3}
    return cls(**sizes)


LAYERS = st.lists(mechanisms(), min_size=1, max_size=3).map(tuple)


@st.composite
def architectures(draw: st.DrawFn) -> Architecture:
    """Stacks with repeats at several scales, so that folding has work to do."""
    kinds = draw(st.lists(LAYERS, min_size=1, max_size=4))
    pattern = draw(st.lists(st.integers(0, len(kinds) - 1), min_size=1, max_size=12))
    layers = [kinds[i] for i in pattern] * draw(st.integers(1, 4)) + [kinds[0]] * draw(
        st.integers(0, 3)
    )
    return Architecture(tuple(layers))


@settings(max_examples=100, deadline=None)
@given(architectures())
def test_parsing_what_is_printed_gives_it_back(architecture: Architecture) -> None:
    assert Architecture.parse(architecture.spec) == architecture
    assert Architecture.parse(architecture.spec).spec == architecture.spec


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(architectures())
def test_parsing_and_json_give_back_many_more(architecture: Architecture) -> None:
    assert Architecture.parse(architecture.spec) == architecture
    assert Architecture.parse(architecture.spec).spec == architecture.spec
    assert Architecture.from_json(json.loads(json.dumps(architecture.to_json()))) == architecture


@settings(max_examples=80, deadline=None)
@given(
    architectures(),
    st.text(max_size=8),
    st.lists(st.text(max_size=8), max_size=3),
    st.none() | st.integers(1, 10**9),
)
def test_json_both_ways(
    architecture: Architecture, name: str, notes: list[str], number: int | None
) -> None:
    model = Architecture(architecture.layers, name, tuple(notes), number, number)
    read = Architecture.from_json(json.loads(json.dumps(model.to_json())))
    assert read == model
    assert (read.name, read.notes, read.vocabulary, read.context) == (
        name,
        tuple(notes),
        number,
        number,
    )


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="fulgdn*+()|@,=-_ 0123 ", max_size=40) | st.text(max_size=20))
def test_any_text_parses_or_is_refused_on_one_line(text: str) -> None:
    try:
        architecture = Architecture.parse(text)
    except SeparatrixError:
        return
    assert Architecture.parse(architecture.spec) == architecture


@each(
    "text, expected",
    [
        ("full", [Full()]),
        ("full*2 + gdn*3", [Full()] * 2 + [GatedDeltaNet()] * 3),
        ("(gdn*3 + full)*2", ([GatedDeltaNet()] * 3 + [Full()]) * 2),
        ("((full)*2)*2", [Full()] * 4),
        ("full|gdn", [(Full(), GatedDeltaNet())]),
        ("full|gdn|window*2", [(Full(), GatedDeltaNet(), Window())] * 2),
        ("sparse(block=16, topk=2)", [Sparse(block=16, topk=2)]),
        ("linear(feature=taylor, normaliser=false)", [Linear(feature="taylor", normaliser=False)]),
        (
            "full(heads=2) + gdn @ heads=8, bf16",
            [Full(heads=2, format="bf16"), GatedDeltaNet(heads=8, format="bf16")],
        ),
        ("mamba2(p8, state=16)", [Mamba2(format="p8", state=16)]),
        ("full @ head_dim=1_024", [Full(head_dim=1024)]),
        ("full+window@size=7", [Full(), Window(size=7)]),
    ],
)
def test_meaning_of_specs(text: str, expected: list[Any]) -> None:
    assert Architecture.parse(text) == stack(expected)


@each(
    "layers, expected",
    [
        ([Full()], "full"),
        ([Full()] * 5, "full*5"),
        (([GatedDeltaNet()] * 3 + [Full()]) * 12, "(gdn*3 + full)*12"),
        ([Full(), GatedDeltaNet(heads=2)], "full + gdn(heads=2)"),
        ([Full(heads=2), GatedDeltaNet(heads=2)], "full + gdn @ heads=2"),
        ([(Full(), GatedDeltaNet())], "full|gdn"),
        ([Full(running_max=False)], "full @ running_max=false"),
    ],
)
def test_canonical_text(layers: list[Any], expected: str) -> None:
    assert stack(layers).spec == expected


@each(
    "text, kind, place, words",
    [
        ("full*2 + gnd*4", UnknownNameError, 9, "unknown mechanism 'gnd'"),
        ("full + ", SpecError, 7, "a mechanism, found the"),
        ("full +* 2", SpecError, 6, "expected a mechanism, found '*'"),
        ("full full", SpecError, 5, "expected '+', '*', '|', '@'"),
        ("(full + gdn", SpecError, 11, "found the end"),
        ("full)", SpecError, 4, "found ')'"),
        ("full*", SpecError, 5, "expected an integer"),
        ("full*gdn", SpecError, 5, "expected an integer"),
        ("full*0", SizeError, 5, "repeat count 0"),
        ("full*-2", SpecError, 5, "expected an integer"),
        ("full*2.5", SpecError, 6, "unexpected character '.'"),
        ("full & gdn", SpecError, 5, "unexpected character '&'"),
        ("swa:size=512", SpecError, 3, "brackets, as in swa(size=512)"),
        ("full(heads=)", SpecError, 11, "integer or a word"),
        ("full(heads)", SpecError, 5, "expected '=' after 'heads'"),
        ("full(heads=2, heads=3)", SpecError, 14, "'heads'"),
        ("full(hats=2)", UnknownNameError, 0, "of 'full' 'hats'"),
        ("gdn + full @ hats=2", UnknownNameError, 13, "unknown size 'hats'"),
        ("full @", SpecError, 6, "found the end"),
        ("full @ heads=2 + gdn", SpecError, 15, "found '+'"),
        ("gdn + full(heads=3, kv_heads=2)", SizeError, 6, "does not divide"),
        ("full(heads=99999999999999)", SizeError, 11, "too large"),
        ("full*99999999999999", SizeError, 5, "too large"),
    ],
)
def test_errors_point_at_the_place(
    text: str, kind: type[SeparatrixError], place: int, words: str
) -> None:
    with pytest.raises(kind) as caught:
        parse_layers(text)
    assert words in str(caught.value)
    assert f"at position {place} of '{text}'" in str(caught.value)


@each(
    "text, kind",
    [
        ("", SpecError),
        ("  \n", SpecError),
        ("full*10001", SizeError),
        ("(full*100)*101", SizeError),
        ("(((full*1000)*1000)*1000)*1000", SizeError),
        ("(" * 60 + "full" + ")" * 60, SpecError),
        ("(" * 100_000, SpecError),
        ("full(heads=0)", SizeError),
        ("full(heads=true)", SizeError),
        ("full(running_max=1)", SpecError),
        ("full(format=3)", SpecError),
        ("full(format=fp12)", SpecError),
        ("full(format=true)", SpecError),
        ("full(p0)", SpecError),
        ("full @ p5000", SpecError),
        ("linear(feature=cosine)", UnknownNameError),
        ("linear(feature=3)", UnknownNameError),
        ("mlp @ heads=2", UnknownNameError),
        ("mamba2(value_dim=8)", UnknownNameError),
        ("mamba2(heads=4, groups=3)", SizeError),
    ],
)
def test_specs_that_are_refused(text: str, kind: type[SeparatrixError]) -> None:
    with pytest.raises(kind):
        parse_layers(text)


def test_the_largest_stack_is_read() -> None:
    assert len(Architecture.parse("full*10000")) == 10_000
    assert Architecture.parse("full*10_000").spec == "full*10000"


@pytest.mark.slow
def test_a_short_text_asks_for_no_more_kinds_of_heads_than_it_may() -> None:
    """265 letters of 400,000 parts cost 34 s, and 5 kB of ten million parts 6 GiB."""
    layer = "|".join(["full", "linear", "sparse", "gdn"])
    assert len(Architecture.parse(f"({layer})*5000")) == 5_000
    for text in (f"({layer})*5001", f"({layer}|{layer})*10000", "|".join(["full"] * 20_001)):
        with pytest.raises(SizeError, match="kinds of heads"):
            parse_layers(text)
    with pytest.raises(SizeError, match="kinds of heads"):
        Architecture((tuple(Full() for _ in range(20_001)),))
    with pytest.raises(SizeError, match="2,000,000"):
        parse_layers("full" + " " * 2_000_000)


@pytest.mark.parametrize("layers", [(), ((),), ((Full(),), ())])
def test_empty_stacks_are_refused(layers: Any) -> None:
    with pytest.raises(SizeError):
        Architecture(layers)


def test_groups_around_the_reading_layers() -> None:
    """gdn has 4 heads x 2 x 2 fp32 = 512 bits; one window of 3 tokens x 4 x 2 x 2 fp32 = 1536
    bits; full conv: 2 columns x 24 channels.
    """
    a = Architecture.parse(
        "gdn + full(conv=3)|gdn + window(size=3) + full + gdn*2 @ heads=4, head_dim=2"
    )
    assert a.reading == (1, 3)
    assert [(group.inside, group.between) for group in a.groups(100)] == [
        (0, 512 + 2 * 24 * 32),
        (512, 1536),
        (0, 1024),
    ]
    assert [group.sigma for group in a.groups(100)] == [512 + 1536, 2048, 1024]
    assert (a.read_bits(0), a.read_bits(1)) == (0, 4 * 4 * 32)


def test_the_open_block_of_a_sparse_layer_counts_as_bounded_cache() -> None:
    """At most 3 tokens of a block of 4 are open, each 2 x 2 fp32; fewer when the prompt is
    shorter.
    """
    a = Architecture.parse("sparse(block=4)|gdn @ heads=1, head_dim=2")
    assert bounded_bits(a.layers[0], 100) == 3 * 4 * 32 + 4 * 32
    assert bounded_bits(a.layers[0], 2) == 2 * 4 * 32 + 4 * 32
    assert [group.sigma for group in a.groups(100)] == [0, 16 * 32]


def test_cache_adds_up() -> None:
    a = Architecture.parse(
        "full + gdn + rglru(conv=4, width=5, state_format=fp32) + mlp @ heads=1, head_dim=2, bf16"
    )
    cache = {kind: bits.total for kind, bits in a.cache(7).items() if bits.total}
    assert cache == {"kv": 7 * 2 * 2 * 16, "state": 4 * 16 + 5 * 32, "convolution": 3 * 5 * 16}
    assert a.cache_bits(7) == sum(cache.values())

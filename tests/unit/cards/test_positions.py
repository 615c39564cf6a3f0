"""The line of a card that says where positions come from."""

from __future__ import annotations

from support.each import each

from separatrix.cards import card_facts
from separatrix.cards.memory import positions_text
from separatrix.cli.report.card import card_json, why_document
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.resolve import preset


@each(
    "spec, text",
    [
        ("full*2", "learned embeddings"),
        ("gdn*2", "learned embeddings"),
        ("shortconv(positions=none) + mlp", "none"),
        ("gdn + full(positions=none)", "none"),
        ("full(positions=alibi)", "ALiBi: scores fall with"),
        ("full(positions=unknown)*2", "in the file"),
        (
            "full(rope=true, rope_base=500_000, positions=none)*3 + full(positions=none)",
            "500,000 in 3 full layers; 1",
        ),
        (
            "rglru + window(rope=true, rope_dim=32, positions=none)",
            "rotary, base 10,000, 32",
        ),
        (
            "window(rope=true, positions=none) + full(positions=none)",
            "10,000 in 1 windowed layer; 1",
        ),
        (
            "full(rope=true, rope_scaling=llama3_8_1_4_8192)",
            "rotary, base 10,000, scaled llama3 x8",
        ),
    ],
)
def test_positions_in_one_line(spec: str, text: str) -> None:
    assert text in positions_text(Architecture.parse(spec))


def test_the_card_prints_it_and_json_holds_it() -> None:
    facts = card_facts(preset("recurrentgemma-2b"), 8192)
    line = "rotary, base 10,000, 128 numbers of each head"
    assert card_json(facts)["positions"] == line
    assert f"positions: {line}" in why_document(facts, "memory").text(120)
    # a file of a model without attention says it by its type
    assert card_json(card_facts(preset("xlstm-7b"), 8192))["positions"] == "none"
    # where no layer mixes tokens there is nothing to say
    assert card_json(card_facts(Architecture.parse("mlp*2"), 8192))["positions"] == ""

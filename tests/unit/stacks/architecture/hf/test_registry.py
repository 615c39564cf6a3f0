"""A model type is one row: none has two, and every way of reading has a small file that is counted
by hand.
"""

from __future__ import annotations

import ast

from support.hf_attention_configs import ATTENTION
from support.hf_recurrent_configs import RECURRENT

from separatrix.stacks.architecture.hf import ROWS, of_class
from separatrix.stacks.architecture.hf.sizes import DATA, parsed
from separatrix.stacks.architecture.hf.table import Row

ELSEWHERE = (
    *("gpt2", "bert", "gpt_neo", "chatglm", "exaone", "hunyuan", "hunyuan_v1_dense", "mllama"),
    *("ouro", "hrm_text", "longcat_flash", "jetmoe", "mpt", "deci", "mellum", "hgrn", "gsa"),
    *("comba", "transformer", "forgetting_transformer", "mla", "moba", "nsa"),
    *("bailing_moe_linear", "cohere2_moe", "modernbert-decoder", "nemotron-nas"),
    *("kosmos_2_text_model", "laguna", "lfm3", "lara_mini", "bailing_hybrid", "molmo2_text"),
    *("mistral_large4_text", "glm_moe_dsa", "hy_v4", "muse_glimmer_text"),
    *("deepseek_v2", "deepseek_ocr2_text"),
)
"""Model types whose small files stand in test_unusual_counts.py, test_newer_families.py or
test_query_norms.py, or are real caches.
"""
REFUSED = ("phi4flash", "phi3small", "doge", "reformer", "blt", "zaya", "inkling_text")


def classes(node: ast.expr) -> list[str]:
    """The mechanisms that an entry of the table may make."""
    match node:
        case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
            return [*classes(one), *classes(other)]
        case ast.Call(func=named):
            return classes(named)
        case _:
            name = ast.unparse(node)
            return classes(parsed(DATA["mixers"][name])) if name in DATA["mixers"] else [name]


def way_of_reading(row: Row) -> tuple[object, ...]:
    kinds = [classes(parsed(entry)) for entry in row.mixers.values()]
    return str(kinds), str(row.lists), str(row.otherwise), str(row.before)


def test_no_type_has_two_rows_and_no_class_two_types() -> None:
    rows = [*DATA["kin"].values(), *DATA["rows"].values()]
    types = [*DATA["rows"], *(kind for row in rows for kind in row.get("types", "").split())]
    assert sorted(types) == sorted(ROWS)
    classes = [name for row in ROWS.values() for name in row.classes]
    assert len(set(classes)) == len(classes)
    assert all(of_class(name) == kind for kind, row in ROWS.items() for name in row.classes)


def test_classes_are_named_after_their_types() -> None:
    for name, kind in {
        "Qwen3MoeForCausalLM": "qwen3_moe",
        "GPT2LMHeadModel": "gpt2",
        "Ernie4_5_MoeForCausalLM": "ernie4_5_moe",
        "xLSTMForCausalLM": "xlstm",
        "ChatGLMModel": "chatglm",
        "LlamaForSequenceClassification": None,
        "ForCausalLM": None,
        "": None,
    }.items():
        assert of_class(name) == kind


def test_every_way_of_reading_has_a_small_file() -> None:
    types = [config.get("model_type") for config in (*ATTENTION.values(), *RECURRENT.values())]
    small = {way_of_reading(ROWS[kind]) for kind in types if kind in ROWS}
    small |= {way_of_reading(ROWS[kind]) for kind in (*ELSEWHERE, *REFUSED)}
    assert [kind for kind, row in ROWS.items() if way_of_reading(row) not in small] == []

"""Costs as a user meets them: options of `analyze` and `compare`, mistakes in one line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from separatrix.cli.main import run

LLAMA = "full*32 @ heads=32, kv_heads=8, head_dim=128, fp8"
"""The layers of Llama 3.1 8B, with keys and values in 8 bits."""


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run([*arguments]) == 0
    return capsys.readouterr().out


def data(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    return json.loads(told(capsys, *arguments, "--json"))


def test_the_card_shows_costs_against_contexts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    served = ("--context", "128k", "--memory", "80GiB", "--weights", "16GiB")
    card = " ".join(told(capsys, "analyze", LLAMA, *served).split())
    assert "8.0 GiB of cache" in card
    assert "16.0 GiB of weights" in card
    assert "Serves 8 sequences in 80.0 GiB" in card
    text = told(capsys, "analyze", LLAMA, *served, "--why", "costs")
    rows = "\n".join(" ".join(line.split()) for line in text.splitlines())
    assert "8,192 tokens 131,072 tokens 2,097,152 tokens" in rows
    assert "512.0 MiB 8.0 GiB 128.0 GiB" in rows
    # 64 GiB over 0.5, 8 and 128
    assert "sequences in 80.0 GiB 128 8 0" in rows
    assert "up to 1,048,576 tokens" in rows
    assert text.isascii()


def test_machines_get_integers(capsys: pytest.CaptureFixture[str]) -> None:
    cost = data(capsys, "analyze", "full @ heads=1, head_dim=2, bf16", "--context", "100")["cost"]
    assert cost["memory_bytes"] is cost["weights_bytes"] is cost["batch_fits_up_to"] is None
    assert cost["contexts"][1] == {
        "context": 100,
        "decode_flops": 8 * 100,
        "prefill_flops": 8 * 5050,
        "prefill_flops_per_token": 404,
        "cache_bytes_read": 800,
        "weight_bytes_read": None,
        "cache_bytes": 800,
        "sequences": None,
    }


def test_a_stack_without_a_cache_fits_any_number_of_times(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = " ".join(told(capsys, "analyze", "mlp*2", "--memory", "1GiB", "--weights", "0").split())
    assert "any number" in text
    assert "up to 10^12 tokens" in text


@pytest.mark.slow
def test_every_model_has_the_weights_that_are_given(capsys: pytest.CaptureFixture[str]) -> None:
    models = ("compare", "window", "gdn", "--memory", "10GiB")
    same = data(capsys, *models, "--weights", "3GiB", "--batch", "4")["models"]
    assert [model["cost"]["contexts"][0]["weight_bytes_read"] for model in same] == [
        3 * 2**28,
        3 * 2**28,
    ]


def test_keys_and_values_in_fp8_halve_what_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    """In every model that keeps some; the other stays as it is."""
    models = ("compare", "window(size=10) @ bf16", "gdn @ bf16", "--context", "1000")
    usual, narrow = (
        data(capsys, *models)["models"],
        data(capsys, *models, "--set", "kv=fp8")["models"],
    )
    read = [
        [m["cost"]["contexts"][1]["cache_bytes_read"] for m in both] for both in (usual, narrow)
    ]
    assert read[0][0] == 2 * read[1][0] == 10 * 4 * 128 * 2
    assert read[0][1] == read[1][1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["analyze", "full", "--memory", "80"], "memory: '80'"),
        (["analyze", "full", "--memory", "80Gib"], "did you mean 'GiB'?"),
        (["analyze", "full", "--memory", "8GiB", "--weights", "9GiB"], "leave nothing of 8.0 GiB"),
        (["analyze", "full", "--batch", "0"], "--batch"),
        (["analyze", "full", "--batch", "many"], "many"),
        (["analyze", "full", "--set", "kv=fp9"], "unknown number format 'fp9'"),
        (["analyze", "full", "--set", "kv=fp8", "--set", "kv=fp8"], "given twice"),
        (["analyze", "gdn", "--set", "kv=fp8"], "keys and values"),
        (["compare", "gdn", "mamba2", "--set", "kv=fp8"], "of this model"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    found = capsys.readouterr()
    assert not found.out
    assert said in found.err
    assert len(found.err.splitlines()) == 1

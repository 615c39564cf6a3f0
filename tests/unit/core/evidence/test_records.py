"""Evidence records: canonical JSON, envelopes there and back, and every way an envelope can be
bad.
"""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.each import each

from separatrix.core.errors import EvidenceError
from separatrix.core.evidence.bundles import bundle_envelope, from_bundle, read_json
from separatrix.core.evidence.canonical import canonical, sha256
from separatrix.core.evidence.records import (
    FORMAT_VERSION,
    KINDS,
    Certificate,
    Construction,
    Evidence,
    Measurement,
    Verdict,
    enveloped,
    from_envelope,
)
from separatrix.core.evidence.typed import listed

RECORDS: tuple[Evidence, ...] = (
    Verdict(
        architecture="gdn",
        task="eva:n=64,V=64",
        status="FAILS",
        theorem="I",
        statement="fewer caches than classes",
        n=64,
        numbers={"cache_bits": 3},
        method="integers",
        slack="[381 +/- 0]",
        premises=("causal",),
        assumptions=("fp32", "deterministic"),
        source="[here]",
    ),
    Verdict(
        architecture="full*2",
        task="seqcomp:L=3,m=4",
        status="OPEN",
        theorem="Ye26-1.1",
        statement="vacuous",
        log2_n="16384",
    ),
    Construction(
        architecture="full",
        task="eva:n=4,V=4",
        name="retrieval",
        sizes={"D": 2},
        model={"d_model": 8, "layers": [{"x": None}]},
        weights="w.safetensors",
        weights_sha256="00",
        proof={"layers": [{"gap": "2"}]},
    ),
    Certificate(
        architecture="gdn @ p4",
        task="eva:n=8,V=2",
        form="collision",
        model={},
        weights={"a": {"dtype": "F32", "shape": [1], "data": "AAAAAA=="}},
        cache_format="p4",
        inputs=[[1, 2], [3, 4]],
        answers=[0, 1],
        output=1,
    ),
    Measurement(
        architecture="full",
        task="eva:n=8,V=2",
        seeds=(0, 1),
        correct=(99, 100),
        total=100,
        chance="1/2",
        intervals=(("0.945513", "0.998236"), ("0.963007", "1.000000")),
        budget={"steps": 10, "learning_rate": 0.003},
    ),
)
IDS = ["verdict", "open-verdict", "construction", "certificate", "measurement"]

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


def refusal(data: Any) -> str:
    with pytest.raises(EvidenceError) as caught:
        from_envelope(data)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@given(PLAIN)
def test_canonical_json_is_json_and_one_text_per_value(value: Any) -> None:
    text = canonical(value)
    assert text.isascii()
    assert json.loads(text) == value
    assert canonical(json.loads(text)) == text
    assert canonical(json.loads(json.dumps(value, indent=3))) == text


def test_canonical_json_by_hand() -> None:
    assert (
        canonical({"b": [1, 2.5, None], "a": {"é": True}})
        == '{"a":{"\\u00e9":true},"b":[1,2.5,null]}'
    )
    assert canonical({"b": 1, "a": 2}) == canonical({"a": 2, "b": 1})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")]])
def test_canonical_json_has_no_nan(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical(value)


def test_sha256_of_text_and_bytes() -> None:
    assert (
        sha256("")
        == sha256(b"")
        == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )


@pytest.mark.parametrize("record", RECORDS, ids=IDS)
def test_envelopes_there_and_back(record: Evidence) -> None:
    envelope = json.loads(json.dumps(record.envelope(), indent=1))
    read = from_envelope(envelope)
    assert read == record
    assert type(read) is type(record)
    assert read.digest == record.digest
    assert envelope["separatrix"] == FORMAT_VERSION
    body = json.dumps(
        {"body": envelope["body"], "kind": record.kind}, sort_keys=True, separators=(",", ":")
    )
    assert envelope["sha256"] == hashlib.sha256(body.encode()).hexdigest()


def test_every_kind_is_tested() -> None:
    assert {record.kind for record in RECORDS} == set(KINDS)


def test_the_digest_sees_every_field_and_the_kind() -> None:
    verdict = RECORDS[0]
    assert isinstance(verdict, Verdict)
    changed = [
        replace(verdict, n=65),
        replace(verdict, premises=("causal", "x")),
        replace(verdict, numbers={"cache_bits": 4}),
        replace(verdict, n=None),
    ]
    assert len({record.digest for record in (verdict, *changed)}) == 5


@each("data", [None, 3, "text", [], {}, {"kind": "verdict"}])
def test_json_that_is_no_evidence(data: Any) -> None:
    assert "not Separatrix evidence" in refusal(data)


@each("version", [0, 2, "1", None, 1.5, [1]])
def test_another_version(version: Any) -> None:
    assert "format version" in refusal(RECORDS[0].envelope() | {"separatrix": version})


@each("kind", ["Verdict", "proof", "", None, 3, ["verdict"], {"a": 1}])
def test_an_unknown_kind(kind: Any) -> None:
    message = refusal(RECORDS[0].envelope() | {"kind": kind})
    assert "unknown kind" in message
    assert all(known in message for known in KINDS)


@each("kind", KINDS)
def test_the_kind_of_another_record(kind: str) -> None:
    for record in RECORDS:
        if record.kind != kind:
            refusal(record.envelope() | {"kind": kind})


@each("name", ["separatrix", "kind", "sha256", "body"])
def test_an_envelope_without_a_field(name: str) -> None:
    refusal({key: value for key, value in RECORDS[0].envelope().items() if key != name})


def test_an_envelope_with_a_field_too_many() -> None:
    assert "extra" in refusal(RECORDS[0].envelope() | {"extra": 1})


@each("body", [None, [], "text", 3, {}])
def test_a_body_that_is_none(body: Any) -> None:
    refusal(RECORDS[0].envelope() | {"body": body})


def rehashed(envelope: dict[str, Any]) -> dict[str, Any]:
    return enveloped(envelope["kind"], envelope["body"])


@pytest.mark.parametrize("record", RECORDS, ids=IDS)
def test_every_missing_unknown_or_mistyped_field_is_named(record: Evidence) -> None:
    envelope = record.envelope()
    for name in envelope["body"]:
        bad = copy.deepcopy(envelope)
        del bad["body"][name]
        assert name in refusal(rehashed(bad))
        for wrong in (None, True, 2.5, "other", [None], {"a": None}):
            if wrong != envelope["body"][name]:
                bad = copy.deepcopy(envelope)
                bad["body"][name] = wrong
                assert "hash" in refusal(bad)
    bad = copy.deepcopy(envelope)
    bad["body"]["surprise"] = 1
    assert "surprise" in refusal(rehashed(bad))


@each(
    "index, name, value",
    [
        (0, "n", "64"),
        (0, "n", True),
        (0, "n", 64.0),
        (0, "status", "SOLVED"),
        (0, "status", 1),
        (0, "numbers", {"cache_bits": "3"}),
        (0, "numbers", {"cache_bits": 3.0}),
        (0, "numbers", [3]),
        (0, "premises", "causal"),
        (0, "premises", [1]),
        (0, "method", "floats"),
        (1, "log2_n", 16384),
        (2, "sizes", None),
        (2, "model", []),
        (3, "form", "guess"),
        (3, "inputs", [[1, "2"]]),
        (3, "inputs", [1, 2]),
        (3, "answers", [True, 1]),
        (3, "cache_format", 4),
        (4, "intervals", ["0.9"]),
        (4, "intervals", [["0.9", "1", "2"]]),
        (4, "seeds", [0.0]),
        (4, "total", None),
    ],
)
def test_values_of_the_wrong_type(index: int, name: str, value: Any) -> None:
    envelope = RECORDS[index].envelope()
    envelope["body"][name] = value
    message = refusal(rehashed(envelope))
    assert f"'{name}" in message
    assert "edited or damaged" in message


def test_a_wrong_hash_and_a_hash_of_no_hash() -> None:
    for wrong in ("0" * 64, "", None, 3, RECORDS[1].digest, RECORDS[0].digest.upper()):
        assert "not match" in refusal(RECORDS[0].envelope() | {"sha256": wrong})


@pytest.mark.parametrize("record", RECORDS, ids=IDS)
def test_every_edit_of_one_character_is_caught(record: Evidence) -> None:
    """Each character of the file replaced by another: no JSON, a refusal, or the very same
    record (white space, spellings of one number).
    """
    text = json.dumps(record.envelope())
    for place in range(len(text)):
        for new in "x7" if text[place] not in "x7" else "y3":
            try:
                data = json.loads(text[:place] + new + text[place + 1 :])
            except ValueError:
                continue
            try:
                read = from_envelope(data)
            except EvidenceError:
                continue
            assert read == record
            assert data == json.loads(text)


@pytest.mark.parametrize("record", RECORDS, ids=IDS)
def test_every_cut_is_caught(record: Evidence, tmp_path: Path) -> None:
    text = json.dumps(record.envelope())
    path = tmp_path / "evidence.json"
    for length in {0, 1, 5, len(text) // 2, len(text) - 1}:
        path.write_text(text[:length])
        with pytest.raises(EvidenceError, match="not JSON, or cut off"):
            read_json(path)


@pytest.mark.parametrize("name", ["two\nlines", "\x1b[31m", "x" * 10_000])
def test_odd_names_do_not_reach_the_terminal(name: str) -> None:
    nested = RECORDS[0].envelope()
    nested["body"]["numbers"] = {name: "3"}
    for data in (
        RECORDS[0].envelope() | {name: 1},
        RECORDS[0].envelope() | {"body": {name: 1}},
        RECORDS[0].envelope() | {"kind": name},
        rehashed(nested),
    ):
        message = refusal(data)
        assert message.isprintable()
        assert len(message) < 800


@given(PLAIN)
def test_any_json_is_refused_or_read(data: Any) -> None:
    refusal(data)
    for key in ("separatrix", "kind", "sha256", "body"):
        if data != RECORDS[0].envelope()[key]:
            refusal(RECORDS[0].envelope() | {key: data})


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="cannot be read"):
        read_json(tmp_path / "nothing.json")
    with pytest.raises(EvidenceError, match="cannot be read"):
        read_json(tmp_path)
    path = tmp_path / "x.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(EvidenceError, match="not a text file"):
        read_json(path)
    path.write_text("[" * 100_000)
    with pytest.raises(EvidenceError, match="nested too deeply"):
        read_json(path)
    path.write_text('{"a": ' + "9" * 5000 + "}")
    with pytest.raises(EvidenceError, match="5,000 digits"):
        read_json(path)
    path.write_text(json.dumps(RECORDS[0].envelope()))
    assert from_envelope(read_json(path)) == RECORDS[0]


def bundle() -> dict[str, Any]:
    return bundle_envelope(
        {
            "records": {record.digest: record.envelope() for record in RECORDS},
            "cells": [{"row": "full"}],
        }
    )


def test_bundles_there_and_back() -> None:
    body, records = from_bundle(json.loads(json.dumps(bundle())))
    assert list(records.values()) == list(RECORDS)
    assert body["cells"] == [{"row": "full"}]


@each(
    "edit",
    [
        lambda data: data.update(separatrix=2),
        lambda data: data.update(sha256="0" * 64),
        lambda data: data.update(extra=1),
        lambda data: data.update(body=[]),
        lambda data: data.pop("sha256"),
        lambda data: data["body"].pop("records"),
        lambda data: data["body"].update(cells=[]),
        lambda data: data["body"]["records"].popitem(),
    ],
)
def test_edited_bundles_are_refused(edit: Any) -> None:
    data = json.loads(json.dumps(bundle()))
    edit(data)
    with pytest.raises(EvidenceError):
        from_bundle(data)


def test_a_record_filed_under_another_digest_is_refused_even_with_a_fresh_hash() -> None:
    first, second = RECORDS[:2]
    with pytest.raises(EvidenceError, match="filed under"):
        from_bundle(bundle_envelope({"records": {first.digest: second.envelope()}}))
    bad = second.envelope() | {"sha256": "0" * 64}
    with pytest.raises(EvidenceError, match="content hash"):
        from_bundle(bundle_envelope({"records": {second.digest: bad}}))


def test_names_are_listed_up_to_twelve() -> None:
    names = [f"n{i}" for i in range(13)]
    assert listed(names[:12]) == ", ".join(names[:12])
    assert listed(names) == ", ".join(names[:12]) + ", ..."
    assert listed(["a b", "c" * 61]) == f"'a b', '{'c' * 59}"

"""Bundles that were forged and given fitting hashes: each must be refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.small_table import KIND, small_body

from separatrix.cards.table.plan import KINDS
from separatrix.checks.verify import verify_page, verify_path
from separatrix.checks.verify.bundle import verify_table
from separatrix.checks.verify.measurement import verify_measurement
from separatrix.cli.report.html import render_html
from separatrix.constructions import construct
from separatrix.core.errors import CannotCheck, CheckFailed, EvidenceError
from separatrix.core.evidence.bundles import bundle_envelope, from_bundle
from separatrix.core.evidence.canonical import canonical, sha256
from separatrix.core.evidence.records import Measurement
from separatrix.tasks import parse_task

Body = dict[str, Any]


@pytest.fixture(scope="module", name="honest")
def _honest() -> Iterator[Body]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(KINDS, "small", KIND)
        yield json.loads(canonical(small_body()))


def check(body: Body) -> None:
    """A bundle whose hashes are made to fit, as `verify` checks its table, then each record."""
    again, records = from_bundle(bundle_envelope(body))
    verify_table(again, records)
    for record in records.values():
        if isinstance(record, Measurement):
            verify_measurement(record)


def rewritten(body: Body, digest: str, change: Callable[[Body], None]) -> str:
    """A record changed and filed under its new hash, in every place; the new hash."""
    envelope = body["records"].pop(digest)
    change(envelope["body"])
    new = sha256(canonical({"kind": envelope["kind"], "body": envelope["body"]}))
    body["records"][new] = envelope | {"sha256": new}
    for cell in body["cells"]:
        cell["records"] = [new if one == digest else one for one in cell["records"]]
    for model in body["models"]:
        for line in model["lines"]:
            line["records"] = [new if one == digest else one for one in line["records"]]
    return new


def of_kind(body: Body, kind: str, cell: int = 0) -> list[str]:
    return [d for d in body["cells"][cell]["records"] if body["records"][d]["kind"] == kind]


# Each takes the honest body and changes it.


def swap_row_labels(body: Body) -> None:
    rows = body["rows"]
    rows[0]["title"], rows[1]["title"] = rows[1]["title"], rows[0]["title"]


def swap_rows(body: Body) -> None:
    body["rows"].reverse()


def swap_column_labels(body: Body) -> None:
    columns = body["columns"]
    columns[0]["title"], columns[1]["title"] = columns[1]["title"], columns[0]["title"]


def swap_cells(body: Body) -> None:
    first, second = body["cells"][0], body["cells"][1]
    for name in ("row", "column"):
        first[name], second[name] = second[name], first[name]


def swap_cells_of_two_rows(body: Body) -> None:
    body["cells"][0]["row"], body["cells"][2]["row"] = "loglinear", "linear"


def order_of_cells(body: Body) -> None:
    body["cells"].reverse()


def swap_measurements(body: Body) -> None:
    """The records of two cells, one for the other."""
    first, second = of_kind(body, "measurement", 0), of_kind(body, "measurement", 2)
    for cell, mine, other in ((0, first, second), (2, second, first)):
        kept = [d for d in body["cells"][cell]["records"] if d not in mine]
        body["cells"][cell]["records"] = [*kept, *other]


def swap_counts(body: Body) -> None:
    """The counts of two measurements, each record hashed again."""
    one, two = of_kind(body, "measurement", 0)[0], of_kind(body, "measurement", 2)[0]
    counts = [
        {name: body["records"][d]["body"][name] for name in ("correct", "intervals")}
        for d in (one, two)
    ]
    rewritten(body, one, lambda record: record.update(counts[1]))
    # the table keeps saying what it said of both
    rewritten(body, two, lambda record: record.update(correct=[100] * 3, intervals=PERFECT))


PERFECT = [["0.963005", "1.000000"]] * 3


def delete_a_cell(body: Body) -> None:
    cell = body["cells"].pop()
    for digest in cell["records"]:
        body["records"].pop(digest)


def delete_a_row(body: Body) -> None:
    body["rows"].pop()
    gone = [cell for cell in body["cells"] if cell["row"] == "loglinear"]
    body["cells"] = [cell for cell in body["cells"] if cell not in gone]
    for cell in gone:
        for digest in cell["records"]:
            body["records"].pop(digest)


def delete_a_measurement(body: Body) -> None:
    digest = of_kind(body, "measurement")[0]
    body["cells"][0]["records"].remove(digest)
    body["cells"][0]["trained"].pop(0)
    body["records"].pop(digest)


def delete_a_seed(body: Body) -> None:
    """The worst seed, dropped everywhere."""

    def best(record: Body) -> None:
        for name in ("seeds", "correct", "intervals"):
            record[name] = record[name][:2]
        record["budget"]["steps_done"] = record["budget"]["steps_done"][:2]

    rewritten(body, of_kind(body, "measurement")[0], best)
    body["cells"][0]["trained"][0]["seeds"] = 2


def other_seeds(body: Body) -> None:
    rewritten(body, of_kind(body, "measurement")[0], lambda r: r.update(seeds=[5, 6, 7]))


def more_steps(body: Body) -> None:
    rewritten(body, of_kind(body, "measurement")[0], lambda r: r["budget"].update(steps=99))


def wider(body: Body) -> None:
    rewritten(body, of_kind(body, "measurement")[0], lambda r: r["budget"].update(width=64))


def another_optimiser(body: Body) -> None:
    digest = of_kind(body, "measurement")[0]
    rewritten(body, digest, lambda r: r["budget"].update(optimiser="Sophia"))


def a_note_in_the_budget(body: Body) -> None:
    rewritten(body, of_kind(body, "measurement")[0], lambda r: r["budget"].update(note="best"))


def steps_as_a_float(body: Body) -> None:
    rewritten(body, of_kind(body, "measurement")[0], lambda r: r["budget"].update(steps=10.0))


def no_parameters(body: Body) -> None:
    for digest in of_kind(body, "measurement"):
        rewritten(body, digest, lambda r: r["budget"].update(parameters=0))


def parameters_as_a_text(body: Body) -> None:
    rewritten(body, of_kind(body, "measurement")[0], lambda r: r["budget"].update(parameters="1"))


def other_parameters(body: Body) -> None:
    """One parameter fewer in every record of a column, and in the table."""
    for cell, place in ((0, "linear"), (2, "loglinear")):
        assert body["cells"][cell]["row"] == place
        for digest, said in zip(
            of_kind(body, "measurement", cell), body["cells"][cell]["trained"], strict=True
        ):
            said["parameters"] -= 1
            fewer = {"parameters": said["parameters"]}
            rewritten(body, digest, lambda record, fewer=fewer: record["budget"].update(fewer))
    counts = [one["parameters"] for cell in (0, 2) for one in body["cells"][cell]["trained"]]
    words = body["columns"][0]["training"]
    tail = words[words.index(" parameters") :]
    body["columns"][0]["training"] = f"{min(counts):,} to {max(counts):,}{tail}"


def empty(body: Body) -> None:
    for name in ("rows", "columns", "cells", "models"):
        body[name] = []
    body["records"] = {}
    body["settings"]["models"] = []


def rename_a_model(body: Body) -> None:
    body["models"][0]["name"] = "gpt-5"


def name_a_preset(body: Body) -> None:
    body["settings"]["models"][0] = "qwen3-8b"
    body["models"][0]["name"] = "qwen3-8b"


def a_model_twice(body: Body) -> None:
    body["models"].append(body["models"][0])
    body["settings"]["models"].append(body["settings"]["models"][0])


def a_model_that_costs_seconds(body: Body) -> None:
    body["settings"]["models"][0] = "gdn*9999"


def a_spec_of_megabytes(body: Body) -> None:
    body["settings"]["models"][0] = "full + " * (1 << 20) + "full"


def a_config_that_is_none(body: Body) -> None:
    body["settings"]["models"][0] = '{"a":' * 5000


def another_order_of_models(body: Body) -> None:
    body["models"].reverse()


def a_model_in_other_words(body: Body) -> None:
    body["settings"]["models"][0] = {"spec": "full"}


def unknown_preset(body: Body) -> None:
    body["settings"]["models"][0] = "gpt-5"


def drop_a_model(body: Body) -> None:
    model = body["models"].pop()
    for line in model["lines"]:
        for one in line["records"]:
            body["records"].pop(one, None)


def an_assumption(body: Body) -> None:
    body["models"][0]["notes"].append("measured by us")


def no_assumptions(body: Body) -> None:
    body["models"][0]["assumptions"] = []


def new_story(body: Body) -> None:
    body["cells"][0]["story"] = "It works."


def new_reach(body: Body) -> None:
    body["cells"][0]["reach"] = ""


def new_paper(body: Body) -> None:
    body["cells"][0]["paper"] = "O(1)"


def new_title(body: Body) -> None:
    body["title"] = "Attention is all you need"


def new_number(body: Body) -> None:
    body["cells"][0]["number"] = "n >= 3"


def another_stack(body: Body) -> None:
    body["cells"][0]["stack"] = "linear @ head_dim=64, heads=8"


def all_solved(body: Body) -> None:
    for one in body["cells"][0]["trained"]:
        one["solved"] = one["seeds"]


def other_size_class(body: Body) -> None:
    body["columns"][0]["size_class"] = "80 layers"


def other_training(body: Body) -> None:
    body["columns"][0]["training"] = "trained alike"


def unknown_key(body: Body) -> None:
    body["cells"][0]["note"] = "peer reviewed"


def unknown_key_of_the_body(body: Body) -> None:
    body["approved"] = True


def unknown_key_of_the_settings(body: Body) -> None:
    body["settings"]["approved"] = True


def unknown_key_of_a_row(body: Body) -> None:
    body["rows"][0]["note"] = ""


def other_seed(body: Body) -> None:
    body["settings"]["seed"] = 1


def seed_as_a_float(body: Body) -> None:
    body["settings"]["seed"] = 0.0


def other_kind(body: Body) -> None:
    body["settings"]["kind"] = "full"


def kind_as_a_list(body: Body) -> None:
    body["settings"]["kind"] = ["quick"]


def doubled_record(body: Body) -> None:
    digest = of_kind(body, "measurement")[0]
    copied = copy.deepcopy(body["records"][digest])
    copied["body"]["correct"] = [100] * 3
    copied["body"]["intervals"] = PERFECT
    new = sha256(canonical({"kind": copied["kind"], "body": copied["body"]}))
    body["records"][new] = copied | {"sha256": new}
    body["cells"][0]["records"].append(new)


def stray_record(body: Body) -> None:
    digest = of_kind(body, "certificate")[0]
    copied = copy.deepcopy(body["records"][digest])
    copied["body"]["task"] = "eva:n=17,V=16"
    new = sha256(canonical({"kind": copied["kind"], "body": copied["body"]}))
    body["records"][new] = copied | {"sha256": new}


def twice_in_a_cell(body: Body) -> None:
    body["cells"][0]["records"].append(body["cells"][0]["records"][0])


def no_certificate(body: Body) -> None:
    digest = of_kind(body, "certificate")[0]
    body["cells"][0]["records"].remove(digest)
    body["records"].pop(digest)


def another_witness(body: Body) -> None:
    """The certificate of another cell in the place of its own."""
    own, other = of_kind(body, "certificate", 0)[0], of_kind(body, "certificate", 2)[0]
    for cell, old, new in ((0, own, other), (2, other, own)):
        records = body["cells"][cell]["records"]
        records[records.index(old)] = new


def opened(body: Body) -> None:
    """A verdict that fails, called open everywhere."""
    rewritten(body, of_kind(body, "verdict")[0], lambda r: r.update(status="OPEN"))
    body["cells"][0]["status"] = "OPEN"


def a_list_of_cells_as_an_object(body: Body) -> None:
    body["cells"] = dict(enumerate(body["cells"]))


FORGERIES = [
    value
    for name, value in list(globals().items())
    if callable(value)
    and getattr(value, "__module__", "") == __name__
    and not name.startswith(("_", "check", "rewritten", "of_kind", "verify"))
]


def test_the_honest_bundle_holds(honest: Body) -> None:
    check(honest)
    assert len(FORGERIES) > 40


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_a_forged_bundle_is_refused(honest: Body, forge: Callable[[Body], None]) -> None:
    body = copy.deepcopy(honest)
    forge(body)
    assert canonical(body) != canonical(honest)
    with pytest.raises(EvidenceError) as caught:
        check(body)
    assert "\n" not in str(caught.value)


def test_a_bundle_of_an_earlier_version_says_so(honest: Body, tmp_path: Path) -> None:
    old = copy.deepcopy(honest) | {"settings": {"quick": True, "seed": 0}}
    file = tmp_path / "evidence.json"
    file.write_text(canonical(bundle_envelope(old)))
    with pytest.raises(EvidenceError, match="written again") as caught:
        verify_path(file)
    assert not isinstance(caught.value, CheckFailed)


def test_what_differs_is_named(honest: Body) -> None:
    body = copy.deepcopy(honest)
    body["cells"][2]["story"] = "It works."
    with pytest.raises(CheckFailed, match=r"cells, entry 3, .*It works"):
        check(body)


def test_a_report_of_other_evidence_is_refused(honest: Body, tmp_path: Path) -> None:
    page, printed = tmp_path / "report.html", render_html(honest)

    def printer(body: Any) -> str:
        assert body is honest
        return printed

    verify_page(tmp_path, printer, honest)
    page.write_text(printed)
    verify_page(tmp_path, printer, honest)
    # edited, with the hash in it made to fit
    text, _, stamp = printed.rpartition("<!-- ")
    text = text.replace("SOLVABLE", "FAILS")
    stamp = f"{stamp.split(', page ')[0]}, page {sha256(text)} -->\n"
    for other in (f"{text}<!-- {stamp}", f"{printed}<p>more</p>\n", ""):
        page.write_text(other)
        with pytest.raises(CheckFailed):
            verify_page(tmp_path, printer, honest)
    page.unlink()
    page.symlink_to(tmp_path / "elsewhere.html")
    with pytest.raises(CannotCheck, match="a link"):
        verify_page(tmp_path, printer, honest)


def test_a_report_without_a_bundle_is_refused(tmp_path: Path) -> None:
    """Beside a record that stands where a bundle is to, or beside none."""
    construct(parse_task("eva:n=2,V=2")).save(tmp_path)
    (tmp_path / "config.json").unlink()
    verify_path(tmp_path, printer=render_html)
    (tmp_path / "report.html").write_text("<p>all of it</p>")
    for copied in (False, True):
        if copied:
            record = (tmp_path / "construction.json").read_text()
            (tmp_path / "evidence.json").write_text(record)
        with pytest.raises(CheckFailed, match=r"report\.html"):
            verify_path(tmp_path, printer=render_html)
        verify_path(tmp_path / "construction.json", printer=render_html)

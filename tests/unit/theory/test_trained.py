"""No measurement crosses the ceiling of Theorem A: none in the sample report, none that training
reports, none that `verify` lets pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from support.outcomes import singly
from support.report_bundle import fake_bundle

import separatrix.training.engine as engine
from separatrix.checks.verify.measurement import verify_measurement
from separatrix.core.errors import CheckFailed
from separatrix.core.evidence.records import Measurement, from_envelope
from separatrix.core.numbers.accuracy import WHOLE, highest_accuracy
from separatrix.core.numbers.wilson import wilson
from separatrix.models.stored.accuracy import Tally
from separatrix.models.stored.run import Run
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Eva, Task, parse_task
from separatrix.theory.fails.a_accuracy import check_trained, trained_ceiling
from separatrix.training.alone import measurement, train

TINY = Architecture.parse("linear @ heads=1, head_dim=1")
"""64 bits: two fp32 numbers."""
EVA = Eva(n=64, V=16)


def ceiling(architecture: Architecture, task: Task) -> int:
    found = trained_ceiling(architecture, task)
    assert found is not None
    return found.at_most


def test_what_is_trained_keeps_float32() -> None:
    """Whatever the spec declares: 64 bits of 256, not 2."""
    classes = EVA.prefix_classes()
    assert classes is not None
    known = highest_accuracy(classes, 64, 16, 64)
    assert 10**6 / 16 < known < WHOLE
    for text in ("linear @ heads=1, head_dim=1", "linear @ heads=1, head_dim=1, p1"):
        assert ceiling(Architecture.parse(text), EVA) == known
    wide = Architecture.parse("linear @ heads=1, head_dim=1, fp64")
    assert ceiling(wide, EVA) == highest_accuracy(classes, 64, 16, 128)
    assert trained_ceiling(TINY, parse_task("eva:n=64,V=16,shift=zipf")) is None
    assert trained_ceiling(TINY, parse_task("parity:n=64")) is None


def test_what_is_trained_reads_a_token_before_the_prompt() -> None:
    # two facts of 38.9 bits each: they do not fit in two numbers of 32 bits, but in three
    task = parse_task("eva:n=2,V=500000000000")
    assert ceiling(Architecture.parse("shortconv(width=1, conv=4)"), task) == WHOLE
    assert ceiling(Architecture.parse("shortconv(width=1, conv=3)"), task) < WHOLE


def test_what_luck_explains_passes_and_more_does_not() -> None:
    # 0.488 log2(16 * 0.488) + 0.512 log2(0.512 * 16 / 15) = 1.000 bit of a fact, of 64 in 64
    top = ceiling(TINY, EVA) / WHOLE
    assert round(top, 3) == 0.488
    for seeds, total in ((1, 2048), (3, 2048), (3, 100)):
        most = int(top * total)
        check_trained(TINY, EVA, [most] * seeds, total)
        # a hundredth more is luck, a quarter more is not
        check_trained(TINY, EVA, [most + total // 100] * seeds, total)
        if total > 100:
            with pytest.raises(CheckFailed, match=r"than 48\.8 %"):
                check_trained(TINY, EVA, [*[0] * (seeds - 1), most + total // 4], total)
    # what three seeds cannot have together, though each alone could
    each = next(k for k in range(1001, 2048) if _refused([k] * 12, 2048))
    assert not _refused([each], 2048)
    # memory for everything, and tasks that the theorem does not cover
    check_trained(Architecture.parse("linear @ heads=1, head_dim=16"), EVA, [2048], 2048)
    check_trained(TINY, parse_task("eva:n=64,V=16,shift=zipf"), [2048], 2048)


def _refused(correct: list[int], total: int) -> bool:
    try:
        check_trained(TINY, EVA, correct, total)
    except CheckFailed:
        return True
    return False


RUN = Run(
    architecture=TINY.spec,
    optimiser="adamw",
    task=EVA.spec,
    seed=0,
    steps=2,
    batch=4,
    width=8,
    hidden=8,
    tested=512,
)


def test_training_that_reports_too_much_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """A counter that counts everything as right stands for whatever goes wrong."""
    assert train(RUN).outcome.correct < 512 * 0.488
    every = Tally(512, 512, 512, bits=0.0, bits_squares=0.0, close=0, close_answers=0)
    monkeypatch.setattr(engine, "tally", lambda *_, **__: every)
    with pytest.raises(CheckFailed, match="512 of 512 answers"):
        train(RUN)
    outcome = singly(seed=0, correct=512, tested=512, steps_done=2, parameters=1)
    with pytest.raises(CheckFailed, match="please report this"):
        measurement(RUN, [outcome])


def test_single_answers_cross_no_ceiling_either() -> None:
    """Where 64 answers are due in a prompt, no prompt need be right as a whole."""
    run = replace(RUN, task=f"{EVA.spec},queries=all")
    outcome = singly(
        seed=0, correct=0, tested=512, right=0, due=512 * 64, steps_done=2, parameters=1
    )
    # 512 prompts: 0.7 log2(0.7 / 0.488) + 0.3 log2(0.3 / 0.512) = 0.133 bits each, 68 in all
    for percent, refused in ((48, False), (55, False), (70, True)):
        told = replace(outcome, right=512 * 64 * percent // 100)
        if refused:
            with pytest.raises(CheckFailed, match=r"than 48\.8 %"):
                measurement(run, [told])
        else:
            assert measurement(run, [told]).answers


def test_verify_refuses_what_no_weights_can_have() -> None:
    parameters = train(RUN).outcome.parameters
    outcome = singly(seed=0, correct=100, tested=512, steps_done=2, parameters=parameters)
    record = measurement(RUN, [outcome])
    assert any("Theorem A allows 48.8 %" in said for said in verify_measurement(record))
    forged = replace(record, correct=(400,), intervals=(wilson(400, 512),))
    with pytest.raises(CheckFailed, match="no weights"):
        verify_measurement(forged)


def stored() -> Iterator[Measurement]:
    """The measurements of the sample report: invented, since no measured record is kept here."""
    for envelope in fake_bundle()["records"].values():
        record = from_envelope(envelope)
        if isinstance(record, Measurement):
            yield record


def test_no_measurement_of_the_sample_report_crosses_its_ceiling() -> None:
    """Allowing for each seed's interval."""
    seen = 0
    for record in stored():
        task = parse_task(record.task)
        found = trained_ceiling(Architecture.parse(record.architecture), task)
        if found is not None:
            seen += 1
            assert all(float(low) * WHOLE <= found.at_most for low, _ in record.intervals)
    assert seen >= 20

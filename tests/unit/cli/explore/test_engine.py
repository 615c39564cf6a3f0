"""The process that answers: whole answers, ended ones, and what becomes of a killed one."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from separatrix.cli.explore import server as module
from separatrix.cli.explore.answers import Question, answers
from separatrix.cli.explore.server import ENDED, Engine

ASKED = Question(("full*2",), "64")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    found = Engine()
    yield found
    found.close()


def test_the_answer_is_that_of_this_process(engine: Engine) -> None:
    assert list(engine.ask(ASKED)) == list(answers(ASKED))
    assert list(engine.ask(ASKED)) == list(answers(ASKED))


def test_a_newer_question_ends_an_older_one(engine: Engine) -> None:
    older = engine.ask(Question(("qwen3-next-80b", "deepseek-v3"), "1M"))
    next(older)
    newer: list[object] = []
    thread = threading.Thread(target=lambda: newer.extend(engine.ask(ASKED)))
    thread.start()
    while engine._newest != 4:
        pass
    assert list(older)[-1] == ENDED
    thread.join()
    assert newer == list(answers(ASKED))


def test_what_nobody_waits_for_ends(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    # so little time that the question in work is ended by force, and the process started anew
    monkeypatch.setattr(module, "GRACE", 0.0)
    monkeypatch.setattr(module, "_LOOKS", 0.0)
    before = engine._process.pid
    assert list(engine.ask(Question(("deepseek-v3",), "1M"), lambda: True))[-1] == ENDED
    assert engine._process.pid != before
    monkeypatch.undo()
    assert list(engine.ask(ASKED)) == list(answers(ASKED))


def test_a_closed_page_leaves_the_next_question_whole(engine: Engine) -> None:
    left = engine.ask(Question(("qwen3-next-80b",), "1M"))
    next(left)
    left.close()
    assert list(engine.ask(ASKED)) == list(answers(ASKED))


def test_a_process_that_died_is_replaced(engine: Engine) -> None:
    engine.close()
    (said,) = engine.ask(ASKED)
    assert "error" in said
    assert list(engine.ask(ASKED)) == list(answers(ASKED))

"""A process that answers one question at a time: a newer question ends what it still works on."""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Lock

from separatrix.cli.explore.answers import Question, Said, told

GRACE = 0.3
"""Seconds that an answer may still take to heed that nobody waits for it, before it is killed."""
_LOOKS = 0.05
ENDED: Said = {"ended": True}


class Engine:
    """The process, started anew where a search had to be killed."""

    def __init__(self) -> None:
        self._turn = Lock()
        self._asked = count(1)
        self._newest = 0
        self._start()

    def ask(self, question: Question, gone: Callable[[], bool] = bool) -> Generator[Said]:
        """The parts of the answer. What a newer question cut short ends with `ENDED`, and so does
        what nobody waits for: `gone` tells.
        """
        mine = next(self._asked)
        self._newest = max(mine, self._newest)
        with self._turn:
            if mine < self._newest:
                yield ENDED
                return
            whole = False
            try:
                self._pipe.send(question)
                while mine == self._newest:
                    if not self._pipe.poll(_LOOKS):
                        if gone():
                            break
                    elif (said := self._pipe.recv()) is None:
                        whole = True
                        return
                    else:
                        yield said
                yield ENDED
            except (EOFError, OSError):
                yield {
                    "error": "the process that searches ended by itself; ask again",
                    "lost": True,
                }
            finally:
                if not whole:
                    self._drop()

    def close(self) -> None:
        self._process.kill()
        self._process.join()

    def _start(self) -> None:
        # started, not forked: threads of the server are no matter to it
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def _drop(self) -> None:
        """Ends the question in work: gently between two parts of its answer, else by force."""
        try:
            self._pipe.send(None)
            while self._pipe.poll(GRACE):
                if self._pipe.recv() is None:
                    return
        except (EOFError, OSError):
            pass
        self.close()
        self._start()


def _work(pipe: Connection) -> None:
    """Answers until the other end is closed. A None ends the question in work; between questions
    it says nothing.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while True:
            if (question := pipe.recv()) is not None:
                for said in told(question):
                    pipe.send(said)
                    if pipe.poll():
                        break
                pipe.send(None)
    except (EOFError, OSError):
        return

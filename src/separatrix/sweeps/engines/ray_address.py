"""Where a Ray cluster listens, and whether something answers there; needs no Ray.

Ray itself tries an address for two minutes and then ends the process. Here an address that does
not answer is known after five seconds.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import TypeVar

from separatrix.errors import EngineError

PATIENCE = 5.0
"""Seconds an address has to answer."""

# a client of HTTP/2, which Ray's servers speak, opens with these; the server's settings come back
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
_HEADER = 9
_SETTINGS = 4
"""The kind of a frame, in the fourth byte of its header."""


T = TypeVar("T")


def within(seconds: float, function: Callable[[], T]) -> T:
    """What a function gives, called in a thread of its own that is left alone where it takes
    longer: for calls that know no time limit. Raises TimeoutError then, else what it raises.
    """
    answer: Future[T] = Future()

    def call() -> None:
        try:
            answer.set_result(function())
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=call, daemon=True).start()
    return answer.result(seconds)


@dataclass(frozen=True)
class Address:
    """Host and port of a cluster's head."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Address:
        """Reads HOST:PORT, or `auto`: what RAY_ADDRESS says, else the cluster that was started last
        on this machine. Raises EngineError.
        """
        if text == "auto":
            return cls._found()
        if "://" in text:
            raise EngineError(
                f"the address {text!r} is one of Ray's client; a sweep runs on a node of the"
                " cluster: join it with `ray start --address HOST:PORT --num-cpus 0`, then give"
                " `--address auto`"
            )
        host, colon, port = text.rpartition(":")
        if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise EngineError(
                f"the address {text!r} of a Ray cluster is no HOST:PORT, such as 10.0.0.1:6379,"
                " and not `auto`"
            )
        return cls(host.removeprefix("[").removesuffix("]"), int(port))

    @classmethod
    def _found(cls) -> Address:
        named = os.environ.get("RAY_ADDRESS", "")
        if named and named != "auto":
            return cls.parse(named)
        note = Path(os.environ.get("RAY_TMPDIR") or "/tmp", "ray", "ray_current_cluster")
        try:
            return cls.parse(note.read_text().strip())
        except OSError:
            raise EngineError(
                "no Ray cluster was started on this machine; start one with `ray start --head`,"
                " or give its address, HOST:PORT"
            ) from None

    def silence(self, seconds: float = PATIENCE) -> str:
        """Why no server of Ray's kind answers here in that time; "" where one does."""
        try:
            return within(seconds, lambda: self._silence(seconds))
        except TimeoutError:
            return f"nothing answers within {seconds:g} s"

    def _silence(self, seconds: float) -> str:
        end = time.monotonic() + seconds
        try:
            with socket.create_connection((self.host, self.port), timeout=seconds) as connection:
                connection.sendall(_PREFACE)
                header = b""
                while len(header) < _HEADER:
                    connection.settimeout(max(0.01, end - time.monotonic()))
                    if not (more := connection.recv(_HEADER - len(header))):
                        break
                    header += more
        except socket.gaierror:
            return f"no machine is known as {self.host}"
        except TimeoutError:
            raise
        except OSError as error:
            return (error.strerror or str(error)).lower()
        if len(header) < _HEADER or header[3] != _SETTINGS:
            return "what listens there is not the head of a Ray cluster"
        return ""

"""Where a Ray cluster listens, and whether something answers there; needs no Ray.

Ray itself tries an address for two minutes and then ends the process. Here an address that does
not answer is known after five seconds.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import BinaryIO, TypeVar

from separatrix.core.errors import EngineError

PATIENCE = 5.0
"""Seconds an address has to answer."""

_HEADER = 9
"""Bytes before a frame of HTTP/2: three of length, the kind, flags, four of the stream."""
_DATA, _HEADERS, _SETTINGS, _GOAWAY, _CONTINUATION = 0, 1, 4, 7, 9
_OKAY = 0x88
"""First byte of headers with status 200, which servers of gRPC always answer with (RFC 7541)."""


_OTHER = "what listens there is not the head of a Ray cluster"


def _frame(kind: int, flags: int, stream: int, load: bytes = b"") -> bytes:
    return len(load).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + load


def _text(text: str) -> bytes:
    return bytes((len(text),)) + text.encode()


def _question(host: str) -> bytes:
    """Asks a head whether it is alive: one call of gRPC, with an empty message."""
    headers = (
        # POST and http have numbers of their own, as have the names of the three next
        b"\x83\x86"
        + (b"\x04" + _text("/ray.rpc.NodeInfoGcsService/CheckAlive"))
        + (b"\x01" + _text(host[:100]))
        + (b"\x0f\x10" + _text("application/grpc"))
        + (b"\x00" + _text("te") + _text("trailers"))
    )
    return (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + _frame(_SETTINGS, 0, 0)
        + _frame(_HEADERS, 4, 1, headers)
        + _frame(_DATA, 1, 1, bytes(5))
    )


def _status(answer: BinaryIO) -> int:
    """First byte of the headers that answer; 0 where there are none."""
    while len(header := answer.read(_HEADER)) == _HEADER:
        kind = header[3]
        if kind > _CONTINUATION or kind == _GOAWAY:
            break
        load = answer.read(int.from_bytes(header[:3]))
        if kind == _HEADERS:
            return load[0] if load else 0
    return 0


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
                " `--engine ray://auto`"
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
        try:
            connection = socket.create_connection((self.host, self.port), timeout=seconds)
        except (socket.gaierror, UnicodeError):
            # a part of a name that is empty or longer than 63 letters cannot even be asked for
            return f"no machine is known as {self.host}"
        except TimeoutError:
            raise
        except OSError as error:
            return (error.strerror or str(error)).lower()
        with connection, connection.makefile("rb") as answer:
            try:
                connection.sendall(_question(self.host))
                return "" if _status(answer) == _OKAY else _OTHER
            except TimeoutError:
                raise
            except OSError:
                # such as a connection that the other side cuts
                return _OTHER

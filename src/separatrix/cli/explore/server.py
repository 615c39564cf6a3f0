"""The page behind 127.0.0.1: its files, what may be chosen, and answers part by part, by a process
that answers one question at a time: a newer question ends what it still works on.
"""

from __future__ import annotations

import json
import select
import signal
import socket
from collections.abc import Callable, Generator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Lock
from typing import Any

from separatrix.cli.explore.answers import Question, Said, start, told
from separatrix.cli.report.html import base_style
from separatrix.core.errors import OutputError

HOME = "127.0.0.1"
PORT = 8765
LARGEST = 2**20
"""Bytes of a question, dropped files among them; a config.json has a few thousand."""
PAGE = {
    "/": ("page.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/engine.js": ("engine.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}
_SAFE = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'self'; img-src data:; style-src 'self' 'unsafe-inline'"
    ),
    "X-Content-Type-Options": "nosniff",
}


class Server(ThreadingHTTPServer):
    """Answers the page of this machine and nobody else."""

    daemon_threads = True

    def __init__(self, port: int, given: dict[str, str]) -> None:
        """Raises OutputError where the port is taken; 0 takes any that is free."""
        try:
            super().__init__((HOME, port), Handler)
        except OSError as error:
            raise OutputError(
                f"--port {port}: {error.strerror or error}; give another, or none for a free one"
            ) from None
        self.given = given
        self.engine = Engine()

    def end(self) -> None:
        """Closes the address, and ends the process that answers."""
        self.server_close()
        self.engine.close()


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server  # type: ignore[assignment]
    timeout = 30

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: the terminal shows where the page is."""

    def do_GET(self) -> None:
        if not self._ours():
            return
        path = self.path.partition("?")[0]
        if path == "/start":
            about = {**start(), "given": list(self.server.given), "largest": LARGEST}
            self._send(json.dumps(about).encode(), "application/json")
        elif path == "/base.css":
            self._send(base_style().encode(), "text/css")
        elif path in PAGE:
            name, kind = PAGE[path]
            self._send(files("separatrix.cli.explore").joinpath("page", name).read_bytes(), kind)
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        if not self._ours():
            return
        length = self.headers.get("Content-Length", "")
        if self.path != "/ask":
            self.send_error(HTTPStatus.NOT_FOUND)
        elif not length.isdecimal():
            self.send_error(HTTPStatus.LENGTH_REQUIRED)
        elif int(length) > LARGEST:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        elif (question := self._question(self.rfile.read(int(length)))) is None:
            self.send_error(HTTPStatus.BAD_REQUEST)
        else:
            self._answer(question)

    def _ours(self) -> bool:
        """Whether the request is for this address by a page of this address: no other site may ask
        through a name that it lets point here, or from its own pages.
        """
        port = self.server.server_port
        hosts = {f"{name}:{port}" for name in (HOME, "localhost")}
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if host in hosts and origin in (None, f"http://{host}"):
            return True
        self.send_error(HTTPStatus.FORBIDDEN)
        return False

    def _question(self, body: bytes) -> Question | None:
        """The question in a body; None for what is none."""
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError):
            return None
        match asked:
            case {"stacks": [str()] | [str(), str()] as stacks, "context": str(context)}:
                return Question(tuple(stacks), context, tuple(self.server.given.items()))
            case _:
                return None

    def _answer(self, question: Question) -> None:
        """A line of JSON for each part; the end of the connection ends them."""
        self._head("application/x-ndjson")
        parts = self.server.engine.ask(question, self._gone)
        try:
            for said in parts:
                self.wfile.write(json.dumps(said).encode() + b"\n")
        except OSError:
            pass  # the page is closed
        finally:
            parts.close()

    def _gone(self) -> bool:
        """Whether the page has closed the connection."""
        if not select.select([self.connection], [], [], 0)[0]:
            return False
        try:
            return not self.connection.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def _send(self, body: bytes, kind: str) -> None:
        self._head(kind, len(body))
        self.wfile.write(body)

    def _head(self, kind: str, length: int | None = None) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        for name, value in _SAFE.items():
            self.send_header(name, value)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()


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

"""The page behind 127.0.0.1: its files, what may be chosen, and answers part by part, one question
at a time; the one of a page that asks anew or is closed ends at its next part.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from threading import Lock
from typing import Any

from separatrix.cli.explore.answers import Question, start, told
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

    def __init__(self, port: int, given: Sequence[str]) -> None:
        """Raises OutputError where the port is taken; 0 takes any that is free."""
        try:
            super().__init__((HOME, port), Handler)
        except OSError as error:
            raise OutputError(
                f"--port {port}: {error.strerror or error}; give another, or none for a free one"
            ) from None
        self.given = given
        self.turn = Lock()
        """Of the question that is worked on: the theory's precision is one for all threads."""


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
            about = {**start(), "given": self.server.given, "largest": LARGEST}
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
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError):
            return None
        match asked:
            case {"stacks": [str()] | [str(), str()] as stacks, "context": str(context)}:
                return Question(tuple(stacks), context, tuple(self.server.given))
            case _:
                return None

    def _answer(self, question: Question) -> None:
        """A line of JSON for each part; the end of the connection ends them."""
        self._head("application/x-ndjson")
        # OSError: the page asks anew, or is closed
        with self.server.turn, suppress(OSError):
            for said in told(question):
                self.wfile.write(json.dumps(said).encode() + b"\n")

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

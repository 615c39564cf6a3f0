"""The server: for the page of this machine only, and what it refuses."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from support.console import ROOT
from support.hf_configs import QWEN

from separatrix.cli.explore.answers import Question, answers
from separatrix.cli.explore.server import LARGEST, Server
from separatrix.cli.main import run
from separatrix.core.errors import OutputError


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    found = Server(0, [])
    thread = threading.Thread(target=found.serve_forever)
    thread.start()
    yield found
    found.shutdown()
    found.server_close()
    thread.join()


def asked(
    server: Server, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, bytes, Any]:
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.request(method, path, body, headers)
    reply = connection.getresponse()
    found = reply.status, reply.read(), reply.headers
    connection.close()
    return found


@pytest.mark.parametrize("path", ["/", "/page.js", "/page.css", "/base.css", "/start", "/?x=1"])
def test_the_page_names_no_other_place(server: Server, path: str) -> None:
    status, body, headers = asked(server, "GET", path)
    assert status == 200
    assert "default-src 'self'" in headers["Content-Security-Policy"]
    assert b"http" not in body.replace(b"http-equiv", b"")


@pytest.mark.parametrize("path", ["/answers.py", "/../engine.py", "/page/page.js", "/ask", "/.."])
def test_nothing_else_is_served(server: Server, path: str) -> None:
    assert asked(server, "GET", path)[0] == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "example.com"},
        {"Host": "127.0.0.1"},
        {"Host": "localhost:1"},
        {"Host": ""},
        {"Origin": "https://example.com"},
        {"Origin": "null"},
    ],
)
@pytest.mark.parametrize(("method", "path"), [("GET", "/"), ("POST", "/ask")])
def test_no_other_site_may_ask(
    server: Server, method: str, path: str, headers: dict[str, str]
) -> None:
    assert asked(server, method, path, b"{}", **headers)[0] == 403


def test_an_answer_is_a_line_for_each_part(server: Server) -> None:
    question = json.dumps({"stacks": ["full*2"], "context": "64"}).encode()
    host = f"localhost:{server.server_port}"
    status, body, _ = asked(server, "POST", "/ask", question, Host=host, Origin=f"http://{host}")
    assert status == 200
    parts = [json.loads(line) for line in body.splitlines()]
    assert parts == json.loads(json.dumps(list(answers(Question(("full*2",), "64")))))


def test_a_page_that_was_closed_leaves_the_next_one_whole(server: Server) -> None:
    older = HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    older.request("POST", "/ask", json.dumps({"stacks": ["full*2", "gdn*2"], "context": "1k"}))
    assert "card" in json.loads(older.getresponse().readline())
    older.close()
    question = json.dumps({"stacks": ["full*2"], "context": "64"}).encode()
    whole = [json.loads(json.dumps(part)) for part in answers(Question(("full*2",), "64"))]
    _, told, _ = asked(server, "POST", "/ask", question)
    assert [json.loads(line) for line in told.splitlines()] == whole


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b"[" * 100_000,
        b'{"stacks": [], "context": ""}',
        b'{"stacks": ["full", "full", "full"], "context": ""}',
        b'{"stacks": [1], "context": ""}',
        b'{"stacks": ["full"]}',
        b'{"stacks": ["full"], "context": 64}',
    ],
)
def test_what_is_no_question(server: Server, body: bytes) -> None:
    assert asked(server, "POST", "/ask", body)[0] == 400


def test_a_file_that_is_too_large(server: Server) -> None:
    for length, status in ((str(LARGEST + 1), 413), ("many", 411)):
        assert asked(server, "POST", "/ask", None, **{"Content-Length": length})[0] == status


def test_a_port_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OutputError, match=f"--port {port}"):
            Server(port, [])
        assert run(["explore", "--port", str(port)]) == 2
    assert str(port) in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["gnd*4"],
        ["nowhere/config.json"],
        ["full", "--context", "0"],
        ["full", "--context", "1000000000001"],
        ["--port", "0"],
        ["--port", "65536"],
    ],
)
def test_what_is_refused_before_a_page_opens(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explore", *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    ("words", "link", "given"),
    [
        ([], "", []),
        (["qwen3-next-80b", "--context", "256k"], "#s=qwen3-next-80b&n=262144", []),
        (["full*2 + gdn"], "#s=full%2A2+%2B+gdn", []),
    ],
)
def test_the_command_says_where_the_page_is(
    words: list[str],
    link: str,
    given: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Any] = []

    def stopped(self: Server) -> None:
        seen.append(list(self.given))
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "serve_forever", stopped)
    assert run(["explore", *words, "--json"]) == 0
    page = json.loads(capsys.readouterr().out)["page"]
    assert page.startswith("http://127.0.0.1:")
    assert page.partition("/#")[2] == link.removeprefix("#")
    assert seen == [given]


def test_a_file_is_given_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(QWEN))
    seen: list[Any] = []

    def stopped(self: Server) -> None:
        seen.append(self.given)
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "serve_forever", stopped)
    assert run(["explore", str(path)]) == 0
    assert seen == [[str(path)]]


def test_the_page_has_what_its_script_names_and_both_engines_answer_alike() -> None:
    """What a browser would find; held here too, where there is none."""
    page = ROOT / "src" / "separatrix" / "cli" / "explore" / "page"
    script, html = ((page / name).read_text() for name in ("page.js", "page.html"))
    named = set(re.findall(r'\$\("([\w-]+)"\)', script))
    assert len(named) > 15
    assert named - {"compare", "single"} <= set(re.findall(r'id="([\w-]+)"', html))
    for engine in (page, ROOT / "docs" / "site" / "explore"):
        told = (engine / "engine.js").read_text()
        named = set(re.findall(r"export (?:const|async function\*?) (\w+)", told))
        assert named == {"begin", "ask"}

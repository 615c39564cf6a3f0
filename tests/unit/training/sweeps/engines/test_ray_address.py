"""Addresses of Ray clusters: what is read, and what does not answer. Ray is not needed."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from separatrix.core.errors import EngineError
from separatrix.training.sweeps.engines.ray_address import Address, within


@contextmanager
def listening(reply: bytes | None) -> Iterator[Address]:
    """A server that says this to whoever comes; None: nothing at all."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(reply or b"")

        if reply is not None:
            Thread(target=serve, daemon=True).start()
        yield Address("127.0.0.1", server.getsockname()[1])


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("10.0.0.1:6379", "10.0.0.1", 6379),
        ("head.example:1", "head.example", 1),
        ("[::1]:65535", "::1", 65535),
    ],
)
def test_host_and_port(text: str, host: str, port: int) -> None:
    address = Address.parse(text)
    assert (address.host, address.port) == (host, port)
    assert str(address) == text


@pytest.mark.parametrize(
    "text",
    ["", "head", "head:", ":6379", "head:0", "head:65536", "head:-1", "head:six", "head:²", "AUTO"],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(EngineError, match="HOST:PORT") as error:
        Address.parse(text)
    assert "\n" not in str(error.value)


def test_the_address_of_a_client() -> None:
    with pytest.raises(EngineError, match="--address"):
        Address.parse("ray://head:10001")


def test_auto(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    with pytest.raises(EngineError, match="--head"):
        Address.parse("auto")
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text("10.0.0.1:6379\n")
    assert Address.parse("auto") == Address("10.0.0.1", 6379)
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.2:6380")
    assert Address.parse("auto") == Address("10.0.0.2", 6380)


SETTINGS = bytes((0, 0, 6, 4, 0, 0, 0, 0, 0)) + bytes(6)
"""As a server of HTTP/2 begins (RFC 9113, 6.5)."""


def headers(status: int) -> bytes:
    """Headers of one line only: a status by its number in the static table (RFC 7541, A)."""
    return bytes((0, 0, 1, 1, 4, 0, 0, 0, 1, 0x80 | status))


def test_a_server_that_answers_the_call() -> None:
    with listening(SETTINGS + headers(8)) as address:
        assert address.silence(2.0) == ""


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"SSH-2.0-some\r\n",
        b"",
        SETTINGS,
        # 404: a web server
        SETTINGS + headers(13),
        # it goes away
        SETTINGS + bytes((0, 0, 8, 7, 0, 0, 0, 0, 0)) + bytes(8),
    ],
)
def test_other_servers(reply: bytes) -> None:
    with listening(reply) as address:
        assert "not the head of a Ray cluster" in address.silence(2.0)


def test_a_server_that_says_nothing() -> None:
    with listening(None) as address:
        assert address.silence(0.1) == "nothing answers within 0.1 s"


def test_nobody_listens() -> None:
    with listening(None) as address:
        pass
    assert address.silence(2.0) == "connection refused"


def test_no_such_machine() -> None:
    # names under .invalid exist nowhere (RFC 2606); a resolver may take its time to say so
    assert Address("nowhere.invalid", 1).silence(0.5) in (
        "no machine is known as nowhere.invalid",
        "nothing answers within 0.5 s",
    )


@pytest.mark.parametrize("host", ["a..b", "a" * 64, ".head"])
def test_what_no_machine_can_be_called(host: str) -> None:
    assert Address(host, 1).silence(2.0) == f"no machine is known as {host}"


def test_within_hands_on_what_is_raised() -> None:
    def fail() -> None:
        raise KeyError("this")

    with pytest.raises(KeyError, match="this"):
        within(1.0, fail)

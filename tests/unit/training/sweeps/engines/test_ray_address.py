"""Addresses of Ray clusters: what is read, and what does not answer. Ray is not needed."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from support.each import each

from separatrix.core.errors import EngineError
from separatrix.training.sweeps.engines import ray
from separatrix.training.sweeps.engines.ray import RayEngine, parse_address
from separatrix.training.sweeps.engines.ray_driver import Job


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("10.0.0.1:6379", "10.0.0.1", 6379),
        ("head.example:1", "head.example", 1),
        ("[::1]:65535", "::1", 65535),
    ],
)
def test_host_and_port(text: str, host: str, port: int) -> None:
    assert parse_address(text) == (host, port)
    assert Job(host, port, "CPU", b"").head == text


@each(
    "text",
    [
        *("", "head", "head:", ":6379", "head:0", "head:65536", "head:-1", "head:six", "head:²"),
        *("AUTO", "ray://head:10001"),
    ],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(EngineError, match="HOST:PORT") as error:
        parse_address(text)
    assert "\n" not in str(error.value)


def test_auto(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    with pytest.raises(EngineError, match="--head"):
        parse_address("auto")
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text("10.0.0.1:6379\n")
    assert parse_address("auto") == ("10.0.0.1", 6379)
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.2:6380")
    assert parse_address("auto") == ("10.0.0.2", 6380)


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        job = Job("127.0.0.1", server.getsockname()[1], "CPU", b"")
        assert job.silence(2.0) == ""
    assert job.silence(2.0) == "connection refused"


def test_no_such_machine() -> None:
    # names under .invalid exist nowhere (RFC 2606)
    silence = Job("nowhere.invalid", 1, "CPU", b"").silence(2.0)
    assert silence.endswith("known as nowhere.invalid")


@pytest.mark.parametrize("host", ["a..b", "a" * 64, ".head"])
def test_what_no_machine_can_be_called(host: str) -> None:
    assert Job(host, 1, "CPU", b"").silence(2.0).endswith(host)


@pytest.mark.slow
def test_what_listens_and_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray waits for minutes; the engine does not."""
    pytest.importorskip("ray")
    monkeypatch.setattr(ray, "CONNECTING", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        head = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(EngineError, match=f" {head} within 1 s"):
            RayEngine(head)

"""The engine of a Ray cluster where there is none; tests/peers/test_ray_cluster.py has one."""

from __future__ import annotations

import sys

import pytest

from separatrix.core.errors import EngineError, MissingExtraError, SpecError
from separatrix.training.sweeps.engines import ray
from separatrix.training.sweeps.engines.ray import RayEngine


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"separatrix\[cluster\]"):
        RayEngine("127.0.0.1:1")


def test_no_cluster_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    # as if it were there: the address is asked before anything of it is loaded
    monkeypatch.setattr(ray, "find_spec", lambda name: object())
    monkeypatch.delitem(sys.modules, "ray", raising=False)  # another test may have loaded it
    with pytest.raises(EngineError, match=r"^no Ray .*127\.0\.0\.1:1: .*$"):
        RayEngine("127.0.0.1:1")
    assert "ray" not in sys.modules


def test_a_worker_has_one_gpu_of_its_own() -> None:
    with pytest.raises(SpecError, match="cuda:1"):
        RayEngine("127.0.0.1:1", device="cuda:1")

"""Ctrl-C at any time of a command: one line, exit code 130."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.interrupts import heeds_interrupts

WHEN = """
import os, signal, sys
from separatrix.__main__ import main

class Finder:
    def find_spec(self, name, path, target=None):
        if name == WANTED:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

WANTED, *sys.argv[1:] = sys.argv[1:]
sys.meta_path.insert(0, Finder())
main()
"""


@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("click", "list tasks"),
        ("separatrix.cli.commands.listing", "list tasks"),
        ("flint", "analyze full"),
        pytest.param("torch._meta_registrations", "task eva:n=8 audit", marks=pytest.mark.slow),
    ],
)
def test_ctrl_c_while_a_module_loads(module: str, command: str) -> None:
    words = [sys.executable, "-c", WHEN, module, *command.split()]
    found = subprocess.run(words, capture_output=True, text=True, preexec_fn=heeds_interrupts)
    assert (found.returncode, found.stdout) == (130, "")
    assert found.stderr.startswith("interrupted")
    assert found.stderr.count("\n") == 1

"""A Python process beside this one, and a connection to it. It is started anew, not forked, does
not run the user's script again, and never outlives its parent. As a worker it computes one function
of what it is sent, one thing after the other, on one thread.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from multiprocessing.connection import Connection

from separatrix.core.errors import EngineError
from separatrix.training.sweeps.engines.base import attempted

LOOKS = 1.0
"""Seconds between two looks whether the parent is still there."""
_START = "import sys; sys.path[:] = {path!r}; from {module} import main; main({socket}, {parent})"


def started(
    module: str, settings: Mapping[str, str] | None = None
) -> tuple[subprocess.Popen[bytes], Connection]:
    """A process that runs `main(socket, parent)` of a module, with these settings in its
    environment. Raises EngineError.
    """
    ours, theirs = socket.socketpair()
    code = _START.format(path=sys.path, module=module, socket=theirs.fileno(), parent=os.getpid())
    # a Ctrl-C while it starts is not for the child, which ignores it from its first line on
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env={**os.environ, **(settings or {})},
        )
    except OSError as error:
        ours.close()
        raise EngineError(f"a worker process cannot start: {error.strerror}") from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
    return process, Connection(ours.detach())


def to_parent(descriptor: int, parent: int) -> Connection:
    """What `main` of a started process opens first: the connection to its parent, with which it
    dies.
    """
    # Ctrl-C is the parent's; it was held back until here
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.set_inheritable(descriptor, False)
    threading.Thread(target=_die_with, args=(descriptor, parent), daemon=True).start()
    return Connection(descriptor)


def _die_with(descriptor: int, parent: int) -> None:
    poll = select.poll()
    # what is asked for is nothing; that the other end was closed is told all the same
    poll.register(descriptor, 0)
    # a copy of the other end in a fork of the parent would hide its death
    while not poll.poll(LOOKS * 1000) and os.getppid() == parent:
        pass
    os._exit(1)


def main(descriptor: int, parent: int) -> None:
    """Serves `parent` over the socket of this number until the other end is closed."""
    connection = to_parent(descriptor, parent)
    try:
        _serve(connection)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        # the parent has closed its end, or is gone
        os._exit(0)


def _serve(connection: Connection) -> None:
    function, first = connection.recv()
    if first is not None:
        first()
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(1)
    # ready
    connection.send(None)
    while True:
        connection.send(attempted(function, connection.recv()))

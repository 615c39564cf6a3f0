"""A worker process: computes one function of what it is sent, one thing after the other, on one
thread, and dies with its parent.
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

from separatrix.training.sweeps.engines.child import to_parent


def main(descriptor: int, parent: int) -> None:
    """Serves `parent` over the socket of this number until the other end is closed."""
    connection = to_parent(descriptor, parent)
    try:
        _serve(connection)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        # the parent has closed its end, or is gone
        os._exit(0)


def _serve(connection: Connection) -> None:
    function, first = pickle.loads(connection.recv_bytes())
    try:
        if first is not None:
            first()
    except Exception as error:
        connection.send((False, error))
        return
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(1)
    connection.send((True, None))
    while True:
        argument = connection.recv_bytes()
        _send(connection, *_computed(function, argument))


def _computed(function: Any, argument: bytes) -> tuple[bool, Any]:
    try:
        return True, function(pickle.loads(argument))
    except Exception as error:
        # the trace itself does not travel
        error.add_note("".join(traceback.format_exception(error)))
        return False, error


def _send(connection: Connection, good: bool, value: Any) -> None:
    try:
        data = pickle.dumps((good, value))
        if not good:
            # an error whose class takes other arguments cannot be read back
            pickle.loads(data)
    except Exception as error:
        data = pickle.dumps((False, RuntimeError(f"{type(value).__name__} not sent: {error}")))
    connection.send_bytes(data)

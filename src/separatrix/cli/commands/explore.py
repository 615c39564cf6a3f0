"""`separatrix explore`."""

from __future__ import annotations

import sys
from urllib.parse import urlencode

from separatrix.cli.explore.server import HOME, PORT, Server
from separatrix.cli.options import Asked, command, tokens
from separatrix.cli.printing import Told
from separatrix.core.document import Document, Table
from separatrix.core.errors import OutputError
from separatrix.stacks.architecture.released import preset_named
from separatrix.stacks.architecture.resolve import resolve


@command
def explore(asked: Asked) -> Told:
    """A page in the browser: a stack put together by hand, and what follows from it at once.
    Nothing leaves this machine; Ctrl-C ends it.
    """
    import webbrowser

    model, port = asked.model, asked.port
    length = None if asked.context is None else tokens(asked.context, None, whose="")[0]
    # what cannot be read is refused here, not in the browser
    own = model and not resolve(model).written and preset_named(model) is None
    given = [model] if own else []
    try:
        server = Server(PORT if port is None else port, given)
    except OutputError:
        if port is not None:
            raise
        server = Server(0, given)
    state = {"s": model, "n": length}
    link = urlencode({name: value for name, value in state.items() if value is not None})
    address = f"http://{HOME}:{server.server_port}/{'#' if link else ''}{link}"

    def serve() -> None:
        sys.stdout.flush()
        if sys.stdout.isatty():
            # a window for a person who looks on, not for a script
            webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass
        finally:
            server.server_close()

    rows = [("page", address), ("Ctrl-C", "ends it")]
    return Told({"page": address}, Document(Table(rows)), after=serve)

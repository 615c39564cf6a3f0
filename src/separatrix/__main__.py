"""`python -m separatrix`: the command line."""

from __future__ import annotations

from separatrix.cli.main import main

if __name__ == "__main__":
    main()

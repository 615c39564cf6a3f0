"""flash-linear-attention's own kernels inside our mixers, on a CPU: see interpreted_kernels.py.
Skipped without Triton, which only CUDA needs.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent.parent / "support" / "interpreted_kernels.py"


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton is not installed (extra `cuda`)"
)
@pytest.mark.skipif(
    importlib.util.find_spec("fla") is None, reason="fla-core is not installed (extra `cuda`)"
)
def test_kernels_give_what_the_chunked_forms_give() -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]

"""The most memory that a process of its own took."""

from __future__ import annotations

PEAK = '''
def peak():
    """In KiB. Linux counts what this program took.

    `ru_maxrss` would begin with what the process that started it had.
    """
    try:
        with open("/proc/self/status") as status:
            return int(status.read().split("VmHWM:")[1].split()[0])
    except OSError:
        import resource, sys
        unit = 1024 if sys.platform == "darwin" else 1
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit

'''
"""A function for the beginning of a program that a test runs with `python -c`."""

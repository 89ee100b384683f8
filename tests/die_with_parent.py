"""Servers of the tests end with the tests, also when these are killed."""

import ctypes
import signal
import sys


def die_with_parent() -> None:
    """Let the kernel kill this process when the one that starts it ends: a `preexec_fn`. It works on Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG

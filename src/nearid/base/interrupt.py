"""Handling of Ctrl-C and other signals to stop."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

from nearid.base.printable import one_line

# Signals that stop a program: from Ctrl-C, from `kill` and batch systems, and from a closed terminal.
STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")
# Within so many seconds, a second signal counts as the same: launchers often repeat a signal to their children.
SAME = 1.0
# Seconds after which a lost signal is sent again.
AGAIN = 0.05


class Interrupted(BaseException):
    """Raised by a signal to stop. It is a BaseException, so that libraries do not catch it.

    Attributes
    ----------
    code : int
        Exit code, by the convention of shells.
    left : str
        What the interrupted work has written so far, see `leaving`.
    """

    left = "nothing was written"

    def __init__(self, number: int = signal.SIGINT) -> None:
        self.code = 128 + number


def catch_signals() -> None:
    """Make the first signal to stop raise `Interrupted`, and a later one end the process at once."""
    first: float | None = None

    def handle(number: int, frame: object) -> None:
        nonlocal first
        if first is None:
            first = time.monotonic()
            raise Interrupted(number)
        if time.monotonic() - first > SAME:
            leave("nearid: interrupted again, and stopped at once. Finished work is kept.", 128 + number)

    def unraisable(lost: sys.UnraisableHookArgs) -> None:
        """Send the signal again a moment later, because Python drops errors that occur while it deletes objects."""
        nonlocal first
        if not isinstance(lost.exc_value, Interrupted):
            sys.__unraisablehook__(lost)
            return
        first = None
        Timer(AGAIN, os.kill, (os.getpid(), lost.exc_value.code - 128)).start()

    sys.unraisablehook = unraisable
    for name in STOPPING:
        number = getattr(signal, name, None)
        # With nohup, the program continues without a terminal.
        if number is not None and not (name == "SIGHUP" and signal.getsignal(number) == signal.SIG_IGN):
            signal.signal(number, handle)


@contextmanager
def leaving(left: str | Callable[[], str]) -> Iterator[None]:
    """Within this context, an interruption reports what the work has written so far."""
    try:
        yield
    except Interrupted as stop:
        stop.left = left if isinstance(left, str) else left()
        raise


def ignore_signals() -> None:
    """Ignore signals from now on, so that the end of a finished process is not reported as an interruption."""
    for name in STOPPING:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)


def leave(message: str, code: int) -> None:
    """Print a sentence on stderr and end the process.

    This does not wait for worker threads that are still busy, or for a full stdout.
    """
    try:
        print(one_line(message), file=sys.stderr, flush=True)
    finally:
        # Also if stderr is closed.
        os._exit(code)

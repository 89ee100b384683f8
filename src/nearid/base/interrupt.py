"""Ctrl-C and other signals to stop, on their way out."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

from nearid.base.printable import one_line

# Signals that stop a program: of Ctrl-C, of `kill` and batch systems, of a terminal that is closed.
STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")
# Seconds in which a repeated signal is the same one: programs that start others often pass on what these got as well.
SAME = 1.0
# Seconds after which a signal is sent again that was lost.
AGAIN = 0.05


class Interrupted(BaseException):
    """A signal to stop, in a form that no library in between takes for its own.

    Attributes
    ----------
    code : int
        Exit code, as shells give it.
    left : str
        What the interrupted work has left behind; see `leaving`.
    """

    left = "nothing was written"

    def __init__(self, number: int = signal.SIGINT) -> None:
        self.code = 128 + number


def catch_signals() -> None:
    """Let the first signal to stop raise `Interrupted`, and a later one end the process at once."""
    first: float | None = None

    def handle(number: int, frame: object) -> None:
        nonlocal first
        if first is None:
            first = time.monotonic()
            raise Interrupted(number)
        if time.monotonic() - first > SAME:
            leave("nearid: interrupted again, and stopped at once. Finished work is kept.", 128 + number)

    def unraisable(lost: sys.UnraisableHookArgs) -> None:
        """Python drops what is raised while it deletes an object: the signal is sent once more, a moment later."""
        nonlocal first
        if not isinstance(lost.exc_value, Interrupted):
            sys.__unraisablehook__(lost)
            return
        first = None
        Timer(AGAIN, os.kill, (os.getpid(), lost.exc_value.code - 128)).start()

    sys.unraisablehook = unraisable
    for name in STOPPING:
        number = getattr(signal, name, None)
        # nohup asks to go on without a terminal.
        if number is not None and not (name == "SIGHUP" and signal.getsignal(number) == signal.SIG_IGN):
            signal.signal(number, handle)


@contextmanager
def leaving(left: str | Callable[[], str]) -> Iterator[None]:
    """Let an interruption of this part tell what it has left behind."""
    try:
        yield
    except Interrupted as stop:
        stop.left = left if isinstance(left, str) else left()
        raise


def ignore_signals() -> None:
    """Let the end of a process that has done its work not be taken for an interruption."""
    for name in STOPPING:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)


def leave(message: str, code: int) -> None:
    """Print a sentence on stderr and end the process.

    Worker threads may still be busy with their blocks, and stdout may be full: neither is waited for.
    """
    try:
        print(one_line(message), file=sys.stderr, flush=True)
    finally:
        # Also where nobody reads stderr any more.
        os._exit(code)

"""What goes to which stream: the result to stdout, everything else to stderr, whether or not somebody reads it."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, TextIO

from nearid.base.printable import one_line


def say(message: str) -> None:
    """Print a message on stderr, in one line. Every message of nearid goes out here; results go to stdout.

    A message may name columns, labels or files, whose names can hold escape sequences: none of them is sent.
    """
    print(one_line(message), file=sys.stderr, flush=True)


class _Lost(io.RawIOBase):
    """A stream that loses what cannot be written, as to a full disk or to a reader who has left."""

    def __init__(self, number: int) -> None:
        self._number = number

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def isatty(self) -> bool:
        return os.isatty(self._number)

    def write(self, data: Any, /) -> int:
        try:
            return os.write(self._number, data)
        except OSError:
            return memoryview(data).nbytes


def tolerant(stream: TextIO) -> TextIO:
    """A text stream to the same place, on which writing never fails: messages that nobody can read change no result.

    It holds nothing back, either: what Python cannot write when it ends would change the exit code.
    """
    buffer = io.BufferedWriter(_Lost(stream.fileno()))
    return io.TextIOWrapper(buffer, encoding=stream.encoding, errors="backslashreplace", line_buffering=True)


@contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Send to stderr what is printed meanwhile, by this process or by programs that it starts."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        # What was printed past the redirection must not wait for the old stdout. stderr may be full.
        with suppress(OSError):
            sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)

"""Output streams: results go to stdout and everything else to stderr, even if nobody reads it."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, TextIO

from nearid.base.printable import one_line


def say(message: str) -> None:
    """Print a message on stderr in one line. All messages of nearid use this function, and results go to stdout.

    Names of columns, labels or files in a message may contain escape sequences, which are removed.
    """
    print(one_line(message), file=sys.stderr, flush=True)


class _Lost(io.RawIOBase):
    """A stream that ignores errors in writing, for example to a full disk or a closed pipe."""

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
    """Return a text stream to the same file on which writing never fails, so that lost messages change no result.

    The stream writes each line at its end. A failed flush at exit would change the exit code, and here none fails.
    """
    buffer = io.BufferedWriter(_Lost(stream.fileno()))
    return io.TextIOWrapper(buffer, encoding=stream.encoding, errors="backslashreplace", line_buffering=True)


@contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Redirect stdout to stderr within this context, for this process and for programs that it starts."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        # Text that is still buffered must not go to the old stdout. stderr may be full.
        with suppress(OSError):
            sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)

"""The entry point: streams and signals before anything slow is imported, and every way out as one sentence."""

from __future__ import annotations

import errno
import io
import os
import sys

from nearid.base.errors import NearidError
from nearid.base.interrupt import Interrupted, catch_signals, ignore_signals, leave


def main() -> None:
    """Run the command line.

    Exit codes: 0 done, 1 output cannot be written, or its reader has left, 2 bad input, 3 cells failed, 128 + n ended
    by the signal n (130 for Ctrl-C).
    """
    _open_streams()
    catch_signals()
    try:
        _run()
    except SystemExit:
        # All is done, and the interpreter would take its handlers away before it ends.
        ignore_signals()
        raise
    except NearidError as error:
        leave(f"nearid: {error}", 2)
    except MemoryError as error:
        leave(f"nearid: there is not enough memory{f' ({error})' if str(error) else ''}. Use fewer rows or columns.", 2)
    except OSError as error:
        what = "write the output" if error.filename is None else f"use {error.filename}"
        closed = error.errno == errno.EBADF and error.filename is None
        why = "stdout is closed" if closed else error.strerror or error
        leave(f"nearid: could not {what}: {why}.", 1)
    except Interrupted as stop:
        leave(f"nearid: interrupted; {stop.left}.", stop.code)


def _run() -> None:
    from nearid.cli.commands import app

    app(prog_name="nearid")


def _open_streams() -> None:
    """Let every name be printed, and no file that is opened later take the number of a stream that is closed."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            # The lowest number that is free: that of this stream. A result that is printed to a closed stdout is lost,
            # so that writing there must fail; messages to a closed stderr are not missed.
            flags = os.O_RDWR if name == "stderr" else os.O_RDONLY
            setattr(sys, name, open(os.open(os.devnull, flags), "r" if number == 0 else "w"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")

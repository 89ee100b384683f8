"""The entry point: it prepares streams and signals before slow imports, and ends every failure with one sentence."""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
import warnings
from types import TracebackType
from typing import TextIO

from nearid.base.errors import NearidError
from nearid.base.interrupt import Interrupted, catch_signals, ignore_signals, leave
from nearid.base.printable import printable
from nearid.base.streams import tolerant


def main() -> None:
    """Run the command line.

    Exit codes: 0 when the result was printed, 1 when it could not be written to stdout or its reader has left, 2 for
    bad input, 3 when cells failed, 128 + n when the signal n ended the command (130 for Ctrl-C). Messages that cannot
    be written to stderr change no exit code.
    """
    _open_streams()
    catch_signals()
    try:
        _run()
    except SystemExit:
        # The work is done. The interpreter removes its signal handlers before it ends, so a late signal would count.
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

    try:
        # The exit code that a command gives; None for one that has done its work.
        code = app(prog_name="nearid", standalone_mode=False)
    except Exception as error:
        # What Typer cannot read of the command line, which may hold names of files, it shows as several lines.
        if not hasattr(error, "format_message"):
            raise
        shown = io.StringIO()
        error.show(file=shown)  # type: ignore[attr-defined]
        sys.stderr.write(printable(shown.getvalue()))
        code = getattr(error, "exit_code", 2)
    sys.exit(code)


def _open_streams() -> None:
    """Make the streams safe: any name can be printed, and messages that cannot be written are lost without an error.

    A stream that is closed is opened on the null device, so that no later file gets its number.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            # The system gives the lowest free number, which is that of this stream. A result that is printed to a
            # closed stdout would be lost, so writing there must fail. Messages to a closed stderr may be lost.
            flags = os.O_RDWR if name == "stderr" else os.O_RDONLY
            setattr(sys, name, open(os.open(os.devnull, flags), "r" if number == 0 else "w"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    real = sys.__stderr__
    if real is not None and sys.stderr is real:
        sys.stderr = tolerant(real)
    sys.excepthook, warnings.showwarning = _show_error, _show_warning


def _show_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an error that nearid does not expect, as Python does, without what a terminal would obey."""
    sys.stderr.write(printable("".join(traceback.format_exception(kind, error, trace))))


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning of a library, as Python does, without what a terminal would obey."""
    (file or sys.stderr).write(printable(warnings.formatwarning(str(message), category, filename, lineno, line)))

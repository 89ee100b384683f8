"""The `nearid` command. Each command lives in its own file and loads its tools only when it runs."""

from __future__ import annotations

import os
import signal
import sys

import typer

from nearid import __version__
from nearid.cli.apply import apply
from nearid.cli.compare import compare
from nearid.cli.data import data
from nearid.cli.deconfound import deconfound
from nearid.cli.demo import demo
from nearid.cli.extract import extract
from nearid.cli.heads import heads
from nearid.cli.help import Command, plain
from nearid.cli.interrupt import Interrupted
from nearid.cli.lipschitz import lipschitz
from nearid.cli.reproduce import reproduce
from nearid.cli.score import score
from nearid.cli.unmix import unmix
from nearid.errors import NearidError

app = plain("nearid", "Are learned representations the same, are they the true ones? Up to what, and how nearly?")
for run in (compare, extract, heads, score, unmix, apply, lipschitz, deconfound, reproduce, demo):
    app.command(cls=Command)(run)
app.add_typer(data)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"nearid {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
) -> None:
    pass


def _interrupt(*_: object) -> None:
    raise Interrupted


def main() -> None:
    """Run the command line: 0 done, 1 output cannot be written, 2 bad input, 3 cells failed, 130 interrupted."""
    signal.signal(signal.SIGINT, _interrupt)
    try:
        app()
        sys.stdout.flush()
    except NearidError as error:
        _leave(f"nearid: {error}", 2)
    except BrokenPipeError:
        # The reader has seen enough (| head). Nothing may be flushed into the closed pipe at exit.
        os._exit(0)
    except OSError as error:
        _leave(f"nearid: could not write the output: {error.strerror or error}.", 1)
    except Interrupted as stop:
        _leave(f"nearid: interrupted; {stop.left}.", 130)


def _leave(message: str, code: int) -> None:
    print(message, file=sys.stderr, flush=True)
    # Worker threads may still be busy with their blocks, and stdout may be full: neither is waited for.
    os._exit(code)

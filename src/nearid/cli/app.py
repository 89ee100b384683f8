"""The `nearid` command. Each command lives in its own file and loads its tools only when it runs."""

from __future__ import annotations

import sys

import typer

from nearid import __version__
from nearid.cli.compare import compare
from nearid.cli.demo import demo
from nearid.errors import NearidError

app = typer.Typer(
    name="nearid",
    help="Are learned representations the same? Up to what, and how nearly?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command()(compare)
app.command()(demo)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"nearid {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
) -> None:
    pass


def main() -> None:
    """Run the command line: 0 done, 2 bad input, 130 interrupted."""
    try:
        app()
    except NearidError as error:
        print(f"nearid: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("nearid: interrupted; nothing was written.", file=sys.stderr)
        sys.exit(130)

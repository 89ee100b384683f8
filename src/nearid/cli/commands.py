"""The commands of `nearid`. Each lives in its own file and loads its tools only when it runs."""

from __future__ import annotations

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
from nearid.cli.lipschitz import lipschitz
from nearid.cli.reproduce import reproduce
from nearid.cli.score import score
from nearid.cli.unmix import unmix

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

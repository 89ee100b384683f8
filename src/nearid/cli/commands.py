"""The commands of `nearid`. Each lives in its own file and loads its tools only when it runs."""

from __future__ import annotations

import typer

from nearid import __version__
from nearid.cli.demo import demo
from nearid.lab.data.command import data
from nearid.lab.framework.command import reproduce
from nearid.questions.compare.command import compare
from nearid.questions.deconfound.command import deconfound
from nearid.questions.extract.command import extract
from nearid.questions.heads.command import heads
from nearid.questions.lipschitz.command import lipschitz
from nearid.questions.score.command import score
from nearid.questions.unmix.apply import apply
from nearid.questions.unmix.command import unmix
from nearid.show.help import Command, plain

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

"""`nearid data`: the data sets there are, where they are, and getting them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearid.base.interrupt import leaving
from nearid.show.help import Command, plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from nearid.lab.data.base import FileSet

data = plain("data", "Data sets: what there is, where it is, and getting it.")
NOTE = (
    "A number after a factor counts its levels. nearid data fetch NAME gets a data set.\n"
    "address: who names it. No address could be tried where this was written; --json says what is known of each."
)
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Nothing but errors on stderr.")]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="A data set, as `nearid data list` tells.")]


@data.command("list", cls=Command)
def list_all(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    quiet: QuietOption = False,
) -> None:
    """List the data sets: images, words or networks, factors, licence, and which are here."""
    from nearid.lab.data.registry import datasets
    from nearid.show.deliver import show

    if as_json:
        typer.echo(json.dumps([_record(dataset) for dataset in datasets().values()], indent=2, allow_nan=False))
    else:
        show(lambda width: _table(datasets().values()))


@data.command(cls=Command)
def path(name: NameArgument) -> None:
    """Print the folder of a data set; if it is not here, say how to get it."""
    from nearid.lab.data.registry import dataset, locate

    typer.echo(locate(dataset(name)))


@data.command(cls=Command)
def fetch(
    name: NameArgument,
    given: Annotated[
        list[Path] | None,
        typer.Option("--from", metavar="FILE", help="Use a file that is here instead of downloading it; repeatable."),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Get it anew, though it is here.")] = False,
    quiet: QuietOption = False,
) -> None:
    """Download a data set into the cache, check it and unpack it. After Ctrl-C the same command goes on."""
    from nearid.base.progress import reporting
    from nearid.lab.data.fetch import fetch as run, left_behind
    from nearid.lab.data.registry import dataset

    wanted = dataset(name)

    def say(text: str) -> None:
        if not quiet:
            typer.echo(text, err=True)

    say(f"{wanted.title}: licence {wanted.licence}. Cite {wanted.citation}.")
    with leaving(lambda: left_behind(wanted)), reporting(not quiet) as progress:
        folder = run(
            wanted,
            given=tuple(given or ()),
            again=again,
            progress=progress,
            say=say,
        )
    typer.echo(folder)


def _record(dataset: FileSet) -> dict[str, Any]:
    from dataclasses import asdict

    from nearid.lab.data.base import Dataset
    from nearid.lab.data.registry import DOUBTFUL, address_of, find

    record = {key: value for key, value in vars(dataset).items() if key not in ("read", "layouts", "folders")}
    here, doubt = find(dataset), DOUBTFUL.get(dataset.name)
    if isinstance(dataset, Dataset):
        record["factors"] = [asdict(factor) for factor in dataset.factors]
    record |= {"files": [asdict(file) for file in dataset.files], "address": address_of(dataset)}
    return record | {"address_note": doubt and doubt.why, "path": None if here is None else str(here)}


def _table(datasets: Iterable[FileSet]) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    from nearid.lab.data.base import Dataset
    from nearid.lab.data.registry import address_of, find

    table = Table(box=SIMPLE_HEAD)
    for head in ("name", "holds", "factors", "licence", "address", "here"):
        table.add_column(head, overflow="fold", no_wrap=head == "name", justify="right" if head == "holds" else "left")
    for dataset in datasets:
        factors = dataset.factors if isinstance(dataset, Dataset) else ()
        listed = ", ".join(f"{f.name} {f.size}" if f.size else f.name for f in factors)
        here = str(find(dataset) or "no") if dataset.files else "with scikit-learn"
        cells = (dataset.amount, listed, dataset.licence, address_of(dataset), here)
        table.add_row(dataset.name, *map(escape, cells))
    return Group(table, Text(NOTE))

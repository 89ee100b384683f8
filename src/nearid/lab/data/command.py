"""`nearid data`: the data sets there are, where they are, and getting them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearid.base.interrupt import leaving
from nearid.show.help import Command, plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from nearid.lab.data.base import FileSet

data = plain("data", "Data sets: what there is, where it is, and getting it.")
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="A data set, as `nearid data list` tells.")]


@data.command("list", cls=Command)
def list_all(as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False) -> None:
    """List the data sets: images, words or networks, factors, licence, and which are here."""
    from nearid.lab.data.registry import datasets
    from nearid.show.deliver import show

    if as_json:
        typer.echo(json.dumps([_told(dataset) for dataset in datasets()], indent=2, allow_nan=False))
    else:
        show(lambda width: _table(datasets()))


@data.command(cls=Command)
def path(name: NameArgument) -> None:
    """Print the folder of a data set; if it is not here, say how to get it."""
    from nearid.lab.data.places import locate
    from nearid.lab.data.registry import dataset

    typer.echo(locate(dataset(name)))


@data.command(cls=Command)
def fetch(
    name: NameArgument,
    given: Annotated[
        list[Path] | None,
        typer.Option("--from", metavar="FILE", help="Use a file that is here instead of downloading it; repeatable."),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Get it anew, though it is here.")] = False,
) -> None:
    """Download a data set into the cache, check it and unpack it. After Ctrl-C the same command goes on."""
    from nearid.base.progress import reporting
    from nearid.lab.data.fetch import fetch as run
    from nearid.lab.data.fetch import left_behind
    from nearid.lab.data.registry import dataset

    wanted = dataset(name)
    typer.echo(f"{wanted.title}: licence {wanted.licence}. Cite {wanted.citation}.", err=True)
    with leaving(lambda: left_behind(wanted)), reporting() as progress:
        folder = run(
            wanted,
            given=tuple(given or ()),
            again=again,
            progress=progress,
            say=lambda text: typer.echo(text, err=True),
        )
    typer.echo(folder)


def _told(dataset: FileSet) -> dict[str, Any]:
    from dataclasses import asdict

    from nearid.lab.data.base import Dataset
    from nearid.lab.data.places import find

    told = {key: value for key, value in vars(dataset).items() if key not in ("read", "layouts", "folders")}
    here = find(dataset)
    if isinstance(dataset, Dataset):
        told["factors"] = [asdict(factor) for factor in dataset.factors]
    told["files"] = [asdict(file) for file in dataset.files]
    return told | {"path": None if here is None else str(here)}


def _table(datasets: list[FileSet]) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    from nearid.lab.data.places import find

    table = Table(box=SIMPLE_HEAD)
    for head in ("name", "holds", "factors", "licence", "here"):
        table.add_column(head, overflow="fold", no_wrap=head == "name", justify="right" if head == "holds" else "left")
    for dataset in datasets:
        here = "with scikit-learn" if not dataset.files else str(find(dataset) or "no")
        table.add_row(dataset.name, *map(escape, (*_holds(dataset), dataset.licence, here)))
    return Group(table, Text("A number after a factor counts its levels. nearid data fetch NAME gets a data set."))


def _holds(dataset: FileSet) -> tuple[str, str]:
    """How many images of what size, words or networks, and the factors."""
    from nearid.lab.data.base import Corpus, Dataset, Weights

    if isinstance(dataset, Corpus):
        return f"{dataset.words:,}\nwords", ""
    if isinstance(dataset, Weights):
        return f"{len(dataset.networks)}\nnetworks", ""
    assert isinstance(dataset, Dataset)
    count = "" if dataset.images is None else f"{dataset.images:,}\n"
    factors = ", ".join(f"{f.name} {f.size}" if f.size else f.name for f in dataset.factors)
    return f"{count}{' x '.join(map(str, dataset.shape))}", factors

"""`nearid data`: list data sets, find them on this machine, and download them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearid.base.interrupt import leaving
from nearid.show.command import JSON, QUIET
from nearid.show.help import INPUT, OUTPUT, Command, Guide, guided, plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from nearid.lab.data.base import FileSet

data = plain(
    "data",
    "List the data sets of the lab, find them on this machine, and download them.",
    Guide("lab/data", ("nearid data list", "nearid data fetch mnist")),
)
NOTE = (
    "The number after a factor is its number of levels. To get a data set: nearid data fetch NAME\n"
    "address: the source that names the download address. No address was tested when this list was written. "
    "--json prints what is known about each."
)
QuietOption = Annotated[bool, QUIET]
NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of a data set. nearid data list prints all names.")
]


@data.command("list", cls=Command)
@guided("lab/data", "nearid data list", "nearid data list --json")
def list_all(
    as_json: Annotated[bool, JSON] = False,
    quiet: QuietOption = False,
) -> None:
    """List the data sets with their size, factors, licence, and their folder on this machine."""
    from nearid.lab.data.registry import datasets
    from nearid.show.deliver import show, show_json

    if as_json:
        show_json([_record(dataset) for dataset in datasets().values()])
    else:
        show(lambda width: _table(datasets().values()))


@data.command(cls=Command)
@guided("lab/data", "nearid data path dsprites", 'cd "$(nearid data path mnist)"')
def path(name: NameArgument) -> None:
    """Print the folder of a data set. If the data set is not on this machine, print how to get it."""
    from nearid.lab.data.registry import dataset, locate
    from nearid.show.deliver import show_path

    show_path(locate(dataset(name)))


@data.command(cls=Command)
@guided("lab/data", "nearid data fetch mnist", "nearid data fetch coil20 --from coil-20-proc.zip --again")
def fetch(
    name: NameArgument,
    given: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Use this file instead of downloading it. May be repeated.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Download the data set again even if it is already on this machine.", rich_help_panel=OUTPUT
        ),
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Download a data set into the cache, check it and unpack it. After Ctrl-C the same command continues."""
    from nearid.base.progress import reporting
    from nearid.base.streams import say
    from nearid.lab.data.fetch import fetch as run, left_behind
    from nearid.lab.data.registry import dataset
    from nearid.show.deliver import show_path

    wanted = dataset(name)

    def tell(text: str) -> None:
        if not quiet:
            say(text)

    tell(f"{wanted.title}: licence {wanted.licence}. Cite {wanted.citation}.")
    with leaving(lambda: left_behind(wanted)), reporting(not quiet) as progress:
        folder = run(
            wanted,
            given=tuple(given or ()),
            again=again,
            progress=progress,
            say=tell,
        )
    show_path(folder)


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
    from rich.table import Table
    from rich.text import Text

    from nearid.base.printable import one_line
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
        # A path may contain markup or an escape sequence.
        table.add_row(dataset.name, *(Text(one_line(cell)) for cell in cells))
    return Group(table, Text(NOTE))

"""`nearid apply`: map the rows of a file with a model that `nearid unmix` or `nearid deconfound` wrote."""

from pathlib import Path
from typing import Annotated

import typer

from nearid.show.command import ENGINE, QUIET
from nearid.show.help import COMPUTED, INPUT, OUTPUT, WHERE, guided


@guided(
    "guide/unmix",
    "nearid apply ica new.npy -o components.npy",
    "nearid apply ica components.npy -o rows.npy --inverse",
)
def apply(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder that nearid unmix, or deconfound -o, wrote.")],
    source: Annotated[str, typer.Argument(metavar="X", help="File with one row per example.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="File to write: .npy, .parquet, .safetensors or .zarr. Cleaned rows also as the table or .h5ad that "
            "came in.",
            rich_help_panel=OUTPUT,
        ),
    ],
    inverse: Annotated[
        bool, typer.Option("--inverse", help="X holds components. Write rows.", rich_help_panel=COMPUTED)
    ] = False,
    key: Annotated[
        str | None, typer.Option(help="Entry to read from a file that holds several arrays.", rich_help_panel=INPUT)
    ] = None,
    ids: Annotated[
        str | None,
        typer.Option(help="Column (or entry) with row ids. They are kept beside the output.", rich_help_panel=INPUT),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            help="Columns of a table to use, as 'emb_*,size'. Default: all numeric columns.", rich_help_panel=INPUT
        ),
    ] = None,
    exclude: Annotated[
        str | None,
        typer.Option(help="Columns of a table to leave out, as 'plate,well_*'.", rich_help_panel=INPUT),
    ] = None,
    drop_nonfinite: Annotated[
        bool,
        typer.Option("--drop-nonfinite", help="Write NaN for rows with a NaN or an infinity.", rich_help_panel=INPUT),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file that exists.", rich_help_panel=OUTPUT)
    ] = False,
    engine: Annotated[str | None, typer.Option(help=ENGINE, rich_help_panel=WHERE)] = None,
    quiet: Annotated[bool, QUIET] = False,
) -> None:
    """Write the components of the rows of a file, block by block, with a fitted model."""
    from nearid.arrays import open_rows
    from nearid.arrays.rows import single_rows
    from nearid.base.progress import reporting
    from nearid.base.streams import say
    from nearid.ica.model import check_model
    from nearid.ica.stream import check_output, refuse_input
    from nearid.questions.deconfound.cleaned import is_cleaning

    if is_cleaning(model):
        _clean(model, source, out, inverse=inverse, key=key, overwrite=overwrite, engine=engine, quiet=quiet)
        return
    check_model(model)
    check_output(out, overwrite=overwrite)
    refuse_input(out, source)
    # This loads scikit-learn, which takes seconds.
    from nearid.questions.unmix.result import ICA

    fitted = ICA.load(model)
    with single_rows():
        rows = open_rows(source, key=key, ids=ids, features=features, exclude=exclude)
    with reporting(not quiet) as progress:
        fitted.transform_to(
            rows,
            out,
            inverse=inverse,
            overwrite=overwrite,
            drop_nonfinite=drop_nonfinite,
            engine=engine,
            progress=progress,
        )
    if not quiet:
        say(f"{rows.shape[0]:,} rows written to {out}")


def _clean(
    model: Path,
    source: str,
    out: Path,
    *,
    inverse: bool,
    key: str | None,
    overwrite: bool,
    engine: str | None,
    quiet: bool,
) -> None:
    """Write the rows of a file without the components that `nearid deconfound -o` dropped."""
    from nearid.arrays.names import few
    from nearid.arrays.rows import single_rows
    from nearid.base.errors import InputError
    from nearid.base.progress import reporting
    from nearid.base.streams import say
    from nearid.engines.local import open_engine
    from nearid.questions.deconfound.cleaned import check_cleaned, check_columns, read_cleaning, write_cleaned
    from nearid.questions.deconfound.design import open_again

    if inverse:
        raise InputError(f"{model} takes components away, which cannot be undone. Use --inverse with a model of unmix.")
    check_cleaned(source, out, overwrite=overwrite, model=False)
    affine, columns, usual = read_cleaning(model)
    with single_rows():
        rows = open_again(source, key, columns, usual)
    check_columns(source, rows, out)
    if rows.shape[1] != len(affine.origin):
        named = "" if columns is None else f" ({few(map(repr, columns), 3)})"
        raise InputError(
            f"{rows.name} has {rows.shape[1]} columns, but {model} cleans {len(affine.origin)}{named}. Give a table "
            "with these names, or an array with these columns in this order."
        )
    with reporting(not quiet) as progress, open_engine(engine) as opened:
        tick = progress("cleaned rows", len(affine.cut(rows.shape[0])))
        write_cleaned(source, rows, affine, out, key=key or usual, engine=opened, tick=tick)
    if not quiet:
        say(f"{rows.shape[0]:,} rows written to {out}")

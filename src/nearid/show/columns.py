"""The options that choose the columns of a table."""

from __future__ import annotations

from typing import Annotated

import typer

FeaturesOption = Annotated[
    str | None,
    typer.Option(
        metavar="PATTERNS", help="Columns of a table to use, as 'emb_*,size'; all numeric columns by default."
    ),
]
ExcludeOption = Annotated[
    str | None,
    typer.Option(metavar="PATTERNS", help="Columns of a table to leave out, as 'plate,well_*': metadata, for example."),
]

"""The view of an extraction: its layers, their widths and their files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nearid.base.estimate import Estimate
from nearid.base.limits import readable
from nearid.show.figures import Dots
from nearid.show.view import GOOD, Column, Row, Table, View, counted

if TYPE_CHECKING:
    from nearid.questions.extract.result import Extraction


def view(extraction: Extraction) -> View:
    """The whole view."""
    made, records = extraction.provenance, extraction._records()
    place = "in memory" if extraction.folder is None else f"in {extraction.folder}"
    rows = [
        Row([r["layer"], r["columns"], r["file"], readable(r["rows"] * r["columns"] * np.dtype(r["dtype"]).itemsize)])
        for r in records
    ]
    widths = [Estimate(float(r["columns"])) for r in records]
    return View(
        question="Which layers were extracted?",
        subject=f"{made['model']['name']}: {counted(made['rows'], 'row')}, pool {made['options']['pool']}",
        headline=f"{counted(len(records), 'layer')} of {counted(made['rows'], 'row')}, {place}",
        reason=f"From {counted(made['data']['inputs'], 'input')} of {made['data']['name']}.",
        colour=GOOD,
        alerts=extraction.alerts,
        tables=[Table("Layers", [Column("layer"), Column("columns"), Column("file", left=True), Column("size")], rows)],
        figures=[Dots("Columns of each layer", "", "columns", [r["layer"] for r in records], {"columns": widths})],
        provenance=made,
    )

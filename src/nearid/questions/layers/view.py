"""What a person sees of layers against layers."""

from __future__ import annotations

import numpy as np

from nearid.questions.layers.result import LayerComparison, is_error, measures
from nearid.show.figures import TARGET, HeatMap
from nearid.show.view import Cell, Column, Row, Table, View, number

AGREEMENT = "1 is full agreement; unrelated rows are about 0, or below."
ERROR = "0 is full agreement: errors over the diameter of the target layer."
# Up to so many columns a heat map has its values in the cells, and a matrix is also a table in the terminal.
WRITTEN, TABLED = 16, 12


def view(c: LayerComparison) -> View:
    """The nearest layers, a matrix and a heat map for each measure."""
    titles = {name: measures().get(name, name) for name in c.values}
    sizes = f"{len(c.layers[0])} x {len(c.layers[1])} layers, n = {c.n:,}"
    return View(
        question="Which layers agree?",
        subject=f"{c.names[0]} -> {c.names[1]}: {sizes}",
        headline=_headline(c, titles),
        colour=TARGET,
        alerts=c.alerts,
        tables=[_nearest(c, titles), *(_matrix(c, name, title) for name, title in titles.items())],
        figures=[_heat_map(c, name, title) for name, title in titles.items()],
        provenance=c.provenance,
    )


def _headline(c: LayerComparison, titles: dict[str, str]) -> str:
    """The two layers that are most alike by the first measure; a layer beside itself says nothing."""
    measure, title = next(iter(titles.items()))
    values = c.values[measure].copy()
    if c.names[0] == c.names[1] and c.layers[0] == c.layers[1] and len(values) > 1:
        np.fill_diagonal(values, np.nan)
    if not np.isfinite(values).any():
        return "No two layers could be compared"
    at = int(np.nanargmin(values) if is_error(measure) else np.nanargmax(values))
    i, j = np.unravel_index(at, values.shape)
    pair = f"{c.layers[0][i]} of {c.names[0]} and {c.layers[1][j]} of {c.names[1]}"
    return f"The most similar layers are {pair}: {title}, {number(float(values[i, j]))}"


def _nearest(c: LayerComparison, titles: dict[str, str]) -> Table:
    columns = [Column("layer")]
    for measure in titles:
        columns += [Column(f"{measure}\nnearest", left=True), Column(f"{measure}\nvalue")]
    nearest = {measure: c.nearest(measure) for measure in titles}
    rows = [
        Row([layer, *(cell for own in nearest.values() for cell in own.get(layer, (None, None)))])
        for layer in c.layers[0]
    ]
    return Table(f"The layer of {c.names[1]} that is nearest to each layer of {c.names[0]}", columns, rows)


def _matrix(c: LayerComparison, measure: str, title: str) -> Table:
    columns = [Column("layer"), *(Column(str(j)) for j in range(len(c.layers[1])))]
    rows = []
    for layer, values in zip(c.layers[0], c.values[measure], strict=True):
        cells: list[Cell] = [layer, *map(float, values)]
        rows.append(Row(cells))
    note = f"Columns: {', '.join(f'{j} {layer}' for j, layer in enumerate(c.layers[1]))}"
    title = f"{title}: {c.names[0]} (rows) -> {c.names[1]} (columns)"
    return Table(title, columns, rows, note, folded=len(c.layers[1]) > TABLED)


def _heat_map(c: LayerComparison, measure: str, title: str) -> HeatMap:
    """Source layers by target layers, the first at the top left; bright is near."""
    values, error = c.values[measure], is_error(measure)
    known = values[np.isfinite(values)]
    return HeatMap(
        title,
        ERROR if error else AGREEMENT,
        {"": values},
        c.layers[0],
        c.layers[1],
        c.names[1],
        c.names[0],
        low=float(min(0.0, known.min(initial=0.0))),
        high=float(known.max(initial=0.0)) if error and len(known) else 1.0,
        digits=2 if len(c.layers[1]) <= WRITTEN else None,
        reverse=error,
    )

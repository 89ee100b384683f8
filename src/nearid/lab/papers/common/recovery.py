"""Figures that experiments on recovery share: true against recovered, at the first seed of each row."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from nearid.lab.framework.experiment import Row
from nearid.lab.framework.result import ExperimentResult
from nearid.show.figures import Figure, HeatMap, scatter_matrix


def first_views(result: ExperimentResult, rows: Sequence[Row] | None = None) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Each row, or each of some rows, that has a finished cell, with the views of its first seed."""
    for row in result.rows if rows is None else rows:
        for finished in result.of_row(row.key)[:1]:
            yield row, finished.data["views"]


def recovery_figures(
    result: ExperimentResult,
    drawn: Sequence[Row] | None = None,
    *,
    scatter: tuple[str, str],
    across: tuple[str, str],
    down: tuple[str, str],
    heat: tuple[str, str],
    panels: Mapping[str, str],
    rows: str,
    columns: str,
    names: Sequence[str] = (),
) -> list[Figure]:
    """The first seed of each row: two sets of points against each other, and correlations before and after.

    Parameters
    ----------
    drawn : sequence of Row, optional
        All by default.
    scatter, heat : tuple of str
        Titles of the figures, after that of the row, and their captions, in which {n} is the number of points.
    across, down : tuple of str
        The view that holds the points, and the name of a column with {} for its number or name.
    panels : mapping
        Titles of correlations by their views; a view that is not there is left out.
    rows, columns : str
        Names of rows and columns of the correlations, with {} as above.
    names : sequence of str
        What columns are called; they are counted by default.
    """
    figures: list[Figure] = []
    for row, views in first_views(result, drawn):
        sides = [
            {
                name.format(label): values
                for label, values in zip(_labels(names), zip(*views[key], strict=True), strict=False)
            }
            for key, name in (across, down)
        ]
        shown = {title: views[key] for key, title in panels.items() if key in views}
        height, width = len(next(iter(shown.values()))), len(next(iter(shown.values()))[0])
        figures += [
            scatter_matrix(f"{row.title}: {scatter[0]}", scatter[1].format(n=len(views[across[0]])), *sides),
            HeatMap(
                f"{row.title}: {heat[0]}",
                heat[1],
                shown,
                [rows.format(k + 1) for k in range(height)],
                [columns.format(label) for label, _ in zip(_labels(names), range(width), strict=False)],
            ),
        ]
    return figures


def _labels(names: Sequence[str]) -> Iterator[str]:
    yield from names or map(str, count(1))

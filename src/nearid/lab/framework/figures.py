"""Figures and texts that an experiment supplies, as data: the report knows how to draw each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Matrix = Sequence[Sequence[float]]
Coordinates = tuple[Sequence[float], Sequence[float]]


@dataclass(frozen=True)
class ScatterMatrix:
    """Every column of one side against every column of the other: true against recovered, or run against run.

    Attributes
    ----------
    across, down : mapping
        Columns by name, all of the same length; drawn along the horizontal and the vertical axes.
    """

    title: str
    caption: str
    across: Mapping[str, Sequence[float]]
    down: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class HeatMaps:
    """Matrices of values in [0, 1] side by side, such as correlations before and after.

    Attributes
    ----------
    panels : mapping
        Matrices by title, all of the same shape.
    rows, columns : sequence of str
        Names of the rows and columns.
    """

    title: str
    caption: str
    panels: Mapping[str, Matrix]
    rows: Sequence[str]
    columns: Sequence[str]


@dataclass(frozen=True)
class Scatter:
    """Points in one plane, and curves among them: a theory's, or one that was fitted.

    Attributes
    ----------
    x, y : str
        Names of the axes.
    points, curves : mapping
        Horizontal and vertical coordinates by the name of their group.
    names : mapping
        What the points of a group are called, for whoever points at one.
    labels : int
        Points of each group with a name that have it beside them in any case, from the first on.
    """

    title: str
    caption: str
    x: str
    y: str
    points: Mapping[str, Coordinates]
    curves: Mapping[str, Coordinates]
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    labels: int = 0


@dataclass(frozen=True)
class Dots:
    """A line for each row and on it a dot for each group, with an interval where there is one.

    Attributes
    ----------
    x : str
        Name of the axis.
    rows : sequence of str
        Names of the lines, from the top.
    groups : mapping
        By the name of the group, for every row: value and lower and upper end of its interval. NaN where there is none.
    """

    title: str
    caption: str
    x: str
    rows: Sequence[str]
    groups: Mapping[str, Sequence[tuple[float, float, float]]]


@dataclass(frozen=True)
class ImageGrid:
    """Images side by side in one picture, such as reconstructions below their originals.

    Attributes
    ----------
    picture : str
        Of `nearid.lab.papers.common.pictures.grid_picture`.
    rows, columns : sequence of str
        Names of the rows and columns of the grid, one for each.
    """

    title: str
    caption: str
    picture: str
    rows: Sequence[str]
    columns: Sequence[str]


@dataclass(frozen=True)
class Listing:
    """Tables as text, for more figures than the table of the experiment has."""

    title: str
    caption: str
    text: str


Slot = ScatterMatrix | HeatMaps | Scatter | Dots | ImageGrid | Listing

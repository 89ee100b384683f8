"""Figures as data; each draws itself as a plain Plotly description, and the page adds the colours of text and grid."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from nearid.base.estimate import Estimate

Drawing = dict[str, Any]
Numbers = Sequence[float] | np.ndarray
Coordinates = tuple[Numbers, Numbers]

# Okabe-Ito, legible in both colour schemes and for the colour-blind.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999")
SOURCE, TARGET, CHANCE = "#CC79A7", "#0072B2", "#999999"
DASHES = ("solid", "dash", "dot", "dashdot")
SYMBOLS = ("circle", "diamond", "cross")
# From here on along Viridis, black is more legible than white.
BRIGHT = 4 / 9
# Pixels: what a legend has from left to right, a character of it, the sign before its text, and a line of text; what
# an axis below a plot takes, and what is free above it.
LEGEND, LEGEND_CHARACTER, LEGEND_SIGN, TEXT_LINE, AXIS, TOP = 940, 7, 50, 20, 60, 20
# Characters of a name in a legend before it is broken; points that are drawn large; points that need WebGL.
NAME, FEW, MANY = 40, 100, 2000
# Characters that fit beside one another into a heat map of half the page, and of the whole.
HALF_CHARACTERS, WHOLE_CHARACTERS = 50, 130
# Numbers of this size and above leave no room for an axis below the largest float: they are left out like NaN.
BEYOND = 1e300
# From so many points on, an axis leaves out points that lie far from the middle 98%: more than half of their range.
CROWD, MIDDLE, FAR = 50, (0.01, 0.99), 0.5


@dataclass(frozen=True)
class Figure:
    """A titled figure.

    Attributes
    ----------
    title, caption : str
    """

    title: str
    caption: str

    # Whether it is drawn, not written; whether it takes the whole width of the page.
    draws = True
    wide = True

    @abstractmethod
    def draw(self) -> Drawing:
        """Data and layout, as Plotly takes them."""


@dataclass(frozen=True)
class Curve:
    """A line.

    Attributes
    ----------
    x, y : sequence of float
        A NaN leaves a gap.
    colour : str
        As #rrggbb; one of the palette by default.
    dash : {"solid", "dash", "dot", "dashdot"}
    markers : bool
        Whether each point has a dot.
    steps : bool
        Whether it is a histogram: steps, filled below.
    hover : str
        What is told where one points at the line.

    Examples
    --------
    >>> from nearid.show.figures import Curve, Lines
    >>> from nearid.show.svg import picture
    >>> curves = {"first run": Curve([0, 100, 200], [0.5, 0.8, 0.9], markers=True)}
    >>> figure = Lines("R2 in training", "", "steps", "R2", curves)
    >>> picture(figure).save("curve.svg")
    """

    x: Numbers
    y: Numbers
    colour: str = ""
    dash: str = "solid"
    markers: bool = False
    steps: bool = False
    hover: str = ""


@dataclass(frozen=True)
class Lines(Figure):
    """Curves in one plane.

    Attributes
    ----------
    title, caption : str
    x, y : str
        Names of the axes.
    curves : mapping of str to Curve or to a sequence of curves
        By their name in the legend; several curves may share one.
    log, log_x : bool
        Whether the vertical axis, and the horizontal one, are logarithmic.
    wide : bool
        Whether the figure takes the whole width of the page.

    Examples
    --------
    >>> from nearid.show.figures import Curve, Lines
    >>> from nearid.show.svg import picture
    >>> curves = {"first run": Curve([0, 100, 200], [0.5, 0.8, 0.9], markers=True)}
    >>> figure = Lines("R2 in training", "", "steps", "R2", curves)
    >>> picture(figure).save("curve.svg")
    """

    x: str
    y: str
    curves: Mapping[str, Curve | Sequence[Curve]]
    log: bool = False
    wide: bool = False
    log_x: bool = False

    def draw(self) -> Drawing:
        """Lines with a legend below."""
        data: list[dict[str, Any]] = []
        for k, (name, given) in enumerate(self.curves.items()):
            colour, dash = PALETTE[k % len(PALETTE)], DASHES[k // len(PALETTE) % len(DASHES)]
            for j, curve in enumerate([given] if isinstance(given, Curve) else given):
                line: dict[str, Any] = {
                    "color": curve.colour or colour,
                    "dash": dash if curve.dash == "solid" and not curve.colour else curve.dash,
                    "width": 1.5,
                }
                # A line through a single point cannot be seen.
                alone = int(np.isfinite(np.asarray(curve.y, dtype=float)).sum()) == 1
                trace: dict[str, Any] = {
                    "type": "scatter",
                    "mode": "lines+markers" if curve.markers or alone else "lines",
                    "name": wrapped(name, NAME),
                    "legendgroup": name,
                    "showlegend": j == 0,
                    "x": _listed(curve.x),
                    "y": _listed(curve.y),
                    "line": line,
                }
                if curve.markers or alone:
                    trace["marker"] = {"size": 8 if alone else 4}
                if curve.steps:
                    trace |= {"fill": "tozeroy", "opacity": 0.8, "line": {**line, "shape": "hvh"}}
                if curve.hover:
                    trace["hovertemplate"] = f"{plain(curve.hover)}: %{{x}}, %{{y:.4f}}<extra></extra>"
                data.append(trace)
        logarithmic = {"xaxis": self.x} if self.log_x else {}
        logarithmic |= {"yaxis": self.y} if self.log else {}
        axes = {
            axis: {"type": "log", "exponentformat": "power", "title": {"text": title}, "automargin": True}
            for axis, title in logarithmic.items()
        }
        return figure(data, self.x, self.y, **_legend_below(self.curves, 320), **axes)


@dataclass(frozen=True)
class Scatter(Figure):
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
    colours : mapping
        Of groups that have one of their own.
    """

    x: str
    y: str
    points: Mapping[str, Coordinates]
    curves: Mapping[str, Coordinates] = field(default_factory=dict)
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    labels: int = 0
    colours: Mapping[str, str] = field(default_factory=dict)

    wide = False

    def draw(self) -> Drawing:
        """A colour for each group of points; curves in grey, told apart by their dashes."""
        data: list[dict[str, Any]] = []
        # Curves may lead to the points that lie far away.
        frame = Frame.of(self.points.values()) if not self.curves else Frame(None, None)
        for k, (name, (x, y)) in enumerate(self.points.items()):
            colour = self.colours.get(name, PALETTE[k % len(PALETTE)])
            data.append(
                {
                    "type": "scattergl" if len(x) > MANY else "scatter",
                    "mode": "markers",
                    "name": wrapped(name, NAME),
                    **frame.inside(x, y),
                    "marker": {
                        "size": 8 if len(x) <= FEW else 4,
                        "opacity": 0.75,
                        "color": colour,
                        "symbol": SYMBOLS[k // len(PALETTE) % len(SYMBOLS)],
                    },
                    **self._named(name, colour),
                }
            )
        for k, (name, (x, y)) in enumerate(self.curves.items()):
            line = {"color": CHANCE, "dash": DASHES[k % len(DASHES)], "width": 2}
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": wrapped(name, NAME),
                    "x": _listed(x),
                    "y": _listed(y),
                    "line": line,
                }
            )
        edge = frame.edge(self.points.values())
        layout = _legend_below([*self.points, *self.curves, *(trace["name"] for trace in edge)], 340)
        axes = {
            axis: {"title": {"text": title}, "automargin": True, "range": list(ends)}
            for axis, title, ends in (("xaxis", self.x, frame.x), ("yaxis", self.y, frame.y))
            if ends is not None
        }
        return figure([*data, *edge], self.x, self.y, **layout, **axes)

    def _named(self, group: str, colour: str) -> dict[str, Any]:
        """What the points of a group are called: beside the first of them, and wherever one is pointed at."""
        if group not in self.names:
            return {}
        names = [plain(name) for name in self.names[group]]
        hover = {"customdata": names, "hovertemplate": f"%{{customdata}}<extra>{plain(group)}</extra>"}
        if not self.labels:
            return hover
        beside = {"mode": "markers+text", "text": names[: self.labels], "textposition": "top center"}
        return hover | beside | {"textfont": {"size": 10, "color": colour}}


@dataclass(frozen=True)
class Bars(Figure):
    """A bar for each row, of parts one after the other: those above 0 to the right, those below 0 to the left.

    Attributes
    ----------
    x : str
        Name of the axis.
    rows : sequence of str
        Names of the bars, from the top.
    parts : mapping
        By the name of the part, a number for every row; NaN where a row does not have it.
    colours : mapping
        Of parts that have one of their own.
    ends : tuple of float, optional
        Where the axis begins and ends; around the bars by default.
    name_width : int
        Characters of a row's name before it is broken.
    """

    x: str
    rows: Sequence[str]
    parts: Mapping[str, Numbers]
    colours: Mapping[str, str] = field(default_factory=dict)
    ends: tuple[float, float] | None = None
    name_width: int = 40

    def draw(self) -> Drawing:
        """Rows from the top, a colour for each part."""
        names = [wrapped(name, self.name_width) for name in _distinct(self.rows)]
        right, left = np.zeros(len(names)), np.zeros(len(names))
        data: list[dict[str, Any]] = []
        for k, (name, given) in enumerate(self.parts.items()):
            values = np.asarray(given, dtype=float)
            there = np.abs(values) < BEYOND
            values = np.where(there, values, 0.0)
            base = np.where(values >= 0, right, left)
            right, left = right + np.maximum(values, 0), left + np.minimum(values, 0)
            data.append(
                {
                    "type": "bar",
                    "orientation": "h",
                    "name": wrapped(name, NAME),
                    "y": [row for row, known in zip(names, there, strict=True) if known],
                    "x": _listed(values[there]),
                    "base": _listed(base[there]),
                    "marker": {"color": self.colours.get(name, PALETTE[k % len(PALETTE)])},
                }
            )
        across: dict[str, Any] = {"title": {"text": self.x}, "automargin": True, "zerolinewidth": 2}
        across |= {"rangemode": "tozero"} if self.ends is None else {"range": list(self.ends)}
        lines = {"type": "category", "categoryarray": names, "autorange": "reversed", "automargin": True, "dtick": 1}
        heights = [TEXT_LINE * (name.count("<br>") + 1) for name in names]
        # Overlaid: each part says itself where it begins.
        plot = 40 + len(names) * max([26, *heights])
        return figure(data, xaxis=across, yaxis=lines, barmode="overlay", **_legend_below(self.parts, plot))


@dataclass(frozen=True)
class Dots(Figure):
    """A line for each row and on it a dot for each group, with its interval and its chance level where they are known.

    Attributes
    ----------
    x : str
        Name of the axis.
    rows : sequence of str
        Names of the lines, from the top.
    groups : mapping
        By the name of the group, an estimate for every row; None where there is none.
    row_colours : sequence of str
        A colour for each row, where the groups need none.
    from_zero : bool
        Whether the axis begins at 0 at the latest.
    wide : bool
        Whether the figure takes the whole width of the page.
    name_width : int
        Characters of a row's name before it is broken.
    """

    x: str
    rows: Sequence[str]
    groups: Mapping[str, Sequence[Estimate | None]]
    row_colours: Sequence[str] = ()
    from_zero: bool = False
    wide: bool = True
    name_width: int = 24

    def draw(self) -> Drawing:
        """Rows from the top, a colour for each group."""
        data: list[dict[str, Any]] = []
        names = [wrapped(row, self.name_width) for row in self.rows]
        legend: list[str] = []
        for k, (name, estimates) in enumerate(self.groups.items()):
            known = [
                (row, e, self.row_colours[j] if self.row_colours else PALETTE[k % len(PALETTE)])
                for j, (row, e) in enumerate(zip(names, estimates, strict=True))
                if e is not None and _fits(e.value)
            ]
            # One colour where all are alike: error bars have that of their dot then.
            colours = [colour for *_, colour in known] if self.row_colours else PALETTE[k % len(PALETTE)]
            # An interval that is not known has no length.
            reach = [(e.high - e.value, e.value - e.low) if e.has_interval else (0.0, 0.0) for _, e, _ in known]
            data.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "orientation": "h",
                    "offsetgroup": str(k),
                    "name": wrapped(name, NAME),
                    "legendgroup": name,
                    "y": [row for row, *_ in known],
                    "x": [float(f"{e.value:.6g}") for _, e, _ in known],
                    "error_x": {
                        "type": "data",
                        "symmetric": False,
                        "array": [float(f"{up:.4g}") for up, _ in reach],
                        "arrayminus": [float(f"{down:.4g}") for _, down in reach],
                        "thickness": 1.2,
                        "width": 3,
                    },
                    "marker": {"size": 9, "color": colours, "symbol": SYMBOLS[k % len(SYMBOLS)]},
                }
            )
            legend.append(name)
            if any(np.isfinite(e.chance) for _, e, _ in known):
                legend.append("chance" if len(self.groups) == 1 else f"chance, {name}")
                data.append(
                    {
                        "type": "scatter",
                        "mode": "markers",
                        "orientation": "h",
                        "offsetgroup": str(k),
                        "name": wrapped(legend[-1], NAME),
                        "legendgroup": name,
                        "y": [row for row, *_ in known],
                        "x": _listed([e.chance for _, e, _ in known]),
                        "marker": {
                            "size": 13,
                            "symbol": "line-ns-open",
                            "color": CHANCE if len(self.groups) == 1 else colours,
                            "line": {"width": 3},
                        },
                    }
                )
        lines = {"type": "category", "categoryarray": names, "autorange": "reversed"}
        across: dict[str, Any] = {"title": {"text": self.x}, "automargin": True, "zerolinewidth": 2}
        if self.from_zero:
            across["rangemode"] = "tozero"
        # Beside one another, so that intervals do not hide each other.
        plot = 60 + max(26, 12 * len(self.groups)) * len(self.rows)
        return figure(
            data,
            xaxis=across,
            yaxis={**lines, "automargin": True, "dtick": 1},
            scattermode="group",
            scattergap=0.3,
            **_legend_below(legend, plot),
        )


@dataclass(frozen=True)
class HeatMap(Figure):
    """Matrices side by side, such as correlations before and after, or one of run by run.

    Attributes
    ----------
    panels : mapping
        Matrices by title, all of the same shape; NaN stays blank.
    rows, columns : sequence of str
        Names of the rows and columns.
    x, y : str
        Names of the axes.
    low, high : float, optional
        Ends of the colour scale; those of the values by default.
    digits : int, optional
        Digits of the values that are written into the cells.
    hover : mapping
        A matrix of texts by the title of its panel, for whoever points at a cell.
    reverse : bool
        Whether small values are bright.
    """

    panels: Mapping[str, Any]
    rows: Sequence[str]
    columns: Sequence[str]
    x: str = ""
    y: str = ""
    low: float | None = 0.0
    high: float | None = 1.0
    digits: int | None = None
    hover: Mapping[str, Any] = field(default_factory=dict)
    reverse: bool = False

    @property
    def wide(self) -> bool:  # type: ignore[override]
        """Whether it takes the whole width of the page."""
        many = len(self.panels) > 1 or len(self.columns) > 16 or len(self.columns) > 3 * len(self.rows)
        return many or (self.digits is not None and self._characters() > HALF_CHARACTERS)

    def _characters(self) -> int:
        """Characters of the values that stand beside one another in the cells of a row, with a space each."""
        known = [z[np.isfinite(z)] for z in (np.asarray(values, dtype=float) for values in self.panels.values())]
        longest = max(
            (len(f"{v:.{self.digits}f}") for z in known for v in (z.min(initial=0), z.max(initial=0))), default=0
        )
        return (longest + 1) * len(self.columns) * len(self.panels)

    def draw(self) -> Drawing:
        """Panels that share the names of their rows, which stand on the left, and have those of their columns below."""
        data: list[dict[str, Any]] = []
        rows, columns = ([wrapped(name) for name in _distinct(names)] for names in (self.rows, self.columns))
        layout: dict[str, Any] = {"annotations": [], "height": 160 + max(200, min(TEXT_LINE * len(rows), 800))}
        layout["grid"] = {"rows": 1, "columns": max(len(self.panels), 1), "pattern": "independent", "xgap": 0.06}
        layout["meta"] = {"panels": len(self.panels)}
        room = WHOLE_CHARACTERS if self.wide else HALF_CHARACTERS
        for place, (title, values) in enumerate(self.panels.items(), start=1):
            axis = "" if place == 1 else str(place)
            z = np.asarray(values, dtype=float)
            z = np.where(np.abs(z) < BEYOND, z, np.nan)
            heat: dict[str, Any] = {
                "type": "heatmap",
                "z": [[None if not np.isfinite(v) else float(f"{v:.5g}") for v in line] for line in z],
                "x": columns,
                "y": rows,
                "colorscale": "Viridis",
                "reversescale": self.reverse,
                "xaxis": f"x{axis}",
                "yaxis": f"y{axis}",
                "showscale": place == len(self.panels),
                "colorbar": {"thickness": 12},
                "hovertemplate": "%{y}, %{x}: %{z:.3f}<extra></extra>",
            }
            if title in self.hover:
                heat["customdata"] = [[plain(str(t)) for t in line] for line in self.hover[title]]
                heat["hovertemplate"] = "%{y}, %{x}: %{z:.3f} (%{customdata})<extra></extra>"
            heat |= {name: end for name, end in (("zmin", self.low), ("zmax", self.high)) if end is not None}
            data.append(heat)
            if self.digits is not None and self._characters() <= room:
                data.append({**_written(heat, z, self.digits), "xaxis": f"x{axis}", "yaxis": f"y{axis}"})
            # Names that have no room beside one another are turned.
            turned = (max(map(len, self.columns), default=0) + 1) * len(self.columns) * len(self.panels) > room
            layout[f"xaxis{axis}"] = {"type": "category", "automargin": True, "title": {"text": wrapped(self.x, NAME)}}
            layout[f"xaxis{axis}"] |= {"tickangle": -45} if turned else {"tickangle": 0}
            layout[f"xaxis{axis}"] |= {"dtick": 1} if len(columns) <= 40 else {}
            named = {
                "showticklabels": place == 1,
                "automargin": place == 1,
                **({"dtick": 1} if len(rows) <= 40 else {}),
            }
            head = {"title": {"text": wrapped(self.y, NAME) if place == 1 else "", "standoff": 16}}
            layout[f"yaxis{axis}"] = {"type": "category", "autorange": "reversed", **named, **head}
            if len(self.panels) > 1:
                layout["annotations"].append(_above(title, axis))
        return figure(data, **layout)


@dataclass(frozen=True)
class Cloud:
    """One panel: points by the name of their group, below a title.

    Attributes
    ----------
    title : str
    points : mapping
        Coordinates by the name of the group; horizontal ones may be names of classes.
    x, y : str
        Names of the axes.
    """

    title: str
    points: Mapping[str, tuple[Sequence[Any] | np.ndarray, Numbers]]
    x: str = ""
    y: str = ""


@dataclass(frozen=True)
class Panels(Figure):
    """Clouds of points in a grid of panels, such as two runs before and after an alignment.

    Attributes
    ----------
    panels : sequence of Cloud
        Row by row.
    columns : int
        Panels beside one another.
    ticks : bool
        Whether the axes have numbers.
    colours : mapping
        Of groups that have one of their own.
    """

    panels: Sequence[Cloud]
    columns: int
    ticks: bool = False
    colours: Mapping[str, str] = field(default_factory=dict)

    def draw(self) -> Drawing:
        """A grid with one legend."""
        high = max(1, -(-len(self.panels) // self.columns))
        groups = list(dict.fromkeys(name for panel in self.panels for name in panel.points))
        data: list[dict[str, Any]] = []
        layout: dict[str, Any] = {
            "annotations": [],
            "meta": {"panels": len(self.panels)},
        }
        edges = False
        layout["grid"] = {"rows": high, "columns": self.columns, "pattern": "independent", "xgap": 0.1, "ygap": 0.18}
        for place, panel in enumerate(self.panels, start=1):
            axis = "" if place == 1 else str(place)
            named = any(len(x) > 0 and isinstance(x[0], str) for x, _ in panel.points.values())
            frame = Frame.of(panel.points.values()) if not named else Frame(None, None)
            for name, (x, y) in panel.points.items():
                colour = self.colours.get(
                    name, TARGET if len(groups) == 1 else PALETTE[groups.index(name) % len(PALETTE)]
                )
                data.append(
                    {
                        "type": "scattergl" if len(x) > MANY else "scatter",
                        "mode": "markers",
                        "name": wrapped(name, NAME),
                        "legendgroup": name,
                        "showlegend": place == 1,
                        **({"x": [plain(v) for v in x], "y": _listed(y)} if named else frame.inside(x, y)),
                        "xaxis": f"x{axis}",
                        "yaxis": f"y{axis}",
                        "marker": {"size": 3, "color": colour, "opacity": 0.55},
                        "hoverinfo": "skip",
                    }
                )
            # Of several panels the legend says only once what the crosses are.
            for trace in frame.edge(panel.points.values()):
                shown, edges = not edges, True
                place_at = {"xaxis": f"x{axis}", "yaxis": f"y{axis}", "legendgroup": EDGE, "showlegend": shown}
                data.append({**trace, **place_at, **({"name": EDGE} if len(self.panels) > 1 else {})})
            bare = {"showticklabels": self.ticks, "zeroline": False, "automargin": True}
            layout[f"xaxis{axis}"] = {
                **bare,
                "title": {"text": wrapped(panel.x)},
                "type": "category" if named else "linear",
            }
            layout[f"yaxis{axis}"] = {**bare, "title": {"text": wrapped(panel.y)}}
            for direction, ends in (("x", frame.x), ("y", frame.y)):
                layout[f"{direction}axis{axis}"] |= {} if ends is None else {"range": list(ends)}
            if panel.title:
                layout["annotations"].append(_above(panel.title, axis))
        layout["showlegend"] = len(groups) > 1 or edges
        lines = max((note["text"].count("<br>") + 1 for note in layout["annotations"]), default=0)
        layout["margin"] = {"l": 60, "r": 20, "t": 10 + 16 * lines, "b": 70}
        # Below, where no title stands.
        layout["legend"] = {"orientation": "h", "y": -0.08, "yanchor": "top", "itemsizing": "constant"}
        each = max(120, 680 // max(high, 3)) if high > 1 else 250
        return figure(data, height=90 + (each + 16 * lines) * high, **layout)


# What the legend of several panels says of points beyond the ends of an axis.
EDGE = "beyond the edge"


@dataclass(frozen=True)
class Frame:
    """Ends of the axes of a cloud of points, where a few of these lie so far away that they would squash the others.

    Attributes
    ----------
    x, y : tuple of float or None
        Ends of the axis; None where every point has its place.
    """

    x: tuple[float, float] | None
    y: tuple[float, float] | None

    @classmethod
    def of(cls, groups: Iterable[Coordinates]) -> Frame:
        """The frame of groups of points."""
        points = list(groups)
        return cls(*(_ends([np.asarray(group[axis], dtype=float) for group in points]) for axis in (0, 1)))

    def inside(self, x: Numbers, y: Numbers) -> dict[str, list[float | None]]:
        """Coordinates for a drawing; points beyond the ends have none."""
        across, up = np.array(x, dtype=float), np.array(y, dtype=float)
        gone = self._beyond(across, up)
        across[gone], up[gone] = np.nan, np.nan
        return {"x": _listed(across), "y": _listed(up)}

    def edge(self, groups: Iterable[Coordinates]) -> list[dict[str, Any]]:
        """The points beyond the ends, as crosses at the edge of the plane; nothing where there are none."""
        if self.x is None and self.y is None:
            return []
        points = list(groups)
        across, up = (
            np.concatenate([np.empty(0), *(np.asarray(group[axis], dtype=float) for group in points)])
            for axis in (0, 1)
        )
        gone = self._beyond(across, up)
        if not gone.any():
            return []
        placed = [
            values[gone] if ends is None else np.clip(values[gone], *_within(ends))
            for values, ends in ((across, self.x), (up, self.y))
        ]
        count = int(gone.sum())
        return [
            {
                "type": "scatter",
                "mode": "markers",
                "name": f"{count:,} {'point' if count == 1 else 'points'} {EDGE}",
                "x": _listed(placed[0]),
                "y": _listed(placed[1]),
                "marker": {"size": 7, "color": CHANCE, "symbol": "cross"},
                "hoverinfo": "skip",
                "meta": EDGE,
            }
        ]

    def _beyond(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        gone = np.zeros(len(x), dtype=bool)
        for values, ends in ((x, self.x), (y, self.y)):
            if ends is not None:
                gone |= (values < ends[0]) | (values > ends[1])
        return gone


def _ends(groups: Sequence[np.ndarray]) -> tuple[float, float] | None:
    """Ends of an axis that shows the middle of all points and a half more on either side; None where that is all."""
    values = np.concatenate([*groups, np.empty(0)])
    values = values[np.abs(values) < BEYOND]
    if len(values) < CROWD:
        return None
    low, high = (float(q) for q in np.quantile(values, MIDDLE))
    room = FAR * (high - low)
    least, most = float(values.min()), float(values.max())
    if not room or (least >= low - room and most <= high + room):
        return None
    ends = max(least, low - room), min(most, high + room)
    pad = 0.05 * (ends[1] - ends[0])
    return ends[0] - pad, ends[1] + pad


def _within(ends: tuple[float, float]) -> tuple[float, float]:
    """Where crosses stand: a little inside of the ends."""
    inset = 0.015 * (ends[1] - ends[0])
    return ends[0] + inset, ends[1] - inset


def scatter_matrix(title: str, caption: str, across: Mapping[str, Numbers], down: Mapping[str, Numbers]) -> Panels:
    """Every column of one side against every column of the other: true against recovered, or run against run.

    Parameters
    ----------
    title, caption : str
    across, down : mapping
        Columns by name, all of the same length; drawn along the horizontal and the vertical axes.
    """
    last = list(down)[-1] if down else ""
    panels = [
        Cloud("", {"": (x, y)}, bottom if left == last else "", left if j == 0 else "")
        for left, y in down.items()
        for j, (bottom, x) in enumerate(across.items())
    ]
    return Panels(title, caption, panels, len(across))


@dataclass(frozen=True)
class Pictures(Figure):
    """Images side by side in one picture, such as reconstructions below their originals.

    Attributes
    ----------
    picture : str
        The address of its data ("data:image/png;base64,...").
    rows, columns : sequence of str
        Names of the rows and columns of the grid, one for each.
    """

    picture: str
    rows: Sequence[str]
    columns: Sequence[str]

    def draw(self) -> Drawing:
        """A picture below axes that name its rows and columns."""
        across, down = len(self.columns), len(self.rows)
        spread = {"xref": "x", "yref": "y", "x": 0, "y": 0, "sizex": across, "sizey": down, "sizing": "stretch"}
        bare = {"showgrid": False, "zeroline": False, "automargin": True, "fixedrange": True}
        # An empty trace: without any, the axes are not drawn.
        data = [{"type": "scatter", "x": [], "y": [], "hoverinfo": "skip", "showlegend": False}]
        # Pixels are square.
        square = {"scaleanchor": "x", "constrain": "domain"}
        return figure(
            data,
            height=80 + max(40, min(70, 700 // max(across, 1))) * down,
            images=[{"source": self.picture, "layer": "above", **spread}],
            xaxis={**bare, "range": [0, across], **_named_middles(self.columns)},
            yaxis={**bare, "range": [down, 0], **_named_middles(self.rows), **square},
        )


@dataclass(frozen=True)
class Text(Figure):
    """Tables as text, for more figures than a table has."""

    text: str

    draws = False

    def draw(self) -> Drawing:
        """Nothing: text is written."""
        return figure([])


def figure(data: list[dict[str, Any]], x: str = "", y: str = "", **layout: Any) -> Drawing:
    """A drawing with titled axes."""
    base: dict[str, Any] = {
        "xaxis": {"title": {"text": x}, "automargin": True},
        "yaxis": {"title": {"text": y}, "automargin": True},
        "margin": {"l": 60, "r": 20, "t": 30, "b": 50},
        "height": 340,
        # Signs in the legend are large enough to be seen, however small the points are.
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "itemsizing": "constant"},
    }
    return {"data": data, "layout": {**base, **layout}}


def plain(text: str) -> str:
    """Text that the drawing library must not read as markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def wrapped(text: str, width: int = 24) -> str:
    """Plain text in lines of at most so many characters, which end after a space or a sign where there is one."""
    lines = [""]
    # No line begins with the tip of an arrow.
    for piece in re.findall(rf"->\s?|[^\s/_.,-]{{1,{width - 1}}}[\s/_.,-]?|[\s/_.,-]", text):
        if len(lines[-1] + piece) > width:
            lines.append("")
        lines[-1] += piece
    return "<br>".join(map(plain, lines))


def _listed(values: Numbers) -> list[float | None]:
    """Numbers for a drawing: five digits are more than a screen shows, and what fits on no axis is left out."""
    return [float(f"{v:.5g}") if _fits(v) else None for v in np.asarray(values, dtype=float)]


def _fits(value: float) -> bool:
    """Whether an axis can hold a number: not NaN, infinity and numbers near the largest float."""
    return bool(abs(value) < BEYOND)


def _distinct(names: Sequence[str]) -> list[str]:
    """Names of the lines of a heat map, with a number after those that were there before: alike ones would be one."""
    out: list[str] = []
    for name in names:
        copies = (f"{name} ({k})" for k in count(2))
        out.append(name if name not in out else next(copy for copy in copies if copy not in out))
    return out


def _above(title: str, axis: str) -> dict[str, Any]:
    """The title of a panel."""
    place = {"xref": f"x{axis} domain", "yref": f"y{axis} domain", "x": 0.5, "y": 1.02}
    return {"text": wrapped(title), "showarrow": False, "xanchor": "center", "yanchor": "bottom", **place}


def _named_middles(names: Sequence[str]) -> dict[str, Any]:
    return {"tickvals": [k + 0.5 for k in range(len(names))], "ticktext": [wrapped(name) for name in names]}


def _legend_below(names: Iterable[str], plot: int) -> dict[str, Any]:
    """Layout of a legend under a plot that keeps its height, whatever the legend takes."""
    lines, filled, high = 1, 0, 1
    for name in names:
        parts = wrapped(name, NAME).split("<br>")
        width = LEGEND_CHARACTER * max(map(len, parts)) + LEGEND_SIGN
        if filled and filled + width > LEGEND:
            lines, filled = lines + 1, 0
        filled, high = filled + width, max(high, len(parts))
    below = AXIS + TEXT_LINE * lines * high
    legend = {"orientation": "h", "x": 0, "xanchor": "left", "y": -AXIS / plot, "yanchor": "top"}
    legend["itemsizing"] = "constant"
    return {"height": TOP + plot + below, "margin": {"l": 60, "r": 20, "t": TOP, "b": below}, "legend": legend}


def _written(heat: dict[str, Any], z: np.ndarray, digits: int) -> dict[str, Any]:
    """The values of a heat map as text in its cells, black or white, whichever is legible on the cell's colour.

    Plotly's own text is grey on bright cells, which cannot be read on the greens of Viridis.
    """
    known = np.isfinite(z)
    low = heat.get("zmin", np.min(z[known], initial=np.inf))
    high = heat.get("zmax", np.max(z[known], initial=-np.inf))
    share = (z - low) / ((high - low) or 1.0)
    bright = 1 - share if heat["reversescale"] else share
    cells = list(zip(*np.nonzero(known), strict=True))
    return {
        "type": "scatter",
        "mode": "text",
        "x": [heat["x"][j] for _, j in cells],
        "y": [heat["y"][i] for i, _ in cells],
        "text": [f"{z[cell]:.{digits}f}" for cell in cells],
        "textfont": {"color": ["#000" if bright[cell] > BRIGHT else "#fff" for cell in cells]},
        "hoverinfo": "skip",
        "showlegend": False,
    }

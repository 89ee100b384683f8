"""Figures of an experiment: training curves, and the slots that the experiment fills."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.lab.framework.figures import Dots, HeatMaps, ImageGrid, Scatter, ScatterMatrix
from nearid.questions.compare.plots import CHANCE, TARGET, Figure, figure, wrapped

if TYPE_CHECKING:
    from nearid.lab.framework.experiment import Axes
    from nearid.lab.framework.result import Result

# Okabe-Ito, as in the other figures; rows beyond the seventh begin again with another dash.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999")
DASHES = ("solid", "dash", "dot", "dashdot")
SYMBOLS = ("circle", "diamond", "cross")
# Pixels: what a legend has from left to right, a character of it, the sign before its text, and a line of text; what
# an axis below a plot takes, and what is free above it.
LEGEND, CHARACTER, SIGN, LINE, AXIS, TOP = 940, 7, 50, 20, 60, 20
# Characters of a name in a legend before it is broken.
NAME = 40
# Points that are drawn large.
MANY = 100


def training(found: Result, axes: Axes) -> Figure:
    """A line for each cell, a colour for each row."""
    styles = {
        row.title: {"color": COLOURS[k % len(COLOURS)], "dash": DASHES[k // len(COLOURS) % len(DASHES)], "width": 1.5}
        for k, row in enumerate(found.rows)
    }
    data: list[dict[str, Any]] = []
    named: list[str] = []
    for (row, seed), curve in found.curves(axes.key).items():
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": wrapped(row, NAME),
                "legendgroup": row,
                "showlegend": row not in named,
                "x": curve["x"],
                "y": curve["y"],
                "line": styles[row],
                "hovertemplate": f"seed {seed}: %{{x}}, %{{y:.4f}}",
            }
        )
        if row not in named:
            named.append(row)
    return figure(data, axes.x, axes.y, **_legend_below(named, 320))


def drawn(slot: ScatterMatrix | HeatMaps | Scatter | Dots | ImageGrid) -> Figure:
    """The figure of a slot."""
    if isinstance(slot, ScatterMatrix):
        return _scatter_matrix(slot)
    if isinstance(slot, Scatter):
        return _scatter(slot)
    if isinstance(slot, Dots):
        return _dots(slot)
    return _heat_maps(slot) if isinstance(slot, HeatMaps) else _image_grid(slot)


def _scatter_matrix(slot: ScatterMatrix) -> Figure:
    """Panels in a grid, `across` named along the bottom and `down` along the left."""
    across, down = list(slot.across.items()), list(slot.down.items())
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"showlegend": False, "height": 60 + max(120, 680 // max(len(down), 3)) * len(down)}
    layout["grid"] = {"rows": len(down), "columns": len(across), "pattern": "independent", "xgap": 0.1, "ygap": 0.1}
    for i, (left, y) in enumerate(down):
        for j, (bottom, x) in enumerate(across):
            place = i * len(across) + j + 1
            axis = "" if place == 1 else str(place)
            data.append(
                {
                    "type": "scattergl" if len(x) > 2000 else "scatter",
                    "mode": "markers",
                    "x": np.round(x, 4).tolist(),
                    "y": np.round(y, 4).tolist(),
                    "xaxis": f"x{axis}",
                    "yaxis": f"y{axis}",
                    "marker": {"size": 3, "color": TARGET, "opacity": 0.5},
                    "hoverinfo": "skip",
                }
            )
            bare = {"showticklabels": False, "zeroline": False, "automargin": True}
            layout[f"xaxis{axis}"] = {**bare, "title": {"text": wrapped(bottom) if i == len(down) - 1 else ""}}
            layout[f"yaxis{axis}"] = {**bare, "title": {"text": wrapped(left) if j == 0 else ""}}
    return figure(data, **layout)


def _scatter(slot: Scatter) -> Figure:
    """A colour for each group of points; curves in grey, told apart by their dashes."""
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": wrapped(name, NAME),
            "x": list(x),
            "y": list(y),
            "marker": {
                "size": 8 if len(x) <= MANY else 4,
                "color": COLOURS[k % len(COLOURS)],
                "symbol": SYMBOLS[k // len(COLOURS) % len(SYMBOLS)],
            },
            **_named(slot, name, COLOURS[k % len(COLOURS)]),
        }
        for k, (name, (x, y)) in enumerate(slot.points.items())
    ]
    data += [
        {
            "type": "scatter",
            "mode": "lines",
            "name": wrapped(name, NAME),
            "x": list(x),
            "y": list(y),
            "line": {"color": CHANCE, "dash": DASHES[k % len(DASHES)], "width": 2},
        }
        for k, (name, (x, y)) in enumerate(slot.curves.items())
    ]
    return figure(data, slot.x, slot.y, **_legend_below([*slot.points, *slot.curves], 340))


def _dots(slot: Dots) -> Figure:
    """Rows from the top, a colour for each group."""
    data: list[dict[str, Any]] = []
    for k, (name, found) in enumerate(slot.groups.items()):
        there = [(row, *values) for row, values in zip(slot.rows, found, strict=True) if np.isfinite(values[0])]
        # An interval that is not known has no length.
        above = [round(high - x, 5) if np.isfinite(high) else 0.0 for _, x, _, high in there]
        below = [round(x - low, 5) if np.isfinite(low) else 0.0 for _, x, low, _ in there]
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": wrapped(name, NAME),
                "y": [row for row, *_ in there],
                "x": [round(x, 5) for _, x, _, _ in there],
                "error_x": {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "width": 3},
                "marker": {"size": 8, "color": COLOURS[k % len(COLOURS)], "symbol": SYMBOLS[k % len(SYMBOLS)]},
            }
        )
    lines = {"type": "category", "categoryarray": list(slot.rows), "autorange": "reversed", "automargin": True}
    return figure(
        data, slot.x, yaxis={**lines, "dtick": 1}, **_legend_below(list(slot.groups), 40 + LINE * len(slot.rows))
    )


def _named(slot: Scatter, group: str, colour: str) -> dict[str, Any]:
    """What the points of a group are called: beside the first of them, and wherever one is pointed at."""
    names = slot.names.get(group)
    if names is None:
        return {}
    beside = {"mode": "markers+text", "text": list(names[: slot.labels]), "textposition": "top center"}
    hover = {"customdata": list(names), "hovertemplate": f"%{{customdata}}<extra>{group}</extra>"}
    return hover | (beside | {"textfont": {"size": 10, "color": colour}} if slot.labels else {})


def _legend_below(names: Sequence[str], plot: int) -> dict[str, Any]:
    """Layout of a legend under a plot that keeps its height, whatever the legend takes."""
    lines, filled = 1, 0
    for name in names:
        width = CHARACTER * min(len(name), NAME) + SIGN
        if filled and filled + width > LEGEND:
            lines, filled = lines + 1, 0
        filled += width
    below = AXIS + LINE * lines * (1 + max((wrapped(name, NAME).count("<br>") for name in names), default=0))
    legend = {"orientation": "h", "x": 0, "xanchor": "left", "y": -AXIS / plot, "yanchor": "top"}
    legend["itemsizing"] = "constant"
    return {"height": TOP + plot + below, "margin": {"l": 60, "r": 20, "t": TOP, "b": below}, "legend": legend}


def _heat_maps(slot: HeatMaps) -> Figure:
    """Panels that share the names of their rows, which stand on the left, and have those of their columns below."""
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"annotations": [], "height": 160 + max(260, LINE * len(slot.rows))}
    layout["grid"] = {"rows": 1, "columns": len(slot.panels), "pattern": "independent", "xgap": 0.06}
    for place, (title, values) in enumerate(slot.panels.items(), start=1):
        axis = "" if place == 1 else str(place)
        data.append(
            {
                "type": "heatmap",
                "z": np.round(np.asarray(values, dtype=float), 4).tolist(),
                "x": list(slot.columns),
                "y": list(slot.rows),
                "zmin": 0,
                "zmax": 1,
                "colorscale": "Viridis",
                "xaxis": f"x{axis}",
                "yaxis": f"y{axis}",
                "showscale": place == len(slot.panels),
                "colorbar": {"thickness": 12},
                "hovertemplate": "%{y}, %{x}: %{z:.3f}<extra></extra>",
            }
        )
        layout[f"xaxis{axis}"] = {"type": "category", "automargin": True, "tickangle": -45, "dtick": 1}
        named = {"showticklabels": place == 1, "automargin": place == 1, "dtick": 1}
        layout[f"yaxis{axis}"] = {"type": "category", "autorange": "reversed", **named}
        above = {"xref": f"x{axis} domain", "yref": f"y{axis} domain", "x": 0.5, "y": 1.02}
        layout["annotations"].append({"text": title, "showarrow": False, "yanchor": "bottom", **above})
    return figure(data, **layout)


def _image_grid(slot: ImageGrid) -> Figure:
    """A picture below axes that name its rows and columns."""
    across, down = len(slot.columns), len(slot.rows)
    spread = {"xref": "x", "yref": "y", "x": 0, "y": 0, "sizex": across, "sizey": down, "sizing": "stretch"}
    bare = {"showgrid": False, "zeroline": False, "automargin": True, "fixedrange": True}
    # An empty trace: without any, the axes are not drawn.
    data = [{"type": "scatter", "x": [], "y": [], "hoverinfo": "skip", "showlegend": False}]
    return figure(
        data,
        height=80 + max(40, min(70, 700 // max(across, 1))) * down,
        images=[{"source": slot.picture, "layer": "above", **spread}],
        xaxis={**bare, "range": [0, across], "tickvals": _middles(across), "ticktext": list(slot.columns)},
        yaxis={
            **bare,
            "range": [down, 0],
            "tickvals": _middles(down),
            "ticktext": list(slot.rows),
            # Pixels are square.
            "scaleanchor": "x",
            "constrain": "domain",
        },
    )


def _middles(count: int) -> list[float]:
    return [k + 0.5 for k in range(count)]

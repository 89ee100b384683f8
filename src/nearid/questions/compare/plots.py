"""Figures of the report as plain Plotly descriptions (data and layout); colours of text and grid come from the page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.groups.ladder import GROUPS

if TYPE_CHECKING:
    from nearid.questions.compare.result import Comparison

Figure = dict[str, Any]

# From here on along Viridis, black is more legible than white.
BRIGHT = 4 / 9
SOURCE, TARGET, CHANCE = "#CC79A7", "#0072B2", "#999999"


def figure(data: list[dict[str, Any]], x: str = "", y: str = "", **layout: Any) -> Figure:
    """A figure with titled axes."""
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
    for piece in re.findall(rf"[^\s/_.,-]{{1,{width - 1}}}[\s/_.,-]?|[\s/_.,-]", text):
        if len(lines[-1] + piece) > width:
            lines.append("")
        lines[-1] += piece
    return "<br>".join(map(plain, lines))


def written(heat: dict[str, Any], digits: int) -> dict[str, Any]:
    """The values of a heat map as text in its cells, black or white, whichever is legible on the cell's colour.

    Plotly's own text is grey on bright cells, which cannot be read on the greens of Viridis.
    """
    z = np.array(heat["z"], dtype=float)
    known = np.isfinite(z)
    low = heat.get("zmin", np.min(z[known], initial=np.inf))
    high = heat.get("zmax", np.max(z[known], initial=-np.inf))
    share = (z - low) / ((high - low) or 1.0)
    bright = 1 - share if heat.get("reversescale") else share
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


def ladder(c: Comparison) -> Figure:
    """Mean epsilon of each group with its interval, beside chance (and the in-sample value)."""
    groups = list(c.groups.values())
    names = [g.name for g in groups]
    means = [g.epsilon.mean for g in groups]
    bars = {
        "type": "data",
        "symmetric": False,
        "array": [g.epsilon.high - g.epsilon.mean for g in groups],
        "arrayminus": [g.epsilon.mean - g.epsilon.low for g in groups],
    }
    colours = [GROUPS[n].colour for n in names]
    held = {
        "type": "scatter",
        "mode": "markers",
        "name": "held out, 95% interval",
        "x": means,
        "y": names,
        "error_x": bars,
        "marker": {"size": 12, "color": colours},
    }
    chance = {
        "type": "scatter",
        "mode": "markers",
        "name": "chance (rows permuted)",
        "x": [g.chance for g in groups],
        "y": names,
        "marker": {"size": 14, "symbol": "line-ns-open", "color": CHANCE, "line": {"width": 3}},
    }
    data = [held, chance]
    if c.in_sample:
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "in sample",
                "y": names,
                "x": [c.in_sample[n].epsilon.mean for n in names],
                "marker": {"size": 10, "symbol": "circle-open", "color": colours, "line": {"width": 2}},
            }
        )
    return figure(
        data,
        "mean error / diameter",
        xaxis={"rangemode": "tozero", "title": {"text": "mean error / diameter"}},
        yaxis={"autorange": "reversed", "automargin": True},
        height=260,
    )


def distributions(c: Comparison) -> Figure:
    """Histogram of each group's per-row epsilon."""
    v = c.views
    middle = (v.epsilon_edges[1:] + v.epsilon_edges[:-1]) / 2
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": middle.tolist(),
            "y": (counts / c.n).tolist(),
            "line": {"shape": "hvh", "color": GROUPS[name].colour},
            "fill": "tozeroy",
            "opacity": 0.8,
        }
        for name, counts in v.epsilon_counts.items()
    ]
    return figure(data, "error / diameter of a row", "share of rows")


def spectra(c: Comparison) -> Figure:
    """Eigenvalue shares of both sides."""
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "marker": {"size": 4, "color": colour},
            "x": list(range(1, len(values) + 1)),
            "y": [float(s) if s > 1e-16 else None for s in values],
        }
        for name, values, colour in (
            ("source", c.views.spectrum_x, SOURCE),
            ("target", c.views.spectrum_y, TARGET),
        )
    ]
    axis = {"type": "log", "title": {"text": "share of variance"}, "exponentformat": "power"}
    return figure(data, "principal component", yaxis=axis)


def canonical(c: Comparison) -> Figure:
    """Held-out canonical correlations beside those of permuted rows (and the in-sample ones)."""
    curves = [("held out", c.similarity.cca, TARGET, "solid"), ("chance", c.chance_similarity.cca, CHANCE, "dot")]
    if c.in_sample_similarity:
        curves.append(("in sample", c.in_sample_similarity.cca, SOURCE, "dash"))
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": list(range(1, len(values) + 1)),
            "y": values.tolist(),
            "line": {"color": colour, "dash": dash},
        }
        for name, values, colour, dash in curves
    ]
    return figure(data, "canonical direction", "correlation")


def matching(c: Comparison) -> Figure:
    """|Correlation| of columns in the order of their matches: a bright diagonal is a permutation."""
    v = c.views
    heat = {
        "type": "heatmap",
        "z": np.round(v.correlation, 4).tolist(),
        "zmin": 0,
        "zmax": 1,
        "colorscale": "Viridis",
        "x": [f"t{t}" for t in v.matched[:, 1]],
        "y": [f"s{s}" for s in v.matched[:, 0]],
        "hovertemplate": "source %{y}, target %{x}: |corr| %{z:.3f}<extra></extra>",
        "colorbar": {"title": {"text": "|corr|"}, "thickness": 12},
    }
    return figure(
        [heat],
        "target column",
        "source column",
        yaxis={"autorange": "reversed", "title": {"text": "source column"}},
        height=420,
    )


def overlay(c: Comparison) -> Figure:
    """Both runs in the target's plane, before and after each alignment."""
    panels = [k for k in c.views.overlay if k != "target"]
    target = c.views.overlay["target"]
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"grid": {"rows": 1, "columns": len(panels), "pattern": "independent"}, "annotations": []}
    for k, title in enumerate(panels, start=1):
        axis = "" if k == 1 else str(k)
        for name, points, colour in (("target", target, TARGET), ("source", c.views.overlay[title], SOURCE)):
            data.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": name,
                    "x": np.round(points[:, 0], 5).tolist(),
                    "y": np.round(points[:, 1], 5).tolist(),
                    "xaxis": f"x{axis}",
                    "yaxis": f"y{axis}",
                    "showlegend": k == 1,
                    "legendgroup": name,
                    "marker": {"size": 3, "color": colour, "opacity": 0.55},
                }
            )
        layout[f"xaxis{axis}"] = {"showticklabels": False, "zeroline": False}
        layout[f"yaxis{axis}"] = {"showticklabels": False, "zeroline": False}
        layout["annotations"].append(
            {
                "text": title,
                "showarrow": False,
                "xref": f"x{axis} domain",
                "yref": f"y{axis} domain",
                "x": 0.5,
                "y": -0.02,
                "xanchor": "center",
                "yanchor": "top",
            }
        )
    return figure(data, height=320, meta={"panels": len(panels)}, **layout)


def matrix(names: list[str], values: np.ndarray, title: str) -> Figure:
    """A run x run heat map."""
    titles = [wrapped(name) for name in names]
    heat = {
        "type": "heatmap",
        "z": np.round(values, 5).tolist(),
        "x": titles,
        "y": titles,
        "colorscale": "Viridis",
        "colorbar": {"thickness": 12},
    }
    return figure(
        [heat, written(heat, 3)],
        "target",
        "source",
        yaxis={"autorange": "reversed", "title": {"text": "source", "standoff": 12}, "automargin": True},
        title={"text": title},
        height=380,
    )

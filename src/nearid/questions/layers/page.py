"""The page for layers against layers: a heat map for each measure."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.base.files import write_text
from nearid.questions.compare.html import check_report, environment, render
from nearid.questions.compare.plots import Figure, figure, wrapped, written
from nearid.questions.layers.result import EPSILONS
from nearid.questions.layers.table import title

if TYPE_CHECKING:
    from nearid.questions.layers.result import LayerComparison

TITLE = "Which layers agree?"
AGREEMENT = "1 is full agreement; unrelated rows are about 0, or below."
ERROR = "0 is full agreement: errors over the diameter of the target layer."
# Up to so many columns the values are written into the cells.
WRITTEN = 16


def write_report(found: LayerComparison, path: str | os.PathLike[str]) -> None:
    """Write the page, atomically."""
    write_text(check_report(path), page(found))


def page(found: LayerComparison) -> str:
    """The whole page as text."""
    drawn = [
        {
            "title": title(name),
            "figure": heat_map(found, name),
            "said": ERROR if name in EPSILONS else AGREEMENT,
            "nearest": found.nearest(name),
        }
        for name in found.values
    ]
    figures: dict[str, Any] = {f"f{at}": each["figure"] for at, each in enumerate(drawn)}
    return render("layers.html", TITLE, figures, found=found, drawn=drawn)


def fragment(found: LayerComparison) -> str:
    """The tables alone, for a notebook."""
    titles = {name: title(name) for name in found.values}
    return environment().get_template("layers_fragment.html").render(found=found, titles=titles)


def heat_map(found: LayerComparison, measure: str) -> Figure:
    """Source layers by target layers, the first at the top left."""
    values = np.round(found.values[measure], 4)
    error = measure in EPSILONS
    most = float(np.nanmax(values)) if error and np.isfinite(values).any() else 1.0
    heat = {
        "type": "heatmap",
        "z": values.tolist(),
        # Names that look like numbers would otherwise be drawn on a scale.
        "x": [f"{wrapped(layer)} " for layer in found.layers[1]],
        "y": [f"{wrapped(layer)} " for layer in found.layers[0]],
        "zmin": min(0.0, float(np.nanmin(values))) if np.isfinite(values).any() else 0.0,
        "zmax": most,
        "colorscale": "Viridis",
        # Bright is near.
        "reversescale": error,
        "hovertemplate": "%{y} → %{x}: %{z:.3f}<extra></extra>",
        "colorbar": {"thickness": 12},
    }
    down, across = (
        {"title": {"text": wrapped(name, 40), "standoff": 16}, "automargin": True, "type": "category"}
        for name in found.names
    )
    down["autorange"] = "reversed"
    height = 180 + max(22 * len(found.layers[0]), 160)
    text = [written(heat, 2)] if len(found.layers[1]) <= WRITTEN else []
    return figure([heat, *text], xaxis=across, yaxis=down, height=height)

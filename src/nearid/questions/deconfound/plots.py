"""Figures of the page on deconfounding."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.questions.compare.plots import CHANCE, SOURCE, TARGET, Figure, figure, wrapped
from nearid.questions.deconfound.paired import ALL
from nearid.questions.deconfound.table import BRIEF
from nearid.show.figures import PALETTE

if TYPE_CHECKING:
    from nearid.questions.deconfound.result import ConditionResult, Deconfounding, Plane

# Perturbations in the plot of differences, components in the map, classes with a colour of their own.
DIFFERENCES, COMPONENTS, CLASSES = 30, 120, 7


def differences(found: Deconfounding, score: str = "auroc") -> Figure:
    """Paired differences from the first condition, with 95% intervals, of each perturbation and of all together."""
    direction, classifier = found.families[0]
    tests = [t for t in found.tests if (t.direction, t.classifier, t.score) == (direction, classifier, score)]
    names = list(found.conditions)
    shown = [*list(found.perturbations)[:DIFFERENCES], ALL]
    data: list[dict[str, Any]] = []
    for k, second in enumerate(n for n in dict.fromkeys(t.second for t in tests) if n != names[0]):
        mine = {t.perturbation: t for t in tests if t.second == second and t.first == names[0]}
        kept = [(p, mine[p]) for p in shown if p in mine and np.isfinite(mine[p].difference)]
        # Without an interval (too few splits) a bar of no length is drawn.
        reach = [(t.high - t.difference, t.difference - t.low) if np.isfinite(t.low) else (0, 0) for _, t in kept]
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "orientation": "h",
                "name": f"{BRIEF[second]} less {BRIEF[names[0]]}",
                "x": [t.difference for _, t in kept],
                "y": ["all" if p == ALL else wrapped(p) for p, _ in kept],
                "error_x": {
                    "type": "data",
                    "symmetric": False,
                    "array": [up for up, _ in reach],
                    "arrayminus": [down for _, down in reach],
                    "thickness": 1.2,
                },
                "marker": {"size": 8, "color": PALETTE[k % len(PALETTE)]},
            }
        )
    what = "AUROC" if score == "auroc" else score
    return figure(
        data,
        xaxis={
            "title": {"text": wrapped(f"difference of {what} in batches held out")},
            "zeroline": True,
            "zerolinewidth": 2,
            "automargin": True,
        },
        yaxis={"type": "category", "autorange": "reversed", "automargin": True},
        # Beside one another, so that intervals do not hide each other.
        scattermode="group",
        scattergap=0.3,
        height=140 + max(34, 12 * len(data)) * len(shown),
    )


def component_map(c: ConditionResult) -> Figure:
    """What batch and label explain of each component, from the most technical to the most biological."""
    order = c.components.ranked
    half = COMPONENTS // 2
    # Of many, those at both ends.
    shown = order if len(order) <= COMPONENTS else np.concatenate([order[:half], order[-half:]])
    values = np.stack([c.components.batch[shown], c.components.label[shown]])
    kinds = [c.components.kinds[k] for k in shown]
    heat = {
        "type": "heatmap",
        # What is not defined stays blank.
        "z": [[None if np.isnan(v) else round(float(np.clip(v, 0, 1)), 4) for v in line] for line in values],
        "x": [str(k) for k in shown],
        "y": ["batch", "label"],
        "zmin": 0,
        "zmax": max(float(np.nanmax(np.nan_to_num(values))), 1e-3),
        "colorscale": "Viridis",
        "customdata": [kinds, kinds],
        "hovertemplate": "component %{x}, %{y}: %{z:.3f} (%{customdata})<extra></extra>",
        "colorbar": {"thickness": 12},
    }
    return figure(
        [heat],
        xaxis={"type": "category", "title": {"text": "component, the most technical first"}, "automargin": True},
        yaxis={"automargin": True, "type": "category"},
        height=230,
    )


def component_scatter(c: ConditionResult) -> Figure:
    """Batch share against label share of each component."""
    a = c.components
    # What is not defined has no place.
    kinds = np.where(np.isnan(a.batch) | np.isnan(a.label), "", c.components.kinds)
    colours = {"technical": SOURCE, "biological": TARGET, "neither": CHANCE}
    data = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": kind,
            "x": np.round(a.batch[kinds == kind], 5).tolist(),
            "y": np.round(a.label[kinds == kind], 5).tolist(),
            "text": [f"component {k}" for k in np.flatnonzero(kinds == kind)],
            "marker": {"size": 7, "color": colour, "opacity": 0.75},
        }
        for kind, colour in colours.items()
        if (kinds == kind).any()
    ]
    return figure(data, "share explained by the batch", "share explained by the label")


def plane(found: Deconfounding, shown: Plane, by: str) -> Figure:
    """A sample of rows in two components, coloured by label or by batch; classes beyond the most frequent are grey."""
    values = found.views.labels if by == "label" else found.views.batches
    common = [name for name, _ in Counter(values).most_common(CLASSES)]
    groups = [(name, PALETTE[k % len(PALETTE)]) for k, name in enumerate(common)]
    data: list[dict[str, Any]] = []
    where = np.array(values)
    rest = ~np.isin(where, common)
    parts = [*([("others", CHANCE, rest)] if rest.any() else []), *((n, c, where == n) for n, c in groups)]
    for name, colour, mask in parts:
        points = shown.points[mask]
        data.append(
            {
                "type": "scattergl" if len(where) > 2000 else "scatter",
                "mode": "markers",
                "name": wrapped(name, 40),
                "x": np.round(points[:, 0].astype(float), 4).tolist(),
                "y": np.round(points[:, 1].astype(float), 4).tolist(),
                "marker": {"size": 4, "color": colour, "opacity": 0.65},
                "hoverinfo": "name",
            }
        )
    return figure(data, f"component {shown.names[0]}", f"component {shown.names[1]}", height=400)

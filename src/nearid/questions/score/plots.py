"""Figures of a score's page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.questions.compare.plots import SOURCE, TARGET, Figure, figure, plain, wrapped
from nearid.questions.score.table import columns

if TYPE_CHECKING:
    from nearid.questions.score.result import Score

# Latents and factors that a heat map, factors that the scatter plots show.
MAP_LATENTS, MAP_FACTORS, SCATTERS = 64, 64, 12
BEFORE, AFTER = "latents", "after ICA"
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")


def overview(score: Score) -> Figure:
    """Value of each measure with its interval and chance, before and after ICA."""
    data: list[dict[str, Any]] = []
    both = [(BEFORE, score, SOURCE)] + ([(AFTER, score.resolved, TARGET)] if score.resolved else [])
    for label, each, colour in both:
        found = [m.overall for m in each.measures.values()]
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": f"{label}, 95% interval",
                "x": [e.value for e in found],
                "y": [m.declared.title for m in each.measures.values()],
                "error_x": _bars(found),
                "marker": {"size": 11, "color": colour},
            }
        )
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "chance" if not score.resolved else f"chance, {label}",
                "x": [e.chance for e in found],
                "y": [m.declared.title for m in each.measures.values()],
                "marker": {
                    "size": 13,
                    "symbol": "line-ns-open",
                    "color": colour,
                    "line": {"width": 3, "color": colour},
                },
            }
        )
    low = min([0.0, *(e for trace in data for e in trace["x"] if np.isfinite(e) and e > -1)])
    return figure(
        data,
        xaxis={"range": [low - 0.03, 1.03], "title": {"text": "value"}},
        yaxis={"autorange": "reversed", "automargin": True},
        height=90 + 40 * len(score.measures),
    )


def factor_bars(score: Score) -> Figure:
    """Each factor's value under each measure that has one."""
    names = [f.name for f in score.factors][:MAP_FACTORS]
    data = []
    for at, (name, title) in enumerate(columns(score)):
        found = [score.measures[name].factors.get(n) for n in names]
        data.append(
            {
                "type": "bar",
                "name": title,
                "x": [wrapped(n) for n in names],
                "y": [None if e is None else e.value for e in found],
                "error_y": _bars([e for e in found if e is not None]) if None not in found else {},
                "marker": {"color": PALETTE[at % len(PALETTE)]},
            }
        )
    values = [v for trace in data for v in trace["y"] if v is not None and np.isfinite(v)]
    axis = {"range": [max(-1.0, min([0.0, *values])), 1.05], "title": {"text": "value"}}
    return figure(data, yaxis=axis, xaxis={"type": "category", "automargin": True}, barmode="group", height=360)


def heat_maps(scores: list[Score]) -> list[tuple[str, list[Figure]]]:
    """Factor x latent maps of information, |correlation| and importance, whichever were measured.

    Those of several scores share their colours.
    """
    drawn = []
    for name, title in (
        ("infomec", "Normalised mutual information"),
        ("mig", "Mutual information / entropy, binned"),
        ("mcc", "|Correlation|, held out"),
        ("mcc_spearman", "|Rank correlation|, held out"),
        ("dci", "Importance to boosted trees"),
    ):
        # One map of information, one of correlation.
        done = {"mig": "infomec", "mcc_spearman": "mcc"}.get(name)
        if name not in scores[0].measures or done in scores[0].measures:
            continue
        found = [(s, np.abs(s.measures[name].matrix), s.measures[name].names) for s in scores]
        limit = max(float(matrix.max()) for _, matrix, _ in found) or 1.0
        drawn.append((title, [_heat(*each, limit) for each in found]))
    return drawn


def scatters(score: Score) -> Figure | None:
    """Each factor against its matched latent."""
    names = list(score.points)[:SCATTERS]
    if not names:
        return None
    wide = min(4, len(names))
    high = -(-len(names) // wide)
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"grid": {"rows": high, "columns": wide, "pattern": "independent"}, "annotations": []}
    matched = {f.name: f.matched for f in score.factors}
    for k, name in enumerate(names, start=1):
        axis, p = "" if k == 1 else str(k), score.points[name]
        shown = [plain(p.labels[int(v)]) for v in p.factor] if p.labels else np.round(p.factor, 5).tolist()
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": shown,
                "y": np.round(p.latent, 5).tolist(),
                "xaxis": f"x{axis}",
                "yaxis": f"y{axis}",
                "showlegend": False,
                "marker": {"size": 3, "color": TARGET, "opacity": 0.6},
                "hoverinfo": "skip",
            }
        )
        layout[f"xaxis{axis}"] = {"zeroline": False, "type": "category" if p.labels else "linear"}
        layout[f"yaxis{axis}"] = {"zeroline": False}
        layout["annotations"].append(
            {
                "text": wrapped(f"{name} | latent {matched[name]}", 22),
                "showarrow": False,
                "xref": f"x{axis} domain",
                "yref": f"y{axis} domain",
                "x": 0.5,
                "y": 1.02,
                "xanchor": "center",
                "yanchor": "bottom",
            }
        )
    lines = max(note["text"].count("<br>") for note in layout["annotations"]) + 1
    layout["margin"] = {"l": 60, "r": 20, "t": 14 + 16 * lines, "b": 50}
    return figure(data, height=60 + (214 + 16 * lines) * high, meta={"panels": len(names)}, **layout)


def _heat(score: Score, matrix: np.ndarray, names: tuple[str, ...], limit: float) -> Figure:
    """A heat map with the matched latents first, in the order of their factors."""
    matched = [f.matched for f in score.factors if f.matched is not None]
    rest = [j for j in np.argsort(-matrix.max(axis=1), kind="stable") if j not in set(matched)]
    order = [*matched, *rest][:MAP_LATENTS]
    shown = matrix[order][:, :MAP_FACTORS].T
    heat = {
        "type": "heatmap",
        "z": np.round(shown, 4).tolist(),
        "zmin": 0,
        "zmax": limit,
        "colorscale": "Viridis",
        "x": [f"z{j}" for j in order],
        "y": [wrapped(n) for n in names[:MAP_FACTORS]],
        "hovertemplate": "%{y}, %{x}: %{z:.3f}<extra></extra>",
        "colorbar": {"thickness": 12},
    }
    return figure(
        [heat],
        "latent",
        xaxis={"type": "category", "title": {"text": "latent, matched ones first"}},
        yaxis={"autorange": "reversed", "automargin": True, "type": "category"},
        height=150 + 24 * max(4, len(shown)),
    )


def _bars(found: list[Any]) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "array": [e.high - e.value for e in found],
        "arrayminus": [e.value - e.low for e in found],
        "thickness": 1.2,
    }

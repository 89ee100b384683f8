"""The page for a measurement of bi-Lipschitz constants."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.base.files import write_text
from nearid.questions.compare.html import check_report, environment, render
from nearid.questions.compare.plots import SOURCE, TARGET, Figure, figure
from nearid.questions.lipschitz.table import HEADS, facts, headline, lines, sizes, standing

if TYPE_CHECKING:
    from nearid.geometry.constants import Isometry
    from nearid.questions.lipschitz.result import BiLipschitz

TITLE = "Does this decoder preserve distances?"
# Colours of the page that say how a decoder stands.
MARKS = {"good": "permutation", "careful": "linear", "bad": "none"}
BINS = 40


def write_report(found: BiLipschitz, path: str | os.PathLike[str]) -> None:
    """Write the page, atomically."""
    write_text(check_report(path), page(found))


def page(found: BiLipschitz) -> str:
    """The whole page as text."""
    over = " alone: over all of them they may be far larger" if found.exact is None else ", and over all of them"
    said = f"Over random directions{over}. In a long right tail a few latents decide the maximum."
    drawn = [("Local constants", histogram(found), said)]
    if found.isometry is not None:
        said = "Median over points, with the band of 90%. An isometry has 1 everywhere, a scaled one a flat line."
        drawn.append(("Singular values of the Jacobians", spectrum(found.isometry), said))
    shown = [{"title": t, "figure": f, "caption": said} for t, f, said in drawn]
    figures: dict[str, Any] = {f"f{k}": f["figure"] for k, f in enumerate(shown)}
    return render("lipschitz.html", TITLE, figures, drawn=shown, **_context(found))


def fragment(found: BiLipschitz) -> str:
    """The tables alone, for a notebook."""
    return environment().get_template("lipschitz_fragment.html").render(**_context(found))


def _context(found: BiLipschitz) -> dict[str, Any]:
    return {
        "found": found,
        "headline": headline(found),
        "mark": MARKS[standing(found)],
        "sizes": sizes(found),
        "heads": HEADS,
        "lines": list(lines(found)),
        "facts": list(facts(found)),
    }


def histogram(found: BiLipschitz) -> Figure:
    """Shares of points by their local constant, on a logarithmic axis; infinite ones are not drawn."""
    kinds = [("random directions", found.sampled, SOURCE)]
    if found.exact is not None:
        kinds.append(("all directions", found.exact, TARGET))
    logs = [(name, np.log10(c.values[np.isfinite(c.values)]), colour) for name, c, colour in kinds]
    together = np.concatenate([values for _, values, _ in logs])
    edges = np.histogram_bin_edges(together, BINS)
    middle = 10 ** ((edges[1:] + edges[:-1]) / 2)
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": middle.tolist(),
            "y": (np.histogram(values, edges)[0] / found.n).tolist(),
            "line": {"shape": "hvh", "color": colour},
            "fill": "tozeroy",
        }
        for name, values, colour in logs
    ]
    return figure(data, "", "share of points", xaxis={"type": "log", "title": {"text": "L"}, "automargin": True})


def spectrum(isometry: Isometry) -> Figure:
    """Singular values by rank: the median over points and a band."""
    low, middle, high = ([float(v) if v > 0 else None for v in part] for part in isometry.spectrum.T)
    rank = list(range(1, len(middle) + 1))
    drawn: Figure = {"type": "scatter", "x": rank, "marker": {"color": TARGET}}
    edge = {**drawn, "mode": "lines", "line": {"width": 0, "color": TARGET}, "showlegend": False}
    data = [
        {**edge, "y": high},
        {**edge, "y": low, "fill": "tonexty"},
        {**drawn, "y": middle, "mode": "lines+markers", "name": "median"},
    ]
    axis = {"type": "log", "title": {"text": "singular value"}, "automargin": True}
    return figure(data, "rank", yaxis=axis)

"""The page for an unmixing: what was found, and whether it can be trusted."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from nearid.base.files import write_text
from nearid.questions.compare.html import check_report, render
from nearid.questions.compare.plots import Figure, figure
from nearid.questions.unmix.table import conclusion, facts, standing

if TYPE_CHECKING:
    from nearid.ica.estimators import ICA

# Okabe-Ito, as in the other figures.
COLOURS = {"super-Gaussian": "#0072B2", "sub-Gaussian": "#E69F00", "Gaussian": "#999999"}


# Colours of the page that say how a fit stands.
MARKS = {"good": "permutation", "careful": "linear", "bad": "none"}


def write_report(ica: ICA, path: str | os.PathLike[str]) -> None:
    """Write the page for a fit, atomically."""
    write_text(check_report(path), page(ica))


def page(ica: ICA, title: str = "What are the independent components?") -> str:
    """The whole page as text."""
    drawn = [
        (
            "How far from Gaussian",
            nongaussianity(ica),
            "E[G(s)] minus its value for a Gaussian, component by component. Grey ones cannot be told from Gaussian: "
            "any rotation among them fits as well.",
        ),
        ("Convergence", convergence(ica), "Relative projected gradient after each pass; the line is tol."),
        ("Spectrum", spectrum(ica), "Variance along each principal direction of the rows; those unmixed are blue."),
    ]
    figures = {f"f{k}": shown for k, (_, shown, _) in enumerate(drawn)}
    return render(
        "unmixing.html",
        title,
        figures,
        name=ica.input_["name"],
        conclusion=conclusion(ica),
        mark=MARKS[standing(ica)],
        cautions=ica.diagnostics_.cautions,
        facts=facts(ica),
        captions=[(head, said) for head, _, said in drawn],
        provenance={"options": ica.get_params(), "seed": ica.seed_, "input": ica.input_},
    )


def nongaussianity(ica: ICA) -> Figure:
    """A bar for each component, coloured by kind."""
    values, kind = np.asarray(ica.diagnostics_.nongaussianity), np.array(ica.diagnostics_.kinds)
    numbers = np.arange(len(values))
    data = [
        {
            "type": "bar",
            "name": name,
            "x": numbers[kind == name].tolist(),
            "y": values[kind == name].tolist(),
            "marker": {"color": colour},
            "hovertemplate": "component %{x}: %{y:.4g}<extra>" + name + "</extra>",
        }
        for name, colour in COLOURS.items()
        if (kind == name).any()
    ]
    axis = {"title": {"text": "E[G(s)] - Gaussian"}, "automargin": True, "exponentformat": "power"}
    return figure(data, "component", yaxis=axis, bargap=0.1, showlegend=True)


def convergence(ica: ICA) -> Figure:
    """The relative gradient after each pass, and where it was to stop."""
    curve = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "relative gradient",
        "marker": {"size": 4, "color": COLOURS["super-Gaussian"]},
        "x": list(range(1, len(ica.gradients_) + 1)),
        "y": [g if g > 0 else None for g in ica.gradients_],
    }
    stop = {
        "type": "scatter",
        "mode": "lines",
        "name": f"tol {ica.tol:g}",
        "line": {"dash": "dot", "color": COLOURS["sub-Gaussian"]},
        "x": [1, max(len(ica.gradients_), 2)],
        "y": [ica.tol, ica.tol],
    }
    axis = {"type": "log", "title": {"text": "relative gradient"}, "exponentformat": "power", "automargin": True}
    return figure([curve, stop], "pass", yaxis=axis)


def spectrum(ica: ICA) -> Figure:
    """Variances along the principal directions, those in use and the rest."""
    values, k = ica.variances_, ica.n_components_
    numbers = np.arange(1, len(values) + 1)
    data = [
        {
            "type": "scatter",
            "mode": "markers+lines",
            "name": name,
            "x": numbers[part].tolist(),
            "y": values[part].tolist(),
            "marker": {"size": 4, "color": colour},
        }
        for name, part, colour in (
            ("unmixed", slice(None, k), COLOURS["super-Gaussian"]),
            ("left out", slice(k, None), COLOURS["Gaussian"]),
        )
        if len(values[part])
    ]
    axis = {"type": "log", "title": {"text": "variance"}, "exponentformat": "power", "automargin": True}
    return figure(data, "principal direction", yaxis=axis, showlegend=True)

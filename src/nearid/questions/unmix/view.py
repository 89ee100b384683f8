"""What a person sees of an unmixing: the components, and whether they can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.ica.diagnostics import UNSTABLE
from nearid.show.figures import Curve, Figure, Lines, Scatter
from nearid.show.view import BAD, CAREFUL, GOOD, Column, Row, Table, View, counted, number

if TYPE_CHECKING:
    from nearid.ica.diagnostics import Diagnostics
    from nearid.ica.estimators import IcaEstimator

COLOURS = {"super-Gaussian": "#0072B2", "sub-Gaussian": "#E69F00", "Gaussian": "#999999"}
LEADING = 10


def view(ica: IcaEstimator) -> View:
    """The view of a fit."""
    alerts = ica.diagnostics_.alerts
    return View(
        question="What are the independent components?",
        subject=str(ica.provenance_["inputs"][0].get("name", "")),
        headline=headline(ica),
        colour=BAD if not ica.converged_ else CAREFUL if alerts else GOOD,
        alerts=alerts,
        tables=[_leading(ica)],
        facts=_facts(ica),
        figures=_figures(ica),
        provenance=ica.provenance_,
    )


def headline(ica: IcaEstimator) -> str:
    """The outcome in a sentence."""
    d = ica.diagnostics_
    gaussian = int(np.sum(d.gaussian))
    apart = f"{gaussian} of them cannot be distinguished from Gaussian noise" if gaussian else "none of them Gaussian"
    passes = counted(d.passes, "pass", "passes") + (" from the best start" if d.starts > 1 else "")
    ended = f"found in {passes}" if d.converged else f"not settled after {passes}"
    return f"{counted(d.components, 'component')}, {ended}; {apart}"


def records(ica: IcaEstimator) -> list[dict[str, Any]]:
    """A row for each component, and the column in which it is largest."""
    d = ica.diagnostics_
    columns = getattr(ica, "feature_names_in_", range(d.columns))
    return [
        {
            "component": i,
            "nongaussianity": float(d.nongaussianity[i]),
            "z": float(d.z[i]),
            "p_value": float(d.p_values[i]),
            "kind": d.kinds[i],
            "stability": np.nan if d.stability is None else float(d.stability[i]),
            "recurrence": np.nan if d.recurrence is None else int(d.recurrence[i]),
            "largest_in_column": str(columns[largest]),
            "trust": trust(d, i),
        }
        for i, largest in enumerate(np.abs(ica.mixing_).argmax(axis=0))
    ]


def trust(d: Diagnostics, i: int) -> str:
    """Whether component i can be interpreted on its own: "yes", or why not."""
    reasons = []
    # One Gaussian component is what the others leave over; two or more mix freely.
    if d.gaussian[i] and np.sum(d.gaussian) > 1 and (d.stability is None or d.stability[i] < UNSTABLE):
        reasons.append("Gaussian")
    if d.recurrence is not None and d.recurrence[i] < 2:
        reasons.append("depends on the start")
    if d.stability is not None and d.stability[i] < UNSTABLE:
        reasons.append("unstable")
    return "no: " + ", ".join(reasons) if reasons else "yes"


def _facts(ica: IcaEstimator) -> dict[str, str]:
    d = ica.diagnostics_
    facts = {
        "rows": f"{d.rows:,}",
        "rows per parameter": f"{d.rows_per_parameter:.3g}",
        "rank": f"{d.rank} of {d.columns}",
        "variances": f"{d.largest_variance:.3g} to {d.smallest_variance:.3g}",
        "relative gradient": f"{d.gradient:.1e} (tol {d.tol:g})",
        "super-Gaussian": str(d.super_gaussian),
        "sub-Gaussian": str(d.sub_gaussian),
    }
    if ica.contrast == "auto":
        facts["contrast"] = f"{d.contrast}, whose estimates vary less by rows held out"
    if d.curvature:
        i, j, least = d.curvature[0]
        facts["least curvature (mu)"] = f"{number(least)} between components {i} and {j}"
    if d.recurrence is not None:
        trusted = sum(trust(d, i) == "yes" for i in range(d.components))
        facts["components to trust"] = f"{trusted} of {d.components}"
        facts["found by every start"] = f"{int(np.sum(d.recurrence == d.starts))} of {d.components} components"
        facts["starts that reached the best optimum"] = f"{d.same_optimum} of {d.starts}"
    if d.stability is not None:
        facts["least stability"] = number(float(np.min(d.stability)))
    return facts


def _leading(ica: IcaEstimator) -> Table:
    d = ica.diagnostics_
    shown = min(LEADING, d.components)
    more = {} if d.recurrence is None else {"recurrence": Column(f"found by\n(of {d.starts} starts)", digits=0)}
    more |= {} if d.stability is None else {"stability": Column("stability")}
    columns = [Column("component"), Column("non-Gaussianity"), Column("z", digits=1), Column("kind", left=True)]
    names = ("component", "nongaussianity", "z", "kind", *more, "largest_in_column", "trust")
    rows = [Row([record[name] for name in names]) for record in records(ica)[:shown]]
    title = f"the {shown} least Gaussian of {d.components} components" if shown < d.components else "components"
    return Table(
        title, [*columns, *more.values(), Column("largest in column", left=True), Column("trust", left=True)], rows
    )


def _figures(ica: IcaEstimator) -> list[Figure]:
    d, k = ica.diagnostics_, ica.n_components_
    kinds, numbers = np.array(d.kinds), np.arange(k)
    passes, directions = np.arange(1, len(ica.gradients_) + 1), np.arange(1, len(ica.variances_) + 1)
    # A gradient of exactly 0 has no place on a logarithmic axis.
    gradients = np.where(np.array(ica.gradients_) > 0, ica.gradients_, np.nan)
    spectrum = {"unmixed": Curve(directions[:k], ica.variances_[:k], COLOURS["super-Gaussian"], markers=True)}
    if len(directions) > k:
        spectrum["left out"] = Curve(directions[k:], ica.variances_[k:], COLOURS["Gaussian"], markers=True)
    return [
        Scatter(
            "How far from Gaussian",
            "E[G(s)] minus its value for a Gaussian, component by component. Grey ones cannot be distinguished from "
            "Gaussian noise. Any rotation among Gaussian components fits as well.",
            "component",
            "E[G(s)] - Gaussian",
            {n: (numbers[kinds == n], d.nongaussianity[kinds == n]) for n in COLOURS if (kinds == n).any()},
            colours=COLOURS,
        ),
        Lines(
            "Convergence",
            "Relative projected gradient after each pass; the line is tol.",
            "pass",
            "relative gradient",
            {
                "relative gradient": Curve(passes, gradients, markers=True),
                f"tol {d.tol:g}": Curve([1, max(len(passes), 2)], [d.tol, d.tol], dash="dot"),
            },
            log=True,
        ),
        Lines(
            "Spectrum",
            "Variance along each principal direction of the rows; those unmixed are blue.",
            "principal direction",
            "variance",
            spectrum,
            log=True,
        ),
    ]

"""What a person sees of an unmixing: the components, and whether they can be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.ica.diagnostics import NOT_CHECKED
from nearid.ica.held import MOST_HELD
from nearid.moments import Floats
from nearid.show.figures import Curve, Figure, Lines, Scatter
from nearid.show.view import BAD, CAREFUL, GOOD, Column, Row, Table, View, counted, number

if TYPE_CHECKING:
    from nearid.ica.diagnostics import Diagnostics
    from nearid.ica.estimators import IcaEstimator

COLOURS = {"super-Gaussian": "#0072B2", "sub-Gaussian": "#E69F00", "Gaussian": "#999999"}
# Components of the table that is always shown, and columns that are named for each.
LEADING, LOADINGS = 10, 3
# So many trusted components are named above the table, which shows the least Gaussian ones.
NAMED = 10
LOADED = (
    "A loading is what one standard deviation of the component adds to a column. Pale components should not be "
    "interpreted one by one."
)


def view(ica: IcaEstimator) -> View:
    """The view of a fit."""
    alerts = ica.diagnostics_.alerts
    return View(
        question="What are the independent components?",
        subject=str(ica.provenance_["inputs"][0].get("name", "")),
        headline=headline(ica),
        reason=reason(ica),
        colour=BAD if not ica.converged_ else CAREFUL if alerts or NOT_CHECKED in ica.diagnostics_.doubts else GOOD,
        alerts=alerts,
        tables=_tables(ica),
        facts=_facts(ica),
        figures=_figures(ica),
        provenance=ica.provenance_,
    )


def headline(ica: IcaEstimator) -> str:
    """The outcome in a sentence."""
    d = ica.diagnostics_
    if not d.converged:
        return f"The fit did not converge; do not interpret its {counted(d.components, 'component')} ({_gradient(d)})"
    return f"{counted(d.components, 'component')} found; {_outcome(d)}"


def _outcome(d: Diagnostics) -> str:
    """How many components can be interpreted, and the number that decided."""
    if d.components == 1:
        outcome = "it cannot be distinguished from Gaussian noise" if d.gaussian[0] else "it is not Gaussian"
        return f"{outcome} (p = {d.p_values[0]:.2g})"
    if d.trusted:
        every = d.trusted == d.components
        return f"{'all' if every else d.trusted} of them can be interpreted one by one ({_evidence(d)})"
    if NOT_CHECKED in d.doubts:
        return "nearid did not check whether they can be interpreted one by one (only one start)"
    (doubt, count), *_ = Counter(doubt.split(", ")[0] for doubt in d.doubts).most_common(1)
    return f"none of them can be interpreted one by one ({doubt}: {count} of {d.components})"


def _evidence(d: Diagnostics) -> str:
    """What all trusted components have at least: stability on halves of the rows, or else starts that found them."""
    trusted = [not doubt for doubt in d.doubts]
    if d.stability is not None:
        return f"stability at least {number(float(d.stability[trusted].min()))}"
    # Components are trusted only if they were looked for again.
    assert d.recurrence is not None
    least = int(d.recurrence[trusted].min())
    return f"found by {f'all {least}' if least == d.starts else f'at least {least} of {d.starts}'} starts"


def _gradient(d: Diagnostics) -> str:
    passes = counted(d.passes, "pass", "passes") + (" from the best start" if d.starts > 1 else "")
    return f"relative gradient {d.gradient:.1e} after {passes}, tol {d.tol:g}"


def reason(ica: IcaEstimator) -> str:
    """Why components cannot be interpreted one by one, each counted once, and what to type where it was not checked."""
    d = ica.diagnostics_
    # The first of several reasons is the one to look into.
    why = Counter(doubt.split(", ")[0] for doubt in d.doubts if doubt)
    counts = ", ".join(f"{word} ({count})" for word, count in why.items() if word != NOT_CHECKED)
    sound = [str(i) for i, doubt in enumerate(d.doubts) if not doubt]
    sentences = [f"To be interpreted: {', '.join(sound)}."] if counts and 0 < len(sound) <= NAMED else []
    sentences += [f"Not to be interpreted one by one: {counts}."] if counts else []
    if NOT_CHECKED in why:
        check = "--stability 5 (stability=5)"
        # Of more rows starts may not be tried.
        if ica.starts == 1 and ica.whiten and d.rows * d.components <= MOST_HELD:
            check = f"--starts 3 (starts=3) or {check}"
        sentences.append(
            f"With one start nearid cannot see whether components come out again. To check it, use {check}."
        )
    return " ".join(sentences)


def records(ica: IcaEstimator) -> list[dict[str, Any]]:
    """A row for each component, with the column in which it is largest and whether to trust it."""
    d = ica.diagnostics_
    columns = getattr(ica, "feature_names_in_", range(d.columns))
    unknown = np.full(d.components, np.nan)
    known = {
        name: unknown if getattr(d, name) is None else getattr(d, name)
        for name in ("kurtosis", "recurrence", "agreement", "stability")
    }
    return [
        {
            "component": i,
            "nongaussianity": float(d.nongaussianity[i]),
            "z": float(d.z[i]),
            "p_value": float(d.p_values[i]),
            "kind": d.kinds[i],
            **{name: values[i].item() for name, values in known.items()},
            "largest_in_column": str(columns[int(np.abs(ica.mixing_[:, i]).argmax())]),
            "loadings": _loadings(ica.mixing_[:, i], columns),
            "trust": _trust(doubt),
        }
        for i, doubt in enumerate(d.doubts)
    ]


def _trust(doubt: str) -> str:
    return doubt if doubt == NOT_CHECKED else f"no: {doubt}" if doubt else "yes"


def _facts(ica: IcaEstimator) -> dict[str, str]:
    d = ica.diagnostics_
    facts = {
        "rows": f"{d.rows:,}",
        "rows per parameter": f"{d.rows_per_parameter:.3g}",
        "rank": f"{d.rank} of {d.columns}",
        "variances": f"{d.largest_variance:.3g} to {d.smallest_variance:.3g}",
        "convergence": _gradient(d),
        "super-Gaussian": str(d.super_gaussian),
        "sub-Gaussian": str(d.sub_gaussian),
        "not distinguished from Gaussian": str(int(np.sum(d.gaussian))),
    }
    if d.above_noise is not None:
        # Not "above noise": columns that are unrelated have no such direction, and may be sources all the same.
        facts["directions with more variance than unrelated columns have"] = f"{d.above_noise} of {d.components}"
    if ica.contrast == "auto":
        facts["contrast"] = f"{d.contrast}, chosen by auto: its estimates vary less on held-out rows"
    if d.curvature:
        i, j, least = d.curvature[0]
        facts["least curvature (mu)"] = f"{number(least)} between components {i} and {j}"
    if d.recurrence is not None:
        facts["found by every start"] = f"{int(np.sum(d.recurrence == d.starts))} of {d.components} components"
        facts["starts that reached the best optimum"] = f"{d.same_optimum} of {d.starts}"
    if d.stability is not None:
        facts["least stability"] = number(float(np.min(d.stability)))
    return facts


def _tables(ica: IcaEstimator) -> list[Table]:
    """The components that are the least Gaussian; on the page also all of them, with what each is made of."""
    d, each = ica.diagnostics_, records(ica)
    shown = min(LEADING, d.components)
    title = f"the {shown} least Gaussian of {d.components} components" if shown < d.components else "components"
    leading = {
        "component": Column("component"),
        "trust": Column("trust", left=True),
        "nongaussianity": Column("non-\nGaussianity"),
        "z": Column("z", digits=1, wide=True),
        "kurtosis": Column("excess\nkurtosis", digits=1, wide=True),
        "kind": Column("kind", left=True),
        "recurrence": Column(f"found by\n(of {d.starts})", digits=0),
        "stability": Column("stability"),
        "largest_in_column": Column("largest\nin column", left=True),
    }
    names = ("component", "trust", "kurtosis", "recurrence", "agreement", "stability", "loadings")
    more = {"agreement": Column("agreement\nof starts"), "loadings": Column("largest loadings", left=True)}
    every = {name: {**leading, **more}[name] for name in names}
    rest = "All components: folded table of the page (--report FILE.html, save_report), --json (to_dict()), to_frame()."
    return [
        replace(_table(title, leading, each[:shown], d), note=rest if shown < d.components else ""),
        replace(_table("All components and their largest loadings", every, each, d), note=LOADED, folded=True),
    ]


def _table(title: str, columns: dict[str, Column], each: list[dict[str, Any]], d: Diagnostics) -> Table:
    """The columns of records that are known of this fit; components that cannot be trusted are pale."""
    known = [name for name in columns if getattr(d, name, ()) is not None]
    rows = [Row([record[name] for name in known], faint=record["trust"] != "yes") for record in each]
    return Table(title, [columns[name] for name in known], rows)


def _again(ica: IcaEstimator) -> Iterator[Figure]:
    """How nearly each component comes out again, where that was looked at: from halves of the rows, or by starts."""
    d = ica.diagnostics_
    seen, axis = (d.agreement, "agreement of starts") if d.stability is None else (d.stability, "stability")
    if seen is None:
        return
    trusted, numbers = np.array([not doubt for doubt in d.doubts]), np.arange(d.components)
    points = {"trusted": trusted, "not trusted": ~trusted}
    yield Scatter(
        "Do components come out again?",
        "Mean |correlation| with what other starts, or fits to halves of the rows, find; 1: always the same. Grey "
        "components should not be interpreted one by one; the table says why.",
        "component",
        axis,
        {name: (numbers[chosen], seen[chosen]) for name, chosen in points.items() if chosen.any()},
        names={name: [f"{i}: {d.doubts[i] or 'trusted'}" for i in numbers[chosen]] for name, chosen in points.items()},
        colours={"trusted": GOOD, "not trusted": COLOURS["Gaussian"]},
    )


def _loadings(mixing: Floats, columns: Sequence[object]) -> str:
    """The columns in which a component is largest, each with what a unit of the component adds to it."""
    leading = np.argsort(-np.abs(mixing), kind="stable")[:LOADINGS]
    return ", ".join(f"{columns[at]} ({mixing[at]:+.2g})" for at in leading)


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
        *_again(ica),
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

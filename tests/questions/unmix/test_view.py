"""What a person sees of an unmixing."""

import warnings
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from nearid import ICA
from nearid.arrays import open_rows
from nearid.ica.estimators import IdentifiabilityWarning
from nearid.show.terminal import text
from nearid.show.view import BAD, CAREFUL, GOOD


@pytest.fixture(scope="module")
def ica():
    rng = np.random.default_rng(0)
    s = np.hstack([rng.laplace(size=(5000, 8)), rng.uniform(-1, 1, size=(5000, 3)), rng.normal(size=(5000, 1))])
    return ICA().fit(open_rows(s @ rng.normal(size=(12, 12)), name="[bold]name"))


def test_the_headline(ica):
    least = int(ica.diagnostics_.recurrence.min())
    starts = "all 3" if least == 3 else f"at least {least} of 3"
    assert ica.view.headline == (
        f"12 components found; all of them can be interpreted one by one (found by {starts} starts)"
    )
    assert ica.view.reason == "" and ica.view.facts["convergence"].endswith(" from the best start, tol 0.0001")
    assert ica.view.facts["not distinguished from Gaussian"] == str(int(ica.diagnostics_.gaussian.sum()))
    # Whether one pass ends at a saddle depends on the draw.
    with pytest.warns(ConvergenceWarning), warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        short = ICA(max_passes=1).fit(np.random.default_rng(0).laplace(size=(4000, 3)))
    assert short.view.headline.startswith("The fit did not converge; do not interpret its 3 components (relative")
    assert short.view.headline.endswith(" after 1 pass from the best start, tol 0.0001)")
    assert short.view.colour == BAD and short.view.reason == "Not to be interpreted one by one: not converged (3)."
    assert all(trust.startswith("no: not converged") for trust in short.to_frame()["trust"])


def test_the_headline_of_one_component(rng):
    assert (
        ICA().fit(rng.laplace(size=(3000, 1))).view.headline.startswith("1 component found; it is not Gaussian (p = ")
    )
    noise = ICA().fit(rng.normal(size=(20, 1)))
    p = f"{noise.diagnostics_.p_values[0]:.2g}"
    assert noise.view.headline == f"1 component found; it cannot be distinguished from Gaussian noise (p = {p})"


def test_noise_is_not_called_good(ica):
    assert ica.view.colour == GOOD
    with pytest.warns(IdentifiabilityWarning, match="4 of 4 components"):
        noise = ICA().fit(np.random.default_rng(0).normal(size=(500, 4)))
    assert noise.view.colour == CAREFUL and "! 4 of 4 components" in str(noise)


def test_the_least_gaussian_components_are_listed_with_their_columns(ica, rng):
    table, every = ica.view.tables
    assert table.title == "the 10 least Gaussian of 12 components" and len(table.rows) == 10
    assert "stability" not in [column.title for column in table.columns] and "[bold]name" in text(ica.view, 80)
    # The page has all of them, on request; a terminal does not, and says where they are.
    assert "All components: folded table of the page (--report FILE.html" in " ".join(text(ica.view, 80).split())
    assert every.folded and len(every.rows) == 12 and every.title not in text(ica.view, 120)
    import pandas as pd

    named = ICA(stability=1).fit(pd.DataFrame(rng.laplace(size=(500, 2)), columns=["left", "right"]))
    table, every = named.view.tables
    assert (
        table.title == "components" and table.note == "" and "stability" in [column.title for column in table.columns]
    )
    assert sorted(row.cells[-1] for row in table.rows) == ["left", "right"]
    assert sorted(named.to_frame()["largest_in_column"]) == ["left", "right"]
    assert "least stability" in named.view.facts and "least stability" not in ica.view.facts
    # Loadings are those of the mixing, the largest first.
    assert [column.title for column in every.columns][-1] == "largest loadings"
    for i, row in enumerate(every.rows):
        own, other = sorted((0, 1), key=lambda at, i=i: -abs(named.mixing_[at, i]))
        names = ["left", "right"]
        first, second = (f"{names[at]} ({named.mixing_[at, i]:+.2g})" for at in (own, other))
        assert row.cells[-1] == f"{first}, {second}"


def test_kurtosis_is_that_of_scipy(ica, rng):
    from scipy.stats import kurtosis

    x = rng.laplace(size=(3000, 3)) @ rng.normal(size=(3, 3)) + 100
    fit = ICA().fit(x)
    np.testing.assert_allclose(fit.to_frame()["kurtosis"], kurtosis(fit.transform(x)), rtol=1e-9)
    # The sign is that of the kind.
    kinds = ica.to_frame().set_index("kind")["kurtosis"]
    assert (kinds["super-Gaussian"] > 0).all() and (kinds["sub-Gaussian"] < 0).all()


def test_components_that_cannot_be_trusted_are_marked(ica):
    # A single Gaussian component is what the others leave over, and starts find it again.
    assert ica.to_frame()["trust"].tolist() == ["yes"] * 12
    gaussian, few = ica.diagnostics_.gaussian.copy(), ica.diagnostics_.recurrence.copy()
    gaussian[-2:], few[3] = True, 1
    doubtful = replace(ica.diagnostics_, gaussian=gaussian, recurrence=few)
    assert doubtful.doubts[3] == "depends on the start" and doubtful.doubts[10:] == ["Gaussian"] * 2
    assert doubtful.trusted == 9
    # Halves of the rows, each with starts of its own, tell more than the starts of one fit.
    stable = replace(doubtful, stability=np.where(np.arange(12) == 5, 0.5, 1.0))
    assert [stable.doubts[i] for i in (3, 5, 11)] == ["", "unstable", ""]
    marked = copy(ica)
    marked.diagnostics_ = replace(doubtful, recurrence=np.ones_like(few), gaussian=np.zeros_like(gaussian))
    assert marked.view.headline.endswith("none of them can be interpreted one by one (depends on the start: 12 of 12)")
    marked.diagnostics_ = replace(stable, stability=np.where(np.arange(12) == 5, 0.5, 0.97))
    assert marked.view.headline.endswith("; 11 of them can be interpreted one by one (stability at least 0.970)")
    marked.diagnostics_ = doubtful
    for table in marked.view.tables:
        assert [row.cells[1] for row in table.rows if row.faint][:1] == ["no: depends on the start"]
        assert all(row.cells[1] == "yes" for row in table.rows if not row.faint)
    # The figure marks them too, and shows what the answer is from: starts, or halves of the rows.
    figure = marked.view.figures[1]
    assert figure.points["not trusted"][0].tolist() == [3, 10, 11] and figure.y == "agreement of starts"
    np.testing.assert_array_equal(figure.points["trusted"][1], np.delete(doubtful.agreement, [3, 10, 11]))
    marked.diagnostics_ = stable
    figure = marked.view.figures[1]
    assert figure.points["not trusted"][1].tolist() == [0.5] and figure.names["not trusted"] == ["5: unstable"]


def outlying(rng):
    """Sources with three damaged rows: these rows make components of their own."""
    x = rng.laplace(size=(2000, 6)) @ rng.normal(size=(6, 6))
    x[:3] = 5000 * rng.normal(size=(3, 6))
    return x


@pytest.mark.filterwarnings("ignore::nearid.IdentifiabilityWarning")
def test_components_that_a_few_rows_make_are_not_trusted(rng):
    x = outlying(rng)
    found = ICA(stability=2).fit(x)
    squares = np.sort(found.transform(x) ** 2, axis=0)[::-1]
    made = squares[:3].sum(axis=0) > 0.9 * squares.sum(axis=0)
    assert made.sum() >= 3
    trust = found.to_frame()["trust"]
    assert trust[made].str.startswith("no: few rows").all() and not trust[~made].str.contains("few rows").any()
    assert f"few rows ({made.sum()})" in found.view.reason
    # Where rows are few, they say little of a kurtosis.
    assert not any("few rows" in doubt for doubt in replace(found.diagnostics_, rows=199).doubts)


@pytest.mark.parametrize(
    ("options", "typed"),
    [
        ({"starts": 1}, "To check it, use --starts 3 (starts=3) or --stability 5 (stability=5)."),
        ({"whiten": False}, "To check it, use --stability 5 (stability=5)."),
    ],
)
def test_where_nothing_vouches_for_a_component_it_is_not_trusted(rng, options, typed):
    x = rng.laplace(size=(1500, 3)) * [3, 2, 1]
    found = ICA(**options).fit(x)
    assert found.to_frame()["trust"].tolist() == ["not checked"] * 3 and found.diagnostics_.trusted == 0
    assert found.view.headline.endswith("did not check whether they can be interpreted one by one (only one start)")
    assert typed in found.view.reason and found.view.colour == CAREFUL
    assert all(row.faint for table in found.view.tables for row in table.rows)
    assert "Do components come out again?" not in [figure.title for figure in found.view.figures]
    checked = ICA(**options, stability=2).fit(x)
    assert checked.to_frame()["trust"].tolist() == ["yes"] * 3 and checked.view.reason == ""
    # One component cannot be turned into another.
    assert ICA(**options).fit(x[:, :1]).to_frame()["trust"].tolist() == ["yes"]


@pytest.mark.filterwarnings("ignore::nearid.IdentifiabilityWarning")
def test_a_gaussian_plane_is_not_trusted(rng):
    s = np.hstack([rng.laplace(size=(4000, 6)), rng.normal(size=(4000, 2))])
    x = s @ rng.normal(size=(8, 8))
    found = ICA().fit(x)
    plane = (np.corrcoef(found.transform(x).T, s.T)[:8, 14:] ** 2).sum(axis=1) > 0.5
    trust = found.to_frame()["trust"]
    assert plane.sum() == 2 and (trust[~plane] == "yes").all() and trust[plane].str.startswith("no: Gaussian").all()
    assert "; 6 of them can be interpreted one by one" in found.view.headline
    assert found.view.reason == "To be interpreted: 0, 1, 2, 3, 4, 5. Not to be interpreted one by one: Gaussian (2)."


def test_points_are_the_diagnostics_with_gaussian_ones_apart(ica):
    points = ica.view.figures[0].points
    assert {kind: len(x) for kind, (x, _) in points.items()} == {"super-Gaussian": 8, "sub-Gaussian": 3, "Gaussian": 1}
    drawn = {int(k): v for x, y in points.values() for k, v in zip(x, y, strict=True)}
    assert [drawn[k] for k in range(12)] == ica.diagnostics_.nongaussianity.tolist()


@pytest.mark.filterwarnings("ignore::nearid.IdentifiabilityWarning")
def test_convergence_and_spectrum(ica):
    curve, stop = ica.view.figures[2].curves.values()
    assert list(curve.y) == ica.gradients_ and stop.y == [ica.tol, ica.tol]
    narrowed = ICA(n_components=2).fit(np.random.default_rng(0).laplace(size=(500, 5)))
    kept, rest = narrowed.view.figures[3].curves.values()
    assert len(kept.y) == 2 and [*kept.y, *rest.y] == narrowed.variances_.tolist()


def test_the_contrast_that_auto_took_is_named(rng):
    found = ICA(contrast="auto").fit(rng.laplace(size=(1000, 3)) @ rng.normal(size=(3, 3)))
    taken = found.diagnostics_.contrast
    assert taken in ("logcosh", "exp") and found.view.facts["contrast"].startswith(f"{taken}, chosen by auto")
    assert found.to_dict()["diagnostics"]["contrast"] == taken
    assert f"contrast: {taken}, chosen by auto" in str(found)

"""InfoMEC against the reference's values, scikit-learn, and known answers."""

import json

import numpy as np
import pytest
from sklearn.feature_selection import mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from nearid import InputError
from nearid.measures import infomec as module, logistic
from nearid.measures.infomec import PRESETS, infomec
from nearid.measures.information import entropy
from nearid.measures.logistic import STOPS, fit_logistic

VERSIONS = {"sum": "sklearn 1.3.0", "mean": "sklearn 1.9.1"}


@pytest.fixture(scope="session")
def reference(real_data):
    """Folder and values of the reference, or a skip that says where they were looked for."""
    folder = real_data.parent / "reference" / "infomec"
    if not folder.is_dir():
        pytest.skip(f"the reference's values are not here: {folder} is missing")
    return folder, json.loads((folder / "reference.json").read_text())


def codes(alerts):
    return {alert.code for alert in alerts}


def grid(rng, n=1500, sizes=(3, 5, 8)):
    """Independent uniform factors."""
    return np.column_stack([rng.integers(0, size, n) for size in sizes])


@pytest.mark.parametrize("case", ["a", "b", "d", "e"])
@pytest.mark.parametrize("scaling", ["mean", "sum"])
def test_values_are_the_references(reference, case, scaling):
    folder, values = reference
    given, expected = np.load(folder / f"case_{case}.npz"), values[VERSIONS[scaling]][case]
    found = infomec(
        given["latents"],
        given["sources"],
        discrete_latents=bool(given["discrete_latents"]),
        jitter="reference",
        scaling=scaling,
    )
    np.testing.assert_allclose(found.nmi, values["nmi"][case], rtol=0, atol=1e-9)
    np.testing.assert_array_equal(found.active, expected["active"])
    assert found.infom == pytest.approx(expected["infom"], abs=1e-9)
    assert found.infoc == pytest.approx(expected["infoc"], abs=1e-9)
    # Rounding grows without bound in fits that are cut off; others end at the same place.
    capped = np.array(expected["lbfgs_iters"]) >= 100
    chance = np.log([len(np.unique(s)) for s in given["sources"].T])
    tolerance = np.where(capped, 2e-4, 1e-9)
    assert (np.abs(found.per_factor - 1 + expected["cond_entropy"] / chance) <= tolerance).all()
    assert found.infoe == pytest.approx(expected["infoe"], abs=tolerance.max())
    assert ("unfinished_fits" in codes(found.alerts)) == capped.any()


def test_without_ties_the_jitter_changes_nothing(rng):
    factors = grid(rng, 400)
    latents = factors @ rng.normal(size=(3, 4)) + rng.normal(size=(400, 4))
    plain, jittered = infomec(latents, factors), infomec(latents, factors, jitter="reference")
    np.testing.assert_allclose(plain.nmi, jittered.nmi, atol=1e-9)


def test_nmi_is_scikit_learns_over_the_entropy(rng):
    factors = grid(rng, 500)
    latents = 3 + factors @ rng.normal(size=(3, 4)) + rng.normal(size=(500, 4))
    expected = [
        mutual_info_classif(latents, f, discrete_features=False, n_neighbors=3, random_state=1) / entropy(f)
        for f in factors.T
    ]
    np.testing.assert_allclose(infomec(latents, factors, k=3).nmi, expected, atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"jitter": "reference"}, {"discrete_latents": True}])
def test_permuted_rescaled_flipped_factors_are_found(rng, options):
    factors = grid(rng)
    found = infomec(factors[:, [2, 0, 1]] * [-1.0, 4.0, 2.0], factors, **options)
    assert found.infom > 0.97 and found.infoc > 0.97 and found.infoe > 0.99
    np.testing.assert_array_equal(found.nmi.argmax(axis=0), [2, 0, 1])


def test_a_rotation_keeps_explicitness_and_lowers_the_rest(rng):
    factors = grid(rng, sizes=(4, 4, 4))
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    straight, turned = (
        infomec(factors @ m + 1e-3 * rng.normal(size=factors.shape), factors) for m in (np.eye(3), rotation)
    )
    assert turned.infoe == pytest.approx(straight.infoe, abs=0.01)
    assert turned.infom < straight.infom - 0.3 and turned.infoc < straight.infoc - 0.3


def test_noise_informs_of_nothing(rng):
    found = infomec(rng.normal(size=(3000, 4)), grid(rng, 3000))
    assert found.nmi.max() < 0.03 and abs(found.infoe) < 0.01


def test_shift_and_scale_change_nothing(rng):
    factors = grid(rng, 400)
    latents = np.column_stack([factors[:, 0], factors @ rng.normal(size=(3, 2)) + rng.normal(size=(400, 2))])
    base, moved = infomec(latents, factors), infomec(-3e7 * (latents + 5), factors + 5)
    np.testing.assert_allclose(moved.nmi, base.nmi, atol=1e-9)
    assert moved.infoe == pytest.approx(base.infoe, abs=1e-9)


@pytest.mark.parametrize("size", [1e-250, -1.7e308])
def test_sizes_whose_squares_leave_the_range_are_fine(rng, size):
    factors = grid(rng, 300)
    latents = factors + rng.normal(size=factors.shape)
    latents /= np.abs(latents).max()
    np.testing.assert_allclose(infomec(size * latents, factors).nmi, infomec(latents, factors).nmi, atol=1e-9)


def test_strings_are_factors_too(rng):
    factors = grid(rng, 300)
    latents = factors + rng.normal(size=factors.shape)
    named = np.array([list("abcdefgh")[v] for v in factors.ravel()]).reshape(factors.shape)
    np.testing.assert_array_equal(infomec(latents, named).nmi, infomec(latents, factors).nmi)


def test_pruning_follows_the_ranges_and_presets(rng):
    factors = grid(rng, 400)
    latents = factors / np.ptp(factors, axis=0) * [1, 0.11, 0.07] + 0.0
    found = {name: infomec(latents, factors, **preset).active.tolist() for name, preset in PRESETS.items()}
    assert found == {
        "k10_prune20": [True, True, True],
        "k3_prune8": [True, False, False],
        "k10_prune10": [True, True, False],
    }


def test_an_inactive_latent_counts_in_explicitness_alone(rng):
    factors = grid(rng, 600)
    latents = factors * [1.0, 1.0, 1e-3]
    found = infomec(latents, factors)
    np.testing.assert_array_equal(found.active, [True, True, False])
    assert found.infoe > 0.99 and found.infom > 0.95
    # The third factor stands in no active latent: these tell nothing of it.
    assert found.matrix[found.active, 2].max() < 0.2 < found.matrix[0, 0]


def test_zero_over_zero_is_no_preference_and_told():
    a, b, c = (v.ravel() for v in np.meshgrid(range(2), range(4), range(2), indexing="ij"))
    a, b, c = (np.tile(v, 30) for v in (a, b, c))
    found = infomec(np.column_stack([a, c]).astype(float), np.column_stack([a, b]))
    # The latent c informs of no factor, and no latent of the factor b: half of each mean is 1, half no preference.
    assert found.nmi[0, 0] > 0.9 and not found.nmi[1].any() and not found.nmi[:, 1].any()
    assert found.infom == pytest.approx(0.5) and found.infoc == pytest.approx(0.5)
    assert {"uninformative_latents", "unrecovered_factors"} <= codes(found.alerts)


def test_constant_latents_tell_nothing_and_that_is_said(rng):
    found = infomec(np.ones((50, 2)), grid(rng, 50))
    assert (found.infom, found.infoc) == (0.0, 0.0) and abs(found.infoe) < 1e-6
    assert "constant_latents" in codes(found.alerts) and not found.active.any()


def test_continuous_factors_are_binned_and_that_is_said(rng):
    factors = rng.uniform(size=(800, 2))
    found = infomec(factors, factors, bins=8)
    assert found.infom > 0.9 and found.infoc > 0.9
    [told] = [alert.message for alert in found.alerts if alert.code == "binned_factors"]
    assert "cuts '0', '1' into 8 bins" in told
    binned = infomec(factors, np.floor(factors * 8).astype(int), bins=8)
    np.testing.assert_allclose(found.nmi, binned.nmi, atol=0.02)


def test_single_factors_and_single_active_latents_are_undefined_not_nan(rng):
    factor = rng.integers(0, 4, 300)
    found = infomec(np.column_stack([factor, np.ones(300)]), factor)
    assert np.isnan([found.value, found.infom, found.infoc]).all() and found.infoe > 0.9
    assert {"one_factor", "one_active_latent"} <= codes(found.alerts)
    assert np.isfinite(found.nmi).all() and found.nmi[0, 1] == 0


def test_singleton_classes_and_few_rows_are_told(rng):
    factor = np.r_[rng.integers(0, 3, 60), 7, 8]
    found = infomec(rng.normal(size=(62, 20)), np.column_stack([factor, np.arange(62) % 2]))
    [single] = [alert for alert in found.alerts if alert.code == "singleton_classes"]
    assert single.message.startswith("2 classes of the factor '0'")
    assert "few_rows" in codes(found.alerts) and np.isfinite(found.nmi).all()


def test_converged_fits_are_at_least_as_explicit(rng):
    factors = grid(rng, 400)
    latents = factors + 0.3 * rng.normal(size=factors.shape)
    early, late = infomec(latents, factors), infomec(latents, factors, converged=True)
    assert late.infoe >= early.infoe - 1e-9
    assert "unfinished_fits" not in codes(late.alerts)


def test_threads_change_nothing(rng, monkeypatch):
    factors = grid(rng, 300)
    latents = factors + rng.normal(size=factors.shape)
    threaded = infomec(latents, factors)
    ordered = module.ordered_map
    monkeypatch.setattr(module, "ordered_map", lambda f, items, tick: ordered(f, items, workers=1, tick=tick))
    alone = infomec(latents, factors)
    np.testing.assert_array_equal(threaded.nmi, alone.nmi)
    np.testing.assert_array_equal(threaded.per_factor, alone.per_factor)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k is 0"),
        ({"k": 2.5}, "k is 2.5"),
        ({"prune": 1}, "prune is 1"),
        ({"jitter": "noise"}, "jitter is 'noise'"),
        ({"scaling": "median"}, "scaling is 'median'"),
        ({"discrete_latents": True}, "different values"),
        ({"bins": 1}, "bins is 1, .*at least 2"),
    ],
)
def test_options_that_make_no_sense_are_refused(rng, options, message):
    with pytest.raises(InputError, match=message):
        infomec(rng.normal(size=(50, 2)), grid(rng, 50), **options)


def test_latents_that_cannot_be_used_are_refused(rng):
    factors, latents = grid(rng, 50), rng.normal(size=(50, 2))
    with pytest.raises(InputError, match="latents has 50 rows and factors has 49"):
        infomec(latents, factors[1:])
    latents[3, 1] = np.nan
    with pytest.raises(InputError, match="row 3, column 1"):
        infomec(latents, factors)


def classes(rng, n=900, k=4):
    codes = np.minimum(rng.integers(0, k, n), rng.integers(0, k, n))
    x = rng.normal(size=(n, 3))
    x[:, 0] += codes
    x[:, 1] -= codes == 1
    return x, np.hstack([x, np.ones((n, 1))]), codes


def sklearns(x, codes, **options):
    model = LogisticRegression(C=np.inf, class_weight="balanced", **options).fit(x, codes)
    return model.n_iter_[0], log_loss(codes, model.predict_proba(x))


def test_the_mean_stops_where_scikit_learn_stops(rng):
    x, design, codes = classes(rng)
    fit = fit_logistic(design, codes)
    iterations, loss = sklearns(x, codes)
    assert fit.finished and fit.iterations == iterations
    assert fit.loss == pytest.approx(loss, abs=1e-11)


def test_the_sum_asks_for_more_and_converged_is_the_optimum(rng):
    x, design, codes = classes(rng)
    optimum = sklearns(x, codes, tol=1e-10, max_iter=10_000)[1]
    mean, total = fit_logistic(design, codes), fit_logistic(design, codes, scaling="sum")
    assert total.iterations > mean.iterations
    best = fit_logistic(design, codes, converged=True)
    assert best.finished and best.loss == pytest.approx(optimum, abs=1e-6)


def test_blocks_change_nothing(rng, monkeypatch):
    _, design, codes = classes(rng)
    whole = fit_logistic(design, codes)
    monkeypatch.setattr(logistic, "BLOCK", 128)
    cut = fit_logistic(design, codes)
    assert cut.iterations == whole.iterations and cut.loss == pytest.approx(whole.loss, abs=1e-11)


def test_an_intercept_alone_gives_the_log_of_the_number_of_classes(rng):
    codes = classes(rng)[2]
    assert fit_logistic(np.ones((len(codes), 1)), codes).loss == pytest.approx(np.log(4), abs=1e-12)


def test_a_fit_that_hits_the_cap_says_so(rng, monkeypatch):
    _, design, codes = classes(rng)
    monkeypatch.setitem(STOPS, "mean", {**STOPS["mean"], "maxiter": 3})
    fit = fit_logistic(design, codes)
    assert not fit.finished and fit.iterations == 3


def test_separable_classes_end_with_no_loss(rng):
    codes = rng.integers(0, 2, 200)
    design = np.column_stack([codes - 0.5, np.ones(200)])
    fit = fit_logistic(design, codes, converged=True)
    assert fit.finished and fit.loss < 1e-6

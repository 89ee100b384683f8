from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.linear_model import LogisticRegression

from deconfound_plans import plan_of
from nearid import InputError
from nearid.arrays import open_rows
from nearid.measures.auroc import auroc
from nearid.questions.deconfound import classifiers
from nearid.questions.deconfound.classifiers import auroc_within, aurocs_without, check_boosting, hoyer, learn
from nearid.questions.deconfound.conditions import ComponentRows, Condition

PLAN = plan_of(boosting={"trees": 10}), 1


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    y = x[:, 2] + 0.5 * rng.normal(size=300) > 0.8
    view = ComponentRows(open_rows(x), Condition("pca", np.zeros(4), np.eye(4), np.arange(4), np.ones(4)))
    return view, x.astype(np.float32), y


def test_area_under_the_curve_within_batches(rng):
    scores, truth, batches = rng.integers(0, 5, 60).astype(float), rng.random(60) < 0.3, rng.integers(0, 4, 60)
    batches[truth & (batches == 3)] = 2
    pairs = [(i, j) for i in np.flatnonzero(truth) for j in np.flatnonzero(~truth) if batches[i] == batches[j]]
    right = [(scores[i] > scores[j]) + 0.5 * (scores[i] == scores[j]) for i, j in pairs]
    assert auroc_within(truth, scores, batches) == pytest.approx(np.mean(right))
    assert np.isnan(auroc_within(truth, scores, truth.astype(int)))


@given(st.integers(0, 10_000))
def test_areas_without_a_batch_are_those_of_the_other_rows(seed):
    rng = np.random.default_rng(seed)
    # Few different scores, so that many are tied; the last batch has no rows.
    truth, scores, batches = rng.random(30) < 0.3, rng.integers(0, 6, 30).astype(float), rng.integers(0, 4, 30)
    every, within = aurocs_without(truth, scores, batches, 5)
    for batch in range(5):
        left = batches != batch
        assert every[batch] == pytest.approx(auroc(truth[left], scores[left]), nan_ok=True)
        assert within[batch] == pytest.approx(auroc_within(truth[left], scores[left], batches[left]), nan_ok=True)


def test_logistic_regression(data):
    view, x, y = data
    rows = np.arange(0, 300, 2)
    found = learn("logistic", view, rows, y[rows], *PLAN)
    model = LogisticRegression(class_weight="balanced").fit(x[rows], y[rows])
    assert np.allclose(found.predict(x), model.decision_function(x), atol=1e-2)
    sizes = np.abs(model.coef_[0])
    assert np.allclose(found.shares, sizes / sizes.sum(), atol=1e-3) and found.shares.argmax() == 2
    part = learn("logistic", view.some(np.array([2, 3])), rows, y[rows], *PLAN)
    assert part.shares.shape == (2,) and part.shares.argmax() == 0


@pytest.mark.parametrize("held", [classifiers.HELD_BYTES, 0])
def test_logistic_regression_does_not_mind_a_rotation(data, held, monkeypatch):
    view, x, y = data
    monkeypatch.setattr(classifiers, "HELD_BYTES", held)
    # Training rows whose variances are not those of all rows, as of some batches.
    rows = np.flatnonzero(np.abs(x[:, 0]) < 0.3)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    turned = ComponentRows(view.rows, Condition("random", np.zeros(4), turn, np.arange(4), np.ones(4)))
    scores = [learn("logistic", v, rows, y[rows], *PLAN).predict(v.take(np.arange(300))) for v in (view, turned)]
    assert np.allclose(*scores, atol=2e-2)


def test_boosting_with_the_published_hyperparameters(data, monkeypatch):
    lightgbm = pytest.importorskip("lightgbm", reason="the extra `boost` is not installed")
    view, x, y = data
    rows, which = np.arange(0, 300, 2), np.array([0, 2, 3])
    whole = learn("boost", view.some(which), rows, y[rows], *PLAN)
    settings = {**classifiers.PUBLISHED, "objective": "binary", "seed": 0, "num_threads": 1, "verbosity": -1}
    settings |= {"deterministic": True, "force_col_wise": True}
    part = np.ascontiguousarray(x[:, which])
    theirs = lightgbm.train(settings, lightgbm.Dataset(part[rows], y[rows]), 10)
    assert np.allclose(whole.predict(part), theirs.predict(part, raw_score=True))
    splits = theirs.feature_importance("split")
    assert splits.sum() > 0 and np.allclose(whole.shares, splits / splits.sum())
    # Rows that are mapped while they are binned give the same trees.
    monkeypatch.setattr(classifiers, "HELD_BYTES", 0)
    pieces = learn("boost", view.some(which), rows, y[rows], *PLAN)
    assert np.allclose(pieces.predict(part), whole.predict(part))


def test_standard_output_is_left_to_results(data, monkeypatch, capfd):
    pytest.importorskip("lightgbm", reason="the extra `boost` is not installed")
    view, _, y = data
    monkeypatch.setattr(classifiers, "HELD_BYTES", 0)
    monkeypatch.setattr(classifiers, "BIN_ROWS", 20)
    # A thread of its own, in which nothing has been set yet.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(learn, "boost", view, np.arange(300), y, *PLAN).result()
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"trees": 0}, "trees of boosting must be"),
        ({"min_dta_in_leaf": 5}, "Did you mean min_data_in_leaf"),
        ({"min_child_samples": 5}, "another name of min_data_in_leaf"),
        ({"num_rounds": 5}, "number of trees use 'trees'"),
        ({"num_leaves": 1}, "LightGBM refuses"),
    ],
)
def test_hyperparameters_that_would_be_overlooked_or_fail_are_told(options, told):
    pytest.importorskip("lightgbm", reason="the extra `boost` is not installed")
    check_boosting({"trees": 5, "min_data_in_leaf": 5, "max_depth": 3})
    with pytest.raises(InputError, match=told):
        check_boosting(options)


def test_too_few_rows_for_a_split_give_no_shares(data):
    pytest.importorskip("lightgbm", reason="the extra `boost` is not installed")
    view, x, y = data
    found = learn("boost", view, np.arange(40), y[:40], *PLAN)
    assert not found.shares.any() and np.ptp(found.predict(x)) == 0


@pytest.fixture(scope="module", params=[np.float64, np.float32])
def rows(request):
    rng = np.random.default_rng(1)
    x = rng.laplace(size=(900, 5)) @ rng.normal(size=(5, 5)) + 30
    y = x[:, 1] - x[:, 3] + rng.normal(size=900) > 1
    return x.astype(request.param), y


def conditions(x):
    mean, rng = x.mean(axis=0, dtype=float), np.random.default_rng(2)
    yield Condition("base", mean, None, np.array([0, 1, 3, 4]), x.std(axis=0, dtype=float)[[0, 1, 3, 4]])
    yield Condition("pca", mean, rng.normal(size=(4, 5)), np.arange(4), np.ones(4))


@pytest.mark.parametrize("which", [None, np.array([1, 3])])
def test_the_same_as_on_a_held_matrix(rows, which, monkeypatch):
    x, y = rows
    places = np.flatnonzero(np.random.default_rng(0).random(len(x)) < 0.7)
    monkeypatch.setattr(classifiers, "PIECE", 128)
    for condition in conditions(x):
        view = ComponentRows(open_rows(x), condition if which is None else condition.some(which))
        monkeypatch.setattr(classifiers, "HELD_BYTES", 0)
        found = learn("logistic", view, places, y[places], *PLAN)
        z = view.take(np.arange(len(x))).astype(np.float64)
        exact = LogisticRegression(class_weight="balanced", tol=1e-8, solver="newton-cholesky").fit(
            z[places], y[places]
        )
        expected = exact.decision_function(z)
        # Other weights of the classes or of the penalty, or other rows, change scores by a tenth and more.
        assert np.allclose(found.predict(z), expected, atol=1e-2 * expected.std())
        sizes = np.abs(exact.coef_[0])
        assert np.allclose(found.shares, sizes / sizes.sum(), atol=3e-3)


def test_a_component_that_does_not_vary_has_no_share():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=60), np.where(np.arange(60) < 40, 0.0, rng.normal(size=60))])
    view = ComponentRows(open_rows(x), Condition("pca", np.zeros(2), np.eye(2), np.arange(2), np.ones(2)))
    weights, _ = classifiers.fit_streamed(view, np.arange(40), x[:40, 0] > 0, 50)
    assert weights[0] > 0.5 and weights[1] == 0


@pytest.mark.parametrize("d", [2, 7, 384])
def test_one_of_all_and_all_alike(d):
    assert hoyer(np.eye(d)[0]) == pytest.approx(1)
    assert hoyer(np.full(d, 1 / d)) == pytest.approx(0, abs=1e-12)


def test_m_equal_shares_of_d():
    # (sqrt(d) - sqrt(m)) / (sqrt(d) - 1)
    assert hoyer([0.25] * 4 + [0] * 12) == pytest.approx((4 - 2) / (4 - 1))


@given(st.lists(st.floats(0.01, 10), min_size=2, max_size=20), st.floats(0.1, 100))
def test_a_common_factor_changes_nothing(weights, factor):
    found = hoyer(weights)
    assert -1e-9 <= found <= 1 + 1e-9
    assert hoyer(factor * np.array(weights)) == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize("weights", [[0, 0, 0], [1.0]])
def test_undefined(weights):
    assert np.isnan(hoyer(weights))

import importlib
import sys
import warnings

import numpy as np
import pytest

import nearid.engines.local as local
from nearid.base.errors import InputError
from nearid.measures import dci as module
from nearid.measures.dci import Prediction, dci, predict
from nearid.measures.factors import open_factors
from nearid.measures.registry import Earlier, measures
from nearid.measures.trees import bin_latents


def codes_of(alerts):
    return [alert.code for alert in alerts]


def test_scores_follow_from_the_importances_by_hand(rng, monkeypatch):
    # Two fits for each of two factors.
    plan = iter([[3.0, 1, 0], [3.0, 1, 0], [0, 2.0, 2], [0, 1.0, 1]])

    def planned(latents, y, train, test, **options):
        return Prediction(np.zeros(len(test)), np.array(next(plan)))

    monkeypatch.setattr(module, "predict", planned)
    monkeypatch.setattr(module, "ordered_map", lambda function, items, workers, tick: map(function, items))
    found = dci(rng.normal(size=(40, 3)), rng.normal(size=(40, 2)), folds=2)
    np.testing.assert_allclose(found.matrix, [[0.75, 0], [0.25, 0.5], [0, 0.5]])

    def entropy(p, base):
        return -sum(q * np.log(q) for q in p if q) / np.log(base)

    second = 1 - entropy([1 / 3, 2 / 3], 2)
    np.testing.assert_allclose(found.per_latent, [1, second, 1])
    assert found.disentanglement == found.value == pytest.approx((0.75 + 0.75 * second + 0.5) / 2)
    complete = [1 - entropy([0.75, 0.25], 3), 1 - entropy([0.5, 0.5], 3)]
    np.testing.assert_allclose(found.completeness_per_factor, complete)
    assert found.completeness == pytest.approx(np.mean(complete))


@pytest.mark.parametrize("model", ["boost", "l1"])
def test_sources_are_disentangled_complete_and_informative(rng, model):
    level, size = rng.integers(0, 3, 300), rng.normal(size=300)
    found = dci(np.column_stack([-4 * size, level + 5]), {"level": level, "size": size}, model=model)
    assert min(found.disentanglement, found.completeness) > 0.95 and found.informativeness > 0.93
    np.testing.assert_array_equal(found.matrix.argmax(axis=0), [1, 0])
    assert found.chance.tolist() == [np.bincount(level).max() / 300, 0]


def test_a_rotation_is_informative_but_neither_disentangled_nor_complete(rng):
    u = rng.normal(size=(400, 2))
    half = np.array([[1, -1], [1, 1]]) / np.sqrt(2)
    found = dci(u @ half, u, model="l1")
    assert found.informativeness > 0.99 and max(found.disentanglement, found.completeness) < 0.05


def test_noise_is_at_chance_held_out(rng):
    level = rng.integers(0, 2, 1200)
    found = dci(rng.normal(size=(1200, 5)), {"level": level, "size": rng.normal(size=1200)})
    assert abs(found.per_factor[0] - found.chance[0]) < 0.12 and found.per_factor[1] < 0.05


def test_circular_factors_are_predicted_around_the_circle(rng):
    angle = rng.uniform(0, 360, 500)
    radians = np.deg2rad(angle)
    factors = open_factors({"pan": angle, "x": rng.normal(size=500)}, periods={"pan": 360})
    found = dci(np.column_stack([np.cos(radians), np.sin(radians)]), factors, model="l1")
    assert found.per_factor[0] > 0.99
    np.testing.assert_allclose(found.matrix[:, 0], 0.5, atol=0.05)


def test_degenerate_inputs_are_told_and_never_nan(rng):
    one = dci(rng.normal(size=(60, 1)), rng.normal(size=(60, 1)), model="l1")
    assert {"one_factor", "one_latent"} <= set(codes_of(one.alerts))
    still = dci(np.ones((60, 2)), {"a": rng.integers(0, 2, 60), "b": rng.normal(size=60)}, model="boost")
    assert still.value == 0 == still.completeness and codes_of(still.alerts) == ["constant_latents", "no_importance"]
    assert np.isfinite(still.informativeness)


def test_refused(rng):
    z, u = rng.normal(size=(20, 2)), rng.normal(size=(20, 2))
    with pytest.raises(InputError, match="model is 'svm', but 'boost' or"):
        dci(z, u, model="svm")
    with pytest.raises(InputError, match="too few for 15 folds"):
        dci(z, u, folds=15)


@pytest.mark.parametrize("model", ["boost", "forest", "l1"])
@pytest.mark.parametrize("classes", [True, False])
def test_the_latent_that_matters_is_found_whatever_its_units(rng, model, classes):
    x = rng.normal(size=(200, 4)) * [1, 1e-3, 100, 1]
    signal = 1e3 * x[:, 1]
    y = (signal > 0).astype(int) + (signal > 1) if classes else signal
    latents = bin_latents(x) if model == "boost" else x
    train, test = np.arange(150), np.arange(150, 200)
    made, again = (predict(latents, y, train, test, model=model, classes=classes, random_state=0) for _ in range(2))
    assert made.importance.shape == (4,) and (made.importance >= 0).all()
    assert made.importance[1] > 0.6 * made.importance.sum()
    good = np.mean(made.values == y[150:]) if classes else np.corrcoef(made.values, y[150:])[0, 1]
    assert good > 0.8
    np.testing.assert_array_equal(made.values, again.values)


def test_a_constant_target_needs_no_model(rng):
    x = rng.normal(size=(20, 3))
    rows = np.arange(20)
    made = predict(bin_latents(x), np.full(20, 4), rows, rows[:5], model="boost", classes=True, random_state=0)
    assert made.values.tolist() == [4] * 5 and not made.importance.any()


@pytest.mark.parametrize("model", ["boost", "forest", "l1"])
def test_filters_of_warnings_are_left_alone(rng, monkeypatch, model):
    """scikit-learn's fits empty and refill them: two at a time refilled each other's, or nobody's."""
    importlib.import_module("sklearn.ensemble")  # which adds filters of its own
    monkeypatch.setattr(local, "cores", lambda: 4)
    u, before, interval = rng.normal(size=(40, 6)), list(warnings.filters), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            dci(u @ rng.normal(size=(6, 6)), u, model=model, folds=2)
            inside = list(warnings.filters)
    finally:
        sys.setswitchinterval(interval)
    assert inside[1:] == before and list(warnings.filters) == before
    assert not [w for w in seen if "delayed" in str(w.message)]


def test_a_replicate_uses_the_bins_of_all_rows_and_fewer_trees_only_for_the_spread(rng, monkeypatch):
    u = rng.normal(size=(120, 2))
    x, factors, declared = u @ rng.normal(size=(2, 3)), open_factors(u), measures()["dci"]
    whole, seen = declared.of_loaded(x, factors), []
    real = module.predict

    def watched(latents, *rows, trees, **options):
        seen.append((latents.bins, trees))
        return real(latents, *rows, trees=trees, **options)

    monkeypatch.setattr(module, "predict", watched)
    rows = np.arange(120)
    same = declared.of_loaded(x, factors, earlier=Earlier(whole.kept, rows, True))
    assert same.value == whole.value and set(seen) == {(whole.kept.bins, module.TREES)}
    seen.clear()
    part = declared.of_loaded(x[:100], factors.take(rows[:100]), earlier=Earlier(whole.kept, rows[:100], False))
    assert set(seen) == {(whole.kept.bins, module.SPREAD_TREES)} and abs(part.value - whole.value) < 0.3
    assert dci(x, u).kept is None

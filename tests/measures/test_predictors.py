import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.measures import predictors
from nearid.measures.predictors import MODELS, predict


@pytest.fixture(params=[*MODELS, "boost without lightgbm"])
def model(request, monkeypatch):
    if request.param == "boost":
        pytest.importorskip("lightgbm", reason="the extra `boost` is not installed")
    if request.param == "boost without lightgbm":
        monkeypatch.setattr(predictors, "find_spec", lambda name: None)
    return request.param.split()[0]


@pytest.mark.parametrize("classes", [True, False])
def test_the_latent_that_matters_is_found_whatever_its_units(rng, model, classes):
    x = rng.normal(size=(200, 4)) * [1, 1e-3, 100, 1]
    signal = 1e3 * x[:, 1]
    y = (signal > 0).astype(int) + (signal > 1) if classes else signal
    made = predict(model, x[:150], y[:150], x[150:], classes=classes, random_state=0)
    again = predict(model, x[:150], y[:150], x[150:], classes=classes, random_state=0)
    assert made.importance.shape == (4,) and (made.importance >= 0).all()
    assert made.importance[1] > 0.6 * made.importance.sum()
    good = np.mean(made.values == y[150:]) if classes else np.corrcoef(made.values, y[150:])[0, 1]
    assert good > 0.8
    np.testing.assert_array_equal(made.values, again.values)


def test_a_constant_target_needs_no_model(rng):
    x = rng.normal(size=(20, 3))
    made = predict("boost", x, np.full(20, 4), x[:5], classes=True, random_state=0)
    assert made.values.tolist() == [4] * 5 and not made.importance.any()


def test_refused(rng):
    x = rng.normal(size=(20, 3))
    with pytest.raises(InputError, match="boost, forest, l1, not 'svm'"):
        predict("svm", x, x[:, 0], x, classes=False, random_state=0)

"""A fit as a result and as scikit-learn's estimator at once."""

import copy
import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from nearid import ICA, Whitening
from nearid.show.result import Result


@pytest.fixture
def x(rng):
    return rng.laplace(size=(500, 3))


def test_before_a_fit_it_is_an_estimator_alone(x):
    ica = ICA(2, contrast="exp")
    assert repr(ica) == str(ica) == "ICA(contrast='exp', n_components=2)"
    for ask in (lambda: ica.alerts, lambda: ica.provenance, lambda: ica.view, ica.to_dict, ica.to_frame, ica.plot):
        with pytest.raises(NotFittedError):
            ask()
    assert ica._repr_mimebundle_() == {"text/plain": repr(ica)}


def test_after_a_fit_it_is_a_result(x):
    ica = ICA().fit(x)
    assert isinstance(ica, Result) and repr(ica) == "ICA()" and "3 components found; " in str(ica)
    assert "3 components found; " in ica._repr_mimebundle_()["text/html"]
    plain = json.loads(json.dumps(ica.to_dict(), allow_nan=False))
    assert plain["diagnostics"]["z"] == ica.diagnostics_.z.tolist() and plain["alerts"] == []
    assert [each["trust"] for each in plain["components"]] == ica.to_frame()["trust"].tolist()
    assert plain["provenance"]["options"] == {k: v for k, v in ica.get_params().items() if k != "engine"}
    assert plain["provenance"]["seed"] == ica.seed_ and plain["provenance"]["inputs"][0]["shape"] == [500, 3]
    assert ica.to_frame()["nongaussianity"].tolist() == ica.diagnostics_.nongaussianity.tolist()


def test_clones_copies_and_pipelines(x):
    ica = ICA(2).fit(x)
    again = clone(ica)
    assert again.get_params() == ica.get_params() and not hasattr(again, "components_")
    np.testing.assert_array_equal(copy.deepcopy(ica).transform(x), ica.transform(x))
    assert again.set_params(n_components=1).fit_transform(x).shape == (500, 1)
    assert make_pipeline(Whitening(), ICA(2)).fit_transform(x).shape == (500, 2)


def test_what_a_generator_drew_is_recorded(x):
    ica = ICA(random_state=np.random.RandomState(3)).fit(x)
    assert ica.provenance["options"]["random_state"] is None and ica.provenance["seed"] == ica.seed_

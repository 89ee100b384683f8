import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from nearid.measures.auroc import auroc


def test_area_under_the_curve(rng):
    scores, truth = rng.integers(0, 5, 60).astype(float), rng.random(60) < 0.3
    assert auroc(truth, scores) == pytest.approx(roc_auc_score(truth, scores))
    assert np.isnan(auroc(np.zeros(4, bool), np.arange(4.0)))

"""Figures of scib-metrics: against stored values of scib-metrics, scikit-learn, and data whose answer is known."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics import silhouette_samples

from nearid.measures.conservation import conservation, silhouettes

# The rows of copairs.json by scib-metrics 0.5.10, with the 30 nearest rows by Euclidean distance.
SCIB = {
    "silhouette_label": 0.47634121775627136,
    "silhouette_batch": 0.86199951171875,
    "ilisi": 0.43940821290016174,
    "clisi": 0.5685368776321411,
}


def test_scib_metrics_finds_the_same():
    told = json.loads(Path(__file__).with_name("copairs.json").read_text())
    x, labels, batches = (np.array(told[name]) for name in ("x", "labels", "batches"))
    assert conservation(x, labels, batches, 30)._asdict() == pytest.approx(SCIB, abs=2e-4)


def test_silhouettes_are_those_of_sklearn(rng):
    x, codes = rng.normal(size=(50, 3)), np.append(rng.integers(0, 4, 49), 9)
    assert silhouettes(cdist(x, x), codes) == pytest.approx(silhouette_samples(x, codes))


def test_mixed_and_parted(rng):
    labels, batches = np.arange(400) % 2, np.arange(400) // 2 % 4
    x = rng.normal(size=(400, 3)) + 8 * labels[:, None]
    good = conservation(x, labels, batches)
    assert good.ilisi > 0.8 and good.clisi > 0.99 and good.silhouette_label > 0.75 and good.silhouette_batch > 0.9
    bad = conservation(x + 60 * batches[:, None], labels, batches)
    assert bad.ilisi < 0.01 and bad.silhouette_batch < 0.3
    one = conservation(x, np.zeros(400, int), batches)
    assert np.isnan(one.clisi) and np.isnan(one.silhouette_label)

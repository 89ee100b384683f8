"""Figures of scib-metrics: against stored values of scib-metrics, scikit-learn, and data whose answer is known."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics import silhouette_samples

from nearid.measures.conservation import connectivity, conservation, kbet, silhouettes

# The rows of copairs.json by scib-metrics 0.5.10, with the 30 nearest rows by Euclidean distance, 15 of them for the
# connectivity. A label of at most 14 rows is too small for kBET.
SCIB = {
    "silhouette_label": 0.47634121775627136,
    "silhouette_batch": 0.86199951171875,
    "ilisi": 0.43940821290016174,
    "clisi": 0.5685368776321411,
    "kbet": np.nan,
    "connectivity": 0.8282467532467532,
}


def test_scib_metrics_finds_the_same():
    told = json.loads(Path(__file__).with_name("copairs.json").read_text())
    x, labels, batches = (np.array(told[name]) for name in ("x", "labels", "batches"))
    assert conservation(x, labels, batches, 30)._asdict() == pytest.approx(SCIB, abs=2e-4, nan_ok=True)


def waves():
    """360 rows of 3 labels in 3 batches that differ, without a random number, and the distances."""
    x = np.sin(np.arange(1.0, 1081).reshape(360, 3) ** 2)
    labels, batches = np.arange(360) % 3, np.arange(360) // 3 % 7 % 3
    x[:, 0] += 0.3 * labels
    x[:, 1] += 0.8 * batches
    x[:, 2] += 0.4 * batches * (labels == 2)
    return x, labels, batches, cdist(x, x)


def test_kbet_and_connectivity_of_scib_metrics():
    """By scib_metrics.kbet of the 10 nearest rows within a label, and graph_connectivity of the 7 nearest."""
    x, labels, batches, distances = waves()
    each = [kbet(distances[np.ix_(labels == k, labels == k)], batches[labels == k], 10) for k in range(3)]
    assert each == pytest.approx([0.5833333333333334, 0.6166666666666667, 0.6])
    assert connectivity(distances, labels, 7) == pytest.approx(0.16944444444444443)
    assert conservation(x, labels, batches).kbet == pytest.approx(0.6)


def test_kbet_keeps_its_level_and_sees_parted_batches(rng):
    """Neighbours drawn anew for each row: at most a twentieth is refused. Far batches: all rows are."""
    x, batches = rng.normal(size=(900, 2)), np.arange(900) % 3
    assert kbet(cdist(x, x), batches, 30) > 0.93
    x[:, 0] += 50 * batches
    assert kbet(cdist(x, x), batches, 30) == 0


def test_parts_of_a_label_are_not_connected(rng):
    """Two far halves of a label make half of it; a label alone is whole; one row has no others."""
    x = rng.normal(size=(90, 2)) + np.outer(np.repeat([0, 50, 100], 30), [1, 0])
    labels = np.repeat([0, 0, 1], 30)
    assert connectivity(cdist(x, x), labels, 15) == pytest.approx((0.5 + 1) / 2)
    assert connectivity(np.zeros((1, 1)), np.zeros(1, int), 1) == 1


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

"""Real networks on real images: two ResNet-20 that others trained, and a half-trained control."""

import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from nearid import compare, diameter

TRAINED = ("akamaster_resnet20", "DanSun18_resnet20")
CONTROL = "Chelcacs_resnet20"


@pytest.fixture(scope="module")
def features(real_data):
    """Penultimate features of 2,000 CIFAR-10 test images."""
    script = Path(__file__).resolve().parents[1] / "benchmarks" / "resnet_features.py"
    spec = importlib.util.spec_from_file_location("resnet_features", script)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    pixels, labels = tool.images(real_data / "cifar10", 2000)
    found = {}
    for name in (*TRAINED, CONTROL):
        (path,) = (real_data / "cifar10_resnets").glob(f"{name}*.th")
        found[name], guesses = tool.extract(tool.load(path), pixels)
        assert np.mean(guesses == labels) > (0.55 if name == CONTROL else 0.9)
    return found


@pytest.mark.slow
def test_trained_pairs_follow_the_ladder_and_the_control_is_farther(features):
    pairs = {
        pair: compare(*(features[n] for n in pair), in_sample=True) for pair in itertools.combinations(features, 2)
    }
    trained = pairs[TRAINED]
    for groups in (trained.groups, trained.in_sample):
        assert groups["permutation"].epsilon.mean > groups["rigid"].epsilon.mean > groups["linear"].epsilon.mean
    assert trained.verdict.group in ("rigid", "linear")
    for first in TRAINED:
        control = pairs[first, CONTROL]
        for name in ("rigid", "linear"):
            assert control.groups[name].r2 < trained.groups[name].r2
        assert control.groups["rigid"].epsilon.low > trained.groups["rigid"].epsilon.high


@pytest.mark.slow
def test_the_diameter_of_real_features_is_exact(features):
    for z in features.values():
        assert diameter(z).lower == pytest.approx(pdist(z.astype(np.float64)).max(), rel=1e-12)

"""Real networks on real images: two ResNet-20 that others trained, and a half-trained control."""

import itertools

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from nearid import compare, diameter, extract
from nearid.lab.data.cifar10_resnets import weights_file
from nearid.lab.data.load import load
from nearid.lab.data.registry import dataset, find

TRAINED = ("akamaster-20", "dansun18-20")
CONTROL = "chelcacs-20"


@pytest.fixture(scope="module")
def features(real_data):
    """Penultimate features of 2,000 CIFAR-10 test images."""
    pytest.importorskip("torch", reason="the extra `lab` is not installed")
    from nearid.lab.models.cifar_resnet import MEAN, STD, load_cifar_resnet

    for wanted in ("cifar10", "cifar10-resnets"):
        if find(dataset(wanted)) is None:
            pytest.skip(f"{wanted} is not in {real_data}")
    images = load("cifar10", split="test")
    pixels, labels = images.images.read(0, 2000), images.codes[:2000, 0]
    found = {}
    for name in (*TRAINED, CONTROL):
        held = extract(load_cifar_resnet(weights_file(name)), pixels, layers=["layer3", "output"], mean=MEAN, std=STD)
        found[name], scores = (held[layer].read(0, 2000) for layer in ("layer3", "output"))
        assert np.mean(scores.argmax(axis=1) == labels) > (0.55 if name == CONTROL else 0.9)
    return found


@pytest.mark.slow
def test_trained_pairs_follow_the_ladder_and_the_control_is_farther(features):
    pairs = {
        pair: compare(*(features[n] for n in pair), in_sample=True) for pair in itertools.combinations(features, 2)
    }
    trained = pairs[TRAINED]
    for groups in (trained.groups, trained.in_sample):
        assert groups["permutation"].epsilon.value > groups["rigid"].epsilon.value > groups["linear"].epsilon.value
    assert trained.verdict.group in ("rigid", "linear")
    for first in TRAINED:
        control = pairs[first, CONTROL]
        for name in ("rigid", "linear"):
            assert control.groups[name].r2.value < trained.groups[name].r2.value
        assert control.groups["rigid"].epsilon.low > trained.groups["rigid"].epsilon.high


@pytest.mark.slow
def test_the_diameter_of_real_features_is_exact(features):
    for z in features.values():
        assert diameter(z).lower == pytest.approx(pdist(z.astype(np.float64)).max(), rel=1e-12)

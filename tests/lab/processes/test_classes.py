"""Clusters on the sphere, sectors of the plane, and flipped labels."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats
from scipy.special import ive

from nearid.base.errors import InputError
from nearid.lab.processes.classes import ClusterProcess, RadialClasses, draw_clusters, flip_labels
from nearid.lab.processes.mixing import draw_mixing
from nearid.lab.processes.noise import Laplace, VonMisesFisher
from nearid.lab.processes.spaces import violated

VMF = VonMisesFisher(10)


def clusters(rng, d=5, classes=20, instances=200, conditional=VMF, **more):
    return draw_clusters(d, classes, instances, conditional, rng, **more)


def names(assumptions):
    return {a.name for a in violated(assumptions)}


def test_latents_lie_about_the_vector_of_their_class(rng):
    process = clusters(rng)
    z, instance = process.sample(20_000, rng)
    assert z.shape == (20_000, 5) and instance.min() == 0 and instance.max() == 199
    assert process.classes == 20
    np.testing.assert_array_equal(process.class_of(instance), instance % 20)
    cosine = np.sum(z * process.vectors[instance % 20], axis=1)
    assert cosine.mean() == pytest.approx(ive(2.5, 10) / ive(1.5, 10), abs=0.005)
    assert stats.chisquare(np.bincount(instance, minlength=200)).pvalue > 1e-3


def test_latents_of_an_instance_are_fresh(rng):
    process = clusters(rng, classes=2, instances=2)
    z, _ = process.sample(100, rng)
    assert len(np.unique(z, axis=0)) == 100


def test_observations_go_through_the_mixing(rng):
    mixing = draw_mixing(5, 2, rng, draws=50)
    process = clusters(rng, mixing=mixing)
    z, _ = process.sample(30, rng)
    np.testing.assert_allclose(mixing.inverse(process.observe(z)), z, atol=1e-10)
    assert process.observe(z, np.float32).dtype == np.float32
    np.testing.assert_array_equal(clusters(rng).observe(z), z)


def test_the_same_seed_gives_the_same_sample():
    def draw(seed):
        rng = np.random.default_rng(seed)
        return clusters(rng).sample(50, rng)[0]

    assert np.array_equal(draw(1), draw(1)) and not np.array_equal(draw(1), draw(2))


def test_assumptions_of_clusters(rng):
    assert not names(clusters(rng).assumptions(normalised_heads=True))
    assert names(clusters(rng, conditional=Laplace(0.1)).assumptions()) == {"vMF conditional"}
    assert names(clusters(rng, conditional=VonMisesFisher(0)).assumptions()) == {"vMF conditional"}
    assert names(clusters(rng, classes=5).assumptions()) == {"diversity"}
    assert names(clusters(rng, classes=8).assumptions(normalised_heads=True)) == {"quadratic diversity"}
    assert names(clusters(rng, instances=201).assumptions()) == {"uniform class prior"}


def test_clusters_that_cannot_be_are_told(rng):
    with pytest.raises(InputError, match="not on the unit sphere"):
        ClusterProcess(np.ones((3, 2)), 10, VonMisesFisher(1))
    with pytest.raises(InputError, match="not on the unit sphere"):
        ClusterProcess(np.full((3, 2), np.nan), 10, VonMisesFisher(1))
    with pytest.raises(InputError, match=r"shape \(1, 2\)"):
        ClusterProcess(np.eye(2)[:1], 10, VonMisesFisher(1))
    with pytest.raises(InputError, match="number of instances is 3, but a whole number of at least 20"):
        clusters(rng, instances=3)
    with pytest.raises(InputError, match="takes 3 latents, but the class vectors have 5"):
        clusters(rng, mixing=draw_mixing(3, 1, rng, draws=5))
    with pytest.raises(InputError, match="size is 0"):
        clusters(rng).sample(0, rng)


def test_radial_labels_are_sectors(rng):
    process = RadialClasses(classes=4)
    x = np.array([[1, 0.1], [-0.1, 1], [-1, -0.1], [0.1, -1], [1, 0], [1, -1e-30]])
    np.testing.assert_array_equal(process.label(x)[:5], [0, 1, 2, 3, 0])
    # A hair below the axis is the last sector or, by rounding, the first; never a sector that does not exist.
    assert process.label(x)[5] in (0, 3)


def test_radial_points_are_normal_and_their_labels_uniform(rng):
    x, label = RadialClasses().sample(20_000, rng)
    assert stats.kstest(x.ravel(), stats.norm(scale=3).cdf).pvalue > 1e-3
    assert stats.chisquare(np.bincount(label, minlength=18)).pvalue > 1e-3
    angle = np.degrees(np.arctan2(x[:, 1], x[:, 0])) % 360
    np.testing.assert_array_equal(label, angle // 20)


def test_radial_assumptions_and_errors():
    assert names(RadialClasses(18).assumptions()) == {"equal likelihoods"}
    assert names(RadialClasses(2).assumptions()) == {"equal likelihoods", "diversity"}
    assert "diversity" in names(RadialClasses(18).assumptions(features=18))
    with pytest.raises(InputError, match="number of classes is 1"):
        RadialClasses(1)
    with pytest.raises(InputError, match="scale is 0"):
        RadialClasses(3, 0)


@given(st.floats(0, 1), st.integers(0, 100))
def test_the_share_of_flipped_labels(share, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, 20_000)
    flipped = flip_labels(labels, 10, share, rng)
    # One draw in ten hits the old label.
    assert np.mean(flipped != labels) == pytest.approx(0.9 * share, abs=0.02)
    assert flipped.min() >= 0 and flipped.max() <= 9


def test_flipping_none_and_a_bad_share(rng):
    labels = rng.integers(0, 10, 100)
    np.testing.assert_array_equal(flip_labels(labels, 10, 0, rng), labels)
    with pytest.raises(InputError, match=r"share is 1.5"):
        flip_labels(labels, 10, 1.5, rng)

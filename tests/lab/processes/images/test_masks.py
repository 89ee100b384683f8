"""Moving masks: places and areas can be read off, steps have their law, and assumptions."""

import numpy as np
import pytest
from scipy import stats

from nearid.base.errors import InputError
from nearid.lab.processes.images.base import SOFT, THICK
from nearid.lab.processes.images.masks import MaskProcess, draw_mask_process
from nearid.lab.processes.images.outlines import draw_walkers, heart
from nearid.lab.processes.noise import Laplace, Normal
from nearid.lab.processes.spaces import violated


def process(walkers=4, **more):
    return draw_mask_process(walkers, np.random.default_rng(0), **more)


@pytest.mark.parametrize("binary", [False, True])
def test_centre_of_mass_and_area_can_be_read_off(binary, rng):
    masks = process(binary=binary)
    z, _, walkers = masks.pairs(400, rng)
    images = masks.observe(z, walkers, np.float64)[:, 0]
    assert binary == set(np.unique(images)).issubset({0, 1})
    factors, pixels, area = masks.factors(z), (np.arange(64) + 0.5) / 64, images.sum((1, 2))
    np.testing.assert_allclose(area / 64**2, factors[:, 2], rtol=0.12 if binary else 0.02)
    slack = 0.3 / 64 if binary else 0.02 / 64
    np.testing.assert_allclose(images.sum(2) @ pixels / area, factors[:, 0], atol=slack)
    np.testing.assert_allclose(images.sum(1) @ pixels / area, factors[:, 1], atol=slack)
    # Masks are whole: nothing touches the frame.
    assert images[:, [0, -1]].max() < 0.6 and images[:, :, [0, -1]].max() < 0.6


def test_positives_one_step_away_are_noise_inside_the_box(rng):
    masks = process(step=Laplace(0.1))
    z, positives, walkers = masks.pairs(20_000, rng)
    assert stats.kstest(z.ravel(), "uniform").pvalue > 1e-3
    law = stats.laplace(loc=z, scale=0.1)
    place = (law.cdf(positives) - law.cdf(0)) / (law.cdf(1) - law.cdf(0))
    assert stats.kstest(place.ravel(), "uniform").pvalue > 1e-3
    assert stats.chisquare(np.bincount(walkers, minlength=4)).pvalue > 1e-3


def test_wider_gaps_go_further(rng):
    # Far from the walls the variance of a step is 2 scale^2, and gaps of 1 to 5 have 3 steps in the mean.
    masks = process(step=Laplace(0.01), gap=5)
    z, positives, _ = masks.pairs(40_000, rng)
    inside = np.all(np.abs(z - 0.5) < 0.3, axis=1)
    assert np.var((positives - z)[inside]) == pytest.approx(3 * 2 * 0.01**2, rel=0.04)


def test_sequences_are_steps_of_one_walker_and_repeat():
    masks = process(step=Normal(0.03))
    z, walkers = masks.sequences(500, 8, np.random.default_rng(1))
    assert z.shape == (500, 8, 3) and walkers.shape == (500,) and z.min() >= 0 and z.max() <= 1
    steps = np.diff(z, axis=1)[np.all(np.abs(z[:, :-1] - 0.5) < 0.3, axis=2)]
    assert stats.kstest(steps.ravel(), stats.norm(scale=0.03).cdf).pvalue > 1e-3
    # Near frames are alike, far ones less so.
    near, far = np.abs(z[:, 1] - z[:, 0]).mean(), np.abs(z[:, 7] - z[:, 0]).mean()
    assert near < 0.6 * far
    np.testing.assert_array_equal(z, masks.sequences(500, 8, np.random.default_rng(1))[0])


def test_threads_and_types_do_not_change_masks(rng):
    masks = process(binary=False, side=32)
    z, _, walkers = masks.pairs(51, rng)
    images = masks.observe(z, walkers)
    assert images.dtype == np.float32 and images.shape == (51, 1, 32, 32)
    np.testing.assert_array_equal(images, masks.observe(z, walkers, threads=2))
    np.testing.assert_allclose(images, masks.observe(z, walkers, np.float64), atol=1e-6)


def test_assumptions_name_what_the_theorem_lacks():
    def names(similarity=None, **more):
        return {a.name for a in violated(process(**more).assumptions(similarity))}

    assert names(walkers=1, binary=False) == set()
    assert names(walkers=1) == names(binary=False) == {"injective mixing"}
    assert names(walkers=1, binary=False, gap=3) == {"matching conditional"}
    assert names(2.0, walkers=1, binary=False) == {"matching conditional", "exponent other than 2"}
    assert names(walkers=1, binary=False, step=Normal(0.05)) == {"exponent other than 2"}


def test_masks_that_cannot_be_are_told(rng):
    with pytest.raises(InputError, match="each must have area 1"):
        MaskProcess((heart(),), Laplace(0.1))
    walkers = process().walkers
    with pytest.raises(InputError, match="too large to move"):
        MaskProcess(walkers, Laplace(0.1), areas=(0.1, 0.9))
    with pytest.raises(InputError, match="the smaller first"):
        MaskProcess(walkers, Laplace(0.1), areas=(0.1, 0.05))
    with pytest.raises(InputError, match="larger side than 8"):
        MaskProcess(walkers, Laplace(0.1), side=8)
    with pytest.raises(InputError, match="gap is 0"):
        process(gap=0)
    with pytest.raises(InputError, match=r"numbered from 0 to 3"):
        process().observe(np.zeros((2, 3)), [0, 4])
    with pytest.raises(InputError, match=r"not in the box"):
        process().observe(np.full((2, 3), 2.0))
    with pytest.raises(InputError, match=r"shape \(3,\)"):
        process().observe(np.zeros(3))


def test_masks_can_be_drawn_with_every_seed():
    """One in 3,000 outlines is too thin for 48 pixels, one in 24 for 32: these are drawn again."""
    for seed in range(20):
        masks = draw_mask_process(20, np.random.default_rng(seed), side=32)
        assert min(w.thickness for w in masks.walkers) * 32 * np.sqrt(masks.areas[0]) >= THICK * SOFT
    # Seeds whose outlines are thick enough have them as they were drawn.
    plain, thick = (draw_walkers(5, np.random.default_rng(0), thickness=least) for least in (0.0, 0.15))
    np.testing.assert_array_equal([w.cosines for w in plain], [w.cosines for w in thick])
    with pytest.raises(InputError, match="Use a larger side than 8"):
        draw_mask_process(1, np.random.default_rng(0), side=8)

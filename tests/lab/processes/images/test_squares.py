"""The moving and growing square: images against integrals, and three metrics against one another."""

import numpy as np
import pytest
from scipy import stats

from nearid.base.errors import InputError
from nearid.lab.processes.images.metric import distortion
from nearid.lab.processes.images.squares import SquareProcess, isotropic
from nearid.lab.processes.spaces import violated


def test_an_image_is_the_blurred_square():
    process = SquareProcess(32, sigma=0.1)
    z = np.array([[0.05, -0.1, 0.3]])
    image = process.observe(z)[0, 0]
    # The share of normal draws about a pixel that fall into the square.
    row, column = 20, 13
    y, x = (2 * row + 1) / 32 - 1, (2 * column + 1) / 32 - 1
    draws = stats.norm(scale=0.1).rvs((400_000, 2), random_state=0) + np.array([x, y])
    inside = np.all(np.abs(draws - z[0, :2]) <= 0.3, axis=1).mean()
    assert image[row, column] == pytest.approx(inside, abs=0.003) and 0.1 < inside < 0.9
    assert image.sum() * (2 / 32) ** 2 == pytest.approx(0.6**2, abs=1e-6)
    assert process.observe(z, np.float32).dtype == np.float32


@pytest.mark.parametrize("pixels", [1.0, 1.5, 3.0])
def test_the_measured_metric_is_that_of_continuous_images(pixels, rng):
    process = SquareProcess(64, sigma=pixels * 2 / 64)
    z = process.sample(20, rng)
    measured, exact = process.measured_metric(z), process.blurred_metric(z)
    # Sums over pixels miss the integral by the first harmonic of the pixel grid in the squared edge.
    aliasing = 4 * np.exp(-((np.pi * pixels) ** 2)) + 1e-6
    assert (np.abs(measured - exact) / exact[:, :1, :1]).max() < 2 * aliasing


def test_without_enough_blur_discrete_images_are_no_isometry(rng):
    blurred, sharp = (SquareProcess(64, sigma=pixels * 2 / 64) for pixels in (1.5, 0.2))
    z = np.column_stack([rng.uniform(-0.3, 0.3, 50), np.zeros(50), np.full(50, 0.3)])
    assert distortion(blurred.measured_metric(z)[:, :1, :1]).spread == pytest.approx(1, abs=1e-4)
    assert distortion(sharp.measured_metric(z, any_blur=True)[:, :1, :1]).spread > 1.5


@pytest.mark.parametrize("pixels", [0.71, 0.69])
def test_too_little_blur_is_refused_unless_asked_for(pixels, rng):
    process = SquareProcess(64, sigma=pixels * 2 / 64)
    z = process.sample(50, rng)
    measured, exact = process.measured_metric(z, any_blur=True), process.blurred_metric(z)
    missed = (np.abs(measured - exact) / exact[:, :1, :1]).max()
    assert 0.01 < missed < 0.1
    if pixels > 0.7:
        np.testing.assert_array_equal(process.measured_metric(z), measured)
    else:
        with pytest.raises(InputError, match=r"blur is 0.69 pixels, but below 0.7 .* sigma of at least 0.022"):
            process.measured_metric(z)


def test_the_blurred_metric_tends_to_the_sharp_one(rng):
    z = SquareProcess(64).sample(20, rng)
    errors = []
    for side in (64, 128, 256):
        process = SquareProcess(side)
        sharp = process.edge_norm * process.sharp_metric(z)
        errors.append((np.abs(process.blurred_metric(z) - sharp) / sharp[:, :1, :1]).max())
    # To first order in sigma.
    np.testing.assert_allclose(np.array(errors[:-1]) / errors[1:], 2, rtol=0.1)
    assert errors[-1] < 0.04


def test_moving_is_an_isometry_and_moving_and_growing_conformal():
    process = SquareProcess(256, 0.2, 0.4)
    r = np.linspace(0.2, 0.4, 5)
    z = np.column_stack([np.linspace(-0.3, 0.3, 5), np.linspace(0.2, -0.2, 5), r])
    metrics = isotropic(process.measured_metric(z))
    moving = distortion(process.measured_metric(z * [1, 1, 0] + [0, 0, 0.3])[:, :2, :2])
    assert moving.bilipschitz == pytest.approx(1, abs=1e-3)
    found = distortion(metrics)
    assert found.anisotropy.max() < 1.02
    assert found.bilipschitz == pytest.approx(process.bilipschitz, rel=0.01)
    # Orthogonal directions, and a size that goes with the half-side.
    assert np.abs(metrics[:, ~np.eye(3, dtype=bool)]).max() < 1e-3 * metrics[:, 0, 0].min()
    np.testing.assert_allclose(metrics[:, 0, 0] / metrics[0, 0, 0], r / r[0], rtol=0.02)
    # In (x, y, r) itself it is not conformal: growing moves twice the edges.
    np.testing.assert_allclose(distortion(process.measured_metric(z)).anisotropy, np.sqrt(2), rtol=0.02)


def test_samples_stay_in_the_frame_and_violate_nothing(rng):
    process = SquareProcess(32)
    z = process.sample(500, rng)
    images = process.observe(z)
    np.testing.assert_allclose(images.sum((1, 2, 3)) * (2 / 32) ** 2, (2 * z[:, 2]) ** 2, rtol=1e-3)
    assert not violated(process.assumptions())


def test_squares_that_cannot_be_are_told():
    with pytest.raises(InputError, match="the smaller end must come first"):
        SquareProcess(64, 0.4, 0.2)
    with pytest.raises(InputError, match="too large to move"):
        SquareProcess(64, 0.4, 0.95)
    with pytest.raises(InputError, match="sigma is -1"):
        SquareProcess(64, sigma=-1)
    with pytest.raises(InputError, match=r"shape \(3,\)"):
        SquareProcess().observe(np.zeros(3))
    with pytest.raises(InputError, match="not above 0"):
        SquareProcess().blurred_metric(np.zeros((1, 3)))

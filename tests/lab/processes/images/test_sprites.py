"""Sprites: the grid of dSprites, factors that can be read off the images, colours, and assumptions."""

import numpy as np
import pytest

from nearid.lab.processes.assumptions import violated
from nearid.lab.processes.images.factors import category, circle, interval
from nearid.lab.processes.images.sprites import DSPRITES, HUE, MARGIN, RADIUS, SpriteProcess

PLACE = (DSPRITES[3], DSPRITES[4])


def test_the_grid_is_that_of_dsprites():
    process = SpriteProcess()
    assert process.grid_size == 737_280
    assert process.names == ("shape", "scale", "rotation", "x", "y")
    z, codes = process.grid([0, 1, 32, 737_279])
    np.testing.assert_array_equal(codes[-1], [2, 5, 39, 31, 31])
    np.testing.assert_allclose(z[1:3, 3:], [[0, 1 / 31], [1 / 31, 0]])
    np.testing.assert_allclose(z[-1], [2, 1, 2 * np.pi * 39 / 40, 1, 1])


@pytest.mark.parametrize("side", [32, 48, 64])
def test_place_and_size_can_be_read_off_the_images(side, rng):
    process = SpriteProcess(side, (category("shape", 2), *DSPRITES[1:]))
    z = process.sample(300, rng)
    images = process.observe(z, np.float64)[:, 0]
    assert images.min() >= 0 and images.max() <= 1
    area = images.sum((1, 2))
    # Closed forms: the square has the area 2 radius^2, the ellipse pi radius^2 / 2.
    radius = RADIUS * side * z[:, 1]
    np.testing.assert_allclose(area, np.where(z[:, 0] == 0, 2, np.pi / 2) * radius**2, rtol=0.04)
    pixels = (np.arange(side) + 0.5) / side
    for axis, k in ((1, 3), (2, 4)):
        centre = images.sum(axis) @ pixels / area
        np.testing.assert_allclose(centre, MARGIN + (1 - 2 * MARGIN) * z[:, k], atol=2e-3)


def test_rounding_does_not_leave_the_range_of_pixels():
    process = SpriteProcess(48, (category("shape", 1), *DSPRITES[1:]))
    for seed in (1, 8):
        images = process.observe(process.sample(3000, np.random.default_rng(seed)), np.float64)
        assert images.min() >= 0 and images.max() <= 1


def test_hearts_stay_in_the_frame_and_keep_their_area(rng):
    process = SpriteProcess(64, (category("shape", 1, 2), *DSPRITES[1:]))
    z = process.sample(200, rng)
    hearts = process.observe(z)
    ratio = hearts.sum((1, 2, 3)) / z[:, 1] ** 2
    assert ratio.std() / ratio.mean() < 0.01
    assert max(hearts[..., 0, :].max(), hearts[..., :, 0].max()) == 0


def test_rotation_turns_with_the_clock():
    process = SpriteProcess(64, (category("shape", 2), circle("rotation", 2 * np.pi, 4)))
    flat, diagonal = process.observe(np.array([[1, 0.0], [1, np.pi / 4]]))[:, 0]
    row, column = np.nonzero(flat > 0.5)
    assert np.ptp(column) > 1.5 * np.ptp(row)
    # Down in the image is larger y, so that the ellipse runs from the upper left to the lower right.
    row, column = np.nonzero(diagonal > 0.5)
    assert np.corrcoef(row, column)[0, 1] > 0.5


def test_hues_colour_the_sprite_and_go_round(rng):
    process = SpriteProcess(32, (*PLACE, HUE))
    z = np.array([[0.5, 0.5, hue] for hue in (0.0, 1 / 3, 2 / 3, 1.0, -1 / 3)])
    images = process.observe(z, np.float64)
    assert images.shape == (5, 3, 32, 32)
    assert [int(c) for c in images[:, :, 16, 16].argmax(axis=1)] == [0, 1, 2, 0, 2]
    np.testing.assert_allclose(images[0], images[3], atol=1e-12)
    np.testing.assert_allclose(images[2], images[4], atol=1e-12)
    grey = SpriteProcess(32, PLACE).observe(z[:1, :2], np.float64)
    np.testing.assert_allclose(images[0], grey[0] * images[0, :, 16, 16][:, None, None], atol=1e-12)


def test_assumptions_name_what_recovery_lacks():
    def names(*factors):
        return {a.name for a in violated(SpriteProcess(32, factors).assumptions())}

    assert names(*DSPRITES) == {"convex latents", "injective rendering"}
    assert names(*PLACE, DSPRITES[1]) == set()
    assert names(interval("rotation", 0, np.pi / 3, 10), *PLACE) == set()
    assert names(interval("rotation", 0, np.pi / 2, 10)) == {"injective rendering"}
    assert names(category("shape", 1, 2), DSPRITES[2], *PLACE) == {"convex latents"}
    assert names(HUE) == {"convex latents"}
    assert names(DSPRITES[0]) == {"convex latents", "bi-Lipschitz rendering"}
    notes = {a.name: a.note for a in SpriteProcess(32).assumptions()}
    assert "ellipse: the same after a turn by 180 degrees" in notes["injective rendering"]
    assert "heart" not in notes["injective rendering"] and "shape: separate values" in notes["convex latents"]


def test_moving_a_sprite_is_nearly_an_isometry():
    (note,) = (a.note for a in SpriteProcess(64, PLACE).assumptions() if a.name == "bi-Lipschitz rendering")
    assert float(note.split()[2]) < 1.1

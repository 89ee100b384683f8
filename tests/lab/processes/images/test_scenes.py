"""Sprites and solids."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from nearid.base.errors import InputError
from nearid.lab.processes.images.factors import category, circle, interval
from nearid.lab.processes.images.kernels import COS_VIEW, CYLINDER_RADIUS, GROUND, SIN_VIEW
from nearid.lab.processes.images.scenes import (
    DSPRITES,
    HUE,
    MARGIN,
    RADIUS,
    SHAPES3D,
    UNIT,
    SolidProcess,
    SpriteProcess,
)
from nearid.lab.processes.spaces import violated

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


SIDE, FINE = 48, 6


def lit(shape, scale, turn):
    """Light times cover of the solid: what a change of its hue changes."""
    process = SolidProcess(SIDE)
    red, green = process.observe(np.array([[0, 0, hue, scale, shape, turn] for hue in (0, 1 / 3)]), np.float64)
    return (red - green)[0] / 0.6


def rays(height):
    """Points (x, y, z) of rays at (depth, fine pixels) about a body whose middle is this high above the ground."""
    place = (np.arange(SIDE * FINE) + 0.5) / FINE
    across = np.broadcast_to(place[None, :] - SIDE / 2, (SIDE * FINE,) * 2)
    down = np.broadcast_to(place[:, None] - GROUND * SIDE + height * COS_VIEW, across.shape)
    # The camera looks along (0, cos, -sin); up in its image is (0, sin, cos).
    return across, -SIN_VIEW * down, -COS_VIEW * down


def averaged(fine):
    return gaussian_filter(fine.reshape(SIDE, FINE, SIDE, FINE).mean((1, 3)), 1.5)


@pytest.mark.parametrize(("scale", "turn"), [(1.2, 0.0), (1.0, 0.5), (0.8, -0.4)])
def test_the_cube_is_that_of_rays(scale, turn):
    a = 0.85 * UNIT * SIDE * scale
    x, y, z = rays(a)
    # Faces look along the axes of a frame that is turned; entries into the three slabs, the last one counts.
    angle = turn + np.pi / 4
    start = np.stack([np.cos(angle) * x + np.sin(angle) * y, np.cos(angle) * y - np.sin(angle) * x, z])
    way = np.array([np.sin(angle) * COS_VIEW, np.cos(angle) * COS_VIEW, -SIN_VIEW])[:, None, None]
    ends = np.sort(np.stack([(-a - start) / way, (a - start) / way]), axis=0)
    hit, face = ends[0].max(axis=0) < ends[1].min(axis=0), ends[0].argmax(axis=0)
    light = [0.62 + 0.2 * np.cos(turn + t) for t in (np.radians(-15), np.radians(75))] + [1.0]
    expected = np.where(hit, np.array(light)[face], 0)
    assert np.abs(gaussian_filter(lit(0, scale, turn), 1.5) - averaged(expected)).max() < 0.025


def test_the_cylinder_is_that_of_rays():
    unit = UNIT * SIDE * 1.1
    a, half = CYLINDER_RADIUS * unit, 0.85 * unit
    x, y, z = rays(half)
    # Where the ray comes in through the top, or else through the side.
    reach = np.sqrt(np.clip(a * a - x * x, 0, None))
    top_at = y + (z - half) / SIN_VIEW * COS_VIEW
    side_at = z - (-reach - y) / COS_VIEW * SIN_VIEW
    top = np.hypot(x, top_at) <= a
    side = (np.abs(x) <= a) & (np.abs(side_at) <= half) & ~top
    p = x / a
    expected = np.where(top, 1.0, np.where(side, 0.7 - 0.2 * p - 0.15 * p * p, 0))
    assert np.abs(gaussian_filter(lit(1, 1.1, 0.0), 1.5) - averaged(expected)).max() < 0.025


@pytest.mark.parametrize(("shape", "radius", "half"), [(2, 1.1, 0.0), (3, 0.75, 0.7)])
def test_ball_and_capsule_have_their_outline(shape, radius, half):
    unit = UNIT * SIDE
    covered = lit(shape, 1.0, 0.0) > 0.3
    area = unit**2 * (np.pi * radius**2 + 4 * radius * half * COS_VIEW)
    assert covered.sum() == pytest.approx(area, rel=0.06)
    row, column = np.nonzero(covered)
    assert column.mean() + 0.5 == pytest.approx(SIDE / 2, abs=0.3)
    assert row.mean() + 0.5 == pytest.approx(GROUND * SIDE - (radius + half) * unit * COS_VIEW, abs=0.5)


def test_hues_colour_floor_wall_and_solid_alone():
    process = SolidProcess(64)
    base = np.array([0.1, 0.5, 0.8, 1.0, 2, 0.2])
    places = {"floor_hue": (slice(55, 64), slice(0, 10)), "wall_hue": (slice(0, 10), slice(0, 64))}
    image = process.observe(base[None])[0]
    for k, name in enumerate(process.names[:3]):
        other = base.copy()
        other[k] += 0.3
        change = np.abs(process.observe(other[None])[0] - image).sum(axis=0)
        for place, part in places.items():
            assert (change[part].max() > 0.1) == (place == name)
        assert (change[40, 32] > 0.1) == (name == "object_hue")


def test_the_corner_of_the_room_turns_along(rng):
    process = SolidProcess(64, (SHAPES3D[5],))
    rows = process.observe(np.linspace(-0.5, 0.5, 9)[:, None])[:, :, 5].sum(axis=1)
    corners = np.abs(np.diff(rows, axis=1)).argmax(axis=1)
    assert (np.diff(corners) > 0).all()


def test_images_are_colours_and_the_grid_is_that_of_shapes3d(rng):
    process = SolidProcess()
    assert process.grid_size == 480_000
    images = process.observe(process.sample(500, rng), threads=2)
    assert images.shape == (500, 3, 64, 64) and images.min() >= 0 and images.max() <= 1
    z, codes = process.grid(rng.integers(0, process.grid_size, 300))
    assert codes.max(axis=0).tolist() == [9, 9, 9, 7, 3, 14] and z.shape == (300, 6)


def test_assumptions_and_errors():
    broken = violated(SolidProcess(32).assumptions())
    assert [a.name for a in broken] == ["convex latents"]
    assert not violated(SolidProcess(32, (SHAPES3D[3], SHAPES3D[5])).assumptions())
    with pytest.raises(InputError, match=r"only -0.75 to 0.75 can be drawn"):
        SolidProcess(64, (interval("orientation", -1, 1, 3),))
    with pytest.raises(InputError, match="larger side than 16"):
        SolidProcess(16)

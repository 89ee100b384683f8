"""Solids: against rays cast at the bodies themselves, the room, and assumptions."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from nearid.base.errors import InputError
from nearid.lab.processes.assumptions import violated
from nearid.lab.processes.images.factors import interval
from nearid.lab.processes.images.kernels import COS_VIEW, CYLINDER_RADIUS, GROUND, SIN_VIEW
from nearid.lab.processes.images.solids import SHAPES3D, UNIT, SolidProcess

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
    z, codes = process.sample_grid(300, rng)
    assert codes.max(axis=0).tolist() == [9, 9, 9, 7, 3, 14] and z.shape == (300, 6)


def test_assumptions_and_errors():
    broken = violated(SolidProcess(32).assumptions())
    assert [a.name for a in broken] == ["convex latents"]
    assert not violated(SolidProcess(32, (SHAPES3D[3], SHAPES3D[5])).assumptions())
    with pytest.raises(InputError, match=r"only -0.75 to 0.75 can be drawn"):
        SolidProcess(64, (interval("orientation", -1, 1, 3),))
    with pytest.raises(InputError, match="larger side than 16"):
        SolidProcess(16)

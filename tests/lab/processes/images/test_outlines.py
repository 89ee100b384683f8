"""Outlines: area, centre and reach against a fine polygon, and the shapes that are drawn."""

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.lab.processes.images.outlines import Outline, draw_walkers, heart


def polygon(outline, corners=20_000):
    t = 2 * np.pi * np.arange(corners) / corners
    k = np.arange(len(outline.cosines))
    radius = np.cos(np.outer(t, k)) @ outline.cosines + np.sin(np.outer(t, k)) @ outline.sines
    return radius[:, None] * np.column_stack([np.cos(t), np.sin(t)])


@pytest.mark.parametrize("which", range(4))
def test_area_centre_and_reach_are_those_of_the_polygon(which):
    outline = (heart(), *draw_walkers(3, np.random.default_rng(3)))[which]
    points = polygon(outline)
    ahead = np.roll(points, -1, axis=0)
    cross = points[:, 0] * ahead[:, 1] - points[:, 1] * ahead[:, 0]
    area = cross.sum() / 2
    centre = (points + ahead).T @ cross / (6 * area)
    assert outline.area == pytest.approx(area, rel=1e-6)
    np.testing.assert_allclose(outline.centre, centre, atol=1e-6)
    assert outline.reach == pytest.approx(np.linalg.norm(points - centre, axis=1).max(), rel=1e-4)
    radii = np.linalg.norm(points, axis=1)
    tangent = ahead - points
    lengths = np.linalg.norm(tangent, axis=1)
    tangents = np.abs(cross) / lengths
    np.testing.assert_allclose(outline.bounds[:2], [radii.min(), radii.max()], rtol=1e-4)
    assert outline.thickness == pytest.approx(tangents.min(), rel=1e-3)
    assert outline.bounds[2] == pytest.approx((radii / tangents).max(), rel=1e-3)


def test_the_heart_is_upright_and_even():
    outline = heart()
    points = polygon(outline)
    mirrored = points * [-1, 1]
    # Same points, started half a turn later and run backwards.
    np.testing.assert_allclose(points, np.roll(mirrored[::-1], len(points) // 2 + 1, axis=0), atol=1e-9)
    tip, notch = points[len(points) // 4], points[3 * len(points) // 4]
    assert tip[1] == pytest.approx(points[:, 1].max()) and tip[1] > 0.8
    assert notch[1] < 0 and points[:, 1].min() < notch[1] - 0.15


def test_walkers_are_upright_of_area_1_and_differ(rng):
    walkers = draw_walkers(30, rng)
    np.testing.assert_allclose([w.area for w in walkers], 1)
    tall = np.mean([np.ptp(polygon(w, 500)[:, 1]) / np.ptp(polygon(w, 500)[:, 0]) for w in walkers])
    assert 1.5 < tall < 2.5
    assert not np.allclose(walkers[0].cosines, walkers[1].cosines)
    same = draw_walkers(2, rng, variety=0)
    np.testing.assert_allclose(same[0].cosines, same[1].cosines)


def test_outlines_that_cannot_be_are_told(rng):
    with pytest.raises(InputError, match="radius of the outline must be above 0"):
        Outline(np.array([1.0, 1.5]), np.zeros(2))
    with pytest.raises(InputError, match=r"shapes \(2,\) and \(3,\)"):
        Outline(np.ones(2), np.ones(3))
    with pytest.raises(InputError, match="number of outlines is 0"):
        draw_walkers(0, rng)

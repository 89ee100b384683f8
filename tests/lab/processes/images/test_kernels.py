"""Drawing: pixels are smooth in every continuous factor, and agree with brute force."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from nearid.lab.processes.images.masks import draw_mask_process
from nearid.lab.processes.images.outlines import heart
from nearid.lab.processes.images.scenes import DSPRITES, HUE, MARGIN, RADIUS, SolidProcess, SpriteProcess

SIDE = 64
MASKS = draw_mask_process(3, np.random.default_rng(0), binary=False)


def curvature(draw, path, points):
    """Largest second difference of a pixel along a path, over the square of the step.

    It tends to the largest second derivative where pixels have one; it grows as one over the step at a corner, and as
    one over its square at a jump.
    """
    step = path / (points - 1)
    images = draw(np.linspace(0, path, points))
    return np.abs(np.diff(images, 2, axis=0)).max() / step**2


def growth(draw, path):
    """How much the curvature grows as the step is made four times smaller: 1, 4 and 16 in the three cases."""
    return curvature(draw, path, 481) / max(curvature(draw, path, 121), 1e-300)


def along(process, base, k):
    """Images as one factor moves away from a base."""

    def draw(shifts):
        z = np.tile(base, (len(shifts), 1))
        z[:, k] += shifts
        return process.observe(z, np.float64)

    return draw


@pytest.mark.parametrize("side", [32, 64])
@pytest.mark.parametrize("kind", ["sprites", "solids"])
def test_pixels_are_smooth_in_every_continuous_factor(kind, side, rng):
    process = SpriteProcess(side, (*DSPRITES, HUE)) if kind == "sprites" else SolidProcess(side)
    at = process.names.index("shape")
    for shape in range(len(process.shapes)):
        for k, factor in enumerate(process.factors):
            if factor.continuous:
                base = process.sample(1, rng)[0]
                base[at] = shape
                # Edges move by pixels on the way, and the path stays inside the range.
                path = 0.12 * (factor.high - factor.low)
                base[k] = min(base[k], factor.high - path)
                found = growth(along(process, base, k), path)
                assert 0.5 < found < 1.5, (process.shapes[shape], factor.name, found)


@pytest.mark.parametrize("k", range(3))
def test_soft_masks_are_smooth(k, rng):
    base = rng.uniform(0, 0.8, 3)
    for walker in range(3):

        def draw(shifts, walker=walker):
            z = np.tile(base, (len(shifts), 1))
            z[:, k] += shifts
            return MASKS.observe(z, walker, np.float64)

        assert 0.5 < growth(draw, 0.15) < 1.5


def test_corners_and_jumps_are_found():
    """The check above can fail: a bar whose pixels are its exact cover, and one of hard pixels."""
    pixels = np.arange(20) + 0.5

    def cover(shifts):
        return np.clip(5 - np.abs(pixels - 10 - shifts[:, None]) + 0.5, 0, 1)

    assert growth(cover, 1.7) > 3
    assert growth(lambda shifts: np.round(cover(shifts)), 1.7) > 12


def inside_sprite(shape, u, v):
    """Whether points in units of the sprite's circle are inside, by definition."""
    if shape == 0:
        return np.maximum(np.abs(u), np.abs(v)) <= np.sqrt(0.5)
    if shape == 1:
        return u**2 + 4 * v**2 <= 1
    outline = heart()
    turns = np.arctan2(v, u)[..., None] * np.arange(len(outline.cosines))
    return np.hypot(u, v) <= np.cos(turns) @ outline.cosines + np.sin(turns) @ outline.sines


@pytest.mark.parametrize("shape", range(3))
def test_sprites_are_those_of_supersampling(shape, rng):
    process = SpriteProcess(SIDE)
    z = process.sample(6, rng)
    z[:, 0] = shape
    fine = (np.arange(SIDE * 8) + 0.5) / 8
    for row, image in zip(z, process.observe(z, np.float64)[:, 0], strict=True):
        _, scale, turn, *place = row
        cx, cy = SIDE * (MARGIN + (1 - 2 * MARGIN) * np.array(place))
        x, y = fine[None, :] - cx, fine[:, None] - cy
        # A turn with the clock in an image whose y runs down.
        u, v = np.cos(turn) * x + np.sin(turn) * y, np.cos(turn) * y - np.sin(turn) * x
        size = RADIUS * SIDE * scale
        hard = inside_sprite(shape, u / size, v / size).reshape(SIDE, 8, SIDE, 8).mean((1, 3))
        # Edges are softer than those of square pixels; under a common blur both are the same picture.
        assert np.abs(gaussian_filter(image, 1.5) - gaussian_filter(hard, 1.5)).max() < 0.02
        assert image.sum() == pytest.approx(hard.sum(), rel=0.02)


def test_an_upright_square_is_blurred_by_the_biweight_kernel():
    process = SpriteProcess(32, (DSPRITES[3], DSPRITES[4]))
    z = np.array([[0.43, 0.61]])
    image = process.observe(z, np.float64)[0, 0]
    half = RADIUS * 32 * 0.75 * np.sqrt(0.5)
    t = (np.arange(4000) + 0.5) / 2000 - 1
    kernel = 15 / 16 * (1 - t**2) ** 2 / 2000
    bars = []
    for place in z[0]:
        centre = 32 * (MARGIN + (1 - 2 * MARGIN) * place)
        bars.append([np.sum(kernel * (np.abs(p + 0.5 + t - centre) <= half)) for p in range(32)])
    np.testing.assert_allclose(image, np.outer(bars[1], bars[0]), atol=1e-3)

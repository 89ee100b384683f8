"""What image processes share, shown on sprites: draws, grids, threads and types, and what is refused."""

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.lab.processes.images.base import hue_colours
from nearid.lab.processes.images.factors import Factor, category, circle, interval
from nearid.lab.processes.images.scenes import DSPRITES, SolidProcess, SpriteProcess

HUES = ("floor", "wall", "object")
PLACE = (DSPRITES[3], DSPRITES[4])


def test_finite_and_infinite_draws(rng):
    process = SpriteProcess()
    z, codes = process.grid(rng.integers(0, process.grid_size, 2000))
    assert len(np.unique(z[:, 3])) == 32 and len(np.unique(z[:, 1])) == 6
    np.testing.assert_allclose(z, np.column_stack([f.values[c] for f, c in zip(DSPRITES, codes.T, strict=True)]))
    free = process.sample(2000, rng)
    assert len(np.unique(free[:, 3])) == 2000 and set(free[:, 0]) == {0, 1, 2}
    again = process.sample(5, np.random.default_rng(1))
    np.testing.assert_array_equal(again, process.sample(5, np.random.default_rng(1)))


def test_threads_and_types_do_not_change_the_image(rng):
    process = SpriteProcess(32)
    z = process.sample(101, rng)
    images = process.observe(z)
    assert images.dtype == np.float32 and images.shape == (101, 1, 32, 32)
    np.testing.assert_array_equal(images, process.observe(z, threads=3))
    np.testing.assert_allclose(images, process.observe(z, np.float64), atol=1e-6)


def test_images_that_cannot_be_are_told():
    process = SpriteProcess(32, PLACE)
    with pytest.raises(InputError, match=r"shape \(4, 3\), but \(size, 2\)"):
        process.observe(np.zeros((4, 3)))
    with pytest.raises(InputError, match="x is 2, but it runs from 0 to 1"):
        process.observe(np.array([[2.0, 0.5]]))
    with pytest.raises(InputError, match="dtype is int64"):
        process.observe(np.zeros((1, 2)), np.int64)
    with pytest.raises(InputError, match="threads is 0"):
        process.observe(np.zeros((1, 2)), threads=0)
    with pytest.raises(InputError, match=r"wind is not a factor of these images\. Their factors are shape, scale"):
        SpriteProcess(32, (interval("wind", 0, 1, 2),))
    with pytest.raises(InputError, match="names must differ"):
        SpriteProcess(32, (PLACE[0], PLACE[0]))
    with pytest.raises(InputError, match=r"only 0.1 to 1 can be drawn"):
        SpriteProcess(32, (interval("scale", 0.5, 2, 2),))
    with pytest.raises(InputError, match="only shape is a category"):
        SpriteProcess(32, (category("x", 2),))
    with pytest.raises(InputError, match="larger side than 16"):
        SpriteProcess(16)


@pytest.mark.parametrize(
    ("factor", "message"),
    [
        (circle("x", 1.0, 4), r"x is given as a circle, but its two ends look different. Use interval\(\)"),
        (Factor("scale", "circle", 0.5, 1.0, 4), "scale is given as a circle, but its two ends"),
        (circle("hue", 0.5, 4), "hue is given as a circle of 0.5, but its period is 1"),
        (circle("rotation", 1.0, 4), "rotation is given as a circle of 1, but its period is 6.28319"),
    ],
)
def test_circles_come_round(factor, message):
    with pytest.raises(InputError, match=message):
        SpriteProcess(32, (factor,))


@pytest.mark.parametrize(
    ("process", "name"),
    [(SpriteProcess, "rotation"), (SpriteProcess, "hue"), *((SolidProcess, f"{n}_hue") for n in HUES)],
)
def test_factors_look_the_same_after_their_period_and_not_before(process, name):
    # A heart and a cube: neither has a symmetry of its own.
    shape = Factor("shape", "category", 2, 2, 1) if process is SpriteProcess else category("shape", 1)
    turn = process.settings[name].period
    images = process(32, (shape, circle(name, turn, 4)))
    draws = np.column_stack([np.full(4, shape.low), [0.1, 0.1 + turn, 0.1 + turn / 2, 0.1 + turn / 3]])
    start, again, *others = images.observe(draws)
    np.testing.assert_allclose(start, again, atol=1e-6)
    assert all(np.abs(start - other).max() > 0.1 for other in others)


def test_hues_are_colours_a_third_of_a_turn_apart(rng):
    hue = rng.uniform(-2, 2, 50)
    colours = hue_colours(hue)
    assert colours.min() >= 0 and colours.max() <= 1
    np.testing.assert_allclose(np.roll(colours, 1, axis=1), hue_colours(hue + 1 / 3))

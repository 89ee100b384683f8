"""The screen by microscope: factors with the effects that were asked for, and a mild, invertible mixing."""

import numpy as np
import pytest

from nearid import InputError
from nearid.lab.processes.microscopy import draw_microscopy

SIZES = {"biological": 3, "technical": 2, "perturbations": 2, "batches": 5, "targets": 2}


@pytest.fixture(scope="module")
def process():
    return draw_microscopy(8, np.random.default_rng(0), **SIZES, effect=2.0, batch_effect=0.4)


@pytest.fixture(scope="module")
def screen(process):
    return process.sample(20_000, np.random.default_rng(1), np.float64)


def test_kinds_are_told(process):
    assert process.kinds.tolist() == ["biological"] * 3 + ["technical"] * 2 + ["other"] * 3
    assert process.width == 8


def test_perturbations_move_their_targets_alone(process, screen):
    control = screen.factors[screen.labels == 0].mean(axis=0)
    for p in (1, 2):
        moved = screen.factors[screen.labels == p].mean(axis=0) - control
        assert np.allclose(moved[:3], process.shifts[p - 1], atol=0.1)
        assert np.abs(moved[5:]).max() < 0.1
    assert np.count_nonzero(process.shifts, axis=1).tolist() == [2, 2]


def test_batches_move_technical_factors_alone(process, screen):
    means = np.stack([screen.factors[(screen.batches == b) & (screen.labels == 0)].mean(axis=0) for b in range(5)])
    assert np.allclose(means[:, 3:5], np.sqrt(0.4) * process.offsets, atol=0.15)
    assert np.abs(means[:, 5:]).max() < 0.15
    within = screen.factors[screen.batches == 0][:, 3:5].var(axis=0)
    assert np.allclose(within, 0.6, atol=0.1)


def test_only_what_is_present_occurs(process, screen):
    for p in range(2):
        seen = np.unique(screen.batches[screen.labels == p + 1])
        assert np.array_equal(seen, np.flatnonzero(process.present[p]))
    assert np.mean(screen.labels == 0) == pytest.approx(0.3, abs=0.02)


def test_the_mixing_is_mild_and_can_be_done_in_place(process, screen):
    z = screen.factors[:50]
    x = process.observe(z)
    again = z.astype(np.float32)
    assert process.observe(again, out=again) is again and np.allclose(again, x, atol=1e-4)
    # Undone by hand: turned back, divided by the stretches, and the bend inverted by Newton's method.
    bent = x @ process.outer.T / process.scales
    h = bent.copy()
    for _ in range(30):
        h -= (h + process.bend * (np.sqrt(1 + h * h) - 1) - bent) / (1 + process.bend * h / np.sqrt(1 + h * h))
    assert np.allclose(h @ process.inner.T, z, atol=1e-8)


@pytest.mark.parametrize(
    "change", [{"batches": 1}, {"bend": 1.0}, {"control": 0}, {"condition": 0.5}, {"biological": 1}, {"technical": 9}]
)
def test_impossible_screens_are_refused(change):
    with pytest.raises(InputError):
        draw_microscopy(8, np.random.default_rng(0), **{**SIZES, **change})

"""Batch components are taken away whole, labels beside them stay, and noise in their pattern is shrunk."""

import numpy as np
import pytest

from nearid.questions.deconfound.directions import batch_components
from nearid.questions.deconfound.projection import LEAST, label_directions, oblique


def whitened(rng, n=900, k=6, between=0.8, plate=2.0, label=1.0):
    """Rows of variance 1 in every direction, a plate effect along one vector and a label effect at an angle to it."""
    b, l = np.arange(n) % 6, (np.arange(n) // 6) % 2
    along = np.eye(k)[0]
    beside = between * along + np.sqrt(1 - between**2) * np.eye(k)[1]
    effects = np.outer(np.linspace(-plate, plate, 6)[b], along), np.outer(label * (l - 0.5), beside)
    y = rng.normal(size=(n, k)) + sum(effects)
    y -= y.mean(axis=0)
    values, turn = np.linalg.eigh(np.cov(y.T))
    white = (turn / np.sqrt(values))[:, ::-1]
    return y @ white, l, b, *(effect @ white for effect in effects)


def taken(y, l, b, drop, rng):
    follows = batch_components(y, l, b, None, rng)
    pattern, reading = oblique(y, l, b, follows, follows.dropped(drop), rng)
    return pattern, reading, follows


@pytest.mark.parametrize("drop", [0, 1, 3])
def test_nothing_of_the_patterns_is_left(rng, drop):
    y, l, b, *_ = whitened(rng)
    pattern, reading, _ = taken(y, l, b, drop, rng)
    assert pattern.shape == (6, drop)
    np.testing.assert_allclose(reading @ pattern, np.eye(drop), atol=1e-9)


def test_a_label_at_an_angle_stays_and_the_plate_goes(rng):
    y, l, b, of_plate, of_label = whitened(rng)
    pattern, reading, follows = taken(y, l, b, 1, rng)

    def left(effect, reading):
        effect = effect - effect.mean(axis=0)
        return np.sum((effect - effect @ reading.T @ pattern.T) ** 2) / np.sum(effect**2)

    assert left(of_plate, reading) < 0.02
    assert left(of_label, reading) > 0.9
    # An orthogonal projection takes much of the label with the plate.
    assert left(of_label, follows.vectors[:, :1].T) < 0.8


def test_without_labels_a_row_is_read_along_the_pattern(rng):
    y, _, b, *_ = whitened(rng, label=0.0)
    pattern, reading, _ = taken(y, rng.integers(0, 2, len(y)), b, 1, rng)
    np.testing.assert_allclose(reading, np.linalg.pinv(pattern), atol=1e-9)


def test_noise_of_the_pattern_is_shrunk_and_signal_is_not(rng):
    """More columns than a batch has rows: the pattern lies in the first four directions, noise in all."""
    n, k = 240, 200
    b, l = np.arange(n) % 4, (np.arange(n) // 4) % 2
    y = rng.normal(size=(n, k))
    y[:, :4] += 3 * rng.normal(size=(4, 4))[b]
    follows = batch_components(y, l, b, None, rng)
    pattern, _ = oblique(y, l, b, follows, np.array([0]), rng)
    factors = pattern[:, 0] / follows.vectors[:, 0]
    np.testing.assert_allclose(factors[:4], 1)
    assert np.median(factors[4:]) < 0.3 and factors.min() > LEAST - 1e-9


def test_directions_of_labels_are_those_that_permuted_labels_do_not_have(rng):
    y, l, b, _, of_label = whitened(rng)
    directions, shares = label_directions(y, b, l, rng)
    assert directions.shape == (6, 1)
    true = of_label[l == 1][0] / np.linalg.norm(of_label[l == 1][0])
    assert abs(true @ directions[:, 0]) > 0.95
    # Of rows within batches: variance between labels over all.
    z = (y - np.array([y[b == at].mean(axis=0) for at in range(6)])[b]) @ directions[:, 0]
    means = np.array([z[l == at].mean() for at in range(2)])
    assert shares[0] == pytest.approx(means.var() / z.var(), abs=0.01)
    found = [label_directions(y, b, rng.permutation(l), rng)[0].shape[1] for _ in range(40)]
    assert np.mean(found) < 0.2

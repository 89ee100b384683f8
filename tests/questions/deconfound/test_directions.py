"""Batch components: found beside the label, judged against permuted batches, and not taken from coarse labels."""

import numpy as np
import pytest
from scipy import linalg

from nearid.questions.deconfound.directions import PERMUTATIONS, BatchComponents, batch_components


def screen(rng, n=600, k=8, plates=6, effect=1.0):
    """Whitened rows with a plate effect along column 0 and a label effect along column 1."""
    b, l = np.arange(n) % plates, rng.integers(0, 3, n)
    y = rng.standard_t(5, size=(n, k))
    moves = rng.normal(size=plates)
    y[:, 0] += effect * ((moves - moves.mean()) / moves.std())[b]
    y[:, 1] += 2.0 * (l == 1)
    return (y - y.mean(axis=0)) / y.std(axis=0), l, b


def test_the_directions_are_the_discriminants_of_an_additive_model(rng):
    y, l, b = screen(rng)
    found = batch_components(y, l, b, None, rng)
    # Oracle: least squares with indicators, and the generalised eigenproblem of explained against all squares.
    labels, both = np.eye(3)[l], np.hstack([np.eye(3)[l], np.eye(6)[b][:, 1:]])
    left, less = (y - m @ np.linalg.lstsq(m, y, rcond=None)[0] for m in (labels, both))
    between = left.T @ left - less.T @ less
    values, vectors = linalg.eigh(between)
    assert abs(vectors[:, -1] @ found.vectors[:, 0]) == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(5), atol=1e-9)
    share = values[-1] / np.sum((left @ vectors[:, -1]) ** 2)
    # Chance explains about 5 of 600.
    assert found.batch[0] == pytest.approx(share, abs=0.03) and found.batch[0] < share


def test_a_plate_effect_is_dropped_and_a_label_effect_is_not(rng):
    found = batch_components(*screen(rng), None, rng)
    assert found.dropped("auto").tolist() == [0]
    assert abs(found.vectors[0, 0]) > 0.95 and abs(found.vectors[1, 0]) < 0.2


def test_noise_is_dropped_in_few_runs():
    """At the level of 5%, 8 of 40 have a chance below .001."""
    dropped = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y, l, b = screen(rng, n=120, k=10, effect=0.0)
        dropped += len(batch_components(y, l, b, 0, rng).dropped("auto")) > 0
    assert dropped < 8


def test_compounds_that_differ_between_batches_under_one_label_are_kept_by_the_controls(rng):
    n = 600
    b = np.arange(n) % 6
    l = (np.arange(n) // 6) % 2
    y = rng.normal(size=(n, 6))
    # Of label 1, each plate has another compound; controls are alike on all plates.
    y[:, 0] += np.where(l == 1, 3.0 * np.linspace(-1, 1, 6)[b], 0.0)
    y = (y - y.mean(axis=0)) / y.std(axis=0)
    assert len(batch_components(y, l, b, 0, np.random.default_rng(0)).dropped("auto")) == 0
    assert len(batch_components(y, l, b, None, np.random.default_rng(0)).dropped("auto")) == 1


def test_rules():
    shares = np.array([0.5, 0.3, 0.1, 0.02])
    few = (1 + 0) / (PERMUTATIONS + 1)
    found = BatchComponents(np.eye(6)[:, :4], shares, shares, np.array([0.1, 0.4, 0.0, 0.0]), np.full(4, few))
    assert found.dropped("auto").tolist() == [0, 2]
    assert found.dropped(0.2).tolist() == [0]
    assert found.dropped(2).tolist() == [0, 1] and found.dropped(0).tolist() == []
    assert found.dropped(99).tolist() == [0, 1, 2, 3]


def test_one_direction_always_stays():
    found = BatchComponents(np.eye(2), np.ones(2), np.ones(2), np.zeros(2), np.zeros(2))
    assert found.dropped(99).tolist() == [0]


@pytest.mark.parametrize("kind", ["a batch of one row", "a control that one batch lacks", "batches that nothing links"])
def test_unbalanced_batches(rng, kind):
    y, l, b = screen(rng)
    if kind == "a batch of one row":
        b[0] = 6
    elif kind == "a control that one batch lacks":
        l[(b == 0) & (l == 0)] = 1
    else:
        l = np.where(b == 0, 3, l)
    found = batch_components(y, l, b, 0, rng)
    assert np.isfinite(found.batch).all() and np.isfinite(found.vectors).all()
    assert abs(found.vectors[0, found.dropped("auto")[0]]) > 0.9


def test_rows_of_one_batch_have_no_batch_components(rng):
    found = batch_components(rng.normal(size=(30, 4)), np.arange(30) % 3, np.zeros(30, int), None, rng)
    assert found.vectors.shape == (4, 0) and len(found.dropped("auto")) == len(found.dropped(2)) == 0

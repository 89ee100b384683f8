"""Shares of batch and label against least squares on indicator columns."""

import numpy as np
import pytest
from scipy import stats

from nearid.arrays import open_rows
from nearid.questions.deconfound import attribution as module
from nearid.questions.deconfound.attribution import Attribution, attribution
from nearid.questions.deconfound.conditions import ComponentRows, Condition


def view_of(x):
    return ComponentRows(
        open_rows(x), Condition("pca", np.zeros(x.shape[1]), np.eye(x.shape[1]), np.arange(2), np.ones(2))
    )


def by_least_squares(y, first, second):
    """Adjusted share of what `first` leaves that `second` explains, and its p-value."""

    def left(*columns):
        design = np.hstack([c[:, None] == np.unique(c) for c in columns]).astype(float)
        fit = design @ np.linalg.lstsq(design, y, rcond=None)[0]
        return np.sum((y - fit) ** 2), len(y) - np.linalg.matrix_rank(design)

    (before, free_before), (after, free) = left(first), left(first, second)
    f = (before - after) / (free_before - free) / (after / free)
    return 1 - (after / free) / (before / free_before), stats.f.sf(f, free_before - free, free)


@pytest.mark.parametrize(("batches", "labels"), [(6, 3), (3, 7)])
def test_shares_are_those_of_least_squares(batches, labels, monkeypatch):
    monkeypatch.setattr(module, "PIECE", 17)
    rng = np.random.default_rng(0)
    b, l = rng.integers(0, batches, 90), rng.integers(0, labels, 90)
    # Labels that are rare in some batches: the two are confounded in part.
    l[(b == 0) & (l > 0)] = 0
    x = np.column_stack([rng.normal(size=batches)[b] + rng.normal(size=90), rng.normal(size=90) + 0.7 * (l == 1)])
    found = attribution(view_of(x), l, b)
    for k in range(2):
        assert (found.batch[k], found.batch_p[k]) == pytest.approx(by_least_squares(x[:, k], l, b), rel=1e-4)
        assert found.label[k] == pytest.approx(by_least_squares(x[:, k], b, l)[0], rel=1e-4)


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize(("batches", "labels"), [(6, 3), (3, 7)])
def test_a_label_is_tested_against_label_x_batch(batches, labels, rows):
    rng = np.random.default_rng(6)
    # Some labels are missing in some batches; means of cells of equal size are then least squares' observations.
    cells = [(b, l) for b in range(batches) for l in range(labels) if (b * 5 + l * 3) % 7]
    b, l = np.array(cells).T
    means = rng.normal(size=(len(cells), 2)) + 0.5 * l[:, None]
    noise = rng.normal(size=(rows, len(cells), 2))
    x = (means + 0.1 * (noise - noise.mean(axis=0))).reshape(-1, 2)
    order = rng.permutation(len(x))
    found = attribution(view_of(x[order]), np.tile(l, rows)[order], np.tile(b, rows)[order])
    assert found.label_free == len(cells) - batches - labels + 1
    for k in range(2):
        assert found.label_p[k] == pytest.approx(by_least_squares(means[:, k], b, l)[1], rel=1e-4)


def test_no_ratio_of_wells_to_rows_makes_a_label_more_doubtful():
    rng = np.random.default_rng(7)
    b, l = np.repeat(np.arange(8), 2), np.tile([0, 1], 8)
    sizes = np.where(l == 0, 200, rng.integers(2, 30, 16))
    x = rng.normal(size=(sizes.sum(), 2))
    x[:, 1] += 5 * rng.normal(size=16)[np.repeat(np.arange(16), sizes)]
    found = attribution(view_of(x), np.repeat(l, sizes), np.repeat(b, sizes))
    means = np.array([part.mean(axis=0) for part in np.split(x, np.cumsum(sizes)[:-1])])

    def weighted(y, weights):
        root = np.sqrt(weights)

        def left(*columns):
            design = np.hstack([c[:, None] == np.unique(c) for c in columns]) * root[:, None]
            fit = design @ np.linalg.lstsq(design, y * root, rcond=None)[0]
            return np.sum((y * root - fit) ** 2)

        return stats.f.sf((left(b) - left(b, l)) / (left(b, l) / 7), 1, 7)

    for k in range(2):
        tried = [weighted(means[:, k], sizes / (1 + ratio * sizes)) for ratio in module.RATIOS]
        assert found.label_p[k] == pytest.approx(max(tried), rel=1e-4) and np.ptp(tried) > 0.01


def test_a_block_counts_once():
    rng = np.random.default_rng(8)
    b, l = np.repeat(np.arange(5), 8), np.tile([0, 0, 0, 0, 1, 1, 1, 1], 5)
    wells = rng.normal(size=(40, 2)) + b[:, None]
    once = attribution(view_of(wells), l, b, control=0)
    copies = [np.repeat(part, 6, axis=0) for part in (wells, l, b, np.arange(40))]
    order = rng.permutation(240)
    x, l, b, blocks = (part[order] for part in copies)
    found = attribution(view_of(x), l, b, control=0, blocks=blocks)
    assert np.allclose(found.batch_p, once.batch_p, rtol=1e-4) and np.allclose(found.label_p, once.label_p, rtol=1e-4)
    # With one block of controls in each batch, batches are judged by those of all labels.
    some = (l == 1) | (blocks % 8 == 0)
    one = attribution(view_of(x[some]), l[some], b[some], control=0, blocks=blocks[some])
    assert np.array_equal(one.batch_p, attribution(view_of(x[some]), l[some], b[some], blocks=blocks[some]).batch_p)
    assert (one.batch_p < 1).all()
    # Copies of a row are no evidence, but rows without blocks are taken for it.
    assert (attribution(view_of(x), l, b, control=0).batch_p < once.batch_p / 100).all()


def test_where_label_x_batch_leaves_nothing_no_component_is_biological():
    rng = np.random.default_rng(9)
    # Each label is linked to the next by one batch alone.
    b, l = np.repeat([0, 0, 1, 1, 2, 2], 20), np.repeat([0, 1, 1, 2, 2, 3], 20)
    found = attribution(view_of(rng.normal(size=(120, 2)) + 9 * l[:, None]), l, b)
    assert found.label_free == 0 and np.isnan(found.label_p).all() and "biological" not in found.kinds
    assert (found.label > 0.9).all()


def test_names_keep_the_expected_share_of_false_ones():
    p = np.array([0.001, np.nan, 0.02, 0.03, 0.045, 0.9])
    found = Attribution(np.zeros(6), np.ones(6), np.ones(6), p, 9)
    kept = stats.false_discovery_control(p[~np.isnan(p)]) <= 0.05
    assert np.array_equal(found.biological[~np.isnan(p)], kept) and not found.biological[1]
    assert found.biological.sum() == 3


def test_too_few_controls_are_not_looked_at_alone(rng):
    """One control on each batch says nothing of the batch; all rows do."""
    batches, labels = np.repeat(np.arange(4), 30), np.tile(np.arange(1, 4), 40)
    labels[::30] = 0
    x = rng.normal(size=(120, 2)) + 3.0 * batches[:, None] * [1, 0]
    few, every = attribution(view_of(x), labels, batches, control=0), attribution(view_of(x), labels, batches)
    np.testing.assert_array_equal(few.batch, every.batch)
    assert list(few.technical) == [True, False]
    labels[1::30] = 0
    mine = labels == 0
    among, alone = (
        attribution(view_of(x), labels, batches, control=0),
        attribution(view_of(x[mine]), labels[mine], batches[mine]),
    )
    np.testing.assert_allclose(among.batch, alone.batch)


def test_groups_that_are_not_linked():
    rng = np.random.default_rng(1)
    b = np.repeat(np.arange(4), 20)
    l = rng.integers(0, 2, 80) + 2 * (b > 1)
    x = rng.normal(size=(80, 2)) + b[:, None]
    found = attribution(view_of(x), l, b)
    assert found.batch[0] == pytest.approx(by_least_squares(x[:, 0], l, b)[0], rel=1e-4)


def test_some_rows_alone():
    rng = np.random.default_rng(2)
    x, b, l = rng.normal(size=(60, 2)), rng.integers(0, 3, 60), rng.integers(0, 2, 60)
    places = np.flatnonzero(rng.random(60) < 0.7)
    part, whole = (
        attribution(view_of(x), l[places], b[places], places),
        attribution(view_of(x[places]), l[places], b[places]),
    )
    assert np.array_equal(part.batch, whole.batch) and np.array_equal(part.label_p, whole.label_p)


def test_the_batch_is_judged_on_controls():
    rng = np.random.default_rng(5)
    b, l = rng.integers(0, 4, 200), rng.integers(0, 2, 200)
    # A perturbation that is another compound in each batch; controls are alike in all.
    x = rng.normal(size=(200, 2)) + 3 * (l * rng.normal(size=4)[b])[:, None]
    plain, found = attribution(view_of(x), l, b), attribution(view_of(x), l, b, control=0)
    mine = l == 0
    means = [x[mine & (b == k), 0].mean() for k in range(4)]
    left = sum(np.sum((x[mine & (b == k), 0] - means[k]) ** 2) for k in range(4))
    n, total = int(mine.sum()), np.sum((x[mine, 0] - x[mine, 0].mean()) ** 2)
    assert found.batch[0] == pytest.approx(1 - (left / (n - 4)) / (total / (n - 1)), rel=1e-3)
    assert plain.batch[0] > 0.2 > found.batch[0] and np.array_equal(plain.label, found.label)
    # Controls of one batch say nothing of others.
    assert attribution(view_of(x), l, np.where(mine, 0, b), control=0).batch[0] > 0.1


def test_components_are_named():
    rng = np.random.default_rng(3)
    b, l = rng.integers(0, 5, 500), rng.integers(0, 2, 500)
    x = rng.normal(size=(500, 2)) + np.column_stack([1.5 * l, rng.normal(size=5)[b]])
    found = attribution(view_of(x), l, b)
    assert found.kinds == ["biological", "technical"] and found.ranked.tolist() == [1, 0]
    assert attribution(view_of(rng.normal(size=(500, 2))), l, b).kinds == ["neither", "neither"]


def test_noise_has_no_share_on_average():
    rng = np.random.default_rng(4)
    b, l = rng.integers(0, 10, 60), rng.integers(0, 8, 60)
    found = [attribution(view_of(rng.normal(size=(60, 2))), l, b) for _ in range(150)]
    assert abs(np.mean([f.batch for f in found])) < 0.02 and abs(np.mean([f.label for f in found])) < 0.02


def test_what_cannot_be_told_apart_is_not_named():
    b = np.repeat([0, 1, 2], 10)
    found = attribution(view_of(np.random.default_rng(0).normal(size=(30, 2)) + b[:, None]), b, b)
    assert np.isnan(found.batch).all() and np.isnan(found.label).all() and found.kinds == ["neither"] * 2

"""Rows that depend on each other: series, groups in the order of the file, near copies; and rows that do not."""

import numpy as np
import pytest

from nearid import dependence
from nearid.arrays import open_rows, pair_rows
from nearid.dependence import blocks_run_on, clustered_rows, serial_rows


def pair(x, y):
    return pair_rows(open_rows(x, name="left"), open_rows(y, name="right"))


def series(rng, n, d, rho):
    """A stationary AR(1) series of unit variance in each column."""
    rows = rng.normal(size=(n, d))
    for t in range(1, n):
        rows[t] = rho * rows[t - 1] + np.sqrt(1 - rho**2) * rows[t]
    return rows


def grouped(rng, groups, size, d, noise):
    return np.repeat(rng.normal(size=(groups, d)), size, axis=0) + noise * rng.normal(size=(groups * size, d))


def held_out_r2(x, y, fold):
    """Least squares, held out by fold."""
    error = np.empty_like(y)
    for k in np.unique(fold):
        train = fold != k
        a = np.column_stack([x, np.ones(len(x))])
        error[~train] = y[~train] - a[~train] @ np.linalg.lstsq(a[train], y[train], rcond=None)[0]
    return 1 - (error**2).sum() / ((y - y.mean(axis=0)) ** 2).sum()


@pytest.mark.parametrize("rho", [0.5, 0.9, 0.99])
def test_series_are_found_with_a_length_that_follows_their_decay(rng, rho):
    # The correlation rho^k falls to a third of rho after this many rows.
    expected = 1 + np.log(3) / -np.log(rho)
    for n, d, above in ((1000, 8, np.inf), (5000, 8, 4), (5000, 32, np.inf if rho == 0.99 else 4)):
        found = serial_rows(pair(series(rng, n, d, rho), series(rng, n, d, rho)))
        # Where few rows are independent of each other the length is rather too long.
        assert expected / 3 < min(found.decay) < above * expected
        assert found.length >= min(2 * min(found.decay), n)


@pytest.mark.parametrize(("groups", "size"), [(200, 5), (60, 20), (40, 75), (200, 15)])
def test_a_block_is_longer_than_a_group_of_rows(rng, groups, size):
    x, y = grouped(rng, groups, size, 8, 0.5), grouped(rng, groups, size, 8, 0.5)
    assert size <= serial_rows(pair(x, y)).length <= 4 * size


def test_a_slow_direction_of_little_variance_sets_the_length(rng):
    sides = []
    for _ in range(2):
        rows = np.hstack([5 * series(rng, 4000, 6, 0.5), series(rng, 4000, 1, 0.98)])
        sides.append(rows @ np.linalg.qr(rng.normal(size=(7, 7)))[0])
    assert min(serial_rows(pair(*sides)).decay) > 20


@pytest.mark.parametrize("shape", [(200, 20), (1000, 8), (3000, 60)])
def test_independent_rows_have_no_length(rng, shape):
    for draw in (rng.normal, lambda size: rng.standard_t(3, size=size), lambda size: np.exp(2 * rng.normal(size=size))):
        assert serial_rows(pair(draw(size=shape), draw(size=shape))) is None
    x, y = rng.normal(size=shape), rng.normal(size=shape)
    # A few far rows, the same on both sides.
    far = rng.choice(shape[0], 3, replace=False)
    x[far] += 1e3
    y[far] += 1e3
    assert serial_rows(pair(x, y)) is None


def test_one_dependent_side_alone_neither_counts_nor_feigns_a_relation(rng):
    x, y = series(rng, 1000, 8, 0.99), rng.normal(size=(1000, 8))
    fold = rng.permutation(1000) % 5
    assert serial_rows(pair(x, y)) is None
    assert serial_rows(pair(y, x)) is None
    assert held_out_r2(x, y, fold) < 0.01
    assert held_out_r2(y, x, fold) < 0.01


def test_blocks_of_the_length_hide_what_single_rows_feign(rng):
    x, y = series(rng, 3000, 8, 0.95), series(rng, 3000, 8, 0.95)
    length = serial_rows(pair(x, y)).length
    blocks = np.arange(3000) // length
    dealt = rng.permutation(blocks[-1] + 1) % 5
    assert held_out_r2(x, y, rng.permutation(3000) % 5) > 0.01
    assert held_out_r2(x, y, dealt[blocks]) < 0.005


def test_rows_that_are_not_finite_decide_nothing(rng):
    x, y = series(rng, 2000, 4, 0.9), series(rng, 2000, 4, 0.9)
    length = serial_rows(pair(x, y)).length
    x[rng.random(2000) < 0.1] = np.nan
    y[7, 2] = np.inf
    assert length / 2 <= serial_rows(pair(x, y)).length <= 2 * length
    noise = rng.normal(size=(2000, 4))
    noise[400:600] = np.nan
    assert serial_rows(pair(noise, rng.normal(size=(2000, 4)))) is None


def test_long_files_are_read_in_stretches_and_followed_beyond_them(rng, monkeypatch):
    x, y = (np.repeat(rng.normal(size=(50, 4)), 1000, axis=0) + rng.normal(size=(50_000, 4)) for _ in range(2))
    monkeypatch.setattr("nearid.dependence.ROWS", 4096)
    assert 1000 <= serial_rows(pair(x, y)).length < 5000
    assert serial_rows(pair(rng.permutation(x), rng.permutation(y))) is None


def test_the_sentence_of_neighbours_says_what_is_done_and_how_to_overrule_it(rng):
    found = serial_rows(pair(series(rng, 1000, 4, 0.9), series(rng, 1000, 4, 0.9)))
    alert = found.alert(found.length)
    assert alert.code == "serial_rows" and "every fold needs a block" not in alert.message
    for part in ("left", "right", "blocks of", "--blocks COLUMN", "--blocks none"):
        assert part in alert.message


def test_blocks_that_are_shorter_than_they_should_be_are_named(rng):
    found = serial_rows(pair(series(rng, 1000, 4, 0.99), series(rng, 1000, 4, 0.99)))
    message = found.alert(found.length // 2).message
    assert f"should have {found.length} rows, twice that lag" in message and "still depend on each other" in message


@pytest.mark.parametrize("size", [5, 20])
@pytest.mark.parametrize("noise", [0.3, 0.5])
def test_shuffled_near_copies_are_found_with_their_number(rng, size, noise):
    for n, d in ((500, 8), (2000, 8), (1000, 32)):
        order = rng.permutation(n)
        x, y = (grouped(rng, n // size, size, d, noise)[order] for _ in range(2))
        found = clustered_rows(pair(x, y))
        assert size / 2 <= found.size <= 1.5 * size
        assert found.share > 0.1


def independent(rng, kind, n, d):
    if kind == "t3":
        return rng.standard_t(3, size=(n, d)), rng.standard_t(3, size=(n, d))
    if kind == "clusters":
        label = rng.integers(10, size=n)
        return tuple(3 * rng.normal(size=(10, d))[label] + rng.normal(size=(n, d)) for _ in range(2))
    x = rng.normal(size=(n, d))
    if kind == "linear":
        return x, x @ rng.normal(size=(d, d)) + 0.3 * rng.normal(size=(n, d))
    if kind == "encodings":
        u = rng.normal(size=(n, 3))
        return tuple(np.tanh(u @ rng.normal(size=(3, 4 * d))) @ rng.normal(size=(4 * d, d)) for _ in range(2))
    return x, rng.normal(size=(n, d))


@pytest.mark.parametrize("kind", ["gaussian", "t3", "clusters", "linear", "encodings"])
def test_independent_rows_have_no_near_copies(rng, kind):
    for n, d in ((1000, 2), (1000, 8), (1000, 40)):
        assert clustered_rows(pair(*independent(rng, kind, n, d))) is None


def test_near_copies_on_one_side_alone_do_not_count(rng):
    assert clustered_rows(pair(grouped(rng, 200, 5, 8, 0.2), rng.normal(size=(1000, 8)))) is None


def test_exact_copies_are_left_out(rng):
    x, y = (np.repeat(rng.normal(size=(300, 8)), 2, axis=0) for _ in range(2))
    assert clustered_rows(pair(x, y)) is None


def test_the_sentence_of_near_copies_says_how_to_overrule_it(rng):
    alert = clustered_rows(pair(grouped(rng, 200, 5, 8, 0.2), grouped(rng, 200, 5, 8, 0.2))).alert
    assert alert.code == "clustered_rows"
    for part in ("about 5", "independent rows", "--blocks COLUMN", "--blocks none"):
        assert part in alert.message


def test_recordings_have_lengths_and_pictures_in_no_order_have_none(real_data):
    silero = np.load(real_data / "ensembles" / "silero_vad.npz")
    assert 30 <= serial_rows(pair(silero["h_5.1.2"], silero["h_6.0.0"])).length <= 300
    cebra = np.load(real_data / "ensembles" / "cebra_hippocampus.npz")
    assert 40 <= serial_rows(pair(cebra["e022"], cebra["e031"])).length <= 400
    images = np.load(real_data / "ensembles" / "imagenet_factors.npz")
    faces = pair(images["faces_lite0"], images["faces_lite1"])
    assert serial_rows(faces) is None
    assert clustered_rows(faces) is None


def test_rows_so_wide_that_few_are_compared(rng, monkeypatch):
    """Fewer rows than a stretch has: none was left, and the search ended in an IndexError."""
    monkeypatch.setattr("nearid.dependence.PRODUCTS", 100)
    assert clustered_rows(pair(rng.normal(size=(60, 4)), rng.normal(size=(60, 4)))) is None


def test_blocks_that_are_pieces_of_a_series_run_on_into_each_other(rng):
    """The rows of five texts are as alike within a text as those of a slow series, but end with the text."""
    codes = np.repeat(np.arange(5), 100)
    texts = [np.repeat(rng.normal(size=(5, 8)), 100, axis=0) + 0.5 * rng.normal(size=(500, 8)) for _ in range(2)]
    walks = [np.cumsum(rng.normal(size=(500, 8)), axis=0) for _ in range(2)]
    assert blocks_run_on(pair(*walks), codes)
    assert not blocks_run_on(pair(*texts), codes)
    # One side that starts anew suffices, and units do not matter.
    assert not blocks_run_on(pair(walks[0], texts[1]), codes)
    assert blocks_run_on(pair(*(1e-200 * walk * 10.0 ** np.arange(8) for walk in walks)), codes)
    # Rows that lagged features leave without a value at the start of a block hide nothing.
    for walk in walks:
        walk[::100] = np.nan
    assert blocks_run_on(pair(*walks), codes)
    # Nothing can be said of one border, and constant rows are near to all others.
    assert not blocks_run_on(pair(*walks), np.repeat([0, 1], 250))
    assert not blocks_run_on(pair(np.zeros((500, 2)), walks[1]), codes)


def test_few_blocks_of_one_column_do_not_run_on_by_chance(rng):
    """Without a level 12 of 100 such pairs were taken for pieces of a series."""
    codes, wrong = np.repeat(np.arange(5), 100), 0
    for _ in range(60):
        x = np.vstack([series(rng, 100, 1, 0.98) for _ in range(5)])
        wrong += blocks_run_on(pair(x, 2 * x + 1), codes)
    assert wrong <= 10


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_of_rows_are_those_of_their_differences(rng, dtype):
    # Rows of one side hold a value that is not finite, and stand at the mean of the others of their chunk.
    x, y = (rng.normal(size=(300, 5)).astype(dtype) + dtype(100) for _ in "xy")
    x[20] = np.nan
    found = np.hstack(list(dependence._distances(pair_rows(open_rows(x), open_rows(y)), 0)))
    queries = np.sort(np.random.default_rng(0).choice(np.arange(300), len(found), replace=False))
    x[20] = np.delete(x, 20, axis=0).astype(float).mean(axis=0)
    each = [np.linalg.norm(z[queries][:, None].astype(float) - z.astype(float), axis=2) for z in (x, y)]
    wanted = np.maximum(*(own / np.median(own) for own in each))
    apart = (wanted > 0) & (queries != 20)[:, None]
    np.testing.assert_allclose(found[apart], wanted[apart], rtol=0.02)
    assert np.isinf(found[wanted == 0]).all()


@pytest.mark.parametrize("width", [5, 40, 400])
def test_nearest_are_those_of_all_distances(rng, width):
    distances = rng.exponential(size=(7, width))
    distances[:, 3] = np.inf
    found = dependence._nearest(iter(np.array_split(distances, 39, axis=1)), 20)
    np.testing.assert_array_equal(found, np.sort(distances, axis=1)[:, :20])

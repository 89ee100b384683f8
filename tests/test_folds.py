"""Folds: held-out rows, blocks of rows, chance orders, passes, and rows that repeat others."""

import numpy as np
import pytest

import nearid.engines.local as local
import nearid.folds as folds
from nearid import compare
from nearid.arrays import open_rows, pair_rows
from nearid.base.errors import InputError
from nearid.folds import (
    Blocks,
    assign,
    fold_moments,
    pair_traits,
    refuse_small_folds,
    reordered,
    repeated_rows,
    row_moments,
)
from nearid.moments import Moments, PairMoments


def pair(x, y):
    return pair_rows(open_rows(x, name="left"), open_rows(y, name="right"))


def test_blocks_say_why_chance_cannot_be_measured_and_what_to_do():
    codes = np.arange(20) // 4
    assert Blocks(codes).unmeasured == ("", "")
    for serial, why, advice in (
        (True, "Rows depend on their neighbours", "--blocks COLUMN"),
        (False, "Blocks of rows", "shuffle"),
    ):
        found = Blocks(codes, serial=serial, slow=True).unmeasured
        assert found[0].startswith(why) and advice in found[1]


def test_assignment_is_balanced_and_seeded():
    a = assign(103, 5, 7)
    assert set(np.bincount(a)) == {20, 21}
    np.testing.assert_array_equal(a, assign(103, 5, 7))
    assert not np.array_equal(a, assign(103, 5, 8))


@pytest.mark.parametrize("block_bytes", [1, 16 << 20])
def test_fold_moments_match_each_folds_own_rows(rng, monkeypatch, block_bytes):
    monkeypatch.setattr(local, "BLOCK_BYTES", block_bytes)
    x, y = rng.normal(size=(1000, 4)) + 9, rng.normal(size=(1000, 3))
    fold = assign(1000, 3, 0)
    parts = fold_moments(pair(x, y), fold, 3)
    for k in range(3):
        train, test = parts.split(k)
        for found, rows in ((train, fold != k), (test, fold == k)):
            expected = PairMoments.of(x[rows], y[rows])
            assert found.n == expected.n
            for block in ("mean_x", "mean_y", "xx", "xy", "yy"):
                np.testing.assert_allclose(getattr(found, block), getattr(expected, block), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("block_bytes", [1, 16 << 20])
@pytest.mark.parametrize("offset", [9, 1e6])
def test_few_rows_are_kept_beside_their_moments(rng, monkeypatch, offset, block_bytes):
    monkeypatch.setattr(local, "BLOCK_BYTES", block_bytes)
    x, y = rng.normal(size=(700, 400)) + offset, rng.normal(size=(700, 3))
    x[5, 3], y[:, 1] = np.nan, offset
    fold = assign(700, 3, 0)
    parts = fold_moments(pair(x, y), fold, 3, drop_nonfinite=True)
    good = np.arange(700) != 5
    centre = np.hstack([x, y])[good & (fold != 1)].mean(axis=0)
    np.testing.assert_allclose(parts.mean_of([0, 2]), centre, rtol=1e-12)
    for found, side in zip(parts.rows_of([2, 1], centre), (x - centre[:400], y - centre[400:]), strict=True):
        np.testing.assert_allclose(found, np.vstack([side[good & (fold == k)] for k in (2, 1)]), atol=1e-8)
    for part in parts.parts:
        assert not part.rows[:, 401].any()
        np.testing.assert_allclose(part.rows.T @ part.rows, part.scatter, atol=1e-8 * offset)


def test_many_rows_are_not_kept(rng):
    many, one = rng.normal(size=(80, 40)), rng.normal(size=(80, 3))
    assert all(part.rows is None for part in fold_moments(pair(many, one), assign(80, 3, 0), 3).parts)
    few = fold_moments(pair(many[:79], one[:79]), assign(79, 3, 0), 3).parts
    assert [part.rows.shape for part in few] == [(part.n, 43) for part in few]


@pytest.mark.parametrize(("dtype", "error"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_moments_of_two_wide_sides_are_those_of_each_folds_own_rows(rng, dtype, error):
    # No width is a multiple of the tiles of the mirrored half; a row with NaN is dropped, and rows are off centre.
    x, y = (rng.normal(size=(1500, width)).astype(dtype) + dtype(5) for width in (130, 200))
    y += x[:, :1]
    x[7, 3] = np.nan
    fold = assign(1500, 3, 0)
    found = fold_moments(pair(np.asfortranarray(x), y), fold, 3, drop_nonfinite=True)
    assert not found.kept[7] and found.kept.sum() == 1499
    for k, part in enumerate(found.parts):
        rows = np.hstack([x, y]).astype(float)[(fold == k) & found.kept]
        centred = rows - rows.mean(axis=0)
        np.testing.assert_allclose(part.mean, rows.mean(axis=0), rtol=error)
        np.testing.assert_allclose(part.scatter, centred.T @ centred, rtol=0, atol=error * len(rows))


def test_the_result_is_the_same_bytes_whatever_the_threads(rng, monkeypatch):
    monkeypatch.setattr(local, "BLOCK_BYTES", 1)
    x, y = rng.normal(size=(3000, 4)), rng.normal(size=(3000, 4))
    found = []
    for cores in (1, 2, 3):
        monkeypatch.setattr(local, "cores", lambda cores=cores: cores)
        found.append(fold_moments(pair(x, y), assign(3000, 5, 0), 5).all.xy.tobytes())
    assert len(set(found)) == 1


def test_moments_of_a_part_of_the_rows_ignore_the_others(rng):
    x = rng.normal(size=(1000, 4)) + 9
    only = rng.random(1000) < 0.5
    x[np.flatnonzero(~only)[3]] = np.nan
    found, expected = row_moments(open_rows(x), only=only)[0], Moments.of(x[only])
    assert found.n == expected.n
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-12)
    np.testing.assert_allclose(found.scatter, expected.scatter, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_first_bad_value_is_named(rng, bad):
    x, y = rng.normal(size=(700, 3)), rng.normal(size=(700, 2))
    y[411, 1] = y[600, 0] = bad
    with pytest.raises(InputError, match=rf"right has {bad} at row 411, column 1 .*drop-nonfinite"):
        fold_moments(pair(x, y), assign(700, 5, 0), 5)


def test_a_bad_value_is_named_by_its_own_row_when_paired_by_id(rng):
    x, y = rng.normal(size=(20, 2)), rng.normal(size=(20, 2))
    y[3, 1] = np.nan
    order = rng.permutation(20)
    joined = pair_rows(open_rows(x, ids=np.arange(20)), open_rows(y, ids=order, name="right"))
    with pytest.raises(InputError, match="right has nan at row 3, column 1"):
        fold_moments(joined, assign(20, 2, 0), 2)


def test_bad_rows_are_dropped_in_pairs(rng):
    x, y = rng.normal(size=(700, 3)), rng.normal(size=(700, 2))
    x[5, 0], y[6, 1] = np.nan, np.inf
    parts = fold_moments(pair(x, y), assign(700, 5, 0), 5, drop_nonfinite=True)
    good = np.delete(np.arange(700), [5, 6])
    np.testing.assert_array_equal(np.flatnonzero(parts.kept), good)
    np.testing.assert_allclose(parts.all.xy, PairMoments.of(x[good], y[good]).xy, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("unit", [1e200, 1e100, 1e-100])
def test_values_whose_powers_leave_float64_are_refused(rng, unit):
    with pytest.raises(InputError, match="of right leave the range of float64"):
        fold_moments(pair(rng.normal(size=(50, 2)), rng.normal(size=(50, 2)) * unit), assign(50, 2, 0), 2)


def test_a_shift_far_from_the_rows_is_noticed(rng):
    # The rows that the shift is taken from are all dropped, so the first sums are about 0.
    x = rng.normal(size=(5000, 3)) + 1e9
    y = x @ rng.normal(size=(3, 3))
    sampled = np.unique(np.linspace(0, 4999, 256).astype(int))
    x[sampled] = np.nan
    parts = fold_moments(pair(x, y), assign(5000, 5, 0), 5, drop_nonfinite=True)
    good = np.delete(np.arange(5000), sampled)
    known = PairMoments.of(x[good], y[good]).xx
    np.testing.assert_allclose(parts.all.xx, known, rtol=0, atol=1e-8 * np.diag(known).min())


@pytest.mark.parametrize(("offset", "passes"), [(0.0, 1), (100.0, 1), (1e4, 2), (1e7, 2)])
def test_a_second_pass_is_taken_where_the_first_point_is_far_from_the_mean(rng, monkeypatch, offset, passes):
    """The rows that the point is taken from are unlike the others: sums about it lose digits, and only then."""
    x = 30 * (rng.normal(size=(5000, 3)) + offset)
    x[np.unique(np.linspace(0, 4999, 256).astype(int))] = np.nan
    taken, gather = [], folds._gather
    monkeypatch.setattr(folds, "_gather", lambda *given: taken.append(given) or gather(*given))
    found = fold_moments(pair(x, x), assign(5000, 5, 0), 5, drop_nonfinite=True).all
    assert len(taken) == passes
    good = x[np.isfinite(x).all(axis=1)]
    centred = good - good.mean(axis=0)
    np.testing.assert_allclose(found.xx, centred.T @ centred, rtol=0, atol=1e-9 * np.sum(centred**2))


def test_rows_about_a_common_offset_take_one_pass(rng, monkeypatch):
    taken, gather = [], folds._gather
    monkeypatch.setattr(folds, "_gather", lambda *given: taken.append(given) or gather(*given))
    x = rng.normal(size=(2000, 3)) + np.array([1e6, -1e6, 0])
    fold_moments(pair(x, x), assign(2000, 5, 0), 5)
    assert len(taken) == 1


@pytest.mark.parametrize("drift", [1e3, 1e8])
def test_sorted_rows_lose_no_digits(rng, drift):
    x = np.sort(rng.normal(size=(5000, 2)), axis=0) + np.linspace(0, drift, 5000)[:, None]
    found, centred = fold_moments(pair(x, x), assign(5000, 5, 0), 5).all.xx, x - x.mean(axis=0)
    np.testing.assert_allclose(found, centred.T @ centred, rtol=1e-9)


@pytest.mark.parametrize(("n", "folds"), [(100, 0), (100, 256), (100, 51), (1, 1)])
def test_impossible_folds_are_refused(n, folds):
    with pytest.raises(InputError, match="folds"):
        assign(n, folds, 0)


def test_values_that_vanish_when_squared_are_not_called_constant(rng):
    with pytest.raises(InputError, match="leave the range"):
        fold_moments(pair(rng.normal(size=(50, 2)) * 1e-200, rng.normal(size=(50, 2))), assign(50, 2, 0), 2)


def test_more_rows_than_memory_are_refused_before_anything_is_allocated():
    with pytest.raises(InputError, match=r"1000000000000 rows needs 8 TB of memory"):
        assign(10**12, 5, 0)


def test_more_columns_than_memory_are_refused_by_name(rng, monkeypatch):
    monkeypatch.setattr("nearid.base.limits.available_memory", lambda: 10_000)
    rows = open_rows(rng.normal(size=(40, 10)), name="wide.npy")
    with pytest.raises(InputError, match=r"wide.npy \(20 columns\) needs .* principal components"):
        fold_moments(pair_rows(rows, open_rows(rng.normal(size=(40, 10)), name="wide.npy")), assign(40, 5, 0), 5)


def test_infinities_of_both_signs_are_named_without_a_warning(rng):
    x = rng.normal(size=(40, 2))
    x[3, 0], x[4, 0] = np.inf, -np.inf
    with np.errstate(all="raise"), pytest.raises(InputError, match="inf at row 3, column 0"):
        fold_moments(pair_rows(open_rows(x), open_rows(x)), np.zeros(40, dtype=np.uint8), 1)


@pytest.mark.parametrize("size", [1.0, 1e-308, 1e-310, 5e-324, 1e300])
def test_rows_of_any_size_have_traits_of_their_own(size, rng):
    """Denormal columns overflowed where their spread was divided by."""
    x = np.round(rng.normal(size=(200, 3)), 2) * size
    with np.errstate(all="raise", under="ignore"):
        found = pair_traits(x, x)
    assert np.isfinite(found).all()
    copies = pair_traits(np.vstack([x, x[:20]]), np.vstack([x, x[:20]]))
    if size != 5e-324:
        assert not repeated_rows(found, len(found)) and repeated_rows(copies, len(copies))


def test_blocks_are_whole_balanced_and_seeded(rng):
    blocks = rng.permutation(np.repeat(np.arange(60), rng.integers(1, 30, 60)))
    fold = assign(len(blocks), 5, 0, blocks)
    assert all(len(set(fold[blocks == b])) == 1 for b in range(60))
    counts = np.bincount(fold, minlength=5)
    assert counts.max() - counts.min() <= np.bincount(blocks).max()
    np.testing.assert_array_equal(fold, assign(len(blocks), 5, 0, blocks))
    assert not np.array_equal(fold, assign(len(blocks), 5, 1, blocks))


def test_small_folds_are_refused_with_their_cause():
    refuse_small_folds([2, 3], blocks=True)
    with pytest.raises(InputError, match="Only 4 rows are left without NaN or Inf, too few for 2 folds"):
        refuse_small_folds([1, 3], blocks=False)
    with pytest.raises(InputError, match="2 of the 4 rows in use: the blocks"):
        refuse_small_folds([1, 3], blocks=True)
    with pytest.raises(InputError, match="One block of rows is too few for 5 folds"):
        assign(20, 5, 0, np.zeros(20, int))


def test_a_few_large_blocks_do_not_leave_a_fold_empty():
    blocks = np.repeat(np.arange(7), [500, 400, 1, 1, 1, 1, 1])
    counts = np.bincount(assign(len(blocks), 5, 3, blocks), minlength=5)
    assert counts.min() >= 1 and sorted(counts)[-2:] == [400, 500]


def test_blocks_of_one_size_fall_into_other_folds_with_another_seed():
    """Pairs of blocks share a fold about as often as chance has it."""
    blocks = np.repeat(np.arange(20), 10)
    together = [assign(200, 5, seed, blocks)[[0, 10]] for seed in range(300)]
    assert 0.08 < np.mean([a == b for a, b in together]) < 0.25


def test_fewer_blocks_than_folds_are_refused():
    with pytest.raises(InputError, match=r"4 blocks of rows are too few for 5 folds.*or smaller blocks"):
        assign(40, 5, 0, np.repeat(np.arange(4), 10))


@pytest.mark.parametrize(("n", "length", "count"), [(1000, 50, 20), (1003, 50, 20), (1000, 900, 5), (40, 1, 40)])
def test_a_sequence_is_cut_into_pieces_of_like_length(n, length, count):
    found = Blocks.cut(n, length, 5)
    sizes = np.bincount(found.codes)
    assert found.serial and found.count == len(sizes) == count
    assert sizes.max() - sizes.min() <= 1 and (np.diff(found.codes) >= 0).all()


def test_blocks_of_some_rows_are_numbered_anew():
    taken = Blocks(np.repeat([0, 1, 2, 3], 3), serial=True).take(np.array([1, 6, 7, 9]))
    np.testing.assert_array_equal(taken.codes, [0, 1, 1, 2])
    assert taken.serial and taken.count == 3


def test_a_sample_is_of_whole_blocks_where_these_are_small(rng):
    blocks = Blocks(rng.permutation(np.repeat(np.arange(500), rng.integers(1, 20, 500))))
    rows = np.flatnonzero(rng.random(len(blocks.codes)) < 0.9)
    found = blocks.sample(rows, 2500, rng)
    assert 2500 - 20 < len(found) <= 2500 and (np.diff(found) > 0).all()
    for code in np.unique(blocks.codes[found]):
        np.testing.assert_array_equal(found[blocks.codes[found] == code], rows[blocks.codes[rows] == code])
    assert not np.array_equal(found, blocks.sample(rows, 2500, rng))


def test_a_sample_of_large_blocks_has_the_first_rows_of_each(rng):
    """Two whole blocks would have one other order, and could lie in one fold."""
    blocks = Blocks(np.repeat(np.arange(10), 600))
    found = blocks.sample(np.arange(6000), 1000, rng)
    np.testing.assert_array_equal(np.bincount(blocks.codes[found]), 100)
    np.testing.assert_array_equal(found[:100], np.arange(100))


def test_independent_rows_are_permuted(rng):
    found = reordered(50, None, rng)
    np.testing.assert_array_equal(np.sort(found), np.arange(50))
    assert not np.array_equal(found, reordered(50, None, rng))


def test_a_sequence_is_turned_by_at_least_a_block(rng):
    blocks, lags = Blocks.cut(300, 30, 5), set()
    for _ in range(200):
        found = reordered(300, blocks, rng)
        lag = int(found[0])
        np.testing.assert_array_equal(found, (np.arange(300) + lag) % 300)
        assert 30 <= lag <= 270
        lags.add(lag)
    assert len(lags) > 50


@pytest.mark.parametrize("like", [True, False])
def test_blocks_change_places_and_keep_their_order(rng, like):
    sizes = np.full(25, 8) if like else np.sort(rng.integers(5, 60, 25))
    # Rows of a block need not be neighbours, and the numbers of blocks say nothing of their lengths.
    codes = rng.permutation(np.repeat(rng.permutation(25), sizes))
    own = np.bincount(codes)
    partners = set()
    for _ in range(50):
        found = reordered(len(codes), Blocks(codes), rng)
        for block in range(25):
            mine = found[codes == block]
            (partner,) = set(codes[mine])
            assert partner != block
            np.testing.assert_array_equal(mine, np.resize(np.flatnonzero(codes == partner), len(mine)))
            partners.add((block, partner))
        if like:
            np.testing.assert_array_equal(np.sort(found), np.arange(len(codes)))
    ranks = np.argsort(np.argsort(own, kind="stable"))
    apart = [abs(int(ranks[a]) - int(ranks[b])) for a, b in partners]
    assert len(partners) > 5 * 25
    # Windows of ten blocks of like length, the outermost joined to a rest of one block.
    assert like or max(apart) <= 2 * 10


@pytest.mark.parametrize("count", [7, 11, 12, 21])
def test_no_block_keeps_its_place(rng, count):
    codes = np.repeat(np.arange(count), np.arange(1, count + 1))
    for _ in range(30):
        found = reordered(len(codes), Blocks(codes), rng)
        assert (codes[found] != codes).all()


@pytest.mark.parametrize(("count", "orders"), [(2, 1), (3, 5), (4, 23), (5, 119)])
def test_few_blocks_have_every_order_but_their_own(rng, count, orders):
    codes = np.repeat(np.arange(count), 2)
    found = {tuple(codes[reordered(len(codes), Blocks(codes), rng)][::2]) for _ in range(60 * count)}
    assert tuple(range(count)) not in found and len(found) <= orders
    assert len(found) > 0.8 * orders


def test_copies_within_blocks_are_not_said_to_be_fitted_on():
    copies = np.repeat(np.arange(50.0), 2)
    (alone,), (blocked,) = repeated_rows(copies, len(copies)), repeated_rows(copies, len(copies), in_blocks=True)
    assert "are fitted on" in alone.message and "are fitted on" not in blocked.message
    assert repeated_rows(np.arange(100.0), 100, in_blocks=True) == ()


def test_a_sequence_with_few_independent_stretches_is_slow():
    assert not Blocks.cut(1000, 100, 5).slow and Blocks.cut(1000, 101, 5).slow
    assert Blocks.cut(1000, 400, 5).count == 5


@pytest.mark.parametrize("count", [2, 3, 5, 6, 9])
def test_no_block_keeps_its_place_where_none_may(count, rng):
    """A mean over orders that keep blocks would hold a part of the true pairing."""
    codes = np.repeat(np.arange(count), 4)
    for _ in range(20):
        order = reordered(len(codes), Blocks(codes), rng, all_move=True)
        assert not np.any(codes[order] == codes)


@pytest.fixture
def single_from(monkeypatch):
    """Let few rows of few columns be summed in float32."""
    monkeypatch.setattr(folds, "SINGLE_ROWS", 1000)
    monkeypatch.setattr(folds, "SINGLE_WIDTH", 2)


def _precisions(monkeypatch):
    """Precision of the products of every pass from now on."""
    used = []
    gather = folds._gather
    monkeypatch.setattr(folds, "_gather", lambda s, plan, *a: used.append(plan.dtype.name) or gather(s, plan, *a))
    return used


def _moments_of(x, y, single, **options):
    pair = pair_rows(open_rows(x), open_rows(y))
    if not single:
        # The same numbers, stored in float64.
        pair = pair_rows(open_rows(x.astype(np.float64)), open_rows(y.astype(np.float64)))
    return fold_moments(pair, assign(pair.n, 4, 0), 4, **options)


@pytest.mark.parametrize("offset", [0.0, 3.0, 1e3, 1e6])
def test_sums_in_float32_agree_with_those_in_float64(monkeypatch, single_from, rng, offset):
    x = (rng.normal(size=(6000, 5)) * [1, 10, 0.1, 1, 1] + offset).astype(np.float32)
    y = (x[:, :3] - np.float32(offset) + rng.normal(size=(6000, 3))).astype(np.float32)
    used = _precisions(monkeypatch)
    found, exact = (_moments_of(x, y, single) for single in (True, False))
    assert used == ["float32", "float64"]
    for mine, theirs in zip(found.parts, exact.parts, strict=True):
        size = np.sqrt(np.diag(theirs.scatter))
        assert mine.n == theirs.n
        np.testing.assert_allclose(
            mine.scatter / size[:, None] / size, theirs.scatter / size[:, None] / size, atol=1e-6
        )
        np.testing.assert_allclose((mine.mean - theirs.mean) * np.sqrt(mine.n) / size, 0, atol=1e-6)


def _degenerate(kind, rng):
    x = rng.normal(size=(4000, 4)).astype(np.float32)
    y = (x + rng.normal(size=x.shape)).astype(np.float32)
    if kind == "constant":
        x[:, 2] = 7
    elif kind == "copied column":
        x[:, 3] = x[:, 0]
    elif kind == "rank 1":
        x = np.outer(x[:, 0], [1, 2, 3, 4]).astype(np.float32)
    elif kind == "same run":
        y = x.copy()
    elif kind == "linear":
        y = x @ rng.normal(size=(4, 4)).astype(np.float32)
    elif kind == "large":
        x *= np.float32(1e25)
    elif kind == "small":
        x *= np.float32(1e-25)
    elif kind == "small in most rows":
        # None of the stretches that are looked at shows the few rows that decide.
        x[700:720] += np.float32(1e6)
    else:
        # Squares that float32 cannot hold, again outside of the stretches.
        x[700] *= np.float32(1e25)
    return x, y


@pytest.mark.parametrize(
    "kind",
    ["constant", "copied column", "rank 1", "same run", "linear", "large", "small", "small in most rows", "overflow"],
)
def test_degenerate_rows_are_summed_in_float64(monkeypatch, single_from, rng, kind):
    x, y = _degenerate(kind, rng)
    used = _precisions(monkeypatch)
    found, exact = (_moments_of(x, y, single) for single in (True, False))
    assert used[-2:] == ["float64", "float64"]
    for mine, theirs in zip(found.parts, exact.parts, strict=True):
        assert np.array_equal(mine.scatter, theirs.scatter) and np.array_equal(mine.mean, theirs.mean)


def test_rows_that_are_not_finite_are_found_in_float32(monkeypatch, single_from, rng):
    x, y = _degenerate("none", rng)
    x[700] = rng.normal(size=4)
    x[1234, 2] = np.nan
    used = _precisions(monkeypatch)
    with pytest.raises(InputError, match="row 1234, column 2"):
        _moments_of(x, y, True)
    found = _moments_of(x, y, True, drop_nonfinite=True)
    assert np.flatnonzero(~found.kept).tolist() == [1234] and sum(found.counts) == 3999
    assert set(used) == {"float32"}


def test_copies_of_rows_are_counted_alike_in_float32(single_from, rng):
    x = rng.normal(size=(4000, 4)).astype(np.float32)
    y = rng.normal(size=(4000, 4)).astype(np.float32)
    x[3000:3100], y[3000:3100] = x[:100], y[:100]
    assert len(np.unique(_moments_of(x, y, True).traits)) == 3900


@pytest.mark.parametrize("least", [1.0, 0.1])
def test_comparisons_from_sums_in_float32_agree_with_those_in_float64(monkeypatch, single_from, rng, least):
    """Errors and R2 agree to 1e-6, similarities to 1e-5, also near the limit of the guard."""
    x = rng.normal(size=(6000, 6))
    # Two columns are nearly the same.
    x[:, 1] = x[:, 0] + least * x[:, 1]
    x = (x + 5).astype(np.float32)
    y = (x @ np.linalg.qr(rng.normal(size=(6, 6)))[0] + least * rng.normal(size=(6000, 6))).astype(np.float32)
    used = _precisions(monkeypatch)
    found = compare(x, y, permutations=1)
    monkeypatch.setattr(folds, "SINGLE_ROWS", 10_000)
    exact = compare(x, y, permutations=1)
    assert used == ["float32", "float64"] and found.verdict.group == exact.verdict.group
    for name, group in exact.groups.items():
        assert found.groups[name].epsilon.value == pytest.approx(group.epsilon.value, rel=1e-6)
        assert found.groups[name].r2.value == pytest.approx(group.r2.value, abs=1e-6)
    for name in ("cca", "svcca", "cka"):
        mine, theirs = (getattr(result.similarity, name).value for result in (found, exact))
        assert mine == pytest.approx(theirs, abs=1e-5)
    np.testing.assert_allclose(found.similarity.correlations, exact.similarity.correlations, atol=5e-5)


def test_blocks_in_float32_have_twice_the_rows(monkeypatch, single_from, rng):
    monkeypatch.setattr(local, "BLOCK_BYTES", 8 * 8 * 300)
    read, sums = [], folds._sums
    monkeypatch.setattr(folds, "_sums", lambda block, *rest: (read.append(block), sums(block, *rest))[1])
    x, y = (rng.normal(size=(6000, width)).astype(np.float32) for width in (5, 3))
    for single, blocks in ((True, 10), (False, 20)):
        steps = []
        read.clear()
        found = _moments_of(x, y, single, tick=lambda steps=steps: steps.append(1))
        # The progress comes to its end in both.
        assert len(read) == blocks and len(steps) == 20
        for k, part in enumerate(found.parts):
            rows = np.hstack([x, y]).astype(np.float64)[assign(6000, 4, 0) == k]
            expected = Moments.of(rows).scatter
            np.testing.assert_allclose(part.scatter, expected, atol=1e-6 * expected.max() if single else 1e-9)

"""A few rows far out must not decide what is said of all others."""

import json

import numpy as np
import pytest

from nearid import compare
from nearid.arrays import open_rows, pair_rows
from nearid.questions.compare.outlying import far_out, held_by, without

ROWS = [3, 500, 900]


@pytest.fixture(scope="module")
def runs():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 4))
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    return x, x @ turn + 0.05 * rng.normal(size=(1000, 4))


def enlarged(x):
    x = x.copy()
    x[ROWS] *= 200
    return x


@pytest.mark.parametrize("side", ["source", "target"])
def test_damaged_rows_of_one_side_do_not_hide_that_runs_are_the_same(runs, side):
    x, y = runs
    found = compare(enlarged(x), y, permutations=19) if side == "source" else compare(x, enlarged(y), permutations=19)
    kept = np.delete(np.arange(1000), ROWS)
    clean = compare(x[kept], y[kept], permutations=19)
    # R2 of all rows is that of three, and the verdict is that of the others.
    assert found.groups["rigid"].r2.value < 0.1 and found.outlying_rows == tuple(ROWS)
    assert (found.verdict.group, found.verdict.strength) == ("rigid", "nearly exactly")
    assert found.bulk.groups["rigid"].r2.value == pytest.approx(clean.groups["rigid"].r2.value, rel=1e-3)
    assert found.view.headline.startswith("Without 3 outlying rows: the same representation, nearly exactly")
    assert found.verdict.reason.startswith("Rows 3, 500, 900 of ") and "Look for damaged values" in found.view.reason
    assert [table.title.endswith("without 3 outlying rows") for table in found.view.tables[:2]] == [True, False]
    # Everything that is shown beside the table of all rows is of the other rows.
    assert "clustered_rows" not in {alert.code for alert in found.alerts}
    assert found.view.tables[1].title.endswith("all rows") and found.view.tables[2].rows[0].cells[1].value > 0.99
    assert {alert.code for alert in found.alerts} == {"outlying_source" if side == "source" else "heavy_tails"}
    written = json.loads(json.dumps(found.to_dict()))
    assert written["outlying_rows"] == ROWS and written["bulk"]["n"] == 997 and written["n"] == 1000


def test_rows_that_are_enlarged_in_both_runs_do_not_make_unrelated_runs_the_same(rng):
    # The same 60 rows are far out in both: every fold has some of them to fit and to judge.
    x, y = rng.normal(size=(8000, 3)), rng.normal(size=(8000, 3))
    x[:60] *= 100
    y[:60] = x[:60]
    found = compare(x, y, permutations=19)
    assert found.groups["permutation"].r2.value > 0.9 and len(found.outlying_rows) > 50
    assert found.verdict.group == "none" and found.view.headline.startswith("Without")


def test_where_nothing_changes_all_rows_are_what_is_shown(runs):
    x, y = runs
    # Rows that are far out in the same way on both sides, beside errors that are as large as before.
    turn = np.linalg.lstsq(x, y)[0]
    far = enlarged(x)
    for first, second in ((x, y), (far, far @ turn + y - x @ turn)):
        found = compare(first, second, groups="rigid", permutations=19)
        assert found.bulk is None and found.outlying_rows == () and found.verdict.group == "rigid"
        assert found.to_dict()["bulk"] is None


def test_an_interval_that_one_row_decides_is_absent_and_the_note_says_why(runs):
    x, y = runs
    found = compare(enlarged(x), y, permutations=19)
    for group in found.groups.values():
        assert group.r2.has_interval != bool(group.no_interval)
        if group.r2.has_interval:
            assert group.epsilon.high <= 1000 * group.epsilon.low and group.r2.low > -1e4
    assert not found.groups["permutation"].r2.has_interval
    assert "permutation has no interval: one or two rows" in found.view.tables[1].note


def test_rows_far_out_are_found_among_those_in_use():
    radii = np.r_[np.ones(300), 50.0, np.nan]
    assert far_out(radii).tolist() == [300] and held_by(radii, far_out(radii)) == pytest.approx(2500 / 2800)
    # Of few rows a quantile says little.
    assert len(far_out(np.r_[np.ones(100), 50.0])) == 0 and held_by(np.zeros(5), np.array([0])) == 0


def test_pairs_without_rows_keep_their_partners_and_blocks(rng):
    x = open_rows(rng.normal(size=(6, 2)), ids=np.array(list("abcdef")))
    y = open_rows(rng.normal(size=(5, 2)), ids=np.array(list("fbdae")))
    pair = pair_rows(x, y)
    rest = without(pair, np.array([1, 2]))
    np.testing.assert_array_equal(rest.read(0, 3)[0], pair.take(np.array([0, 3, 4]))[0])
    np.testing.assert_array_equal(rest.read(0, 3)[1], pair.take(np.array([0, 3, 4]))[1])
    assert rest.notes == pair.notes


def test_rows_that_larger_ones_hide_are_left_out_too(rng):
    x = rng.normal(size=(1200, 5))
    y = x @ np.linalg.qr(rng.normal(size=(5, 5)))[0] + 0.05 * rng.normal(size=(1200, 5))
    x[[10, 20]] *= 1e6
    x[[30, 40, 50]] *= 300
    comparison = compare(x, y, permutations=9)
    assert comparison.outlying_rows == (10, 20, 30, 40, 50)
    assert comparison.verdict.group == "rigid" and comparison.judged.n == 1195
    assert comparison.view.headline.startswith("Without 5 outlying rows")


def test_rows_are_named_by_their_places_in_the_side_that_they_decide(rng):
    x = rng.normal(size=(600, 4))
    y = x @ np.linalg.qr(rng.normal(size=(4, 4)))[0] + 0.05 * rng.normal(size=(600, 4))
    y[[3, 5]] *= 200
    order = rng.permutation(600)
    ids = [np.arange(600), np.arange(600)[order]]
    comparison = compare(x, y[order], ids=ids, names=["A", "B"], permutations=9)
    there = sorted(np.flatnonzero(np.isin(order, [3, 5])).tolist())
    told = comparison.verdict.reason.partition(" of B hold")[0].removeprefix("Rows ").split(", ")
    assert sorted(map(int, told)) == there and comparison.outlying_rows == (3, 5)


def test_several_runs_show_the_figures_of_the_rows_that_were_judged(rng):
    x = rng.normal(size=(600, 4))
    runs = [x @ np.linalg.qr(rng.normal(size=(4, 4)))[0] + 0.01 * rng.normal(size=(600, 4)) for _ in range(3)]
    runs[1][7] *= 1000
    table = compare(*runs, permutations=9).view.tables[0]
    at = [column.title for column in table.columns].index("best R2")
    assert min(float(row.cells[at]) for row in table.rows) > 0.99

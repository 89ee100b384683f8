from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from nearid.arrays import Rows, open_rows, pair_rows
from nearid.base.errors import InputError


def rows(ids: object = None, n: int | None = None, name: str = "array") -> Rows:
    count = len(ids) if n is None else n  # type: ignore[arg-type]
    return open_rows(np.arange(2.0 * count).reshape(count, 2), ids=ids, name=name)


def test_by_position() -> None:
    pair = pair_rows(rows(n=5), rows(n=5))
    assert pair.n == 5 and pair.x_index is None and pair.y_index is None and pair.notes == ()
    x, y = pair.read(1, 3)
    np.testing.assert_array_equal(x, y)
    with pytest.raises(InputError, match=r"a has 5 rows and b has 4, .*Give ids"):
        pair_rows(rows(n=5, name="a"), rows(n=4, name="b"))


def test_a_transposed_side_is_recognised() -> None:
    x, y = (open_rows(np.zeros(shape), name=name) for name, shape in (("a", (9, 2)), ("b", (2, 9))))
    for pair in ((x, y), (y, x)):
        with pytest.raises(
            InputError, match="b has as many columns as the other has rows: transpose it if its columns are the samples"
        ):
            pair_rows(*pair)


def test_ids_on_one_side() -> None:
    for x, y in [(rows(["p", "q"], name="a"), rows(n=2, name="b")), (rows(n=2, name="b"), rows([1, 2], name="a"))]:
        assert pair_rows(x, y).notes == ("The rows are paired by position, because a has ids but b has none.",)


@given(x=st.lists(st.integers(0, 30), min_size=2, unique=True), y=st.lists(st.integers(0, 30), min_size=2, unique=True))
@pytest.mark.parametrize("kind", [int, str])
def test_by_id_is_an_inner_join_in_the_order_of_x(x: list[int], y: list[int], kind: type) -> None:
    common = [value for value in x if value in y]
    left, right = rows([kind(v) for v in x]), rows([kind(v) for v in y])
    if len(common) < 2:
        with pytest.raises(InputError, match=r"No id|share only the id"):
            pair_rows(left, right)
        return
    pair = pair_rows(left, right)
    assert pair.n == len(common)
    a, b = pair.read(0, pair.n)
    np.testing.assert_array_equal(a[:, 0] / 2, [x.index(value) for value in common])
    np.testing.assert_array_equal(b[:, 0] / 2, [y.index(value) for value in common])
    some = np.array([pair.n - 1, 0])
    np.testing.assert_array_equal(pair.take(some)[0], a[some])
    np.testing.assert_array_equal(pair.take(some)[1], b[some])
    np.testing.assert_array_equal(pair.read_y(1, pair.n), b[1:])
    np.testing.assert_array_equal(pair.take_y(some), b[some])


def test_rows_without_partner_are_counted() -> None:
    pair = pair_rows(rows([1, 2, 3, 4], name="a"), rows([9, 4, 3, 8, 7], name="b"))
    assert pair.notes == (
        "2 of the 4 rows of a are left out: the other side has no row with the same id.",
        "3 of the 5 rows of b are left out: the other side has no row with the same id.",
    )
    np.testing.assert_array_equal(pair.x_index, [2, 3])
    np.testing.assert_array_equal(pair.y_index, [2, 1])
    with pytest.raises(IndexError):
        pair.read(0, 3)
    with pytest.raises(IndexError):
        pair.read(-1, 1)


def test_equal_ids_need_no_index() -> None:
    pair = pair_rows(rows([3, 1, 2]), rows([3, 1, 2]))
    assert pair.x_index is None and pair.y_index is None


def test_neighbours_are_read_without_take(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = rows([2, 3, 4]), rows([0, 1, 2, 3, 4, 5])
    pair = pair_rows(x, y)
    monkeypatch.setattr(y, "take", None)
    np.testing.assert_array_equal(pair.read(0, 3)[1], y.read(2, 5))


def test_strings_against_integers() -> None:
    pair = pair_rows(rows(["2", "10", "x"], name="a"), rows([10, 2], name="b"))
    np.testing.assert_array_equal(pair.y_index, [1, 0])
    assert pair.notes[0] == "The ids of a are strings and the ids of b are integers, so they are compared as strings."


def test_large_unsigned_ids_are_not_confused() -> None:
    x = rows(np.array([2**53, 2**53 + 1, 2**64 - 1], "u8"))
    pair = pair_rows(x, rows([2**53 + 1, 2**53]))
    np.testing.assert_array_equal(pair.x_index, [0, 1])
    np.testing.assert_array_equal(pair.y_index, [1, 0])


@pytest.mark.parametrize("side", [0, 1])
def test_duplicates_are_refused(side: int) -> None:
    sides = [rows(["p", "q", "r"], name="a"), rows(["p", "q", "r"], name="b")]
    sides[side] = rows(["q", "p", "q"], name="twice")
    with pytest.raises(InputError, match=r"twice has the id 'q' more than once \(rows 0 and 2\)"):
        pair_rows(*sides)


def test_nothing_or_little_in_common() -> None:
    with pytest.raises(InputError, match=r"No id of a \(such as 'p'\) is an id of b \(such as 7\)|such as '7'"):
        pair_rows(rows(["p", "q"], name="a"), rows([7, 8], name="b"))
    with pytest.raises(InputError, match=r"share only the id 2, but at least 2 rows"):
        pair_rows(rows([1, 2]), rows([2, 3]))


def test_notes_of_both_sides_come_first(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,t\n1,u\n2,v\n")
    x = open_rows(tmp_path / "x.csv")
    assert pair_rows(x, rows([1, 2])).notes[0] == x.notes[0]


def by_index(index: object, order: object = None, name: str = "table") -> Rows:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"at": np.arange(float(len(index)))}, index=index)  # type: ignore[arg-type]
    return open_rows(frame if order is None else frame.iloc[order], name=name)


def kinds_of_index() -> list[object]:
    pd = pytest.importorskip("pandas")
    dates = pd.date_range("2020-01-01", periods=6)
    return [
        pytest.param(index, id=name)
        for name, index in {
            "range": pd.RangeIndex(6),
            "range with a start": pd.RangeIndex(3, 9),
            "range with a step": pd.RangeIndex(0, 12, 2),
            "integers": pd.Index([3, 1, 2, 0, 5, 4]),
            "nullable integers": pd.Index(range(6), dtype="Int64"),
            "large unsigned": pd.Index(np.arange(6, dtype="u8") + 2**63),
            "floats": pd.Index([0.5, 1, 2, 3, 4, 5]),
            "floats with NaN": pd.Index([0, 1, np.nan, 3, 4, 5]),
            "strings": pd.Index(list("uvwxyz")),
            "an empty string": pd.Index(["", *"vwxyz"]),
            "mixed": pd.Index([0, "1", 2.5, None, ("a",), 5]),
            "dates": dates,
            "dates of a zone": dates.tz_localize("Europe/Zurich"),
            "periods": pd.period_range("2020-01-01", periods=6, freq="D"),
            "two levels": pd.MultiIndex.from_product([[1, 2, 3], ["a", "b"]]),
            "categories": pd.CategoricalIndex(list("uvwxyz")),
            "categories of numbers": pd.CategoricalIndex([5, 4, 3, 2, 1, 0]),
            "intervals": pd.IntervalIndex.from_tuples([(i, i + 2) for i in range(6)]),
        }.items()
    ]


@pytest.mark.parametrize("index", kinds_of_index())
def test_frames_are_joined_on_an_index_of_any_kind(index: object) -> None:
    order = [3, 0, 5, 1, 4, 2]
    pair = pair_rows(by_index(index), by_index(index, order))
    x, y = pair.read(0, pair.n)
    assert pair.n == 6 and pair.notes == ()
    np.testing.assert_array_equal(x, y)
    same = pair_rows(by_index(index), by_index(index))
    assert same.x_index is None and same.y_index is None and same.notes == ()
    part = pair_rows(by_index(index, [0, 1, 2, 3]), by_index(index, [5, 4, 3, 2]))
    np.testing.assert_array_equal(part.read(0, part.n)[0], part.read(0, part.n)[1])
    assert (
        part.n == 2
        and part.notes[0] == "2 of the 4 rows of table are left out: the other side has no row with the same index."
    )
    with pytest.raises(InputError, match=r"No label of the index of a .* is in the index of b .*reset_index"):
        pair_rows(by_index(index, [0, 1, 2], "a"), by_index(index, [3, 4, 5], "b"))


def test_indexes_of_different_kinds_are_compared_by_value() -> None:
    pd = pytest.importorskip("pandas")
    dates = pd.date_range("2020-01-01", periods=4, tz="UTC")
    for one, two in [
        (pd.RangeIndex(4), [3.0, 2.0, 1.0, 0.0]),
        (pd.CategoricalIndex(list("wxyz")), list("zyxw")),
        (dates, dates[::-1].tz_convert("Asia/Tokyo")),
        (pd.Index(np.arange(4, dtype="u8") + 2**53), np.arange(4)[::-1] + 2**53),
    ]:
        np.testing.assert_array_equal(pair_rows(by_index(one), by_index(two)).y_index, [3, 2, 1, 0])
    pair = pair_rows(by_index(pd.RangeIndex(4), name="a"), by_index(list("3210"), name="b"))
    np.testing.assert_array_equal(pair.y_index, [3, 2, 1, 0])
    assert pair.notes == (
        "The index of b holds strings and the index of a holds integers, so the labels are compared as strings.",
    )
    levels = pd.MultiIndex.from_product([[0, 1], [0, 1]])
    for one, two in [(dates, dates.tz_localize(None)), (pd.RangeIndex(4), list("wxyz")), (levels, pd.RangeIndex(4))]:
        with pytest.raises(InputError, match="No label"):
            pair_rows(by_index(one), by_index(two))
    with pytest.raises(InputError, match="Only one label"):
        pair_rows(by_index([1, 2]), by_index([2, 3]))


def test_a_repeated_index_is_refused_unless_both_are_the_same() -> None:
    index = ["a", "a", "b", "c"]
    assert pair_rows(by_index(index), by_index(index)).notes == ()
    with pytest.raises(InputError, match="index of table has 'a' more than once and the indexes of table and table di"):
        pair_rows(by_index(index), by_index(index, [3, 2, 1, 0]))
    with pytest.raises(InputError, match="'a' more than once"):
        pair_rows(by_index(list("abcd")), by_index(index))


def test_a_frame_and_an_array_are_paired_by_position() -> None:
    pd = pytest.importorskip("pandas")
    array = rows(n=4, name="b")
    assert pair_rows(by_index(pd.RangeIndex(4)), array).notes == ()
    for index in (list("wxyz"), pd.RangeIndex(4, 8), [1, 0, 2, 3]):
        assert (
            pair_rows(by_index(index, name="a"), array)
            .notes[0]
            .startswith("The rows are paired by position, because a has ids but b has none")
        )
    for index in (pd.date_range("2020-01-01", periods=4), list("wwyz"), [0.0, 1.0, 2.0, 3.5]):
        told = ("The rows are paired by position, because a has an index but b has none.",)
        assert pair_rows(array, by_index(index, name="a")).notes == told


def test_ids_that_are_given_come_before_the_index() -> None:
    pd = pytest.importorskip("pandas")
    x = pd.DataFrame({"at": [0.0, 1.0, 2.0], "who": list("xyz")}, index=[2, 1, 0])
    y = pd.DataFrame({"at": [2.0, 1.0, 0.0], "who": list("zyx")}, index=[2, 1, 0])
    for left, right in [
        (open_rows(x, ids="who"), open_rows(y, ids="who")),
        (open_rows(x, ids=list("xyz")), open_rows(y, ids=list("zyx"))),
    ]:
        np.testing.assert_array_equal(pair_rows(left, right).y_index, [2, 1, 0])


def test_levels_pair_by_their_names() -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    plate, well = np.arange(6) // 3, np.arange(6) % 3
    x = pd.DataFrame({"a": np.arange(6.0)}, index=pd.MultiIndex.from_arrays([plate, well], names=["plate", "well"]))
    y = x.swaplevel().sample(frac=1, random_state=0)
    for other in (x.swaplevel(), y):
        pair = pair_rows(open_rows(x), open_rows(other))
        np.testing.assert_array_equal(*pair.read(0, 6))
    assert pair.n == 6

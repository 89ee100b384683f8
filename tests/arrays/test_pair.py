from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearid.arrays import Rows, open_rows, pair_rows
from nearid.errors import InputError


def rows(ids: object = None, n: int | None = None, name: str = "array") -> Rows:
    count = len(ids) if n is None else n  # type: ignore[arg-type]
    return open_rows(np.arange(2.0 * count).reshape(count, 2), ids=ids, name=name)


def test_by_position() -> None:
    pair = pair_rows(rows(n=5), rows(n=5))
    assert pair.n == 5 and pair.x_index is None and pair.y_index is None and pair.notes == ()
    x, y = pair.read(1, 3)
    np.testing.assert_array_equal(x, y)
    with pytest.raises(InputError, match=r"a has 5 rows and b has 4, .*Pass ids"):
        pair_rows(rows(n=5, name="a"), rows(n=4, name="b"))


def test_ids_on_one_side() -> None:
    for x, y in [(rows(["p", "q"], name="a"), rows(n=2, name="b")), (rows(n=2, name="b"), rows([1, 2], name="a"))]:
        assert pair_rows(x, y).notes == ("Only a has ids, b has none: the rows are paired by position.",)


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
        "2 of the 4 rows of a found no partner by id.",
        "3 of the 5 rows of b found no partner by id.",
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
    assert pair.notes[0] == "The ids of a are strings, those of b integers: compared as strings."


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

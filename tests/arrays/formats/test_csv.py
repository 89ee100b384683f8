import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nearid.arrays import open_rows
from nearid.arrays.formats import csv as delimited
from nearid.base import limits as memory
from nearid.base.errors import InputError


def write(folder: Path, text: str, name: str = "x.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_text_columns_are_ignored_with_a_note(tmp_path: Path) -> None:
    rows = open_rows(write(tmp_path, "a,who,b,when\n1,ann,2,2020-01-01\n3,7,4.5,2020-01-02\n"))
    np.testing.assert_array_equal(rows.read(0, 2), [[1, 2], [3, 4.5]])
    assert rows.notes[0].startswith(
        "Columns of x.csv that are not numeric are ignored: 'who' (which holds 'ann'), 'when'."
    )
    assert "pair by it: ids (--ids)" in rows.notes[0]


def test_a_spoiled_column_shows_what_spoiled_it(tmp_path: Path) -> None:
    rows = open_rows(write(tmp_path, "a,b\n1,2\n3,oops\n5,6\n"))
    assert rows.shape == (3, 1) and "'b' (which holds 'oops')" in rows.notes[0]


@pytest.mark.parametrize("first", ["", "Unnamed: 0"])
@pytest.mark.parametrize("index", [[0, 1, 2], [5, 9, 2]])
def test_an_index_of_pandas_is_dropped(tmp_path: Path, first: str, index: list[int]) -> None:
    lines = "".join(f"{i},{i / 2}\n" for i in index)
    rows = open_rows(write(tmp_path, f"{first},a\n{lines}"))
    np.testing.assert_array_equal(rows.read(0, 3), np.array(index)[:, None] / 2)
    assert "index written by pandas" in rows.notes[0]


def test_an_unnamed_column_of_measurements_is_kept(tmp_path: Path) -> None:
    assert open_rows(write(tmp_path, ",a\n0.5,1\n1.5,2\n")).shape == (2, 2)


def test_no_header(tmp_path: Path) -> None:
    rows = open_rows(write(tmp_path, "1.5,2\n3,4\n"))
    np.testing.assert_array_equal(rows.read(0, 2), [[1.5, 2], [3, 4]])
    assert rows.notes == ("The first line of x.csv holds numbers, so it is read as data, not as column names.",)


@pytest.mark.parametrize("text, n", [("0,1,2\n5,6,7\n8,9,9\n", 2), ("0,1\n.5,6\n8,9\n", 2), ("0,1\n5,6\n8,9\n", 3)])
def test_counting_header_of_pandas(tmp_path: Path, text: str, n: int) -> None:
    rows = open_rows(write(tmp_path, text))
    assert rows.shape[0] == n and "The first line" in rows.notes[0]


def test_missing_and_infinite_cells(tmp_path: Path) -> None:
    rows = open_rows(write(tmp_path, "a,b,c,d\n1,,inf,\n,2,-inf,\n"))
    np.testing.assert_array_equal(rows.read(0, 2), [[1, np.nan, np.inf, np.nan], [np.nan, 2, -np.inf, np.nan]])


def test_a_final_delimiter_makes_no_feature(tmp_path: Path) -> None:
    assert open_rows(write(tmp_path, "a,b,\n1,2,\n3,4,\n")).shape == (2, 2)


def test_windows_text_quotes_and_mark(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b'\xef\xbb\xbf"a","b c",t\r\n1,2,"x\r\ny, z"\r\n3,4,w\r\n')
    np.testing.assert_array_equal(open_rows(tmp_path / "x.csv", ids="t").read(0, 2), [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    "cells, expected",
    [(["7", "12"], [7, 12]), (["007", "012"], ["007", "012"]), (["a", "7"], ["a", "7"]), (["NA", "x"], ["NA", "x"])],
)
def test_ids(tmp_path: Path, cells: list[str], expected: list[object]) -> None:
    rows = open_rows(write(tmp_path, f"a,id\n1,{cells[0]}\n2,{cells[1]}\n"), ids="id")
    assert rows.shape == (2, 1) and rows.ids is not None and rows.ids.tolist() == expected and not rows.notes


def test_wide_lines(tmp_path: Path) -> None:
    d = 60_000
    text = ",".join(f"c{i}" for i in range(d)) + "\n" + (",".join(["0.12345678901234567"] * d) + "\n") * 2
    assert open_rows(write(tmp_path, text)).shape == (2, d)


@pytest.mark.parametrize(
    "text, message",
    [
        ("a,b\n1,2\n3\n", "same number of cells in every line: .*Expected 2 columns, got 1"),
        ("", "x.csv is empty"),
        ("a,b\n", "at least 2 rows"),
        ("a,b\nx,y\nz,w\n", "no numeric columns to use as features. Its columns: 'a', 'b'"),
    ],
)
def test_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_rows(write(tmp_path, text))


def test_refused_options(tmp_path: Path) -> None:
    path = write(tmp_path, "name,b,twice,twice\n1,2,3,4\n5,6,7,8\n")
    with pytest.raises(InputError, match=r"Did you mean 'name'"):
        open_rows(path, ids="names")
    with pytest.raises(InputError, match=r"2 columns named 'twice'"):
        open_rows(path, ids="twice")
    with pytest.raises(InputError, match=r"Leave the key out"):
        open_rows(path, key="b")
    with pytest.raises(InputError, match=r"id of row 1 of x.csv is ''"):
        open_rows(write(tmp_path, "id,b\n1,2\n,6\n"), ids="id")


def test_damaged_gzip_and_encoding(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n3,4\n" * 100)[:-20])
    with pytest.raises(InputError, match=r"x\.csv\.gz is not a whole gzip file: .*Write or copy it again"):
        open_rows(path)
    (tmp_path / "y.csv").write_bytes("größe,b\n1,2\n3,4\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"utf-8"):
        open_rows(tmp_path / "y.csv")


def test_a_gzip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 2_000_000))
    for module in (memory, delimited):
        monkeypatch.setattr(module, "available_memory", lambda: 10**6)
    with pytest.raises(InputError, match=r"of memory, but 1 MB are available. Save it as .parquet"):
        open_rows(path)


@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_short_cells_take_more_memory_than_their_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """pyarrow would end the process."""
    text, path = b"a,b\n" + b"1,2\n" * 100_000, tmp_path / f"x.{suffix}"
    path.write_bytes(gzip.compress(text) if suffix == "csv.gz" else text)
    for module in (memory, delimited):
        monkeypatch.setattr(module, "available_memory", lambda: 3 * len(text))
    with pytest.raises(InputError, match=r"needs 3\.2 MB of memory|needs 1\.\d+ MB of memory"):
        open_rows(path)
    for module in (memory, delimited):
        monkeypatch.setattr(module, "available_memory", lambda: 10 * len(text))
    assert open_rows(path).shape == (100_000, 2)


def test_integers_beyond_two_to_the_53_are_named(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,cell\n" + "".join(f"{i}.5,{2**60 + 1000 * i}\n" for i in range(5)))
    rows = open_rows(path)
    assert rows.shape == (5, 2) and any("'cell'" in note and "--ids cell" in note for note in rows.notes)


@pytest.mark.parametrize("gap", ["", "NA", "null", "nan"])
def test_a_first_line_with_a_gap_is_data(tmp_path: Path, gap: str) -> None:
    rows = open_rows(write(tmp_path, f"1.5,{gap},2\n3,4,5\n6,7,8\n"))
    np.testing.assert_array_equal(rows.read(0, 3), [[1.5, np.nan, 2], [3, 4, 5], [6, 7, 8]])
    assert "it is read as data, not as column names" in rows.notes[0]


@pytest.mark.parametrize("first", ["s0,1.5,2.5", "1.5,oops,2", ",400.5,401", "s0,7,3"])
def test_a_first_line_that_may_be_data_is_reported(tmp_path: Path, first: str) -> None:
    rows = open_rows(write(tmp_path, f"{first}\n3,4,5\n6,7,8\n"))
    assert (
        rows.shape == (2, 3 - first.startswith(","))
        and "is read as column names, although it holds numbers" in rows.notes[0]
    )


@pytest.mark.parametrize("first", ["id,0,1", ",0,1", "id,1,2", "a,b,c", "\n\na,b,c", "x2019,2020,a"])
def test_first_lines_of_names_are_not_reported(tmp_path: Path, first: str) -> None:
    rows = open_rows(write(tmp_path, f"{first}\n3.5,4,5\n6,7,8\n"))
    assert rows.shape == (2, 3) and (rows.notes == () or "2020" in first)


def test_an_empty_line_in_a_single_column_is_a_missing_value(tmp_path: Path) -> None:
    rows = open_rows(write(tmp_path, "a\n1\n\n3\n\n\n"))
    np.testing.assert_array_equal(rows.read(0, 3), [[1], [np.nan], [3]])
    assert rows.shape == (3, 1)
    assert open_rows(write(tmp_path, "a,b\n1,2\n\n3,4\n\n")).shape == (2, 2)


def test_line_ends_and_marks_give_the_same(tmp_path: Path) -> None:
    text = b"a,b\n1.5,2\n3,4\n5,6\n"
    expected = [[1.5, 2], [3, 4], [5, 6]]
    for changed in (text, text.replace(b"\n", b"\r\n"), text.replace(b"\n", b"\r"), b"\xef\xbb\xbf" + text):
        (tmp_path / "x.csv").write_bytes(changed)
        np.testing.assert_array_equal(open_rows(tmp_path / "x.csv").read(0, 3), expected)


def test_several_gzip_members_and_what_follows_them(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n") + gzip.compress(b"3,4\n5,6\n"))
    np.testing.assert_array_equal(open_rows(path).read(0, 3), [[1, 2], [3, 4], [5, 6]])
    for end in (b"garbage", gzip.compress(b"7,8\n")[:-4]):
        path.write_bytes(gzip.compress(b"a,b\n1,2\n3,4\n") + end)
        with pytest.raises(InputError, match="not a whole gzip file"):
            open_rows(path)
    (tmp_path / "y.csv").write_bytes(gzip.compress(b"a,b\n1,2\n3,4\n"))
    with pytest.raises(InputError, match=r"It is compressed: rename it to y\.csv\.gz"):
        open_rows(tmp_path / "y.csv")


def test_tables_beyond_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    def fail(*_: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 131072 failed")

    monkeypatch.setattr(delimited, "_read_table", fail)
    with pytest.raises(InputError, match=r"x\.csv needs more memory than is available\. Save it as \.parquet or \.npy"):
        open_rows(write(tmp_path, "a,b\n1,2\n3,4\n"))


# Whole numbers, fractions, gaps, text below a fraction, a name twice, ids, no header, lines that differ in length.
WIDE_TEXTS = [
    "a,b,c\n1.5,2,x\n-2.25e-3,3,y\n",
    "a,b\n1.5,0.5\n2.5,oops\n",
    "a,b\n1.5,\n,0.5\nnan,inf\n",
    "a,b\n9007199254740993,1.5\n1,2.5\n",
    "id,a\n0.10,1.5\n0.1,2.5\n",
    "1.5,2.5\n3,4\n",
    "a,b\n1.50,2020-01-01\n0.5,2020-01-02\n",
    "\ufeffa,b\n1.5,true\n2.5,false\n",
]


@pytest.mark.parametrize("text, ids", [*((text, None) for text in WIDE_TEXTS), ("id,a\n0.10,1.5\n0.1,2.5\n", "id")])
def test_wide_tables_are_read_as_narrow_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, ids: str | None
) -> None:
    path = write(tmp_path, text)
    narrow = open_rows(path, ids=ids)
    monkeypatch.setattr(delimited, "_WIDE", 2)
    wide = open_rows(path, ids=ids)
    np.testing.assert_array_equal(wide.read(0, wide.shape[0]), narrow.read(0, narrow.shape[0]))
    assert wide.dtype == narrow.dtype and wide.columns == narrow.columns and wide.notes == narrow.notes
    assert (wide.ids is None) == (narrow.ids is None) and np.array_equal(wide.ids, narrow.ids)


@pytest.mark.parametrize(
    "text, reason",
    [("a,b\n1.5,2.5\n1.5,2.5,3.5\n", "Expected 2 columns, got 3"), ("a,b\n1.5,2.5\n\xff\n", "not UTF-8")],
)
def test_damage_of_wide_tables_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode("latin-1"))
    monkeypatch.setattr(delimited, "_WIDE", 2)
    with pytest.raises(InputError, match=reason):
        open_rows(path)


def test_types_of_fractions_are_not_guessed() -> None:
    """pyarrow tries eight types on each column, which takes most of the time of a file with many."""
    lines = [["a", "b", "c", "d", "d"], ["1.5", "2", "x", "0.5", "0.5"]]
    assert list(delimited._fractions(lines, True)) == ["a"]
    assert list(delimited._fractions(lines[1:], False)) == ["f0", "f3", "f4"]


def test_numbers_are_read_without_pandas_and_missing_ones_are_nan(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b,c\n1.5,2,7\n-3,,8\n0.25,4,9\n")
    program = (
        "import sys, numpy as np; from nearid.arrays.columns import open_columns;"
        f"found = open_columns({str(path)!r}).values;"
        "assert found['a'].tolist() == [1.5, -3, 0.25] and found['c'].dtype == np.float64;"
        "assert found['b'].dtype == np.float64 and np.isnan(found['b'][1]) and found['b'][2] == 4;"
        "from nearid.arrays.tables import floats; import pyarrow as pa;"
        "parts = pa.chunked_array([pa.array([1, 2], pa.int64()), pa.array([3], pa.int64())]);"
        "assert floats(parts, np.dtype(np.float64)).tolist() == [1, 2, 3]"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    whole = write(tmp_path, "a,b\n1.5,2\n-3,1\n", "whole.csv")
    program = (
        "import sys; from nearid.arrays.columns import open_columns;"
        f"assert len(open_columns({str(whole)!r}).values) == 2 and 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)

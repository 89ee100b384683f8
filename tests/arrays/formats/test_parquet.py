from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from nearid.arrays import open_rows
from nearid.arrays.columns import open_columns
from nearid.base import limits as memory
from nearid.base.errors import InputError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def write(folder: Path, columns: object, **options: object) -> Path:
    pq.write_table(pa.table(columns), folder / "x.parquet", **options)
    return folder / "x.parquet"


def test_column_types(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {
            "half": pa.array(np.array([1.5, 2], np.float16)),
            "int": pa.array([3, None]),
            "bool": pa.array([True, None]),
            "decimal": pa.array([Decimal(1), Decimal("2.25")]),
            "text": ["a", "b"],
        },
    )
    rows = open_rows(path)
    np.testing.assert_array_equal(rows.read(0, 2), [[1.5, 3, 1, 1], [2, np.nan, np.nan, 2.25]])
    assert rows.notes[0].startswith("Columns of x.parquet that are not numeric are ignored: 'text'.")


@pytest.mark.parametrize(
    "ids", [pa.array(["b", "a", "c"]), pa.array(["b", "a", "c"]).dictionary_encode(), pa.array([7, 2**40, 5])]
)
def test_ids(tmp_path: Path, ids: object) -> None:
    rows = open_rows(write(tmp_path, {"x": [1.0, 2, 3], "id": ids}, row_group_size=2), ids="id")
    assert rows.shape == (3, 1) and rows.ids is not None and rows.ids.tolist() == ids.to_pylist()  # type: ignore[attr-defined]


def test_an_index_of_pandas_is_no_feature(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2, 3]}, index=[5, 3, 4])
    frame.to_parquet(tmp_path / "x.parquet")
    rows = open_rows(tmp_path / "x.parquet")
    assert rows.shape == (3, 1) and "'__index_level_0__'" in rows.notes[0]
    frame.rename_axis("cell").to_parquet(tmp_path / "y.parquet")
    assert open_rows(tmp_path / "y.parquet").shape == (3, 1)
    ids = open_rows(tmp_path / "y.parquet", ids="cell").ids
    assert ids is not None and ids.tolist() == [5, 3, 4]
    frame.to_csv(tmp_path / "z.csv")
    pd.read_csv(tmp_path / "z.csv").to_parquet(tmp_path / "z.parquet")
    assert open_rows(tmp_path / "z.parquet").shape == (3, 1)


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.large_list(pa.float32()), pa.list_(pa.float32(), 2)])
def test_a_column_of_lists(tmp_path: Path, kind: object) -> None:
    lists = pa.array([[1, 2], [3, None], [5, 6]], kind)
    rows = open_rows(write(tmp_path, {"emb": lists, "text": ["a", "b", "c"]}, row_group_size=2))
    assert rows.dtype == np.float32 and rows.name == "x.parquet:emb"
    np.testing.assert_array_equal(rows.read(1, 3), [[3, np.nan], [5, 6]])
    assert open_rows(write(tmp_path, {"emb": lists, "id": [4, 5, 6]}), ids="id").shape == (3, 2)


def test_lists_beside_numbers_need_a_key(tmp_path: Path) -> None:
    path = write(tmp_path, {"emb": [[1, 2], [3, 4]], "emb.x": [1, 2], "label": [0, 1]})
    with pytest.raises(InputError, match=r"1 columns with lists of numbers \('emb'\) and 2 numeric.*key='emb'"):
        open_rows(path)
    assert open_rows(path, key="emb").shape == (2, 2)
    with pytest.raises(InputError, match=r"no column 'label' with lists of numbers. Its list columns: 'emb'"):
        open_rows(path, key="label")
    with pytest.raises(InputError, match=r"Did you mean 'label'"):
        open_rows(path, key="labels")


@pytest.mark.parametrize("odd, found", [([1], "1 numbers"), (None, "nothing")])
def test_uneven_lists_are_refused(tmp_path: Path, odd: object, found: str) -> None:
    rows = open_rows(write(tmp_path, {"emb": [[1, 2], [3, 4], odd]}, row_group_size=2))
    rows.read(0, 2)
    with pytest.raises(InputError, match=f"Row 2 of x.parquet:emb holds {found}, but the first row holds 2 numbers"):
        rows.read(1, 3)


def test_only_one_row_group_is_decoded_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = open_rows(write(tmp_path, {"a": np.arange(100.0)}, row_group_size=10))
    decoded: list[int] = []
    original = rows._decode  # type: ignore[attr-defined]
    monkeypatch.setattr(rows, "_decode", lambda group: decoded.append(group) or original(group))
    for start in range(0, 100, 4):
        rows.read(start, start + 4)
    assert decoded == list(range(10))


def test_row_groups_beyond_memory_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, {"a": np.zeros(10_000)})
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    with pytest.raises(InputError, match=r"A row group of x.parquet needs .*row_group_size"):
        open_rows(path)


@pytest.mark.parametrize("kept", [0, 3, 50, -1, -10])
def test_cut_files(tmp_path: Path, kept: int) -> None:
    path = write(tmp_path, {"a": np.arange(100.0)})
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(InputError, match=r"not a whole parquet file"):
        open_rows(path)


def test_damaged_pages(tmp_path: Path) -> None:
    path = write(tmp_path, {"a": np.random.default_rng(0).normal(size=1000)}, compression="zstd")
    content = bytearray(path.read_bytes())
    content[4:60] = bytes(56)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"not a whole parquet file"):
        open_rows(path).read(0, 1000)


def test_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"at least 2 rows"):
        open_rows(write(tmp_path, {"a": pa.array([], pa.float64())}))
    with pytest.raises(InputError, match=r"no numeric columns"):
        open_rows(write(tmp_path, {"a": ["x", "y"]}))
    with pytest.raises(InputError, match=r"Did you mean 'name'"):
        open_rows(write(tmp_path, {"name": ["x", "y"], "b": [1, 2]}), ids="nam")
    twice = pa.Table.from_arrays([pa.array([1, 2]), pa.array([3, 4])], names=["a", "a"])
    pq.write_table(twice, tmp_path / "x.parquet")
    with pytest.raises(InputError, match=r"several columns of the same name"):
        open_rows(tmp_path / "x.parquet")


@pytest.mark.parametrize("opened", [lambda path: open_rows(path).read(0, 1000), open_columns])
def test_page_checksums_are_compared(tmp_path: Path, opened: Callable[[Path], object]) -> None:
    x = np.random.default_rng(0).normal(size=1000)
    path = write(tmp_path, {"a": x}, write_page_checksum=True, compression="none", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[4000] ^= 0x10
    path.write_bytes(content)
    with pytest.raises(InputError, match="not a whole parquet file"):
        opened(path)

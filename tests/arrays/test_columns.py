from pathlib import Path

import numpy as np
import pytest

from nearid.arrays import open_columns, open_rows
from nearid.base.errors import InputError


def test_text_tables_keep_names_and_text(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("id,shape,size\n007,cube,1.5\n008,ball,2\n")
    columns = open_columns(path, ids="id")
    assert columns.name == "f.csv" and list(columns.values) == ["shape", "size"]
    assert columns.values["shape"].tolist() == ["cube", "ball"] and columns.values["size"].tolist() == [1.5, 2]
    assert columns.ids is not None and columns.ids.tolist() == ["007", "008"]


def test_parquet_and_frames_agree(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {"a": [1, 2], "b": pd.Categorical(["x", "y"]), "c": [True, False], "when": pd.to_datetime(["2020", "2021"])},
        index=pd.Index(["r", "s"], name="who"),
    )
    frame.to_parquet(tmp_path / "f.parquet")
    for columns in (open_columns(frame), open_columns(tmp_path / "f.parquet", ids="who")):
        assert list(columns.values) == ["a", "b", "c"]
        assert columns.values["b"].tolist() == ["x", "y"] and columns.values["c"].dtype == bool
        assert columns.ids is not None and columns.ids.tolist() == ["r", "s"]
        assert "'when'" in columns.notes[-1]
    # Without being asked for, the index that pandas wrote is no column.
    assert list(open_columns(tmp_path / "f.parquet").values) == ["a", "b", "c"]


def test_structures_dicts_and_archives_agree(tmp_path: Path) -> None:
    given = {"a": np.array([1.5, 2.5]), "b": np.array(["x", "y"])}
    structure = np.array([(1.5, "x"), (2.5, "y")], dtype=[("a", float), ("b", "U1")])
    np.save(tmp_path / "s.npy", structure)
    np.savez(tmp_path / "s.npz", **given)
    for source in (given, structure, tmp_path / "s.npy", tmp_path / "s.npz"):
        columns = open_columns(source)
        assert {label: values.tolist() for label, values in columns.values.items()} == {
            "a": [1.5, 2.5],
            "b": ["x", "y"],
        }
    assert open_columns(given, ids="b").ids.tolist() == ["x", "y"]  # type: ignore[union-attr]
    assert list(open_columns(given, ids="b").values) == ["a"]


def test_plain_arrays_are_named_by_place(tmp_path: Path) -> None:
    x = np.arange(6.0).reshape(3, 2)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", x=x, y=x[:, 0])
    for source in (x, x.tolist(), tmp_path / "x.npy", tmp_path / "x.npz"):
        columns = open_columns(source)
        assert list(columns.values) == ["0", "1"] and columns.values["1"].tolist() == [1, 3, 5]


def test_vectors_and_tables_of_text_are_columns() -> None:
    pd = pytest.importorskip("pandas")
    assert open_columns([3, 1, 2]).values["0"].tolist() == [3, 1, 2]
    assert open_columns(["x", "y"]).values["0"].tolist() == ["x", "y"]
    mixed = open_columns(np.array([["b", 10], ["a", -3.5]], dtype=object)).values
    assert mixed["0"].tolist() == ["b", "a"] and mixed["1"].dtype == np.float64
    series = pd.Series([1.0, 2.0], index=["r1", "r2"], name="size")
    found = open_columns(series)
    assert found.values["size"].tolist() == [1, 2] and found.ids is not None and found.ids.tolist() == ["r1", "r2"]


def test_series_in_a_dict_bring_their_index() -> None:
    pd = pytest.importorskip("pandas")
    series = pd.Series([1.0, 2.0, 3.0], index=pd.date_range("2020-01-01", periods=3))
    columns = open_columns({"a": series, "b": [4, 5, 6], "c": series * 2})
    assert columns.index.equals(series.index) and columns.ids is None
    assert open_columns({"a": series, "b": list("xyz")}, ids="b").index is None
    with pytest.raises(InputError, match="'a' and 'c' of table are Series with different indexes"):
        open_columns({"a": series, "c": series[::-1]})


def test_a_column_comes_before_an_index_of_the_same_name() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2.0], "who": ["x", "y"]}, index=pd.Index(["r", "s"], name="who"))
    assert open_columns(frame, ids="who").ids.tolist() == ["x", "y"]  # type: ignore[union-attr]
    assert open_rows(frame, ids="who").ids.tolist() == ["x", "y"]  # type: ignore[union-attr]
    assert open_columns(frame.drop(columns="who"), ids="who").ids.tolist() == ["r", "s"]  # type: ignore[union-attr]


def test_a_parquet_file_of_lists_is_rows(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table({"v": [[1.0, 2.0], [3.0, 4.0]]}), tmp_path / "f.parquet")
    assert list(open_columns(tmp_path / "f.parquet").values) == ["0", "1"]


def test_integers_beyond_float64_are_rounded(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text(f"a\n{2**60 + 1}\n2\n")
    assert open_columns(tmp_path / "f.csv").values["a"].tolist() == [2.0**60, 2]


def test_missing_cells_are_seen(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("a,b\n1,true\n,\n")
    columns = open_columns(tmp_path / "f.csv")
    assert np.isnan(columns.values["a"][1]) and columns.values["b"].tolist() == [True, None]


def test_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"differ in length: \{'a': 2, 'b': 3\}"):
        open_columns({"a": [1, 2], "b": [1, 2, 3]})
    with pytest.raises(InputError, match=r"'a' of table has shape \(2, 1\)"):
        open_columns({"a": [[1], [2]]})
    with pytest.raises(InputError, match=r"table has 1 rows, but at least 2"):
        open_columns({"a": [1]})
    with pytest.raises(InputError, match=r"ids of table have shape \(3,\), but one id for each of its 2 rows"):
        open_columns({"a": [1, 2]}, ids=["x", "y", "z"])
    (tmp_path / "f.csv").write_text("a,a\n1,2\n3,4\n")
    with pytest.raises(InputError, match=r"several columns named 'a'"):
        open_columns(tmp_path / "f.csv")
    np.save(tmp_path / "o.npy", np.array([{}, []], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"o\.npy"):
        open_columns(tmp_path / "o.npy")
    pd = pytest.importorskip("pandas")
    with pytest.raises(InputError, match=r"mixed values"):
        open_columns(pd.DataFrame({"a": ["x", 1.5]}))

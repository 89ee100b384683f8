"""Named columns of tables, files and AnnData."""

from pathlib import Path

import numpy as np
import pytest

from nearid import InputError
from nearid.arrays import open_columns, open_rows, pair_rows
from nearid.arrays.columns import is_annotated, open_annotated
from nearid.arrays.derived import SelectedColumns, SelectedRows
from nearid.arrays.metadata import column_names


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
        {"a": [1, 2], "b": pd.Categorical(["x", "y"]), "c": [True, False], "when": pd.to_timedelta([1, 2])},
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


def test_the_index_that_pandas_writes_to_text_names_rows(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    path = tmp_path / "f.csv"
    frame = pd.DataFrame({"a": [1.5, 2.5, 3.5], "b": ["x", "y", "x"]}, index=["r", "s", "t"])
    frame.to_csv(path)
    for source in (path, pd.read_csv(path)):
        columns = open_columns(source)
        assert list(columns.values) == ["a", "b"] and "is an index written by pandas" in columns.notes[0]
        assert open_rows(source).columns == ("a",)
    assert "ids='' (--ids '')" in open_columns(path).notes[0]
    assert open_columns(path, ids="").ids.tolist() == ["r", "s", "t"] == open_rows(path, ids="").ids.tolist()
    # Text that repeats names no rows.
    frame.set_axis(["r", "r", "t"]).to_csv(path)
    assert list(open_columns(path).values) == ["", "a", "b"]


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
    np.savez(tmp_path / "x.npz", x=x)
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
    with pytest.raises(InputError, match="'a' and 'c' of table are Series whose indexes differ"):
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
    with pytest.raises(InputError, match=r"a column that mixes types"):
        open_columns(pd.DataFrame({"a": ["x", 1.5]}))


anndata = pytest.importorskip("anndata", reason="the extra `anndata` is not installed")


@pytest.fixture
def cells():
    import pandas as pd

    rng = np.random.default_rng(0)
    obs = pd.DataFrame({"drug": list("abab"), "plate": [1, 1, 2, 2]}, index=["w1", "w2", "w3", "w4"])
    var = pd.DataFrame(index=["Actin", "Tubulin", "DNA"])
    made = anndata.AnnData(rng.normal(size=(4, 3)).astype(np.float32), obs=obs, var=var)
    made.obsm["emb"] = rng.normal(size=(4, 2)).astype(np.float32)
    return made


@pytest.mark.parametrize("stored", [False, True])
def test_the_embedding_and_its_table(cells, tmp_path, stored):
    source = cells
    if stored:
        source = tmp_path / "cells.h5ad"
        cells.write_h5ad(source)
    assert is_annotated(source)
    rows, table = open_annotated(source)
    assert np.array_equal(rows.read(0, 4), cells.obsm["emb"])
    assert rows.ids.tolist() == ["w1", "w2", "w3", "w4"] == table.ids.tolist()
    assert list(table.values["drug"]) == list("abab") and list(table.values["plate"]) == [1, 1, 2, 2]
    of_x = open_annotated(source, "X")[0]
    assert np.array_equal(of_x.read(0, 4), cells.X)
    # Variables name the columns of X and of layers, also where columns and rows are selected.
    assert rows.titles is None and of_x.titles == ("Actin", "Tubulin", "DNA") and of_x.columns is None
    assert column_names(SelectedRows(SelectedColumns(of_x, np.array([2, 0])), np.arange(2))) == ("DNA", "Actin")


@pytest.mark.parametrize("stored", [False, True])
def test_columns_of_anndata_are_obs(cells, tmp_path, stored):
    source = tmp_path / "cells.h5ad" if stored else cells
    cells.write_h5ad(tmp_path / "cells.h5ad")
    table = open_columns(source)
    assert list(table.values) == ["drug", "plate"] and table.ids.tolist() == ["w1", "w2", "w3", "w4"]
    assert open_columns(source, ids="drug").ids.tolist() == list("abab")
    np.testing.assert_array_equal(open_columns(source, key="emb").values["1"], cells.obsm["emb"][:, 1])
    bare = anndata.AnnData(cells.X)
    bare.write_h5ad(tmp_path / "bare.h5ad")
    with pytest.raises(InputError, match=r"obs of .* has no columns"):
        open_columns(tmp_path / "bare.h5ad" if stored else bare)


def test_several_embeddings_must_be_told_apart(cells):
    cells.obsm["other"] = np.zeros((4, 2))
    with pytest.raises(InputError, match="Choose one"):
        open_annotated(cells)
    with pytest.raises(InputError, match="Did you mean 'emb'"):
        open_annotated(cells, "embb")
    assert not is_annotated(np.zeros((2, 2)))


@pytest.mark.parametrize("stored", [False, True])
def test_rows_are_named_by_obs_names(cells, tmp_path, stored):
    moved = cells[[2, 0, 3, 1]].copy()
    # The index of obs may have a name of its own.
    moved.obs.index.name = "well"
    sources = [cells, moved]
    if stored:
        sources = [tmp_path / "a.h5ad", tmp_path / "b.h5ad"]
        cells.write_h5ad(sources[0])
        moved.write_h5ad(sources[1])
    x, y = (open_rows(source) for source in sources)
    assert x.ids.tolist() == ["w1", "w2", "w3", "w4"] and x.name.endswith(":obsm/emb")
    pair = pair_rows(x, y)
    np.testing.assert_array_equal(*pair.read(0, 4))
    assert pair.notes == ()


@pytest.mark.parametrize("stored", [False, True])
def test_keys_and_ids_of_rows(cells, tmp_path, stored):
    cells.obsm["other"] = np.zeros((4, 2))
    cells.layers["log"] = cells.X + 1
    source = tmp_path / "cells.h5ad" if stored else cells
    cells.write_h5ad(tmp_path / "cells.h5ad")
    with pytest.raises(InputError, match=r"several embeddings in obsm: emb, other\. Choose one: key='emb'"):
        open_rows(source)
    for key, wanted in (
        ("emb", cells.obsm["emb"]),
        ("obsm/emb", cells.obsm["emb"]),
        ("X", cells.X),
        ("layers/log", cells.X + 1),
    ):
        rows = open_rows(source, key=key)
        np.testing.assert_array_equal(rows.read(0, 4), wanted)
        assert rows.ids.tolist() == ["w1", "w2", "w3", "w4"]
    assert open_rows(source, key="emb", ids="obs/plate").ids.tolist() == [1, 1, 2, 2]
    assert open_rows(source, key="emb", ids=[4, 3, 2, 1]).ids.tolist() == [4, 3, 2, 1]
    for options in ({"key": "obsm/embb"}, {"key": "embb"}, {"key": "emb", "ids": "obs/plat"}):
        with pytest.raises(InputError, match=r"has nothing named .* Did you mean"):
            open_rows(source, **options)


def test_names_of_rows_that_end_in_nul_are_refused(cells):
    cells.obs_names = ["w1", "w2", "w3", "w3\0"]
    for use in (open_rows, open_annotated):
        with pytest.raises(InputError, match=r"id of row 3 .* ends in a NUL"):
            use(cells)


def test_parts_that_are_not_about_the_rows_have_no_names_of_rows(cells, tmp_path):
    cells.varm["loadings"] = np.ones((3, 2))
    cells.write_h5ad(tmp_path / "cells.h5ad")
    assert open_rows(tmp_path / "cells.h5ad", key="varm/loadings").ids is None


def test_a_link_out_of_the_file_is_not_followed(cells, tmp_path):
    import h5py

    cells.write_h5ad(tmp_path / "cells.h5ad")
    with h5py.File(tmp_path / "linked.h5ad", "w") as file:
        file["obsm"] = h5py.ExternalLink(str(tmp_path / "cells.h5ad"), "obsm")
        file["obs"] = h5py.ExternalLink(str(tmp_path / "cells.h5ad"), "obs")
        file["X"] = cells.X
    assert open_rows(tmp_path / "linked.h5ad").ids is None
    with pytest.raises(InputError, match="a link to another file"):
        open_rows(tmp_path / "linked.h5ad", key="obsm/emb")


def test_a_sparse_matrix_is_refused(cells):
    from scipy.sparse import csr_matrix

    cells.X = csr_matrix(cells.X)
    for source in (cells, cells[:3]):
        with pytest.raises(InputError, match=r"X of AnnData is a sparse matrix, .* must be dense"):
            open_rows(source, key="X")
        with pytest.raises(InputError, match=r"is a sparse matrix.*toarray"):
            open_rows(source.X)


@pytest.mark.parametrize("key", ["emb", "X", "layers/log"])
def test_a_view_is_read_like_a_copy(cells, key):
    cells.layers["log"] = cells.X + 1
    view = cells[cells.obs.plate == 2]
    assert view.is_view
    (rows, table), (wanted, _) = (open_annotated(source, key) for source in (view, view.copy()))
    np.testing.assert_array_equal(rows.read(0, 2), wanted.read(0, 2))
    assert rows.ids.tolist() == ["w3", "w4"] == table.ids.tolist()
    assert open_rows(view, key=key, blocks="drug").blocks.tolist() == ["a", "b"]
    np.testing.assert_array_equal(open_rows(view.obsm["emb"]).read(0, 2), cells.obsm["emb"][2:])


def test_a_matrix_beside_columns_loses_neither(rng, tmp_path):
    pose, shape, path = rng.normal(size=(30, 2)), rng.integers(0, 3, 30), tmp_path / "u.npz"
    np.savez(path, pose=pose, shape=shape, axes=np.array(["x", "y"]))
    found = open_columns(path)
    assert list(found.values) == ["pose_0", "pose_1", "shape"]
    np.testing.assert_array_equal(np.column_stack(list(found.values.values())), np.column_stack([pose, shape]))
    assert "'pose_0' to 'pose_1'" in found.notes[0] and "'axes'" in found.notes[1]
    # What names the rows is no column, and a matrix alone keeps the names of its places.
    np.savez(path, pose=pose, cell=np.arange(30))
    found = open_columns(path, ids="cell")
    assert list(found.values) == ["0", "1"] and found.ids.tolist() == list(range(30))
    np.savez(path, pose=pose, pose_1=shape)
    with pytest.raises(InputError, match="several columns named 'pose_1'"):
        open_columns(path)
    assert list(open_columns(path, key="pose").values) == ["0", "1"]
    np.savez(path, pose=pose, other=pose, shape=shape)
    with pytest.raises(InputError, match="2 two-dimensional arrays"):
        open_columns(path)


def test_cells_that_are_separated_in_another_way_are_named(tmp_path):
    (tmp_path / "x.csv").write_text("a;b\n1;2\n3;4\n")
    with pytest.raises(InputError, match=r"seem to be separated by ';'\. Separate cells by commas in a \.csv"):
        open_rows(tmp_path / "x.csv")


def test_integers_beyond_the_digits_of_floats_stay_apart(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": [0.5, 1.5, 2.5], "label": [2**53, 2**53 + 1, 2**53]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    for source in (frame, tmp_path / "a.csv", tmp_path / "a.parquet"):
        assert open_columns(source).values["label"].tolist() == [2**53, 2**53 + 1, 2**53]
    (tmp_path / "b.csv").write_text(f"a,b\n{2**60 + 1},1\n,2\n")
    assert open_columns(tmp_path / "b.csv").values["a"].tolist() == [2**60 + 1, None]

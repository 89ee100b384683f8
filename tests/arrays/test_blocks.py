"""Blocks of rows as users name them, in every format; shared among runs; refused where they do not fit."""

import pickle

import h5py
import numpy as np
import pandas as pd
import pytest
import zarr
from safetensors.numpy import save_file

from nearid.arrays import open_rows, pair_rows
from nearid.arrays.blocks import open_blocks
from nearid.arrays.derived import JoinedRows, MappedRows, SelectedRows
from nearid.base.errors import InputError

N = 12
WELLS = [f"B{at // 3:02}" for at in range(N)]
CODES = [at // 3 for at in range(N)]
X = np.random.default_rng(0).normal(size=(N, 2))


@pytest.fixture
def frame():
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "well": WELLS, "plate": CODES})


def cells(frame):
    anndata = pytest.importorskip("anndata")
    obs = frame[["well", "plate"]].set_axis([f"c{i}" for i in range(N)])
    return anndata.AnnData(X=X.astype(np.float32), obs=obs.astype({"well": "category"}))


def write_csv(folder, frame):
    frame.to_csv(path := folder / "x.csv", index=False)
    return path


def write_parquet(folder, frame):
    frame.to_parquet(path := folder / "x.parquet", row_group_size=5)
    return path


def write_npz(folder, frame):
    np.savez(path := folder / "x.npz", x=X, well=np.array(WELLS), plate=CODES)
    return path


def write_hdf5(folder, frame):
    with h5py.File(path := folder / "x.h5", "w") as file:
        file["x"], file["well"], file["plate"] = X, np.array(WELLS, "S3"), CODES
    return path


def write_h5ad(folder, frame):
    made = cells(frame)
    made.write_h5ad(path := folder / "x.h5ad")
    return path


def write_zarr(folder, frame):
    group = zarr.open_group(path := folder / "x.zarr", mode="w")
    for name, values in (("x", X), ("well", np.array(WELLS)), ("plate", np.array(CODES))):
        group.create_array(name, shape=values.shape, dtype=values.dtype)[:] = values
    return path


def write_torch(folder, frame):
    torch = pytest.importorskip("torch")
    torch.save({"x": torch.tensor(X), "well": WELLS, "plate": torch.tensor(CODES)}, path := folder / "x.pt")
    return path


FILES = [write_csv, write_parquet, write_npz, write_hdf5, write_h5ad, write_zarr, write_torch]
MEMORY = {
    "DataFrame": lambda folder, frame: frame,
    "polars": lambda folder, frame: pytest.importorskip("polars").from_pandas(frame),
    "AnnData": lambda folder, frame: cells(frame),
}


@pytest.fixture(params=[*FILES, *MEMORY.values()], ids=[*(f.__name__[6:] for f in FILES), *MEMORY])
def source(request, tmp_path, frame):
    """The same rows with two columns of blocks, `well` (text) and `plate` (integers)."""
    return request.param(tmp_path, frame)


@pytest.mark.filterwarnings("ignore")
class TestColumns:
    @pytest.mark.parametrize("column", ["well", "plate"])
    def test_a_column_of_any_source_is_taken_and_is_no_feature(self, source, column):
        rows = open_rows(source, blocks=column)
        assert pair_rows(rows, rows).blocks.tolist() == CODES
        assert rows.columns is None or column not in rows.columns
        width = 3 if rows.columns and column == "well" else 2
        assert rows.shape == (N, width)
        np.testing.assert_allclose(rows.read(0, N)[:, :2], X, rtol=1e-6)
        # In workers, too.
        assert pickle.loads(pickle.dumps(rows)).blocks.tolist() == rows.blocks.tolist()

    def test_a_column_that_is_missing_lists_those_that_there_are(self, source):
        with pytest.raises(InputError, match=r"has no column 'donor' .*no file of this name.*'well'"):
            open_rows(source, blocks="donor")
        with pytest.raises(InputError, match="Did you mean 'well'"):
            open_rows(source, blocks="wel")

    @pytest.mark.parametrize("given", ["wels.csv", "wels.csv:well"])
    def test_a_file_that_is_missing_names_those_like_it(self, source, tmp_path, monkeypatch, given):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "wells.csv").write_text("well\na\n")
        with pytest.raises(InputError, match=r"no file of this name\. Did you mean 'wells.csv'"):
            open_rows(source, blocks=given)

    def test_columns_are_found_after_features_were_chosen(self, source):
        rows = open_rows(source, exclude="1") if open_rows(source).columns is None else open_rows(source, features="a")
        (blocked,), looked_for = open_blocks("well", [rows])
        assert blocked.shape == (N, 1) and not looked_for
        assert pair_rows(blocked, blocked).blocks.tolist() == CODES
        assert rows.blocks is None

    def test_a_column_of_blocks_is_not_called_ignored(self, source):
        plain = open_rows(source)
        assert not any("'well'" in note for note in open_rows(source, blocks="well").notes)
        # The source itself keeps its notes.
        (blocked,), _ = open_blocks("well", [plain])
        assert plain.notes == open_rows(source).notes and blocked.notes == open_rows(source, blocks="well").notes

    def test_labels_and_a_file_of_labels(self, source, tmp_path, monkeypatch):
        np.save(tmp_path / "labels.npy", WELLS)
        monkeypatch.chdir(tmp_path)
        for given in (WELLS, np.array(CODES), pd.Series(WELLS), tmp_path / "labels.npy", "labels.npy"):
            rows = open_rows(source, blocks=given)
            assert pair_rows(rows, rows).blocks.tolist() == CODES

    def test_the_wrong_number_of_labels(self, source):
        with pytest.raises(InputError, match=r"shape \(11,\), but one label for each of its 12 rows"):
            open_rows(source, blocks=WELLS[1:])


def test_csv_keeps_leading_zeros(tmp_path):
    (tmp_path / "x.csv").write_text("a,well\n1,7\n2,007\n3,7\n")
    assert open_rows(tmp_path / "x.csv", blocks="well").blocks.tolist() == ["7", "007", "7"]
    (tmp_path / "x.csv").write_text("a,well\n1,7\n2,\n3,7\n")
    with pytest.raises(InputError, match=r"block of row 1 of x\.csv is ''"):
        open_rows(tmp_path / "x.csv", blocks="well")


@pytest.mark.parametrize("write", [write_csv, write_parquet, write_h5ad])
@pytest.mark.filterwarnings("ignore")
def test_a_missing_label_names_its_row(write, tmp_path, frame):
    frame.loc[4, "well"] = None
    frame["plate"] = frame["plate"].astype(float)
    frame.loc[5, "plate"] = np.nan
    path = write(tmp_path, frame)
    for column, row in (("well", 4), ("plate", 5)):
        with pytest.raises(InputError, match=f"block of row {row} of "):
            open_rows(path, blocks=column)


def test_nullable_integers_and_text_in_h5ad(tmp_path):
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame({"well": pd.array(CODES, dtype="Int64")}, index=[f"c{i}" for i in range(N)])
    anndata.AnnData(X=X, obs=obs).write_h5ad(tmp_path / "x.h5ad")
    assert open_rows(tmp_path / "x.h5ad", blocks="well").blocks.tolist() == CODES
    assert open_rows(tmp_path / "x.h5ad", blocks="obs/well").blocks.tolist() == CODES
    obs.iloc[3, 0] = pd.NA
    anndata.AnnData(X=X, obs=obs).write_h5ad(tmp_path / "x.h5ad")
    with pytest.raises(InputError, match="block of row 3 of "):
        open_rows(tmp_path / "x.h5ad", blocks="well")


def test_an_index_may_name_blocks(frame):
    rows = open_rows(frame.drop(columns="plate").set_index("well"), blocks="well")
    assert pair_rows(rows, rows).blocks.tolist() == CODES
    nested = frame.set_index(["plate", "well"])
    assert open_rows(nested, blocks="plate").blocks.tolist() == CODES


def test_a_series_is_brought_to_the_order_of_the_rows(frame):
    frame.index = [f"r{i}" for i in range(N)]
    series = frame["well"]
    rows = open_rows(frame[["a", "b"]], blocks=series.sample(frac=1, random_state=1))
    assert rows.blocks.tolist() == WELLS
    with pytest.raises(InputError, match="no label for 1 of the 12 rows of table, such as 'r0'"):
        open_rows(frame[["a", "b"]], blocks=series.iloc[1:])
    with pytest.raises(InputError, match="repeated labels"):
        open_rows(frame[["a", "b"]], blocks=pd.concat([series, series.iloc[:1]]))


class TestFiles:
    @pytest.fixture(autouse=True)
    def _here(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)

    @pytest.mark.parametrize("name", ["l.csv", "l.parquet", "l.npz", "l.npy", "l.csv:w", "l.npz:w", "l.safetensors"])
    def test_one_column_of_a_file(self, name):
        table = pd.DataFrame({"w": CODES})
        table.to_csv("l.csv", index=False)
        table.to_parquet("l.parquet")
        np.savez("l.npz", w=CODES)
        np.save("l.npy", CODES)
        save_file({"w": np.array(CODES)}, "l.safetensors")
        assert open_rows(X, blocks=name).blocks.tolist() == CODES

    def test_numbers_without_a_header(self, tmp_path):
        (tmp_path / "l.csv").write_text("".join(f"{code}\n" for code in CODES))
        assert open_rows(X, blocks="l.csv").blocks.tolist() == CODES

    def test_a_column_comes_before_a_file(self, frame):
        np.save("well", np.arange(N))
        np.save("l.npy", np.arange(N))
        renamed = frame.rename(columns={"well": "l.npy"})
        assert open_rows(renamed, blocks="l.npy").blocks.tolist() == WELLS
        assert open_rows(X, blocks="l.npy").blocks.tolist() == list(range(N))

    def test_files_that_do_not_say_which(self, frame):
        frame.to_csv("t.csv", index=False)
        with pytest.raises(InputError, match=r"t.csv .* one column .* 'a', 'b', 'well', 'plate'. Write FILE:COLUMN"):
            open_rows(X, blocks="t.csv")
        with pytest.raises(InputError, match="it has no column 'donor'"):
            open_rows(X, blocks="t.csv:donor")
        np.save("m.npy", X)
        with pytest.raises(InputError, match="one column"):
            open_rows(X, blocks="m.npy")
        np.save("o.npy", np.array([{}] * N, object), allow_pickle=True)
        with pytest.raises(InputError, match="never unpickles"):
            open_rows(X, blocks="o.npy")
        with pytest.raises(InputError, match=r"no file .*--blocks none"):
            open_rows(X, blocks="gone.npy")
        with pytest.raises(InputError, match="blocks is an empty string"):
            open_rows(X, blocks="")

    @pytest.mark.parametrize("name", ["x.npz", "x.h5", "x.pt", "x.safetensors"])
    def test_an_entry_of_that_name_is_carried(self, name):
        np.savez("x.npz", x=X, blocks=CODES)
        with h5py.File("x.h5", "w") as file:
            file["x"], file["blocks"] = X, CODES
        if name == "x.pt":
            torch = pytest.importorskip("torch")
            torch.save({"x": torch.tensor(X), "blocks": torch.tensor(CODES)}, "x.pt")
        save_file({"x": X, "blocks": np.array(CODES)}, "x.safetensors")
        rows = open_rows(name)
        assert rows.blocks.tolist() == CODES and rows.shape == X.shape
        assert open_rows(name, blocks="none").blocks is None
        assert open_rows(name, blocks=list(range(N))).blocks.tolist() == list(range(N))

    @pytest.mark.parametrize(
        ("blocks", "why"),
        [
            (CODES[:-2], "one label for each"),
            (np.where(np.arange(N) == 1, np.nan, CODES), "block of row 1"),
            (np.array([{}] * N, object), "never unpickles"),
        ],
    )
    def test_an_entry_of_that_name_that_cannot_be_used_is_told(self, blocks, why):
        np.savez("x.npz", x=X, blocks=blocks)
        rows = open_rows("x.npz")
        assert rows.blocks is None and len(rows.notes) == 1
        assert "'blocks' of x.npz is not used" in rows.notes[0] and why in rows.notes[0]


def test_features_beside_blocks_must_be_left(frame):
    with pytest.raises(
        InputError, match="has no features: its only numeric column is 'plate', which is used as blocks"
    ):
        open_rows(frame[["plate"]], blocks="plate")


def test_other_columns_of_text_stay_in_the_note(frame):
    frame["donor"] = WELLS[::-1]
    (note,) = open_rows(frame).notes
    assert "'well', 'donor'" in note and pickle.loads(pickle.dumps(note)) == note
    (note,) = open_rows(frame, blocks="well").notes
    assert "ignored: 'donor'." in note and "'well'" not in note


def test_derived_rows_carry_blocks():
    rows = open_rows(X, blocks=WELLS)
    assert MappedRows("m", rows, 1, lambda x: x[:, :1]).blocks.tolist() == WELLS
    assert open_rows(rows, exclude="0").blocks.tolist() == WELLS
    assert SelectedRows(rows, np.array([11, 0])).blocks.tolist() == ["B03", "B00"]
    assert JoinedRows("j", [open_rows(X), rows]).blocks.tolist() == WELLS
    assert JoinedRows("j", [open_rows(X, blocks=CODES), rows]).blocks.tolist() == CODES
    with pytest.raises(InputError, match="blocks of array and array differ in row 1"):
        JoinedRows("j", [open_rows(X, blocks=list(range(N))), rows])


class TestPairs:
    def test_one_side(self, rng):
        order = rng.permutation(N)
        x, y = open_rows(X, ids=np.arange(N), blocks=WELLS), open_rows(X[order][:9], ids=order[:9])
        # Pairs keep the order of the first side.
        for pair, rows in ((pair_rows(x, y), np.sort(order[:9])), (pair_rows(y, x), order[:9])):
            assert pair.blocks.dtype == np.intp
            np.testing.assert_array_equal(pair.blocks, pd.factorize(np.array(CODES)[rows])[0])
        assert pair_rows(open_rows(X), open_rows(X)).blocks is None

    def test_both_sides(self, rng):
        order = rng.permutation(N)
        x = open_rows(X, ids=np.arange(N), blocks=WELLS, name="one")
        y = open_rows(X[order], ids=order, blocks=100 - np.array(CODES)[order], name="two")
        np.testing.assert_array_equal(pair_rows(x, y).blocks, CODES)
        wrong = np.array(CODES)
        wrong[7] = 0
        y = open_rows(X[order], ids=order, blocks=wrong[order], name="two")
        with pytest.raises(InputError, match=r"blocks of one and two differ in row 7: .*blocks='none'"):
            _ = pair_rows(x, y).blocks


class TestRuns:
    def test_none_given(self):
        plain, blocked = open_rows(X), open_rows(X, blocks=WELLS)
        rows, looked_for = open_blocks(None, [plain, blocked])
        assert looked_for and rows[0].blocks is None and rows[1].blocks.tolist() == WELLS
        rows, looked_for = open_blocks("none", [plain, blocked])
        assert not looked_for and all(each.blocks is None for each in rows)
        # What the caller holds is left alone.
        assert blocked.blocks.tolist() == WELLS

    def test_labels_replace_those_that_were_carried(self):
        other = open_rows(X, blocks=list(range(N)))
        rows, looked_for = open_blocks(WELLS, [open_rows(X), other])
        assert not looked_for and pair_rows(*rows).blocks.tolist() == CODES

    def test_three_runs_share_them(self, rng, frame):
        order = rng.permutation(N)
        named = [open_rows(frame.iloc[order]), open_rows(frame[["a", "b"]]), open_rows(frame[["a"]].iloc[::-1])]
        rows, _ = open_blocks("well", named)
        assert rows[1].blocks.tolist() == WELLS and rows[2].blocks.tolist() == WELLS[::-1]
        assert pair_rows(rows[2], rows[1]).blocks.tolist() == CODES
        by_place, _ = open_blocks(np.array(WELLS), [open_rows(X)] * 3)
        assert all(each.blocks.tolist() == WELLS for each in by_place)

    def test_rows_whose_block_nobody_knows(self, frame):
        first, more = frame.iloc[:9], frame[["a", "b"]]
        with pytest.raises(InputError, match="blocks come from x, but 3 of the 12 rows of y are not in it"):
            open_blocks("well", [open_rows(first, name="x"), open_rows(more, name="y"), open_rows(more)])
        # Of two runs only rows that are paired count.
        rows, _ = open_blocks("well", [open_rows(first), open_rows(more)])
        assert pair_rows(*rows).blocks.tolist() == CODES[:9]

    def test_a_column_of_neither_run(self, frame, tmp_path):
        frame.to_csv(tmp_path / "x.csv", index=False)
        runs = [open_rows(tmp_path / "x.csv"), open_rows(X)]
        with pytest.raises(
            InputError, match=r"x\.csv or array has no column 'donor'.*Columns: 'well', 'a', 'b', 'plate'"
        ):
            open_blocks("donor", runs)
        with pytest.raises(InputError, match=r"has no named columns.*give a .npy or .csv file"):
            open_blocks("donor", runs[1:])


def test_a_series_goes_by_its_labels(frame):
    """Also where it only counts its rows, beside rows that kept their count in another order."""
    shuffled, series = frame[["a", "b"]].sample(frac=1, random_state=0), pd.Series(WELLS)
    [found], _ = open_blocks(series, [open_rows(shuffled)])
    assert found.blocks.tolist() == [WELLS[at] for at in shuffled.index] and not found.notes
    with pytest.raises(InputError, match="no label for 6 of the 12 rows"):
        open_blocks(series.iloc[:6], [open_rows(shuffled)])
    with pytest.raises(InputError, match="no label for 6 of the 6 rows"):
        open_blocks(series.iloc[:6], [open_rows(frame[["a", "b"]].iloc[6:])])
    # Names of another kind say nothing of a count, nor an array of an index: by position, and it is said.
    for rows in (open_rows(shuffled.set_axis([f"c{at}" for at in range(N)])), open_rows(X)):
        given = series if rows.index is not None else series.set_axis(range(5, 5 + N))
        [found], _ = open_blocks(given, [rows])
        assert found.blocks.tolist() == WELLS and "by position" in found.notes[-1]


def test_a_frame_of_one_column_is_paired_by_its_index():
    rows = open_rows(pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=list("stu")))
    blocks = pd.DataFrame({"well": ["w1", "w1", "w2"]}, index=list("uts"))
    assert open_rows(rows, blocks=blocks).blocks.tolist() == ["w2", "w1", "w1"]

"""Rows mapped into files: the same numbers as in memory, whole or not at all, never over the input."""

import os

import numpy as np
import pyarrow.parquet
import pytest
import zarr

import nearid.engines.local as local
import nearid.ica.stream as stream
from nearid import ICA, InputError, Whitening
from nearid.arrays import Rows, open_rows


@pytest.fixture
def x(rng):
    return (rng.laplace(size=(2000, 5)) @ rng.normal(size=(5, 5)) + 3).astype(np.float32)


@pytest.fixture
def fitted(x, monkeypatch):
    # Blocks of 256 rows: eight of them.
    monkeypatch.setattr(local, "BLOCK_BYTES", 1)
    return Whitening().fit(x)


def read(path):
    if path.suffix == ".parquet":
        rows = open_rows(path)
        return rows.read(0, rows.shape[0])
    return np.load(path, allow_pickle=False) if path.suffix == ".npy" else zarr.open(str(path))[:]


@pytest.mark.parametrize("name", ["y.npy", "y.zarr", "y.parquet"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_file_holds_what_transform_gives(fitted, x, tmp_path, name, dtype):
    np.save(tmp_path / "x.npy", x.astype(dtype))
    told = []
    fitted.transform_to(
        tmp_path / "x.npy", tmp_path / name, progress=lambda stage, n: told.append(n) or (lambda: told.append("tick"))
    )
    assert told == [8, *["tick"] * 8]
    found = read(tmp_path / name)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, fitted.transform(x.astype(dtype)))
    np.testing.assert_allclose(found, (x - fitted.mean_) @ fitted.components_.T, atol=1e-5)
    assert sorted(os.listdir(tmp_path)) == ["x.npy", name]


@pytest.mark.parametrize("name", ["z.npy", "z.zarr"])
def test_inverse_gives_the_rows_back(fitted, x, tmp_path, name):
    fitted.transform_to(x, tmp_path / "y.npy")
    fitted.transform_to(tmp_path / "y.npy", tmp_path / name, inverse=True)
    np.testing.assert_allclose(read(tmp_path / name), x, atol=1e-4)


def test_a_parquet_file_has_a_row_group_for_each_block(fitted, x, tmp_path):
    fitted.transform_to(x, tmp_path / "y.parquet")
    file = pyarrow.parquet.ParquetFile(tmp_path / "y.parquet")
    sizes = [file.metadata.row_group(at).num_rows for at in range(file.metadata.num_row_groups)]
    assert sizes == [256] * 7 + [208] and file.schema_arrow.names == list("01234")


def test_what_is_written_can_be_opened_as_rows(fitted, x, tmp_path):
    # A block of zeros is a chunk like any other.
    x[:1024] = fitted.mean_
    fitted.mean_ = x[0].astype(np.float64)
    fitted.transform_to(x, tmp_path / "y.zarr")
    rows = open_rows(tmp_path / "y.zarr")
    assert not rows.read(0, 1024).any() and rows.read(1024, 2000).any()


def test_ids_are_kept_beside(fitted, x, tmp_path):
    ids = np.array([f"cell {i}" for i in range(len(x))])
    fitted.transform_to(open_rows(x, ids=ids), tmp_path / "y.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "y.ids.npy", allow_pickle=False), ids)


def test_nonfinite_rows_are_refused_or_become_nan(fitted, x, tmp_path):
    x[700, 2], x[1500, 0] = np.nan, -np.inf
    np.save(tmp_path / "x.npy", x)
    with pytest.raises(InputError, match=r"x.npy has nan at row 700, column 2"):
        fitted.transform_to(tmp_path / "x.npy", tmp_path / "y.npy")
    assert os.listdir(tmp_path) == ["x.npy"]
    fitted.transform_to(tmp_path / "x.npy", tmp_path / "y.npy", drop_nonfinite=True)
    found = np.load(tmp_path / "y.npy")
    lost = np.isin(np.arange(2000), [700, 1500])
    assert np.isnan(found[lost]).all()
    np.testing.assert_array_equal(found[~lost], fitted.transform(x[~lost]))


class Failing(Rows):
    """Rows of which the later blocks cannot be read."""

    def __init__(self, x):
        super().__init__("failing", x.shape, x.dtype)
        self._x = x

    def _read(self, start, stop):
        if start > 500:
            raise OSError(5, "Input/output error")
        return self._x[start:stop]


@pytest.mark.parametrize("name", ["y.npy", "y.zarr", "y.parquet"])
def test_after_a_failure_the_old_file_is_there_and_nothing_else(fitted, x, tmp_path, name):
    fitted.transform_to(x, tmp_path / name)
    before = read(tmp_path / name)
    with pytest.raises(InputError, match="failing could not be read: Input/output error"):
        fitted.transform_to(Failing(x), tmp_path / name, overwrite=True)
    assert os.listdir(tmp_path) == [name]
    np.testing.assert_array_equal(read(tmp_path / name), before)


@pytest.mark.parametrize("name", ["y.npy", "y.zarr", "y.parquet"])
def test_an_existing_file_is_replaced_only_on_request(fitted, x, tmp_path, name):
    fitted.transform_to(x, tmp_path / name)
    with pytest.raises(InputError, match="already exists"):
        fitted.transform_to(x[:50], tmp_path / name)
    fitted.transform_to(x[:50], tmp_path / name, overwrite=True)
    assert read(tmp_path / name).shape == (50, 5) and os.listdir(tmp_path) == [name]


def test_the_input_is_never_written_over(fitted, x, tmp_path):
    np.save(tmp_path / "x.npy", x)
    zarr.save_array(str(tmp_path / "x.zarr"), x)
    os.symlink(tmp_path / "x.npy", tmp_path / "link.npy")
    places = [("x.npy", "x.npy"), ("x.npy", "link.npy"), ("x.zarr", "x.zarr"), ("x.zarr", "x.zarr/y.npy")]
    for source, target in places:
        with pytest.raises(InputError, match="would damage the input"):
            fitted.transform_to(tmp_path / source, tmp_path / target, overwrite=True)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), x)


def test_a_folder_that_is_no_zarr_is_not_replaced(fitted, x, tmp_path):
    (tmp_path / "y.zarr").mkdir()
    (tmp_path / "y.zarr" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="is not a zarr directory"):
        fitted.transform_to(x, tmp_path / "y.zarr", overwrite=True)
    assert (tmp_path / "y.zarr" / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize(
    ("target", "words"),
    [("y.csv", r"Rows are written as \.npy"), ("no/y.npy", "There is no folder"), ("no/y.zarr", "no folder")],
)
def test_bad_targets_are_told(fitted, x, tmp_path, target, words):
    with pytest.raises(InputError, match=words):
        fitted.transform_to(x, tmp_path / target)


def test_a_full_disk_is_told_before_writing(fitted, x, tmp_path, monkeypatch):
    monkeypatch.setattr(stream.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1000}))
    with pytest.raises(InputError, match=r"y.npy needs 40 kB of disk space, but 1 kB are free"):
        fitted.transform_to(x, tmp_path / "y.npy")


def test_wrong_widths_are_told(x, tmp_path):
    fitted = ICA(n_components=3).fit(x)
    with pytest.raises(InputError, match="but the fit used 5"):
        fitted.transform_to(open_rows(x[:, :4]), tmp_path / "y.npy")
    with pytest.raises(InputError, match="3 columns are expected, one for each component"):
        fitted.transform_to(x, tmp_path / "y.npy", inverse=True)


def test_ids_are_never_those_of_other_rows(fitted, x, tmp_path):
    named = open_rows(x, ids=np.arange(len(x)))
    (tmp_path / "y.ids.npy").write_bytes(b"mine")
    with pytest.raises(InputError, match=r"y\.ids\.npy already exists"):
        fitted.transform_to(named, tmp_path / "y.npy")
    assert (tmp_path / "y.ids.npy").read_bytes() == b"mine"
    fitted.transform_to(named, tmp_path / "y.npy", overwrite=True)
    np.testing.assert_array_equal(np.load(tmp_path / "y.ids.npy"), np.arange(len(x)))
    fitted.transform_to(x[:500], tmp_path / "y.npy", overwrite=True)
    assert sorted(os.listdir(tmp_path)) == ["y.npy"]


class Named(Failing):
    """Failing rows with ids."""

    def __init__(self, x, ids):
        super().__init__(x)
        self.ids = ids


@pytest.mark.parametrize("name", ["y.npy", "y.zarr", "y.parquet"])
def test_after_a_failure_the_old_ids_are_beside_the_old_rows(fitted, x, tmp_path, name, monkeypatch):
    ids = np.arange(len(x))
    beside = stream.ids_path(tmp_path / name)
    fitted.transform_to(open_rows(x, ids=ids), tmp_path / name)
    before = read(tmp_path / name)

    def nothing_changed():
        assert sorted(os.listdir(tmp_path)) == sorted([beside.name, name])
        np.testing.assert_array_equal(np.load(beside), ids)
        np.testing.assert_array_equal(read(tmp_path / name), before)

    for rows in (Failing(x), Named(x, ids + 7)):
        with pytest.raises(InputError, match="failing could not be read"):
            fitted.transform_to(rows, tmp_path / name, overwrite=True)
        nothing_changed()
    # The last moment: everything is written, but the rows cannot be put in place.
    put = "rename" if name == "y.zarr" else "replace"
    really = getattr(os, put)

    def refuse_rows(source, target):
        if os.fspath(target) == os.fspath(tmp_path / name) and not os.fspath(source).endswith("old"):
            raise OSError(5, "Input/output error")
        really(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, put, refuse_rows)
        with pytest.raises(InputError, match="Could not write"):
            fitted.transform_to(open_rows(x + 1, ids=ids + 7), tmp_path / name, overwrite=True)
    nothing_changed()


def test_a_kill_amid_the_change_leaves_no_ids_rather_than_wrong_ones(fitted, x, tmp_path, monkeypatch):
    fitted.transform_to(open_rows(x, ids=np.arange(len(x))), tmp_path / "y.npy")
    seen = []
    really = os.replace

    def look(source, target):
        seen.append((tmp_path / "y.ids.npy").exists())
        really(source, target)
        seen.append((tmp_path / "y.ids.npy").exists())

    monkeypatch.setattr(os, "replace", look)
    fitted.transform_to(open_rows(x, ids=np.arange(len(x)) + 7), tmp_path / "y.npy", overwrite=True)
    assert seen == [False, False]
    assert np.load(tmp_path / "y.ids.npy")[0] == 7


def test_rows_of_both_formats_have_ids_of_their_own(fitted, x, tmp_path):
    fitted.transform_to(open_rows(x, ids=np.arange(len(x))), tmp_path / "y.npy")
    fitted.transform_to(open_rows(x, ids=np.arange(len(x)) + 7), tmp_path / "y.zarr")
    fitted.transform_to(x, tmp_path / "y.zarr", overwrite=True)
    assert sorted(os.listdir(tmp_path)) == ["y.ids.npy", "y.npy", "y.zarr"]
    assert np.load(tmp_path / "y.ids.npy")[0] == 0

"""`nearid apply` as a user types it."""

import os

import numpy as np
import pytest

from nearid import ICA


@pytest.fixture
def fitted(tmp_path):
    rng = np.random.default_rng(0)
    x = (rng.laplace(size=(3000, 4)) @ rng.normal(size=(4, 4)) + 1).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "new.npy", x[:100] * 2)
    fitted = ICA().fit(x)
    fitted.save(tmp_path / "model")
    return fitted


def test_components_and_back(nearid, fitted, tmp_path):
    done = nearid("apply", "model", "new.npy", "-o", "s.npy")
    assert done.returncode == 0 and done.stdout == "" and "100 rows written to s.npy" in done.stderr
    new = np.load(tmp_path / "new.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "s.npy"), fitted.transform(new))
    assert nearid("apply", "model", "s.npy", "-o", "back.npy", "--inverse").returncode == 0
    np.testing.assert_allclose(np.load(tmp_path / "back.npy"), new, atol=1e-4)


def test_quiet_leaves_stderr_empty(nearid, fitted, tmp_path):
    done = nearid("apply", "model", "new.npy", "-o", "s.npy", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "") and (tmp_path / "s.npy").exists()


def test_zarr_and_ids(nearid, fitted, tmp_path):
    import pandas as pd
    import zarr

    new = np.load(tmp_path / "new.npy")
    pd.DataFrame(new).add_prefix("f").assign(cell=range(100, 200)).to_parquet(tmp_path / "new.parquet")
    assert nearid("apply", "model", "new.parquet", "-o", "s.zarr", "--ids", "cell").returncode == 0
    np.testing.assert_array_equal(zarr.open(str(tmp_path / "s.zarr"))[:], fitted.transform(new))
    assert np.load(tmp_path / "s.zarr.ids.npy", allow_pickle=False).tolist() == list(range(100, 200))


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["none", "new.npy", "-o", "s.npy"], "There is no folder none, but a model is expected"),
        (["model/model.json", "new.npy", "-o", "s.npy"], "is a file, but a model is a folder"),
        (["modle", "new.npy", "-o", "s.npy"], "There is no folder modle, but a model is expected. Did you mean model?"),
        (["empty", "new.npy", "-o", "s.npy"], "The folder empty is not a model: it has no file model.json"),
        (["damaged", "new.npy", "-o", "s.npy"], "not a whole JSON file"),
        (["model", "missing.npy", "-o", "s.npy"], "There is no file named 'missing.npy'"),
        (["model", "new.npy", "-o", "s.csv"], "Rows are written as .npy"),
        (["model", "new.npy", "-o", "no/s.npy"], "There is no folder"),
        (["model", "new.npy", "-o", "x.npy"], "already exists"),
        (["model", "new.npy", "-o", "new.npy", "--overwrite"], "would damage the input"),
        (["model", "rows.ids.npy", "-o", "rows.npy", "--overwrite"], "would damage the input"),
        (["model", "narrow.npy", "-o", "s.npy"], "narrow.npy has 3 columns, but the fit used 4"),
        (["model", "narrow.npy", "-o", "s.npy", "--inverse"], "4 columns are expected, one for each component"),
        (["model", "nan.npy", "-o", "s.npy"], "nan at row 7, column 1"),
    ],
)
def test_bad_input_gets_a_sentence(refused, fitted, tmp_path, args, words):
    new = np.load(tmp_path / "new.npy")
    np.save(tmp_path / "narrow.npy", new[:, :3])
    new[7, 1] = np.nan
    np.save(tmp_path / "nan.npy", new)
    np.save(tmp_path / "rows.ids.npy", new)
    (tmp_path / "empty").mkdir()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "model.json").write_text("{")
    before = sorted(os.listdir(tmp_path))
    assert words in refused("apply", *args)
    assert sorted(os.listdir(tmp_path)) == before


def test_bad_input_has_exit_code_2(nearid, fitted):
    done = nearid("apply", "model", "new.npy", "-o", "x.npy")
    assert done.returncode == 2 and done.stderr.startswith("nearid: x.npy already exists")


def test_rows_with_nan_become_nan_on_request(nearid, fitted, tmp_path):
    new = np.load(tmp_path / "new.npy")
    new[7, 1] = np.nan
    np.save(tmp_path / "nan.npy", new)
    assert nearid("apply", "model", "nan.npy", "-o", "s.npy", "--drop-nonfinite").returncode == 0
    assert np.isnan(np.load(tmp_path / "s.npy")).any(axis=1).nonzero()[0].tolist() == [7]

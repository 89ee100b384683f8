"""Opening any source."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nearid.arrays import open_rows, pair_rows
from nearid.base.errors import InputError


def test_missing_files_name_their_neighbours(tmp_path: Path) -> None:
    np.save(tmp_path / "latents_a.npy", np.zeros((3, 2)))
    with pytest.raises(InputError, match=r"no file named 'latent_a\.npy' in .*Did you mean 'latents_a\.npy'"):
        open_rows(tmp_path / "latent_a.npy")
    with pytest.raises(InputError, match=r"the folder .*nowhere does not exist"):
        open_rows(str(tmp_path / "nowhere" / "x.npy"))


@pytest.mark.parametrize("name", ["x.pkl", "x.pickle", "x.joblib", "X.PKL"])
def test_pickles_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(pickle.dumps(np.zeros((3, 2))))
    with pytest.raises(InputError, match=r"never unpickles.*np\.save"):
        open_rows(tmp_path / name)


@pytest.mark.parametrize("name", ["x.txt", "x", "x.gz", ".npy", "x.npy.gz"])
def test_unknown_suffixes(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"1,2\n")
    with pytest.raises(InputError, match=r"Supported: \.npy, .*\.csv\.gz, .*\.zarr"):
        open_rows(tmp_path / name)


def test_directories(tmp_path: Path) -> None:
    (tmp_path / "x.npy").mkdir()
    for path in (tmp_path, tmp_path / "x.npy"):
        with pytest.raises(InputError, match=r"is a directory, but a file or a directory named \*\.zarr is"):
            open_rows(path)


def test_suffixes_in_capitals_and_dots_in_names(tmp_path: Path) -> None:
    with (tmp_path / "run.v1.2.NPY").open("wb") as file:
        np.save(file, np.zeros((3, 2)))
    assert open_rows(tmp_path / "run.v1.2.NPY").shape == (3, 2)


def test_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    np.save(tmp_path / "x.npy", np.zeros((3, 2)))
    assert open_rows("~/x.npy").name == "x.npy"


def test_a_key_behind_the_path(tmp_path: Path) -> None:
    np.savez(tmp_path / "run.npz", a=np.zeros((3, 2)), b=np.ones((3, 4)))
    assert open_rows(f"{tmp_path}/run.npz:b").shape == (3, 4)
    with pytest.raises(InputError, match="nothing named 'c'"):
        open_rows(f"{tmp_path}/run.npz:c")
    # A file that has a colon in its name is meant before an entry of another one.
    np.save(tmp_path / "run.npz:x.npy", np.zeros((5, 2)))
    assert open_rows(tmp_path / "run.npz:x.npy").shape == (5, 2)
    with pytest.raises(InputError, match=r"no file named 'no\.npz:b'"):
        open_rows(tmp_path / "no.npz:b")


def test_a_series_is_one_column(rng: np.random.Generator) -> None:
    first = pd.Series([1.0, 2.0, 3.0], index=["a", "b", "c"], name="size")
    rows = open_rows(first)
    assert (rows.name, rows.shape, rows.columns) == ("series", (3, 1), ("size",))
    x, y = pair_rows(rows, open_rows(first[::-1] * 10)).read(0, 3)
    assert x.tolist() == [[1], [2], [3]] and y.tolist() == [[10], [20], [30]]
    # Whole numbers that count the rows are values all the same.
    assert open_rows(pd.Series([0, 1, 2])).read(0, 3).tolist() == [[0], [1], [2]]
    with pytest.raises(InputError, match="series has no numeric columns"):
        open_rows(pd.Series(["x", "y"]))


def test_what_is_no_rows_is_named_with_its_type() -> None:
    with pytest.raises(InputError, match="array is None, but rows of numbers are expected"):
        open_rows(None)
    with pytest.raises(InputError, match="array is an int, but rows"):
        open_rows(3)

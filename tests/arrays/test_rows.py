"""What holds for rows of every kind."""

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nearid.arrays import first_nonfinite, open_rows
from nearid.base.errors import InputError


def test_every_format_gives_the_same_rows(written: Path, matrix: np.ndarray) -> None:
    rows = open_rows(written)
    assert rows.shape == matrix.shape
    assert rows.dtype == (np.float64 if written.name.endswith((".csv", ".tsv.gz")) else np.float32)
    assert rows.name.startswith(written.name)
    block = rows.read(0, len(matrix))
    assert block.dtype == rows.dtype and block.dtype.isnative
    np.testing.assert_array_equal(block, matrix)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_read_and_take_are_numpy_slicing(written: Path, matrix: np.ndarray, data: st.DataObject) -> None:
    rows, n = open_rows(written), len(matrix)
    start = data.draw(st.integers(0, n))
    stop = data.draw(st.integers(start, n))
    np.testing.assert_array_equal(rows.read(start, stop), matrix[start:stop])
    indices = np.array(data.draw(st.lists(st.integers(0, n - 1))), dtype=int)
    np.testing.assert_array_equal(rows.take(indices), matrix[indices])


def test_reads_from_threads(written: Path, matrix: np.ndarray) -> None:
    rows = open_rows(written)
    starts = np.random.default_rng(1).integers(0, 30, 200).tolist()
    with ThreadPoolExecutor(8) as pool:
        for start, block in zip(starts, pool.map(lambda at: rows.read(at, at + 7), starts), strict=True):
            np.testing.assert_array_equal(block, matrix[start : start + 7])


def test_rows_of_files_travel_to_other_processes(written: Path, matrix: np.ndarray) -> None:
    rows = open_rows(written)
    rows.read(0, 5)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(rows)).read(3, 9), matrix[3:9])


def test_fingerprint_follows_the_numbers(written: Path, matrix: np.ndarray) -> None:
    rows = open_rows(written)
    assert rows.fingerprint() == open_rows(matrix.astype(rows.dtype)).fingerprint()
    assert len(rows.fingerprint()) == 16
    other = matrix.astype(rows.dtype)
    other[11, 2] += 1
    assert rows.fingerprint() != open_rows(other).fingerprint()


def test_fingerprint_reads_few_rows_of_many() -> None:
    x = np.random.default_rng(0).normal(size=(100_000, 3))
    rows = open_rows(x)
    taken = []
    rows._take = lambda indices: taken.append(indices) or x[indices]  # type: ignore[method-assign]
    rows.fingerprint()
    assert len(taken[0]) == 256 and taken[0][0] == 0 and taken[0][-1] == len(x) - 1


@pytest.mark.parametrize("start, stop", [(-1, 3), (3, 2), (0, 38)])
def test_read_refuses_rows_outside(matrix: np.ndarray, start: int, stop: int) -> None:
    with pytest.raises(IndexError, match=r"which has 37 rows"):
        open_rows(matrix).read(start, stop)


def test_take_refuses_masks_and_rows_outside(written: Path) -> None:
    rows = open_rows(written)
    with pytest.raises(IndexError, match=r"dtype bool"):
        rows.take(np.ones(37, bool))
    with pytest.raises(IndexError, match=r"Row -1"):
        rows.take(np.array([0, -1]))
    with pytest.raises(IndexError, match=r"Row 37"):
        rows.take(np.array([37, 0]))


def test_first_nonfinite() -> None:
    block = np.zeros((4, 3))
    assert first_nonfinite(block, 10) is None
    block[2, 1], block[3, 0] = -np.inf, np.nan
    assert first_nonfinite(block, 10) == (12, 1, -np.inf)


def test_import_loads_only_numpy() -> None:
    code = (
        "import sys, nearid.arrays\n"
        "heavy = {'torch', 'h5py', 'zarr', 'pyarrow', 'pandas', 'scipy', 'sklearn'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_open_rows_passes_rows_through(matrix: np.ndarray) -> None:
    rows = open_rows(matrix)
    assert open_rows(rows) is rows
    with pytest.raises(InputError, match=r"open already"):
        open_rows(rows, ids=np.arange(37))

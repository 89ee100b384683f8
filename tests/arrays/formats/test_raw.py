import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from nearid.arrays import open_rows
from nearid.base.errors import InputError


@pytest.mark.parametrize("dtype", ["f2", "f4", ">f8", "i4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_is_bounded_by_the_block(tmp_path: Path, dtype: str, order: str) -> None:
    n, d = 200_000, 16
    np.save(tmp_path / "x.npy", np.zeros((n, d), dtype, order=order))
    rows = open_rows(tmp_path / "x.npy")
    tracemalloc.start()
    for start in range(0, n, 2000):
        rows.read(start, start + 2000)
    rows.take(np.arange(0, n, 100))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * 2000 * d * 8 < n * d * np.dtype(dtype).itemsize


def test_a_file_that_shrinks_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((1000, 4)))
    rows = open_rows(path)
    with path.open("r+b") as file:
        file.truncate(500)
    with pytest.raises(InputError, match="became shorter while it was read"):
        rows.read(0, 100)
    with pytest.raises(InputError, match="became shorter while it was read"):
        rows.take(np.array([5, 900]))


@pytest.mark.parametrize("order", ["C", "F"])
def test_no_file_is_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str) -> None:
    # Of a mapped file that shrinks, the next page kills the process.
    x = np.random.default_rng(0).normal(size=(50, 3)).astype(">f4", order=order)
    np.save(tmp_path / "x.npy", x)
    monkeypatch.delattr(np, "memmap")
    rows = open_rows(tmp_path / "x.npy")
    np.testing.assert_array_equal(rows.read(7, 31), x[7:31])
    np.testing.assert_array_equal(rows.take(np.array([40, 3, 3, 0])), x[[40, 3, 3, 0]])
    with (tmp_path / "x.npy").open("r+b") as file:
        file.truncate(500)
    for read in (lambda: rows.read(0, 50), lambda: rows.take(np.array([49]))):
        with pytest.raises(InputError, match="became shorter while it was read"):
            read()

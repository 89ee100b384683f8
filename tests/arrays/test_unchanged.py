import os
from pathlib import Path

import numpy as np
import pytest

from nearid.arrays import open_rows
from nearid.arrays.held import MemoryRows
from nearid.arrays.unchanged import unchanged
from nearid.base.errors import InputError


def write_to(path: Path) -> None:
    """Give a file another time, a second later, as one that is written to."""
    later = os.stat(path).st_mtime_ns + 10**9
    os.utime(path, ns=(later, later))


def test_files_that_change_are_refused(written: Path, matrix: np.ndarray) -> None:
    rows = open_rows(written)
    np.testing.assert_array_equal(rows.read(0, 37), matrix)
    chunks = [file for file in written.rglob("*") if file.is_file() and "json" not in file.name and file.name[0] != "."]
    write_to(sorted(chunks)[0] if written.is_dir() else written)
    if isinstance(rows, MemoryRows):
        # Loaded whole, so that the numbers are of one state.
        np.testing.assert_array_equal(rows.read(0, 37), matrix)
        return
    with pytest.raises(InputError, match=r"changed while it was read.*Run again once nothing writes to it"):
        rows.read(0, 37)
    with pytest.raises(InputError, match="changed while it was read"):
        rows.fingerprint()


def test_a_change_while_a_file_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(InputError, match=r"x\.csv changed"), unchanged(str(tmp_path / "x.csv"), "x.csv"):
        write_to(tmp_path / "x.csv")


def test_layers_of_an_extraction_that_change(tmp_path: Path) -> None:
    from nearid.questions.extract.run import extract

    torch = pytest.importorskip("torch")
    found = extract(torch.nn.Sequential(torch.nn.Linear(3, 2)), np.ones((4, 3), np.float32), out=tmp_path / "run")
    layer = next(iter(found))
    rows = open_rows(f"{tmp_path}/run:{layer}")
    assert rows.read(0, 4).shape == (4, 2)
    write_to(next(file for file in (tmp_path / "run").glob("*.npy") if file.name != "ids.npy"))
    with pytest.raises(InputError, match="changed while it was read"):
        rows.read(0, 4)

import shutil
from pathlib import Path

import numpy as np
import pytest

from nearid.arrays import open_rows
from nearid.errors import InputError

zarr = pytest.importorskip("zarr")


@pytest.mark.parametrize("version", [2, 3])
def test_missing_chunks_are_refused(tmp_path: Path, version: int) -> None:
    path = tmp_path / "x.zarr"
    zarr.create_array(path, data=np.ones((20, 6)), chunks=(5, 3), zarr_format=version)
    np.testing.assert_array_equal(open_rows(path).read(0, 20), np.ones((20, 6)))
    chunk = path / "2.1" if version == 2 else path / "c" / "2" / "1"
    chunk.unlink()
    with pytest.raises(
        InputError, match=r"x\.zarr lacks 1 of its 8 chunks.*would read as 0\.0.*write_empty_chunks=True"
    ):
        open_rows(path)


def test_the_advice_for_empty_chunks_works(tmp_path: Path) -> None:
    x = np.zeros((20, 6))
    zarr.create_array(tmp_path / "x.zarr", data=x, chunks=(5, 3))
    with pytest.raises(InputError, match=r"lacks 8 of its 8 chunks"):
        open_rows(tmp_path / "x.zarr")
    shutil.rmtree(tmp_path / "x.zarr")
    zarr.create_array(tmp_path / "x.zarr", data=x, chunks=(5, 3), config={"write_empty_chunks": True})
    np.testing.assert_array_equal(open_rows(tmp_path / "x.zarr").read(3, 9), x[3:9])


def test_missing_shards_are_refused(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "x.zarr", data=np.ones((20, 6)), chunks=(5, 3), shards=(10, 6))
    assert open_rows(tmp_path / "x.zarr").shape == (20, 6)
    (tmp_path / "x.zarr" / "c" / "1" / "0").unlink()
    with pytest.raises(InputError, match=r"lacks 4 of its 8 chunks"):
        open_rows(tmp_path / "x.zarr")


@pytest.mark.parametrize("version", [2, 3])
def test_groups(tmp_path: Path, version: int) -> None:
    path = tmp_path / "x.zarr"
    group = zarr.create_group(path, zarr_format=version)
    group.create_array("a/one", data=np.ones((3, 2)))
    group.create_array("a/two", data=np.ones((3, 4), ">f4"))
    group.create_array("ids", data=np.array([7, 8, 9]))
    with pytest.raises(InputError, match=r"'a/\w+' \(3, \d\).*key='a/"):
        open_rows(path)
    rows = open_rows(path, key="a/two", ids="ids")
    assert rows.name == "x.zarr:a/two" and rows.dtype == np.float32
    assert rows.ids is not None and rows.ids.tolist() == [7, 8, 9]
    with pytest.raises(InputError, match=r"Did you mean 'a/two'"):
        open_rows(path, key="a/tow")
    with pytest.raises(InputError, match=r"'id' \(given as ids\). Did you mean 'ids'"):
        open_rows(path, key="a/two", ids="id")


def test_damaged_chunks(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "x.zarr", data=np.ones((20, 6)), chunks=(5, 3))
    (tmp_path / "x.zarr" / "c" / "1" / "0").write_bytes(b"\x01\x02\x03")
    rows = open_rows(tmp_path / "x.zarr")
    rows.read(0, 5)
    with pytest.raises(InputError, match=r"not a whole zarr array"):
        rows.read(3, 9)


def test_directories_that_zarr_did_not_write(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    path.mkdir()
    with pytest.raises(InputError, match=r"is not a whole zarr directory: .*Give the directory that zarr wrote"):
        open_rows(path)
    (path / "zarr.json").write_text("{")
    with pytest.raises(InputError, match=r"is not a whole zarr directory: .*Give the directory that zarr wrote"):
        open_rows(path)
    (tmp_path / "y.zarr").write_text("no directory")
    with pytest.raises(InputError, match=r"not a zarr directory"):
        open_rows(tmp_path / "y.zarr")

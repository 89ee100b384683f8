import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

from nearid.arrays import open_rows
from nearid.base.errors import InputError

zarr = pytest.importorskip("zarr")


@pytest.mark.parametrize("version", [2, 3])
def test_missing_chunks_are_refused(tmp_path: Path, version: int) -> None:
    path = tmp_path / "x.zarr"
    zarr.create_array(path, data=np.ones((20, 6)), chunks=(5, 3), zarr_format=version)
    np.testing.assert_array_equal(open_rows(path).read(0, 20), np.ones((20, 6)))
    chunk = path / "2.1" if version == 2 else path / "c" / "2" / "1"
    chunk.unlink()
    with pytest.raises(
        InputError, match=r"x\.zarr lacks 1 of its 8 chunks.*would be read as 0\.0.*write_empty_chunks=True"
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


@pytest.mark.parametrize("shards", [None, (10, 8)])
def test_every_chunk_is_asked_for(tmp_path: Path, shards: tuple[int, int] | None) -> None:
    # Shards may reach beyond the array, and may lack chunks themselves.
    x = np.random.default_rng(0).normal(size=(23, 6))
    array = zarr.create_array(tmp_path / "x.zarr", shape=x.shape, dtype="f8", chunks=(5, 4), shards=shards)
    array[:5], array[10:] = x[:5], x[10:]
    with pytest.raises(InputError, match=r"lacks 2 of its 10 chunks, which would be read as 0\.0"):
        open_rows(tmp_path / "x.zarr")
    array[:] = x
    np.testing.assert_array_equal(open_rows(tmp_path / "x.zarr").read(0, 23), x)


def test_a_shard_that_is_missing_where_shards_reach_beyond_the_array(tmp_path: Path) -> None:
    # Two shards of 20 places each, of which 10 are in use: one of them alone has room for all 20 chunks.
    zarr.create_array(tmp_path / "x.zarr", data=np.ones((100, 2)), chunks=(10, 1), shards=(50, 4))
    (tmp_path / "x.zarr" / "c" / "1" / "0").unlink()
    with pytest.raises(InputError, match=r"lacks 10 of its 20 chunks"):
        open_rows(tmp_path / "x.zarr")


def test_shards_cut_short(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "x.zarr", data=np.ones((20, 6)), chunks=(5, 3), shards=(10, 6))
    (tmp_path / "x.zarr" / "c" / "1" / "0").write_bytes(b"short")
    with pytest.raises(InputError, match=r"c/1/0 is too short for the index of a shard"):
        open_rows(tmp_path / "x.zarr")


def declare(path: Path, shape: list[int], chunks: list[int]) -> None:
    about = json.loads((path / "zarr.json").read_text())
    about["shape"], about["chunk_grid"]["configuration"]["chunk_shape"] = shape, chunks
    (path / "zarr.json").write_text(json.dumps(about))


@pytest.mark.parametrize(
    "shape, chunks, message",
    [
        ([20, 6], [0, 6], r"chunks of shape \(0, 6\): its metadata are damaged|not a whole zarr"),
        ([10**12, 6], [1, 1], r"lacks \d+ or more of its 6000000000000 chunks"),
        ([10**8, 6], [5, 6], r"lacks \d+ or more of its 20000000 chunks"),
        ([20, 10**12], [20, 10**12], r"A chunk of x\.zarr needs 160 TB of memory"),
    ],
)
def test_metadata_that_declare_too_much(tmp_path: Path, shape: list[int], chunks: list[int], message: str) -> None:
    zarr.create_array(tmp_path / "x.zarr", data=np.ones((20, 6)), chunks=(5, 6))
    declare(tmp_path / "x.zarr", shape, chunks)
    with pytest.raises(InputError, match=message):
        open_rows(tmp_path / "x.zarr")


def test_chunks_that_are_links(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    zarr.create_array(path, data=np.ones((20, 6)), chunks=(5, 6), compressors=None)
    chunk = path / "c" / "2" / "0"
    chunk.unlink()
    chunk.symlink_to("0")
    with pytest.raises(InputError, match="lacks 1 of its 4 chunks"):
        open_rows(path)
    chunk.unlink()
    chunk.symlink_to("/etc/passwd")
    with pytest.raises(InputError, match="not a whole zarr array"):
        open_rows(path).read(0, 20)


class Bomb:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("dtype, codecs", [("|O", ["vlen-utf8", "pickle"]), ("|O", ["pickle"]), ("<f8", ["pickle"])])
def test_codecs_that_unpickle_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str, codecs: list[str]
) -> None:
    # What numcodecs did without asking before 0.16.6.
    monkeypatch.setenv("NUMCODECS_ALLOW_UNSAFE_PICKLE_DECODE", "1")
    path = tmp_path / "x.zarr"
    zarr.create_group(path, zarr_format=2).create_array("x", data=np.ones((3, 2)))
    (path / "ids").mkdir()
    about = {"shape": [3], "chunks": [3], "dtype": dtype, "fill_value": None, "order": "C", "zarr_format": 2}
    about |= {"filters": [{"id": codec} for codec in codecs], "compressor": None}
    (path / "ids" / ".zarray").write_text(json.dumps(about))
    (path / "ids" / "0").write_bytes(pickle.dumps(Bomb(tmp_path / "ran")))
    with pytest.raises(InputError, match=r"x\.zarr"):
        open_rows(path, key="x", ids="ids")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("version", [2, 3])
def test_ids_of_any_length(tmp_path: Path, version: int) -> None:
    group = zarr.create_group(tmp_path / "x.zarr", zarr_format=version)
    group.create_array("x", data=np.ones((3, 2)))
    group.create_array("ids", shape=(3,), dtype=str)[:] = np.array(["a", "longer than that", "c"], object)
    ids = open_rows(tmp_path / "x.zarr", ids="ids").ids
    assert ids is not None and ids.tolist() == ["a", "longer than that", "c"]


def test_metadata_that_point_outside(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "secret.zarr", data=np.ones((3, 2)))
    zarr.create_group(tmp_path / "g.zarr")
    about = json.loads((tmp_path / "g.zarr" / "zarr.json").read_text())
    inside = json.loads((tmp_path / "secret.zarr" / "zarr.json").read_text())
    about["consolidated_metadata"] = {
        "kind": "inline",
        "must_understand": False,
        "metadata": {"../secret.zarr": inside},
    }
    (tmp_path / "g.zarr" / "zarr.json").write_text(json.dumps(about))
    for key in (None, "../secret.zarr"):
        with pytest.raises(InputError, match=r"g\.zarr"):
            open_rows(tmp_path / "g.zarr", key=key)


@pytest.mark.parametrize(
    ("version", "file"),
    [(2, "a/.zattrs"), (2, "a/b/.zarray"), (2, "a/b/.zattrs"), (3, "a/zarr.json"), (3, "a/b/zarr.json")],
)
@pytest.mark.parametrize("linked", [False, True])
def test_pipes_in_nested_groups_are_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, file: str, linked: bool
) -> None:
    path = tmp_path / "x.zarr"
    zarr.create_group(path, zarr_format=version).create_array("a/b", data=np.ones((3, 2)))
    (path / file).unlink(missing_ok=True)
    os.mkfifo(tmp_path / "pipe" if linked else path / file)
    if linked:
        (path / file).symlink_to(tmp_path / "pipe")
    monkeypatch.setattr("zarr.open", lambda *_, **__: pytest.fail("it was opened"))
    with pytest.raises(InputError, match=rf"{file} in x\.zarr is not a regular file"):
        open_rows(path, key="a/b")


def test_links_to_groups_are_refused_and_those_to_arrays_followed(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    zarr.create_group(path).create_array("a/b", data=np.ones((3, 2)))
    (path / "c").symlink_to(path / "a" / "b")
    assert open_rows(path, key="c").shape == (3, 2)
    (path / "a" / "up").symlink_to(path)
    with pytest.raises(InputError, match=r"a/up in x\.zarr is a link to a group"):
        open_rows(path, key="a/b")

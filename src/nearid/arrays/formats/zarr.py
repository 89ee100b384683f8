"""Zarr directories, format 2 or 3."""

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from nearid.arrays.formats.registry import Contents, Format
from nearid.arrays.formats.zarr_store import remote_store
from nearid.arrays.names import Entry
from nearid.arrays.reading import damage_told
from nearid.arrays.remote import can_list
from nearid.arrays.rows import Rows
from nearid.arrays.storage import opened, state_of
from nearid.base.addresses import address_of, public
from nearid.base.errors import InputError
from nearid.base.files import replacing_folder
from nearid.base.limits import check_memory

_METADATA = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")
_LISTED = 100_000  # objects of an array in a store are listed up to this number when it is opened
_MANY = 1000  # missing chunks are counted up to this number, because a file may declare any number of chunks


class ZarrContents(Contents):
    """The array of a zarr directory, or the arrays of a zarr group by their paths."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__(path, name)
        import zarr

        with damage_told(name, "zarr directory", "Give the directory that zarr wrote."):
            if address_of(path) is None:
                _check_metadata(path, name)
                root = zarr.open(path, mode="r")
            else:
                root = zarr.open(remote_store(path), mode="r")
            held = dict(root.members(max_depth=None)) if isinstance(root, zarr.Group) else {"": root}
        self._arrays = {entry: array for entry, array in held.items() if isinstance(array, zarr.Array)}

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        return {entry: Entry(array.shape, array.dtype) for entry, array in self._arrays.items()}

    def find(self, wanted: str, option: str) -> str:
        return super().find(wanted.strip("/"), option)

    def array(self, entry: str) -> np.ndarray:
        array, label = self._arrays[entry], self.label(entry)
        _check_stored(array, label)
        check_memory(label, math.prod(array.shape) * array.dtype.itemsize, "Save a part of it.")
        return _values(array, label, slice(None) if array.shape else ())

    def rows(self, entry: str, ids: Any) -> "ZarrRows":
        return ZarrRows(self.label(entry), self._arrays[entry], ids)


def _check_metadata(root: str, name: str) -> None:
    """Raise an error if metadata that zarr would open is not a regular file, such as a pipe."""
    left = [""]
    while left:
        inside = left.pop()
        folder = os.path.join(root, inside)
        for file in _METADATA:
            place = os.path.join(folder, file)
            if os.path.exists(place) and not os.path.isfile(place):
                raise InputError(
                    f"{os.path.join(inside, file)} in {name} is not a regular file, so zarr did not write it. Delete "
                    "it, or copy the directory again."
                )
        if not _is_group(folder):
            continue  # zarr does not search deeper, and an array may have millions of chunks
        if os.path.islink(folder) and inside:
            raise InputError(
                f"{inside} in {name} is a link to a group, which could form a loop. Replace the link by a copy."
            )
        with os.scandir(folder) as held:
            left += [os.path.join(inside, each.name) for each in held if each.is_dir()]


def _is_group(folder: str) -> bool:
    if os.path.exists(os.path.join(folder, ".zgroup")):
        return True
    try:
        with open(os.path.join(folder, "zarr.json"), "rb") as file:
            metadata = json.load(file)
    except (OSError, ValueError, RecursionError):
        return False  # zarr raises the error when it opens the folder
    return isinstance(metadata, dict) and metadata.get("node_type") == "group"


class ZarrRows(Rows):
    """Rows of a zarr array, read chunk by chunk."""

    def __init__(self, name: str, array: Any, ids: Any = None) -> None:
        super().__init__(name, array.shape, array.dtype, ids)
        self._newest = _check_stored(array, name)
        self._array = array
        self.window = array.chunks[0]

    def _read(self, start: int, stop: int) -> np.ndarray:
        block = _values(self._array, self.name, slice(start, stop))
        size = _stored_shape(self._array)[0]
        files = _files(self._array, range(start // size, -(-stop // size)))
        if _is_remote(self._array):
            # The reader itself refuses missing chunks, but does not see those inside a shard.
            _refuse_missing(self._array, self.name, sum(_missing_in_shard(self._array, *each) for each in files))
            return block
        for _, path in files:
            if os.stat(path).st_mtime_ns > self._newest:
                raise InputError(f"{self.name} changed while it was read. Run again when no program writes to it.")
        return block


def _is_remote(array: Any) -> bool:
    return address_of(array.store_path.store.root) is not None


def _check_stored(array: Any, name: str) -> int:
    """Raise an error if an array cannot be read safely and completely; return the time of its newest chunk."""
    with damage_told(name, "zarr array"):
        _refuse_pickle(array, name)
        _check_chunks(array, name)
        if _is_remote(array):
            _check_objects(array, name)
            return 0
        return _check_files(array, name)


def _check_chunks(array: Any, name: str) -> None:
    if min(_stored_shape(array), default=1) < 1:
        raise InputError(
            f"{name} declares chunks of shape {array.chunks}: its metadata are damaged. Write or copy it again."
        )
    check_memory(f"A chunk of {name}", math.prod(_stored_shape(array)) * array.dtype.itemsize, "Use smaller chunks.")


def _check_objects(array: Any, name: str) -> None:
    """Raise an error if objects of an array are missing, where a store can list them and there are not too many."""
    grid = [-(-n // size) for n, size in zip(array.shape, _stored_shape(array), strict=True)]
    store = array.store_path.store
    if math.prod(grid) > _LISTED or not can_list(store.root):
        return
    held = store.expect(f"{array.path}/" if array.path else "", math.prod(grid))
    places = (place for place, path in _files(array) if path.removeprefix(f"{store.root}/") not in held)
    _refuse_missing(array, name, sum(math.prod(_inner_grid(array, place)) for place in islice(places, _MANY)))


def _check_files(array: Any, name: str) -> int:
    missing = newest = 0
    for place, path in _files(array):
        if os.path.isfile(path):
            newest = max(newest, os.stat(path).st_mtime_ns)
            missing += _missing_in_shard(array, place, path)
        else:
            missing += math.prod(_inner_grid(array, place))
        if missing >= _MANY:
            break
    _refuse_missing(array, name, missing)
    return newest


def _refuse_missing(array: Any, name: str, missing: int) -> None:
    if missing:
        or_more = " or more" if missing >= _MANY else ""
        raise InputError(
            f"{name} lacks {missing}{or_more} of its {_count(array)} chunks, which would be read as "
            f"{array.fill_value}: it was not written or copied completely. If those chunks really hold only this "
            "value, write the array again with write_empty_chunks=True."
        )


def _refuse_pickle(array: Any, name: str) -> None:
    codecs = (*(getattr(array.metadata, "filters", None) or ()), getattr(array.metadata, "compressor", None))
    if any(getattr(codec, "codec_id", None) == "pickle" for codec in codecs):
        raise InputError(
            f"{name} is stored as a pickle, which could run code when it is loaded, so nearid never unpickles. "
            "Write it again as numbers or as strings of a fixed length."
        )


def _stored_shape(array: Any) -> tuple[int, ...]:
    """Return the shape of the part in one file: a shard of chunks, or a chunk."""
    return tuple(array.shards or array.chunks)


def _files(array: Any, rows: range | None = None) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield the grid position and the path of every file of an array, or of the files in some rows of the grid."""
    folder = "/".join(filter(None, (str(array.store_path.store.root), array.path)))
    grid = [range(-(-n // size)) for n, size in zip(array.shape, _stored_shape(array), strict=True)]
    for place in _places(grid if rows is None else [rows, *grid[1:]]):
        yield place, f"{folder}/{array.metadata.encode_chunk_key(place)}"


def _places(grid: Sequence[range]) -> Iterator[tuple[int, ...]]:
    # itertools.product would first list every axis, which may be very long in a damaged file.
    if not grid:
        yield ()
        return
    for first in grid[0]:
        for rest in _places(grid[1:]):
            yield first, *rest


def _inner_grid(array: Any, place: tuple[int, ...]) -> tuple[int, ...]:
    """Return the number of chunks along each axis of one file, without chunks beyond the end of the array."""
    axes = zip(array.shape, _stored_shape(array), array.chunks, place, strict=True)
    return tuple(-(-min(stored, n - at * stored) // chunk) for n, stored, chunk, at in axes)


def _missing_in_shard(array: Any, place: tuple[int, ...], path: str) -> int:
    """Return the number of chunks that the index of a shard marks as never written."""
    if array.shards is None:
        return 0
    codec = array.metadata.codecs[0].to_dict()["configuration"]
    names = [step["name"] for step in codec["index_codecs"]]
    if names not in (["bytes"], ["bytes", "crc32c"]):
        raise InputError(
            f"The shard index of {public(path)} is stored as {names}, which nearid cannot read. Write the array "
            "with the default index of zarr."
        )
    grid = tuple(shard // chunk for shard, chunk in zip(array.shards, array.chunks, strict=True))
    size, checksum = 16 * math.prod(grid), 4 * (len(names) - 1)
    with opened(path) as file:
        if codec["index_location"] == "end":
            file.seek(max(state_of(path).size - size - checksum, 0))
        index = file.read(size)
    if len(index) < size:
        raise InputError(
            f"{public(path)} is too short for the index of a shard: it is truncated. Write or copy it again."
        )
    inside = np.frombuffer(index, "<u8").reshape(*grid, 2)[tuple(map(slice, _inner_grid(array, place)))]
    return int((inside == np.iinfo(np.uint64).max).all(axis=-1).sum())


def _count(array: Any) -> int:
    return math.prod(-(-n // chunk) for n, chunk in zip(array.shape, array.chunks, strict=True))


def _values(array: Any, name: str, rows: slice | tuple[()]) -> np.ndarray:
    with damage_told(name, "zarr array"):
        return np.asarray(array[rows])


def is_zarr(folder: Path) -> bool:
    """Return whether zarr wrote a folder."""
    return folder.suffix.lower() == ".zarr" and any((folder / file).is_file() for file in _METADATA[:3])


def write_zarr(
    target: Path,
    shape: tuple[int, int],
    dtype: np.dtype[Any],
    blocks: Iterable[np.ndarray],
    change: AbstractContextManager[None] | None = None,
    about: Mapping[str, str] | None = None,
) -> None:
    """Write blocks of rows, one chunk per block. All blocks but the last have the same length."""
    import zarr

    array, start = None, 0
    with replacing_folder(target, change) as folder:
        for block in blocks:
            # Empty chunks are written too, because nearid treats a missing chunk as damage.
            if array is None:
                array = zarr.create_array(
                    str(folder),
                    shape=shape,
                    dtype=dtype,
                    chunks=block.shape,
                    attributes=dict(about or {}),
                    config={"write_empty_chunks": True},
                )
            array[start : start + len(block)] = block
            start += len(block)


class ZarrPart:
    """Writes blocks of rows into an array on disk. It can be sent to other processes that see the same folder.

    Parameters
    ----------
    folder : str
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __call__(self, start: int, block: np.ndarray) -> None:
        import zarr

        # The array itself is not sent: zarr makes its folder where an array arrives, also after the folder was removed.
        array = zarr.open_array(self._folder, mode="r+").with_config({"write_empty_chunks": True})
        # zarr writes a chunk to a temporary file and renames it, so a process that dies leaves no half of a chunk.
        array[start : start + len(block)] = block


@contextmanager
def zarr_parts(
    target: Path, shape: tuple[int, int], dtype: np.dtype[Any], rows: int, change: AbstractContextManager[None] | None
) -> Iterator[ZarrPart]:
    """Give a function that writes blocks of so many rows in any order, from any process, one chunk per block."""
    import zarr

    with replacing_folder(target, change) as folder:
        # Empty chunks are written too, because nearid treats a missing chunk as damage.
        array = zarr.create_array(
            str(folder),
            shape=shape,
            dtype=dtype,
            chunks=(rows, shape[1]),
            config={"write_empty_chunks": True},
        )
        yield ZarrPart(str(folder))
        for left in folder.rglob("*.partial"):
            # The temporary file of a process that was killed.
            left.unlink()
        _check_stored(array, target.name)


ZARR = Format((".zarr",), ZarrContents, write=write_zarr, parts=zarr_parts, is_folder=True, is_at=is_zarr, remote=True)

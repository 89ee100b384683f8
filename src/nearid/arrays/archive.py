"""The .npz format: a zip archive of .npy files."""

import math
import zipfile

import numpy as np

from nearid.arrays.choose import Entry, choose, not_found
from nearid.arrays.damage import damage_told
from nearid.arrays.held import MemoryRows
from nearid.arrays.memory import check_memory, readable
from nearid.arrays.npy import read_header, refuse_objects
from nearid.errors import InputError

_ADVICE = "Write it again with np.savez, or copy it again."


def open_npz(path: str, name: str, key: str | None, ids: str | None) -> MemoryRows:
    """Load one array of an .npz archive."""
    with damage_told(name, ".npz archive", _ADVICE), zipfile.ZipFile(path) as archive:
        members = _members(archive)
        entry = choose(name, {member: _declared(archive, info) for member, info in members.items()}, key)
        if ids is not None and ids not in members:
            raise not_found(name, "ids", ids, members)
        array = _load(archive, members[entry], f"{name}:{entry}")
        row_ids = None if ids is None else _load(archive, members[ids], f"{name}:{ids}")
    return MemoryRows(f"{name}:{entry}", array, row_ids)


def read_columns(path: str, name: str) -> dict[str, np.ndarray] | None:
    """The arrays of an archive that holds one-dimensional arrays alone, by name; None for other archives."""
    with damage_told(name, ".npz archive", _ADVICE), zipfile.ZipFile(path) as archive:
        members = _members(archive)
        if not members or any(len(_declared(archive, info).shape) != 1 for info in members.values()):
            return None
        return {member: _load(archive, info, f"{name}:{member}") for member, info in members.items()}


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    files = [info for info in archive.infolist() if info.filename.endswith(".npy")]
    return {info.filename.removesuffix(".npy"): info for info in files}


def _declared(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Entry:
    with archive.open(info) as member:
        header = read_header(member)
    return Entry(header.shape, header.dtype)


def _load(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> np.ndarray:
    with archive.open(info) as member:
        header = read_header(member)
        refuse_objects(header, name)
        promised = math.prod(header.shape) * header.dtype.itemsize
        held = info.file_size - member.tell()
        if promised != held or min(header.shape, default=0) < 0:
            raise InputError(
                f"{name} promises the shape {header.shape} ({readable(promised)}) but holds {readable(held)}: "
                "it is truncated or its header is damaged. Write or copy the archive again."
            )
        check_memory(name, promised, "Save the array as .npy, which is read block by block.")
        member.seek(0)
        array: np.ndarray = np.lib.format.read_array(member, allow_pickle=False)
        member.read(1)  # the checksum is compared only once the end is reached
    return array

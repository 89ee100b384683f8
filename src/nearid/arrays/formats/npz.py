"""The .npz format: a zip archive of .npy files."""

import os
import zipfile
from typing import IO

import numpy as np

from nearid.arrays.formats.npy import NpyHeader, read_header, refuse_objects
from nearid.arrays.memory import MemoryRows
from nearid.arrays.names import Entry, choose, not_found
from nearid.arrays.reading import damage_told
from nearid.base.errors import InputError
from nearid.base.limits import check_memory, readable

ADVICE = "Write it again with np.savez, or copy it again."


def open_npz(path: str, name: str, key: str | None, ids: str | None) -> MemoryRows:
    """Load one array of an .npz archive."""
    with damage_told(name, ".npz archive", ADVICE), zipfile.ZipFile(path) as archive:
        members = members_of(archive, name)
        entry = choose(name, {member: _declared(archive, info) for member, info in members.items()}, key)
        if ids is not None and ids not in members:
            raise not_found(name, "ids", ids, members)
        array = load_member(archive, members[entry], f"{name}:{entry}")
        row_ids = None if ids is None else load_member(archive, members[ids], f"{name}:{ids}")
    return MemoryRows(f"{name}:{entry}", array, row_ids)


def read_columns(path: str, name: str) -> dict[str, np.ndarray] | None:
    """The arrays of an archive that holds one-dimensional arrays alone, by name; None for other archives."""
    with damage_told(name, ".npz archive", ADVICE), zipfile.ZipFile(path) as archive:
        members = members_of(archive, name)
        if not members or any(len(_declared(archive, info).shape) != 1 for info in members.values()):
            return None
        return {member: load_member(archive, info, f"{name}:{member}") for member, info in members.items()}


def load_all(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Every array of an archive by name."""
    with zipfile.ZipFile(path) as archive:
        members = members_of(archive, os.path.basename(path))
        return {member: load_member(archive, info, member) for member, info in members.items()}


def members_of(archive: zipfile.ZipFile, name: str) -> dict[str, zipfile.ZipInfo]:
    """The arrays of an archive by name."""
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        member = info.filename.removesuffix(".npy")
        if member in members and member != info.filename:
            raise InputError(f"{name} holds two arrays named {member!r}. Write it again with np.savez, each name once.")
        if member != info.filename:
            members[member] = info
    return members


def _declared(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Entry:
    with archive.open(info) as member:
        header = read_header(member)
    return Entry(header.shape, header.dtype)


def load_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> np.ndarray:
    """Load one array, once its header is known to tell the truth and it fits into memory."""
    with archive.open(info) as member:
        promised = check_member(member, info, name)[1]
        check_memory(name, promised, "Save the array as .npy, which is read block by block.")
        member.seek(0)
        array: np.ndarray = np.lib.format.read_array(member, allow_pickle=False)
        member.read(1)  # the checksum is compared only once the end is reached
    return array


def check_member(member: IO[bytes], info: zipfile.ZipInfo, name: str) -> tuple[NpyHeader, int]:
    """Header and size in bytes of an array that holds what it promises; `member` is left where the numbers begin."""
    header = read_header(member)
    refuse_objects(header, name)
    promised = header.size
    held = info.file_size - member.tell()
    if promised != held or min(header.shape, default=0) < 0:
        raise InputError(
            f"{name} promises the shape {header.shape} ({readable(promised)}) but holds {readable(held)}: "
            "it is truncated or its header is damaged. Write or copy the archive again."
        )
    return header, promised

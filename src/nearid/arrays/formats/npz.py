"""The .npz format: a zip archive of .npy files."""

import zipfile
from collections.abc import Mapping
from functools import cached_property
from typing import IO

import numpy as np

from nearid.arrays.formats.npy import NpyHeader, read_header, refuse_objects
from nearid.arrays.formats.registry import Contents, Format
from nearid.arrays.names import Entry
from nearid.arrays.reading import damage_told
from nearid.base.errors import InputError
from nearid.base.limits import check_memory, readable

_ADVICE = "Write it again with np.savez, or copy it again."


class NpzContents(Contents):
    """The arrays of an .npz archive, each loaded when it is asked for."""

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        with damage_told(self.name, ".npz archive", _ADVICE), zipfile.ZipFile(self.path) as archive:
            return {entry: _declared(archive, info) for entry, info in members_of(archive, self.name).items()}

    def array(self, entry: str) -> np.ndarray:
        with damage_told(self.name, ".npz archive", _ADVICE), zipfile.ZipFile(self.path) as archive:
            return load_member(archive, members_of(archive, self.name)[entry], self.label(entry))


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


NPZ = Format((".npz",), NpzContents)

"""Images that are an array of an .npz archive, which is decompressed as it is read."""

from __future__ import annotations

import threading
import zipfile
from pathlib import Path

import numpy as np

from nearid.arrays.formats.npz import check_member, load_member, members_of
from nearid.arrays.names import not_found
from nearid.arrays.reading import damage_told
from nearid.base.errors import InputError
from nearid.lab.data.base import AGAIN
from nearid.lab.data.images import Images


class NpzImages(Images):
    """Images of a member of an archive; other members are never touched.

    A compressed member can only be read from its beginning: going on is cheap, going back begins anew. For batches in
    random order unpack the images first (see `nearid.lab.data.load`).
    """

    def __init__(self, path: Path, key: str) -> None:
        name = f"{path.name}:{key}"
        with damage_told(path.name, ".npz archive", AGAIN):
            self._archive = zipfile.ZipFile(path)
            info = _find(self._archive, path, key)
            self._member = self._archive.open(info)
            header, _ = check_member(self._member, info, name)
            self._offset = self._member.tell()
        if header.fortran:
            raise InputError(f"{name} is stored by columns, but the canonical file is stored by rows.")
        # A picture without colours has one channel.
        shape = (*header.shape, 1) if len(header.shape) == 3 else header.shape
        super().__init__(name, shape, header.dtype)
        self._lock = threading.Lock()

    def _read(self, start: int, stop: int) -> np.ndarray:
        size = self.nbytes // len(self)
        with self._lock, damage_told(self.name, ".npz archive", AGAIN):
            self._member.seek(self._offset + start * size)
            data = self._member.read((stop - start) * size)
        if len(data) < (stop - start) * size:
            raise InputError(f"{self.name} ends before its last image. {AGAIN}")
        return np.frombuffer(data, self.dtype).reshape(stop - start, *self.shape[1:])


def npz_array(path: Path, key: str) -> np.ndarray:
    """One array of an archive, loaded; other members are never touched."""
    with damage_told(path.name, ".npz archive", AGAIN), zipfile.ZipFile(path) as archive:
        return load_member(archive, _find(archive, path, key), f"{path.name}:{key}")


def _find(archive: zipfile.ZipFile, path: Path, key: str) -> zipfile.ZipInfo:
    members = members_of(archive, path.name)
    if key not in members:
        raise not_found(path.name, "key", key, members)
    return members[key]

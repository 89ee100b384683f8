"""The registry of file formats. It determines the format of every path that nearid opens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nearid.arrays.labels import row_blocks
from nearid.arrays.memory import MemoryRows, as_numpy
from nearid.arrays.names import Entry, choose, not_found, only, refuse_names, whole_name
from nearid.arrays.rows import Rows
from nearid.arrays.tables import Columns
from nearid.base.errors import InputError, unknown
from nearid.base.files import replacing

# An entry of this name is used as blocks by default.
BLOCKS = "blocks"


class Contents(ABC):
    """The named arrays of one file. If the file is a single array, its name is the empty string.

    A format implements `entries` and `array`. Choosing an entry and looking up ids is the same for all formats.

    Parameters
    ----------
    path : str
        The file, as an absolute path.
    name : str
        Name in messages.
    """

    def __init__(self, path: str, name: str) -> None:
        self.path, self.name = path, name

    @property
    @abstractmethod
    def entries(self) -> Mapping[str, Entry]:
        """Shape and dtype that the file declares for each of its arrays."""

    @abstractmethod
    def array(self, entry: str) -> Any:
        """Return an array or tensor of any shape, in memory or with slices that are read when they are taken."""

    @property
    def names(self) -> Iterable[str]:
        """Names of everything that `array` can return, including entries that are not arrays, such as lists of ids."""
        return self.entries

    @property
    def saved(self) -> Any:
        """All arrays, nested as they were saved: a dict by name, or a single array."""
        return self.array("") if list(self.names) == [""] else {entry: self.array(entry) for entry in self.names}

    def rows(self, entry: str, ids: Any) -> Rows:
        """Return an array as rows of numbers."""
        return MemoryRows(self.label(entry), as_numpy(self.array(entry)), ids)

    def find(self, wanted: str, option: str) -> str:
        """Return the full name of the entry that a key, or ids given by name, refer to."""
        names = list(self.entries if option == "key" else self.names)
        if names == [""]:
            refuse_names(self.name, "a single array", **{"key": None, "ids": None, option: wanted})
        # Prefixes that training scripts add to weights, such as state_dict., may be left out.
        entry = whole_name(wanted, names)
        if entry not in names:
            raise not_found(self.name, option, wanted, names)
        return entry

    def open(self, key: str | None, ids: str | None) -> Rows:
        """Return the rows of the entry `key`, or of the only entry with rows. `ids` names another entry."""
        entry = choose(self.name, self.entries) if key is None else self.find(key, "key")
        rows = self.rows(entry, None if ids is None else as_numpy(self.array(self.find(ids, "ids"))))
        if rows.blocks is None and entry != BLOCKS != ids:
            self._label_blocks(rows)
        return rows

    def _label_blocks(self, rows: Rows) -> None:
        """Use the entry with the name BLOCKS, if there is one, as the blocks of the rows."""
        entry = self.entries.get(BLOCKS)
        if BLOCKS not in self.names or (entry is not None and len(entry.shape) != 1):
            return
        try:
            rows.blocks = row_blocks(rows.name, as_numpy(self.array(BLOCKS)), rows.shape[0])
        except InputError as error:
            rows.notes += (f"The entry {BLOCKS!r} of {self.name} is not used as blocks of rows. {error}",)

    def beside(self, wanted: str | None) -> tuple[list[str], Any]:
        """Return the names of entries that may label rows, and the values of `wanted` or of the only one, else None."""
        # An entry that is not an array may be a list of labels.
        names = [name for name in self.names if name not in self.entries or len(self.entries[name].shape) == 1]
        entry = only(names) if wanted is None else whole_name(wanted.strip("/"), names)
        return names, as_numpy(self.array(entry)) if entry in names else None

    def label(self, entry: str) -> str:
        """Return the name of an entry in messages."""
        return f"{self.name}:{entry}" if entry else self.name


class Loaded(Contents):
    """Contents that are already in memory.

    Parameters
    ----------
    path, name : str
    arrays : mapping of str to array

    Examples
    --------
    >>> import numpy as np
    >>> from nearid.arrays.formats.registry import Loaded
    >>> Loaded("a.dat", "a.dat", {"z": np.zeros((5, 2)), "labels": np.arange(5)}).open("z", None).shape
    (5, 2)
    """

    def __init__(self, path: str, name: str, arrays: Mapping[str, Any]) -> None:
        super().__init__(path, name)
        self._arrays = arrays

    @property
    def entries(self) -> Mapping[str, Entry]:
        return {entry: Entry(tuple(x.shape), x.dtype) for entry, x in self._arrays.items()}

    def array(self, entry: str) -> Any:
        return self._arrays[entry]


@dataclass(frozen=True)
class Format:
    """How files with certain suffixes are read, and how they are written if that is possible.

    To add a format, call `register` once. The format then works wherever nearid accepts a path.

    Attributes
    ----------
    suffixes : tuple of str
        Suffixes in lower case, with the dot. A format of folders that `is_at` recognises may have none.
    contents : callable, optional
        (path, name) -> Contents, the arrays of a file. nearid takes rows, columns, vectors, weights and model inputs
        from them.
    rows : callable, optional
        (path, name, key, ids) -> Rows, for tables, which have columns rather than arrays.
    columns : callable, optional
        (path, name, ids) -> Columns, or None for a table that only `rows` reads.
    column : callable, optional
        For tables: (path, name, column or None) -> names of all columns, and the values of that column or of the only
        one. The values are None if the column is missing.
    header : callable, optional
        (shape, dtype, name, about, size) -> bytes, for formats in which plain numbers follow a header, so that rows
        can be appended. `about` describes the array called `name`. With `size`, the header is padded to so many bytes.
    write : callable, optional
        (target, shape, dtype, blocks, change, about) -> None, for other formats that can be written. All blocks have
        equally many rows, except the last. `change` is passed to `nearid.base.files.replacing`.
    parts : callable, optional
        (target, shape, dtype, rows, change) -> context that gives a function of (start, block), for formats in which
        blocks of `rows` rows can be written in any order and by several processes. The function must be picklable.
    weights : bool
        Whether such a file may hold the weights of a module.
    is_folder : bool
        Whether such a "file" is a folder.
    is_at : callable, optional
        Path -> bool: whether a folder is of this format, judged by its contents.
    remote : bool
        Whether `contents`, `rows`, `columns` and `column` also accept an address such as s3://bucket/rows.npy.

    Examples
    --------
    >>> import numpy as np
    >>> from nearid.arrays.formats.registry import Format, Loaded
    >>> np.savetxt("a.dat", [[1, 2], [3, 4]])
    >>> numbers = Format((".dat",), lambda path, name: Loaded(path, name, {"": np.loadtxt(path)}))
    >>> numbers.open("a.dat", "a.dat", None, None).shape
    (2, 2)
    """

    suffixes: tuple[str, ...]
    contents: Callable[[str, str], Contents] | None = None
    rows: Callable[[str, str, str | None, str | None], Rows] | None = None
    columns: Callable[[str, str, str | None], Columns | None] | None = None
    column: Callable[[str, str, str | None], tuple[list[str], Any]] | None = None
    header: Callable[..., bytes] | None = None
    write: Callable[..., None] | None = None
    parts: Callable[..., AbstractContextManager[Callable[[int, np.ndarray], None]]] | None = None
    weights: bool = False
    is_folder: bool = False
    is_at: Callable[[Path], bool] | None = None
    remote: bool = False

    def open(self, path: str, name: str, key: str | None, ids: str | None) -> Rows:
        """Return the rows of a file of this format."""
        if self.rows is not None:
            return self.rows(path, name, key, ids)
        return self.contents_of(path, name).open(key, ids)

    def contents_of(self, path: str, name: str) -> Contents:
        """Return the arrays of a file of this format. A table is a single array, with ids if its rows have them."""
        if self.contents is not None:
            return self.contents(path, name)
        rows = self.open(path, name, None, None)
        ids = {} if rows.ids is None else {"ids": rows.ids}
        return Loaded(path, name, {"": rows.read(0, rows.shape[0]), **ids})

    def beside(self, path: str, name: str, wanted: str | None) -> tuple[list[str], Any]:
        """Return the names of columns or entries that may label rows, and the values of one (None if missing)."""
        if self.column is not None:
            return self.column(path, name, wanted)
        return self.contents(path, name).beside(wanted) if self.contents is not None else ([], None)

    @property
    def writes(self) -> bool:
        """Whether rows can be written."""
        return self.header is not None or self.write is not None

    def write_rows(
        self,
        target: Path,
        shape: tuple[int, int],
        dtype: np.dtype[Any],
        blocks: Iterable[np.ndarray],
        change: AbstractContextManager[None] | None = None,
        about: Mapping[str, str] | None = None,
    ) -> None:
        """Write blocks of rows to a temporary file or folder, which then replaces `target`."""
        if self.write is not None:
            self.write(target, shape, dtype, blocks, change, about)
            return
        assert self.header is not None
        with replacing(target, change) as file:
            file.write(self.header(shape, dtype, "rows", about or {}, None))
            for block in blocks:
                file.write(np.ascontiguousarray(block, dtype.newbyteorder("<")).data)


# Messages list the formats in this order. If two formats share a suffix, the later one is used.
FORMATS: list[Format] = []


def register(new: Format) -> Format:
    """Register a format, so that nearid opens such files everywhere, and return it. `FORMATS.remove` undoes this.

    Parameters
    ----------
    new : Format

    Returns
    -------
    Format
        The same.

    Examples
    --------
    >>> import numpy as np
    >>> from nearid.arrays.formats.registry import FORMATS, Format, Loaded, register, suffixes
    >>> numbers = register(Format((".dat",), lambda path, name: Loaded(path, name, {"": np.loadtxt(path)})))
    >>> ".dat" in suffixes()
    True
    >>> FORMATS.remove(numbers)
    """
    FORMATS.append(new)
    return new


def format_of(path: Path) -> Format | None:
    """Return the format of a path, judged by the contents of a folder or the suffix of a file; None if unknown."""
    for known in FORMATS if path.is_dir() else ():
        if known.is_at is not None and known.is_at(path):
            return known
    name = path.name.lower()
    fitting = [
        (len(s), at) for at, known in enumerate(FORMATS) for s in known.suffixes if name.endswith(s) and s != name
    ]
    return FORMATS[max(fitting)[1]] if fitting else None


def suffixes(able_to: str = "open") -> list[str]:
    """Return the suffixes of all formats for which the attribute `able_to` is set, such as `contents` or `writes`."""
    return [suffix for known in FORMATS for suffix in known.suffixes if getattr(known, able_to)]


def writable_names() -> list[str]:
    """Return the suffixes, without dots, of the formats that can be written."""
    return [suffix[1:] for suffix in suffixes("writes")]


def writable(form: str) -> Format:
    """Return the format of a suffix without its dot, or raise an error if it cannot be written."""
    known = format_of(Path(f"rows.{form}"))
    if known is None or not known.writes:
        raise InputError(unknown("format", form, writable_names()))
    return known

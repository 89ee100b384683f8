"""The one registry of file formats: what a suffix means, wherever a path is taken."""

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

# The entry of labels that rows carry unasked.
BLOCKS = "blocks"


class Contents(ABC):
    """The arrays of one file by name; where a file is a single array, its name is empty.

    A format says what is declared and how an array is read. Choosing an entry and looking up ids is written here, once.

    Parameters
    ----------
    path : str
        The file, as an absolute path.
    name : str
        What messages call it.
    """

    def __init__(self, path: str, name: str) -> None:
        self.path, self.name = path, name

    @property
    @abstractmethod
    def entries(self) -> Mapping[str, Entry]:
        """What the file declares about each of its arrays."""

    @abstractmethod
    def array(self, entry: str) -> Any:
        """An array or tensor of any shape, in memory or read as slices of it are taken."""

    @property
    def names(self) -> Iterable[str]:
        """Names of everything that `array` can give, such as lists of ids beside the arrays."""
        return self.entries

    @property
    def saved(self) -> Any:
        """All arrays, nested as they were saved: by name, or one alone."""
        return self.array("") if list(self.names) == [""] else {entry: self.array(entry) for entry in self.names}

    def rows(self, entry: str, ids: Any) -> Rows:
        """An array as rows of numbers."""
        return MemoryRows(self.label(entry), as_numpy(self.array(entry)), ids)

    def find(self, wanted: str, option: str) -> str:
        """The entry that a key, or ids given by name, stand for."""
        names = list(self.entries if option == "key" else self.names)
        if names == [""]:
            refuse_names(self.name, "a single array", **{"key": None, "ids": None, option: wanted})
        # What training scripts put around weights need not be named.
        entry = whole_name(wanted, names)
        if entry not in names:
            raise not_found(self.name, option, wanted, names)
        return entry

    def open(self, key: str | None, ids: str | None) -> Rows:
        """The rows of the entry that a key names, or of the only one that has rows; ids are taken from another."""
        entry = choose(self.name, self.entries) if key is None else self.find(key, "key")
        rows = self.rows(entry, None if ids is None else as_numpy(self.array(self.find(ids, "ids"))))
        if rows.blocks is None and entry != BLOCKS != ids:
            self._label_blocks(rows)
        return rows

    def _label_blocks(self, rows: Rows) -> None:
        """Rows carry the blocks that lie beside them, where an entry has this name."""
        entry = self.entries.get(BLOCKS)
        if BLOCKS not in self.names or (entry is not None and len(entry.shape) != 1):
            return
        try:
            rows.blocks = row_blocks(rows.name, as_numpy(self.array(BLOCKS)), rows.shape[0])
        except InputError as error:
            rows.notes += (f"The entry {BLOCKS!r} of {self.name} is not used as blocks of rows. {error}",)

    def beside(self, wanted: str | None) -> tuple[list[str], Any]:
        """Names of what may label rows; and the values of the one that is wanted, or of the only one; else None."""
        # What is no array may be a list of labels.
        names = [name for name in self.names if name not in self.entries or len(self.entries[name].shape) == 1]
        entry = only(names) if wanted is None else whole_name(wanted.strip("/"), names)
        return names, as_numpy(self.array(entry)) if entry in names else None

    def label(self, entry: str) -> str:
        """What messages call an entry."""
        return f"{self.name}:{entry}" if entry else self.name


class Loaded(Contents):
    """Contents that are in memory already.

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
    """How files of some suffixes are read, and written where that is possible.

    A new format is one call of `register`. It then works wherever nearid takes a path.

    Attributes
    ----------
    suffixes : tuple of str
        In lower case, with the point. A format of folders that are told by what they hold may have none.
    contents : callable, optional
        (path, name) -> Contents: the arrays of a file. Rows, columns, vectors, weights and inputs of models follow.
    rows : callable, optional
        (path, name, key, ids) -> Rows, for tables, which have columns rather than arrays.
    columns : callable, optional
        (path, name, ids) -> Columns, or None for a table that only `rows` reads.
    column : callable, optional
        (path, name, column or None) -> names of all columns, and the values of that column, or of the only one; None
        where it is missing. For tables.
    header : callable, optional
        (shape, dtype, name, about, size) -> bytes, which plain numbers follow in a file: rows can be appended to it as
        they come. `about` describes the array called `name`; with `size` the header is filled up to so many bytes.
    write : callable, optional
        (target, shape, dtype, blocks, change, about) -> None, for other formats that rows are written to: blocks of
        equally many rows (the last may have fewer); `change` is what `nearid.base.files.replacing` takes.
    weights : bool
        Whether such a file may hold the weights of a module.
    is_folder : bool
        Whether such a "file" is a folder.
    is_at : callable, optional
        Path -> bool: tells a folder of this format by what it holds.

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
    weights: bool = False
    is_folder: bool = False
    is_at: Callable[[Path], bool] | None = None

    def open(self, path: str, name: str, key: str | None, ids: str | None) -> Rows:
        """Rows of a file of this format."""
        if self.rows is not None:
            return self.rows(path, name, key, ids)
        return self.contents_of(path, name).open(key, ids)

    def contents_of(self, path: str, name: str) -> Contents:
        """The arrays of a file of this format; a table is a single one, with ids where its rows have them."""
        if self.contents is not None:
            return self.contents(path, name)
        rows = self.open(path, name, None, None)
        ids = {} if rows.ids is None else {"ids": rows.ids}
        return Loaded(path, name, {"": rows.read(0, rows.shape[0]), **ids})

    def beside(self, path: str, name: str, wanted: str | None) -> tuple[list[str], Any]:
        """Names of the columns or entries that may label rows, and the values of one; None where it is missing."""
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
        """Write blocks of rows to a temporary file or folder, which then takes the place of `target`."""
        if self.write is not None:
            self.write(target, shape, dtype, blocks, change, about)
            return
        assert self.header is not None
        with replacing(target, change) as file:
            file.write(self.header(shape, dtype, "rows", about or {}, None))
            for block in blocks:
                file.write(np.ascontiguousarray(block, dtype.newbyteorder("<")).data)


# In the order in which messages list them; of two formats with a suffix in common the later one counts.
FORMATS: list[Format] = []


def register(new: Format) -> Format:
    """Make a format known wherever a path is taken; `FORMATS.remove` takes it back.

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
    """The format of a path: that of a folder by what it holds, all others by their suffix; None where there is none."""
    for known in FORMATS if path.is_dir() else ():
        if known.is_at is not None and known.is_at(path):
            return known
    name = path.name.lower()
    fitting = [
        (len(s), at) for at, known in enumerate(FORMATS) for s in known.suffixes if name.endswith(s) and s != name
    ]
    return FORMATS[max(fitting)[1]] if fitting else None


def suffixes(able_to: str = "open") -> list[str]:
    """Suffixes of all formats, or of those that have `contents` or `columns`, or hold weights, or `writes`."""
    return [suffix for known in FORMATS for suffix in known.suffixes if getattr(known, able_to)]


def writable_names() -> list[str]:
    """Suffixes without their points of the formats that rows can be written to."""
    return [suffix[1:] for suffix in suffixes("writes")]


def writable(form: str) -> Format:
    """The format that a suffix without its point stands for, if rows can be written to it."""
    known = format_of(Path(f"rows.{form}"))
    if known is None or not known.writes:
        raise InputError(unknown("format", form, writable_names()))
    return known

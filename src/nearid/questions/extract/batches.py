"""Inputs of a model as batches: slices of arrays, tensors and files, or the batches of a loader."""

from __future__ import annotations

import hashlib
import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nearid.arrays.memory import is_a, refuse_unreadable
from nearid.arrays.paths import open_contents
from nearid.arrays.reading import reached
from nearid.arrays.rows import row_ids
from nearid.base.alerts import Alert
from nearid.base.errors import InputError, type_of
from nearid.questions.extract.words import WordTokens

# Entries of a mapping that are not inputs.
IDS, MASK = "ids", "attention_mask"
# A single array, which has no name.
SINGLE = ""


@dataclass(frozen=True)
class Batch:
    """A batch of inputs.

    Attributes
    ----------
    start : int
        Number of the first input.
    arrays : dict of Tensor
        By name; a single array has the name "".
    ids : ndarray of shape (n,)
    given : list of bytes, optional
        Hash of each original input, if the arrays were made from it.
    spans : ndarray of shape (n, 2), optional
        First row and number of rows of each input among all rows, if batches and rows have different orders.
    words : WordTokens, optional
        Tokens of each word, if words are rows.
    labels : ndarray of shape (n,), optional
        A label for each input.
    """

    start: int
    arrays: dict[str, Tensor]
    ids: np.ndarray
    given: list[bytes] | None = None
    spans: np.ndarray | None = None
    words: WordTokens | None = None
    labels: np.ndarray | None = None

    @property
    def n(self) -> int:
        """Number of inputs."""
        return len(self.ids)

    def first(self, count: int) -> Batch:
        """The first few inputs."""
        return Batch(
            self.start,
            {name: x[:count] for name, x in self.arrays.items()},
            self.ids[:count],
            None if self.given is None else self.given[:count],
            None if self.spans is None else self.spans[:count],
            None if self.words is None else self.words.first(count),
            None if self.labels is None else self.labels[:count],
        )

    @property
    def places(self) -> np.ndarray | None:
        """Index of each row of these inputs among all rows; None if they follow those of the previous batch."""
        return None if self.spans is None else np.concatenate([np.arange(at, at + count) for at, count in self.spans])


class Source(ABC):
    """Inputs of a model in batches, always the same ones in the same order.

    Attributes
    ----------
    name : str
        What people are shown.
    rows : int or None
        Number of inputs, if known.
    id_type : numpy.dtype
        How the ids are stored.
    label_type : numpy.dtype or None
        Type of the labels, if batches have some.
    sha256 : str or None
        Hash of the original inputs, if it is known before they are read.
    identity : dict
        Everything else that the arrays depend on. A partial extraction with another identity is not continued.
    total : int or None
        Number of rows of all inputs, if batches have spans.
    alerts : tuple of Alert
        Alerts about the inputs; complete after the last batch.
    """

    name: str
    rows: int | None = None
    id_type: np.dtype[Any] = np.dtype(np.int64)
    label_type: np.dtype[Any] | None = None
    sha256: str | None = None
    identity: Mapping[str, Any] = MappingProxyType({})
    total: int | None = None
    alerts: tuple[Alert, ...] = ()

    @abstractmethod
    def batches(self, size: int) -> Iterator[Batch]:
        """Batches of at most `size` inputs."""

    def count(self, size: int) -> int:
        """Number of batches; 0 if it is not known."""
        return -(-self.rows // size) if self.rows else 0

    def described(self, first: Batch) -> dict[str, Any]:
        """Description of the inputs for the provenance: dtype of each array and shape of an input."""
        return {
            name or "input": {"dtype": str(x.dtype).removeprefix("torch."), "shape": list(x.shape[1:])}
            for name, x in first.arrays.items()
        }


class ArraySource(Source):
    """Inputs in arrays, which can be read in any order.

    Parameters
    ----------
    ids : ndarray of shape (n,) or None
        Default: the numbers of the inputs.
    """

    def __init__(self, name: str, arrays: dict[str, Any], ids: Any) -> None:
        for key, x in arrays.items():
            refuse_unreadable(key or name, x)
        sizes = {key or name: len(x) for key, x in arrays.items()}
        if len(set(sizes.values())) != 1:
            raise InputError(f"The arrays of {name} differ in length: {sizes}. Give one entry per input in each.")
        self.name, self._arrays = name, arrays
        self.rows = n = next(iter(sizes.values()))
        if n < 2:
            raise InputError(f"{name} has {n} inputs, but at least 2 are needed.")
        self._ids = np.arange(n) if ids is None else row_ids(name, ids, n)
        if ids is not None and len(np.unique(self._ids)) < n:
            raise InputError(
                f"Some ids of {name} occur more than once, so rows cannot be paired by id. Give unique ids."
            )
        self.id_type = self._ids.dtype

    def batches(self, size: int) -> Iterator[Batch]:
        """Batches of `size` inputs."""
        for start in range(0, int(self.rows or 0), size):
            part = slice(start, start + size)
            yield Batch(
                start, {k: as_tensor(k or self.name, x[part]) for k, x in self._arrays.items()}, self._ids[part]
            )


class BatchSource(Source):
    """Inputs that already come in batches: a loader, a list of arrays, a generator.

    Parameters
    ----------
    ordered : bool
        Whether they come in the order of the data. Otherwise each batch needs ids.
    """

    def __init__(self, name: str, batches: Iterable[Any], *, ordered: bool = True) -> None:
        self.name, self._batches, self._ordered = name, batches, ordered

    def batches(self, size: int) -> Iterator[Batch]:
        """The given batches; `size` is ignored."""
        start = 0
        for at, given in enumerate(self._batches):
            arrays = _named(f"batch {at} of {self.name}", given)
            ids = arrays.pop(IDS, None)
            sizes = {len(x) for x in arrays.values()}
            if len(sizes) != 1:
                raise InputError(f"The arrays in batch {at} of {self.name} differ in length: {sorted(sizes)}.")
            n = sizes.pop()
            if ids is None and not self._ordered:
                raise InputError(
                    "The loader shuffles or samples, so rows could not be paired with another run. Use shuffle=False, "
                    f"or make each batch a dict with {IDS!r}."
                )
            ids = np.arange(start, start + n) if ids is None else row_ids(self.name, ids, n)
            if ids.dtype != self.id_type:
                raise InputError(f"The ids in batch {at} of {self.name} are {ids.dtype}, but int64 is expected here.")
            if n:
                yield Batch(start, {k: as_tensor(k or self.name, x) for k, x in arrays.items()}, ids)
            start += n


def open_source(data: Any, *, mask: Any = None, ids: Any = None, key: str | None = None, size: int = 1) -> Source:
    """Inputs from an array, a tensor, a mapping of such, a file, a torch dataset, or an iterable of batches.

    Parameters
    ----------
    mask : array or path, optional
        Array of shape (n, t), 0 for padding.
    ids : array, path or str, optional
        One id per input; a string names an entry of a file or mapping.
    key : str, optional
        Entry of a file that is the input.
    size : int
        Inputs in a batch of a torch dataset.
    """
    name = Path(data).name if isinstance(data, str | os.PathLike) else type(data).__name__
    first = data[0] if isinstance(data, list) and data else data
    if is_a(first, "torch", "Tensor"):
        # First, because not every tensor has a shape.
        refuse_unreadable(name, first)
    if isinstance(data, str | os.PathLike):
        data = _file(data)
    elif isinstance(data, list) and data and not hasattr(data[0], "shape") and not isinstance(data[0], Mapping):
        data = _array_of(name, data)
    if is_a(data, "torch", "Dataset"):
        data = torch.utils.data.DataLoader(data, batch_size=size)
    if not isinstance(data, Mapping) and not hasattr(data, "shape"):
        return _batched(name, data, mask, ids, key)
    if ids is None and is_a(data, "pandas", "DataFrame"):
        ids = data.index
    arrays = _named(name, data)
    entry = arrays.pop(IDS, None)
    if isinstance(ids, str) and ids in arrays:
        ids = arrays.pop(ids)
    if key is not None:
        if key not in arrays:
            raise InputError(f"{name} has no entry {key!r} (given as key). Its entries are {', '.join(arrays)}.")
        arrays = {SINGLE: arrays[key], **{k: x for k, x in arrays.items() if k == MASK != key}}
    if mask is not None:
        arrays[MASK] = _loaded(mask, "mask")
    if not any(k != MASK for k in arrays):
        raise InputError(f"{name} contains only masks and ids, but no inputs.")
    return ArraySource(name, arrays, entry if ids is None else _loaded(ids, "ids"))


def _batched(name: str, data: Any, mask: Any, ids: Any, key: str | None) -> BatchSource:
    if not isinstance(data, Iterable) or isinstance(data, str | bytes):
        raise InputError(
            f"The data is {type_of(data)}; an array, a tensor, a dict of arrays, a file or an iterable of "
            "batches is expected."
        )
    if mask is not None or ids is not None or key is not None:
        raise InputError(f"For batches, give masks and ids in the batches: make each a dict with {MASK!r} and {IDS!r}.")
    return BatchSource(name, data, ordered=_in_order(data))


def _in_order(data: Any) -> bool:
    """Whether a loader reads its dataset in order; for other iterables the caller is responsible."""
    if not is_a(data, "torch", "DataLoader"):
        return True
    batches = data.batch_sampler
    sampler = data.sampler if batches is None else getattr(batches, "sampler", None)
    # The last one is the sampler of streaming datasets.
    return any(is_a(sampler, "torch", kind) for kind in ("SequentialSampler", "_InfiniteConstantSampler"))


def _file(path: str | os.PathLike[str]) -> Any:
    """The array of a file, or its arrays by name; some formats are read lazily."""
    with reached(path):
        return open_contents(path).saved


def _loaded(given: Any, what: str) -> Any:
    if not isinstance(given, str | os.PathLike):
        return given
    if not Path(given).exists():
        raise InputError(f"There is no file and no entry {given}, which was given as {what}.")
    values = _file(given)
    if isinstance(values, Mapping):
        raise InputError(f"{given} contains several arrays, but {what} must be one array. Save it as .npy.")
    return values


def _named(name: str, given: Any) -> dict[str, Any]:
    """Inputs by name. In a tuple or list of inputs and labels, as from a loader, the first entry is the input."""
    if isinstance(given, tuple | list) and given:
        given = given[0]
    for key, x in given.items() if isinstance(given, Mapping) else [("", given)]:
        if is_a(x, "torch", "Tensor"):
            refuse_unreadable(f"{name}:{key}" if key else name, x)
    if isinstance(given, Mapping):
        arrays = {str(k): x if hasattr(x, "shape") else _array_of(f"{name}:{k}", x) for k, x in given.items()}
    elif hasattr(given, "shape"):
        arrays = {SINGLE: given}
    else:
        raise InputError(f"{name} is {type_of(given)}, but an array, a tensor or a dict of them is expected.")
    for key, x in arrays.items():
        if not len(x.shape):
            where = f"{name}:{key}" if key else name
            raise InputError(f"{where} is a single number, but one entry for each input is expected.")
    return arrays


def _array_of(name: str, values: Any) -> np.ndarray:
    try:
        return np.asarray(values)
    except ValueError:
        raise InputError(
            f"The entries of {name} have different lengths. Pad them to one length and give a mask."
        ) from None


def as_tensor(name: str, part: Any) -> Tensor:
    """A slice as a tensor, sharing its memory where that is possible."""
    if isinstance(part, Tensor):
        return part.detach()
    array = np.ascontiguousarray(part)
    if array.dtype.kind not in "fiub":
        texts = " For a table with texts, name the column: column (--column)." if array.dtype.kind in "OUST" else ""
        raise InputError(f"{name} has dtype {array.dtype}, but numbers are expected.{texts}")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        array = array.astype(np.int64)
    # Copy read-only arrays, for which torch would print a warning.
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def peeked(batches: Iterator[Batch]) -> tuple[Batch, Iterator[Batch]]:
    """Return the first batch, and an iterator over all batches including the first."""
    first = next(batches, None)
    if first is None:
        raise InputError("There are no inputs: the data is empty.")
    return first, itertools.chain([first], batches)


def byte_view(x: torch.Tensor) -> memoryview:
    """The bytes of a tensor of any dtype, including dtypes that numpy does not have."""
    return x.detach().to("cpu").contiguous().reshape(-1).view(torch.uint8).numpy().data


class DataHash:
    """SHA-256 of all inputs and of their ids; it does not depend on the batches.

    If inputs have their own hashes, these are used: the output of a tokeniser or of resizing is not hashed.

    Parameters
    ----------
    known : str, optional
        The hash, if it is already known.
    """

    def __init__(self, known: str | None = None) -> None:
        self._known = known
        self._each: dict[str, Any] = {}
        self._ids = hashlib.sha256()

    def update(self, batch: Batch) -> None:
        """Add a batch to the hash."""
        if batch.given is not None:
            self._each.setdefault("", hashlib.sha256()).update(b"".join(batch.given))
        for name, x in batch.arrays.items() if batch.given is None and self._known is None else ():
            if name not in self._each:
                self._each[name] = hashlib.sha256(f"{x.dtype} {tuple(x.shape[1:])}".encode())
            self._each[name].update(byte_view(x))
        self._ids.update(np.ascontiguousarray(batch.ids).tobytes())

    def with_ids(self) -> str:
        """The hashes of inputs and of ids up to here."""
        return f"{self.hexdigest()} {self._ids.hexdigest()}"

    def hexdigest(self) -> str:
        """The hash of the inputs so far, or of all inputs if it was known."""
        if self._known is not None:
            return self._known
        parts = [f"{name} {digest.hexdigest()}" for name, digest in sorted(self._each.items())]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

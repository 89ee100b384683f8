"""Tensors saved by torch.save, loaded without running code from the file."""

import os
import pickle
import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from nearid.arrays.formats.registry import Contents, Format
from nearid.arrays.memory import TensorRows, is_a, tensor_dtype
from nearid.arrays.names import Entry
from nearid.arrays.reading import damage_told
from nearid.base.errors import InputError
from nearid.base.limits import check_memory

# Limits on the depth and the number of entries, because entries of a hostile file may contain themselves.
_DEEPEST, _MOST = 64, 10_000_000


class TorchContents(Contents):
    """The entries of a file of torch.save, under dotted names."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__(path, name)
        self._saved = load_saved(path, name)

    @property
    def saved(self) -> Any:
        return self._saved

    @cached_property
    def _values(self) -> dict[str, Any]:
        return _entries_of(self._saved, self.name)

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        tensors = {entry: value for entry, value in self._values.items() if is_a(value, "torch", "Tensor")}
        return {entry: Entry(tuple(value.shape), tensor_dtype(value)) for entry, value in tensors.items()}

    @property
    def names(self) -> Iterable[str]:
        return self._values

    def array(self, entry: str) -> Any:
        return self._values[entry]

    def rows(self, entry: str, ids: Any) -> TensorRows:
        return TensorRows(self.label(entry), self._values[entry], ids)


def load_saved(path: str, name: str) -> Any:
    """Return what torch.save wrote. Files that hold anything but data raise an InputError."""
    try:
        import torch
    except ImportError:
        raise InputError(
            f"{name} can only be read with torch. Install it: pip install torch, or pip install 'nearid[lab]'"
        ) from None
    with damage_told(name, "file of torch.save"):
        zipped = zipfile.is_zipfile(path)
    if zipped:
        _check_archive(path, name)
    check_memory(
        name, os.path.getsize(path), "Save the arrays that you need as .safetensors, which is read block by block."
    )
    try:
        with warnings.catch_warnings():
            # The warnings of torch are meant for its own developers. Errors are raised below.
            warnings.simplefilter("ignore")
            # Not memory mapped: if the file became shorter, a memory map would kill the process.
            saved = torch.load(path, weights_only=True, map_location="cpu")
    except pickle.UnpicklingError as error:
        # The message of torch would advise to switch the protection off.
        raise _refused(name, str(error)) if zipped or _is_pickle(path) else _damaged(name) from None
    except Exception:  # for damaged files torch raises many kinds of errors
        raise _damaged(name) from None
    _check_nesting(saved, name)
    return saved


def _check_nesting(saved: Any, name: str) -> None:
    """Raise an error for entries that contain themselves, or for too many entries."""
    level, count = [saved], 1
    for _ in range(_DEEPEST):
        level = [value for value in level if isinstance(value, dict | list | tuple)]
        count += sum(map(len, level))
        if not level or count > _MOST:
            break
        level = [part for value in level for part in (value.values() if isinstance(value, dict) else value)]
    if level:
        raise InputError(
            f"{name} nests its entries {_DEEPEST} deep or more, or has more than {_MOST:,} of them. "
            "Save the tensor (or state dict) alone with torch.save(tensor, path)."
        )


def _is_pickle(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(1) == pickle.PROTO


def _check_archive(path: str, name: str) -> None:
    try:
        with damage_told(name, "file of torch.save"), zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except InputError:
        # zipfile does not recognise a truncated archive as an archive.
        raise _damaged(name) from None
    if any(member.filename.endswith("constants.pkl") for member in members):
        raise _refused(name)  # a TorchScript archive, which is code
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        # torch.save never compresses. Reading compressed bytes as numbers would give arbitrary values.
        raise InputError(f"{name} is a compressed archive, which torch.save does not write. Save the tensor again.")


def _refused(name: str, why: str = "") -> InputError:
    # torch names the first object that is not data, such as a pathlib.PosixPath in the hyperparameters of a trainer.
    named = re.search(r"GLOBAL ([\w.]{1,80})", why)
    advice = "Save the tensor (or state dict) alone with torch.save(tensor, path), or as .npy or .safetensors."
    if named and named[1].startswith("torch.nn."):
        advice = "Save the weights of a model alone: torch.save(model.state_dict(), path)."
    return InputError(
        f"{name} holds Python objects that could run code when they are loaded, so nearid never unpickles. "
        + (f"The first of them is {named[1]}. " if named else "")
        + advice
    )


def _damaged(name: str) -> InputError:
    return InputError(f"{name} is not a whole file of torch.save: it is truncated or damaged. Write or copy it again.")


def _entries_of(saved: Any, name: str) -> dict[str, Any]:
    """Return the saved values under dotted names. Two values under the same name raise an error."""
    leaves = flattened(saved, "")
    values = dict(leaves)
    if len(values) < len(leaves):
        twice = next(entry for entry, count in Counter(entry for entry, _ in leaves).items() if count > 1)
        raise InputError(
            f"{name} has several entries named {twice!r}, so the name is ambiguous. Save it again "
            "with a different name for each entry. Names must be strings without dots."
        )
    return values


def flattened(value: Any, prefix: str) -> list[tuple[str, Any]]:
    """Return the values of nested dicts and lists under dotted names. A list of plain values is one value."""
    if isinstance(value, dict):
        parts = [(str(name), part) for name, part in value.items()]
    elif isinstance(value, list | tuple) and any(not isinstance(part, str | int | float) for part in value):
        parts = [(str(index), part) for index, part in enumerate(value)]
    else:
        return [(prefix, value)]
    return [leaf for name, part in parts for leaf in flattened(part, f"{prefix}.{name}" if prefix else name)]


# The last suffix is used by Lightning.
TORCH = Format((".pt", ".pth", ".th", ".ckpt"), TorchContents, weights=True)

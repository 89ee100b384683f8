"""Tensors saved by torch.save, loaded without running any code they hold."""

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

# How deep entries may be nested, and how many there may be; those of a hostile file may hold themselves.
_DEEPEST, _MOST = 64, 10_000_000


class TorchContents(Contents):
    """What torch.save wrote, as entries with dotted names."""

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
    """What torch.save wrote, as long as it is data alone."""
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
    check_memory(name, os.path.getsize(path), "Save the arrays that are needed as .safetensors, read in parts.")
    try:
        with warnings.catch_warnings():
            # torch warns with advice to its own developers; what matters is raised below.
            warnings.simplefilter("ignore")
            # Not mapped: a file that becomes shorter while it is mapped ends the process.
            saved = torch.load(path, weights_only=True, map_location="cpu")
    except pickle.UnpicklingError as error:
        # torch's own message would advise to switch the protection off.
        raise _refused(name, str(error)) if zipped or _is_pickle(path) else _damaged(name) from None
    except Exception:  # damaged bytes make torch raise almost anything
        raise _damaged(name) from None
    _check_nesting(saved, name)
    return saved


def _check_nesting(saved: Any, name: str) -> None:
    """Refuse entries that hold themselves, or more of them than could be listed by name."""
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
        # zipfile says of the beginning of an archive that it is no archive.
        raise _damaged(name) from None
    if any(member.filename.endswith("constants.pkl") for member in members):
        raise _refused(name)  # a TorchScript archive, which is code
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        # torch.save never compresses; mapping compressed bytes would give arbitrary numbers.
        raise InputError(f"{name} is a compressed archive, which torch.save does not write. Save the tensor again.")


def _refused(name: str, why: str = "") -> InputError:
    # torch names the first object that is no data, as the pathlib.PosixPath among a trainer's hyperparameters.
    named = re.search(r"GLOBAL ([\w.]{1,80})", why)
    advice = "Save the tensor (or state dict) alone with torch.save(tensor, path), or as .npy or .safetensors."
    if named and named[1].startswith("torch.nn."):
        advice = "Save the weights of a model alone: torch.save(model.state_dict(), path)."
    return InputError(
        f"{name} holds Python objects that could run code; nearid never unpickles. "
        + (f"The first of them is {named[1]}. " if named else "")
        + advice
    )


def _damaged(name: str) -> InputError:
    return InputError(f"{name} is not a whole file of torch.save: it is truncated or damaged. Write or copy it again.")


def _entries_of(saved: Any, name: str) -> dict[str, Any]:
    """Values of what was saved under dotted names; two values under one name are refused."""
    leaves = flattened(saved, "")
    values = dict(leaves)
    if len(values) < len(leaves):
        twice = next(entry for entry, count in Counter(entry for entry, _ in leaves).items() if count > 1)
        raise InputError(
            f"{name} has several entries named {twice!r}, so the name is ambiguous. Save it again "
            "with a name of its own for each, without points and as text."
        )
    return values


def flattened(value: Any, prefix: str) -> list[tuple[str, Any]]:
    """Values of nested dicts and lists under dotted names; a list of plain values stays whole."""
    if isinstance(value, dict):
        parts = [(str(name), part) for name, part in value.items()]
    elif isinstance(value, list | tuple) and any(not isinstance(part, str | int | float) for part in value):
        parts = [(str(index), part) for index, part in enumerate(value)]
    else:
        return [(prefix, value)]
    return [leaf for name, part in parts for leaf in flattened(part, f"{prefix}.{name}" if prefix else name)]


# The last suffix is Lightning's.
TORCH = Format((".pt", ".pth", ".th", ".ckpt"), TorchContents, weights=True)

"""The safetensors format."""

import json
import math
import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from nearid.arrays.formats.npy import RawArray, RawRows
from nearid.arrays.formats.registry import Contents, Format
from nearid.arrays.names import Entry
from nearid.base.errors import InputError
from nearid.base.limits import readable

_LONGEST_HEADER = 100_000_000  # the limit of the safetensors library

_STORED = {
    "BOOL": "|b1",
    "U8": "|u1",
    "I8": "|i1",
    "U16": "<u2",
    "I16": "<i2",
    "U32": "<u4",
    "I32": "<i4",
    "U64": "<u8",
    "I64": "<i8",
    "F16": "<f2",
    "BF16": "<u2",
    "F32": "<f4",
    "F64": "<f8",
}


class SafetensorsContents(Contents):
    """The tensors of a .safetensors file. Slices are read when they are taken."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__(path, name)
        self._header, self._base = _read_header(path, name)

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        return {tensor: _declared(self.name, tensor, fields) for tensor, fields in self._header.items()}

    def array(self, entry: str) -> RawArray:
        stored, offset = _located(self.path, self.name, self._base, entry, self._header)
        label, brief = self.label(entry), self._header[entry]["dtype"] == "BF16"
        return RawArray(self.path, offset, stored, self.entries[entry].shape, name=label, bfloat16=brief)

    def rows(self, entry: str, ids: Any) -> RawRows:
        return RawRows(self.array(entry), ids)


def _read_header(path: str, name: str) -> tuple[dict[str, Any], int]:
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _LONGEST_HEADER):
            raise InputError(
                f"{name} declares a header of {readable(length)} in a file of {readable(size)}: "
                "it is truncated or not a safetensors file. Write or copy it again."
            )
        text = file.read(length)
    try:
        header = json.loads(text.decode(), object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} has a damaged safetensors header: {error}. Write or copy it again.") from None
    if not isinstance(header, dict):
        raise InputError(f"{name} has a safetensors header without tensors. Write or copy it again.")
    header.pop("__metadata__", None)
    return header, 8 + length


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    distinct = dict(pairs)
    if len(distinct) < len(pairs):
        raise ValueError("it contains a name twice")
    return distinct


def _declared(name: str, tensor: str, fields: Any) -> Entry:
    match fields:
        case {"dtype": str(dtype), "shape": [*shape], "data_offsets": [int(), int()]} if all(
            type(size) is int and size >= 0 for size in shape
        ):
            stored = _STORED.get(dtype)
            return Entry(tuple(shape), dtype if stored is None else np.dtype(stored))
    raise InputError(f"The header of {name} describes the tensor {tensor!r} incorrectly. Write the file again.")


def _located(path: str, name: str, base: int, tensor: str, header: dict[str, Any]) -> tuple[np.dtype[Any], int]:
    fields, size = header[tensor], os.path.getsize(path) - base
    if fields["dtype"] not in _STORED:
        raise InputError(
            f"{name}:{tensor} has dtype {fields['dtype']}, which nearid cannot read. "
            "Convert it first, for example with x.to(torch.float32)."
        )
    stored = np.dtype(_STORED[fields["dtype"]])
    begin, end = fields["data_offsets"]
    if not 0 <= begin <= end <= size:
        raise InputError(
            f"{name}:{tensor} should be at bytes {begin} to {end}, which are outside the file: "
            "the file is truncated or its header is damaged. Write or copy it again."
        )
    if end - begin != math.prod(fields["shape"]) * stored.itemsize:
        raise InputError(
            f"{name}:{tensor} declares shape {tuple(fields['shape'])} of {fields['dtype']}, "
            f"which does not fill its {end - begin} bytes: the header is damaged. Write or copy the file again."
        )
    _check_offsets(name, header, size)
    return stored, base + begin


def _check_offsets(name: str, header: dict[str, Any], size: int) -> None:
    """Raise an error if tensors overlap or leave bytes unused, because then an offset is wrong."""
    for tensor, fields in header.items():
        _declared(name, tensor, fields)
    end = 0
    for tensor, fields in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        if fields["data_offsets"][0] != end:
            raise InputError(
                f"{name}:{tensor} is declared to begin at byte {fields['data_offsets'][0]}, but the tensor before it "
                f"ends at byte {end}: the header is damaged. Write or copy the file again."
            )
        end = fields["data_offsets"][1]
    if end != size:
        raise InputError(
            f"{name} declares tensors of {end} bytes but holds {size}: it is truncated or its header is damaged. "
            "Write or copy it again."
        )


def safetensors_header(
    shape: tuple[int, ...], dtype: np.dtype[Any], name: str, about: Mapping[str, str], size: int | None
) -> bytes:
    """Return the header of a file with one tensor. Without a size it has room for more rows and metadata."""
    code = next(code for code, stored in _STORED.items() if np.dtype(stored) == dtype.newbyteorder("<"))
    fields = {"dtype": code, "shape": shape, "data_offsets": [0, math.prod(shape) * dtype.itemsize]}
    text = json.dumps({"__metadata__": about, name: fields}).encode()
    # Padded, so that the numbers are aligned.
    length = (size or -(-(len(text) + 256) // 64) * 64) - 8
    return length.to_bytes(8, "little") + text.ljust(length)


SAFETENSORS = Format((".safetensors",), SafetensorsContents, header=safetensors_header, weights=True)

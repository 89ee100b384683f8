"""The safetensors format."""

import json
import math
import os
from typing import Any

import numpy as np

from nearid.arrays.formats.npy import RawRows
from nearid.arrays.names import Entry, choose, not_found, whole_name
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


def open_safetensors(path: str, name: str, key: str | None, ids: str | None) -> RawRows:
    """Open one tensor of a .safetensors file, which is read block by block."""
    header, base = _read_header(path, name)
    entries = {tensor: _declared(name, tensor, fields) for tensor, fields in header.items()}
    tensor = choose(name, entries, None if key is None else whole_name(key, entries))
    stored, offset = _located(path, name, base, tensor, header)
    row_ids = None if ids is None else _read_ids(path, name, base, ids, header)
    return RawRows(
        path,
        offset,
        stored,
        entries[tensor].shape,
        name=f"{name}:{tensor}",
        ids=row_ids,
        bfloat16=header[tensor]["dtype"] == "BF16",
    )


def find_vector(path: str, name: str, tensor: str) -> np.ndarray | None:
    """A one-dimensional tensor of a .safetensors file; None where there is none of that name."""
    header, base = _read_header(path, name)
    tensor = whole_name(tensor, header)
    if tensor not in header:
        return None
    shape = _declared(name, tensor, header[tensor]).shape
    if len(shape) != 1:
        raise InputError(f"{name}:{tensor} has shape {shape}, but one dimension is expected.")
    stored, offset = _located(path, name, base, tensor, header)
    label, brief = f"{name}:{tensor}", header[tensor]["dtype"] == "BF16"
    return RawRows(path, offset, stored, (*shape, 1), name=label, bfloat16=brief).read(0, shape[0])[:, 0]


def _read_header(path: str, name: str) -> tuple[dict[str, Any], int]:
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _LONGEST_HEADER):
            raise InputError(
                f"{name} declares a header of {readable(length)} in a file of {readable(size)}: "
                "it is truncated or no safetensors file. Write or copy it again."
            )
        text = file.read(length)
    try:
        header = json.loads(text.decode(), object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} has a damaged safetensors header: {error}. Write or copy it again.") from None
    if not isinstance(header, dict):
        raise InputError(f"{name} has a safetensors header that names no tensors. Write or copy it again.")
    header.pop("__metadata__", None)
    return header, 8 + length


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands in it twice")
    return found


def _declared(name: str, tensor: str, fields: Any) -> Entry:
    match fields:
        case {"dtype": str(dtype), "shape": [*shape], "data_offsets": [int(), int()]} if all(
            type(size) is int and size >= 0 for size in shape
        ):
            stored = _STORED.get(dtype)
            return Entry(tuple(shape), dtype if stored is None else np.dtype(stored))
    raise InputError(f"{name} describes the tensor {tensor!r} wrongly in its header. Write the file again.")


def _located(path: str, name: str, base: int, tensor: str, header: dict[str, Any]) -> tuple[np.dtype[Any], int]:
    fields, size = header[tensor], os.path.getsize(path) - base
    if fields["dtype"] not in _STORED:
        raise InputError(
            f"{name}:{tensor} has dtype {fields['dtype']}, which cannot be read as it is. "
            "Convert it first, for example with x.to(torch.float32)."
        )
    stored = np.dtype(_STORED[fields["dtype"]])
    begin, end = fields["data_offsets"]
    if not 0 <= begin <= end <= size:
        raise InputError(
            f"{name}:{tensor} is said to lie at bytes {begin} to {end}, outside the file's numbers: "
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
    """Refuse tensors that overlap, or that leave bytes between them or behind them: one of the offsets is wrong."""
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


def _read_ids(path: str, name: str, base: int, ids: str, header: dict[str, Any]) -> np.ndarray:
    if ids not in header:
        raise not_found(name, "ids", ids, header)
    stored, offset = _located(path, name, base, ids, header)
    if stored.kind not in "iu" or header[ids]["dtype"] == "BF16":
        raise InputError(f"{name}:{ids} has dtype {header[ids]['dtype']}, but ids must be integers here.")
    shape = header[ids]["shape"]
    return np.fromfile(path, stored, math.prod(shape), offset=offset).reshape(shape)

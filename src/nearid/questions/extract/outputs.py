"""The tensor that is meant by the output of a module, whatever holds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from nearid.arrays.names import listed
from nearid.base.errors import InputError

# Among named outputs this one is the hidden state.
USUAL = "last_hidden_state"


def tensor_of(layer: str, output: Any, part: str | None = None) -> Tensor:
    """The tensor in an output: itself, the named part, the last hidden state, or else the first of floats.

    Parameters
    ----------
    layer : str
        For the messages.
    output : Tensor, or tuple, list, mapping (such as a ModelOutput) or object of such
    part : str, optional
        Keys and places that lead to the tensor, separated by dots.
    """
    found = output
    for step in part.split(".") if part else ():
        found = _step(layer, found, step, str(part))
    tensor = _first(found)
    if tensor is None:
        raise InputError(
            f"The layer {layer} gave a {type(found).__name__} without a tensor of numbers; leave the layer out, or "
            f"name a part of its output as {layer}:part."
        )
    return tensor


def _step(layer: str, value: Any, step: str, part: str) -> Any:
    entries = _entries(value)
    if step not in entries:
        held = f"It holds {listed(entries)}." if entries else f"It gave a {type(value).__name__}."
        raise InputError(f"The output of the layer {layer} has no part {part!r}. {held}")
    return entries[step]


def _first(value: Any) -> Tensor | None:
    if isinstance(value, Tensor):
        return value if value.dtype.is_floating_point or value.dtype in (torch.int32, torch.int64) else None
    entries = _entries(value)
    if isinstance(entries.get(USUAL), Tensor):
        return _first(entries[USUAL])
    for held in entries.values():
        tensor = _first(held)
        if tensor is not None and tensor.dtype.is_floating_point:
            return tensor
    return None


def _entries(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {str(key): held for key, held in value.items()}
    if isinstance(value, tuple | list):
        names = getattr(value, "_fields", None)
        places = {str(at): held for at, held in enumerate(value)}
        return {**places, **dict(zip(names, value, strict=True))} if names else places
    if isinstance(value, Tensor):
        return {}
    return {name: held for name, held in getattr(value, "__dict__", {}).items() if not name.startswith("_")}

"""Finding the weights of a module among what a training script saved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from nearid.arrays.formats.torch import flattened, load_saved
from nearid.arrays.names import listed, not_found
from nearid.base.errors import InputError

Weights = dict[str, Tensor]
# Characters of a name that a message shows.
_LONGEST = 80


def state_dicts(path: str, name: str) -> dict[str, Weights]:
    """State dicts of a file of torch.save, by the dotted name of their entry; at least one.

    A state dict is told by its shape, a mapping of names to tensors, so it does not matter what is around it.
    """
    saved = load_saved(path, name)
    held = dict(_found(saved, ""))
    if not held:
        raise InputError(
            f"{name} holds no state dict, a mapping of names to tensors. {_contents(saved)} "
            "Save one with torch.save(module.state_dict(), path)."
        )
    # Figures that callbacks keep, and single layers, do not compete with a whole module.
    for of_module in (_has_arrays, _has_dots):
        held = {entry: weights for entry, weights in held.items() if of_module(weights)} or held
    return held


def part_of(name: str, held: dict[str, Weights], prefix: str) -> Weights:
    """Weights under a prefix, which is taken off their names; of several state dicts it names the entry of one."""
    entries = [entry for entry in held if prefix.startswith(f"{entry}.")]
    if len(held) > 1 and not entries:
        known = listed(f"{_short(entry)!r} ({_sample(weights)})" for entry, weights in held.items())
        first = f"{next(iter(held))}."
        raise InputError(
            f"{name} holds {len(held)} state dicts: {known}. Choose one with prefix={_short(first)!r} (on the command "
            f"line --prefix {_short(first)})."
        )
    entry = max(entries, key=len) if entries else next(iter(held))
    weights = held[entry]
    part = (len(held) == 1 and under(weights, prefix)) or under(weights, prefix.removeprefix(f"{entry}."))
    if not part:
        raise not_found(name, "prefix", prefix, weights)
    return part


def under(weights: Weights, prefix: str) -> Weights:
    """Weights whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): w for name, w in weights.items() if name.startswith(prefix)}


def _found(value: Any, entry: str) -> Iterator[tuple[str, Weights]]:
    if isinstance(value, dict):
        # Optimisers number what they keep, modules do not.
        if not all(isinstance(name, str) for name in value):
            return
        if value and all(isinstance(w, Tensor) for w in value.values()):
            yield entry, dict(value)
            return
        parts = list(value.items())
    elif isinstance(value, list | tuple):
        parts = [(str(index), part) for index, part in enumerate(value)]
    else:
        return
    for name, part in parts:
        yield from _found(part, f"{entry}.{name}" if entry else name)


def _has_arrays(weights: Weights) -> bool:
    return any(w.ndim for w in weights.values())


def _has_dots(weights: Weights) -> bool:
    return any("." in name for name in weights)


def _sample(weights: Weights) -> str:
    shown = [f"{_short(name)} {tuple(w.shape)}" for name, w in list(weights.items())[:2]]
    return f"{len(weights)} tensors: {', '.join(shown)}{', ...' if len(weights) > 2 else ''}"


def _contents(saved: Any) -> str:
    if isinstance(saved, Tensor):
        return f"It is one tensor of shape {tuple(saved.shape)}."
    if not isinstance(saved, dict | list | tuple):
        return f"It is of type {type(saved).__name__}."
    held = [f"{_short(entry)!r} {_kind(value)}" for entry, value in flattened(saved, "")]
    return f"It holds {listed(held)}." if held else "It is empty."


def _kind(value: Any) -> str:
    return str(tuple(value.shape)) if isinstance(value, Tensor) else type(value).__name__


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."

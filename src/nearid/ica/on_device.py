"""The pass of ICA over a block as operations of torch on a device. The sums are those of `passes`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from nearid.engines.torch_engine import TorchDevice
    from nearid.ica.passes import Task

# Rows whose products are summed in single precision, as in `passes`.
PIECE_ROWS = 4096


def _logcosh(torch: Any, y: Any) -> tuple[Any, Any, Any]:
    g, size = torch.tanh(y), y.abs()
    return g, 1 - g * g, size + torch.log1p(torch.exp(-2 * size)) - math.log(2)


def _exp(torch: Any, y: Any) -> tuple[Any, Any, Any]:
    bell = torch.exp(y * y / -2)
    return y * bell, (1 - y * y) * bell, -bell


def _cube(torch: Any, y: Any) -> tuple[Any, Any, Any]:
    squares = y * y
    return squares * y, 3 * squares, squares * squares / 4


def _radial(torch: Any, y: Any) -> tuple[Any, Any, Any]:
    weights = torch.log1p((y * y).sum(1, keepdim=True) / y.shape[1]) - math.log(2)
    zero = torch.zeros_like(y)
    return y * weights, zero, zero


# For each contrast: g, g' and G of every entry.
_CONTRASTS: dict[str, Callable[[Any, Any], tuple[Any, Any, Any]]] = {
    "logcosh": _logcosh,
    "exp": _exp,
    "cube": _cube,
    "radial": _radial,
}


def sums_of(x: np.ndarray, task: Task, device: TorchDevice) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the products and sums of a block of rows; None if the device lacks the precision or the contrast."""
    evaluate, torch = _CONTRASTS.get(task.contrast.name), device.torch
    if evaluate is None or task.origin.dtype not in device.precisions:
        return None
    k = task.turn.shape[1]
    # Added up on the device where it has double precision, and otherwise here.
    double = np.dtype(np.float64) in device.precisions
    with device.place():
        origin, turn, shift = (device.put(each) for each in (task.origin, task.turn, task.shift))
        products, sums = (
            torch.zeros(shape, dtype=torch.float64, device=turn.device if double else "cpu")
            for shape in ((1 + task.with_bends, k, k), (2, k))
        )
        rows = device.put(np.asarray(x, dtype=task.origin.dtype))
        for piece in rows.split(PIECE_ROWS):
            y = (piece - origin) @ turn + shift
            g, slope, value = evaluate(torch, y)
            several = [g.T @ y, *([slope.T @ (y * y)] if task.with_bends else [])]
            both = torch.stack([slope.sum(0), value.sum(0) if task.with_values else torch.zeros_like(slope[0])])
            products += torch.stack(several).to(products.device).double()
            sums += both.to(sums.device).double()
        return products.cpu().numpy(), sums.cpu().numpy()

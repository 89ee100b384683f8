"""The error pass over a block as operations of torch on a device. The figures are those of `errors`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.groups.fits import Map, MatchMap
from nearid.moments import Floats

if TYPE_CHECKING:
    from nearid.engines.torch_engine import TorchDevice
    from nearid.questions.compare.errors import Judging


def squares_of(x: Floats, y: Floats, fold: np.ndarray, how: Judging, device: TorchDevice) -> Floats | None:
    """Return sums over columns for each row of a block; None if numpy must compute them.

    That is the case if the device lacks the precision, or if squares need units to stay within it.

    Returns
    -------
    ndarray of float64, shape (groups + 3, rows)
        Squares of the residuals of each group, of the source and of the target, and the product of the target with the
        constant guess. NaN for rows that are left out.
    """
    frames, dtype, torch = (how.x_frame, how.y_frame), how.x_frame.origin.dtype, device.torch
    if dtype not in device.precisions or any(np.any(frame.units != 1) for frame in frames):
        return None
    out = np.full((len(how.plans[0]) + 3, len(fold)), np.nan)
    with device.place():
        sides = [device.put(np.asarray(side, dtype)) for side in (x, y)]
        origins = [device.put(frame.origin) for frame in frames]
        for k, (plan, guess) in enumerate(zip(how.plans, how.guesses, strict=True)):
            rows = np.flatnonzero(fold == k)
            at = device.put(rows)
            xk, yk = (side[at] - origin for side, origin in zip(sides, origins, strict=True))
            parts = [_turned(fitted, xk, device) - yk + device.put(offset) for fitted, offset in plan]
            sums = [(part * part).sum(1) for part in (*parts, xk, yk)]
            out[:, rows] = torch.stack([*sums, yk @ device.put(guess)]).cpu().numpy()
    return out


def _turned(fitted: Map, centred: Any, device: TorchDevice) -> Any:
    if isinstance(fitted, MatchMap):
        return centred[:, device.put(fitted.columns)] * device.put(fitted.weights)
    return centred @ device.put(fitted.matrix)

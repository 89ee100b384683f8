"""Find the batch axis of a tensor by running the graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Outputs of a row in a batch and alone may differ by this share of the largest number: kernels round differently.
ROUNDED = 1e-3
# If one input changes, the others may change by this share: some quantisation depends on the whole batch.
STRAY = 0.1


def grown_axis(two: Sequence[int], three: Sequence[int]) -> int | None:
    """The axis that has the size 2 for two inputs and 3 for three."""
    if len(two) != len(three):
        return None
    return next((at for at, sizes in enumerate(zip(two, three, strict=True)) if sizes == (2, 3)), None)


def moved_axis(size: int, equal: np.ndarray, *others: np.ndarray, layout: int | None = None) -> int | None:
    """The batch axis for a fixed number of inputs; None if it cannot be found.

    Parameters
    ----------
    equal : ndarray
        The tensor for inputs that are all equal.
    others : ndarray
        The tensor with another first input, and with another last input; empty for a size of 1.
    layout : int or None
        The axis by the definition of the operator, for recurrent operators.
    """
    if any(other.shape != equal.shape for other in others):
        return None
    nearly = ROUNDED * np.abs(equal.astype(float)).max(initial=0.0)
    axes = [
        at
        for at, length in enumerate(equal.shape)
        if length == size and _distance(equal, equal.take([0], at)).max(initial=0.0) <= nearly
    ]
    changes = [_distance(other, equal) for other in others]
    # A layer that is 0 for these inputs shows nothing.
    if any(change.any() for change in changes):
        ends = (0, size - 1)
        axes = [at for at in axes if all(_only(x, at, end) for x, end in zip(changes, ends, strict=True))]
    if len(axes) > 1 and layout in axes:
        return layout
    # With a single input, all candidate axes give the same numbers.
    return axes[0] if len(axes) == 1 or (axes and size == 1) else None


def _distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nan_to_num(np.abs(x.astype(float) - y)))


def _only(change: np.ndarray, axis: int, place: int) -> bool:
    """Whether one slice along an axis changes, and the others almost do not."""
    slices = change.max(axis=tuple(at for at in range(change.ndim) if at != axis))
    return bool(np.delete(slices, place).max() <= STRAY * slices[place] > 0)

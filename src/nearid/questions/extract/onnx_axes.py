"""The axis of a tensor along which the inputs of a batch are, found out by runs of the graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Rows of a batch may differ by this share of the largest number from the same rows alone: kernels round differently.
ROUNDED = 1e-3
# Where one input changes, the others may change by this share of it: some quantisation follows the whole batch.
STRAY = 0.1


def grown_axis(two: Sequence[int], three: Sequence[int]) -> int | None:
    """The axis that has the size 2 for two inputs and 3 for three."""
    if len(two) != len(three):
        return None
    return next((at for at, sizes in enumerate(zip(two, three, strict=True)) if sizes == (2, 3)), None)


def moved_axis(size: int, equal: np.ndarray, *others: np.ndarray, layout: int | None = None) -> int | None:
    """The axis of a fixed number of inputs; None where it cannot be told.

    Parameters
    ----------
    equal : ndarray
        The tensor for inputs that are all equal.
    others : ndarray
        The tensor where the first input is another one, and where the last is; none for a size of 1.
    layout : int or None
        The axis by the definition of the operator, for those of recurrent nets.
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
    # A layer that is silent for these inputs tells nothing.
    if any(change.any() for change in changes):
        ends = (0, size - 1)
        axes = [at for at in axes if all(_only(x, at, end) for x, end in zip(changes, ends, strict=True))]
    if len(axes) > 1 and layout in axes:
        return layout
    # Of axes for a single input any leads to the same numbers.
    return axes[0] if len(axes) == 1 or (axes and size == 1) else None


def _distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nan_to_num(np.abs(x.astype(float) - y)))


def _only(change: np.ndarray, axis: int, place: int) -> bool:
    """Whether one slice along an axis changes, and the others hardly do."""
    slices = change.max(axis=tuple(at for at in range(change.ndim) if at != axis))
    return bool(np.delete(slices, place).max() <= STRAY * slices[place] > 0)

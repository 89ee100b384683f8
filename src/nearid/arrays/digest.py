"""A digest of all numbers: what shows whether rows are still the same."""

from __future__ import annotations

import hashlib

import numpy as np

from nearid.arrays.rows import Rows

# Bytes of rows that are read at once.
BLOCK = 1 << 24


def digest(rows: Rows, index: np.ndarray | None = None, *, with_ids: bool = True) -> str:
    """16 hex digits that follow from the shape, the dtype and all numbers and ids of some rows.

    Unlike `Rows.fingerprint`, which samples, no change of a number goes unseen: kept results are found by it.

    Parameters
    ----------
    rows : Rows
    index : ndarray of int, optional
        The rows, in this order; all where it is left out.
    with_ids : bool
        Whether other ids make other rows.
    """
    n, width = (rows.shape[0] if index is None else len(index)), rows.shape[1]
    ids = None
    if with_ids and rows.ids is not None:
        ids = (rows.ids if index is None else rows.ids[index]).tolist()
    found = hashlib.sha256(f"{(n, width)} {rows.dtype.name} {ids!r}".encode())
    # One byte order, so that all machines agree.
    stored = rows.dtype.newbyteorder("<")
    step = max(1, BLOCK // (width * rows.dtype.itemsize))
    for start in range(0, n, step):
        stop = min(start + step, n)
        block = rows.read(start, stop) if index is None else rows.take(index[start:stop])
        found.update(block.astype(stored, order="C", copy=False).tobytes())
    return found.hexdigest()[:16]

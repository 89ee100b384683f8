"""Ids of tokens: the id of their input and their place in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearid.base.errors import InputError

# Places in an input; an integer id leaves the lower 20 bits to them.
PLACES = 1 << 20


def token_id_type(ids: np.dtype[Any]) -> np.dtype[Any]:
    """How ids of tokens are stored, given how ids of inputs are."""
    if ids.kind == "U":
        return np.dtype(f"<U{ids.itemsize // 4 + 1 + len(str(PLACES))}")
    return np.dtype(np.int64)


def token_ids(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Ids of the tokens that are no padding: id x 2^20 + place, or "id:place" where ids are text.

    Parameters
    ----------
    ids : ndarray of shape (n,)
    mask : ndarray of bool, shape (n, t)
    """
    row, place = np.nonzero(mask)
    # Places count real tokens, so that they do not depend on the side of the padding.
    place -= mask.argmax(axis=1)[row]
    if ids.dtype.kind == "U":
        joined = np.char.add(np.char.add(ids[row], ":"), place.astype(np.str_))
        return joined.astype(token_id_type(ids.dtype))
    if mask.shape[1] > PLACES or ids.min(initial=0) < 0 or ids.max(initial=0) >= 2**63 // PLACES:
        raise InputError(
            f"Ids of tokens are made of ids from 0 to {2**63 // PLACES - 1} and places below {PLACES}; use text ids."
        )
    return np.asarray(ids[row].astype(np.int64) * PLACES + place)

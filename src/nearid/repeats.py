"""Rows that repeat others: they stand on both sides of a fold, where they are no longer held out."""

from __future__ import annotations

import numpy as np

from nearid.base.alerts import Alert
from nearid.moments import Floats


def trait_weights(sample: Floats) -> Floats:
    """Weights of columns, of which a sample of rows is given, for `traits`: at random, in units of their spread."""
    finite = np.where(np.isfinite(sample), sample, 0.0)
    # Halved and by the range, so that nothing overflows.
    spread = finite.max(axis=0) / 2 - finite.min(axis=0) / 2
    generic = np.random.default_rng(0).normal(size=sample.shape[1])
    # Over a spread that is hardly a normal number the quotient would overflow.
    return np.asarray(generic / np.where(spread > 1e3 * np.finfo(float).tiny, spread, 1.0))


def traits(rows: Floats, weights: Floats) -> Floats:
    """A number that a row shares with its copies, and hardly with any other row."""
    # Not by BLAS, whose last digits depend on the place of a row.
    return np.asarray(np.einsum("ij,j->i", rows, weights))


def pair_traits(x: Floats, y: Floats) -> Floats:
    """Traits of rows that are held in memory, of both sides together."""
    rows = np.hstack([x - x.mean(axis=0), y - y.mean(axis=0)])
    return traits(rows, trait_weights(rows))


def repeated_rows(found: Floats) -> tuple[Alert, ...]:
    """The caution about rows whose traits repeat."""
    copies = len(found) - len(np.unique(found))
    if copies <= max(0.005 * len(found), 1):
        return ()
    text = (
        f"About {copies} of {len(found)} rows repeat others: copies of a held-out row are fitted on, so errors are "
        "too small and scores too high. Drop repeated rows."
    )
    return (Alert("repeated_rows", text),)

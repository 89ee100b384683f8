"""Rows that make a component on their own, and rows that repeat: fewer rows stand behind a fit than it counts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nearid.arrays import Rows
from nearid.engines.local import ordered_map
from nearid.ica.diagnostics import Caution
from nearid.ica.stream import Affine
from nearid.moments import Floats

# Fewer rows than this always leave much to a few of them.
ENOUGH_ROWS = 200
# So many rows that carry more than this share of a component's variance make this component.
FURTHEST, SHARE = 5, 0.5
# More copies than this share of the rows are no chance.
COPIES = 0.005


def row_cautions(rows: Rows, forward: Affine) -> list[Caution]:
    """Cautions about the rows of a fit, from one more pass; rows with a NaN or an infinity are left out.

    Parameters
    ----------
    rows : Rows
    forward : Affine
        From rows to components.
    """
    # A number that a row shares with its copies, and hardly with any other row.
    direction = np.random.default_rng(0).normal(size=rows.shape[1])

    def task(block: tuple[int, int]) -> tuple[Floats, Floats, Floats]:
        x = rows.read(*block)
        x = x[np.isfinite(x).all(axis=1)]
        squares = np.square(forward(x), dtype=np.float64)
        # Not a product of matrices, whose last digits depend on the place of a row.
        return np.sum(x * direction, axis=1), _largest(squares), squares.sum(axis=0)

    traits, furthest, sums = zip(*ordered_map(task, forward.cut(rows.shape[0])), strict=True)
    shares = _largest(np.concatenate(furthest)).sum(axis=0) / np.sum(sums, axis=0)
    return [*_outlying(np.concatenate(traits), shares), *_repeated(np.concatenate(traits))]


def _largest(squares: Floats) -> Floats:
    """The largest values of each column, in any order."""
    return np.partition(squares, -min(FURTHEST, len(squares)), axis=0)[-FURTHEST:] if len(squares) else squares


def _outlying(traits: Floats, shares: Floats) -> Iterator[Caution]:
    made = np.flatnonzero(shares > SHARE)
    if len(traits) >= ENOUGH_ROWS and len(made):
        yield Caution(
            "outlying_rows",
            f"{FURTHEST} of {len(traits)} rows carry {shares[made[0]]:.0%} of the variance of component {made[0]}: "
            f"outlying rows make {len(made)} of {len(shares)} components. Look for damaged values.",
        )


def _repeated(traits: Floats) -> Iterator[Caution]:
    copies = len(traits) - len(np.unique(traits))
    if copies > max(COPIES * len(traits), 1):
        yield Caution(
            "repeated_rows",
            f"About {copies} of {len(traits)} rows repeat others: the components are founded on fewer rows than the "
            "diagnostics count. Drop repeated rows.",
        )

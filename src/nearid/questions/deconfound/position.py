"""How much of each component the position on the plate explains: rows and columns of wells, such as effects of edges.

Position is a property of a well, so wells count once, with the mean of their rows. The model is additive: a mean for
each batch, label, row and column of the plate. The share of the position is the part of the variance left by batch and
label that row and column explain, adjusted for the number of fitted means. With controls, only these are used if they
stand in several places: perturbations often have the same place on every plate, and cannot be separated from it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearid.arrays import Rows
from nearid.base.alerts import Alert
from nearid.engines.base import Engine
from nearid.engines.local import LOCAL
from nearid.moments import Floats
from nearid.questions.deconfound.attribution import Piece, group_sums, pieces
from nearid.questions.deconfound.conditions import Components, RowMap
from nearid.questions.deconfound.design import Design

# A position that explains this much of a component, on the average or of one, is reported.
MATTERS, LARGE = 0.05, 0.2
# Eigenvalues below this share of the largest are those of groups that are not linked.
LINKED = 1e-9
LEVEL = 0.01


@dataclass(frozen=True)
class PositionShares:
    """Adjusted share of the variance of each component that the position explains, and its p-value.

    Attributes
    ----------
    share, p : ndarray of shape (k,)
        NaN if position cannot be separated from batch and label.
    wells : int
        Wells that were used.
    of_controls : bool
        Whether these are the controls alone.
    """

    share: Floats
    p: Floats
    wells: int
    of_controls: bool

    @property
    def mean(self) -> float:
        """Mean over components."""
        known = self.share[~np.isnan(self.share)]
        return float(known.mean()) if len(known) else float("nan")


def position_shares(
    components: Components, design: Design, position: np.ndarray, engine: Engine = LOCAL
) -> PositionShares:
    """What row and column of the plate explain of each component."""
    placed = np.all(position >= 0, axis=1)
    if design.control is not None:
        mine = placed & (design.labels.codes == design.control)
        among = _shares(components, design, position, np.flatnonzero(mine), engine, of_controls=True)
        if among is not None:
            return among
    every = _shares(components, design, position, np.flatnonzero(placed), engine, of_controls=False)
    nothing = np.full(components.width, np.nan)
    return PositionShares(nothing, nothing, 0, False) if every is None else every


def _shares(
    components: Components,
    design: Design,
    position: np.ndarray,
    places: np.ndarray,
    engine: Engine,
    *,
    of_controls: bool,
) -> PositionShares | None:
    if len(places) < 3:
        return None
    factors = np.column_stack([design.batches.codes[places], design.labels.codes[places], position[places]])
    wells, at = np.unique(factors, axis=0, return_inverse=True)
    means = _well_means(components, places, at.ravel(), len(wells), engine)
    before, after = wells[:, :2], wells
    (left, spent), (least, all_spent) = _residual(before, means), _residual(after, means)
    n = len(wells)
    if all_spent == spent or n <= all_spent:
        return None
    from scipy.special import fdtrc

    with np.errstate(divide="ignore", invalid="ignore"):
        share = 1 - (least / (n - all_spent)) / (left / (n - spent))
        f = ((left - least) / (all_spent - spent)) / (least / (n - all_spent))
    p = np.asarray(fdtrc(all_spent - spent, n - all_spent, np.maximum(f, 0)))
    return PositionShares(share, p, n, of_controls)


def _well_means(components: Components, places: np.ndarray, at: np.ndarray, count: int, engine: Engine) -> Floats:
    sums = np.zeros((count, components.width))
    for wells, own in engine.map(_well_sums, pieces(places, at), components.rows, components.mapping):
        sums[wells] += own
    return np.asarray(sums / np.bincount(at, minlength=count)[:, None])


def _well_sums(piece: Piece, rows: Rows, mapping: RowMap) -> tuple[np.ndarray, Floats]:
    """The wells of a piece, and the sums of their rows."""
    wells, at = np.unique(piece.groups[0], return_inverse=True)
    return wells, group_sums(mapping(rows.take(piece.places), piece.places).astype(np.float64), at)


def _residual(factors: np.ndarray, y: Floats) -> tuple[Floats, int]:
    """Residual squares of y after a mean for each class of every factor, and the number of free means."""
    codes = [np.unique(column, return_inverse=True)[1] for column in factors.T]
    indicators = np.hstack([np.eye(int(code.max()) + 1)[code] for code in codes])
    values, vectors = np.linalg.eigh(indicators.T @ indicators)
    real = values > LINKED * values[-1]
    centred = y - y.mean(axis=0)
    turned = vectors[:, real].T @ (indicators.T @ centred)
    explained = np.sum(turned**2 / values[real][:, None], axis=0)
    return np.maximum(np.sum(centred**2, axis=0) - explained, 0.0), int(real.sum())


def position_alert(title: str, shares: PositionShares) -> Alert | None:
    """What is to be said of the position, where it explains much of the components of a condition."""
    if np.isnan(shares.share).all():
        return Alert(
            "position_confounded",
            "Position on the plate cannot be separated from batch and label: labels have the same places everywhere.",
        )
    clear = shares.p < LEVEL / len(shares.p)
    worst = int(np.nanargmax(shares.share))
    if not clear[worst] or (shares.mean < MATTERS and shares.share[worst] < LARGE):
        return None
    wells = "control wells" if shares.of_controls else "wells, given batch and label"
    return Alert(
        "position",
        f"Position on the plate explains {100 * shares.mean:.1f}% of the variance of the components of {title} on the "
        f"average, and {100 * shares.share[worst]:.1f}% of component {worst} ({shares.wells:,} {wells}). A position "
        "effect that all batches share does not show as a batch effect.",
    )

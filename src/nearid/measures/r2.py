"""Linear R2 of factors given latents, held out, and how far the linear map is from a scaled rotation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearid.base.alerts import Alert
from nearid.base.options import Seed, checked
from nearid.base.progress import Reporting
from nearid.engines.base import Engine
from nearid.groups.fits import fit_linear, squared_errors
from nearid.measures.recovery import FactorRecovery
from nearid.measures.targets import Targets, gather
from nearid.moments import CrossMoments, Floats, PairMoments


@dataclass(frozen=True)
class R2(FactorRecovery):
    """Linear R2. The value is the mean over factors.

    The matrix holds the sizes of the coefficients of a fit on all rows, with latents and factors in units of their
    standard deviations.

    Attributes
    ----------
    orthogonality_error : float or None
        Relative distance |A - c R| / |A| of the map A on all rows from the nearest scaled rotation (or projection, or
        embedding) c R: 0 for a scaled rotation, towards 1 for a map that keeps one direction of many. None where all
        factors are categorical, which have no geometry.
    scale : float or None
        That c: the mean of the singular values of A.
    scale_error : float or None
        |ln c|: 0 where latents and factors have the same scale.
    """

    orthogonality_error: float | None
    scale: float | None
    scale_error: float | None


@checked
def r2(
    latents: object,
    factors: object,
    *,
    folds: int = 5,
    random_state: Seed = 0,
    drop_nonfinite: bool = False,
    engine: str | Engine | None = None,
    progress: Reporting = False,
) -> R2:
    """Share of each factor's variance that a linear map of the latents explains in rows it was not fitted on.

    The map has an intercept. R2 is 1 - (squared error) / (squared error of the training mean), summed over folds and,
    for circular and categorical factors, over cosine and sine or the classes. Noise is at 0 or below.

    Parameters
    ----------
    latents : array, tensor, path or Rows, of shape (n, d)
    factors : anything `open_factors` takes, of m factors
    folds : int
        Number of folds; 1 gives the in-sample value, which is 1 for noise as soon as n <= d.
    random_state : int
        Seed of the folds.
    drop_nonfinite : bool
        Leave out rows with a NaN or an infinity among the latents; otherwise that is an error.
    engine : {"local", "dask"}, address or Engine, optional
        Where the pass over the rows runs. Rows that are fewer than the latents are read into memory here.
    progress : bool, default=False
        Draw a progress bar on stderr. A function is called with the name of each stage and its number of steps.

    Returns
    -------
    R2
    """
    targets = gather(
        latents,
        factors,
        folds=folds,
        random_state=random_state,
        drop_nonfinite=drop_nonfinite,
        engine=engine,
        progress=progress,
    )
    error, spread = np.sum(targets.splits(_errors), axis=0)
    per_factor = np.array([1 - error[b].sum() / spread[b].sum() for b in targets.blocks])
    space, whole = targets.row_space, targets.cross
    matrix = space.in_latents(fit_linear(space.parts.all).coefficients)
    d, n = len(matrix), min(whole.n - count for count in targets.source.counts) or whole.n
    alerts = targets.alerts
    if n <= d + 1:
        alerts += (
            Alert("few_rows", f"A fit to {n} rows with {d} latents interpolates noise: give more rows than latents."),
        )
    return R2(
        float(per_factor.mean()),
        _coefficients(matrix, whole, targets),
        targets.names,
        alerts,
        per_factor,
        *_geometry(matrix, targets),
    )


def _errors(train: PairMoments, test: PairMoments) -> tuple[Floats, Floats]:
    """Squared error of each factor column in `test`: of the map fitted on `train`, and of the mean of `train`."""
    shift = test.mean_y - train.mean_y
    return squared_errors(fit_linear(train), test), np.diag(test.yy) + test.n * shift**2


def _coefficients(matrix: Floats, moments: CrossMoments, targets: Targets) -> Floats:
    scaled = matrix * np.sqrt(moments.spread)[:, None]
    total = np.diag(moments.yy)
    return np.column_stack([np.linalg.norm(scaled[:, b], axis=1) / np.sqrt(total[b].sum()) for b in targets.blocks])


def _geometry(matrix: Floats, targets: Targets) -> tuple[float | None, float | None, float | None]:
    """Orthogonality error, scale and scale error of a map."""
    blocks = [b for b, kind in zip(targets.blocks, targets.kinds, strict=True) if kind != "categorical"]
    if not blocks:
        return None, None, None
    values = np.linalg.svd(np.hstack([matrix[:, b] for b in blocks]), compute_uv=False)
    if not values.any():
        return None, None, None
    # |A - c R|^2 is least for the polar factor R and c the mean singular value: sum s^2 - (sum s)^2 / k
    scale = float(values.mean())
    error = float(np.linalg.norm(values - scale) / np.linalg.norm(values))
    return error, scale, abs(float(np.log(scale)))

"""Linear R2 of factors given latents, held out, and how far the linear map is from a scaled rotation."""

from __future__ import annotations

import numpy as np

from nearid.base.alerts import Alert
from nearid.base.options import Seed
from nearid.groups.fits import fit_linear, squared_errors
from nearid.measures.registry import EACH_LATENT, INFINITY, Measured, Part, measure
from nearid.measures.targets import Inputs, Targets
from nearid.moments import CrossMoments, Floats, PairMoments


@measure(
    "R2, linear",
    low=-INFINITY,
    invariances=(*EACH_LATENT, "linear"),
    parts={"orthogonality_error": Part(), "scale": Part(high=INFINITY), "scale_error": Part(high=INFINITY)},
    each="R2, linear",
    each_low=-INFINITY,
    streams=True,
)
def r2(inputs: Inputs, *, folds: int = 5, random_state: Seed = 0) -> Measured:
    """Share of each factor's variance that a linear map of the latents explains in rows it was not fitted on.

    The map has an intercept. R2 is 1 - (squared error) / (squared error of the training mean), summed over folds and,
    for circular and categorical factors, over cosine and sine or the classes. Noise is at 0 or below.

    Parameters
    ----------
    folds : int
        Number of folds; 1 gives the in-sample value, which is 1 for noise as soon as n <= d.

    Returns
    -------
    Measured
        The value is the mean over factors. `matrix` holds the sizes of the coefficients of a fit on all rows, with
        latents and factors in units of their standard deviations. Parts, NaN where all factors are categorical (these
        have no geometry):

        - `orthogonality_error`: relative distance |A - c R| / |A| of the map A on all rows from the nearest scaled
          rotation (or projection, or embedding) c R. It is 0 for a scaled rotation and tends to 1 for a map that keeps
          one direction of many.
        - `scale`: that c, the mean of the singular values of A.
        - `scale_error`: |ln c|, 0 where latents and factors have the same scale.

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> u = np.random.default_rng(0).normal(size=(200, 2))
    >>> turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    >>> m = nearid.r2(2 * u @ turn, u)
    >>> round(m.value, 3), round(m.scale, 3), m.orthogonality_error < 1e-6
    (1.0, 0.5, True)
    """
    targets = inputs.moments(folds, random_state)
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
    return Measured(
        float(per_factor.mean()),
        _coefficients(matrix, whole, targets),
        targets.names,
        per_factor,
        _geometry(matrix, targets),
        alerts=alerts,
    )


def _errors(train: PairMoments, test: PairMoments) -> tuple[Floats, Floats]:
    """Squared error of each factor column in `test`: of the map fitted on `train`, and of the mean of `train`."""
    shift = test.mean_y - train.mean_y
    return squared_errors(fit_linear(train), test), np.diag(test.yy) + test.n * shift**2


def _coefficients(matrix: Floats, moments: CrossMoments, targets: Targets) -> Floats:
    scaled = matrix * np.sqrt(moments.spread)[:, None]
    total = np.diag(moments.yy)
    return np.column_stack([np.linalg.norm(scaled[:, b], axis=1) / np.sqrt(total[b].sum()) for b in targets.blocks])


def _geometry(matrix: Floats, targets: Targets) -> dict[str, float]:
    """Orthogonality error, scale and scale error of a map."""
    blocks = [b for b, kind in zip(targets.blocks, targets.kinds, strict=True) if kind != "categorical"]
    values = np.linalg.svd(np.hstack([matrix[:, b] for b in blocks]), compute_uv=False) if blocks else np.zeros(1)
    if not values.any():
        return dict.fromkeys(("orthogonality_error", "scale", "scale_error"), float("nan"))
    # |A - c R|^2 is least for the polar factor R and c the mean singular value: sum s^2 - (sum s)^2 / k
    scale = float(values.mean())
    error = float(np.linalg.norm(values - scale) / np.linalg.norm(values))
    return {"orthogonality_error": error, "scale": scale, "scale_error": abs(float(np.log(scale)))}

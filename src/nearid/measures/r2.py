"""Linear R2 of factors given latents, held out, and how far the linear map is from a scaled rotation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from nearid.base.alerts import Alert
from nearid.base.options import Seed, Size
from nearid.groups.fits import DenseMap, Ridge, fit_linear_to_many, squared_errors, typical
from nearid.groups.ridge import LEAST_GAIN, Judges, Penalties
from nearid.measures.registry import INFINITY, Earlier, Measured, Part, measure
from nearid.measures.targets import Inputs, Targets, WideRows
from nearid.moments import CrossMoments, Floats, PairMoments


@measure(
    "R2, linear",
    low=-INFINITY,
    # Of plain least squares also "scale" and "linear": a penalty depends on the units of the latents.
    invariances=("permutation", "sign", "shift"),
    parts={"orthogonality_error": Part(), "scale": Part(high=INFINITY), "scale_error": Part(high=INFINITY)},
    each="R2, linear",
    each_low=-INFINITY,
    streams=True,
)
def r2(
    inputs: Inputs,
    *,
    ridge: Size | Literal["auto"] = "auto",
    folds: int = 5,
    random_state: Seed = 0,
    earlier: Earlier | None = None,
) -> Measured:
    """Share of each factor's variance that a linear map of the latents explains in rows it was not fitted on.

    The map has an intercept. R2 is 1 - (squared error) / (squared error of the training mean), summed over folds and,
    for circular and categorical factors, over cosine and sine or the classes. Noise is at 0 or below.

    Parameters
    ----------
    ridge : float or "auto", default="auto"
        Penalty of the map (scikit-learn's alpha), in the units of the latents. By default it is chosen for each factor
        and each fold by cross-validation over the other folds, and 0 where a penalty gains less than 1% of the error;
        with fewer than three folds, by generalised cross-validation of the rows that are fitted. 0 is plain least
        squares, as in the papers. Its value does not depend on the units of the latents, but falls far below 0 where
        these are nearly as many as the rows.
    folds : int
        Number of folds; 1 gives the in-sample value, which of plain least squares is 1 for noise as soon as n <= d.

    Returns
    -------
    Measured
        The value is the mean over factors. `matrix` holds the sizes of the coefficients of a fit on all rows, with
        latents and factors in units of their standard deviations. Parts, NaN where all factors are categorical (these
        have no geometry):

        - `orthogonality_error`: relative distance ``|A - c R| / |A|`` of the map A on all rows from the nearest
          scaled rotation (or projection, or embedding) c R. It is 0 for a scaled rotation and tends to 1 for a map
          that keeps one direction of many.
        - `scale`: that c, the mean of the singular values of A.
        - `scale_error`: ``|ln c|``, 0 where latents and factors have the same scale.

        `ridge`, an array of shape (m,), holds the penalty of each factor in that fit (a median if several).

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
    if earlier is not None:
        # Coordinates in the span of the rows serve as latents: penalty, errors and geometry of a map stay the same.
        inputs = replace(inputs, latents=earlier.kept.coordinates[earlier.rows])
    targets = inputs.moments(folds, random_state)
    parts = targets.row_space.parts
    judges = None
    if ridge == "auto":
        # What is decomposed depends on the latents alone, so permuted factors have the judges of their own order.
        judges = earlier.kept.judges if earlier is not None and earlier.permuted else Judges(parts)
        chosen = judges.choose_each(parts, targets.blocks, least_gain=LEAST_GAIN)
    else:
        chosen = [Penalties((float(ridge),) * folds, float(ridge))] * len(targets.blocks)
    # In sample the map of all rows is judged.
    penalties = [[own.folds[k] if folds > 1 else own.whole for own in chosen] for k in range(folds)]

    def errors(k: int, train: PairMoments, test: PairMoments) -> tuple[Floats, Floats]:
        """Squared error of each factor column in `test`: of the map fitted on `train`, and of the mean of `train`."""
        shift = test.mean_y - train.mean_y
        return squared_errors(_fitted(train, targets, penalties[k]), test), np.diag(test.yy) + test.n * shift**2

    error, spread = np.sum(targets.splits(errors), axis=0)
    per_factor = np.array([1 - error[b].sum() / spread[b].sum() for b in targets.blocks])
    strengths, whole = [own.whole for own in chosen], targets.cross
    matrix = targets.row_space.in_latents(_fitted(parts.all, targets, strengths).coefficients)
    d, n = len(matrix), min(whole.n - count for count in targets.source.counts) or whole.n
    alerts = targets.alerts
    if ridge == 0 and n <= d + 1:
        alerts += (
            Alert(
                "few_rows",
                f"Without a penalty, a fit of {n} rows with {d} latents follows noise. Give more rows than latents, or "
                'let nearid choose the penalty (ridge="auto").',
            ),
        )
    return Measured(
        float(per_factor.mean()),
        _coefficients(matrix, whole, targets),
        targets.names,
        per_factor,
        _geometry(matrix, targets),
        {"ridge": np.array([typical(own) for own in strengths])},
        alerts,
        Kept(targets.source.coordinates, judges) if isinstance(targets.source, WideRows) else None,
    )


class Kept(NamedTuple):
    """What R2 of more latents than rows uses again: coordinates of all rows, and what judges penalties in them."""

    coordinates: Floats
    judges: Judges | None


def _fitted(moments: PairMoments, targets: Targets, penalties: Sequence[Ridge]) -> DenseMap:
    """The linear map to all factor columns, with a penalty for each factor."""
    # Together, as factors often share a penalty, which is then factored once.
    maps = fit_linear_to_many([moments.target(at) for at in targets.blocks], penalties)
    matrix = np.zeros_like(moments.xy)
    for at, own in zip(targets.blocks, maps, strict=True):
        matrix[:, at] = own.coefficients
    return DenseMap(moments.mean_x, moments.mean_y, matrix)


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
    # |A - c R|^2 is least for the polar factor R and c the mean singular value: sum s^2 - (sum s)^2 / k. In units of
    # the largest, whose square a huge penalty would leave below the least number.
    scale, shares = float(values.mean()), values / values[0]
    error = float(np.linalg.norm(shares - shares.mean()) / np.linalg.norm(shares))
    return {"orthogonality_error": error, "scale": scale, "scale_error": abs(float(np.log(scale)))}

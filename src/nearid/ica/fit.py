"""ICA of any number of rows: whitening from one pass, the rotation from some more, a canonical and checked answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nearid.arrays import Rows
from nearid.base.errors import InputError
from nearid.engines.base import Engine
from nearid.engines.local import LOCAL, one_blas_thread
from nearid.folds import row_moments
from nearid.groups.fits import assignment, polar
from nearid.ica.contrast import CONTRASTS, RADIAL, Unequal
from nearid.ica.diagnostics import LEVEL, Curvature, Diagnostics, cautions, curvature, gaussian_test
from nearid.ica.passes import Sweeper
from nearid.ica.solver import Checkpoint, Keep, Solution, State, solve
from nearid.ica.whiten import Whitener, fit_whitener
from nearid.moments import Floats, Moments

# How far a seed turns the first rotation away from the eigenvectors it is made of.
STIR = 0.5


@dataclass(frozen=True)
class Unmixing:
    """Components s = components (x - mean) and back x = mixing s + mean.

    Attributes
    ----------
    mean : ndarray of shape (p,)
    components : ndarray of shape (k, p)
    mixing : ndarray of shape (p, k)
    whitener : Whitener
        Without whitening, the principal rotation in one common unit.
    kappa : ndarray of shape (k,)
        E[g'(s)] - E[g(s) s] of each component.
    solution : Solution
    diagnostics : Diagnostics
    """

    mean: Floats
    components: Floats
    mixing: Floats
    whitener: Whitener
    kappa: Floats
    solution: Solution
    diagnostics: Diagnostics


def fit_ica(
    rows: Rows,
    *,
    components: int | None = None,
    whiten: bool = True,
    contrast: str = "logcosh",
    tol: float = 1e-4,
    max_passes: int = 500,
    seed: int = 0,
    dtype: np.dtype | None = None,
    drop_nonfinite: bool = False,
    engine: Engine = LOCAL,
    moments: Moments | None = None,
    kept: np.ndarray | None = None,
    start: Floats | None = None,
    resume: Checkpoint | None = None,
    keep: Keep | None = None,
    stability_runs: int = 0,
    tick: Callable[[], object] | None = None,
) -> Unmixing:
    """Fit ICA to rows.

    Parameters
    ----------
    components : int, optional
        Leading principal directions to unmix; all that exist by default.
    whiten : bool
        Otherwise the unmixing is a pure rotation of centred rows in one common unit.
    contrast : {"logcosh", "exp", "cube"}
    tol : float
        Relative projected gradient to stop at.
    max_passes : int
        Passes over the rows after which the search ends without having converged.
    seed : int
        Of the first rotation.
    dtype : dtype, optional
        Precision of the products; that of the rows by default.
    engine : Engine
        Where the passes run; the result is the same.
    moments : Moments, optional
        Of the rows in use, where they are known already; `kept` then tells which rows these are.
    kept : ndarray of bool, optional
        Rows in use; all by default.
    start : ndarray of shape (k, p), optional
        Components of a fit to much the same rows, from where the search goes on, unless these rows have another rank.
    resume : Checkpoint, optional
        Of an earlier fit of the same rows with the same options: go on from there.
    keep : callable, optional
        Given a Checkpoint after every pass.
    stability_runs : int
        Fits from other starts to random halves of the rows, each whitened by its own moments, for the diagnostics'
        stability.
    tick : callable, optional
        Called after every pass.

    Returns
    -------
    Unmixing
        Components in the order of their distance from Gaussian, the largest first, each with its largest loading
        positive.
    """
    if moments is None:
        moments, kept = row_moments(rows, drop_nonfinite=drop_nonfinite, engine=engine)
    if not np.any(np.diag(moments.scatter) > 0):
        raise InputError(f"Every column of {rows.name} is constant: there is nothing to unmix.")
    sweeper = Sweeper(rows, kept, moments.mean, CONTRASTS[contrast], np.dtype(dtype or rows.dtype), engine=engine)
    # The last digits of decompositions depend on the threads of BLAS too.
    with one_blas_thread:

        def whitened(of: Moments) -> tuple[Whitener, Unequal | None]:
            whitener = fit_whitener(of, components=components, stored=sweeper.rows.dtype)
            if whiten:
                return whitener, None
            whitener, variances = _common_unit(whitener)
            return whitener, Unequal(variances, sweeper.contrast)

        def search(
            oracle: Callable[[Floats, bool], State], first: Floats | Checkpoint, n: int, keep: Keep | None = None
        ) -> Solution:
            gaussian = sweeper.contrast.gaussian
            return solve(oracle, first, tol=tol, max_passes=max_passes, n=n, gaussian=gaussian, keep=keep)

        def components_of(half: np.ndarray, seed: int) -> Floats:
            own, _ = row_moments(rows, only=half, engine=engine)
            over = replace(sweeper, kept=half, mean=own.mean)
            try:
                whitener, unequal = whitened(own)
            except InputError:
                # Nothing varies in this half, so none of the components comes out of it.
                return np.zeros((0, rows.shape[1]))
            solution = search(_oracle(over, whitener, unequal, tick), _first(over, whitener, seed), own.n)
            return np.asarray(solution.state.rotation @ whitener.forward)

        whitener, unequal = whitened(moments)
        k = len(whitener.forward)

        first: Floats | Checkpoint
        if resume is not None:
            if resume.rotation.shape != (k, k):
                raise InputError(
                    f"The checkpoint has {len(resume.rotation)} components and {rows.name} has {k}: it is of "
                    "another fit."
                )
            first = resume
        elif start is not None and len(start) == k:
            first = polar(start @ whitener.backward)
        else:
            first = _first(sweeper, whitener, seed)
        settled = search(_oracle(sweeper, whitener, unequal, tick), first, moments.n, keep)
        solution, values, curved = _canonical(sweeper, whitener, unequal, settled)
        unmixing = solution.state.rotation @ whitener.forward
        stability = None
        if stability_runs:
            used = np.ones(rows.shape[0], dtype=bool) if kept is None else kept
            stability = _stability(unmixing, moments.scatter, used, stability_runs, seed, components_of)
        return Unmixing(
            mean=moments.mean,
            components=unmixing,
            mixing=whitener.backward @ solution.state.rotation.T,
            whitener=whitener,
            kappa=solution.state.kappa,
            solution=solution,
            diagnostics=_diagnose(sweeper, whitener, solution, values, curved, moments.n, components, tol, stability),
        )


def _first(sweeper: Sweeper, whitener: Whitener, seed: int) -> Floats:
    """Where the search begins: eigenvectors that part sources by their kurtosis, stirred a little."""
    sums = replace(sweeper, contrast=RADIAL).sweep(whitener.forward)
    vectors = np.linalg.eigh(sums.products + sums.products.T)[1]
    k = len(vectors)
    stirred = polar(np.eye(k) + STIR / np.sqrt(k) * np.random.default_rng(seed).normal(size=(k, k)))
    return np.asarray(stirred @ vectors.T)


def _common_unit(whitener: Whitener) -> tuple[Whitener, Floats]:
    """The principal rotation alone, and the variances along it, in one unit.

    It is twice the largest size: where components are small, contrasts grow faster than variances, and a source is not
    split among several components for the sake of a larger sum.
    """
    sizes = np.linalg.norm(whitener.backward, axis=0)
    unit = 2 * float(sizes[0])
    directions = whitener.backward / sizes
    return replace(whitener, forward=directions.T / unit, backward=directions * unit), (sizes / unit) ** 2


def _oracle(
    sweeper: Sweeper, whitener: Whitener, unequal: Unequal | None, tick: Callable[[], object] | None
) -> Callable[[Floats, bool], State]:
    """A pass over the rows in terms of rotations of whitened rows."""

    def at(rotation: Floats, with_values: bool) -> State:
        sums = sweeper.sweep(rotation @ whitener.forward, with_values)
        if tick:
            tick()
        state = State(rotation, sums.products, sums.slopes, sums.values)
        return unequal.corrected(state) if unequal else state

    return at


def _canonical(
    sweeper: Sweeper, whitener: Whitener, unequal: Unequal | None, solution: Solution
) -> tuple[Solution, Floats, Curvature]:
    """Order and sign the components, so that two fits are comparable by eye; mean contrasts and flattest pairs."""
    state = solution.state
    sums = sweeper.bend(state.rotation @ whitener.forward)
    values, bends, pull = sums.values, sums.products, np.diag(state.products)
    if unequal:
        bends, pull = unequal.curved(state.rotation, bends, pull)
        # How far a component is from Gaussian is a matter of its shape, not of its size.
        sizes = np.sqrt(np.diag(unequal.covariance(state.rotation)))
        values = sweeper.sweep(state.rotation @ whitener.forward / sizes[:, None], with_values=True).values
    order = np.argsort(-np.abs(values - sweeper.contrast.gaussian), kind="stable")
    signs, each = solution.signs[order], np.ix_(order, order)
    mixing = whitener.backward @ state.rotation[order].T
    turned = np.sign(mixing[np.abs(mixing).argmax(axis=0), np.arange(len(order))])
    state = State(
        state.rotation[order] * turned[:, None],
        state.products[each] * np.outer(turned, turned),
        state.slopes[order],
        sums.values[order],
    )
    return replace(solution, state=state, signs=signs), values[order], curvature(bends[each], pull[order], signs)


def _diagnose(
    sweeper: Sweeper,
    whitener: Whitener,
    solution: Solution,
    values: Floats,
    curved: Curvature,
    n: int,
    asked: int | None,
    tol: float,
    stability: Floats | None,
) -> Diagnostics:
    k, columns = len(values), sweeper.rows.shape[1]
    z, p_values = gaussian_test(values, sweeper.contrast, n)
    gaussian = p_values > LEVEL
    heavy = (values - sweeper.contrast.gaussian) * sweeper.contrast.heavy > 0
    kinds = np.where(gaussian, "Gaussian", np.where(heavy, "super-Gaussian", "sub-Gaussian")).tolist()
    found = Diagnostics(
        converged=solution.converged,
        passes=len(solution.gradients),
        gradient=solution.gradients[-1],
        tol=tol,
        rows=n,
        columns=columns,
        components=k,
        rank=whitener.rank,
        rows_per_parameter=n / max(k * (k - 1) / 2, 1),
        smallest_variance=float(whitener.variances[k - 1]),
        largest_variance=float(whitener.variances[0]),
        nongaussianity=values - sweeper.contrast.gaussian,
        z=z,
        p_values=p_values,
        gaussian=gaussian,
        kinds=kinds,
        super_gaussian=kinds.count("super-Gaussian"),
        sub_gaussian=kinds.count("sub-Gaussian"),
        curvature=curved.flattest,
        typical_curvature=curved.typical,
        stability=stability,
        cautions=[],
    )
    return replace(found, cautions=list(cautions(found, asked or columns)))


def _stability(
    components: Floats,
    scatter: Floats,
    used: np.ndarray,
    runs: int,
    seed: int,
    components_of: Callable[[np.ndarray, int], Floats],
) -> Floats:
    """Mean |correlation| of each component with its match in fits from other starts to random halves of the rows.

    Each half is whitened by its own moments, as a fit to these rows alone would be: the whitener of all rows leaves
    correlations in a half, which no rotation can remove. Correlations are those over all rows. A component without a
    partner, because fewer directions exist in a half, counts as 0 there.

    Parameters
    ----------
    components : ndarray of shape (k, p)
    scatter : ndarray of shape (p, p)
        Of all rows in use.
    used : ndarray of bool, shape (n,)
        Rows in use.
    components_of : callable
        (rows of a half as a mask, seed) -> components of shape (m, p), in the units of the columns.
    """

    def normed(found: Floats) -> Floats:
        sizes = np.sqrt(np.einsum("ij,ij->i", found @ scatter, found))
        return np.asarray(found / np.where(sizes > 0, sizes, 1.0)[:, None])

    matched = np.zeros(len(components))
    for run in range(1, runs + 1):
        half = np.zeros_like(used)
        half[np.random.default_rng([seed, run]).permutation(np.flatnonzero(used))[: used.sum() // 2]] = True
        alike = np.abs(normed(components) @ scatter @ normed(components_of(half, seed + run)).T)
        own, other = assignment(alike)
        matched[own] += np.minimum(alike[own, other], 1.0)
    return matched / runs

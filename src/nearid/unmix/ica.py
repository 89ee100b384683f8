"""ICA of any number of rows: whitening from one pass, the rotation from some more, a canonical and checked answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linear_sum_assignment

from nearid.arrays import Rows
from nearid.engines.base import Engine
from nearid.engines.local import LOCAL
from nearid.errors import InputError
from nearid.folds import row_moments
from nearid.groups.fits import polar
from nearid.moments import Floats, Moments
from nearid.unmix.contrast import CONTRASTS, RADIAL
from nearid.unmix.diagnostics import LEVEL, Diagnostics, cautions, flattest, gaussian_test
from nearid.unmix.solver import Checkpoint, Keep, Solution, State, solve
from nearid.unmix.sweep import Sweeper
from nearid.unmix.whiten import Whitener, fit_whitener

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
        Otherwise the unmixing is a pure rotation of centred rows, all brought to one common unit.
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
        Fits from other starts to random halves of the rows, for the diagnostics' stability.
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
    whitener = fit_whitener(moments, components=components)
    if not whiten:
        whitener = _common_unit(whitener)
    sweeper = Sweeper(rows, kept, moments.mean, CONTRASTS[contrast], np.dtype(dtype or rows.dtype), engine=engine)
    k = len(whitener.forward)

    def search(over: Sweeper, first: Floats | Checkpoint, n: int, keep: Keep | None = None) -> Solution:
        return solve(
            _oracle(over, whitener, tick),
            first,
            tol=tol,
            max_passes=max_passes,
            n=n,
            gaussian=over.contrast.gaussian if whiten else None,
            keep=keep,
        )

    first: Floats | Checkpoint
    if resume is not None:
        if resume.rotation.shape != (k, k):
            raise InputError(
                f"The checkpoint has {len(resume.rotation)} components and {rows.name} has {k}: it is of another fit."
            )
        first = resume
    elif start is not None and len(start) == k:
        first = polar(start @ whitener.backward)
    else:
        first = _first(sweeper, whitener, seed)
    solution, values, bends = _canonical(sweeper, whitener, search(sweeper, first, moments.n, keep), whiten)
    rotation = solution.state.rotation
    stability = None
    if stability_runs:
        stability = _stability(
            rotation, stability_runs, seed, moments.n, sweeper, lambda o, s, n: search(o, _first(o, whitener, s), n)
        )
    return Unmixing(
        mean=moments.mean,
        components=rotation @ whitener.forward,
        mixing=whitener.backward @ rotation.T,
        whitener=whitener,
        kappa=solution.state.kappa,
        solution=solution,
        diagnostics=_diagnose(sweeper, whitener, solution, values, bends, moments.n, components, tol, stability),
    )


def _first(sweeper: Sweeper, whitener: Whitener, seed: int) -> Floats:
    """Where the search begins: eigenvectors that part sources by their kurtosis, stirred a little."""
    sums = replace(sweeper, contrast=RADIAL).sweep(whitener.forward)
    vectors = np.linalg.eigh(sums.products + sums.products.T)[1]
    k = len(vectors)
    stirred = polar(np.eye(k) + STIR / np.sqrt(k) * np.random.default_rng(seed).normal(size=(k, k)))
    return np.asarray(stirred @ vectors.T)


def _common_unit(whitener: Whitener) -> Whitener:
    """The principal rotation alone, in units of the mean variance: contrasts need components of about unit size."""
    sizes = np.linalg.norm(whitener.backward, axis=0)
    unit = float(np.sqrt(np.mean(sizes**2)))
    directions = whitener.backward / sizes
    return replace(whitener, forward=directions.T / unit, backward=directions * unit)


def _oracle(sweeper: Sweeper, whitener: Whitener, tick: Callable[[], object] | None) -> Callable[[Floats, bool], State]:
    """A pass over the rows in terms of rotations of whitened rows."""

    def at(rotation: Floats, with_values: bool) -> State:
        sums = sweeper.sweep(rotation @ whitener.forward, with_values)
        if tick:
            tick()
        return State(rotation, sums.products, sums.slopes, sums.values)

    return at


def _canonical(
    sweeper: Sweeper, whitener: Whitener, solution: Solution, whiten: bool
) -> tuple[Solution, Floats, Floats]:
    """Order and sign the components, so that two fits are comparable by eye; their mean contrasts and bends."""
    state = solution.state
    sums = sweeper.bend(state.rotation @ whitener.forward)
    values = sums.values
    if not whiten:
        # How far a component is from Gaussian is a matter of its shape, not of its size.
        variances = whitener.variances[: len(state.rotation)]
        sizes = np.sqrt(state.rotation**2 @ variances / variances.mean())
        values = sweeper.sweep(state.rotation @ whitener.forward / sizes[:, None], with_values=True).values
    order = np.argsort(-np.abs(values - sweeper.contrast.gaussian), kind="stable")
    mixing = whitener.backward @ state.rotation[order].T
    turned = np.sign(mixing[np.abs(mixing).argmax(axis=0), np.arange(len(order))])
    state = State(
        state.rotation[order] * turned[:, None],
        state.products[np.ix_(order, order)] * np.outer(turned, turned),
        state.slopes[order],
        sums.values[order],
    )
    return (
        replace(solution, state=state, signs=solution.signs[order]),
        values[order],
        sums.products[np.ix_(order, order)],
    )


def _diagnose(
    sweeper: Sweeper,
    whitener: Whitener,
    solution: Solution,
    values: Floats,
    bends: Floats,
    n: int,
    asked: int | None,
    tol: float,
    stability: Floats | None,
) -> Diagnostics:
    k, columns = len(values), sweeper.rows.shape[1]
    z, p_values = gaussian_test(values, sweeper.contrast, n)
    gaussian = p_values > LEVEL
    curvature = flattest(bends, np.diag(solution.state.products), solution.signs)
    # Signs are positive where E[G] is smaller than a Gaussian component's.
    heavy = solution.signs * sweeper.contrast.heavy < 0
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
        curvature=curvature,
        stability=stability,
        cautions=[],
    )
    return replace(found, cautions=list(cautions(found, min(columns, asked or columns))))


def _stability(
    rotation: Floats, runs: int, seed: int, n: int, sweeper: Sweeper, again: Callable[[Sweeper, int, int], Solution]
) -> Floats:
    """Mean |correlation| of each component with its match in fits from other starts to random halves of the rows."""
    used = np.arange(sweeper.rows.shape[0]) if sweeper.kept is None else np.flatnonzero(sweeper.kept)
    matched = np.zeros(len(rotation))
    for run in range(1, runs + 1):
        half = np.zeros(sweeper.rows.shape[0], dtype=bool)
        half[np.random.default_rng([seed, run]).permutation(used)[: n // 2]] = True
        other = again(replace(sweeper, kept=half), seed + run, n // 2).state.rotation
        # Components of whitened rows are rows of rotations: their products are correlations.
        alike = np.abs(rotation @ other.T)
        matched[:] += alike[linear_sum_assignment(-alike)]
    return matched / runs

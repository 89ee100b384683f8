"""ICA of any number of rows: whitening from one pass, the rotation from some more, a canonical and checked answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nearid.arrays import Rows
from nearid.engines.base import Engine
from nearid.engines.local import LOCAL
from nearid.errors import InputError
from nearid.folds import row_moments
from nearid.groups.fits import polar
from nearid.moments import Floats, Moments
from nearid.unmix.contrast import CONTRASTS, RADIAL, Contrast
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
    values, kappa : ndarray of shape (k,)
        E[G(s)] and E[g'(s)] - E[g(s) s] of each component.
    solution : Solution
    contrast : Contrast
    n : int
        Rows in use.
    """

    mean: Floats
    components: Floats
    mixing: Floats
    whitener: Whitener
    values: Floats
    kappa: Floats
    solution: Solution
    contrast: Contrast
    n: int


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
    oracle = _oracle(sweeper, whitener, tick)
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
    solution = solve(
        oracle,
        first,
        tol=tol,
        max_passes=max_passes,
        n=moments.n,
        gaussian=sweeper.contrast.gaussian if whiten else None,
        keep=keep,
    )
    return _canonical(whitener, solution, oracle, sweeper.contrast, moments.n)


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
    whitener: Whitener, solution: Solution, oracle: Callable[[Floats, bool], State], contrast: Contrast, n: int
) -> Unmixing:
    """Order and sign the components, so that two fits are comparable by eye."""
    state = oracle(solution.state.rotation, True)
    order = np.argsort(-np.abs(state.values - contrast.gaussian), kind="stable")
    rotation = state.rotation[order]
    mixing = whitener.backward @ rotation.T
    signs = np.sign(mixing[np.abs(mixing).argmax(axis=0), np.arange(len(rotation))])
    rotation *= signs[:, None]
    return Unmixing(
        whitener.mean,
        rotation @ whitener.forward,
        mixing * signs,
        whitener,
        state.values[order],
        state.kappa[order],
        replace(solution, state=replace(state, rotation=rotation)),
        contrast,
        n,
    )

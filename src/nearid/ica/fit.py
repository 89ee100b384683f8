"""ICA of any number of rows: whitening from one pass, the rotation from some more, a canonical and checked answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np

from nearid.arrays import Rows
from nearid.arrays.labels import block_codes
from nearid.base.errors import InputError
from nearid.engines.base import Engine
from nearid.engines.local import LOCAL, one_blas_thread
from nearid.folds import row_moments
from nearid.groups.fits import assignment, polar
from nearid.ica.contrast import CONTRASTS, RADIAL, UnwhitenedContrast
from nearid.ica.diagnostics import LEVEL, Curvature, Diagnostics, curvature, fit_alerts, gaussian_test
from nearid.ica.passes import RowPasses
from nearid.ica.solver import Checkpoint, Keep, Solution, State, solve
from nearid.ica.whiten import Whitener, fit_whitener
from nearid.moments import Floats, Moments

# How far a seed turns the first rotation away from the eigenvectors it is made of.
START_NOISE = 0.5


# Not frozen: scikit-learn sets the parameters of an estimator one by one.
@dataclass(eq=False, repr=False)
class IcaOptions:
    """What an ICA is fitted with.

    Parameters
    ----------
    n_components : int, optional
        Leading principal directions to unmix; all that exist by default.
    whiten : bool, default=True
        Whether to whiten first. Otherwise a pure rotation of the centred rows is sought, in one common unit.
    contrast : {"logcosh", "exp", "cube"}, default="logcosh"
        What is far from Gaussian. "exp" is robust to outliers, "cube" is the kurtosis.
    tol : float, default=1e-4
        Relative projected gradient to stop at. Products in float32 cannot tell much below 1e-6 from zero.
    max_passes : int, default=500
        Passes over the rows after which the search ends without having converged.
    stability : int, default=0
        Fits from other starts to random halves of the rows (of the blocks, where rows have blocks), to see which
        components are stable. Each costs about half of the fit.
    dtype : {"float32", "float64"}, optional
        Precision of the products; that of the rows by default. Sums are float64.
    """

    n_components: int | None = None
    _: KW_ONLY
    whiten: bool = True
    contrast: Literal["logcosh", "exp", "cube"] = "logcosh"
    tol: float = 1e-4
    max_passes: int = 500
    stability: int = 0
    dtype: Literal["float32", "float64"] | None = None


T = TypeVar("T", bound=Callable[..., Any])


def with_options(target: T) -> T:
    """The function or class, whose docstring has what `IcaOptions` says of its parameters in place of {options}."""
    entries = (inspect.getdoc(IcaOptions) or "").partition("----------\n")[2]
    target.__doc__ = inspect.cleandoc(target.__doc__ or "").replace("{options}", entries)
    return target


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
    options: IcaOptions | None = None,
    *,
    seed: int = 0,
    drop_nonfinite: bool = False,
    engine: Engine = LOCAL,
    moments: Moments | None = None,
    kept: np.ndarray | None = None,
    start: Floats | None = None,
    resume: Checkpoint | None = None,
    keep: Keep | None = None,
    tick: Callable[[], object] | None = None,
) -> Unmixing:
    """Components of rows, in the order of their distance from Gaussian, each with its largest loading positive.

    Parameters
    ----------
    options : IcaOptions, optional
    seed : int
        Of the first rotation.
    drop_nonfinite : bool
        Leave out rows with a NaN or an infinity; otherwise they are refused.
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
    keep, tick : callable, optional
        Called after every pass, `keep` with a Checkpoint.
    """
    options = options or IcaOptions()
    if moments is None:
        moments, kept = row_moments(rows, drop_nonfinite=drop_nonfinite, engine=engine)
    if not np.any(np.diag(moments.scatter) > 0):
        raise InputError(f"Every column of {rows.name} is constant: there is nothing to unmix.")
    dtype = np.dtype(options.dtype or rows.dtype)
    passes = RowPasses(rows, kept, moments.mean, CONTRASTS[options.contrast], dtype, engine=engine)
    # The last digits of decompositions depend on the threads of BLAS too.
    with one_blas_thread:
        problem = _Problem.of(passes, moments, options)
        backward, k = problem.whitener.backward, len(problem.whitener.forward)
        first: Floats | Checkpoint
        if resume is not None:
            if resume.rotation.shape != (k, k):
                raise InputError(
                    f"The checkpoint has {len(resume.rotation)} components and {rows.name} has {k}: it is of "
                    "another fit."
                )
            first = resume
        elif start is not None and len(start) == k:
            first = polar(start @ backward)
        else:
            first = problem.start(seed)
        solution, values, curved = problem.canonical(problem.solve(first, options, tick, keep))
        components = problem.components(solution)
        stability = _stability(problem, components, moments.scatter, options, seed, tick) if options.stability else None
        return Unmixing(
            mean=moments.mean,
            components=components,
            mixing=backward @ solution.state.rotation.T,
            whitener=problem.whitener,
            kappa=solution.state.kappa,
            solution=solution,
            diagnostics=_diagnose(problem, solution, values, curved, options, stability),
        )


@dataclass(frozen=True)
class _Problem:
    """Rows whose rotation is sought.

    Attributes
    ----------
    whitener : Whitener
        Without whitening, the principal rotation in one common unit.
    unwhitened : UnwhitenedContrast or None
        Corrects the contrast without whitening.
    n : int
        Rows in use.
    """

    passes: RowPasses
    whitener: Whitener
    unwhitened: UnwhitenedContrast | None
    n: int

    @classmethod
    def of(cls, passes: RowPasses, moments: Moments, options: IcaOptions) -> _Problem:
        whitener = fit_whitener(moments, components=options.n_components, stored=passes.rows.dtype)
        if options.whiten:
            return cls(passes, whitener, None, moments.n)
        # The common unit is twice the largest size: where components are small, contrasts grow faster than variances,
        # and a source is not split among several components for the sake of a larger sum.
        sizes = np.linalg.norm(whitener.backward, axis=0)
        unit, directions = 2 * float(sizes[0]), whitener.backward / sizes
        rotation = replace(whitener, forward=directions.T / unit, backward=directions * unit)
        return cls(passes, rotation, UnwhitenedContrast((sizes / unit) ** 2, passes.contrast), moments.n)

    def start(self, seed: int) -> Floats:
        """Where the search begins: eigenvectors that part sources by their kurtosis, turned a little by the seed."""
        sums = replace(self.passes, contrast=RADIAL).contrast_sums(self.whitener.forward)
        vectors = np.linalg.eigh(sums.products + sums.products.T)[1]
        k = len(vectors)
        turn = polar(np.eye(k) + START_NOISE / np.sqrt(k) * np.random.default_rng(seed).normal(size=(k, k)))
        return np.asarray(turn @ vectors.T)

    def solve(
        self,
        first: Floats | Checkpoint,
        options: IcaOptions,
        tick: Callable[[], object] | None,
        keep: Keep | None = None,
    ) -> Solution:
        """Where the search for a rotation of whitened rows ends."""

        def oracle(rotation: Floats, with_values: bool) -> State:
            sums = self.passes.contrast_sums(rotation @ self.whitener.forward, with_values)
            if tick:
                tick()
            state = State(rotation, sums.products, sums.slopes, sums.values)
            return self.unwhitened.corrected(state) if self.unwhitened else state

        gaussian = self.passes.contrast.gaussian
        return solve(
            oracle, first, tol=options.tol, max_passes=options.max_passes, n=self.n, gaussian=gaussian, keep=keep
        )

    def components(self, solution: Solution) -> Floats:
        """Components of shape (k, p), in the units of the columns."""
        return np.asarray(solution.state.rotation @ self.whitener.forward)

    def canonical(self, solution: Solution) -> tuple[Solution, Floats, Curvature]:
        """Order and sign the components, so that two fits are comparable by eye; mean contrasts and flattest pairs."""
        state, contrast = solution.state, self.passes.contrast
        unmixing = self.components(solution)
        sums = self.passes.curvature_sums(unmixing)
        values, bends, pull = sums.values, sums.products, np.diag(state.products)
        if self.unwhitened:
            bends, pull = self.unwhitened.curved(state.rotation, bends, pull)
            # How far a component is from Gaussian is a matter of its shape, not of its size.
            sizes = np.sqrt(np.diag(self.unwhitened.covariance(state.rotation)))
            values = self.passes.contrast_sums(unmixing / sizes[:, None], with_values=True).values
        order = np.argsort(-np.abs(values - contrast.gaussian), kind="stable")
        signs, each = solution.signs[order], np.ix_(order, order)
        mixing = self.whitener.backward @ state.rotation[order].T
        turned = np.sign(mixing[np.abs(mixing).argmax(axis=0), np.arange(len(order))])
        state = State(
            state.rotation[order] * turned[:, None],
            state.products[each] * np.outer(turned, turned),
            state.slopes[order],
            sums.values[order],
        )
        return replace(solution, state=state, signs=signs), values[order], curvature(bends[each], pull[order], signs)


def _diagnose(
    problem: _Problem,
    solution: Solution,
    values: Floats,
    curved: Curvature,
    options: IcaOptions,
    stability: Floats | None,
) -> Diagnostics:
    k, columns = len(values), problem.passes.rows.shape[1]
    n, contrast, whitener = problem.n, problem.passes.contrast, problem.whitener
    z, p_values = gaussian_test(values, contrast, n)
    gaussian = p_values > LEVEL
    heavy = (values - contrast.gaussian) * contrast.heavy > 0
    kinds = np.where(gaussian, "Gaussian", np.where(heavy, "super-Gaussian", "sub-Gaussian")).tolist()
    diagnostics = Diagnostics(
        converged=solution.converged,
        passes=len(solution.gradients),
        gradient=solution.gradients[-1],
        tol=options.tol,
        rows=n,
        columns=columns,
        components=k,
        rank=whitener.rank,
        rows_per_parameter=n / max(k * (k - 1) / 2, 1),
        smallest_variance=float(whitener.variances[k - 1]),
        largest_variance=float(whitener.variances[0]),
        nongaussianity=values - contrast.gaussian,
        z=z,
        p_values=p_values,
        gaussian=gaussian,
        kinds=kinds,
        super_gaussian=kinds.count("super-Gaussian"),
        sub_gaussian=kinds.count("sub-Gaussian"),
        curvature=curved.flattest,
        typical_curvature=curved.typical,
        stability=stability,
        alerts=(),
    )
    return replace(diagnostics, alerts=tuple(fit_alerts(diagnostics, options.n_components or columns)))


def _stability(
    problem: _Problem,
    components: Floats,
    scatter: Floats,
    options: IcaOptions,
    seed: int,
    tick: Callable[[], object] | None,
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
    """
    passes = problem.passes
    used = np.ones(passes.rows.shape[0], dtype=bool) if passes.kept is None else passes.kept

    def components_of(half: np.ndarray, seed: int) -> Floats:
        own, _ = row_moments(passes.rows, only=half, engine=passes.engine)
        try:
            part = _Problem.of(replace(passes, kept=half, mean=own.mean), own, options)
        except InputError:
            # Nothing varies in this half, so none of the components comes out of it.
            return np.zeros((0, passes.rows.shape[1]))
        return part.components(part.solve(part.start(seed), options, tick))

    def normed(unmixing: Floats) -> Floats:
        sizes = np.sqrt(np.einsum("ij,ij->i", unmixing @ scatter, unmixing))
        return np.asarray(unmixing / np.where(sizes > 0, sizes, 1.0)[:, None])

    matched = np.zeros(len(components))
    for run in range(1, options.stability + 1):
        half = random_half(used, passes.rows.blocks, np.random.default_rng([seed, run]))
        alike = np.abs(normed(components) @ scatter @ normed(components_of(half, seed + run)).T)
        own, other = assignment(alike)
        matched[own] += np.minimum(alike[own, other], 1.0)
    return matched / options.stability


def random_half(used: np.ndarray, blocks: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """About half of the rows in use, drawn at random; where rows have blocks, of whole blocks.

    Parameters
    ----------
    used : ndarray of bool, shape (n,)
    blocks : ndarray of shape (n,) or None
        Labels of the blocks.
    """
    rows, half = np.flatnonzero(used), np.zeros_like(used)
    if blocks is None:
        half[rng.permutation(rows)[: len(rows) // 2]] = True
        return half
    codes = block_codes(blocks[rows])
    order = rng.permutation(codes.max() + 1)
    if len(order) < 2:
        raise InputError("Stability compares halves of the blocks, but all rows are in one block. Give other blocks.")
    # As many blocks as come nearest to half of the rows.
    count = 1 + int(np.argmin(np.abs(np.cumsum(np.bincount(codes)[order]) - len(rows) / 2)))
    half[rows[np.isin(codes, order[:count])]] = True
    return half

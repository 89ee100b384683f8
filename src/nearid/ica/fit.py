"""ICA of any number of rows: one pass for whitening, several for the rotation, then ordering and diagnostics."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from nearid.arrays import Rows, first_nonfinite, nonfinite
from nearid.arrays.labels import block_codes
from nearid.base.errors import InputError
from nearid.engines.base import Engine
from nearid.engines.local import LOCAL, one_blas_thread
from nearid.folds import refuse_range, row_moments
from nearid.groups.fits import assignment, polar
from nearid.ica.contrast import CONTRASTS, RADIAL, Contrast, UnwhitenedContrast
from nearid.ica.diagnostics import LEVEL, Curvature, Diagnostics, curvature, fit_alerts, gaussian_test
from nearid.ica.held import MOST_HELD, HeldRows, hold
from nearid.ica.noise_floor import directions_above_noise
from nearid.ica.passes import RowPasses, Sums
from nearid.ica.recurrence import STEPS_ON_HALF, Tried
from nearid.ica.solver import Checkpoint, Keep, Search, Solution, Stage, State, stands_out
from nearid.ica.starts import race, several
from nearid.ica.stream import Affine
from nearid.ica.whiten import Whitener, fit_whitener, whiten_rows
from nearid.moments import Floats, Moments

# If there are too many rows to keep in memory, starts are tried on a random part of them. It has so many whitened
# entries, or so many rows for each parameter of the rotation, if this is at most the given share of all rows.
PART_ENTRIES, PART_ROWS, PART_SHARE = 1 << 20, 20, 0.1
# If only one start is used and its components are above noise from the beginning, the search begins on as many rows as
# fit into memory, if these are at most this share of all rows, down to this relative gradient.
FIRST_SHARE, FIRST_TOL = 1 / 3, 1e-3
# Contrasts from which "auto" chooses.
AUTO = ("logcosh", "exp")
# Lower limit for the spread of g(y) around its regression on y, when contrasts are compared.
LEAST_SPREAD = 1e-3
# Number of entries of wide rows that are read at once: 256 MB in float64.
MOST_WIDE = 1 << 25


# Not frozen, because scikit-learn sets the parameters of an estimator one by one.
@dataclass(eq=False, repr=False)
class IcaOptions:
    """Options of an ICA.

    Parameters
    ----------
    n_components : int, optional
        Number of leading principal directions to unmix. Default: all that exist.
    whiten : bool, default=True
        Whether to whiten first. Otherwise ICA finds a pure rotation of the centred rows, with the same scale for all
        columns.
    contrast : {"logcosh", "exp", "cube", "auto"}, default="logcosh"
        Measure of the distance from Gaussian. "exp" is robust to outliers, and "cube" is the kurtosis. "auto" fits
        "logcosh" and "exp" to a random half of the rows, and chooses the one whose components have the smaller
        estimation variance on the other half. `diagnostics_.contrast` holds the choice.
    tol : float, default=1e-4
        Relative projected gradient at which the search stops. With products in float32, values below about 1e-6
        cannot be distinguished from zero.
    max_passes : int, default=500
        Maximum number of passes over the rows for the search from one start. If it is reached, the search has not
        converged. First passes over a part of many rows are not counted.
    starts : int, default=3
        Number of rotations from which the search starts. The best one is continued. With up to 2^23 whitened numbers,
        the starts use all rows, which takes two to three times the passes of one start. With more, they use a part of
        the rows. Only one start is used without whitening, or if the part that is needed to compare starts would be
        too large. `diagnostics_.starts` holds the number that was used.
    stability : int, default=0
        Number of further fits, each from another start and on a random half of the rows (of the blocks, if the rows
        have blocks), to test which components are stable. Each takes about half as long as the fit.
    dtype : {"float32", "float64"}, optional
        Precision of the products. Default: the precision of the rows. Sums are float64.
    """

    n_components: int | None = None
    _: KW_ONLY
    whiten: bool = True
    contrast: Literal["logcosh", "exp", "cube", "auto"] = "logcosh"
    tol: float = 1e-4
    max_passes: int = 500
    starts: int = 3
    stability: int = 0
    dtype: Literal["float32", "float64"] | None = None


T = TypeVar("T", bound=Callable[..., Any])


def with_options(target: T) -> T:
    """Return the function or class with {options} in its docstring replaced by the parameters of `IcaOptions`."""
    entries = (inspect.getdoc(IcaOptions) or "").partition("----------\n")[2]
    target.__doc__ = inspect.cleandoc(target.__doc__ or "").replace("{options}", entries)
    return target


@dataclass(frozen=True)
class Unmixing:
    """A fitted unmixing: components s = components (x - mean), and back x = mixing s + mean.

    Attributes
    ----------
    mean : ndarray of shape (p,)
    components : ndarray of shape (k, p)
    mixing : ndarray of shape (p, k)
    whitener : Whitener
        The whitening. Without whitening, the principal rotation in one common unit.
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
    """Return the components of rows, ordered by distance from Gaussian, each with a positive largest loading.

    Parameters
    ----------
    options : IcaOptions, optional
    seed : int
        Seed of the first rotation.
    drop_nonfinite : bool
        Whether to leave out rows with NaN or infinity. Otherwise such rows raise an error.
    engine : Engine
        The engine that runs the passes. It does not change the result.
    moments : Moments, optional
        Moments of the rows in use, if they are already known. `kept` then marks these rows.
    kept : ndarray of bool, optional
        Rows in use. Default: all rows.
    start : ndarray of shape (k, p), optional
        Components of a fit to similar rows, from which the search starts. It is ignored if these rows have another
        rank.
    resume : Checkpoint, optional
        Checkpoint of an earlier fit of the same rows with the same options, from which the search continues.
    keep, tick : callable, optional
        Called after every pass, `keep` with a Checkpoint.
    """
    options = options or IcaOptions()
    # The last digits of decompositions also depend on the number of BLAS threads.
    with one_blas_thread:
        white = _whitened(rows, options, engine, moments=moments, kept=kept, drop_nonfinite=drop_nonfinite)
        dtype = np.dtype(options.dtype or rows.dtype)
        contrast = CONTRASTS[AUTO[0] if options.contrast == "auto" else options.contrast]
        passes = RowPasses(rows, white.kept, white.whitener.mean, contrast, dtype, engine=engine)
        if options.contrast == "auto":
            passes = replace(passes, contrast=_chosen_contrast(passes, options, seed, tick))
        problem = _Problem.of(passes, white.whitener, white.n, options)
        backward, k = problem.whitener.backward, len(problem.whitener.forward)
        if resume is not None and resume.rotation.shape != (k, k):
            raise InputError(
                f"The checkpoint has {len(resume.rotation)} components, but {rows.name} has {k}: it belongs to another "
                "fit."
            )
        first = polar(start @ backward) if start is not None and len(start) == k else None
        search = problem.search(resume if resume is not None else first, options, seed, tick, keep)
        solution, values, curved = problem.canonical(search.solution(options.tol))
        components = problem.components(solution)
        stability = _stability(problem, components, white, options, seed, tick) if options.stability else None
        return Unmixing(
            mean=problem.whitener.mean,
            components=components,
            mixing=backward @ solution.state.rotation.T,
            whitener=problem.whitener,
            kappa=solution.state.kappa,
            solution=solution,
            diagnostics=_diagnose(problem, solution, values, curved, options, stability, search.tried),
        )


class _Whitened(NamedTuple):
    """The whitening, the number of rows in use, which rows (None: all), and their scatter unless rows are few."""

    whitener: Whitener
    n: int
    kept: np.ndarray | None
    scatter: Floats | None = None


def _whitened(
    rows: Rows,
    options: IcaOptions,
    engine: Engine,
    *,
    moments: Moments | None = None,
    kept: np.ndarray | None = None,
    drop_nonfinite: bool = False,
) -> _Whitened:
    """Return the whitening of the rows in use, from moments, or from the rows if there are fewer rows than columns."""
    if moments is None and rows.shape[0] <= min(rows.shape[1], MOST_WIDE // rows.shape[1]):
        return _whitened_wide(rows, options, kept, drop_nonfinite)
    if moments is None:
        moments, used = row_moments(rows, only=kept, drop_nonfinite=drop_nonfinite, engine=engine)
        kept = used if kept is None else kept
    if not np.any(np.diag(moments.scatter) > 0):
        raise _constant(rows)
    whitener = fit_whitener(moments, components=options.n_components, stored=rows.dtype)
    return _Whitened(whitener, moments.n, kept, moments.scatter)


def _whitened_wide(rows: Rows, options: IcaOptions, kept: np.ndarray | None, drop_nonfinite: bool) -> _Whitened:
    x = rows.read(0, rows.shape[0])
    if kept is None:
        bad = first_nonfinite(x, 0)
        if bad is not None:
            if not drop_nonfinite:
                raise nonfinite(rows.name, *bad, rows.columns)
            kept = np.asarray(np.isfinite(x).all(axis=1))
    if kept is not None:
        x = x[kept]
    with np.errstate(over="ignore"):
        refuse_range(rows.name, float(np.square(x, dtype=np.float64).sum(axis=0).max(initial=0.0)), bool(x.any()))
    if len(x) < 2 or not np.ptp(x, axis=0).any():
        raise _constant(rows)
    return _Whitened(whiten_rows(x, components=options.n_components), len(x), kept)


def _constant(rows: Rows) -> InputError:
    return InputError(f"Every column of {rows.name} is constant, so there is nothing to unmix.")


@dataclass(frozen=True)
class _Problem:
    """Whitened rows for which the search finds a rotation.

    Attributes
    ----------
    whitener : Whitener
        The whitening. Without whitening, the principal rotation in one common unit.
    unwhitened : UnwhitenedContrast or None
        Correction of the contrast without whitening.
    n : int
        Number of rows in use.
    held : HeldRows or None
        The whitened rows, if they are few enough to be kept in memory.
    """

    passes: RowPasses
    whitener: Whitener
    unwhitened: UnwhitenedContrast | None
    n: int
    held: HeldRows | None = None

    @classmethod
    def of(cls, passes: RowPasses, whitener: Whitener, n: int, options: IcaOptions) -> _Problem:
        if options.whiten:
            return cls(passes, whitener, None, n)._holding()
        # The common unit is twice the largest size. For small components, contrasts grow faster than variances, so
        # the search does not split a source among several components to increase the sum.
        sizes = np.linalg.norm(whitener.backward, axis=0)
        unit, directions = 2 * float(sizes[0]), whitener.backward / sizes
        rotation = replace(whitener, forward=directions.T / unit, backward=directions * unit)
        unwhitened = UnwhitenedContrast((sizes / unit) ** 2, passes.contrast)
        return cls(passes, rotation, unwhitened, n)._holding()

    def _holding(self) -> _Problem:
        """Return the same problem with its rows in memory, if they are few enough."""
        passes = self.passes
        if self.n * len(self.whitener.forward) > MOST_HELD:
            return self
        return replace(
            self, held=hold(passes.rows, passes.kept, self.whitener, passes.contrast, passes.dtype, passes.engine)
        )

    def sums(
        self,
        rotation: Floats,
        with_values: bool = False,
        with_bends: bool = False,
        contrast: Contrast | None = None,
    ) -> Sums:
        """Return the sums of a pass for components that are a rotation of whitened rows."""
        if self.held:
            return self.held.contrast_sums(rotation, with_values, with_bends, contrast)
        passes = replace(self.passes, contrast=contrast) if contrast else self.passes
        return passes.contrast_sums(rotation @ self.whitener.forward, with_values, with_bends)

    def state(self, rotation: Floats, with_values: bool = False, with_seconds: bool = False) -> State:
        """Return the sums of a pass in the form that the solver uses."""
        sums = self.sums(rotation, with_values, with_seconds)
        seconds = None if sums.bends is None else sums.bends - np.diag(sums.products)[:, None]
        state = State(rotation, sums.products, sums.slopes, sums.values if with_values else None, seconds)
        return self.unwhitened.corrected(state) if self.unwhitened else state

    def eigenvectors(self) -> Floats:
        """Return the rotation that separates sources by their kurtosis."""
        products = self.sums(np.eye(len(self.whitener.forward)), contrast=RADIAL).products
        return np.asarray(np.linalg.eigh(products + products.T)[1].T)

    def contrast(self, state: State) -> float:
        """Return J, the sum of |E[G(y)] - E[G(Gaussian)]| over the components, with one more pass if it is unknown."""
        known = self.state(state.rotation, True) if state.values is None else state
        return float(np.abs(known.measured() - self.passes.contrast.gaussian).sum())

    def search(
        self,
        first: Floats | Checkpoint | None,
        options: IcaOptions,
        seed: int,
        tick: Callable[[], object] | None,
        keep: Keep | None = None,
    ) -> Search:
        """Return a finished search from a rotation or a checkpoint, otherwise from the best of several starts."""

        def begin(
            start: Floats | Checkpoint,
            stage: Stage = "climb",
            problem: _Problem = self,
            keep: Keep | None = keep,
            groups: int = 1,
        ) -> Search:
            def oracle(rotation: Floats, with_values: bool, with_seconds: bool) -> State:
                state = problem.state(rotation, with_values, with_seconds)
                if tick:
                    tick()
                return state

            return Search(
                oracle,
                start,
                max_passes=options.max_passes,
                n=problem.n,
                gaussian=self.passes.contrast.gaussian,
                keep=keep,
                stage=stage,
                groups=groups,
                # Passes over rows in memory are so fast that fewer components would save little.
                set_aside=problem.held is None,
            )

        stood = first.race if isinstance(first, Checkpoint) else ()
        judge = self.judge(options.starts) if first is None or stood else None
        if judge is not None:
            search = self._best_start(judge, stood, begin, options, seed, keep)
        elif first is not None:
            search = begin(first)
        else:
            search = self._one_start(begin, options, seed, keep)
        search.advance(options.tol)
        return search

    def _one_start(self, begin: Callable[..., Search], options: IcaOptions, seed: int, keep: Keep | None) -> Search:
        """Return the search from the eigenvectors. If a part of the rows is sufficient, it starts on this part."""
        [start] = several(1, self.eigenvectors(), seed)
        search = begin(start.rotation, start.stage, groups=start.groups)
        k = len(start.rotation)
        count = MOST_HELD // k
        if self.held or self.unwhitened or not k < count <= FIRST_SHARE * self.n or not stands_out(search.state, count):
            return search

        def over_all(checkpoint: Checkpoint) -> Checkpoint:
            """Return the checkpoint from which a search over all rows continues, with no passes counted."""
            return replace(checkpoint, gradients=checkpoint.gradients[-1:])

        kept = (lambda checkpoint: keep(over_all(checkpoint))) if keep else None
        first = begin(start.rotation, start.stage, self.part(count), kept)
        first.advance(max(options.tol, FIRST_TOL))
        return begin(replace(over_all(first.checkpoint()), stage="descend"))

    def _best_start(
        self,
        judge: _Problem,
        stood: tuple[Checkpoint, ...],
        begin: Callable[..., Search],
        options: IcaOptions,
        seed: int,
        keep: Keep | None,
    ) -> Search:
        """Return the search from the best of several starts on the rows of `judge`; `stood` holds their checkpoints."""
        starts, latest = several(options.starts, judge.eigenvectors(), seed), dict(enumerate(stood))

        def keeping(place: int) -> Keep | None:
            def take(checkpoint: Checkpoint) -> None:
                latest[place] = checkpoint
                if keep:
                    keep(replace(checkpoint, race=tuple(latest.values())))

            return take if keep else None

        def begin_at(place: int) -> Search:
            if place < len(stood):
                return begin(stood[place], problem=judge, keep=keeping(place))
            return begin(starts[place].rotation, starts[place].stage, judge, keeping(place))

        searches, contrasts = race(len(starts), begin_at, judge.contrast, options.tol)
        again = [judge.on_half(search.state.rotation, [seed, place]) for place, search in enumerate(searches)]
        best = searches[int(contrasts.argmax())]
        if judge.n < self.n:
            best = begin(best.state.rotation, "fixed point", keep=None)
        elif judge is not self:
            best = begin(best.checkpoint(), keep=None)
        best.keep, best.tried = keep, Tried(np.stack(again), contrasts)
        if keep:
            keep(best.checkpoint())
        return best

    def on_half(self, rotation: Floats, seed: list[int]) -> Floats:
        """Return the components after some steps on a random half of the rows or blocks, in rows of unit length."""
        assert self.held is not None
        rows, kept = self.passes.rows, self.passes.kept
        used = np.ones(rows.shape[0], dtype=bool) if kept is None else kept
        half = random_half(used, rows.blocks if _parted(rows.blocks, used) else None, np.random.default_rng(seed))
        part, turn = self.held.part(half[used])
        if not turn.any():
            return np.zeros_like(rotation)
        problem = replace(self, held=part, n=part.n)
        gaussian, steps = self.passes.contrast.gaussian, 1 + STEPS_ON_HALF
        search = Search(problem.state, rotation, max_passes=steps, n=part.n, gaussian=gaussian, stage="fixed point")
        search.advance(0.0)
        found = search.state.rotation @ turn
        sizes = np.linalg.norm(found, axis=1, keepdims=True)
        return np.asarray(found / np.where(sizes > 0, sizes, 1.0))

    def judge(self, starts: int) -> _Problem | None:
        """Return the problem on the rows on which several starts are tried; None if only one start is used."""
        k = len(self.whitener.forward)
        # Without whitening the contrast also depends on the sizes of components, so a larger sum may not be better.
        if starts == 1 or k == 1 or self.unwhitened:
            return None
        if self.held:
            # Single precision is sufficient to compare starts.
            return self if self.held.single else replace(self, held=self.held.as_single())
        count = max(PART_ENTRIES // k, PART_ROWS * k * (k - 1) // 2)
        if count > min(PART_SHARE * self.n, MOST_HELD // k):
            return None
        return self.part(count)

    def part(self, count: int) -> _Problem:
        """Return the problem on so many random rows, which are kept in memory."""
        passes = self.passes
        # A list of all rows would take more memory than the part.
        among = passes.rows.shape[0] if passes.kept is None else np.flatnonzero(passes.kept)
        part = np.zeros(passes.rows.shape[0], dtype=bool)
        # The same rows for every seed, so that differences between seeds come only from the start.
        part[np.random.default_rng(0).choice(among, count, replace=False)] = True
        return replace(self, passes=replace(passes, kept=part), n=count)._holding()

    def components(self, solution: Solution) -> Floats:
        """Return the components of shape (k, p), in the units of the columns."""
        return np.asarray(solution.state.rotation @ self.whitener.forward)

    def canonical(self, solution: Solution) -> tuple[Solution, Floats, Curvature]:
        """Return the components in a canonical order and sign, their mean contrasts, and the flattest pairs."""
        contrast = self.passes.contrast
        state = self.state(solution.state.rotation, True, True)
        assert state.seconds is not None
        values = state.measured()
        if self.unwhitened:
            # The distance from Gaussian depends on the shape of a component, not on its size.
            sizes = np.sqrt(np.diag(self.unwhitened.covariance(state.rotation)))
            values = self.passes.contrast_sums(self.components(solution) / sizes[:, None], with_values=True).values
        order = np.argsort(-np.abs(values - contrast.gaussian), kind="stable")
        signs, each = solution.signs[order], np.ix_(order, order)
        seconds = state.seconds[each]
        mixing = self.whitener.backward @ state.rotation[order].T
        turned = np.sign(mixing[np.abs(mixing).argmax(axis=0), np.arange(len(order))])
        state = State(
            state.rotation[order] * turned[:, None],
            state.products[each] * np.outer(turned, turned),
            state.slopes[order],
            state.measured()[order],
            seconds,
        )
        return replace(solution, state=state, signs=signs), values[order], curvature(seconds, signs)


def _diagnose(
    problem: _Problem,
    solution: Solution,
    values: Floats,
    curved: Curvature,
    options: IcaOptions,
    stability: Floats | None,
    tried: Tried | None,
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
        contrast=contrast.name,
        starts=len(tried.contrasts) if tried else 1,
        same_optimum=tried.same_optimum() if tried else 1,
        recurrence=tried.recurrence(solution.state.rotation, n) if tried else None,
        agreement=tried.agreement(solution.state.rotation) if tried else None,
        above_noise=None if problem.unwhitened else directions_above_noise(whitener.backward, whitener.sizes, n),
        alerts=(),
    )
    return replace(diagnostics, alerts=tuple(fit_alerts(diagnostics, options.n_components or columns)))


def _stability(
    problem: _Problem,
    components: Floats,
    whole: _Whitened,
    options: IcaOptions,
    seed: int,
    tick: Callable[[], object] | None,
) -> Floats:
    """Return the mean |correlation| of each component with its match in fits from other starts to random halves.

    Each half is whitened by its own moments, like a fit to these rows alone, because the whitener of all rows would
    leave correlations in a half that no rotation removes. Correlations are computed over all rows. A component without
    a match, because a half has fewer directions, counts as 0 there.

    Parameters
    ----------
    components : ndarray of shape (k, p)
    whole : _Whitened
        All rows in use.
    """
    passes = problem.passes
    used = np.ones(passes.rows.shape[0], dtype=bool) if passes.kept is None else passes.kept

    def components_of(half: np.ndarray, seed: int) -> Floats:
        try:
            white = _whitened(passes.rows, options, passes.engine, kept=half)
        except InputError:
            # All columns are constant in this half, so it has no components.
            return np.zeros((0, passes.rows.shape[1]))
        part = _Problem.of(replace(passes, kept=half, mean=white.whitener.mean), white.whitener, white.n, options)
        return part.components(part.search(None, options, seed, tick).solution(options.tol))

    covariance = _covariances(passes.rows, whole)

    def normed(unmixing: Floats) -> Floats:
        sizes = np.sqrt(np.diag(covariance(unmixing, unmixing)))
        return np.asarray(unmixing / np.where(sizes > 0, sizes, 1.0)[:, None])

    matched = np.zeros(len(components))
    for run in range(1, options.stability + 1):
        half = random_half(used, passes.rows.blocks, np.random.default_rng([seed, run]))
        alike = np.abs(covariance(normed(components), normed(components_of(half, seed + run))))
        own, other = assignment(alike)
        matched[own] += np.minimum(alike[own, other], 1.0)
    return matched / options.stability


def _chosen_contrast(passes: RowPasses, options: IcaOptions, seed: int, tick: Callable[[], object] | None) -> Contrast:
    """Return the contrast with the smaller estimation variance, fitted to a half of the rows, tested on the other."""
    rows = passes.rows
    used = np.ones(rows.shape[0], dtype=bool) if passes.kept is None else passes.kept
    half = random_half(used, rows.blocks if _parted(rows.blocks, used) else None, np.random.default_rng([seed, 0]))
    other = used & ~half
    try:
        white = _whitened(rows, options, passes.engine, kept=half)
    except InputError:
        # A half of so few rows or blocks is constant, so the default is used.
        return CONTRASTS[AUTO[0]]

    def score(name: str) -> float:
        own = replace(passes, kept=half, mean=white.whitener.mean, contrast=CONTRASTS[name])
        part = _Problem.of(own, white.whitener, white.n, options)
        components = part.components(part.search(None, options, seed, tick).solution(options.tol))
        return float(_precision(replace(own, kept=other), components).sum())

    return CONTRASTS[max(AUTO, key=score)]


def _precision(passes: RowPasses, components: Floats) -> Floats:
    """Return the precision of each component: (E[g'] - E[g y])^2 / (E[g^2] - E[g y]^2), for unit-variance rows.

    Its inverse divided by n is the variance of the estimated direction of the component (Hyvarinen, Karhunen and Oja
    2001, chapter 14). It is 0 for Gaussian components.
    """
    forward = Affine(components, passes.mean, np.zeros(len(components)))
    work = forward.cut(passes.rows.shape[0])

    def over(task: Callable[..., Floats], *shared: Any) -> Floats:
        each = passes.engine.map(task, work, forward, passes.rows, passes.kept, *shared)
        return np.asarray(reduce(add, each))

    count, first, second = over(_first_moments)
    mean = first / count
    size = np.sqrt(np.maximum(second / count - mean**2, 0))
    size = np.where(size > 0, size, 1.0)
    squares, pull, slopes = over(_contrast_moments, mean, size, passes.contrast) / count
    # A component with two values has no estimation error. It must not dominate the choice.
    return np.asarray((slopes - pull) ** 2 / np.maximum(squares - pull**2, LEAST_SPREAD))


def _components_of(block: tuple[int, int], forward: Affine, rows: Rows, kept: np.ndarray | None) -> Floats:
    """Return the components of the rows of a block that are in use, in float64."""
    x = rows.read(*block)
    return forward((x if kept is None else x[kept[slice(*block)]]).astype(np.float64))


def _first_moments(block: tuple[int, int], *where: Any) -> Floats:
    """Return the number of rows of a block, and the sums and sums of squares of their components."""
    y = _components_of(block, *where)
    return np.stack([np.full(y.shape[1], float(len(y))), y.sum(axis=0), (y * y).sum(axis=0)])


def _contrast_moments(
    block: tuple[int, int],
    forward: Affine,
    rows: Rows,
    kept: np.ndarray | None,
    mean: Floats,
    size: Floats,
    contrast: Contrast,
) -> Floats:
    """Return the sums of g^2, g y and g' of the standardised components of a block."""
    y = (_components_of(block, forward, rows, kept) - mean) / size
    g, slopes, _ = contrast.evaluate(y, False)
    return np.stack([(g * g).sum(axis=0), (g * y).sum(axis=0), slopes])


def _parted(labels: np.ndarray | None, used: np.ndarray) -> bool:
    """Return whether the rows in use belong to more than one block."""
    return labels is not None and bool((labels[used] != labels[used][0]).any())


def _covariances(rows: Rows, whole: _Whitened) -> Callable[[Floats, Floats], Floats]:
    """Return a function that computes the covariances of the components of two unmixings over all rows in use."""
    n, scatter = whole.n, whole.scatter
    if scatter is not None:
        return lambda a, b: np.asarray(a @ scatter @ b.T / n)
    x = rows.read(0, rows.shape[0])
    x = np.subtract(x if whole.kept is None else x[whole.kept], whole.whitener.mean, dtype=np.float64)
    return lambda a, b: np.asarray((x @ a.T).T @ (x @ b.T) / n)


def random_half(used: np.ndarray, blocks: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """Return a random half of the rows in use. If the rows have blocks, whole blocks are drawn.

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
    # The number of blocks whose rows come closest to half of the rows.
    count = 1 + int(np.argmin(np.abs(np.cumsum(np.bincount(codes)[order]) - len(rows) / 2)))
    half[rows[np.isin(codes, order[:count])]] = True
    return half

"""Diagnostics of an unmixing: whether its components can be trusted, as data and as alerts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from nearid.arrays import Rows
from nearid.base.alerts import Alert
from nearid.engines.base import Engine
from nearid.engines.local import LOCAL
from nearid.folds import copies_among, some_traits
from nearid.ica.contrast import Contrast
from nearid.ica.gaussian_null import searched_p_values
from nearid.ica.recurrence import chosen_by_start, majority
from nearid.ica.stream import Affine
from nearid.moments import Floats

# Components with a larger p-value cannot be distinguished from Gaussian ones.
LEVEL = 0.01
# With fewer rows per parameter of the rotation, a good part of the contrast is a fit to noise.
FEW_ROWS = 5
# Negative curvature above this share of the median is more than rounding error.
SADDLE = 0.01
# Number of pairs with the smallest curvature that are listed.
FLATTEST = 10
# Below this matched correlation with other fits, a component is unstable.
UNSTABLE = 0.9
# With fewer rows than this, a few rows always have a large share.
ENOUGH_ROWS = 200
# A component is made by few rows if its kurtosis is at least that of so many equally distant rows and all others at 0.
FEW_MAKE = 20
# The doubt about components whose reproducibility was not tested.
NOT_CHECKED = "not checked"
# Fewer components are suggested if at most this share of the directions is above noise, and the smallest variance is at
# most this share of the largest.
STAND_OUT, LITTLE = 0.75, 0.01


@dataclass(frozen=True)
class Diagnostics:
    """Diagnostics of a fitted ICA.

    Attributes
    ----------
    gradient, tol : float
        Relative projected gradient at the end of the search, and the gradient at which the search stops.
    rows, columns, components, rank : int
        Number of rows in use, columns, components, and directions with variance in the data.
    rows_per_parameter : float
        Rows over the k (k - 1) / 2 angles of the rotation.
    smallest_variance, largest_variance : float
        Smallest and largest variance along the principal directions that were unmixed.
    nongaussianity : ndarray of shape (k,)
        E[G(s)] of each unit-variance component minus that of a Gaussian component. With logcosh and exp it is
        negative for super-Gaussian and positive for sub-Gaussian components. With cube the signs are reversed.
    z : ndarray of shape (k,)
        The same divided by the standard error for a Gaussian component, without correction for the search.
    p_values : ndarray of shape (k,)
        Probability that a search in Gaussian rows finds a component at least as far from Gaussian. This corrects for
        the search, which finds some non-Gaussianity in noise. See `nearid.ica.gaussian_null`.
    gaussian : ndarray of bool, shape (k,)
        Whether each component cannot be distinguished from a Gaussian one. Two or more Gaussian components are not
        identifiable.
    kinds : list of str
        "super-Gaussian" (heavy tails), "sub-Gaussian" or "Gaussian", for each component.
    super_gaussian, sub_gaussian : int
        Number of super-Gaussian and of sub-Gaussian components.
    curvature : list of (int, int, float)
        The pairs of components (i, j) with the smallest curvature: the second derivative of the contrast along the
        rotation of i into j, a block of the Riemannian Hessian. The first value is mu of the theorem over single pairs.
        If it is 0 or below, the pair is not determined.
    typical_curvature : float
        Median curvature over all pairs. It is 0 for a single component.
    stability : ndarray of shape (k,) or None
        Mean matched |correlation| with the components of other fits. Each of them has another start and uses a random
        half of the rows, whitened by its own moments. None if no such fits were requested.
    contrast : str
        Name of the contrast. With "auto", the contrast that was chosen.
    starts : int
        Number of starts that were tried on these rows or on a part of them.
    same_optimum : int
        Number of starts whose contrast is within 0.1% of the best one.
    recurrence : ndarray of int, shape (k,) or None
        Number of starts that found each component. Each start is continued for some steps on its own random half of
        the rows. A component counts as found if the |correlation| is at least 1 - 4 (k - 1) / rows, limited to the
        range 0.95 to 0.985. Components that all starts find are determined by the data, and the others by the start
        or by the sample. None if only one start was tried.
    agreement : ndarray of shape (k,) or None
        Mean over the starts of the |correlation| of each component with the nearest component of the start. It is
        more informative than `recurrence` for components in a plane, where random directions are often similar.
    above_noise : int or None
        Number of whitened directions with more variance than unrelated columns would have (see
        `nearid.ica.noise_floor`). None without whitening.
    alerts : tuple of Alert
        What limits the interpretation of the components.
    kurtosis : ndarray of shape (k,) or None
        Excess kurtosis E[s^4] - 3 of each component, which is 0 for a Gaussian. None if it was not computed.
    """

    converged: bool
    passes: int
    gradient: float
    tol: float
    rows: int
    columns: int
    components: int
    rank: int
    rows_per_parameter: float
    smallest_variance: float
    largest_variance: float
    nongaussianity: Floats
    z: Floats
    p_values: Floats
    gaussian: np.ndarray
    kinds: list[str]
    super_gaussian: int
    sub_gaussian: int
    curvature: list[tuple[int, int, float]]
    typical_curvature: float
    stability: Floats | None
    contrast: str
    starts: int
    same_optimum: int
    recurrence: np.ndarray | None
    agreement: Floats | None
    above_noise: int | None
    alerts: tuple[Alert, ...]
    kurtosis: Floats | None = None

    @property
    def doubts(self) -> list[str]:
        """For each component, why it should not be interpreted on its own; empty if it can be trusted.

        The doubt is "not checked" if there is no other doubt, but neither starts nor halves of the rows were compared.
        """
        checked = self.components == 1 or self.recurrence is not None or self.stability is not None
        return [", ".join(self._doubts(i)) or ("" if checked else NOT_CHECKED) for i in range(self.components)]

    def _doubts(self, i: int) -> Iterator[str]:
        if not self.converged:
            yield "not converged"
        if self.kurtosis is not None and made_by_few(self.kurtosis[i], self.rows):
            yield "few rows"
        # One Gaussian component is determined by the others, but two or more can be mixed freely.
        gaussian = self.gaussian[i] and np.sum(self.gaussian) > 1
        # Fits to halves of the rows, from other starts, are more informative than the starts of one fit.
        if self.stability is None:
            if gaussian:
                yield "Gaussian"
            if self.recurrence is not None and self.recurrence[i] < majority(self.starts):
                yield "depends on the start"
        elif self.stability[i] < UNSTABLE:
            if gaussian:
                yield "Gaussian"
            yield "unstable"

    @property
    def trusted(self) -> int:
        """Number of components that can be interpreted one by one."""
        return self.doubts.count("")

    @property
    def mu(self) -> float:
        """The smallest curvature of a pair. It is infinite for a single component, which cannot be rotated."""
        return self.curvature[0][2] if self.curvature else float("inf")

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Diagnostics:
        """Return diagnostics from the data of `nearid.base.jsonable.plain`. Other data raise a ValueError."""
        # Models that were written before several starts existed have one start.
        unknown = dict.fromkeys(("recurrence", "agreement", "above_noise", "kurtosis"))
        record = {"contrast": "", "starts": 1, "same_optimum": 1, **unknown, **record}
        kinds = {"bool": (bool,), "int": (int,), "float": (int, float)}
        for field in fields(cls):
            value = record[field.name]
            if field.type in kinds and type(value) not in kinds[str(field.type)]:
                raise ValueError(f"{field.name} is {value!r}")
        arrays = {name: np.asarray(record[name], dtype=float) for name in ("nongaussianity", "z", "p_values")}
        arrays["gaussian"] = np.asarray(record["gaussian"], dtype=bool)
        optional = {"stability": float, "recurrence": int, "agreement": float, "kurtosis": float}
        arrays |= {
            name: np.asarray(record[name], dtype=kind) for name, kind in optional.items() if record[name] is not None
        }
        if record["above_noise"] is not None and type(record["above_noise"]) is not int:
            raise ValueError(f"above_noise is {record['above_noise']!r}")
        for name, values in arrays.items():
            if values.shape != (record["components"],):
                raise ValueError(f"{name} has {len(values)} values for {record['components']} components")
        curvature = [(int(i), int(j), float(value)) for i, j, value in record["curvature"]]
        alerts = tuple(Alert(str(alert["code"]), str(alert["message"])) for alert in record["alerts"])
        return cls(**{**record, **arrays, "curvature": curvature, "alerts": alerts})


def lost_rank(columns: int, rank: int, requested: int) -> str:
    """Return a message about fewer directions than requested: too few columns, dependent columns, or too few rows."""
    if requested > columns:
        held = f"there are {columns} columns" + (f" of rank {rank}" if rank < columns else "")
        return f"{requested} components were requested, but {held}: {rank} components are computed."
    kept = "one direction is" if rank == 1 else f"{rank} directions are"
    return f"{columns} columns have rank {rank}: only {kept} kept."


def gaussian_test(values: Floats, contrast: Contrast, n: int) -> tuple[Floats, Floats]:
    """Return z and p-values for the mean contrasts of unit-variance components that a search found in n rows."""
    z = np.sqrt(n) * (values - contrast.gaussian) / contrast.spread
    return z, searched_p_values(z, contrast.name, n)


class Curvature(NamedTuple):
    """Second derivatives along rotations of pairs: the smallest ones, and the median of all."""

    flattest: list[tuple[int, int, float]]
    typical: float


def curvature(seconds: Floats, signs: Floats) -> Curvature:
    """Return the curvature of the contrast along the rotation of each pair of components.

    Parameters
    ----------
    seconds : ndarray of shape (k, k)
        E[g'(y_i) y_j^2] - E[g(y_i) y_i].
    signs : ndarray of shape (k,)
    """
    each = signs[:, None] * seconds
    rows, columns = np.triu_indices(len(each), 1)
    both = (each + each.T)[rows, columns]
    order = np.argsort(both, kind="stable")[:FLATTEST]
    pairs = [(int(rows[o]), int(columns[o]), float(both[o])) for o in order]
    return Curvature(pairs, float(np.median(both)) if len(both) else 0.0)


def fit_alerts(d: Diagnostics, requested: int) -> Iterator[Alert]:
    """Yield the alerts of a fit for which `requested` components were requested."""
    k = d.components
    if not d.converged:
        yield Alert(
            "not_converged",
            f"The search did not converge: it stopped after {d.passes} passes at a relative gradient of "
            f"{d.gradient:.1e} (tol {d.tol:g}). Raise max_passes (--max-passes) to continue, or tol (--tol).",
        )
    if d.rank < requested:
        yield Alert("rank", lost_rank(d.columns, d.rank, requested))
    if k > 1 and d.rows_per_parameter < FEW_ROWS:
        yield Alert(
            "few_rows",
            f"{d.rows} rows are few for the {'angle' if k == 2 else f'{k * (k - 1) // 2} angles'} between {k} "
            "components, so part of the result is noise. Use more rows, or fewer components (--n-components).",
        )
    # One Gaussian component is determined by the others, but two or more can be mixed freely.
    if np.sum(d.gaussian) > 1:
        yield Alert("gaussian", _looks_gaussian(d))
    least = -SADDLE * d.typical_curvature
    saddles = [c for c in d.curvature if c[2] < least and not (d.gaussian[c[0]] and d.gaussian[c[1]])]
    if saddles:
        i, j, value = saddles[0]
        yield Alert(
            "saddle",
            f"The search did not end in an optimum: rotating component {i} into {j} would improve the contrast (second "
            f"derivative {value:.1e}). Try another seed.",
        )
    if d.recurrence is not None:
        unlike = chosen_by_start(d.recurrence, d.starts, d.gaussian)
        alone = int(np.sum(unlike if d.stability is None else unlike & (d.stability < UNSTABLE)))
        if alone:
            were, them, each = ("was", "it", "on its own") if alone == 1 else ("were", "them", "one by one")
            yield Alert(
                "start_dependent",
                f"{alone} of {k} components {were} found by at most {majority(d.starts) - 1} of {d.starts} starts, "
                f"each on half of the rows: the start or the sample chose {them}. Do not interpret {them} {each}.",
            )
    if d.stability is not None and np.any(d.stability < UNSTABLE):
        yield Alert(
            "unstable",
            f"{int(np.sum(d.stability < UNSTABLE))} of {k} components are unstable: fits to random halves of the rows, "
            f"from other starts, find different ones (matched correlation below {UNSTABLE}).",
        )
    # If more components are trusted than directions are above noise, small directions are not noise.
    above, sound = d.above_noise or 0, sum(doubt in ("", NOT_CHECKED) for doubt in d.doubts)
    small = d.smallest_variance <= LITTLE * d.largest_variance
    if d.converged and small and 1 < above <= STAND_OUT * k and sound <= above:
        enlarged = np.sqrt(d.largest_variance / d.smallest_variance)
        yield Alert(
            "noise_floor",
            f"{k - above} of {k} principal directions hold no more variance than unrelated columns would, so they "
            "may be noise. Whitening makes all directions equally large: it enlarges the smallest one "
            f"{enlarged:,.0f} times as much as the largest. Try --n-components {above} (n_components={above}).",
        )


def _looks_gaussian(d: Diagnostics) -> str:
    """Return the message about two or more components that look Gaussian. A reproducible one is still separated."""
    doubtful = int(np.sum(d.gaussian))
    seen = f"{doubtful} of {d.components} components cannot be distinguished from Gaussian ones with {d.rows} rows"
    if d.stability is None:
        return (
            f"{seen}. ICA cannot separate Gaussian components from one another. To test whether fits to halves of the "
            "rows find them again, run nearid unmix with --stability 5 (stability=5)."
        )
    again = int(np.sum(d.gaussian & (d.stability >= UNSTABLE)))
    if again == 0:
        return f"{seen}, and fits to halves of the rows do not find them again: ICA cannot separate them."
    rest = doubtful - again
    others = f" ICA cannot separate the other {rest} from one another." if rest > 1 else ""
    return (
        f"{seen}, but fits from other starts to halves of the rows find {again} of them again (matched correlation of "
        f"{UNSTABLE} or more).{others}"
    )


# Number of rows whose share of the variance of a component is reported in an alert.
FURTHEST = 5
# More copies than this share of the rows are reported.
COPIES = 0.005


def made_by_few(kurtosis: Floats, n: int) -> np.ndarray:
    """Return whether a few of n rows make a component, judged by its excess kurtosis.

    If m rows are equally distant and all others are at 0, E[s^4] / E[s^2]^2 is n / m.
    """
    return np.asarray((n >= ENOUGH_ROWS) & (n < FEW_MAKE * (kurtosis + 3)))


class RowsSeen(NamedTuple):
    """Results of one more pass over the rows: alerts about the rows, and the kurtosis of each component."""

    alerts: list[Alert]
    kurtosis: Floats


def see_rows(rows: Rows, forward: Affine, engine: Engine = LOCAL) -> RowsSeen:
    """Return alerts about the rows of a fit and the kurtosis of its components. Rows with NaN or infinity are left out.

    Parameters
    ----------
    forward : Affine
        The map from rows to components.
    engine : Engine
        The engine that runs the pass.
    """
    # A number that is equal for copies of a row, and different for almost all other rows.
    direction = np.random.default_rng(0).normal(size=rows.shape[1])
    seen = engine.map(_seen, forward.cut(rows.shape[0]), rows, forward, direction)
    counts, each, furthest, sums, fourths = zip(*seen, strict=True)
    n, traits, second, fourth = sum(counts), np.concatenate(each), np.sum(sums, axis=0), np.sum(fourths, axis=0)
    shares = _largest(np.concatenate(furthest)).sum(axis=0) / second
    kurtosis = n * fourth / second**2 - 3
    copies = copies_among(traits, n, rows.shape[0])
    return RowsSeen([*_outlying(n, shares, kurtosis), *_repeated(copies, n)], kurtosis)


def _seen(
    block: tuple[int, int], rows: Rows, forward: Affine, direction: Floats
) -> tuple[int, Floats, Floats, Floats, Floats]:
    """Return the number of rows of a block, their traits, the largest squares, sums of squares and of fourth powers.

    The traits are numbers that copies share. Of very many rows, only some are returned (`nearid.folds.some_traits`).
    """
    x = rows.read(*block)
    x = x[np.isfinite(x).all(axis=1)]
    squares = np.square(forward(x), dtype=np.float64)
    # Not a matrix product, whose last digits depend on the position of a row.
    sums = squares.sum(axis=0), np.einsum("ij,ij->j", squares, squares)
    traits = some_traits(np.sum(x * direction, axis=1), rows.shape[0])
    return len(x), traits, _largest(squares), *sums


def _largest(squares: Floats) -> Floats:
    """Return the largest values of each column, in any order."""
    return np.partition(squares, -min(FURTHEST, len(squares)), axis=0)[-FURTHEST:] if len(squares) else squares


def _outlying(n: int, shares: Floats, kurtosis: Floats) -> Iterator[Alert]:
    made = np.flatnonzero(made_by_few(kurtosis, n))
    if len(made):
        most = made[int(shares[made].argmax())]
        yield Alert(
            "outlying_rows",
            f"A few outlying rows make {len(made)} of {len(shares)} components: {FURTHEST} of {n} rows carry "
            f"{shares[most]:.0%} of the variance of component {most}. Look for damaged values.",
        )


def _repeated(copies: int, n: int) -> Iterator[Alert]:
    if copies > max(COPIES * n, 1):
        yield Alert(
            "repeated_rows",
            f"About {copies} of {n} rows repeat others, so the diagnostics count too many rows and are too "
            "optimistic. Drop repeated rows.",
        )

"""Can an unmixing be trusted? What its last passes and its rows show, as data and in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from nearid.arrays import Rows
from nearid.base.alerts import Alert
from nearid.engines.local import ordered_map
from nearid.ica.contrast import Contrast
from nearid.ica.gaussian_null import searched_p_values
from nearid.ica.recurrence import chosen_by_start, majority
from nearid.ica.stream import Affine
from nearid.moments import Floats

# Components with a larger p-value cannot be distinguished from Gaussian ones.
LEVEL = 0.01
# Fewer rows per parameter of the rotation than this, and a good part of the contrast is a fit to noise.
FEW_ROWS = 5
# Downward curvature above this share of the median is no rounding.
SADDLE = 0.01
# How many of the flattest pairs are listed.
FLATTEST = 10
# Matched correlation with other fits below which a component is not the same from fit to fit.
UNSTABLE = 0.9
# Fewer rows than this always leave much to a few of them.
ENOUGH_ROWS = 200
# So many rows that are equally far out, and no others, would give the kurtosis of a component that few rows make.
FEW_MAKE = 20
# The word for components of which nothing shows whether they come out again.
NOT_CHECKED = "not checked"
# Fewer components are suggested where at most this share of the directions stands out of noise, and the smallest
# variance is at most this share of the largest.
STAND_OUT, LITTLE = 0.75, 0.01


@dataclass(frozen=True)
class Diagnostics:
    """What is known about a fit.

    Attributes
    ----------
    gradient, tol : float
        Relative projected gradient at the end, and where it was to stop.
    rows, columns, components, rank : int
        Rows in use, columns, components, and directions that exist in the data.
    rows_per_parameter : float
        Rows over the k (k - 1) / 2 angles of the rotation.
    smallest_variance, largest_variance : float
        Along the principal directions that were unmixed.
    nongaussianity : ndarray of shape (k,)
        E[G(s)] of each unit-variance component less that of a Gaussian one. With logcosh and exp it is negative for
        super-Gaussian components, positive for sub-Gaussian ones; with cube the other way round.
    z : ndarray of shape (k,)
        The same in standard errors of a Gaussian component that nobody has searched for.
    p_values : ndarray of shape (k,)
        That a search in Gaussian rows gets as far: ICA looks for what is not Gaussian, and finds some of it in noise.
        See `nearid.ica.gaussian_null`.
    gaussian : ndarray of bool, shape (k,)
        Components that cannot be distinguished from Gaussian ones. Two or more that are Gaussian are not identifiable.
    kinds : list of str
        "super-Gaussian" (heavy tails), "sub-Gaussian" or "Gaussian", for each component.
    super_gaussian, sub_gaussian : int
        How many there are of these.
    curvature : list of (int, int, float)
        The flattest pairs of components: second derivative of the contrast along the rotation of i into j (a block of
        the Riemannian Hessian). The first is the theorem's mu over single pairs; at 0 or below, it is not settled.
    typical_curvature : float
        The median over all pairs; 0 for a single component.
    stability : ndarray of shape (k,) or None
        Mean matched |correlation| with the components of fits from other starts to random halves of the rows, each
        half whitened by its own moments.
    contrast : str
        Name of the contrast; with "auto" the one that was chosen.
    starts : int
        Starts that were tried on these rows, or on a part of them.
    same_optimum : int
        How many of them reached the contrast of the best one to 0.1%.
    recurrence : ndarray of int, shape (k,) or None
        How many starts found each component, each of them after some more steps on a random half of the rows; None
        where only one was tried. Found is a |correlation| of 1 - 4 (k - 1) / rows or more, which counts as no less than
        0.95 and no more than 0.985. Components that all starts find are determined by the data, the others by the
        start or by the sample.
    agreement : ndarray of shape (k,) or None
        Mean over the starts of the |correlation| of each component with the nearest one that the start found. It tells
        more than the count where components lie in a plane, in which directions at random are often near each other.
    above_noise : int or None
        How many of the directions that were whitened hold more variance than any of unrelated columns
        (`nearid.ica.noise_floor`); None without whitening.
    alerts : tuple of Alert
    kurtosis : ndarray of shape (k,) or None
        E[s^4] - 3 of each component, where rows were looked at once more: 0 for a Gaussian.
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
        """Why a component should not be interpreted on its own; empty where it can be trusted.

        "not checked" where nothing speaks against it, but neither starts nor halves of the rows were compared.
        """
        checked = self.components == 1 or self.recurrence is not None or self.stability is not None
        return [", ".join(self._doubts(i)) or ("" if checked else NOT_CHECKED) for i in range(self.components)]

    def _doubts(self, i: int) -> Iterator[str]:
        if not self.converged:
            yield "not converged"
        if self.kurtosis is not None and made_by_few(self.kurtosis[i], self.rows):
            yield "few rows"
        # One Gaussian component is what the others leave over; two or more mix freely.
        gaussian = self.gaussian[i] and np.sum(self.gaussian) > 1
        # Halves of the rows, each with starts of its own, tell more than the starts of one fit.
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
        """How many components can be interpreted one by one."""
        return self.doubts.count("")

    @property
    def mu(self) -> float:
        """The smallest curvature of a pair; infinite for a single component, which nothing can turn."""
        return self.curvature[0][2] if self.curvature else float("inf")

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Diagnostics:
        """Back from plain data, as `nearid.base.jsonable.plain` gives it; ValueError where it is something else."""
        # Models that were written before several starts were tried have one.
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
    """A sentence for fewer directions than requested: too few columns, combinations of others, or too few rows."""
    if requested > columns:
        held = f"there are {columns} columns" + (f" of rank {rank}" if rank < columns else "")
        return f"{requested} components were requested, but {held}: {rank} components are computed."
    kept = "one direction is" if rank == 1 else f"{rank} directions are"
    return f"{columns} columns have rank {rank}: only {kept} kept."


def gaussian_test(values: Floats, contrast: Contrast, n: int) -> tuple[Floats, Floats]:
    """z and p-values of mean contrasts of unit-variance components that a search has found in n rows."""
    z = np.sqrt(n) * (values - contrast.gaussian) / contrast.spread
    return z, searched_p_values(z, contrast.name, n)


class Curvature(NamedTuple):
    """Second derivatives along rotations of pairs: the smallest, and the median of all."""

    flattest: list[tuple[int, int, float]]
    typical: float


def curvature(seconds: Floats, signs: Floats) -> Curvature:
    """Curvature of the contrast along the rotation of each pair of components.

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
    """What a reader should know before trusting the components, of which `requested` were requested."""
    k = d.components
    if not d.converged:
        yield Alert(
            "not_converged",
            f"The search stopped after {d.passes} passes at a relative gradient of {d.gradient:.1e} (tol {d.tol:g}). "
            "Raise max_passes (--max-passes) to continue, or tol (--tol).",
        )
    if d.rank < requested:
        yield Alert("rank", lost_rank(d.columns, d.rank, requested))
    if k > 1 and d.rows_per_parameter < FEW_ROWS:
        yield Alert(
            "few_rows",
            f"{d.rows} rows are few for the {'angle' if k == 2 else f'{k * (k - 1) // 2} angles'} between {k} "
            "components, so part of the result is noise. Use more rows, or fewer components (--n-components).",
        )
    # One Gaussian component is what the others leave over; two or more mix freely.
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
    # Where more components than stand out are not in doubt, small directions are no noise.
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
    """What two or more components that look Gaussian mean: one that comes out again is separated all the same."""
    doubtful = int(np.sum(d.gaussian))
    seen = f"{doubtful} of {d.components} components cannot be distinguished from Gaussian ones with {d.rows} rows"
    if d.stability is None:
        return (
            f"{seen}. ICA cannot separate Gaussian components from one another. To see whether these come out again "
            "from halves of the rows, run nearid unmix with --stability 5 (stability=5)."
        )
    again = int(np.sum(d.gaussian & (d.stability >= UNSTABLE)))
    if again == 0:
        return f"{seen}, and they come out differently from halves of the rows: ICA cannot separate these."
    rest = doubtful - again
    others = f" ICA cannot separate the other {rest} from one another." if rest > 1 else ""
    return (
        f"{seen}, but {again} of them {'comes' if again == 1 else 'come'} out again from other starts and halves of "
        f"the rows (matched correlation of {UNSTABLE} or more).{others}"
    )


# Rows of which an alert says how much of a component's variance they carry.
FURTHEST = 5
# More copies than this share of the rows are no chance.
COPIES = 0.005


def made_by_few(kurtosis: Floats, n: int) -> np.ndarray:
    """Whether few of n rows make a component, by its excess kurtosis.

    If m rows were equally far out and all others at 0, E[s^4] / E[s^2]^2 would be n / m.
    """
    return np.asarray((n >= ENOUGH_ROWS) & (n < FEW_MAKE * (kurtosis + 3)))


class RowsSeen(NamedTuple):
    """What one more pass over the rows shows: alerts about them, and the kurtosis of each component."""

    alerts: list[Alert]
    kurtosis: Floats


def see_rows(rows: Rows, forward: Affine) -> RowsSeen:
    """Alerts about the rows of a fit and the kurtosis of its components; rows with a NaN or an infinity are left out.

    Parameters
    ----------
    forward : Affine
        From rows to components.
    """
    # A number that a row shares with its copies, and hardly with any other row.
    direction = np.random.default_rng(0).normal(size=rows.shape[1])

    def task(block: tuple[int, int]) -> tuple[Floats, Floats, Floats, Floats]:
        x = rows.read(*block)
        x = x[np.isfinite(x).all(axis=1)]
        squares = np.square(forward(x), dtype=np.float64)
        # Not a product of matrices, whose last digits depend on the place of a row.
        sums = squares.sum(axis=0), np.einsum("ij,ij->j", squares, squares)
        return np.sum(x * direction, axis=1), _largest(squares), *sums

    each, furthest, sums, fourths = zip(*ordered_map(task, forward.cut(rows.shape[0])), strict=True)
    traits, second, fourth = np.concatenate(each), np.sum(sums, axis=0), np.sum(fourths, axis=0)
    shares = _largest(np.concatenate(furthest)).sum(axis=0) / second
    kurtosis = len(traits) * fourth / second**2 - 3
    return RowsSeen([*_outlying(len(traits), shares, kurtosis), *_repeated(traits)], kurtosis)


def _largest(squares: Floats) -> Floats:
    """The largest values of each column, in any order."""
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


def _repeated(traits: Floats) -> Iterator[Alert]:
    copies = len(traits) - len(np.unique(traits))
    if copies > max(COPIES * len(traits), 1):
        yield Alert(
            "repeated_rows",
            f"About {copies} of {len(traits)} rows repeat others, so the diagnostics count too many rows and are too "
            "optimistic. Drop repeated rows.",
        )

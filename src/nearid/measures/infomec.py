"""InfoMEC (Hsu et al. 2023): modularity, explicitness and compactness of latents, from information about known factors.

NMI[i, j] is the mutual information of factor i and latent j over the entropy of the factor. InfoM asks whether each
active latent informs of one factor, InfoC whether each factor stands in one active latent, InfoE whether factors can be
read off all latents linearly. All three are in sample, as defined.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np

from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.options import Bound, Count
from nearid.base.progress import Progress, silent
from nearid.engines.local import one_blas_thread, ordered_map
from nearid.measures.factors import BINS, Bins, Factors, check_bins, shortened
from nearid.measures.information import Codes, discrete_mutual_information, entropy
from nearid.measures.logistic import LogisticFit, Scaling, fit_logistic
from nearid.measures.registry import INFINITY, Earlier, Measured, Part, measure
from nearid.moments import Floats

# The three sets of constants in print: infomec(..., **PRESETS["k3_prune8"]).
PRESETS: dict[str, dict[str, Any]] = {
    "k10_prune20": {"k": 10, "prune": 20.0},
    "k3_prune8": {"k": 3, "prune": 8.0},
    "k10_prune10": {"k": 10, "prune": 10.0},
}
# Below this many rows per column a linear fit separates classes by chance.
FEW_ROWS = 10
JITTER = 1e-10
# Values whose neighbours are sought in one task.
AT_A_TIME = 10_000


@measure(
    "InfoMEC (InfoM)",
    # Which latents are active depends on their ranges.
    invariances=("permutation", "sign", "shift"),
    parts={"infom": Part(), "infoe": Part(-INFINITY, title="InfoE"), "infoc": Part(title="InfoC")},
    each="InfoE",
    each_low=-INFINITY,
    heat_map="Normalised mutual information",
    heat_map_of="information",
    held_out=False,
    steady=True,
)
def infomec(
    x: Floats,
    factors: Factors,
    *,
    k: Count = 10,
    prune: Annotated[float, Bound(1, open_low=True)] = 20.0,
    discrete_latents: bool = False,
    jitter: Literal["reference"] | None = None,
    scaling: Scaling = "mean",
    converged: bool = False,
    bins: Bins = BINS,
    progress: Progress = silent,
    earlier: Earlier | None = None,
) -> Measured:
    """Modularity, explicitness and compactness of latents against factors.

    Parameters
    ----------
    factors : anything `open_factors` takes, of m factors
        Continuous and circular ones are cut into bins of equal width, which an alert reports.
    k : int, default=10
        Nearest neighbours of the estimate of mutual information with continuous latents. `PRESETS` holds the
        published pairs of `k` and `prune`.
    prune : float, default=20
        A latent is active if its range exceeds the largest range over `prune`; a discrete one if it varies at all.
    discrete_latents : bool, default=False
        Count values of the latents, and give them to the linear fits one-hot.
    jitter : {None, "reference"}
        None adds no noise; tied values are counted as they stand (see `neighbour_information`). "reference" parts
        ties by the noise of `numpy.random.seed(0)`, drawn factor by factor and latent by latent.
    scaling : {"mean", "sum"}
        Where the linear fits stop: as scikit-learn does from 1.4 on, or as it did before.
    converged : bool, default=False
        Take the linear fits to the optimum instead. Published values stop after 100 iterations at the latest.
    bins : int
        Bins of each factor that has no classes of its own.

    Returns
    -------
    Measured
        The value is InfoM. `per_factor` holds the share of each factor's entropy that is linearly explicit. `matrix`
        holds normalised mutual information, whose estimates may exceed 1 a little; `nmi` is its transpose, as
        published. Parts:

        - `infom`: modularity, from 0 to 1 (best); NaN for a single factor, where it is not defined.
        - `infoe`: explicitness, at most 1 (best), about 0 for noise: the mean of `per_factor`. The fits have no penalty
          and are judged in sample, as defined. Where latents are as many as rows they would tell any classes apart, so
          it is NaN; `nearid.explicitness` is held out.
        - `infoc`: compactness, from 0 to 1 (best); NaN for a single active latent, where it is not defined.

        `active`, an array of bool of shape (d,), marks latents that vary enough to count in InfoM and InfoC.

    Notes
    -----
    0/0 counts as no preference: an active latent that informs of no factor adds 0 to InfoM, as does a factor that no
    active latent informs of to InfoC. Both are reported as alerts. InfoM and InfoC are ratios of information: where
    all of `nmi` is near 0 they compare noise with noise, so read them beside their values for permuted factors.

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> u = np.random.default_rng(0).integers(0, 4, size=(300, 2))
    >>> m = nearid.infomec(u * [2.0, -1.0], u)
    >>> round(m.infom, 2), round(m.infoc, 2), m.active.tolist()
    (1.0, 1.0, [True, True])
    """
    check_bins(bins, len(x))
    # Counted anew, for some bins may be empty.
    codes: list[Codes] = [np.unique(factor.codes(bins), return_inverse=True)[1] for factor in factors.items]
    active = active_latents(x, None if discrete_latents else prune)
    if discrete_latents:
        levels: list[Codes] = [np.unique(column, return_inverse=True)[1] for column in x.T]
        _refuse_continuous(levels)
        information = np.array([[discrete_mutual_information(c, v) for v in levels] for c in codes])
        design: Floats = np.hstack([np.eye(int(v.max()) + 1)[v] for v in levels])
    else:
        design = _standardise(x)
        information = _information(design, codes, k, jitter, progress)
    # The intercept of the linear fits.
    design = np.hstack([design, np.ones((len(design), 1))])
    starts = (
        [None] * len(codes) if earlier is None or earlier.permuted else [earlier.kept.get(n) for n in factors.names]
    )

    def fit(at: int) -> LogisticFit:
        return fit_logistic(design, codes[at], scaling=scaling, converged=converged, start=starts[at])

    # As many columns as rows tell any classes apart: that is no explicitness, and no fit is needed to know it.
    separable = not discrete_latents and len(design) <= design.shape[1]
    # The last digits of products depend on the threads of BLAS, which a machine with one core would leave to it.
    with one_blas_thread:
        fits = [] if separable else list(ordered_map(fit, range(len(codes)), tick=progress("explicitness", len(codes))))

    nmi = information / np.array([[entropy(c)] for c in codes])
    # Without any latents the balanced fit gives every class the same probability: ln K.
    chance = np.log([c.max() + 1 for c in codes])
    explicitness = np.full(len(codes), np.nan) if separable else 1 - np.array([fit.loss for fit in fits]) / chance
    infom, infoc = _concentration(nmi[:, active]), _concentration(nmi[:, active].T)
    return Measured(
        infom,
        nmi.T,
        factors.names,
        explicitness,
        {"infom": infom, "infoe": float(explicitness.mean()), "infoc": infoc},
        {"nmi": nmi, "active": active},
        tuple(_alerts(nmi, active, factors, fits, design.shape, bins, converged)),
        {name: fit.coefficients for name, fit in zip(factors.names, fits, strict=False)},
    )


def active_latents(values: Floats, prune: float | None = 20.0) -> np.ndarray:
    """Which latents vary by more than the largest range over `prune`; with None, which vary at all."""
    # Halved, so that none overflows.
    ranges = values.max(axis=0) / 2 - values.min(axis=0) / 2
    return np.asarray(ranges > (0.0 if prune is None else ranges.max() / prune))


def _information(z: Floats, codes: list[Codes], k: int, jitter: str | None, progress: Progress) -> Floats:
    """Mutual information of every factor with every standardised latent, shape (factors, latents)."""
    # Compiled by numba, whose import takes most of a second.
    from nearid.measures.neighbours import neighbour_information

    columns, labels = np.ascontiguousarray(z.T), np.array(codes)
    if jitter is None:

        def of_latents(some: Floats) -> Floats:
            return neighbour_information(some, labels, k=k)

        # Of few rows a task of one latent would take less time than handing it to a thread.
        at_a_time = max(1, AT_A_TIME // columns.shape[1])
        parts = [columns[a : a + at_a_time] for a in range(0, len(columns), at_a_time)]
        return np.concatenate(list(ordered_map(of_latents, parts, tick=progress("information", len(parts))))).T

    def of_pair(column: Floats, factor: Codes) -> float:
        return float(neighbour_information(column, factor[None], k=k, count_ties=False)[0])

    tick = progress("information", len(labels) * len(columns))
    rng = np.random.RandomState(0)
    sizes = JITTER * np.maximum(1, np.abs(columns).mean(axis=1, keepdims=True))
    estimates = []
    for factor in labels:
        # One draw for all latents continues the stream as one draw each would.
        parted = columns + sizes * rng.standard_normal(columns.shape)
        estimates.append(list(ordered_map(partial(of_pair, factor=factor), list(parted), tick=tick)))
    return np.array(estimates)


def _standardise(values: Floats) -> Floats:
    """Columns of mean 0 and variance 1; constant ones become 0."""
    # Exact division by a power of two first: squares of very large or small values would leave the range.
    z: Floats = np.ldexp(values, -np.frexp(np.abs(values).max(axis=0))[1])
    constant = np.ptp(z, axis=0) == 0
    z -= z.mean(axis=0)
    z[:, constant] = 0
    z /= np.where(constant, 1.0, z.std(axis=0))
    return z


def _concentration(nmi: Floats) -> float:
    """Mean over columns of the largest entry's share, brought from [1/rows, 1] to [0, 1]; NaN for a single row."""
    rows, columns = nmi.shape
    if rows == 1:
        return float("nan")
    if nmi.size == 0:
        return 0.0
    totals, shares = nmi.sum(axis=0), np.full(columns, 1 / rows)
    np.divide(nmi.max(axis=0), totals, out=shares, where=totals > 0)
    return float((shares.mean() - 1 / rows) / (1 - 1 / rows))


def _refuse_continuous(levels: list[Codes]) -> None:
    for j, codes in enumerate(levels):
        count = int(codes.max()) + 1
        if count > len(codes) / 2:
            raise InputError(
                f"Latent {j} has {count} different values in {len(codes)} rows, but discrete_latents=True "
                "says that values repeat; leave that option out."
            )


def _alerts(
    nmi: Floats,
    active: np.ndarray,
    factors: Factors,
    fits: list[LogisticFit],
    shape: tuple[int, int],
    bins: int,
    converged: bool,
) -> Iterator[Alert]:
    names = np.array([repr(name) for name in factors.names])
    if len(nmi) == 1:
        yield Alert("one_factor", "InfoM is not defined for a single factor.")
    if active.sum() == 1:
        yield Alert("one_active_latent", "InfoC is not defined for a single active latent.")
    quiet = np.flatnonzero(active & (nmi.sum(axis=0) == 0))
    if len(quiet) and len(nmi) > 1:
        yield Alert(
            "uninformative_latents",
            f"Active latents {shortened(quiet)} carry no information about any factor (0/0). Each counts as 0 in "
            "InfoM.",
        )
    lost = np.flatnonzero(nmi[:, active].sum(axis=1) == 0)
    if len(lost):
        yield Alert(
            "unrecovered_factors",
            f"No active latent carries information about {shortened(names[lost])} (0/0). Each counts as 0 in InfoC.",
        )
    cut = [repr(factor.name) for factor in factors.items if not factor.discrete]
    if cut:
        yield Alert(
            "binned_factors", f"InfoMEC needs classes, so it cuts {', '.join(cut)} into {bins} bins of equal width."
        )
    capped = np.flatnonzero([not fit.finished for fit in fits])
    if len(capped):
        most = max(fits[i].iterations for i in capped)
        advice = "" if converged else ". To continue them: nearid.infomec(..., converged=True)"
        yield Alert(
            "unfinished_fits",
            f"Linear fits of {shortened(names[capped])} stopped before they converged, after at most {most} "
            f"iterations: their InfoE can be too low{advice}.",
        )
    n, d = shape
    if not fits:
        yield Alert(
            "few_rows",
            f"InfoE is not defined for {n} rows and {d - 1} latents: a linear fit can separate any classes, "
            "even random ones. Give more rows, or use explicitness, which is held out.",
        )
    elif n < FEW_ROWS * d:
        yield Alert(
            "few_rows",
            f"InfoE is too high: it is an in-sample fit of {n} rows and {d} columns. Aim for {FEW_ROWS} rows per "
            "column.",
        )

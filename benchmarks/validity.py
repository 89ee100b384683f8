"""Are the verdicts, alerts and intervals of nearid right as often as they claim? Simulations with known truth.

    python benchmarks/validity.py [--only NAME ...] [--runs 300] [--seed 0] [--minutes M] [--json FILE]

Every part simulates data of which the answer is known, asks `nearid.compare` or `nearid.score` with their defaults, and
prints a table: what was simulated, what is asked, how often it was found, the Monte-Carlo standard error and an exact
95% interval. FILE keeps every single run, one per line. With the same FILE a second call goes on where the first one
ended; --minutes limits the time of each part. The part `recordings` reads the folder that NEARID_DATA names.

Runs depend on the seed, on the name of the simulation and on their number alone.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import validity_deconfound
from scipy.signal import lfilter
from scipy.stats import beta

import nearid
from nearid.arrays import open_rows, pair_rows
from nearid.base.progress import silent
from nearid.engines.local import LOCAL
from nearid.folds import Blocks
from nearid.groups.ladder import ladder as ladder_of
from nearid.measures.canonical import Canonical, pooled, products_along
from nearid.measures.similarity import cka_from_moments, debiased_cka
from nearid.moments import PairMoments
from nearid.questions.compare.errors import evaluate, fit_held_out, gather
from nearid.questions.compare.similar import with_intervals

Rows = np.ndarray
Outcome = Any
# Fewer repetitions of chance that settle most verdicts on unrelated rows.
FIRST_PERMUTATIONS = 9
LAGS = 50
MANY_RUNS = 1_000_000
# Figures of a group by their titles, and groups, of which intervals are judged.
FIGURES = {"R2": "r2", "epsilon": "epsilon", "relative error": "relative"}
COMPARED = ("permutation", "rigid", "linear")
BEST_GROUPS = ("rigid", "linear")
SIMILAR = ("CCA", "SVCCA", "CKA")
MCC_METHODS = ("pearson", "spearman", "piecewise")


class Cell(NamedTuple):
    """One simulation: what it is, what is asked of it, and a function that makes one run of it."""

    name: str
    asked: str
    run: Callable[[np.random.Generator], Outcome]
    most_runs: int = MANY_RUNS


class Part(NamedTuple):
    """Simulations that share a table."""

    cells: Callable[[int], list[Cell]]
    table: Callable[[Cell, list[Outcome]], Iterator[str]]
    header: str


# --- rows ---------------------------------------------------------------------------------------------------------


def gaussian(rng: np.random.Generator, n: int, d: int) -> Rows:
    """Independent rows with independent columns of unit variance."""
    return rng.normal(size=(n, d))


def series(rng: np.random.Generator, n: int, d: int, rho: float) -> Rows:
    """Stationary AR(1) series with unit variance: x[t] = rho x[t-1] + sqrt(1 - rho²) e[t]."""
    steps = np.sqrt(1 - rho**2) * rng.normal(size=(n, d))
    return np.asarray(lfilter([1.0], [1.0, -rho], steps, axis=0, zi=rho * rng.normal(size=(1, d)))[0])


def clusters(rng: np.random.Generator, groups: int, size: int, d: int, noise: float) -> Rows:
    """Rows of `groups` images one after another: what the image gives (unit variance), and noise of each row."""
    return np.repeat(rng.normal(size=(groups, d)), size, axis=0) + noise * rng.normal(size=(groups * size, d))


def student3(rng: np.random.Generator, n: int, d: int) -> Rows:
    """Rows of a multivariate Student t with 3 degrees of freedom and unit variance."""
    return rng.normal(size=(n, d)) / np.sqrt(rng.chisquare(3, size=(n, 1)))


def turn(rng: np.random.Generator, d: int) -> Rows:
    """A rotation or reflection, drawn uniformly."""
    q, r = np.linalg.qr(rng.normal(size=(d, d)))
    return np.asarray(q * np.sign(np.diag(r)))


def conditioned(rng: np.random.Generator, d: int, condition: float) -> Rows:
    """A matrix with singular values in geometric progression from 1 to the condition number."""
    return turn(rng, d) * np.geomspace(1, condition, d) @ turn(rng, d)


def noisy(y: Rows, share: float, rng: np.random.Generator) -> Rows:
    """Rows with noise, of which the root mean square is this share of that of the rows."""
    return np.asarray(y + share * np.sqrt(np.mean(y**2)) * rng.normal(size=y.shape))


def related(x: Rows, noise: Rows, r2: float, rng: np.random.Generator) -> Rows:
    """A random linear image of x of which noise leaves the share r2 of the variance."""
    signal = x @ rng.normal(size=(x.shape[1], x.shape[1]))
    return np.asarray(signal / signal.std() * np.sqrt(r2) + noise / noise.std() * np.sqrt(1 - r2))


# --- what nearid says ---------------------------------------------------------------------------------------------


def falsely_related(x: Rows, y: Rows, **options: Any) -> bool:
    """Whether `compare` with its defaults finds a group for these rows.

    Repetitions of chance are drawn one after another from seeds of their own. Rows that do not beat the first nine do
    not beat all 99, so the other 90 are left out where they cannot change the answer.
    """
    first = nearid.compare(x, y, permutations=FIRST_PERMUTATIONS, **options).verdict
    return first.strength != "not at all" and found(x, y, **options)


def found(x: Rows, y: Rows, **options: Any) -> bool:
    """Whether `compare` finds a group."""
    return bool(nearid.compare(x, y, **options).verdict.group != "none")


def verdict(x: Rows, y: Rows) -> str:
    """The group, or the two groups that the verdict lies between, of rows that are closely related.

    More than nine repetitions of chance would not change it: a group that could be the verdict is far above them all.
    """
    given = nearid.compare(x, y, permutations=FIRST_PERMUTATIONS).verdict
    return "between " + " and ".join(given.between) if given.between else str(given.group)


# --- simulations --------------------------------------------------------------------------------------------------


def independent(seed: int) -> list[Cell]:
    """Unrelated sides with independent Gaussian rows."""
    return [
        Cell(f"{n} x {d}", "<= .01", lambda rng, n=n, d=d: falsely_related(gaussian(rng, n, d), gaussian(rng, n, d)))
        for n in (200, 1000)
        for d in (8, 32)
    ]


def block_length(n: int, rho: float) -> int:
    """Five correlation times 1 / (1 - rho), or as many rows as five blocks can have."""
    return int(min(round(5 / (1 - rho)), n // 5))


def serial(seed: int) -> list[Cell]:
    """Unrelated AR(1) series in the order of the file: without blocks, and with contiguous blocks given."""

    def run(rng: np.random.Generator, n: int, d: int, rho: float, given: bool) -> bool:
        blocks = np.arange(n) // block_length(n, rho) if given else None
        return falsely_related(series(rng, n, d, rho), series(rng, n, d, rho), blocks=blocks)

    return [
        Cell(
            f"AR(1) {rho}, {n} x {d}, " + (f"blocks of {block_length(n, rho)} given" if given else "no blocks given"),
            "<= .01",
            lambda rng, a=(n, d, rho, given): run(rng, *a),
        )
        for given in (False, True)
        for rho in (0.5, 0.9, 0.99)
        for n in (1000, 5000)
        for d in (8, 32)
    ]


# Images or texts, and the rows of each.
SIZES = ((200, 5), (100, 20), (40, 75), (200, 15))


def grouped(seed: int) -> list[Cell]:
    """Unrelated sides of which rows share an image: each side has a vector for each image, and noise of half its size.

    Rows are in the order of the images: without blocks, and with the image of each row given.
    """

    def run(rng: np.random.Generator, groups: int, size: int, d: int, given: bool) -> bool:
        blocks = np.repeat(np.arange(groups), size) if given else None
        x, y = (clusters(rng, groups, size, d, 0.5) for _ in range(2))
        return falsely_related(x, y, blocks=blocks)

    return [
        Cell(
            f"{groups} images x {size} rows, {d} columns, {'blocks' if given else 'no blocks'} given",
            "<= .01",
            lambda rng, a=(groups, size, d, given): run(rng, *a),
        )
        for given in (False, True)
        for groups, size in SIZES
        for d in (8, 32)
    ]


def shuffled(seed: int) -> list[Cell]:
    """The rows of `grouped` in random order without blocks: does the alert `clustered_rows` come?"""

    def run(rng: np.random.Generator, groups: int, size: int, d: int, noise: float) -> bool:
        order = rng.permutation(groups * size)
        x, y = (clusters(rng, groups, size, d, noise)[order] for _ in range(2))
        # Chance has no part in the alert.
        return any(a.code == "clustered_rows" for a in nearid.compare(x, y, permutations=1).alerts)

    return [
        Cell(
            f"{groups} images x {size} rows, {d} columns, noise {noise}",
            ">= .95",
            lambda rng, a=(groups, size, d, noise): run(rng, *a),
        )
        for groups, size in SIZES[:2]
        for d in (8, 32)
        for noise in (0.3, 0.5)
    ]


def power(seed: int) -> list[Cell]:
    """A random linear relation with R2 = .4 and 100 blocks. The noise depends on its neighbours as the source does."""

    def serial_run(rng: np.random.Generator, d: int, rho: float, length: int, given: bool) -> bool:
        n = 100 * length
        x = series(rng, n, d, rho)
        y = related(x, series(rng, n, d, rho), 0.4, rng)
        return found(x, y, blocks=np.arange(n) // length if given else None)

    def grouped_run(rng: np.random.Generator, d: int, size: int, given: bool) -> bool:
        x = clusters(rng, 100, size, d, 0.5)
        y = related(x, clusters(rng, 100, size, d, 0.5), 0.4, rng)
        return found(x, y, blocks=np.repeat(np.arange(100), size) if given else None)

    cells = [
        Cell(
            f"100 independent rows a column, {d} columns",
            ">= .95",
            lambda rng, d=d: found(x := gaussian(rng, 100 * d, d), related(x, gaussian(rng, 100 * d, d), 0.4, rng)),
        )
        for d in (8, 32)
    ]
    for given in (False, True):
        said = "blocks given" if given else "no blocks given"
        for d in (8, 32):
            cells += [
                Cell(
                    f"AR(1) {rho}, {100 * length} x {d}, {said}",
                    ">= .95",
                    lambda rng, a=(d, rho, length, given): serial_run(rng, *a),
                )
                for rho, length in ((0.5, 10), (0.9, 50))
            ]
            cells += [
                Cell(
                    f"100 images x {size} rows, {d} columns, {said}",
                    ">= .95",
                    lambda rng, a=(d, size, given): grouped_run(rng, *a),
                )
                for size in (5, 20, 75)
            ]
        cells.append(
            Cell(
                f"AR(1) 0.99, 50000 x 8, {said}",
                ">= .95",
                lambda rng, a=(8, 0.99, 500, given): serial_run(rng, *a),
                100,
            )
        )
    return cells


def ladder(seed: int) -> list[Cell]:
    """Known relations of Gaussian rows with noise of 10%: which group does the verdict name?"""

    def linear(rng: np.random.Generator, n: int, d: int, condition: float) -> str:
        x = gaussian(rng, n, d)
        return verdict(x, noisy(x @ conditioned(rng, d, condition), 0.1, rng))

    cells = [
        Cell(
            f"linear, condition 10, {d} columns, {ratio} rows a column",
            "linear",
            lambda rng, a=(ratio * d, d, 10.0): linear(rng, *a),
        )
        for d in (16, 32)
        for ratio in (2, 5, 10)
    ]
    cells += [
        Cell(f"rigid, {d} columns, {ratio} rows a column", "rigid", lambda rng, a=(ratio * d, d, 1.0): linear(rng, *a))
        for d in (16, 32)
        for ratio in (5, 10, 50)
    ]
    cells.append(
        Cell("linear, condition 1.2, 32 columns, 330 rows", "linear", lambda rng: linear(rng, 330, 32, 1.2), 100)
    )
    return cells


def recordings(seed: int) -> list[Cell]:
    """Real recordings in the order of the file, the target shifted in a circle by at least a tenth of its rows."""

    def run(rng: np.random.Generator, file: str, source: str, target: str) -> bool:
        with np.load(Path(os.environ["NEARID_DATA"]) / "ensembles" / file, allow_pickle=False) as arrays:
            x, y = arrays[source], arrays[target]
        lag = int(rng.integers(len(x) // 10, len(x) - len(x) // 10))
        return falsely_related(x, np.roll(y, lag, axis=0))

    pairs = (
        ("silero_vad.npz", "h_5.1.2", "h_6.0.0"),
        ("silero_vad.npz", "c_5.1.2", "c_6.0.0"),
        ("silero_vad.npz", "h_6.0.0", "c_6.2.0"),
        ("cebra_hippocampus.npz", "e022", "e023"),
        ("cebra_hippocampus.npz", "e025", "e030"),
        ("cebra_hippocampus.npz", "e035", "e041"),
        ("ani_C.npz", "ani1x_0", "ani1x_1"),
        ("ani_H.npz", "ani1x_0", "ani1x_7"),
    )
    return [
        Cell(f"{file}, {source} to {target}", "<= .05", lambda rng, a=(file, source, target): run(rng, *a), LAGS)
        for file, source, target in pairs
    ]


def relations(d: int, seed: int) -> dict[str, Rows]:
    """Linear maps that are the same in every run: near a permutation with unequal scales, and random."""
    rng = np.random.default_rng([seed, d])
    mixing = rng.normal(size=(d, d)) / np.sqrt(d)
    near = np.eye(d)[rng.permutation(d)] * rng.uniform(0.6, 1.4, size=d) + 0.15 * mixing
    return {"near a permutation": near, "random map": mixing}


def figures_of(result: nearid.Comparison) -> dict[str, list[float]]:
    """Value and ends of the interval of every figure and group; epsilon as the mean error, given the diameter."""
    figures = {}
    for title, figure in FIGURES.items():
        unit = result.diameter.lower if figure == "epsilon" else 1.0
        for group in COMPARED:
            estimate = getattr(result.groups[group], figure)
            figures[f"{title}, {group}"] = [unit * v for v in (estimate.value, estimate.low, estimate.high)]
    return figures


def coverage_cells(d: int, ratios: Sequence[int], seed: int) -> list[Cell]:
    """Intervals of every group for a noisy linear image of Gaussian or Student rows.

    Noise has half the size of the rows. The estimand is what a fit on four fifths of n rows reaches on new rows.
    Held-out figures are unbiased for it, so their mean over runs is the truth. Epsilon is judged given the diameter.
    Chance has no part in an interval.
    """

    def run(rng: np.random.Generator, draw: Callable[..., Rows], n: int, relation: Rows) -> dict[str, list[float]]:
        x = draw(rng, n, d)
        return figures_of(nearid.compare(x, x @ relation + 0.5 * draw(rng, n, d), permutations=1))

    return [
        Cell(
            f"{d} columns, {ratio} rows a column, {rows}, {relation}",
            ".93 to .97",
            lambda rng, a=(draw, ratio * d, matrix): run(rng, *a),
            # No interval comes of so few rows.
            10 if ratio == 3 else MANY_RUNS,
        )
        for ratio in ratios
        for rows, draw in (("Gaussian", gaussian), ("t3", student3))
        for relation, matrix in relations(d, seed).items()
    ]


# Blocks, and the rows of each, of which intervals are judged with blocks.
BLOCKED = ((80, 5), (400, 5), (40, 75))


def coverage_blocks(seed: int) -> list[Cell]:
    """The same for rows that share an image, with the image of each row given: 8 columns, noise of half the size."""

    def run(rng: np.random.Generator, blocks: int, size: int, relation: Rows) -> dict[str, list[float]]:
        x, noise = (clusters(rng, blocks, size, len(relation), 0.5) for _ in range(2))
        given = np.repeat(np.arange(blocks), size)
        return figures_of(nearid.compare(x, x @ relation + 0.5 * noise, blocks=given, permutations=1))

    return [
        Cell(
            f"8 columns, {blocks} blocks x {size} rows, {relation}",
            ".93 to .97",
            lambda rng, a=(blocks, size, matrix): run(rng, *a),
        )
        for blocks, size in BLOCKED
        for relation, matrix in relations(8, seed).items()
    ]


def similarities(seed: int) -> list[Cell]:
    """Intervals of CCA, SVCCA and CKA for the same rows, with and without blocks.

    The estimand of CCA and SVCCA is the correlation of new rows along the directions that were fitted. It is another
    one in each run and follows from the population's covariances. That of CKA is the population's.
    """

    def run(
        rng: np.random.Generator, draw: Callable[[np.random.Generator], Rows], size: int, relation: Rows, unit: float
    ) -> dict[str, list[float]]:
        x = draw(rng)
        y = x @ relation + 0.5 * draw(rng)
        blocks = Blocks(np.arange(len(x)) // size) if size > 1 else None
        gathered = gather(
            pair_rows(open_rows(x), open_rows(y)),
            5,
            {"translation": True, "scale": True, "ridge": 0.0},
            0,
            together=blocks,
            drop_nonfinite=False,
            prepare=(),
            engine=LOCAL,
            progress=silent,
        )
        fits = fit_held_out(gathered, ladder_of("permutation"), None)
        fourth = evaluate(gathered, fits).fourth
        found = with_intervals(fits.similarities(debiased_cka(gathered.moments, fourth)), gathered, fits, 0)
        d = len(relation)
        rest = relation.T @ relation + 0.25 * np.eye(d)
        population = PairMoments(1, np.zeros(d), np.zeros(d), unit * np.eye(d), unit * relation, unit * rest)
        truths = [_along(own, population, gathered.parts.counts) for own in (fits.cca, fits.svcca)]
        truths.append(cka_from_moments(population))
        each = zip(SIMILAR, (found.cca, found.svcca, found.cka), truths, strict=True)
        return {name: [float(v) for v in (e.value, e.low, e.high, truth)] for name, e, truth in each}

    cells = []
    for d, ratio in ((8, 10), (8, 50), (32, 10), (32, 50)):
        for rows, draw in (("Gaussian", gaussian), ("t3", student3)):
            for relation, matrix in relations(d, seed).items():
                own = lambda rng, draw=draw, n=ratio * d, d=d: draw(rng, n, d)  # noqa: E731
                name = f"{d} columns, {ratio} rows a column, {rows}, {relation}"
                cells.append(Cell(name, ".93 to .97", lambda rng, a=(own, 1, matrix, 1.0): run(rng, *a)))
    for blocks, size in BLOCKED:
        for relation, matrix in relations(8, seed).items():
            own = lambda rng, blocks=blocks, size=size: clusters(rng, blocks, size, 8, 0.5)  # noqa: E731
            name = f"8 columns, {blocks} blocks x {size} rows, {relation}"
            cells.append(Cell(name, ".93 to .97", lambda rng, a=(own, size, matrix, 1.25): run(rng, *a)))
    return cells


def _along(found: Canonical, population: PairMoments, counts: Sequence[int]) -> float:
    """Mean correlation in the population along the directions of each fold, pooled over folds as nearid does it."""
    each = zip(found.directions, counts, strict=True)
    return float(found.weights @ pooled([n * products_along(a, b, population) for (a, b), n in each]))


def measures(seed: int) -> list[Cell]:
    """Every default measure of `score`, and piecewise MCC, with 4 uniform factors, 1,000 rows and noise of 5%."""
    n, k = 1000, 4

    def run(rng: np.random.Generator, design: Callable[[np.random.Generator, Rows], Rows]) -> dict[str, float]:
        u = rng.uniform(-1, 1, size=(n, k))
        return scored(noisy(design(rng, u), 0.05, rng), u)

    def scored(z: Rows, u: Rows) -> dict[str, float]:
        # The values of `score`, without its intervals and chance levels, which take most of its time.
        values = {f"mcc {method}": float(nearid.mcc(z, u, method=method)) for method in MCC_METHODS}
        values["r2"] = float(nearid.r2(z, u))
        for measure in (nearid.infomec, nearid.dci):
            values |= {part: float(value) for part, value in measure(z, u).parts.items()}
        for measure in (nearid.mig, nearid.sap, nearid.modularity, nearid.explicitness):
            values[measure.__name__] = float(measure(z, u))
        return values

    def correlated(rng: np.random.Generator) -> dict[str, float]:
        shared = rng.normal(size=(n, 1))
        u = np.sqrt(0.7) * shared + np.sqrt(0.3) * rng.normal(size=(n, k))
        return scored(noisy(u, 0.05, rng), u)

    designs: dict[str, Callable[[np.random.Generator, Rows], Rows]] = {
        "the factors themselves": lambda rng, u: u,
        "each factor bent (cube)": lambda rng, u: u**3,
        "redundant: every factor twice": lambda rng, u: np.hstack([u, u]),
        "entangled: the factors rotated": lambda rng, u: u @ turn(rng, k),
        "overcomplete: 4 factors and 12 columns of noise": lambda rng, u: np.hstack(
            [u, rng.uniform(-1, 1, size=(n, 12))]
        ),
        "overcomplete: 16 random mixtures": lambda rng, u: u @ rng.normal(size=(k, 16)) / 2,
        "undercomplete: 2 of the 4 factors": lambda rng, u: u[:, :2],
        "undercomplete: 2 random mixtures": lambda rng, u: u @ rng.normal(size=(k, 2)),
        "noise": lambda rng, u: rng.uniform(-1, 1, size=(n, k)),
    }
    cells = [Cell(name, "", lambda rng, design=design: run(rng, design)) for name, design in designs.items()]
    cells.insert(1, Cell("the factors, correlated by .7", "", correlated))
    return cells


def ridge(seed: int) -> list[Cell]:
    """R2 of the linear map with the chosen penalty and with none, where rows are many; and R2 of unrelated rows."""

    def run(rng: np.random.Generator, n: int, d: int, r2: float) -> list[float]:
        x = gaussian(rng, n, d)
        y = related(x, gaussian(rng, n, d), r2, rng) if r2 else gaussian(rng, n, d)
        fits = (nearid.compare(x, y, groups="linear", ridge=ridge, permutations=1) for ridge in ("auto", 0))
        return [float(fit.groups["linear"].r2) for fit in fits]

    return [
        Cell(
            f"R2 {r2}, {d} columns, {ratio} rows a column",
            "within .001" if r2 else "near 0",
            lambda rng, a=(ratio * d, d, r2): run(rng, *a),
        )
        for r2 in (0.0, 0.1, 0.5, 0.99)
        for d in (8, 32)
        for ratio in (50, 200)
    ]


def best(seed: int) -> list[Cell]:
    """Intervals of the best and of the worst of 45 pairs of ten runs of one representation.

    A run is the representation, turned, with noise of its own. The estimand is that of `coverage_cells`: for each pair
    the mean of its estimates over all runs.
    """

    def run(rng: np.random.Generator, n: int, noises: Sequence[float]) -> dict[str, Any]:
        z = gaussian(rng, n, 8)
        runs = [z @ turn(rng, 8) + noise * gaussian(rng, n, 8) for noise in noises]
        found = nearid.compare(*runs, groups=BEST_GROUPS, permutations=1, blocks="none")
        names, figures = [c.names for c in found], {}
        for group in BEST_GROUPS:
            figures[group] = {"values": [c.groups[group].r2.value for c in found]}
            for which, pair in (("best", found.best(group)), ("worst", found.worst(group))):
                at = names.index((pair.source, pair.target))
                own = found[at].groups[group].r2
                figures[group][which] = [at, pair.value.low, pair.value.high, own.low, own.high]
        return figures

    like, unlike = [0.5] * 10, np.linspace(0.3, 0.75, 10)
    designs = (
        (500, "noise .5", like, ".93 to .98", MANY_RUNS),
        (100, "noise .5", like, ".93 to .98", MANY_RUNS),
        # The best pair is the same one in most runs: there is little choice to allow for.
        (500, "noise .3 to .75", unlike, ">= .93", 100),
    )
    return [
        Cell(f"10 runs of {n} x 8, {said}", asked, lambda rng, a=(n, noises): run(rng, *a), most)
        for n, said, noises, asked, most in designs
    ]


def best_layers(seed: int) -> list[Cell]:
    """Is the best pair of layers of two unrelated models found to be alike (p <= .05)?

    Layers of a model have its four latents in common: random linear images of them, with noise of twice their size.
    """

    def model(rng: np.random.Generator, n: int, layers: int, width: int, rho: float) -> dict[str, Rows]:
        z = series(rng, n, 4, rho)
        return {str(k): z @ rng.normal(size=(4, width)) + 4 * series(rng, n, width, rho) for k in range(layers)}

    def run(rng: np.random.Generator, measure: str, n: int, layers: int, width: int, rho: float) -> bool:
        x, y = (model(rng, n, layers, width, rho) for _ in range(2))
        return bool(nearid.compare_layers(x, y, measures=measure, permutations=19).best[measure].p_value <= 0.05)

    designs = [(measure, 300, 4, 8, 0.0) for measure in ("cka", "r2", "r2_rigid", "cca", "mcc")]
    designs += [("cka", 300, 12, 32, 0.0), ("cka", 1000, 4, 8, 0.9), ("r2", 1000, 4, 8, 0.9)]
    return [
        Cell(
            f"{measure}, {layers} x {layers} layers of {n} x {width}" + (f", AR(1) {rho}" if rho else ""),
            "<= .05",
            lambda rng, a=(measure, n, layers, width, rho): run(rng, *a),
        )
        for measure, n, layers, width, rho in designs
    ]


def deconfound(seed: int) -> list[Cell]:
    """The simulations of validity_deconfound.py, 20 runs at a time."""
    return [
        Cell(
            simulate.__name__,
            "",
            lambda rng, simulate=simulate: [list(line) for line in simulate(20, int(rng.integers(1 << 30)))],
        )
        for simulate in validity_deconfound.SIMULATIONS
    ]


# --- tables -------------------------------------------------------------------------------------------------------


def line(what: str, asked: str, hits: int, runs: int) -> str:
    """A row of a table: a share, its Monte-Carlo standard error, and its exact 95% interval (Clopper and Pearson)."""
    share = hits / runs
    low = float(beta.ppf(0.025, hits, runs - hits + 1)) if hits else 0.0
    high = float(beta.ppf(0.975, hits + 1, runs - hits)) if hits < runs else 1.0
    error = np.sqrt(share * (1 - share) / runs)
    return f"| {what} | {asked} | {share:.3f} | {error:.3f} | {low:.3f} to {high:.3f} | {runs} |"


SHARES = "| simulation | asked | share | MC error | 95% interval | runs |\n|---|---|---|---|---|---|"


def shares(cell: Cell, outcomes: list[Outcome]) -> Iterator[str]:
    """How many runs are hits."""
    yield line(cell.name, cell.asked, sum(outcomes), len(outcomes))


def verdicts(cell: Cell, outcomes: list[Outcome]) -> Iterator[str]:
    """How many runs name the group, how many name it or lie between it and another, and what the others name."""
    hits = [cell.asked in outcome for outcome in outcomes]
    others = {o: outcomes.count(o) for o in sorted(set(outcomes))}
    counted = ", ".join(f"{count} {name}" for name, count in others.items())
    yield line(f"{cell.name} ({counted})", f"{cell.asked} or between", sum(hits), len(outcomes))


def covered_header(figures: Sequence[str]) -> str:
    """The header of a table of such shares."""
    return f"| simulation | asked | {' | '.join(figures)} | MC error | runs |\n|{'---|' * (len(figures) + 4)}"


COVERED = covered_header([f"{f}, {g}" for f in FIGURES for g in COMPARED])


def covered(cell: Cell, outcomes: list[Outcome]) -> Iterator[str]:
    """Share of intervals that hold the truth, or else the mean of estimates; the error is that of a share of .95."""
    shares = []
    for figure in outcomes[0]:
        value, low, high, *truth = np.array([outcome[figure] for outcome in outcomes], dtype=float).T
        right = truth[0] if truth else value.mean()
        inside = (low <= right) & (right <= high)
        shares.append(f"{inside.mean():.3f}" if np.isfinite(low).all() else "no interval")
    error = np.sqrt(0.95 * 0.05 / len(outcomes))
    yield f"| {cell.name} | {cell.asked} | {' | '.join(shares)} | {error:.3f} | {len(outcomes)} |"


PENALTIES = (
    "| simulation | asked | R2, chosen penalty | R2, no penalty | smallest difference | largest difference | runs |"
    "\n|---|---|---|---|---|---|---|"
)


def penalties(cell: Cell, outcomes: list[Outcome]) -> Iterator[str]:
    """Mean R2 with and without a penalty, and the smallest and largest difference of a run (chosen minus none)."""
    chosen, plain = np.array(outcomes).T
    differences = f"{(chosen - plain).min():+.5f} | {(chosen - plain).max():+.5f}"
    yield f"| {cell.name} | {cell.asked} | {chosen.mean():.4f} | {plain.mean():.4f} | {differences} | {len(outcomes)} |"


CHOSEN = (
    "| simulation | asked | best | best, as if it were the only pair | worst | worst, as if it were the only pair | "
    "MC error | runs |\n|---|---|---|---|---|---|---|---|"
)


def chosen(cell: Cell, outcomes: list[Outcome]) -> Iterator[str]:
    """Share of intervals of the chosen pair that hold its mean; the error is that of a share of .95."""
    for group in BEST_GROUPS:
        truth, shares = np.mean([outcome[group]["values"] for outcome in outcomes], axis=0), []
        for which in ("best", "worst"):
            at, *ends = np.array([outcome[group][which] for outcome in outcomes]).T
            own = truth[at.astype(int)]
            shares += [np.mean((ends[k] <= own) & (own <= ends[k + 1])) for k in (0, 2)]
        held = " | ".join(f"{share:.3f}" for share in shares)
        error = np.sqrt(0.95 * 0.05 / len(outcomes))
        yield f"| {cell.name}, {group} | {cell.asked} | {held} | {error:.3f} | {len(outcomes)} |"


def matrix(cell: Cell, outcomes: list[Outcome]) -> Iterator[str]:
    """A row with mean and standard deviation of every measure."""
    table = np.array([list(outcome.values()) for outcome in outcomes], dtype=float)
    spread = table.std(axis=0, ddof=1) if len(table) > 1 else np.full(table.shape[1], np.nan)
    entries = (f"{m:.2f} ±{s:.2f}" for m, s in zip(table.mean(axis=0), spread, strict=True))
    yield f"| {cell.name} | {' | '.join(entries)} | {len(outcomes)} |"


COLUMNS = (
    *(f"MCC, {method}" for method in MCC_METHODS),
    *("R2", "InfoM", "InfoE", "InfoC", "D", "C", "I"),
    *("MIG", "SAP", "modularity", "explicitness"),
)
MATRIX = f"| latents | {' | '.join(COLUMNS)} | runs |\n|{'---|' * (len(COLUMNS) + 2)}"


def joined(cell: Cell, outcomes: list[Outcome]) -> Iterator[str]:
    """Shares of several simulations at once, each from some runs."""
    for rows in zip(*outcomes, strict=True):
        what, asked, _, _ = rows[0]
        runs = sum(row[3] for row in rows)
        yield line(what.strip(), asked, round(sum(row[2] * row[3] for row in rows)), runs)


PARTS = {
    "independent": Part(independent, shares, SHARES),
    "serial": Part(serial, shares, SHARES),
    "grouped": Part(grouped, shares, SHARES),
    "shuffled": Part(shuffled, shares, SHARES),
    "power": Part(power, shares, SHARES),
    "ladder": Part(ladder, verdicts, SHARES),
    "recordings": Part(recordings, shares, SHARES),
    "coverage": Part(lambda seed: coverage_cells(8, (3, 10, 50, 200), seed), covered, COVERED),
    "coverage_wide": Part(lambda seed: coverage_cells(32, (3, 10, 50, 200), seed), covered, COVERED),
    "coverage_blocks": Part(coverage_blocks, covered, COVERED),
    "similarities": Part(similarities, covered, covered_header(SIMILAR)),
    "measures": Part(measures, matrix, MATRIX),
    "ridge": Part(ridge, penalties, PENALTIES),
    "best": Part(best, chosen, CHOSEN),
    "best_layers": Part(best_layers, shares, SHARES),
    "deconfound": Part(deconfound, joined, SHARES),
}


# --- runs ---------------------------------------------------------------------------------------------------------


def simulate(name: str, cells: list[Cell], runs: int, seed: int, minutes: float, kept: Kept) -> None:
    """Make the runs that are not kept yet, one of every cell in turn, until the time is over."""
    start = time.monotonic()
    for run in range(runs):
        for cell in cells:
            if time.monotonic() - start > 60 * minutes:
                return
            key = (name, cell.name, seed, run)
            if run < cell.most_runs and key not in kept.outcomes:
                rng = np.random.default_rng([seed, zlib.crc32(f"{name}/{cell.name}".encode()), run])
                kept.add(key, cell.run(rng))


Key = tuple[str, str, int, int]


class Kept:
    """Outcomes of runs, in memory and, one a line, in a file."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.outcomes: dict[Key, Outcome] = {}
        if path is not None and path.exists():
            for text in path.read_text().splitlines():
                *key, outcome = json.loads(text)
                self.outcomes[tuple(key)] = outcome

    def add(self, key: Key, outcome: Outcome) -> None:
        """Keep one more."""
        self.outcomes[key] = outcome
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps([*key, outcome]) + "\n")

    def of(self, name: str, cell: Cell, seed: int) -> list[Outcome]:
        """Outcomes of one cell, in the order of runs."""
        found = {
            run: o
            for (part, what, own, run), o in self.outcomes.items()
            if (part, what, own) == (name, cell.name, seed)
        }
        return [found[run] for run in sorted(found)]


def main() -> None:
    """Print the table of every part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS), help="parts to run")
    parser.add_argument("--runs", type=int, default=300, help="runs of every simulation")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=np.inf, help="time for each part")
    parser.add_argument("--json", type=Path, help="file that keeps every run")
    words = parser.parse_args()
    kept = Kept(words.json)
    print(
        f"nearid {nearid.__version__}, {date.today()}, {platform.processor() or platform.machine()}, seed {words.seed}"
    )
    for name in words.only:
        part = PARTS[name]
        if name == "recordings" and "NEARID_DATA" not in os.environ:
            print(f"\n{name}: skipped. Set NEARID_DATA to the folder that holds `ensembles`.")
            continue
        cells = part.cells(words.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            simulate(name, cells, words.runs, words.seed, words.minutes, kept)
        print(f"\n{name}\n\n{part.header}")
        for cell in cells:
            outcomes = kept.of(name, cell, words.seed)
            for text in part.table(cell, outcomes) if outcomes else ():
                print(text, flush=True)


if __name__ == "__main__":
    main()

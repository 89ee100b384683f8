"""What experiments on bi-Lipschitz constants share (Nelson et al. 2026): errors beside L, the curve sqrt(L^2 - 1)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from nearid.base.errors import InputError
from nearid.base.estimate import Estimate
from nearid.geometry.bounds import FittedRate, fit_rate, rate
from nearid.lab.framework.cells import Finished
from nearid.lab.framework.claims import Outcome, Test, decide, worst
from nearid.lab.framework.experiment import Column
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.papers.common.jackknife import jackknife
from nearid.show.figures import Coordinates, Scatter

# What counts as a clear order: Spearman's correlation over the rows of a seed.
ORDERED = 0.8
# Share of the variance of the errors that counts as lying along the curve.
EXPLAINED = 0.5
# Shown intervals end where correlations do.
CORRELATION = Column("correlation", "rank correlation", least=-1, most=1)
# Rows of a seed without which an order means nothing.
FEWEST = 3


def pairs(cells: Sequence[Finished], x: str, y: str) -> tuple[list[float], list[float]]:
    """Two scores of the cells that have both."""
    both = [(f.data["scores"].get(x), f.data["scores"].get(y)) for f in cells]
    known = [(a, b) for a, b in both if a is not None and b is not None]
    return [a for a, _ in known], [b for _, b in known]


def rank_correlations(cells: Sequence[Finished], x: str, y: str) -> dict[int, float]:
    """Spearman's correlation of two scores over the rows of each seed.

    Seeds with fewer than three rows, or with scores that are all equal, are left out.
    """
    correlations = {}
    for seed in sorted({f.cell.seed for f in cells}):
        value = _spearman(*pairs([f for f in cells if f.cell.seed == seed], x, y))
        if np.isfinite(value):
            correlations[seed] = value
    return correlations


def ordered(
    cells_of: Callable[[ExperimentResult], Sequence[Finished]],
    group: str,
    x: str,
    y: str,
    label: str,
    *,
    rising: bool = True,
) -> Test:
    """A test whether one score rises (or falls) with another, by the rank correlation of each seed.

    Parameters
    ----------
    cells_of : callable
        The cells of a result that count.
    group : str
        What the keys of their rows begin with.
    x, y : str
        Keys of the scores.
    label : str
        What is correlated, in words.
    """

    def test(result: ExperimentResult) -> Outcome:
        cells = cells_of(result)
        estimate = Estimate.over(rank_correlations(cells, x, y).values())
        rows = [row.key for row in result.every_row if row.key.startswith(f"{group}-")]
        threshold = ORDERED if rising else -ORDERED
        decided = decide(
            result, rows, estimate, threshold, f"The rank correlation of {label}", above=rising, column=CORRELATION
        )
        together = _spearman(*pairs(cells, x, y))
        if decided.needs or not np.isfinite(together):
            return decided
        return replace(
            decided, sentence=f"{decided.sentence} Over all {len(cells)} cells together it is {together:.3g}."
        )

    return test


def ordered_within(row: str, view: str, x: str, y: str, label: str) -> Test:
    """A test whether one list of a view rises with another, by the rank correlation within each cell of a row."""

    def test(result: ExperimentResult) -> Outcome:
        lists = [f.data["views"][view] for f in result.of_row(row)]
        found = [value for v in lists if np.isfinite(value := _spearman(v[x], v[y]))]
        said = f"The rank correlation of {label}"
        return decide(result, [row], Estimate.over(found), ORDERED, said, above=True, column=CORRELATION)

    return test


def pooled_curve(
    cells_of: Callable[[ExperimentResult], Sequence[Finished]], group: str, constant: str, error: str
) -> Test:
    """A test of the curve c sqrt(L^2 - 1) over all cells together, as the paper's figures show it.

    A line must rise, and the curve must explain the share `EXPLAINED` of the errors' variance. Intervals are over
    seeds, by a jackknife. A line, as the slope of a curve through 0 is above 0 whatever positive errors do.
    """

    def test(result: ExperimentResult) -> Outcome:
        cells = cells_of(result)
        rows = [row.key for row in result.every_row if row.key.startswith(f"{group}-")]
        seeds = sorted({f.cell.seed for f in cells})

        def over_seeds(statistic: Callable[[Sequence[float], Sequence[float]], float]) -> Estimate:
            return jackknife(
                seeds, lambda out: statistic(*pairs([f for f in cells if f.cell.seed != out], constant, error)), "seeds"
            )

        slope, r2 = (over_seeds(s) if cells else Estimate.over([]) for s in (_slope, _explained))
        return worst(
            decide(result, rows, slope, 0.0, "The slope of the error over √(L² - 1)", above=True, strict=True),
            decide(result, rows, r2, EXPLAINED, "R2 of the curve c √(L² - 1)", above=True),
        )

    return test


def _slope(constants: Sequence[float], errors: Sequence[float]) -> float:
    """Slope of a line of errors over sqrt(L^2 - 1); NaN where constants do not differ."""
    x = rate(constants) - np.mean(rate(constants))
    return float(x @ errors / (x @ x)) if len(x) and np.any(x) else float("nan")


def _explained(constants: Sequence[float], errors: Sequence[float]) -> float:
    """R2 of the curve through 0; NaN where the cells do not determine it."""
    try:
        return fit_rate(constants, errors).r2
    except InputError:
        return float("nan")


def fitted(cells: Sequence[Finished], x: str, y: str) -> FittedRate | None:
    """The curve c sqrt(L^2 - 1) for a constant x and an error y; None where the cells do not determine it."""
    try:
        return fit_rate(*pairs(cells, x, y))
    except InputError:
        return None


def error_plot(
    title: str,
    caption: str,
    groups: Mapping[str, Sequence[Finished]],
    fit: Sequence[Finished],
    x: tuple[str, str],
    y: tuple[str, str],
) -> Scatter:
    """Errors against bi-Lipschitz constants, with the fitted curve.

    Parameters
    ----------
    groups : mapping
        Cells by the name of their group.
    fit : sequence of Finished
        Cells that the curve is fitted to.
    x, y : tuple of str
        Key and name of the constant and of the error.
    """
    points = {name: pairs(cells, x[0], y[0]) for name, cells in groups.items()}
    curves: dict[str, Coordinates] = {}
    curve = fitted(fit, x[0], y[0])
    if curve is not None:
        at = np.linspace(1, 1.02 * max(max(a, default=1.0) for a, _ in points.values()), 100)
        c = curve.constant
        # Without spaces, at which a legend would break it.
        told = f"{c.value:.3g} [{c.low:.3g}, {c.high:.3g}] √(L²−1), R² {curve.r2:.2f}"
        curves[f"fitted: {told}"] = at.round(5).tolist(), curve.at(at).round(5).tolist()
    return Scatter(title, caption, x[1], y[1], points, curves)


def _spearman(a: Sequence[float], b: Sequence[float]) -> float:
    if len(a) < FEWEST or len(set(a)) == 1 or len(set(b)) == 1:
        return float("nan")
    from scipy.stats import spearmanr

    return float(spearmanr(a, b).statistic)

"""What experiments on pairs of networks share (Nelson et al. 2026, Table 1): errors, their order, what ICA gains.

Errors are means over examples of the distance between the target's representation and the mapped source's, over the
diameter of the target's. In sample, as published, maps are fitted on the examples that they are measured on; held out,
on the others of five folds. ICA is fitted to each network alone, and its components are matched by signed correlations.
Its efficiency is the share of what a rigid motion gains over a signed permutation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.base.estimate import Estimate
from nearid.lab.framework.claims import Outcome, Status, Test, all_of, at_least, at_most, exceeds
from nearid.lab.framework.experiment import Column
from nearid.lab.framework.result import ExperimentResult
from nearid.moments import Floats
from nearid.show.figures import Dots, Figure, HeatMap

if TYPE_CHECKING:
    from nearid.questions.compare.result import Comparison

# The published order of errors, the largest first.
ORDER = ("permutation", "ica", "rigid", "linear")
# A difference of errors that counts: several standard errors of a bootstrap over 10,000 images.
CLEARLY = 0.003
PUBLISHED_ORDER = f"permutation > ICA > rigid > linear, each by {CLEARLY:g} or more"
# Columns of the correlations that are drawn.
SHOWN = 32
# The published range of ICA's efficiency (%).
LEAST, MOST = 25.0, 59.0
COLUMNS = (
    Column("permutation_in", "permutation, in sample", least=0),
    Column("ica_in", "ICA, in sample", least=0),
    Column("rigid_in", "rigid, in sample", least=0),
    Column("linear_in", "linear, in sample", least=0),
    Column("efficiency_in", "ICA efficiency, in sample (%)", 1),
    Column("permutation", "permutation, held out", least=0),
    Column("ica", "ICA, held out", least=0),
    Column("rigid", "rigid, held out", least=0),
    Column("linear", "linear, held out", least=0),
    Column("chance", "linear, by chance", least=0),
    Column("efficiency", "ICA efficiency, held out (%)", 1),
    Column("efficiency_low", "its lower end over examples (%)", 1),
    Column("r2", "R2 of the linear map", most=1),
)


def compared(first: Any, second: Any, seed: int, blocks: Any = "none") -> Comparison:
    """Two representations of the same examples up to all groups, with plain least squares as published."""
    from nearid.questions.compare.run import compare

    return compare(
        first,
        second,
        groups="permutation,rigid,linear,ica",
        ridge=0,
        blocks=blocks,
        in_sample=True,
        permutations=1,
        random_state=seed,
        names=("source", "target"),
    )


def scores(comparison: Comparison) -> dict[str, float]:
    """Errors in sample and held out, and the efficiency of ICA in percent."""
    assert comparison.in_sample is not None and comparison.efficiency is not None
    told = {name: group.epsilon.value for name, group in comparison.groups.items()}
    told |= {f"{name}_in": group.epsilon.value for name, group in comparison.in_sample.items()}
    linear, efficiency = comparison.groups["linear"], comparison.efficiency
    told |= {"r2": linear.r2.value, "chance": linear.epsilon.chance}
    within = {"efficiency": efficiency.value, "efficiency_low": efficiency.low, "efficiency_in": efficiency.in_sample}
    return told | {name: 100 * value for name, value in within.items()}


def error_views(comparison: Comparison) -> dict[str, Any]:
    """What `error_figures` draws of a comparison, and its alerts."""
    return {
        "n": comparison.n,
        "held_out": {g: _with_ends(e.epsilon) for g, e in comparison.groups.items()},
        "alerts": [alert.message for alert in comparison.alerts],
    }


def correlation_views(comparison: Comparison, first: Floats, second: Floats) -> dict[str, Any]:
    """Correlations of columns as they are, and of components after ICA of each side alone."""
    from nearid.lab.papers.common.images import components
    from nearid.questions.compare.run import compare

    one, other = (components(z.astype(np.float64), whiten=True).values for z in (first, second))
    unmixed = compare(one, other, groups="permutation", ridge=0, blocks="none", permutations=1)
    return {"before": _strongest(comparison), "after": _strongest(unmixed)}


def _strongest(comparison: Comparison) -> list[list[float]]:
    """Absolute correlations of the columns that match best."""
    strongest: list[list[float]] = np.asarray(comparison.views.correlation)[:SHOWN, :SHOWN].round(3).tolist()
    return strongest


def project_above_noise(z: Floats) -> tuple[int, Floats]:
    """How many principal directions stand out of noise, and the rows within these."""
    from nearid.ica.noise_floor import directions_above_noise

    z = z.astype(np.float64)
    centred = z - z.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(z))
    leading, spreads = vectors[:, ::-1], np.sqrt(values[::-1].clip(0))
    count = directions_above_noise(leading * spreads, centred.std(axis=0), len(z))
    basis = leading[:, :count]
    return count, z.mean(axis=0) + centred @ basis @ basis.T


def in_order(rows: Sequence[str], columns: Sequence[str]) -> Test:
    """Whether each error is larger than the next, in each row."""
    return all_of(*(exceeds((row, more), (row, less), by=CLEARLY) for row in rows for more, less in pairwise(columns)))


def published_order(rows: Sequence[str]) -> Test:
    """Whether errors in sample have the published order, in each row."""
    return in_order(rows, [f"{name}_in" for name in ORDER])


def published_efficiency(rows: Sequence[str]) -> Test:
    """Whether ICA's efficiency in sample is in the published range, in each row."""
    return all_of(
        *(at_least(row, "efficiency_in", LEAST) for row in rows),
        *(at_most(row, "efficiency_in", MOST) for row in rows),
    )


def gains(row: str, within: str = "") -> Test:
    """Whether ICA gains, by the lower end of each bootstrap; where a rigid motion gains nothing there is no answer.

    Parameters
    ----------
    within : str
        What the keys of the efficiency have after its name.
    """

    def test(result: ExperimentResult) -> Outcome:
        low = f"efficiency{within}_low"
        known, ran = result.scores(row, low), len(result.of_row(row))
        if len(known) < ran:
            label = result.label(row, f"efficiency{within}")
            return Outcome(Status.NOT_TESTABLE, f"{label} has no value at {ran - len(known)} of {ran} seeds.")
        return at_least(row, low, 0.0)(result)

    return test


def error_figures(result: ExperimentResult, drawn: Sequence[str]) -> list[Figure]:
    """The four errors of each pair, in sample and held out, and of some rows correlations before and after ICA."""
    titles = {row.key: row.title for row in result.rows}
    measured = {
        key: [f.data["views"] for f in result.of_row(key) if "held_out" in f.data.get("views", {})] for key in titles
    }
    there = [key for key in titles if measured[key]]
    slots: list[Figure] = []
    if there:
        names = [titles[key] for key in there]
        apart = {name: [_mean(measured[key], name) for key in there] for name in ORDER}
        within = {name: [Estimate(float(result.estimate(key, f"{name}_in"))) for key in there] for name in ORDER}
        axis = "mean error / diameter of the target"
        slots = [
            Dots(
                "Errors held out",
                "Bars: 95% interval of a bootstrap over examples, of which ends and dots are means over seeds. "
                "ICA has none.",
                axis,
                names,
                apart,
            ),
            Dots("Errors in sample", "As the paper has them; means over seeds.", axis, names, within),
        ]
    return slots + [_heat_map(titles[key], v) for key in drawn for v in measured.get(key, [])[:1] if "before" in v]


def _heat_map(title: str, v: Mapping[str, Any]) -> HeatMap:
    numbers = [str(k + 1) for k in range(len(v["before"]))]
    return HeatMap(
        f"{title}: correlations of matched columns",
        "Absolute correlations of the source (rows) with the target (columns), on all examples; those that match best, "
        "in the order of their matches. ICA saw each side alone.",
        {"columns as they are": v["before"], "components after ICA": v["after"]},
        numbers,
        numbers,
    )


def _mean(views: Sequence[Mapping[str, Any]], name: str) -> Estimate:
    """Value and ends of an interval, as means over seeds; without ends where a seed has none."""
    values = [v["held_out"][name] for v in views]
    known = min(map(len, values))
    return Estimate(*(sum(value[k] for value in values) / len(values) for k in range(known)))


def _with_ends(value: Estimate) -> list[float]:
    """The value, and the ends of its interval where there is one: ICA has none."""
    return [value.value, value.low, value.high] if value.has_interval else [value.value]

"""Do the tests of `deconfound` keep their level? Simulations with known truth, and Monte-Carlo errors.

    python benchmarks/validity_deconfound.py [--runs 500]

Each function returns lines of a table: what was simulated, what is asked, the share found, its standard error.
"""

from __future__ import annotations

import argparse
import warnings
from typing import NamedTuple

import numpy as np

from nearid.arrays import open_rows
from nearid.questions.deconfound.attribution import Attribution, attribution
from nearid.questions.deconfound.conditions import ComponentRows, Condition
from nearid.questions.deconfound.design import open_design
from nearid.questions.deconfound.evaluate import Key, Scores, score_tasks, summarise, tasks_of
from nearid.questions.deconfound.paired import ALL, Paired, compared, t_test
from nearid.questions.deconfound.plan import Plan
from nearid.questions.deconfound.splits import contrasts

COMPONENTS = 8
ROWS = 20


class Line(NamedTuple):
    """A share of runs beside what is asked of it."""

    what: str
    asked: str
    got: float
    runs: int

    def __str__(self) -> str:
        error = float(np.sqrt(self.got * (1 - self.got) / self.runs))
        return f"{self.what:<78} {self.asked:>8} {self.got:8.3f} ±{error:.3f} {self.runs:6d}"


def some_columns(x: np.ndarray, which: np.ndarray) -> ComponentRows:
    """Columns as components, as they are."""
    k = len(which)
    return ComponentRows(
        open_rows(x), Condition("pca", np.zeros(x.shape[1]), np.eye(x.shape[1])[which], np.arange(k), np.ones(k))
    )


def draw_cells(kind: str, labels: int, batches: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Label and batch of rows: as many in each cell, many controls, or labels in half of the batches."""
    sizes = np.full((batches, labels), ROWS)
    if kind == "many controls":
        sizes[:, 0], sizes[:, 1:] = 5 * ROWS, ROWS // 5
    if kind == "missing cells":
        sizes = rng.integers(1, 2 * ROWS, sizes.shape) * (rng.random(sizes.shape) < 0.5)
        sizes[:, 0], sizes[:2] = 3 * ROWS, np.maximum(sizes[:2], 1)
    cells = np.repeat(np.arange(sizes.size), sizes.ravel())
    return cells % labels, cells // labels


def attributed(
    kind: str, labels: int, batches: int, well: float, effect: float, rng: np.random.Generator, components: int
) -> Attribution:
    """Components with wells (one for each label and batch), of which the first follows the label where `effect` > 0."""
    l, b = draw_cells(kind, labels, batches, rng)
    wells = rng.normal(size=(batches, labels, components))[b, l]
    x = np.sqrt(1 - well - effect) * rng.normal(size=(len(l), components)) + np.sqrt(well) * wells
    moves = rng.normal(size=labels)
    x[:, 0] += np.sqrt(effect) * ((moves - moves.mean()) / moves.std())[l]
    return attribution(some_columns(x, np.arange(components)), l, b)


def false_biological(runs: int, seed: int = 0) -> list[Line]:
    """Runs in which any of eight components is named biological, where no label has an effect."""
    rng = np.random.default_rng([seed, 1])
    return [
        Line(
            f"any of {COMPONENTS} falsely biological, {kind}, {labels} labels x {batches} batches, wells {well:.0%}",
            "<= .05",
            float(
                np.mean(
                    [
                        attributed(kind, labels, batches, well, 0.0, rng, COMPONENTS).biological.any()
                        for _ in range(runs)
                    ]
                )
            ),
            runs,
        )
        for kind in ("equal cells", "many controls", "missing cells")
        for labels, batches in ((2, 4), (6, 8))
        for well in (0.0, 0.05, 0.2)
    ]


def found_biological(runs: int, seed: int = 0) -> list[Line]:
    """Runs in which a component of which the label explains 20% is named biological; alone, or among eight."""
    rng = np.random.default_rng([seed, 2])
    return [
        Line(
            f"label of 20% found, {count} components, {labels} labels x {batches} batches, wells {well:.0%}",
            ">= .90" if well <= 0.05 and (labels, batches) != (2, 4) else "",
            float(
                np.mean(
                    [
                        attributed("equal cells", labels, batches, well, 0.2, rng, count).biological[0]
                        for _ in range(runs)
                    ]
                )
            ),
            runs,
        )
        for count in (1, COMPONENTS)
        for labels, batches in ((2, 4), (2, 8), (6, 4), (6, 8))
        for well in (0.0, 0.05, 0.2)
    ]


def crossed(rng: np.random.Generator, batches: int, train: float, test: float, alike: float) -> tuple[float, float]:
    """p of differences that training batches, test batches and pairs of them make, and of the t test over trainings.

    The true mean is 0.
    """
    of_test = rng.normal(size=batches)
    of_train = alike * of_test + np.sqrt(1 - alike**2) * rng.normal(size=batches)
    trained = rng.permutation(batches)[:5]
    m = len(trained)
    pairs = train * of_train[trained][:, None] + test * of_test + 0.5 * rng.normal(size=(m, batches))
    pairs[np.arange(m), trained] = np.nan
    total = np.nansum(pairs, axis=1)
    gap, without = 0.01 * total / (batches - 1), 0.01 * (total[:, None] - pairs) / (batches - 2)
    values = {"base": {"x": np.zeros(m).tolist()}, "ica": {"x": gap.tolist()}}
    left = {"base": {"x": np.zeros((m, batches))}, "ica": {"x": without}}
    return compared("one", "logistic", "auroc", values, left, {"x": None})[-1].p, t_test(gap, 0.0)[1]


def one_batch_crossed(runs: int, seed: int = 0) -> list[Line]:
    """Level of the paired test of trainings on single batches, by what makes differences vary."""
    rng = np.random.default_rng([seed, 3])
    cases = {"test batches": (0.3, 1.0, 0.0), "training batches": (1.0, 0.3, 0.0), "both": (1.0, 1.0, 0.0)}
    cases["both, half alike"] = (1.0, 1.0, 0.5)
    lines = []
    for batches in (4, 6, 10, 20):
        for case, sizes in cases.items():
            shares = np.mean(np.array([crossed(rng, batches, *sizes) for _ in range(runs)]) < 0.05, axis=0)
            what = f"train on one batch, {batches} batches, differences by {case}: p < .05"
            lines += [
                Line(what, "<= .06", float(shares[0]), runs),
                Line("  t test over trainings", "", float(shares[1]), runs),
            ]
    return lines


def equal_conditions(rng: np.random.Generator, batches: int = 8) -> tuple[Paired, ...]:
    """Tests between two conditions that are alike by construction: each has its own three columns, drawn alike.

    Every label moves columns, in each batch by somewhat more or less; wells differ. The true difference is 0.
    """
    l, b = draw_cells("equal cells", 4, batches, rng)
    # What a label moves in all batches is the same in both, so that neither is better.
    moves = 0.5 * np.tile(rng.normal(size=(4, 1, 3)), 2) + 0.5 * rng.normal(size=(4, batches, 6))
    x = rng.normal(size=(len(l), 6)) + moves[l, b]
    plan = Plan(
        conditions=("base", "ica"), classifiers=("logistic",), directions=("most", "one"), folds=5, perturbations=None,
        top=(), drop=None, n_components=None, fit_rows=None, min_rows=2, max_rows=50, boosting={},
        nonfinite="least", random_state=int(rng.integers(1000)), control=0,
    )  # fmt: skip
    design = open_design(x, l, b, control=0)
    against, _ = contrasts(design, [1, 2, 3], plan.directions, plan.folds, plan.random_state)
    scores: dict[str, list[dict[Key, list[Scores]]]] = {}
    for name, which in (("base", np.arange(3)), ("ica", np.arange(3, 6))):
        tasks = tasks_of(plan, against, dropping=False)
        scores[name] = [score_tasks(plan, design, some_columns(x, which), tasks, False, lambda: None)]
    return tuple(t for t in summarise(plan, against, scores)[1] if t.score == "auroc")


def equal_fits(runs: int, seed: int = 0) -> list[Line]:
    """Level of the paired tests with real classifiers, and whether intervals stay within [-1, 1]."""
    rng = np.random.default_rng([seed, 4])
    tests = [t for _ in range(runs) for t in equal_conditions(rng)]
    lines = []
    for way, title in (("one", "train on one batch"), ("most", "train on most batches")):
        for every, named in ((False, "one perturbation"), (True, "all perturbations")):
            mine = [t for t in tests if t.direction == way and (t.perturbation == ALL) == every]
            # Perturbations of one run are not independent: runs count in the error.
            share = float(np.mean([t.p < 0.05 for t in mine]))
            lines.append(Line(f"p < .05, logistic fits, {title}, {named}", "<= .06", share, runs))
    inside = float(np.mean([-1 <= t.difference.low <= t.difference.high <= 1 for t in tests]))
    return [*lines, Line("intervals of AUROC differences within [-1, 1]", "1", inside, runs)]


def cut_intervals(runs: int, seed: int = 0) -> list[Line]:
    """Coverage of the true difference by intervals over three folds, as they are and cut to [-1, 1]; equal by logic."""
    rng = np.random.default_rng([seed, 5])
    truth = 0.85 - 0.15
    whole, cut, beyond = [], [], []
    for _ in range(runs):
        first, second = rng.beta(0.15 * 6, 0.85 * 6, 3), rng.beta(0.85 * 6, 0.15 * 6, 3)
        plain = t_test(second - first, 0.0)[0]
        (test,) = (
            t
            for t in compared(
                "most",
                "logistic",
                "auroc",
                {"base": {"x": first.tolist()}, "ica": {"x": second.tolist()}},
                {"base": {"x": np.zeros((3, 4))}, "ica": {"x": np.zeros((3, 4))}},
                {"x": 0.0},
            )
            if t.perturbation == "x"
        )
        whole.append(plain.low <= truth <= plain.high)
        cut.append(test.difference.low <= truth <= test.difference.high)
        beyond.append(plain.high > 1)
    return [
        Line("coverage of a difference of .7, three folds, Student's interval", "", float(np.mean(whole)), runs),
        Line("the same, cut to [-1, 1]", "the same", float(np.mean(cut)), runs),
        Line("of these reach beyond 1 before the cut", "", float(np.mean(beyond)), runs),
    ]


SIMULATIONS = (false_biological, found_biological, one_batch_crossed, equal_fits, cut_intervals)


def main() -> None:
    """Print the lines of every simulation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    runs = parser.parse_args().runs
    print(f"{'simulation':<78} {'asked':>8} {'got':>8} error   runs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for simulate in SIMULATIONS:
            for line in simulate(runs):
                print(line, flush=True)


if __name__ == "__main__":
    main()

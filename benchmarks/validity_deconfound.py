"""Do the tests of `deconfound` keep their level, and is the cleaned table right? Known truth, and Monte-Carlo errors.

    python benchmarks/validity_deconfound.py [--runs 500]
    NEARID_DATA=FOLDER python benchmarks/validity_deconfound.py --semi-real 5 [--first-seed 200] [--no-ica]

The first form prints lines of a table: what was simulated, what is asked, the share found, its standard error. The
second plants effects of plates and labels in real wells and cleans them. The rule of the cleaning was chosen on seeds
below 100; 100 to 103 judged the rule before it, and seeds from 200 judge this one.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nearid.arrays import open_rows
from nearid.ica.fit import IcaOptions, fit_ica
from nearid.measures.auroc import auroc
from nearid.questions.deconfound.attribution import Attribution, attribution
from nearid.questions.deconfound.cleaning import cost, fit_cleaner
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
        tasks = tasks_of(against, dropping=False)
        scores[name] = [score_tasks(plan, design, some_columns(x, which), tasks, None, lambda: None)]
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


class Planted(NamedTuple):
    """Real wells with planted effects, all of shape (n, d), and the codes of labels (0 is the control) and plates."""

    x: np.ndarray
    labels: np.ndarray
    plates: np.ndarray
    plate_effect: np.ndarray
    label_effect: np.ndarray


def plant(
    wells: np.ndarray,
    way: str,
    size: float,
    rng: np.random.Generator,
    *,
    plates: int = 10,
    rank: int = 3,
    labels: int = 4,
    label_size: float = 0.05,
) -> Planted:
    """Wells that are dealt to plates and labels at random, plus effects of these in known directions.

    Parameters
    ----------
    wells : ndarray of shape (n, d)
        Real profiles, columns of unit variance. Dealt out anew, they follow neither plates nor labels.
    way : {"columns", "spectrum"}
        Directions at random in the columns, or as likely as those of the wells themselves: along these, effects share
        the directions in which wells vary most.
    size, label_size : float
        Variance of the effects of all plates, and of all labels, over that of the wells.
    rank : int
        Directions that plates differ in. Each label has a direction of its own.
    """
    n, d = wells.shape
    wells = wells[rng.permutation(n)]
    plate, label = rng.permutation(np.arange(n) % plates), np.zeros(n, np.intp)
    for p in range(plates):
        (mine,) = np.nonzero(plate == p)
        # A third are controls, the others have the labels in turn.
        label[mine[len(mine) // 3 :]] = 1 + np.arange(len(mine) - len(mine) // 3) % labels

    def directions(count: int) -> np.ndarray:
        return rng.normal(size=(count, d)) if way == "columns" else rng.normal(size=(count, n)) @ wells / np.sqrt(n)

    def scaled(effect: np.ndarray, share: float) -> np.ndarray:
        effect = effect - effect.mean(axis=0)
        return effect * np.sqrt(share * np.sum(wells**2) / np.sum(effect**2))

    by_plate = scaled((rng.normal(size=(plates, rank)) @ directions(rank))[plate], size)
    by_label = scaled(np.vstack([np.zeros(d), directions(labels)])[label], label_size)
    return Planted(wells + by_plate + by_label, label, plate, by_plate, by_label)


class Cleaned(NamedTuple):
    """What became of planted effects; each field is named as in the table that `semi_real` prints."""

    found: float  # AUROC of technical components, by the share of the batch in batch components
    found_ica: float  # the same of independent components
    removed: float  # share of the variance of the plate effect that cleaning takes away
    label_variance: float  # share of the variance of the label effect that it leaves
    label_before: float  # AUROC of labels in held-out plates
    label_after: float
    batch_before: float  # AUROC of plates in held-out wells
    batch_after: float

    @property
    def label_kept(self) -> float:
        """Share of the AUROC above a guess that cleaning leaves."""
        return (self.label_after - 0.5) / (self.label_before - 0.5)


def clean_planted(planted: Planted, *, with_ica: bool = True) -> Cleaned:
    """Clean planted wells as `nearid deconfound -o` does. AUROCs are of rows that nothing was fitted on."""
    design = open_design(planted.x, planted.labels, planted.plates, control=0)
    every = np.arange(design.n)
    cleaner = fit_cleaner(design, every, "auto")
    matrix = cleaner.affine.matrix

    def left(effect: np.ndarray) -> float:
        size = planted.x.std(axis=0)
        return float(np.sum((effect @ matrix.T / size) ** 2) / np.sum((effect / size) ** 2))

    def found(components: np.ndarray, shares: np.ndarray) -> float:
        truth = np.var(planted.plate_effect @ components.T, axis=0) / np.var(planted.x @ components.T, axis=0)
        return auroc(truth >= 0.05, shares)

    of_ica = float("nan")
    if with_ica:
        k = min(planted.x.shape[1], len(planted.x) // 10)
        scaled = (planted.x - planted.x.mean(axis=0)) / planted.x.std(axis=0)
        unmixed = fit_ica(open_rows(scaled), IcaOptions(k)).components
        condition = Condition("ica", np.zeros(len(unmixed.T)), unmixed, np.arange(k), np.ones(k))
        follows = attribution(ComponentRows(open_rows(scaled), condition), planted.labels, planted.plates, control=0)
        of_ica = found(unmixed / planted.x.std(axis=0), follows.batch)
    judged = cost(design, "auto", folds=5, most=10_000)
    return Cleaned(
        found(cleaner.components, cleaner.follows.batch), of_ica, 1 - left(planted.plate_effect),
        left(planted.label_effect), judged.label_before.value, judged.label_after.value, judged.batch_before.value,
        judged.batch_after.value,
    )  # fmt: skip


def real_wells(name: str) -> np.ndarray:
    """Columns of unit variance of the wells of BBBC021 (189 columns), Cell Health (916) or LINCS (5; 4,000 wells)."""
    folder = Path(os.environ["NEARID_DATA"])
    file, entry = {
        "BBBC021": ("bbbc021/BBBC021_feature_selected_mad_robustize.csv.gz", "*"),
        "Cell Health": ("cell_health/median_agg_cell_painting_median.tsv.gz", "*"),
        "LINCS": ("lincs_wells/cell_painting_pca.tsv.gz", "pca_*"),
    }[name]
    rows = open_rows(folder / file, features=entry, exclude="Metadata_*")
    x = rows.read(0, rows.shape[0]).astype(np.float64)
    x = x[np.random.default_rng(0).permutation(len(x))[:4000]]
    x = x[:, np.isfinite(x).all(axis=0)]
    x = x[:, x.std(axis=0) > 1e-9 * np.abs(x).max(axis=0)]
    return (x - x.mean(axis=0)) / x.std(axis=0)


# Five columns have no room for three directions of plates and four of labels.
SETS = {"BBBC021": (3, 4), "Cell Health": (3, 4), "LINCS": (1, 2)}


def semi_real(runs: int, first: int, with_ica: bool) -> None:
    """Print what became of planted effects: the worst of the runs, and in how many runs the figure is as asked."""
    asked = {"found": 0.9, "removed": 0.8, "label_kept": 0.9, "found_ica": 0.9, "label_variance": 0.9}
    print("asked:", ", ".join(f"{name} >= {least}" for name, least in asked.items()))
    print(f"{'wells':<12} {'way':<9} {'size':>5}  {'batch AUROC':>12} {'label AUROC':>12}  worst (runs as asked)")
    met = dict.fromkeys(asked, 0)
    total = 0
    for name, (rank, labels) in SETS.items():
        wells = real_wells(name)
        for way in ("columns", "spectrum"):
            for size in (0.05, 0.1, 0.2):
                every = [
                    clean_planted(
                        plant(wells, way, size, np.random.default_rng(seed), rank=rank, labels=labels),
                        with_ica=with_ica,
                    )
                    for seed in range(first, first + runs)
                ]
                total += runs
                cells = []
                for figure, least in asked.items():
                    values = np.array([getattr(each, figure) for each in every])
                    met[figure] += int(np.sum(values >= least))
                    cells.append(f"{figure} {values.min():.2f} ({np.sum(values >= least)})")
                batch, label = (
                    "{:.2f} > {:.2f}".format(
                        *(np.mean([getattr(e, f"{what}_{when}") for e in every]) for when in ("before", "after"))
                    )
                    for what in ("batch", "label")
                )
                print(f"{name:<12} {way:<9} {size:5.2f}  {batch:>12} {label:>12}  {'  '.join(cells)}", flush=True)
    print("as asked, of", total, "runs:", met)


SIMULATIONS = (false_biological, found_biological, one_batch_crossed, equal_fits, cut_intervals)


def main() -> None:
    """Print the lines of every simulation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument(
        "--semi-real", type=int, default=0, metavar="RUNS", help="clean real wells with planted effects"
    )
    parser.add_argument("--first-seed", type=int, default=200)
    parser.add_argument("--no-ica", action="store_true", help="without independent components, which take most time")
    options = parser.parse_args()
    runs = options.runs
    if options.semi_real:
        semi_real(options.semi_real, options.first_seed, not options.no_ica)
        return
    print(f"{'simulation':<78} {'asked':>8} {'got':>8} error   runs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for simulate in SIMULATIONS:
            for line in simulate(runs):
                print(line, flush=True)


if __name__ == "__main__":
    main()

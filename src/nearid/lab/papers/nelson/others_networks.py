"""Networks that others trained (Nelson et al. 2026, Table 1 is about such): do their runs agree, and does ICA help?

Eight networks of molecular energies that differ in their seed alone (ANI-1x), atoms of two elements; each of them
beside its own fine-tune (ANI-1ccx), a positive control whose unit k grew out of unit k; a detector of speech in three
trainings; and embeddings of one recording by CEBRA, whose objectives differ in the labels that they follow, with
shuffled labels as a negative control. None of them is a network of the paper. Whole molecules, clips or stretches of
time are held out together.

A row holds all pairs of its networks. A pair shares its networks with others, so that pairs are not independent:
intervals of claims are over networks, by a jackknife that leaves out one network after the other with all its pairs.
Seeds draw folds and starts of ICA; scores of several seeds are averaged first. The efficiency
of a row is that of its mean errors.

Errors follow the strong directions. Whether single components can be named is another question, which the correlation
of matched columns answers: of the units themselves, of units that were turned at random (what a basis without meaning
gives), and of components after ICA: of as many directions as `compare` takes, of all (as in the paper), of those above
noise, and without whitening. Partners and signs are chosen on the rows that are not judged.

The reason why whitening may do harm is shown by direction: how much of each principal direction of a network another
one tells, held out. Whitening gives the directions that only one run has the size of those that both have. Of 96
directions of an ANI network, another one tells the few strongest, and nothing of those with less than a hundredth of
the variance, so that components of all directions are mostly those of noise. What to do: unmix the directions above
noise alone (`nearid unmix` suggests --n-components), and do not unmix at all where one network continues the other, as
a fine-tune does: its units are the same already. `nearid compare --groups all` says whether ICA helped.

Columns that were turned at random correlate as much as the units of independent networks, or more, where one direction
has most of the variance: each of them shows that direction. So these units are no basis of their own kind, and the harm
is that of the weak directions. A high correlation of matched columns alone does not say that they can be named.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np

from nearid.arrays import open_rows
from nearid.arrays.rows import digest
from nearid.base.errors import InputError
from nearid.base.estimate import Estimate
from nearid.lab.data.ensembles import Ensemble, load_ensembles
from nearid.lab.framework.claims import Claim, Outcome, Test, all_of, decide
from nearid.lab.framework.experiment import NELSON, CellData, Column, Experiment, Row, presets
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.scoreboard import NAME, dots
from nearid.lab.framework.settings import Checked, parameter
from nearid.lab.papers.common.jackknife import jackknife
from nearid.lab.papers.nelson import sections
from nearid.lab.papers.nelson.pair_errors import (
    CLEARLY,
    COLUMNS,
    LEAST,
    MOST,
    ORDER,
    compared,
    project_above_noise,
    scores,
)
from nearid.moments import Floats
from nearid.show.figures import Dots, Figure, Scatter

# Rows whose pairs are independent trainings of one objective, and controls.
ANI_ROWS = ("ani-h", "ani-c")
SILERO_ROWS = ("silero-h", "silero-c")
TUNED = {"ani-h": "ani-h-tuned", "ani-c": "ani-c-tuned"}
CEBRA_ROWS = {"cebra-3": "cebra-3-shuffled", "cebra-8": "cebra-8-shuffled"}
OVER_NETWORKS = "Means over pairs; bars: 95% interval over networks (jackknife)."
# What fewer directions must add to a correlation.
GAIN = 0.05
# Ways to a basis whose columns are matched.
BASES = {
    "units": "units",
    "turned": "units turned at random",
    "all_whitened": "ICA, all directions",
    "above_whitened": "ICA, directions above noise",
    "not_whitened": "ICA without whitening",
}
# The ways that the page of results shows.
CORRELATIONS = ("units", "all_whitened", "above_whitened", "not_whitened")
PAIRS = ("all", "tuned", "informed", "shuffled")
SILERO_NOTE = "three trainings of one graph, released one after the other; that none continues another is not known."
CEBRA_NOTE = (
    "embeddings of one recording that follow other labels (position alone or with velocity or direction; or shuffled "
    "labels alone): objectives differ."
)
# Folds, and how many of them the correlations of matched columns are measured on: ICA of all directions takes long.
FOLDS, JUDGED = 5, 2
# Share of a direction that another run tells at least where both share it.
HALF = 0.5
# Penalty of the regression on principal directions, for columns of unit size.
RIDGE = 1e-3


@dataclass(frozen=True)
class Parameters(Checked):
    """Parameters of the experiment with networks that others trained; rows set which."""

    ensemble: str = parameter("ani", "set of networks: ani, silero-vad, cebra, or own")
    part: str = parameter("H", "which part of the set")
    pairs: str = parameter("all", "which pairs", choices=PAIRS)
    most: int = parameter(0, "networks of a row, for trials; 0 for all", least=0, smoke=2)
    columns: int = parameter(0, "columns that are compared, for trials; 0 for all", least=0, smoke=5)
    own: str = parameter("", "features of your own by comma: FIRST.npy,SECOND.npy,..., each with the same rows")
    own_blocks: str = parameter("", "file with a label for each of their rows: rows that belong together")


def cell(p: Parameters, seed: int, folder: Path) -> CellData:
    """Compare all pairs of a row."""
    held, pairs = networks(p)
    folds = fold_numbers(held.blocks, seed)
    runs = {name: run[:, : p.columns or None] for name, run in held.runs.items()}
    bases = {
        name: {basis: _of_folds(make, runs[name], folds, seed) for basis, make in MAKERS.items()}
        for name in dict.fromkeys(name for pair in pairs for name in pair)
    }
    each = [_pair_scores(source, target, runs, bases, held.blocks, folds, seed) for source, target in pairs]
    keys = [key for key in each[0] if "efficiency" not in key]
    means = {key: value for key in keys if (value := _mean([one[key] for one in each])) is not None}
    means |= {f"efficiency{where}": efficiency(means, where) for where in ("", "_in")}
    first, second = pairs[0]
    views = {
        "pairs": [{"pair": list(pair), **one} for pair, one in zip(pairs, each, strict=True)],
        "told": told_directions(runs[first], runs[second], folds),
    }
    return {"scores": {key: value for key, value in means.items() if np.isfinite(value)}, "views": views}


def _pair_scores(
    source: str,
    target: str,
    runs: Mapping[str, Floats],
    bases: Mapping[str, Mapping[str, Sequence[Floats]]],
    blocks: np.ndarray,
    folds: np.ndarray,
    seed: int,
) -> dict[str, float | None]:
    """All scores of a pair; None for what is not defined."""
    comparison = compared(runs[source], runs[target], seed, blocks)
    told = scores(comparison)
    if comparison.benefit is not None:
        told["components"] = comparison.benefit.components
    told |= {basis: matched(bases[source][basis], bases[target][basis], folds) for basis in BASES}
    directions = told_directions(runs[source], runs[target], folds)
    told["told"] = float(np.dot(directions["share"], directions["r2"]))
    told["shared"] = float(np.sum(np.array(directions["r2"]) >= HALF))
    return {key: value if np.isfinite(value) else None for key, value in told.items()}


def networks(p: Parameters) -> tuple[Ensemble, list[tuple[str, str]]]:
    """The networks of a row and the pairs that are compared."""
    held = _own(p) if p.ensemble == "own" else load_ensembles(p.ensemble)[p.part]
    names = list(held.runs)
    if p.pairs == "tuned":
        pairs = [(name, name.replace("ani1x", "ani1ccx")) for name in names if name.startswith("ani1x_")]
        return held, pairs[: p.most or None]
    if p.ensemble == "ani":
        names = [name for name in names if name.startswith("ani1x_")]
    if p.pairs == "informed":
        names = [name for name in names if "position-none" not in name and "shuffle" not in name]
    if p.pairs == "shuffled":
        names = [name for name in names if "shuffle" in name and "original" not in name]
    return held, list(combinations(names[: p.most or None], 2))


def _own(p: Parameters) -> Ensemble:
    """Features of the user's own."""
    from nearid.arrays import open_columns

    files = own_files(p.own)
    rows = [open_rows(path) for path in files]
    runs = {f"{k + 1}": np.asarray(r.read(0, r.shape[0]), dtype=np.float64) for k, r in enumerate(rows)}
    n = len(runs["1"])
    if any(len(run) != n for run in runs.values()):
        raise InputError(f"The files of own have {[len(run) for run in runs.values()]} rows; they must have the same.")
    blocks = np.arange(n)
    if p.own_blocks:
        blocks = np.asarray(next(iter(open_columns(Path(p.own_blocks)).values.values())))
        if len(blocks) != n:
            raise InputError(f"{p.own_blocks} has {len(blocks)} labels, but the features have {n} rows.")
    return Ensemble(runs, np.unique(blocks, return_inverse=True)[1])


def own_files(given: str) -> list[str]:
    """The files that were given, at least two."""
    files = [os.path.abspath(os.path.expanduser(part.strip())) for part in given.split(",") if part.strip()]
    if len(files) < 2:
        raise InputError(f"own takes two files of features or more, by comma: FIRST.npy,SECOND.npy, not {given!r}.")
    return files


def fold_numbers(blocks: np.ndarray, seed: int) -> np.ndarray:
    """The fold of each row; rows of a block stay together."""
    codes = np.unique(blocks, return_inverse=True)[1]
    count = int(codes.max()) + 1
    order = np.random.default_rng([seed, 5]).permutation(count)
    return np.asarray((order % min(FOLDS, count))[codes])


def _of_folds(
    make: Callable[[Floats, int], tuple[Floats, Floats]], x: Floats, folds: np.ndarray, seed: int
) -> list[Floats]:
    """All rows in the basis that is made without each fold that is judged."""
    found: list[Floats] = []
    for k in range(JUDGED):
        mean, basis = make(x[folds != k], seed)
        found.append((x - mean) @ basis)
    return found


def _units(x: Floats, seed: int) -> tuple[Floats, Floats]:
    return x.mean(axis=0), np.eye(x.shape[1])


def _turned(x: Floats, seed: int) -> tuple[Floats, Floats]:
    # Each network on its own: its values seed the rotation.
    rng = np.random.default_rng([seed, *np.frombuffer(np.float64(x.std()).tobytes(), dtype=np.uint32)])
    return x.mean(axis=0), np.linalg.qr(rng.normal(size=(x.shape[1],) * 2))[0]


def _unmixed(x: Floats, seed: int, *, whiten: bool = True, above: bool = False) -> tuple[Floats, Floats]:
    from nearid.ica.fit import IcaOptions, fit_ica

    count = max(2, project_above_noise(x)[0]) if above else None
    fit = fit_ica(open_rows(x), IcaOptions(count, whiten=whiten, starts=1, max_passes=200), seed=seed)
    return fit.mean, fit.components.T


MAKERS: Mapping[str, Callable[[Floats, int], tuple[Floats, Floats]]] = {
    "units": _units,
    "turned": _turned,
    "all_whitened": _unmixed,
    "above_whitened": lambda x, seed: _unmixed(x, seed, above=True),
    "not_whitened": lambda x, seed: _unmixed(x, seed, whiten=False),
}


def matched(first: Sequence[Floats], second: Sequence[Floats], folds: np.ndarray) -> float:
    """Mean correlation of matched columns, held out; partners and signs are those of the other folds."""
    from nearid.groups.fits import assignment

    found = []
    for k, (a, b) in enumerate(zip(first, second, strict=True)):
        inside = _correlations(a[folds != k], b[folds != k])
        rows, columns = assignment(np.abs(inside))
        outside = _correlations(a[folds == k], b[folds == k])
        found.append(float((np.sign(inside) * outside)[rows, columns].mean()))
    return float(np.mean(found))


def _correlations(a: Floats, b: Floats) -> Floats:
    """Correlations of columns; 0 where a column does not vary."""
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    sizes = np.outer(np.linalg.norm(a, axis=0), np.linalg.norm(b, axis=0))
    return np.divide(a.T @ b, sizes, out=np.zeros_like(sizes), where=sizes > 0)


def told_directions(first: Floats, second: Floats, folds: np.ndarray) -> dict[str, list[float]]:
    """Of each principal direction of the second network: its share of the variance, and what the first tells of it.

    R2 of a ridge regression, held out, at least 0. Columns of the first are in units of their size.
    """
    centred = second - second.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    along = centred @ vectors[:, ::-1]
    x = (first - first.mean(axis=0)) / np.maximum(first.std(axis=0), 1e-12)
    errors = np.empty_like(along)
    for k in range(int(folds.max()) + 1):
        train, test = folds != k, folds == k
        mean_x, mean_y = x[train].mean(axis=0), along[train].mean(axis=0)
        a = x[train] - mean_x
        gram = a.T @ a + RIDGE * len(a) * np.eye(x.shape[1])
        slopes = np.linalg.solve(gram, a.T @ (along[train] - mean_y))
        errors[test] = along[test] - mean_y - (x[test] - mean_x) @ slopes
    r2 = 1 - np.sum(errors**2, axis=0) / np.sum(along**2, axis=0)
    return {"share": (values[::-1].clip(0) / values.sum()).tolist(), "r2": r2.clip(0).tolist()}


def efficiency(means: Mapping[str, float], where: str = "") -> float:
    """What ICA gains of what a rigid motion gains over a signed permutation, of mean errors (%)."""
    permutation, ica, rigid = (means[f"{name}{where}"] for name in ("permutation", "ica", "rigid"))
    return 100 * (permutation - ica) / (permutation - rigid) if permutation > rigid else float("nan")


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return float(np.mean(known)) if known else None


# Scores of pairs by their networks.
Pairs = Mapping[tuple[str, str], Mapping[str, float]]


def pairs_of(result: ExperimentResult, row: str) -> Pairs:
    """Scores of each pair of a row, means over seeds."""
    cells = [f.data["views"]["pairs"] for f in result.of_row(row)]
    found = {}
    for same in zip(*cells, strict=True):
        first, second = same[0]["pair"]
        known = {key: _mean([one.get(key) for one in same]) for key in same[0] if key != "pair"}
        found[first, second] = {key: value for key, value in known.items() if value is not None}
    return found


def without(pairs: Pairs, network: str | None) -> list[Mapping[str, float]]:
    """Scores of the pairs that a network has no part in; of all pairs with None."""
    return [scores_ for pair, scores_ in pairs.items() if network not in pair]


def networks_of(pairs: Pairs) -> list[str]:
    """The networks that the jackknife leaves out: each once, of disjoint pairs the first."""
    names = [name for pair in pairs for name in pair]
    return list(dict.fromkeys(names)) if len(set(names)) < len(names) else [first for first, _ in pairs]


# A number of the scores of some pairs.
Statistic = Callable[[Sequence[Mapping[str, float]]], float]


def mean_of(key: str) -> Statistic:
    """The mean of a score over pairs."""
    return lambda pairs: float(np.mean([scores_[key] for scores_ in pairs if key in scores_]))


def difference(more: str, less: str) -> Statistic:
    """One score less another, mean over pairs."""
    return lambda pairs: mean_of(more)(pairs) - mean_of(less)(pairs)


def gained(where: str = "") -> Statistic:
    """ICA's efficiency of mean errors."""
    keys = [f"{name}{where}" for name in ("permutation", "ica", "rigid")]
    return lambda pairs: efficiency({key: mean_of(key)(pairs) for key in keys}, where)


def of_row(row: str, statistic: Statistic, threshold: float, label: str, *, above: bool = True) -> Test:
    """A test of a statistic over the pairs of a row, by its interval over networks."""

    def test(result: ExperimentResult) -> Outcome:
        pairs = pairs_of(result, row)
        names = networks_of(pairs)
        found = (
            jackknife(names, lambda name: statistic(without(pairs, name)), "networks") if pairs else Estimate.over([])
        )
        return _of_networks(decide(result, [row], found, threshold, f"{label} of {_title(result, row)!r}", above=above))

    return test


def between_rows(higher: str, lower: str, key: str, label: str) -> Test:
    """A test whether the pairs of one row have more of a score than those of another; rows may share networks."""

    def test(result: ExperimentResult) -> Outcome:
        a, b = pairs_of(result, higher), pairs_of(result, lower)
        found = Estimate.over([])
        if a and b:
            names = list(dict.fromkeys((*networks_of(a), *networks_of(b))))
            score = mean_of(key)
            found = jackknife(names, lambda name: score(without(a, name)) - score(without(b, name)), "networks")
        said = f"{label} of {_title(result, higher)!r} minus that of {_title(result, lower)!r}"
        return _of_networks(decide(result, [higher, lower], found, 0.0, said, above=True, strict=True))

    return test


def _title(result: ExperimentResult, row: str) -> str:
    return next((r.title for r in result.every_row if r.key == row), row)


def _of_networks(outcome: Outcome) -> Outcome:
    """The outcome, whose interval is over networks, not seeds."""
    words = {name: getattr(outcome, name).replace("seed", "network") for name in ("sentence", "figure")}
    # How many networks would decide does not follow from a jackknife over pairs.
    return replace(outcome, **words, enough=0)


def in_order(rows: Sequence[str], names: Sequence[str], where: str = "") -> Test:
    """Whether each error is larger than the next, in each row."""
    return all_of(
        *(
            of_row(row, difference(f"{more}{where}", f"{less}{where}"), CLEARLY, f"{more} minus {less}")
            for row in rows
            for more, less in pairwise(names)
        )
    )


def within_published(rows: Sequence[str]) -> Test:
    """Whether ICA's efficiency in sample is in the published range."""
    label = "The efficiency of ICA (%)"
    return all_of(
        *(
            of_row(row, gained("_in"), end, label, above=above)
            for row in rows
            for end, above in ((LEAST, True), (MOST, False))
        )
    )


def rows(p: Parameters) -> list[Row]:
    """Independent networks, controls, and features of the user's own."""
    made = []
    for part, element in (("H", "hydrogen"), ("C", "carbon")):
        key = f"ani-{part.lower()}"
        changes = {"ensemble": "ani", "part": part}
        made.append(Row(key, f"ANI-1x, {element}", {**changes, "pairs": "all"}))
        made.append(Row(f"{key}-tuned", f"ANI-1x and its fine-tune, {element}", {**changes, "pairs": "tuned"}))
    for part in "hc":
        changes = {"ensemble": "silero-vad", "part": part, "pairs": "all"}
        made.append(Row(f"silero-{part}", f"silero-vad, state {part}", changes, note=SILERO_NOTE))
    for part in "38":
        for pairs, title in (("informed", "position and more"), ("shuffled", "labels shuffled")):
            key = f"cebra-{part}" + ("-shuffled" if pairs == "shuffled" else "")
            changes = {"ensemble": "cebra", "part": part, "pairs": pairs}
            made.append(Row(key, f"CEBRA, {part} dimensions, {title}", changes, note=CEBRA_NOTE))
    if p.own:
        own = {"ensemble": "own", "pairs": "all", "part": ",".join(digest(open_rows(f)) for f in own_files(p.own))}
        made.append(Row("own", f"{len(own_files(p.own))} files of features", own))
    return made


def figures(result: ExperimentResult) -> list[Figure]:
    """Errors of all rows, correlations of matched columns, and what another run tells of each direction."""
    there = [row for row in result.rows if result.of_row(row.key)]
    if not there:
        return []
    titles = [row.title for row in there]

    def by_row(keys: Mapping[str, str]) -> dict[str, list[Estimate]]:
        return {title: [_of_pairs(result, row.key, key) for row in there] for key, title in keys.items()}

    errors = {key: key for key in ORDER}
    told = {row.title: result.of_row(row.key)[0].data["views"]["told"] for row in there}
    return [
        Dots("Errors held out", OVER_NETWORKS, "mean error / diameter of the target", titles, by_row(errors)),
        Dots(
            "Correlation of matched columns, held out",
            OVER_NETWORKS,
            "mean correlation",
            titles,
            by_row({**BASES, "components": "ICA as compare does it"}),
        ),
        Scatter(
            "What another run tells of each principal direction",
            "A point for each direction of one network of a row, from its first pair and seed. Whitening gives all "
            "directions one size.",
            "share of the variance (log10)",
            "R2 from the other run, held out",
            {title: ([float(np.log10(max(s, 1e-12))) for s in v["share"]], v["r2"]) for title, v in told.items()},
            {},
        ),
    ]


def correlation_figure(result: ExperimentResult) -> Figure | None:
    """Correlations of matched columns, with intervals over networks; of results without pairs, means alone."""
    there = [row for row in result.rows if result.of_row(row.key)]
    if not there or any("pairs" not in f.data.get("views", {}) for f in result.cells):
        return dots(result, CORRELATIONS, [row.key for row in there])
    groups = {BASES[key]: [_of_pairs(result, row.key, key).within(-1, 1) for row in there] for key in CORRELATIONS}
    return Dots(
        "others-networks: correlation of matched columns",
        OVER_NETWORKS,
        "mean correlation, held out",
        [row.title for row in there],
        groups,
        name_width=NAME,
    )


def _of_pairs(result: ExperimentResult, row: str, key: str) -> Estimate:
    pairs = pairs_of(result, row)
    if not any(key in scores_ for scores_ in pairs.values()):
        return Estimate(float("nan"))
    return jackknife(networks_of(pairs), lambda name: mean_of(key)(without(pairs, name)), "networks")


CLAIMS = (
    Claim(
        "Independent ANI-1x networks have the published order of errors, in sample: permutation > ICA > rigid > "
        f"linear, each by {CLEARLY:g} or more.",
        in_order(ANI_ROWS, ORDER, "_in"),
    ),
    Claim(
        "Held out, whole molecules apart, permutation > rigid > linear holds of them.",
        in_order(ANI_ROWS, [name for name in ORDER if name != "ica"]),
        added=True,
    ),
    Claim(
        f"ICA's efficiency for them is in the published range, {LEAST:g} to {MOST:g}%, in sample.",
        within_published(ANI_ROWS),
    ),
    Claim(
        "ICA gains over a signed permutation for them, held out.",
        all_of(*(of_row(r, difference("permutation", "ica"), 0.0, "permutation minus ICA") for r in ANI_ROWS)),
        added=True,
    ),
    Claim(
        "The trainings of silero-vad have the published order of errors, in sample.",
        in_order(SILERO_ROWS, ORDER, "_in"),
    ),
    Claim(
        f"ICA's efficiency for silero-vad is in the published range, {LEAST:g} to {MOST:g}%, in sample.",
        within_published(SILERO_ROWS),
    ),
    Claim(
        "Control: a network tells more of its own fine-tune than of an independent network (R2 of a ridge regression, "
        "held out), and matched units correlate more.",
        all_of(
            *(
                between_rows(tuned, row, key, label)
                for row, tuned in TUNED.items()
                for key, label in (("told", "R2"), ("units", "The matched correlation of units"))
            )
        ),
        added=True,
    ),
    Claim(
        "Control: CEBRA embeddings that follow the true position tell more of each other than those of shuffled "
        "labels.",
        all_of(*(between_rows(row, shuffled, "told", "R2") for row, shuffled in CEBRA_ROWS.items())),
        added=True,
    ),
    Claim(
        "Finding, not in the paper: whitening and ICA of all directions do harm to ANI networks and their fine-tunes; "
        "matched components correlate less than matched units, held out.",
        all_of(
            *(
                of_row(row, difference("units", "all_whitened"), 0.0, "The correlation of units minus components")
                for row in (*TUNED, *TUNED.values())
            )
        ),
        added=True,
        late=True,
    ),
    Claim(
        "Finding: within the directions above noise matched components correlate more than those of all directions, by "
        f"{GAIN:g} or more.",
        all_of(
            *(
                of_row(row, difference("above_whitened", "all_whitened"), GAIN, "Above noise minus all directions")
                for row in (*TUNED, *TUNED.values())
            )
        ),
        added=True,
        late=True,
    ),
    Claim(
        "Finding: fine-tunes keep the units of their network, so that ICA has a larger error than matching units, held "
        "out.",
        all_of(
            *(of_row(row, difference("ica", "permutation"), 0.0, "ICA minus permutation") for row in TUNED.values())
        ),
        added=True,
        late=True,
    ),
)


def ready(p: Parameters) -> None:
    """Refuse features of the user's own that cannot be read."""
    if p.own:
        for path in own_files(p.own):
            open_rows(path)


OTHERS_NETWORKS = Experiment(
    name="others-networks",
    paper=NELSON,
    shows="Table 1, others' networks",
    about="Networks that others trained from different seeds agree up to a rigid or linear map; whether ICA of each "
    "alone brings out the same components depends on their directions.",
    defaults=Parameters(),
    presets=presets(cpu=("about 6 minutes on 2 idle cores", 3), paper=("the same", 3)),
    columns=(
        *(column for column in COLUMNS if column.key != "efficiency_low"),
        *(Column(key, f"matched correlation, {title}", most=1) for key, title in BASES.items()),
        Column("components", "matched correlation, ICA as compare does it", most=1),
        Column("told", "R2 of a ridge regression, held out", most=1),
        Column("shared", "directions of which it tells half", 1),
    ),
    rows=rows,
    cell=cell,
    claims=CLAIMS,
    figures=figures,
    requires={},
    datasets=lambda p: () if p.ensemble == "own" else (p.ensemble,),
    ready=ready,
    section=replace(sections.OTHERS_NETWORKS, figure=correlation_figure),
    seeds_draw="folds and starts of ICA",
    kept=("pairs",),
)

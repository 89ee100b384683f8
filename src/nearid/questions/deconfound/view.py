"""What a person sees of deconfounding: means of every score, paired differences, and what components follow."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from nearid.arrays.names import few
from nearid.ica.diagnostics import NOT_CHECKED
from nearid.questions.deconfound.paired import ALL, MeanScore, Paired
from nearid.questions.deconfound.plan import CLASSIFIERS, CONDITIONS, DIRECTIONS, Titles
from nearid.questions.deconfound.standing import activity_table, position_table, scib_table, standing_table
from nearid.show.figures import CHANCE, PALETTE, SOURCE, TARGET, Dots, Figure, HeatMap, Scatter
from nearid.show.view import BAD, CAREFUL, GOOD, Column, Row, Table, View, counted, number, span

if TYPE_CHECKING:
    from nearid.questions.deconfound.result import ConditionResult, Deconfounding, Plane

LEVEL = 0.05
# A gain of AUROC that is at most this is no help.
LITTLE = 0.05
# Perturbations in a table that is not folded, and in the plot; components in the map; classes with their own colour.
SHOWN, DIFFERENCES, COMPONENTS, CLASSES = 25, 30, 120, 7
# Perturbations whose AUROC differ by this are named in the headline; so many names are.
FAR_APART, NAMED = 0.2, 3
# Name of all other classes in a plot; no label is likely to be called so.
REST = "(others)"
BRIEF = Titles({**CONDITIONS, "random": "PCA + Rand", "kept": "technical dropped"})
# Scores whose tables are not folded: those of the paper's main table.
MAIN = ("auroc", "sparsity")
TESTED = (
    "Paired t tests. One perturbation: over folds, with the variance enlarged after Nadeau and Bengio, as they share "
    "training rows; of trainings on one batch, by a jackknife over batches, as they share test rows. All "
    "perturbations: variance over perturbations plus that of a jackknife over the batches that they share. Intervals "
    "are cut to what a difference can be. p is corrected by Holm's method within a score, classifier and direction."
)
METHOD = (
    "Base, PCA and ICA are fitted without labels and batches. Classifiers learn on some batches and are judged on "
    "others; no batch is on both sides. AUROC within batches compares rows of one batch alone. Sparsity: Hoyer's "
    "measure of the shares of components in the splits of trees, or in the coefficients. Concentration: AUROC from "
    "the k most used components less AUROC from all others. Mixing: chance that two neighbours within a label are of "
    "different batches, over that of two rows drawn at random. mAP: mean average precision of rows of the same "
    "perturbation among all rows of other batches. Biological: the label explains more than label x batch does (F "
    "test, at most 5% of the names expected to be false). Technical: the batch explains at least 1%, significantly, "
    "and more than the label."
)


def view(result: Deconfounding) -> View:
    """The whole view."""
    test = main_test(result)
    clear = test is not None and test.p_holm < LEVEL and not _unlike(result, test)
    colour = (GOOD if test.difference.value > 0 else BAD) if test is not None and clear else CAREFUL
    against = f"against {result.control}" if result.control is not None else "each against all others"
    sizes = f"n = {result.n:,}, d = {result.width}, {counted(len(result.batches), 'batch', 'batches')}"
    return View(
        question="Biology or batch?",
        subject=f"{result.name}: {sizes}, {counted(len(result.perturbations), 'perturbation')} {against}",
        headline=headline(result),
        reason=reason(result),
        colour=colour,
        alerts=result.alerts,
        tables=[
            *_cleaning(result),
            *_score_tables(result),
            *_rotations(result),
            *_test_tables(result),
            *standing_table(result),
            _metrics(result),
            *position_table(result),
            *activity_table(result),
            *scib_table(result),
        ],
        facts=_facts(result),
        figures=_figures(result),
        method=METHOD,
        provenance=result.provenance,
    )


def headline(result: Deconfounding) -> str:
    """Whether perturbations are recognised in held-out batches, then whether the last condition does it better."""
    direction, classifier = result.families[0]
    if not any(math.isfinite(result.mean(c).mean) for c in _conditions(result, direction, classifier)):
        return f"There is no answer: {CLASSIFIERS[classifier]} could not be trained on so few rows"
    return f"{_recognised(result)}. {_helped(result)}"


def _recognised(result: Deconfounding) -> str:
    """Whether the first condition recognises perturbations in batches that it did not see."""
    test = base_test(result)
    if test is None:
        return "Biology and batch cannot be separated: no batch holds both perturbed rows and rows to compare them with"
    one = len(result.perturbations) == 1
    what = f"{next(iter(result.perturbations))} is" if one else "Perturbations are"
    auroc = test.difference.value + 0.5
    if math.isnan(test.p) and test.difference.n > 1 and auroc > 0.5:
        # Equal in every split, so that a t test has no variance to divide by.
        figures = f"AUROC within batches {number(auroc)} in all {_over(test)}, a guess has 0.5"
        return f"{what} recognised in new batches ({figures})"
    if math.isnan(test.p):
        return (
            "There are too few splits or perturbations to test whether classifiers work in new batches (AUROC within "
            f"batches {number(auroc)})"
        )
    interval = span(test.difference.low + 0.5, test.difference.high + 0.5)
    figures = f"AUROC within batches {number(auroc)} {interval}, a guess has 0.5{_range(result, test)}"
    single = [t.perturbation for t in _single(result.recognised, test) if t.p_holm < LEVEL and t.difference.value > 0]
    if test.p >= LEVEL and single:
        some = f"{len(single)} of {counted(len(result.perturbations), 'perturbation')} ({few(single, NAMED)})"
        return (
            f"{some} {'is' if len(single) == 1 else 'are'} recognised in new batches, but the mean over all "
            f"perturbations is not clearly above a guess ({figures})"
        )
    if test.p >= LEVEL:
        return f"{what} not clearly recognised in new batches ({figures})"
    if test.difference.value < 0:
        return f"In new batches classifiers{f' of {what[:-3]}' if one else ''} do worse than a guess ({figures})"
    return f"{what} recognised in new batches ({figures})"


def _helped(result: Deconfounding) -> str:
    """Whether the last condition works better in held-out batches than the first, or that this is open."""
    test = main_test(result)
    if test is None:
        return "Only one condition was evaluated, so there is nothing to compare"
    first, second = BRIEF[test.first], BRIEF[test.second]
    figures = _compared(result, test)
    if _unlike(result, test):
        parts = [
            f"{word} for {len(names)} ({few(names, NAMED)})"
            for word, names in zip(("better", "worse"), _clear(result, test), strict=True)
            if names
        ]
        return (
            f"The {len(result.perturbations)} perturbations differ: compared with {first}, classifiers with {second} "
            f"work {' and '.join(parts)} of them (mean {figures})"
        )
    if math.isnan(test.p):
        return f"{second} and {first} cannot be compared: there are too few splits or perturbations for a test"
    if test.p_holm >= LEVEL:
        if test.difference.high > LITTLE:
            return f"{_over(test)} do not show whether {second} helps ({figures})"
        alike = f"equally well with {second} and with {first}"
        work = alike if test.difference.low >= -LITTLE else f"no better with {second} than with {first}"
        return f"{second} did not help: in new batches classifiers work {work} ({figures})"
    helped, better = ("helped", "better") if test.difference.value > 0 else ("did harm", "worse")
    return f"{second} {helped}: in new batches classifiers work {better} with {second} than with {first} ({figures})"


def _compared(result: Deconfounding, test: Paired) -> str:
    """The AUROC of both conditions of a test, and their difference with its interval."""
    second, first = (result.mean(c, "auroc", test.perturbation).mean for c in (test.second, test.first))
    difference = f"difference {test.difference.value:+.3f} {span(test.difference.low, test.difference.high)}".strip()
    return f"AUROC {number(second)} vs {number(first)}, {difference}"


def _single(tests: Sequence[Paired], whole: Paired) -> list[Paired]:
    """The tests of single perturbations that a test of all together is made of."""
    same = ("direction", "classifier", "score", "first", "second")
    alike = [t for t in tests if all(getattr(t, name) == getattr(whole, name) for name in same)]
    return [t for t in alike if t.perturbation != ALL] if whole.perturbation == ALL else []


def _clear(result: Deconfounding, whole: Paired) -> tuple[list[str], list[str]]:
    """Perturbations of which classifiers clearly work better, and worse, each tested on its own."""
    known = [t for t in _single(result.tests, whole) if t.p_holm < LEVEL]
    return (
        [t.perturbation for t in known if t.difference.value > 0],
        [t.perturbation for t in known if t.difference.value < 0],
    )


def _unlike(result: Deconfounding, whole: Paired) -> bool:
    """Whether single perturbations clearly say something else than their mean does."""
    better, worse = _clear(result, whole)
    if whole.p_holm < LEVEL:
        return bool(worse if whole.difference.value > 0 else better)
    return bool(better or worse)


def _range(result: Deconfounding, whole: Paired) -> str:
    """The least and the most recognised perturbation, where they are far apart."""
    known = sorted((t.difference.value + 0.5, t.perturbation) for t in _single(result.recognised, whole))
    if not known or known[-1][0] - known[0][0] < FAR_APART:
        return ""
    (low, least), (high, most) = known[0], known[-1]
    return f"; from {number(low)} ({least}) to {number(high)} ({most})"


def reason(result: Deconfounding) -> str:
    """The figures behind the headline."""
    test = main_test(result)
    direction, classifier = result.families[0]
    means = ", ".join(f"{BRIEF[c]} {number(result.mean(c).mean)}" for c in _conditions(result, direction, classifier))
    sentence = f"Mean AUROC ({CLASSIFIERS[classifier]}, {DIRECTIONS[direction]}): {means}."
    if test is None or math.isnan(test.p):
        return sentence
    return (
        f"{sentence} Paired test of {BRIEF[test.second]} against {BRIEF[test.first]} over {_over(test)}: "
        f"p = {number(test.p_holm)} after Holm's correction."
    )


def main_test(result: Deconfounding) -> Paired | None:
    """The test of the headline: ICA (or the last condition) against the first, of all perturbations or the only one."""
    names = _conditions(result, *result.families[0])
    if len(names) < 2:
        return None
    last = "ica" if "ica" in names and names[0] != "ica" else names[-1]
    wanted = (*result.families[0], "auroc", names[0], last, _overall(result))
    found = (
        t for t in result.tests if (t.direction, t.classifier, t.score, t.first, t.second, t.perturbation) == wanted
    )
    return next(found, None)


def base_test(result: Deconfounding) -> Paired | None:
    """The test of the first condition against a guess, of all perturbations or the only one."""
    names = _conditions(result, *result.families[0])
    wanted = (*result.families[0], names[0], _overall(result))
    found = (t for t in result.recognised if (t.direction, t.classifier, t.second, t.perturbation) == wanted)
    return next(found, None)


def _overall(result: Deconfounding) -> str:
    """All perturbations together, or the only one."""
    return next(iter(result.perturbations)) if len(result.perturbations) == 1 else ALL


def _over(test: Paired) -> str:
    return counted(test.difference.n, "perturbation" if test.perturbation == ALL else "split")


def _conditions(result: Deconfounding, direction: str, classifier: str) -> list[str]:
    """Conditions that have scores in a direction by a classifier."""
    family = (direction, classifier)
    return list(dict.fromkeys(s.condition for s in result.scores if (s.direction, s.classifier) == family))


def _named(score: str) -> str:
    titles = {"auroc": "AUROC", "auroc_within": "AUROC within batches"}
    return titles.get(score, score.replace("concentration@", "concentration, k = "))


def mean_cell(mean: MeanScore | None) -> str:
    """A mean with its standard error, and in how many splits it is defined where that is not in all."""
    if mean is None:
        return "-"
    defined, every = mean.splits
    part = f" ({defined} of {every} splits)" if 0 < defined < every else ""
    return number(mean.mean) + ("" if math.isnan(mean.se) else f" ±{number(mean.se)}") + part


def _cleaning(result: Deconfounding) -> list[Table]:
    """What the cleaned embedding lacks, and what that costs on rows that it was not fitted on."""
    if result.cleaning is None:
        return []
    c, cost = result.cleaning, result.cleaning.cost
    rows = [
        Row([d.component, d.batch, d.label, ", ".join(f"{name} ({value:+.2f})" for name, value in d.features)])
        for d in c.dropped
    ]
    columns = [Column("component", left=True), Column("batch share"), Column("label share")]
    share = f"{100 * c.share:.1f}% of the variance of the columns, each scaled to unit variance"
    where = f" Cleaned rows: {c.written}. Model for other rows: {c.model}." if c.written else ""
    return [
        Table(
            "Cost of cleaning, on rows that it was not fitted on",
            [Column("predicted", left=True), Column("AUROC before"), Column("after"), Column("change")],
            [
                Row(["batch, in held-out rows", cost.batch_before, cost.batch_after, cost.batch_change]),
                Row(["label, in held-out batches", cost.label_before, cost.label_after, cost.label_change]),
            ],
            note="0.5 is a guess. Ridge regression; intervals over folds.",
        ),
        Table(
            f"Dropped: {len(c.dropped)} of {counted(c.components, 'component')}",
            [*columns, Column("columns with the largest correlations", left=True)],
            rows,
            note=f"They hold {share}.{where}",
        ),
    ]


def _score_tables(result: Deconfounding) -> list[Table]:
    """All scores over all perturbations, then each by perturbation; of many perturbations, all in a folded table."""
    means = {(s.direction, s.classifier, s.score, s.condition, s.perturbation): s for s in result.scores}
    kinds = [(d, c, s) for d, c in result.families for s in result.score_names(d, c)]
    shown = list(dict.fromkeys(s.condition for s in result.scores))
    heads = [Column(BRIEF[name]) for name in shown]

    def cells(kind: tuple[str, str, str], perturbation: str) -> list[str]:
        return [mean_cell(means.get((*kind, condition, perturbation))) for condition in shown]

    def by_perturbation(kind: tuple[str, str, str], most: int | None, *, folded: bool) -> Table:
        listed = list(result.perturbations.items())
        rows = [Row([f"{name} ({size.positives})", *cells(kind, name)]) for name, size in listed[:most]]
        if most is not None and len(listed) > most:
            rows.append(Row([f"... {len(listed) - most} more", *[""] * len(shown)], faint=True))
        rows.append(Row(["all", *cells(kind, ALL)], strong=True))
        title = f"{_titled(*kind)}: mean ± standard error"
        return Table(title, [Column("perturbation (rows)", left=True), *heads], rows, folded=folded)

    whole = [kind for kind in kinds if kind[:2] == result.families[0] and kind[2] in MAIN]
    overall = [Row([_titled(*kind), *cells(kind, ALL)], strong=kind == kinds[0]) for kind in kinds]
    over = f"Mean over {counted(len(result.perturbations), 'perturbation')} ± standard error"
    return [
        *(by_perturbation(kind, SHOWN, folded=False) for kind in whole),
        Table(over, [Column("score", left=True), *heads], overall),
        *(
            by_perturbation(kind, None, folded=True)
            for kind in kinds
            if kind not in whole or len(result.perturbations) > SHOWN
        ),
    ]


def _rotations(result: Deconfounding) -> list[Table]:
    """How far rotations at random differ, where there are several."""
    means = [s for s in result.scores if s.perturbation == ALL and not math.isnan(s.spread)]
    if not means:
        return []
    rows = [Row([_titled(s.direction, s.classifier, s.score), s.mean, s.spread]) for s in means]
    count = result.provenance["options"]["rotations"]
    columns = [Column("score", left=True), Column("mean", 3), Column("deviation", 3)]
    return [Table(f"{BRIEF['random']}: mean and standard deviation over {count} rotations", columns, rows, folded=True)]


def _titled(direction: str, classifier: str, score: str) -> str:
    name = _named(score)
    return f"{name[0].upper()}{name[1:]} ({CLASSIFIERS[classifier]}, {DIRECTIONS[direction]})"


def _test_tables(result: Deconfounding) -> list[Table]:
    """For each score the pairs of conditions, with a column for each direction and classifier."""
    tests = [t for t in result.tests if t.perturbation == _overall(result)]
    tables = []
    for score in dict.fromkeys(t.score for t in tests):
        mine = {(t.second, t.first, t.direction, t.classifier): t for t in tests if t.score == score}
        families = list(dict.fromkeys(key[2:] for key in mine))
        rows = [
            Row([f"{BRIEF[second]} - {BRIEF[first]}", *(test_cell(mine.get((second, first, *f))) for f in families)])
            for second, first in dict.fromkeys(key[:2] for key in mine)
        ]
        columns = [Column("conditions"), *(Column(f"{CLASSIFIERS[c]},\n{DIRECTIONS[d]}") for d, c in families)]
        title = f"Differences of {_named(score)}, over {_over(next(iter(mine.values())))} [95% interval], p after Holm"
        tables.append(Table(title, columns, rows, note=TESTED if score == "auroc" else "", folded=score not in MAIN))
    return tables


def test_cell(test: Paired | None) -> str:
    """A difference with its interval and corrected p-value."""
    if test is None or math.isnan(test.difference.value):
        return "-"
    p = "" if math.isnan(test.p_holm) else f" p {number(test.p_holm)}"
    return f"{test.difference.value:+.3f} {span(test.difference.low, test.difference.high)}{p}".strip()


def _metrics(result: Deconfounding) -> Table:
    titles = ("batch R2", "label R2", "technical", "biological", "neither", "batch mixing", "LISI", "mAP", "chance mAP")
    rows = []
    for c in result.conditions.values():
        kinds = [c.components.kinds.count(kind) for kind in ("technical", "biological", "neither")]
        near = [c.mixing.value, c.mixing.lisi, c.replicates.value, c.replicates.chance]
        rows.append(Row([c.title, c.batch_r2, c.label_r2, *kinds, *near]))
    return Table(
        "Batch metrics: mean adjusted share of a component's variance that batch and label explain (R2), numbers of "
        "components by kind, mixing of batches within labels, and replicates found in other batches (mAP)",
        [Column("condition", left=True), *(Column(title, 2 if title == "LISI" else 3) for title in titles)],
        rows,
    )


def _facts(result: Deconfounding) -> dict[str, str]:
    """How far the independent components can be trusted, where there are some."""
    ica = result.provenance["ica"]
    if ica is None:
        return {}
    known = f"{ica['trusted_components']} of the components can be interpreted one by one. Figures mark the others."
    if NOT_CHECKED in result.conditions["ica"].doubts:
        known = "Whether they can be interpreted one by one was not checked: nearid unmix --stability 5 does."
    return {
        "ICA": f"{result.conditions['ica'].width} components of {result.provenance['fitted_rows']:,} rows, "
        f"{ica['rows_per_parameter']:.2g} for each angle of the rotation. {ica['gaussian_components']} of the "
        "components cannot be distinguished from Gaussian ones, which ICA cannot separate. The fit "
        f"{'converged' if ica['converged'] else 'did not converge'} after {ica['passes']} passes. "
        f"{known}"
    }


def _figures(result: Deconfounding) -> list[Figure]:
    figures: list[Figure] = [] if main_test(result) is None else [_differences(result)]
    figures += [_component_map(c) for name, c in result.conditions.items() if name in ("ica", "pca")]
    figures += [_component_scatter(c) for name, c in result.conditions.items() if name not in ("random", "kept")]
    for plane in result.views.planes:
        figures += [
            _plane(plane, by, values)
            for by, values in (("label", result.views.labels), ("batch", result.views.batches))
        ]
    return figures


def _differences(result: Deconfounding) -> Dots:
    """Paired differences of AUROC from the first condition, of each perturbation and of all together."""
    direction, classifier = result.families[0]
    base, *others = _conditions(result, direction, classifier)
    differences = {
        (t.second, t.perturbation): t.difference
        for t in result.tests
        if (t.direction, t.classifier, t.score, t.first) == (direction, classifier, "auroc", base)
    }
    shown = [*list(result.perturbations)[:DIFFERENCES], ALL]
    return Dots(
        "Paired differences",
        "Dots with 95% intervals; right of 0 is better. Held-out batches, first direction and classifier.",
        "difference of AUROC",
        ["all" if name == ALL else name for name in shown],
        {f"{BRIEF[c]} less {BRIEF[base]}": [differences.get((c, name)) for name in shown] for c in others},
    )


def _marked(c: ConditionResult, k: int, text: str) -> str:
    """The text of a component, with why it should not be interpreted on its own."""
    return f"{text} (not to be interpreted on its own: {c.doubts[k]})" if c.doubts and c.doubts[k] else text


def _component_map(c: ConditionResult) -> HeatMap:
    """What batch and label explain of each component, from the most technical to the most biological."""
    a = c.components
    # Of many, those at both ends.
    half = COMPONENTS // 2
    shown = a.ranked if len(a.ranked) <= COMPONENTS else np.concatenate([a.ranked[:half], a.ranked[-half:]])
    shares = np.clip([a.batch[shown], a.label[shown]], 0, 1)
    return HeatMap(
        f"What components follow: {c.title}",
        "Adjusted share of a component's variance that batch and label explain, each beside the other.",
        {"": shares},
        ["batch", "label"],
        [str(k) for k in shown],
        x="component, the most technical first",
        high=max(float(np.nan_to_num(shares).max()), 1e-3),
        hover={"": [[_marked(c, k, a.kinds[k]) for k in shown]] * 2},
    )


def _component_scatter(c: ConditionResult) -> Scatter:
    """Batch share against label share of each component; what is not defined has no place."""
    a = c.components
    kinds = np.where(np.isnan(a.batch) | np.isnan(a.label), "", a.kinds)
    colours = {"technical": SOURCE, "biological": TARGET, "neither": CHANCE}
    places = {kind: np.flatnonzero(kinds == kind) for kind in colours if (kinds == kind).any()}
    return Scatter(
        f"Biology or batch, by component: {c.title}",
        "A dot for each component.",
        "share explained by the batch",
        "share explained by the label",
        {kind: (a.batch[at], a.label[at]) for kind, at in places.items()},
        names={kind: [_marked(c, int(k), f"component {k}") for k in at] for kind, at in places.items()},
        colours=colours,
    )


def _plane(plane: Plane, by: str, values: Sequence[str]) -> Scatter:
    """A sample of rows in two components, coloured by label or by batch; classes beyond the most frequent are grey."""
    common = [name for name, _ in Counter(values).most_common(CLASSES)]
    where = np.array([value if value in common else REST for value in values])
    colours = dict(zip(common, PALETTE, strict=False))
    shown = [*([REST] if len(set(values)) > len(common) else []), *common]
    return Scatter(
        f"{plane.title}, by {by}",
        f"A sample of rows, coloured by {by}.",
        f"component {plane.names[0]}",
        f"component {plane.names[1]}",
        {name: (plane.points[where == name, 0], plane.points[where == name, 1]) for name in shown},
        colours={REST: CHANCE, **colours},
    )

"""What a person sees of deconfounding: means of every score, paired differences, and what components follow."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nearid.base.alerts import Alert
from nearid.ica.diagnostics import NOT_CHECKED
from nearid.questions.deconfound.answer import (
    base_test,
    brief,
    colour,
    conditions,
    estimate_of,
    headline,
    main_tests,
    most_technical,
    over,
    overall,
    parts,
    reference,
    score_of,
    sentences,
    signed,
)
from nearid.questions.deconfound.paired import ALL, MeanScore, Paired
from nearid.questions.deconfound.partition import PARTS, Shares
from nearid.questions.deconfound.plan import CLASSIFIERS, COMPONENTS, DIRECTIONS, KEPT
from nearid.questions.deconfound.standing import activity_table, position_table, scib_table, standing_table
from nearid.show.figures import CHANCE, PALETTE, SOURCE, TARGET, Bars, Dots, Figure, HeatMap, Scatter
from nearid.show.view import Cell, Column, Row, Table, View, counted, number

if TYPE_CHECKING:
    from nearid.questions.deconfound.result import ConditionResult, Deconfounding, Plane

# Perturbations in a plot; components in the map and in the table; classes with their own colour.
DIFFERENCES, MAPPED, CLASSES = 30, 120, 7
# Components in the picture of the variance, and technical ones whose columns are drawn.
BARS, FEATURED = 16, 6
# Name of all other classes in a plot; no label is likely to be called so.
REST = "(others)"
PART_TITLES = {"batch": "batch alone", "label": "label alone", "either": "either", "rest": "neither"}
PART_COLOURS = (SOURCE, TARGET, "#E69F00", "#C8CDD2")
# Codes of alerts that may change the answer, of rows and columns that are not used, and of batches that differ. Others
# come after these, those of ICA last.
WEIGHTS = (
    (
        "confounded",
        "loses_biology",
        "position",
        "nothing_dropped",
        "scales",
        "no_split",
        "few_shared_labels",
        "few_blocks",
    ),
    ("nonfinite", "metadata_columns", "missing_metadata", "single_batch_label", "rare_labels", "single_label_batch"),
    ("unlike_batches", "components", "no_splits", "few_batches"),
)
TESTED = (
    "Paired t tests. One perturbation: over folds, with the variance enlarged after Nadeau and Bengio, as they share "
    "training rows; of trainings on one batch, by a jackknife over batches, as they share test rows. All "
    "perturbations: variance over perturbations plus that of a jackknife over the batches that they share. Intervals "
    "are cut to what a difference can be. p is corrected by Holm's method within a score, classifier and direction."
)
NUMBERED = (
    "Batch components are the combinations of columns in which batches differ most; cleaning takes these away. "
    "Independent components are those of PCA + ICA. The two are numbered separately, each from 0."
)
GIVEN = (
    "Adjusted share of what the label leaves of a component's variance that the batch explains, and of what the batch "
    "leaves that the label explains. The two are parts of different wholes and may add up to more than 1."
)
METHOD = (
    "Base, PCA and ICA are fitted without labels and batches. Classifiers learn on some batches and are judged on "
    "others; no batch is on both sides. AUROC within batches compares rows of one batch alone. Sparsity: Hoyer's "
    "measure of the shares of components in the splits of trees, or in the coefficients. Mixing: chance that two "
    "neighbours within a label are of different batches, over that of two rows drawn at random. mAP: mean average "
    "precision of rows of the same perturbation among all rows of other batches. Biological: the label explains more "
    "than label x batch does (F test, at most 5% of the names expected to be false). Technical: the batch explains at "
    "least 1%, significantly, and more than the label."
)
CONCENTRATED = " Concentration: AUROC from the k most used components less AUROC from all others."


def view(result: Deconfounding) -> View:
    """The whole view."""
    against = f"against {result.control}" if result.control is not None else "each against all others"
    sizes = f"n = {result.n:,}, d = {result.width}, {counted(len(result.batches), 'batch', 'batches')}"
    others = [
        *_cleaning(result),
        *_partition_tables(result),
        *_score_tables(result),
        *_rotations(result),
        *_test_tables(result),
        *standing_table(result),
        _metrics(result),
        *position_table(result),
        *activity_table(result),
        *scib_table(result),
    ]
    return View(
        question="Biology or batch?",
        subject=f"{result.name}: {sizes}, {counted(len(result.perturbations), 'perturbation')} {against}",
        headline=headline(result),
        reason="\n".join(sentences(result)),
        colour=colour(result),
        alerts=_by_weight(result.alerts),
        tables=[_main_table(result), *(replace(table, folded=True) for table in others)],
        facts=_facts(result),
        figures=_figures(result),
        method=METHOD + CONCENTRATED * any(s.score.startswith("concentration") for s in result.scores),
        provenance=result.provenance,
        leading=1,
        brief=True,
    )


def _by_weight(alerts: Sequence[Alert]) -> list[Alert]:
    """Alerts, those first that may change the answer, then those of the input, then those of ICA."""

    def weight(alert: Alert) -> int:
        kinds = [k for k, codes in enumerate(WEIGHTS) if alert.code in codes]
        return kinds[0] if kinds else len(WEIGHTS) + alert.code.startswith("ica_")

    return sorted(alerts, key=weight)


def _main_table(result: Deconfounding) -> Table:
    """A line for each condition: carrying over to new batches, against the first, mixing and replicates."""
    direction, classifier = result.families[0]
    names, score = conditions(result, direction, classifier), score_of(result)
    tests = {test.second: test for test in main_tests(result)}
    rows = []
    for name in names:
        tested = base_test(result, name)
        auroc: Cell = result.mean(name, score).mean if tested is None else estimate_of(tested)
        near = result.conditions[name]
        # Cleaning was fitted on the rows whose neighbours would be counted.
        found: list[Cell] = [None, None] if name in KEPT.values() else [near.mixing.value, near.replicates.value]
        rows.append(Row([brief(name), auroc, test_cell(tests.get(name), short=True), *found], strong=name == names[0]))
    # What cleaned rows are compared with, if that is not the first condition.
    others = [name for name in names[1:] if KEPT.get(name) in names]
    columns = [
        Column("condition", left=True),
        Column(f"{_named(score)}\n[95% interval]"),
        Column(f"{'change' if others else f'less {brief(names[0])}'}\n[95% interval] p"),
        Column("mixing of\nbatches", 2),
        Column("replicates\n(mAP)", 2),
    ]
    chance = result.conditions[names[0]].replicates.chance
    compared = f"Change: from {brief(names[0])}; of cleaned rows from {brief(others[0])}. " if others else ""
    return Table(
        f"New batches ({CLASSIFIERS[classifier]}, {DIRECTIONS[direction]})",
        columns,
        rows,
        note=f"{compared}A guess has AUROC 0.5 and mAP {number(chance, 2)}. Batches that mix fully have 1.",
    )


def _partition_tables(result: Deconfounding) -> list[Table]:
    """The variance of the embedding, and of its components, split between batch and label."""
    columns = [Column("", left=True), *(Column(PART_TITLES[part]) for part in PARTS)]
    rows = [Row(["whole embedding", *result.variance.adding_up()], strong=True)]
    what, components, _ = _pictured(result, MAPPED)
    rows += [Row([name, *shares.adding_up()]) for name, shares in components]
    return [
        Table(
            f"Share of the variance: the embedding in its own scale, and {what}",
            columns,
            rows,
            note="Adjusted shares of an additive model of batch and label. Intervals: jackknife over batches.",
        )
    ]


def _pictured(result: Deconfounding, most: int) -> tuple[str, list[tuple[str, Shares]], str]:
    """What the components of the answer are called, the name and shares of each, and which of them are shown.

    These are the batch components if some are dropped, otherwise the independent ones, or those of the first condition.
    """
    c = result.cleaning
    if c is not None and c.dropped:
        dropped = [d.component for d in c.dropped]
        kept = [k for k in range(c.components) if k not in dropped]
        each = [(f"batch component {k}{' (kept)' if k in kept else ''}", c.partition.of(k)) for k in [*dropped, *kept]]
        some = f" The first {most} of {c.components} are shown." if len(each) > most else ""
        return "batch components, the dropped ones first", each[:most], some
    name = "ica" if "ica" in result.conditions else next(iter(result.conditions))
    shown = _ends(most_technical(result.conditions[name]), most)
    parts = result.conditions[name].partition
    some = f" The {most // 2} components at either end are shown." if len(shown) < result.conditions[name].width else ""
    each = [(_component_name(result, name, int(k)), parts.of(int(k))) for k in shown]
    return f"components of {result.conditions[name].title}, the most technical first", each, some


def _component_name(result: Deconfounding, condition: str, k: int) -> str:
    if condition in COMPONENTS:
        return f"{COMPONENTS[condition]} {k}"
    if condition != "base":
        return f"{condition}, column {k}"
    column = int(result.conditions[condition].condition.columns[k])
    return result.columns[column] if result.columns is not None else f"column {column}"


def _ends(ranked: np.ndarray, most: int) -> np.ndarray:
    """Of many components those at both ends: the most technical and the most biological ones."""
    half = most // 2
    return ranked if len(ranked) <= most else np.concatenate([ranked[:half], ranked[-half:]])


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
        Row(
            [
                f"batch component {d.component}",
                *(share.value for share in c.partition.of(d.component).adding_up()[:3]),
                ", ".join(f"{name} ({value:+.2f})" for name, value in d.features),
            ]
        )
        for d in c.dropped
    ]
    columns = [Column("component", left=True), Column("batch"), Column("label"), Column("either")]
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
            f"Dropped: {len(c.dropped)} of {counted(c.components, 'batch component')}",
            [*columns, Column("columns with the largest correlations", left=True)],
            rows,
            note=f"They hold {share}.{where} {NUMBERED}",
        ),
    ]


def _score_tables(result: Deconfounding) -> list[Table]:
    """All scores over all perturbations, then each by perturbation."""
    means = {(s.direction, s.classifier, s.score, s.condition, s.perturbation): s for s in result.scores}
    kinds = [(d, c, s) for d, c in result.families for s in result.score_names(d, c)]
    shown = list(dict.fromkeys(s.condition for s in result.scores))
    heads = [Column(brief(name)) for name in shown]

    def cells(kind: tuple[str, str, str], perturbation: str) -> list[str]:
        return [mean_cell(means.get((*kind, condition, perturbation))) for condition in shown]

    def by_perturbation(kind: tuple[str, str, str]) -> Table:
        rows = [Row([f"{name} ({size.positives})", *cells(kind, name)]) for name, size in result.perturbations.items()]
        rows.append(Row(["all", *cells(kind, ALL)], strong=True))
        title = f"{_titled(*kind)}: mean ± standard error"
        return Table(title, [Column("perturbation (rows)", left=True), *heads], rows)

    every = [Row([_titled(*kind), *cells(kind, ALL)], strong=kind == kinds[0]) for kind in kinds]
    title = f"Mean over {counted(len(result.perturbations), 'perturbation')} ± standard error"
    return [Table(title, [Column("score", left=True), *heads], every), *map(by_perturbation, kinds)]


def _rotations(result: Deconfounding) -> list[Table]:
    """How far rotations at random differ, where there are several."""
    means = [s for s in result.scores if s.perturbation == ALL and not math.isnan(s.spread)]
    if not means:
        return []
    rows = [Row([_titled(s.direction, s.classifier, s.score), s.mean, s.spread]) for s in means]
    count = result.provenance["options"]["rotations"]
    columns = [Column("score", left=True), Column("mean", 3), Column("deviation", 3)]
    return [Table(f"{brief('random')}: mean and standard deviation over {count} rotations", columns, rows)]


def _titled(direction: str, classifier: str, score: str) -> str:
    name = _named(score)
    return f"{name[0].upper()}{name[1:]} ({CLASSIFIERS[classifier]}, {DIRECTIONS[direction]})"


def _test_tables(result: Deconfounding) -> list[Table]:
    """For each score the pairs of conditions, with a column for each direction and classifier."""
    tests = [t for t in result.tests if t.perturbation == overall(result)]
    tables = []
    for score in dict.fromkeys(t.score for t in tests):
        mine = {(t.second, t.first, t.direction, t.classifier): t for t in tests if t.score == score}
        families = list(dict.fromkeys(key[2:] for key in mine))
        rows = [
            Row([f"{brief(second)} - {brief(first)}", *(test_cell(mine.get((second, first, *f))) for f in families)])
            for second, first in dict.fromkeys(key[:2] for key in mine)
        ]
        columns = [Column("conditions"), *(Column(f"{CLASSIFIERS[c]},\n{DIRECTIONS[d]}") for d, c in families)]
        title = f"Differences of {_named(score)}, over {over(next(iter(mine.values())))} [95% interval], p after Holm"
        tables.append(Table(title, columns, rows, note=TESTED if score == "auroc" else ""))
    return tables


def test_cell(test: Paired | None, *, short: bool = False) -> str:
    """A difference with its interval and corrected p-value; in short a p-value takes no more room than 0.001."""
    if test is None or math.isnan(test.difference.value):
        return "-"
    p = "p<0.001" if short and test.p_holm < 0.001 else f"p {number(test.p_holm)}"
    return f"{signed(test.difference)}{'' if math.isnan(test.p_holm) else f' {p}'}"


def _metrics(result: Deconfounding) -> Table:
    titles = ("batch R2", "label R2", "technical", "biological", "neither", "batch mixing", "LISI", "mAP", "chance mAP")
    rows = []
    for name, c in result.conditions.items():
        # Cleaning was fitted on these rows, which would count as its success.
        if name in KEPT.values():
            continue
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
    figures: list[Figure] = [_variance(result), *([_differences(result)] if main_tests(result) else [])]
    figures += _technical_features(result)
    figures += [_component_map(c) for name, c in result.conditions.items() if name in ("ica", "pca")]
    figures += [
        _component_scatter(c) for name, c in result.conditions.items() if name not in ("random", *KEPT.values())
    ]
    for plane in result.views.planes:
        figures += [
            _plane(plane, by, values)
            for by, values in (("label", result.views.labels), ("batch", result.views.batches))
        ]
    return figures


def _variance(result: Deconfounding) -> Bars:
    """The variance of the embedding and of the components that the answer speaks of."""
    what, components, some = _pictured(result, BARS)
    each = (result.variance, *(shares for _, shares in components))
    shares = 100 * np.array([[share.value for share in found.adding_up()] for found in each])
    return Bars(
        "Where the variance comes from",
        f"The whole embedding in its own scale, then {what}.{some} Labels and batches that occur together leave "
        "variance that could be either.",
        "% of the variance",
        ["whole embedding", *(name for name, _ in components)],
        {PART_TITLES[part]: shares[:, at] for at, part in enumerate(PARTS)},
        colours={PART_TITLES[part]: colour for part, colour in zip(PARTS, PART_COLOURS, strict=True)},
        ends=(0, 100),
    )


def _technical_features(result: Deconfounding) -> list[Figure]:
    """Columns that the most technical components are most correlated with, by name."""
    made: list[tuple[int, Shares, Sequence[tuple[str, float]]]]
    if result.cleaning is not None and result.cleaning.dropped:
        split = result.cleaning.partition
        made = [(d.component, split.of(d.component), d.features) for d in result.cleaning.dropped[:FEATURED]]
        which, kind = "that the cleaned table lacks (batch components)", "batch component"
    elif "ica" in result.conditions:
        ica = result.conditions["ica"]
        order = [int(k) for k in most_technical(ica) if k in ica.features.of_each][:FEATURED]
        made = [(k, ica.partition.of(k), ica.features.of_each[k]) for k in order]
        which, kind = f"of {ica.title}", COMPONENTS["ica"]
    else:
        return []
    names = [name for *_, features in made for name, _ in features]
    if not names:
        return []
    drawn = {}
    at = 0
    for component, shares, features in made:
        values = np.full(len(names), np.nan)
        values[at : at + len(features)] = [value for _, value in features]
        drawn[f"{kind} {component} ({parts(shares)})"] = values
        at += len(features)
    named = result.columns is not None
    return [
        Bars(
            "Technical components and their columns",
            f"Technical components {which}, those with the largest batch share first, and the columns that they are "
            "most correlated with.",
            "correlation",
            [name if named else f"column {name}" for name in names],
            drawn,
            ends=(-1, 1),
        )
    ]


def _differences(result: Deconfounding) -> Dots:
    """Paired differences of AUROC from the first condition, of each perturbation and of all together."""
    direction, classifier = result.families[0]
    names = conditions(result, direction, classifier)
    against = {name: reference(names, name) for name in names[1:]}
    score = score_of(result)
    differences = {
        (t.second, t.perturbation): t.difference
        for t in result.tests
        if (t.direction, t.classifier, t.score, t.first) == (direction, classifier, score, against.get(t.second))
    }
    shown = [*list(result.perturbations)[:DIFFERENCES], ALL]
    return Dots(
        "Paired differences",
        "Dots with 95% intervals; right of 0 is better. Held-out batches, first direction and classifier.",
        f"difference of {_named(score)}",
        ["all" if name == ALL else name for name in shown],
        {
            f"{brief(name)} less {brief(first)}": [differences.get((name, each)) for each in shown]
            for name, first in against.items()
        },
    )


def _marked(c: ConditionResult, k: int, text: str) -> str:
    """The text of a component, with why it should not be interpreted on its own."""
    return f"{text} (not to be interpreted on its own: {c.doubts[k]})" if c.doubts and c.doubts[k] else text


def _kind(c: ConditionResult) -> str:
    """What a component of a condition is called."""
    return COMPONENTS.get(c.condition.name, "column")


def _component_map(c: ConditionResult) -> HeatMap:
    """What batch and label explain of each component, from the most technical to the most biological."""
    a = c.components
    shown = _ends(a.ranked, MAPPED)
    shares = np.clip([a.batch[shown], a.label[shown]], 0, 1)
    return HeatMap(
        f"What components follow: {c.title}",
        GIVEN,
        {"": shares},
        ["batch", "label"],
        [str(k) for k in shown],
        x=f"{_kind(c)}, the most technical first",
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
        f"A dot for each component. {GIVEN}",
        "share that the batch explains, given the label",
        "share that the label explains, given the batch",
        {kind: (a.batch[at], a.label[at]) for kind, at in places.items()},
        names={kind: [_marked(c, int(k), f"{_kind(c)} {k}") for k in at] for kind, at in places.items()},
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
        plane.names[0],
        plane.names[1],
        {name: (plane.points[where == name, 0], plane.points[where == name, 1]) for name in shown},
        colours={REST: CHANCE, **colours},
    )

"""The view of a comparison: headline, tables and figures, and what the figures draw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from nearid.groups.fits import correlation, fit_permutation
from nearid.groups.ladder import GROUPS, Group
from nearid.moments import Floats, PairMoments
from nearid.questions.compare.errors import Fits, Gathered
from nearid.questions.compare.verdict import LEVEL
from nearid.show.alerts import joined
from nearid.show.figures import CHANCE, SOURCE, TARGET, Cloud, Curve, Dots, Figure, HeatMap, Lines, Panels
from nearid.show.view import BAD, Cell, Column, Row, Table, View, counted, fixed, with_intervals

if TYPE_CHECKING:
    from nearid.questions.compare.result import Comparison, Comparisons
    from nearid.questions.compare.verdict import Verdict

QUESTION = "Are these the same representation?"
METHOD = (
    "The verdict is the smallest group that passes two tests with 95% confidence: it explains at least 90% of the "
    "variance that the best group explains, and its root-mean-square error is at most 10% larger. The verdict is "
    "“none” if no group explains more than it does with the target's rows in another order, or if it explains too "
    "little. The ridge penalty of the linear map is chosen inside the training folds. Intervals include the "
    "uncertainty of the fits (infinitesimal jackknife)."
)
NOT_ESTIMABLE = "not estimable with these rows"
BINS = 80
MAP_COLUMNS = 64
OVERLAY_ROWS = 800


@dataclass(frozen=True)
class Views:
    """What the report draws.

    Attributes
    ----------
    epsilon_edges : ndarray of shape (bins + 1,)
    epsilon_counts : dict of name -> ndarray of shape (bins,)
    spectrum_x, spectrum_y : ndarray
        Eigenvalues of the covariances as shares of the total.
    correlation : ndarray of shape (<= 64, <= 64)
        |Correlation| of matched columns, target columns in the order of the strength of their match.
    matched : ndarray of shape (k, 2)
        Source and target column of each row and column of `correlation`.
    overlay : dict of title -> ndarray of shape (m, 2)
        The target and the source (as it is and aligned by each group) in the target's first two principal components.
    """

    epsilon_edges: Floats
    epsilon_counts: dict[str, Floats]
    spectrum_x: Floats
    spectrum_y: Floats
    correlation: Floats
    matched: np.ndarray
    overlay: dict[str, Floats]


def views(gathered: Gathered, groups: Sequence[Group], fits: Fits, errors: Floats, diameter: float, seed: int) -> Views:
    """Histograms, spectra, the map of matched columns and a 2-D overlay.

    The maps that are drawn are those of the first fold's fits.
    """
    moments, epsilon = gathered.moments, errors / diameter
    edges = np.linspace(0, float(np.quantile(epsilon, 0.999)) or 1.0, BINS + 1)
    counts = {g.name: np.histogram(np.minimum(e, edges[-1]), edges)[0] for g, e in zip(groups, epsilon, strict=True)}
    spectra = _shares(gathered.eigen_x[0]), _shares(gathered.eigen_y[0])
    return Views(edges, counts, *spectra, *_matched(moments), _overlay(gathered, groups, fits, seed))


def _shares(values: Floats) -> Floats:
    values = np.clip(values, 0, None)
    return np.asarray(values / values.sum())


def _matched(moments: PairMoments) -> tuple[Floats, np.ndarray]:
    """|Correlation| with columns in the order of their matches, strongest first."""
    rho = np.abs(correlation(moments))
    fit = fit_permutation(moments)
    targets = np.flatnonzero(fit.weights)
    sources = fit.columns[targets]
    order = np.argsort(-rho[sources, targets], kind="stable")[:MAP_COLUMNS]
    sources, targets = sources[order], targets[order]
    return rho[np.ix_(sources, targets)], np.stack([sources, targets], axis=1)


def _overlay(gathered: Gathered, groups: Sequence[Group], fits: Fits, seed: int) -> dict[str, Floats]:
    """Both runs in the plane of the target's first two principal components, in units of its size."""
    moments, rng = gathered.moments, np.random.default_rng([seed, 2])
    many = gathered.count > OVERLAY_ROWS
    rows = np.sort(gathered.random_rows(OVERLAY_ROWS, rng)) if many else gathered.used
    x, y = gathered.pair.take(rows)
    vectors = gathered.eigen_y[1]
    # In units of the target's size: what is drawn has no units, and may come in any.
    plane = vectors[:, :2] / np.sqrt(np.trace(moments.yy) / moments.n)
    pictures = {"target": (y - moments.mean_y) @ plane}
    # The source as it is, in its own first columns where the widths differ, brought to the target's size.
    width = min(x.shape[1], y.shape[1])
    unit = np.sqrt(np.trace(moments.yy) / (np.trace(moments.xx) or 1.0))
    pictures["as it is"] = ((x - moments.mean_x) * unit)[:, :width] @ plane[:width]
    for g, fitted in zip(groups, fits.maps[0], strict=True):
        # The matrix first: the plane has two columns, the target many.
        offset = (fitted.target_centre - moments.mean_y) @ plane
        pictures[g.name] = (x - fitted.source_centre) @ (fitted.matrix @ plane) + offset
    return {k: v if v.shape[1] == 2 else np.hstack([v, np.zeros_like(v)]) for k, v in pictures.items()}


def view(c: Comparison) -> View:
    """The verdict, the ladder, similarities and figures of two runs; without rows that would decide all of these."""
    facts, seen = {}, c.bulk or c
    if c.reverse is not None:
        facts["The other direction"] = f"{_sentence(c.reverse)}. {c.reverse.verdict.reason}"
    if seen.benefit is not None:
        facts["Benefit of ICA"] = seen.benefit.sentence
    if seen.efficiency is not None:
        facts["Efficiency of ICA"] = seen.efficiency.reason
    d = seen.diameter
    size = (
        f"{d.lower:.6g} (exact)"
        if d.exact
        else f"between {d.lower:.6g} and {d.upper:.6g}; epsilon divides by the first"
    )
    facts[f"Diameter of {c.names[1]}"] = size
    options = c.provenance["options"]
    return View(
        question=QUESTION,
        subject=_pair(c),
        headline=headline(c),
        reason=_reason(c),
        colour=_colour(c),
        alerts=joined([(c.names, c.alerts)]),
        tables=[*_ladders(c), *([] if c.reverse is None else _ladders(c.reverse)), _similarity(seen)],
        facts=facts,
        figures=[_dots(seen), _overlaid(seen), *_curves(seen)],
        method=f"Each group is fitted on {options['folds'] - 1} of {options['folds']} folds and judged on the other. "
        f"{METHOD} Chance is measured with the target's rows in another order ({c.provenance['chance_rows']:,} rows).",
        provenance=c.provenance,
    )


def overview(comparisons: Comparisons) -> View:
    """Several comparisons: a row each, as in a paper's table, and a section each."""
    results, names = comparisons.results, comparisons.names
    groups = results[0].groups
    order = [*GROUPS, "none"]
    verdicts = sorted((c.verdict for c in results), key=lambda verdict: order.index(verdict.group))
    reached = Counter(up_to(verdict) if verdict.group in GROUPS else "up to no group" for verdict in verdicts)
    counts = [f"{n} {'agrees' if n == 1 else 'agree'} {words}" for words, n in reached.items()]
    columns = [Column("pair"), Column("verdict", left=True), *(Column(name) for name in groups), Column("best R2")]
    columns += [Column("ICA\nhelped?", left=True, wide=True)] if results[0].benefit is not None else []
    columns += [*([Column("efficiency\nof ICA")] if "ica" in groups else []), Column("CCA", wide=True)]
    rows = []
    for k, c in enumerate(results):
        back = ", back" if c.decided_by_reverse else ""
        back += ", without outlying rows" if c.bulk is not None else ""
        group = f"between {' and '.join(c.verdict.between)}" if c.verdict.between else c.verdict.group
        cells: list[Cell] = [_pair(c), f"{group} ({c.verdict.strength}{back})"]
        judged = c.judged
        cells += [g.epsilon for g in judged.groups.values()]
        cells.append(max(g.r2.value for g in judged.groups.values()))
        if c.benefit is not None:
            cells.append(c.benefit.answer)
        if c.efficiency is not None:
            cells.append(f"{100 * c.efficiency.value:.0f}%" if np.isfinite(c.efficiency.value) else None)
        rows.append(Row([*cells, float(judged.similarity.cca)], part=k))
    title = with_intervals("Mean epsilon (error / diameter), held out", (cell for row in rows for cell in row.cells))
    # All pairs of runs make a matrix; one pair at several layers does not.
    whole = len(names) > 2 and len(set(comparisons.pairs)) == len(names) * (len(names) - 1) // 2
    maps = {group: comparisons.matrix(group).values for group in (groups if whole else ())}
    return View(
        question=QUESTION,
        subject=", ".join(names),
        headline=f"{counted(len(results), 'pair')} of runs: {', '.join(counts)}",
        reason=_best(comparisons),
        colour=_colour(max(results, key=lambda c: order.index(c.verdict.group))),
        alerts=joined([(c.names, c.alerts) for c in results]),
        tables=[Table(title, columns, rows), _extremes(comparisons)],
        facts=_directions(results),
        figures=[
            HeatMap(f"Mean epsilon, {g}", "", {"": v}, names, names, "target", "source", None, None, digits=3)
            for g, v in maps.items()
        ],
        provenance=comparisons.provenance,
        parts=[view(c) for c in results],
    )


def _best(comparisons: Comparisons) -> str:
    """The best pair by R2 of the largest group, which contains the others."""
    ladder = [name for name in comparisons.results[0].groups if GROUPS[name].prepare is None]
    best = comparisons.best(ladder[-1])
    if best is None:
        return ""
    pair = f"{best.source} -> {best.target}"
    return f"The best of {counted(best.pairs, 'pair')} by R2 of a {GROUPS[ladder[-1]].title} is {pair}: {best.text}."


def _extremes(comparisons: Comparisons) -> Table:
    """Best and worst pair of every group."""
    columns = [Column("group"), Column("best pair", left=True), Column("best\nR2"), Column("best\nby chance")]
    columns += [Column("p"), Column("worst pair", left=True), Column("worst\nR2")]
    rows = []
    for name, group in comparisons.results[0].groups.items():
        best, worst = comparisons.best(name), comparisons.worst(name)
        if best is None or worst is None:
            rows.append(Row([group.title, NOT_ESTIMABLE, *[None] * 5], faint=True))
            continue
        ends = (f"{each.source} -> {each.target}" for each in (best, worst))
        cells: list[Cell] = [group.title, next(ends), best.value, best.value.chance, best.p_value]
        rows.append(Row([*cells, next(ends), worst.value]))
    count = len(comparisons) + sum(c.reverse is not None for c in comparisons)
    note = "Best by chance: the best of all pairs with the target's rows in another order."
    title = f"Best and worst of {count} pairs, R2 held out"
    headed = with_intervals(title, (cell for row in rows for cell in row.cells))
    if headed != title:
        note = f"The intervals allow for the choice among {count} pairs. {note}"
    unmeasured = next((c.unmeasured for c in comparisons if c.unmeasured), "")
    note += f" {unmeasured} that chance cannot be measured." if unmeasured else ""
    return Table(headed, columns, rows, note)


def headline(c: Comparison) -> str:
    """The verdict in a line, and a second one where the other direction has another verdict."""
    other = c.other_direction
    return f"{_sentence(c)}. {other.text}" if other.status == "differs" else _sentence(c)


def _reason(c: Comparison) -> str:
    """The figures that decided; then that the other direction was not computed, if it could differ."""
    other = c.other_direction
    return f"{c.verdict.reason}\n{other.text}." if other.status == "not computed" else c.verdict.reason


def _sentence(c: Comparison) -> str:
    """The verdict alone; it names its direction where that is the other one."""
    if c.decided_by_reverse and c.reverse is not None and not c.verdict.between:
        line = _sentence(c.reverse)
        return f"From {c.names[1]} to {c.names[0]}, the worse direction: {line[0].lower()}{line[1:]}"
    if c.bulk is not None:
        line = _sentence(replace(c.bulk, verdict=c.verdict, reverse=c.reverse, one_way=c.one_way))
        return f"Without {counted(len(c.outlying_rows), 'outlying row')}: {line[0].lower()}{line[1:]}"
    verdict = c.verdict
    if verdict.strength == "almost unrelated":
        best = max(g.r2.value for g in c.groups.values() if np.isfinite(g.r2.value))
        return f"Almost unrelated: no group explains more than {100 * best:.1f}% of the target's variance"
    if verdict.group == "none":
        figure = f"(best R2 {fixed(max(g.r2.value for g in c.groups.values() if np.isfinite(g.r2.value)))})"
        if c.unmeasured:
            return f"Not shown to be the same representation: chance cannot be measured, and no map is close {figure}"
        too_little = "better than chance" if verdict.p_value > LEVEL else "reliably"
        return f"Not the same representation: no map explains the target {too_little} {figure}"
    ways = [c.judged]
    if c.reverse is not None and c.one_way is not None and (verdict.between or verdict.group != c.one_way.group):
        # The verdict joins both directions: its R2 is that of the worse one.
        ways.append(c.reverse.judged)
    figures = [fixed(min(way.groups[name].r2.value for way in ways)) for name in verdict.between or (verdict.group,)]
    reached = f"{up_to(verdict)} (R2 {' and '.join(figures)})"
    if c.dims[0] != c.dims[1]:
        return f"The target is contained in the source, {verdict.strength}, {reached}"
    return {
        "in part": f"Partly the same representation, {reached}",
        "weakly": f"Only weakly alike, {reached}",
    }.get(verdict.strength, f"The same representation, {verdict.strength}, {reached}")


def up_to(verdict: Verdict) -> str:
    """The group of a verdict in words, or the two that it lies between."""
    if not verdict.between:
        return f"up to a {GROUPS[verdict.group].title}"
    first, second = (GROUPS[name].title for name in verdict.between)
    return f"between a {first} and a {second}"


def _pair(c: Comparison) -> str:
    return f"{c.names[0]} -> {c.names[1]}"


def _colour(c: Comparison) -> str:
    return GROUPS[c.verdict.group].colour if c.verdict.group in GROUPS else BAD


def _directions(results: Sequence[Comparison]) -> dict[str, str]:
    """Of several comparisons: those whose other direction differs, and how many have one that is not known."""
    known = [c.other_direction for c in results]
    facts = {_pair(c): f"{d.text}." for c, d in zip(results, known, strict=True) if d.status == "differs"}
    unknown = sum(d.status == "not computed" for d in known)
    if unknown:
        facts["The other direction"] = (
            f"It was not computed for {unknown} of {counted(len(results), 'pair')} and may differ: use --symmetric "
            "(symmetric=True)."
        )
    return facts


def _ladders(c: Comparison) -> list[Table]:
    """The ladder of all rows, after that of the rows that the verdict is of."""
    if c.bulk is None:
        return [_ladder(c)]
    tables, left_out = (_ladder(c.bulk), _ladder(c)), counted(len(c.outlying_rows), "outlying row")
    return [
        replace(table, title=f"{table.title}, {rows}")
        for table, rows in zip(tables, (f"without {left_out}", "all rows"), strict=True)
    ]


def _ladder(c: Comparison) -> Table:
    mean = with_intervals("mean", (g.epsilon for g in c.groups.values()), "\n")
    columns = [Column("group"), Column(mean), Column("median", wide=True), Column("95%", wide=True)]
    columns += [Column("max", wide=True), Column("error /\nspread", wide=True)]
    columns += [
        Column(with_intervals("R2", (g.r2 for g in c.groups.values()), "\n")),
        Column("R2 by\nchance"),
        Column("p"),
    ]
    columns += [Column("in sample")] if c.in_sample else []
    rows = []
    for name, g in c.groups.items():
        cells: list[Cell] = [g.title, g.epsilon, g.median, g.q95, g.max, g.relative.value, g.r2]
        if not g.estimable:
            cells = [g.title, None, None, None, None, None, NOT_ESTIMABLE]
        cells += [g.r2.chance, g.p_value]
        cells += [c.in_sample[name].epsilon.value] if c.in_sample else []
        rows.append(Row(cells, strong=name == c.verdict.group, faint=not g.estimable))
    title = f"{_pair(c)}: epsilon (error / diameter), held out (n = {c.n:,}, d = {c.dims[0]} -> {c.dims[1]})"
    return Table(title, columns, rows, note=_note(c))


def _note(c: Comparison) -> str:
    """What the intervals are of, the penalty, and which error to compare across sizes."""
    groups = list(c.groups.values())
    of = next((g.r2.of for g in groups if g.r2.of), "")
    sentences = [f"Intervals are for {of}."] if of else [f"Errors and R2 have no intervals: {groups[0].no_interval}."]
    sentences += [f"{g.name} has no interval: {g.no_interval}." for g in groups if of and g.no_interval]
    penalty = next((g.penalty for g in groups if g.penalty), ())
    if penalty and penalty[1] > 0:
        low, high = (f"{value:.3g}" for value in penalty)
        sentences.append(f"Ridge penalty of the linear map: {low if low == high else f'{low} to {high}'}.")
    sentences.append("R2 by chance: the largest R2 with the target's rows in another order.")
    if c.unmeasured:
        sentences.append(f"There is no p. {c.unmeasured} that chance cannot be measured.")
    sentences.append("Use error / spread to compare data sets of different sizes: the diameter grows with the rows.")
    return " ".join(sentences)


def _similarity(c: Comparison) -> Table:
    known = [c.similarity, c.chance_similarity, *([c.in_sample_similarity] if c.in_sample_similarity else [])]
    columns = [Column("measure"), Column("value"), Column("chance"), *([Column("in sample")] if known[2:] else [])]
    rows = [
        Row([_mean_over(title, c.similarity.directions.get(name)), *(getattr(s, name) for s in known)])
        for name, title in (("cca", "CCA"), ("svcca", "SVCCA"), ("cka", "linear CKA"))
    ]
    return Table("Similarity, held out (CKA debiased)", columns, rows)


def _mean_over(title: str, folds: list[int] | None) -> str:
    """The name of a mean over canonical directions, with their number."""
    if folds is None:
        return title
    least, most = min(folds), max(folds)
    number = f"{most}" if least == most else f"{least} to {most}"
    return f"{title} (mean of {number} direction{'s' if most > 1 else ''})"


def _dots(c: Comparison) -> Dots:
    groups = [g for g in c.groups.values() if g.estimable]
    ladder = {"held out, 95% interval" if groups[0].r2.has_interval else "held out": [g.epsilon for g in groups]}
    if c.in_sample:
        ladder["in sample"] = [c.in_sample[g.name].epsilon for g in groups]
    titles, colours = [g.title for g in groups], [GROUPS[g.name].colour for g in groups]
    about = "Epsilon: the error of a held-out row over the target's diameter."
    return Dots("How nearly: the ladder", about, "mean epsilon", titles, ladder, colours, from_zero=True, wide=False)


def _overlaid(c: Comparison) -> Panels:
    points = {title: (p[:, 0], p[:, 1]) for title, p in c.views.overlay.items()}
    target = points.pop("target")
    panels = [Cloud(title, {"target": target, "source": source}) for title, source in points.items()]
    about = "A sample of rows in the target's first two principal components, with the maps of the first fold."
    colours = {"target": TARGET, "source": SOURCE}
    return Panels("Both runs before and after alignment", about, panels, len(panels), colours=colours)


def _curves(c: Comparison) -> Iterator[Figure]:
    v = c.views
    middle = (v.epsilon_edges[1:] + v.epsilon_edges[:-1]) / 2
    shares = {
        name: Curve(middle, counts / c.n, GROUPS[name].colour, steps=True)
        for name, counts in v.epsilon_counts.items()
        if c.groups[name].estimable
    }
    about = "Held-out rows. A long right tail means that a few rows disagree."
    yield Lines("Epsilon of each row", about, "epsilon", "share of rows", shares)
    about = (
        "Absolute correlation of columns in the order of their matches (strongest first, at most 64). If only the "
        "diagonal is strong, the runs differ by a permutation."
    )
    sources, targets = [f"s{s}" for s in v.matched[:, 0]], [f"t{t}" for t in v.matched[:, 1]]
    matched = {"": v.correlation}
    yield HeatMap("Matched columns", about, matched, sources, targets, "target column", "source column")
    spectra = {
        name: Curve(np.arange(1, len(s) + 1), np.where(s > 1e-16, s, np.nan), colour, markers=True)
        for name, s, colour in (("source", v.spectrum_x, SOURCE), ("target", v.spectrum_y, TARGET))
    }
    about = "Eigenvalues of each side's covariance."
    yield Lines("Spectra", about, "principal component", "share of variance", spectra, log=True)
    known = [("held out", c.similarity, TARGET, "solid"), ("chance", c.chance_similarity, CHANCE, "dot")]
    if c.in_sample_similarity:
        known.append(("in sample", c.in_sample_similarity, SOURCE, "dash"))
    curves = {
        name: Curve(np.arange(1, len(s.correlations) + 1), s.correlations, colour, dash)
        for name, s, colour, dash in known
    }
    about = "Each correlation is of held-out rows, along directions that were fitted on the other folds."
    yield Lines("Canonical correlations", about, "canonical direction", "correlation", curves)

"""What a person sees of a score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nearid.arrays.names import few
from nearid.base.alerts import Alert
from nearid.base.estimate import Estimate
from nearid.groups.ladder import GROUPS
from nearid.questions.compare.view import NOT_ESTIMABLE, up_to
from nearid.questions.score.result import MatchedFactor, Score, ScoredMeasure
from nearid.show.figures import Cloud, Dots, Figure, HeatMap, Panels
from nearid.show.view import BAD, CAREFUL, Cell, Column, Row, Table, View, counted, number, with_intervals

QUESTION = "Is this the true representation?"
UNRECOVERED = "not recovered up to any group of the ladder"
IN_SAMPLE = "* of all rows, as defined, not held out: compare with chance."
METHOD = (
    "Verdict: the smallest group (signed permutation with a scale for each factor, rigid motion with one scale, linear "
    "map) that, with 95% confidence, explains at least 90% of the variance of the factors that the best group explains "
    "with at most 10% more root-mean-square error, or that leaves less than 1% unexplained, on held-out rows; “none” "
    "where no group beats permuted rows. Each factor is brought to unit variance first. Intervals: jackknife over ten "
    "groups of rows (or of blocks, where rows belong together). Those of held-out measures are of fits on this many "
    "rows, judged on new ones; those of the others of the value of another sample of this size. Chance: the factors' "
    "rows permuted."
)
# Latents and factors that a heat map, factors that the scatter plots show; measures in a narrow table of factors.
MAP_LATENTS, MAP_FACTORS, SCATTERS, NARROW = 64, 64, 12, 4
# Values below are not drawn.
LOWEST = -1.0
AFTER = "after ICA"
# A factor is not recovered if a linear map explains less than this share of it, and its interval contains 0.
NOTHING = 0.05
# Names that a headline lists.
NAMES = 3


def view(score: Score) -> View:
    """The verdict, the measures, the factors and the figures."""
    both = [("", score)] + ([(f", {AFTER}", score.resolved)] if score.resolved else [])
    later = score.resolved
    return View(
        question=QUESTION,
        subject=f"{score.names[0]} -> {score.names[1]}",
        headline=headline(score),
        reason=score.verdict.reason,
        colour=_colour(score.verdict.group),
        alerts=list(_alerts(score)),
        tables=[
            _measures(score),
            *(_factors(s, intervals=False) for _, s in both),
            *(_factors(s, intervals=True) for _, s in both),
            *(_ladder(s) for _, s in both if s.structure),
        ],
        facts={} if later is None else {"After ICA": f"{headline(later)}. {later.verdict.reason}"},
        figures=list(_figures(both)),
        method=METHOD,
        provenance=score.provenance,
    )


def headline(score: Score) -> str:
    """The verdict in a line, and the figures of the factors that it does not judge."""
    if not score.judged:
        return f"There is no verdict on a group, because all factors are categorical. {_separate(score)}"
    line, structure = f"{_recovered(score)}{_missing(score)}", score.structure
    if structure is None or structure.bulk is None:
        return line
    return f"Without {counted(len(structure.outlying_rows), 'outlying row')}: {line[0].lower()}{line[1:]}"


def _recovered(score: Score) -> str:
    verdict, judged = score.verdict, score.judged
    group = None if verdict.group == "none" else f"{verdict.strength}, {up_to(verdict)}"
    recovered = f"recovered {group}" if group else UNRECOVERED
    # A joint verdict of less than nine tenths may hide factors that are lost beside others that are recovered.
    hidden = verdict.strength in ("in part", "weakly") or bool(missing_factors(score))
    jointly = group is not None and hidden and len(judged) > 1
    if not score.separate:
        which = "The true factor is" if len(judged) == 1 else "The true factors are"
        return f"{'Together, the true factors are' if jointly else which} {recovered}"
    kinds = {factor.kind for factor in judged}
    kind = kinds.pop() if len(kinds) == 1 else "numeric"
    count = "Both" if len(judged) == 2 and group else f"{'All' if group else 'The'} {len(judged)}"
    which = f"{count} {kind} factors are" if len(judged) > 1 else f"The {kind} factor is"
    if jointly:
        which = f"Together, the {len(judged)} {kind} factors are"
    return f"{which} {recovered}. {_separate(score)}"


def missing_factors(score: Score) -> dict[str, float]:
    """R2 of the factors that are lost while the verdict finds others, by their names."""
    if score.verdict.group == "none" or "r2" not in score.measures:
        return {}
    # The line about a single categorical factor has its R2.
    named = [*score.judged, *(score.separate if len(score.separate) > 1 else ())]
    known = {f.name: score.measures["r2"].factors[f.name] for f in named if f.name in score.measures["r2"].factors}
    return {name: e.value for name, e in known.items() if e.value < NOTHING and not e.low > 0}


def _missing(score: Score) -> str:
    missing = missing_factors(score)
    if not missing:
        return ""
    ends = dict.fromkeys((number(min(missing.values())), number(max(missing.values()))))
    return f". Not recovered: {few(map(repr, missing), NAMES)} (R2 {' to '.join(ends)})"


def _separate(score: Score) -> str:
    """The factors that the verdict does not judge, and how well one measure recovers them."""
    count = len(score.separate)
    which = "The categorical factor is" if count == 1 else f"The {count} categorical factors are"
    # A share of explained variance is the easiest to read.
    for m in sorted(score.measures.values(), key=lambda m: m.name != "r2"):
        values = [m.factors[f.name].value for f in score.separate if f.name in m.factors]
        if len(values) == count:
            ends = dict.fromkeys((number(min(values)), number(max(values))))
            return f"{which} scored separately: {m.declared.each.split(',')[0]} {' to '.join(ends)}"
    return f"{which} scored separately, by the measures below"


def _alerts(score: Score) -> Iterator[Alert]:
    """Alerts of a score and of what ICA made of it, each once."""
    yield from score.alerts
    if score.resolved is not None:
        known = {a.message for a in score.alerts}
        yield from (
            replace(a, message=f"After ICA: {a.message}") for a in score.resolved.alerts if a.message not in known
        )


def _measures(score: Score) -> Table:
    later = score.resolved
    heads = ["value"] if later is None else ["latents", AFTER]
    columns = [Column("measure")]
    every = [score] if later is None else [score, later]
    for head, own in zip(heads, every, strict=True):
        known = (e for m in own.measures.values() for e in (m.overall, *m.parts.values()))
        columns += [Column(with_intervals(head, known, "\n")), Column("chance" if later is None else f"{head}\nchance")]
    rows = []
    for name, m in score.measures.items():
        both = [m] if later is None else [m, later.measures[name]]
        rows.append(Row([_starred(m.declared.title, m), *(c for s in both for c in (s.overall, s.overall.chance))]))
        for part, declared in m.declared.parts.items():
            if declared.title:
                figures = [s.parts[part] for s in both]
                rows.append(Row([f"  {declared.title}", *(c for e in figures for c in (e, e.chance))], faint=True))
    held_out = all(m.declared.held_out for m in score.measures.values())
    return Table(f"recovery of {_sizes(score)}", columns, rows, note="" if held_out else IN_SAMPLE)


def _factors(score: Score, *, intervals: bool) -> Table:
    of_each = [m for m in score.measures.values() if m.factors]
    heads = [Column(_starred(m.declared.each, m), wide=k >= NARROW) for k, m in enumerate(of_each)]

    def cell(e: Estimate | None) -> Cell:
        return e if e is None or intervals else e.value

    rows = [Row([f.name, _kind(f), f.matched, *(cell(m.factors.get(f.name)) for m in of_each)]) for f in score.factors]
    columns = [Column("factor"), Column("kind", left=True), Column("latent"), *heads]
    title = f"each factor of {score.names[1]} from {score.names[0]}"
    return Table(with_intervals(title, (c for row in rows for c in row.cells)), columns, rows, folded=intervals)


def _ladder(score: Score) -> Table:
    assert score.structure is not None
    groups = (score.structure.bulk or score.structure).groups.values()
    mean = with_intervals("mean", (g.epsilon for g in groups), "\n")
    r2 = with_intervals("R2", (g.r2 for g in groups), "\n")
    columns = [Column("group"), Column(mean), Column("mean by\nchance"), Column("error /\nspread")]
    columns += [Column(r2), Column("R2 by\nchance"), Column("p")]
    rows = []
    for g in groups:
        cells: list[Cell] = [g.title, g.epsilon, g.epsilon.chance, g.relative.value, g.r2]
        if not g.estimable:
            cells = [g.title, None, g.epsilon.chance, None, NOT_ESTIMABLE]
        cells += [g.r2.chance, g.p_value]
        rows.append(Row(cells, strong=g.name == score.verdict.group, faint=not g.estimable))
    title = f"Epsilon (error / diameter) of the factors (each of unit variance), held out, from {score.names[0]}"
    return Table(title, columns, rows, folded=True)


def _figures(both: list[tuple[str, Score]]) -> Iterator[Figure]:
    score = both[0][1]
    groups = {
        label.removeprefix(", ") or "latents": [_drawn(m.overall) for m in s.measures.values()] for label, s in both
    }
    titles = [m.declared.title for m in score.measures.values()]
    yield Dots("The measures", "Dots with 95% intervals; bars mark chance.", "value", titles, groups)
    for label, s in both:
        names = [f.name for f in s.factors][:MAP_FACTORS]
        own = {_starred(m.declared.each, m): m.factors for m in s.measures.values() if m.factors}
        if own:
            of_each = {title: [_drawn(each.get(name), chance=False) for name in names] for title, each in own.items()}
            yield Dots(f"Each factor{label}", "With 95% intervals.", "value", names, of_each)
    drawn: set[str] = set()
    for m in score.measures.values():
        subject = m.declared.heat_map_of or m.name
        if m.declared.heat_map and m.matrix.size and subject not in drawn:
            drawn.add(subject)
            yield from _heat_maps(m.name, both)
    for label, s in both:
        if s.points:
            yield _scatters(f"Factors and their latents{label}", s)
    for label, s in both:
        if s.structure is not None:
            ladder = {name: g for name, g in (s.structure.bulk or s.structure).groups.items() if g.estimable}
            yield Dots(
                f"Up to which group{label}",
                "Epsilon: the error of a held-out row over the diameter of the factors (each of unit variance).",
                "mean epsilon",
                [g.title for g in ladder.values()],
                {"held out": [g.epsilon for g in ladder.values()]},
                [GROUPS[name].colour for name in ladder],
                from_zero=True,
            )


def _drawn(e: Estimate | None, *, chance: bool = True) -> Estimate | None:
    """What is drawn of an estimate: R2 far below 0 would leave no room for the others on the axis."""
    if e is None or e.value < LOWEST:
        return None
    known = chance and e.chance >= LOWEST
    return replace(e, low=max(e.low, LOWEST) if e.has_interval else e.low, chance=e.chance if known else float("nan"))


def _heat_maps(name: str, both: list[tuple[str, Score]]) -> Iterator[HeatMap]:
    """A measure's map of factor by latent, before and after in the same colours; matched latents come first."""
    maps = [(label, s, np.abs(s.measures[name].matrix)) for label, s in both]
    limit = max(float(matrix.max()) for *_, matrix in maps) or 1.0
    for label, s, matrix in maps:
        m = s.measures[name]
        matched = [f.matched for f in s.factors if f.matched is not None]
        rest = [int(j) for j in np.argsort(-matrix.max(axis=1), kind="stable") if j not in set(matched)]
        order = [*matched, *rest][:MAP_LATENTS]
        yield HeatMap(
            f"{m.declared.heat_map}{label}",
            "One bright entry in each row and column: a latent for each factor.",
            {"": matrix[order][:, :MAP_FACTORS].T},
            m.names[:MAP_FACTORS],
            [f"z{j}" for j in order],
            "latent, matched ones first",
            high=limit,
        )


def _scatters(title: str, score: Score) -> Panels:
    """Each factor against its matched latent."""
    matched = {f.name: f.matched for f in score.factors}
    clouds = [
        Cloud(
            f"{name} | latent {matched[name]}",
            {"": ([p.labels[int(v)] for v in p.factor] if p.labels else p.factor, p.latent)},
        )
        for name, p in list(score.points.items())[:SCATTERS]
    ]
    return Panels(title, "A sample of rows; the matched latent.", clouds, min(4, len(clouds)), ticks=True)


def _colour(group: str) -> str:
    return GROUPS[group].colour if group in GROUPS else BAD if group == "none" else CAREFUL


def _starred(title: str, m: ScoredMeasure) -> str:
    """A title, marked where the measure is not held out."""
    return title + ("" if m.declared.held_out else " *")


def _sizes(score: Score) -> str:
    return f"{counted(len(score.factors), 'factor')} by {counted(len(score.active), 'latent')}, n = {score.n:,}"


def _kind(factor: MatchedFactor) -> str:
    """Kind of a factor, whether it was given, and its levels."""
    levels = f", {factor.levels} levels" if factor.kind in ("integer", "categorical") else ""
    return f"{factor.kind}{levels}" + (" (inferred)" if factor.inferred else "")

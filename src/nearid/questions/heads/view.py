"""What a person sees of maps from heads beside fitted ones."""

from __future__ import annotations

from collections.abc import Iterator

from nearid.questions.heads.result import HeadComparison
from nearid.show.figures import Dots, Figure
from nearid.show.view import BAD, CAREFUL, GOOD, Column, Row, Table, View, number, with_intervals

COLOURS = {"agree": GOOD, "in part": CAREFUL, "disagree": BAD, "undetermined": CAREFUL}
HEADLINES = {
    "agree": "The heads tell the map between the features",
    "in part": "The heads tell a part of the map between the features",
    "disagree": "The heads do not tell the map between the features",
    "undetermined": "The heads say nothing of the features",
}


def view(c: HeadComparison) -> View:
    """The verdict, what each map explains, and what was measured of the heads."""
    explained = c.explained
    columns = [Column("map"), Column(with_intervals("R2", explained.values()))]
    table = Table("Variance that each map explains, held out", columns, [Row([n, e]) for n, e in explained.items()])
    figures: list[Figure] = [
        Dots(
            "What each map explains",
            "Share of the variance of the second model's features (of its differences of logits) on held-out rows.",
            "R2",
            list(explained),
            {with_intervals("held out", explained.values()): list(explained.values())},
        )
    ]
    part = c.verdict.outcome == "agree" and c.compared.heads.matrix is None
    return View(
        question="Do the heads tell the map between the features?",
        subject=f"{c.names[0]} -> {c.names[1]}",
        headline=HEADLINES[c.verdict.outcome] + (", as far as they see them" if part else ""),
        reason=c.verdict.reason,
        colour=COLOURS[c.verdict.outcome],
        alerts=c.alerts,
        tables=[table] if explained else [],
        facts=dict(_facts(c)),
        figures=figures if explained else [],
        method="The map is built from the heads, fitted to half of the rows, and both are judged on the other half.",
        provenance=c.provenance,
    )


def _facts(c: HeadComparison) -> Iterator[tuple[str, str]]:
    """What was measured, name by name."""
    compared, seen = c.compared, c.compared.seen
    sizes = f"{c.classes:,} classes, {c.width} features, {c.n:,} rows"
    yield "sizes", sizes + (", logits with biases" if c.biased else "")
    for i, d in enumerate(compared.heads.diversity, start=1):
        yield f"diversity of head {i}", ("" if d.holds else "fails: ") + d.note
    if c.pairs is not None:
        yield "pairs", f"the best of {c.pairs.draws} choices: {c.pairs.note}"
    yield "penalty of the fitted map", number(compared.ridge) if compared.ridge else "none: plain least squares"
    if seen is not None:
        if compared.heads.matrix is None:
            held = f"{seen.dimensions} of {c.width}, with {seen.variance:.1%} of the variance"
            yield "directions that the heads see", held
        there = "" if compared.heads.matrix is not None else " in these"
        yield f"distance of both maps{there}", f"{number(seen.distance)} of the spread of what the fitted one predicts"
    if compared.disagreement is not None and compared.heads.misfit is not None:
        yield "distance of their matrices", f"{number(compared.disagreement)} of the fitted one"
        yield "misfit of the heads to one map", number(compared.heads.misfit)

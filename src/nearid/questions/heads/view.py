"""The view of a comparison of heads: tables, figures and sentences."""

from __future__ import annotations

from collections.abc import Iterator

from nearid.questions.heads.result import HeadComparison
from nearid.show.figures import Dots, Figure
from nearid.show.view import BAD, CAREFUL, GOOD, Column, Row, Table, View, number, with_intervals

COLOURS = {"agree": GOOD, "in part": CAREFUL, "disagree": BAD, "undetermined": CAREFUL}
HEADLINES = {
    "agree": "The heads predict the map between the features",
    "in part": "The heads predict a part of the map between the features",
    "disagree": "The heads do not predict the map between the features",
    "undetermined": "The heads determine no map between the features",
}


def view(c: HeadComparison) -> View:
    """The verdict, what each map explains, and what was measured about the heads."""
    explained = c.explained
    columns = [Column("map"), Column(with_intervals("R2", explained.values()))]
    table = Table("Variance that each map explains, held out", columns, [Row([n, e]) for n, e in explained.items()])
    figures: list[Figure] = [
        Dots(
            "What each map explains",
            "Share of the variance of the second model's features that each map explains on held-out rows. The third "
            "line is the share for differences of logits.",
            "R2",
            list(explained),
            {with_intervals("held out", explained.values()): list(explained.values())},
        )
    ]
    part = c.verdict.outcome == "agree" and c.compared.heads.matrix is None
    return View(
        question="Do the heads predict the map between the features?",
        subject=f"{c.names[0]} -> {c.names[1]}",
        headline=HEADLINES[c.verdict.outcome] + (" in the directions that they read" if part else ""),
        reason=c.verdict.reason,
        colour=COLOURS[c.verdict.outcome],
        alerts=c.alerts,
        tables=[table] if explained else [],
        facts=dict(_facts(c)),
        figures=figures if explained else [],
        method="One map follows from the heads. Another is fitted to half of the rows. The other half tests both.",
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
            yield "directions that the heads read", held
        there = "" if compared.heads.matrix is not None else " in these"
        yield f"distance of the two maps{there}", f"{number(seen.distance)} of the spread of the fitted predictions"
    if compared.disagreement is not None and compared.heads.misfit is not None:
        yield "distance of the two matrices", f"{number(compared.disagreement)} of the fitted one"
        yield "misfit of the heads to one map", number(compared.heads.misfit)

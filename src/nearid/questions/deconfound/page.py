"""The page on deconfounding: the paper's tables, paired differences, what components follow, and views of the rows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from nearid.base.files import write_text
from nearid.questions.compare.html import check_report, environment, render
from nearid.questions.deconfound import plots as plots
from nearid.questions.deconfound.classifiers import TITLES as CLASSIFIERS
from nearid.questions.deconfound.paired import ALL
from nearid.questions.deconfound.splits import DIRECTIONS
from nearid.questions.deconfound.table import (
    BRIEF,
    LEVEL,
    METRICS,
    TESTED,
    conditions,
    counted,
    figure,
    headline,
    main_test,
    marked,
    metric_cells,
    named,
    overall_tests,
    reason,
    sizes,
    titled,
    trust,
)

if TYPE_CHECKING:
    from nearid.questions.deconfound.result import Deconfounding

TITLE = "Biology or batch?"


def write_report(found: Deconfounding, path: str | os.PathLike[str]) -> None:
    """Write the page, atomically."""
    write_text(check_report(path), page(found))


def page(found: Deconfounding) -> str:
    """The whole page as text."""
    drawn = _figures(found)
    figures = {f"f{k}": f["figure"] for k, f in enumerate(drawn)}
    return render("deconfounding.html", TITLE, figures, drawn=drawn, **_context(found))


def fragment(found: Deconfounding) -> str:
    """The tables alone, for a notebook."""
    return environment().get_template("deconfounding_fragment.html").render(**_context(found))


def _context(found: Deconfounding) -> dict[str, Any]:
    test = main_test(found)
    told = test is not None and test.p_holm < LEVEL
    mark = ("permutation" if test.difference > 0 else "none") if test is not None and told else "linear"
    return {
        "found": found,
        "headline": headline(found),
        "reason": reason(found),
        "sizes": sizes(found),
        "mark": mark,
        # Of the first direction and classifier, and of the others.
        "tables": [_table(found, *found.families[0], s) for s in found.score_names(*found.families[0])],
        "more_tables": [_table(found, d, c, s) for d, c in found.families[1:] for s in found.score_names(d, c)],
        "tests": [_tests(found, s) for s in dict.fromkeys(t.score for t in overall_tests(found))],
        "trust": trust(found),
        "tested": TESTED,
        "metrics": METRICS,
        "metric_rows": [(BRIEF[name], metric_cells(c)) for name, c in found.conditions.items()],
    }


def _table(found: Deconfounding, direction: str, classifier: str, score: str) -> dict[str, Any]:
    """Rows of perturbations, columns of conditions."""
    names = conditions(found, direction, classifier)
    figures = {
        (e.perturbation, e.condition): figure(e.found)
        for e in found.scores
        if (e.direction, e.classifier, e.score) == (direction, classifier, score)
    }
    rows = [(name, f" ({positives})") for name, (positives, _) in found.perturbations.items()]
    return {
        "title": titled(direction, classifier, score),
        "heads": [BRIEF[name] for name in names],
        "rows": [
            {
                "name": "all" if name == ALL else name,
                "count": count,
                "all": name == ALL,
                "cells": [figures.get((name, c), "-") for c in names],
            }
            for name, count in [*rows, (ALL, "")]
        ],
    }


def _tests(found: Deconfounding, score: str) -> dict[str, Any]:
    """Rows of pairs of conditions, a column for each direction and classifier."""
    tests = [t for t in overall_tests(found) if t.score == score]
    families = list(dict.fromkeys((t.direction, t.classifier) for t in tests))
    told = {(t.second, t.first, t.direction, t.classifier): marked(t) for t in tests}
    return {
        "title": f"Differences of {named(score)}, over {counted(tests[0])}",
        "heads": [(CLASSIFIERS[c], DIRECTIONS[d]) for d, c in families],
        "rows": [
            (f"{BRIEF[second]} − {BRIEF[first]}", [told.get((second, first, *f), "-") for f in families])
            for second, first in dict.fromkeys((t.second, t.first) for t in tests)
        ],
    }


def _figures(found: Deconfounding) -> list[dict[str, Any]]:
    drawn: list[tuple[str, Any, str, bool]] = []
    if main_test(found) is not None:
        said = "Dots with 95% intervals; right of 0 is better. First direction and classifier of the tables."
        drawn.append(("Paired differences", plots.differences(found), said, True))
    for name, c in found.conditions.items():
        if name in ("ica", "pca"):
            said = "Adjusted share of a component's variance that batch and label explain, each beside the other."
            drawn.append((f"What components follow: {c.title}", plots.component_map(c), said, True))
    for name, c in found.conditions.items():
        if name not in ("random", "kept"):
            drawn.append((f"Biology or batch, by component: {c.title}", plots.component_scatter(c), "", False))
    for shown in found.views.planes:
        for by in ("label", "batch"):
            said = f"A sample of rows, coloured by {by}."
            drawn.append((shown.title, plots.plane(found, shown, by), said, False))
    return [{"title": t, "figure": f, "caption": said, "wide": wide} for t, f, said, wide in drawn]

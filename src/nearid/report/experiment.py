"""The page for an experiment: the paper's table, its claims, training curves and the experiment's own figures."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from nearid.files import write_text
from nearid.report.experiment_plots import drawn, training
from nearid.report.experiment_table import counted, footnotes, measured_text, published_text
from nearid.report.html import check_report, render

if TYPE_CHECKING:
    from nearid.experiments.result import Result

# Colours of the page for what a run says of a claim.
MARKS = {"reproduced": "permutation", "not reproduced": "none", "not testable here": "linear"}


def write_report(found: Result, path: str | os.PathLike[str]) -> None:
    """Write the page for a result, atomically."""
    write_text(check_report(path), page(found))


def page(found: Result) -> str:
    """The whole page as text."""
    e = found.experiment
    shown = [
        {"title": a.title, "figure": training(found, a), "caption": "A line for each seed."}
        for a in e.curves
        if found.curves(a.key)
    ]
    slots = e.figures(found) if e.figures is not None else []
    shown += [{"title": s.title, "figure": drawn(s), "caption": s.caption} for s in slots]
    figures: dict[str, Any] = {f"f{k}": f["figure"] for k, f in enumerate(shown)}
    statuses = [str(outcome.status) for _, outcome in found.outcomes]
    return render(
        "experiment.html",
        f"{e.name}: {e.shows}",
        figures,
        e=e,
        found=found,
        table=_table(found),
        notes=footnotes(found),
        claims=[(claim.text, outcome, MARKS[outcome.status]) for claim, outcome in found.outcomes],
        conclusion=", ".join(f"{counted(statuses.count(s), 'claim')} {s}" for s in MARKS if s in statuses),
        mark=MARKS[max(statuses, key=list(MARKS).index)] if statuses else "rigid",
        shown=shown,
    )


def _table(found: Result) -> list[tuple[str, list[tuple[str, str]]]]:
    """Title of each row, and published and measured for each column."""
    return [
        (
            row.title,
            [
                (published_text(row.published.get(c.key), c), measured_text(found.estimate(row.key, c.key), c))
                for c in found.experiment.columns
            ],
        )
        for row in found.rows
    ]

"""The page for an experiment: the paper's table, its claims, training curves and the experiment's own figures."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from nearid.base.files import write_text
from nearid.lab.framework.figures import HeatMaps, Listing, ScatterMatrix
from nearid.lab.framework.plots import drawn, training
from nearid.lab.framework.table import claims_note, counted, footnotes, how_run, tables_of
from nearid.questions.compare.html import check_report, render

if TYPE_CHECKING:
    from nearid.lab.framework.result import Result

# Colours of the page for what a run says of a claim, the worst last.
MARKS = {"reproduced": "permutation", "not testable here": "linear", "not reproduced": "none"}

# Characters beside one another in a table, on the page and on paper; what does not fit follows in further tables.
ROOM = 96


def write_report(found: Result, path: str | os.PathLike[str]) -> None:
    """Write the page for a result, atomically."""
    write_text(check_report(path), page(found))


def page(found: Result) -> str:
    """The whole page as text."""
    e = found.experiment
    shown: list[dict[str, Any]] = [
        {"title": a.title, "figure": training(found, a), "caption": "A line for each seed."}
        for a in e.curves
        if found.curves(a.key)
    ]
    slots = e.figures(found) if e.figures is not None else []
    texts = [slot for slot in slots if isinstance(slot, Listing)]
    shown += [
        {"title": s.title, "figure": drawn(s), "caption": s.caption, "broad": isinstance(s, ScatterMatrix | HeatMaps)}
        for s in slots
        if not isinstance(s, Listing)
    ]
    figures: dict[str, Any] = {f"f{k}": f["figure"] for k, f in enumerate(shown)}
    statuses = [str(outcome.status) for _, outcome in found.outcomes]
    return render(
        "experiment.html",
        f"{e.name}: {e.shows}",
        figures,
        e=e,
        found=found,
        tables=tables_of(found, ROOM),
        how=how_run(found),
        notes=footnotes(found),
        claims_note=claims_note(found),
        claims=[(claim.text, outcome, MARKS[outcome.status]) for claim, outcome in found.outcomes],
        conclusion=", ".join(f"{counted(statuses.count(s), 'claim')} {s}" for s in MARKS if s in statuses),
        mark=MARKS[max(statuses, key=list(MARKS).index)] if statuses else "rigid",
        shown=shown,
        texts=texts,
    )

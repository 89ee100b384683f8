"""What there is to run, as JSON can say it."""

from __future__ import annotations

from typing import Any

from nearid.base.jsonable import finite
from nearid.lab.framework.cells import rows_of
from nearid.lab.framework.experiment import Experiment
from nearid.lab.framework.plan import Plan
from nearid.lab.framework.settings import as_dict, described


def summary(e: Experiment[Any]) -> dict[str, Any]:
    """An experiment in the list of all."""
    return {
        "experiment": e.name,
        "shows": e.shows,
        "about": e.about,
        "paper": vars(e.paper),
        "presets": {name: {"time": p.time, "seeds": p.seeds} for name, p in e.presets.items()},
    }


def details(plan: Plan) -> dict[str, Any]:
    """A run before it begins: its parameters and rows, and the claims."""
    e, values = plan.experiment, as_dict(plan.parameters)
    told = summary(e) | {
        "preset": plan.preset,
        "seeds": plan.seeds,
        "parameters": {name: {"value": values[name], "about": about} for name, _, about in described(plan.parameters)},
        "rows": [
            {"row": r.key, "title": r.title, "changes": dict(r.changes), "violated": list(r.violated), "note": r.note}
            for r in rows_of(e, plan.parameters, plan.only)
        ],
        "claims": [claim.text for claim in e.claims],
        "folder": str(plan.place),
    }
    clean: dict[str, Any] = finite(told)
    return clean

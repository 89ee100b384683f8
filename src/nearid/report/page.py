"""One self-contained HTML page for one comparison or many: offline, printable, in the reader's colour scheme."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid import __version__
from nearid.errors import InputError
from nearid.files import check_target, write_text
from nearid.identifiability.result import finite
from nearid.report import plots
from nearid.report.tables import headline, number, span

if TYPE_CHECKING:
    from jinja2 import Environment

    from nearid.identifiability.result import Comparison


def write_report(
    found: Sequence[Comparison], path: str | os.PathLike[str], title: str = "Are these the same representation?"
) -> None:
    """Write the page for some comparisons, atomically."""
    write_text(check_report(path), page(found, title))


def check_report(path: str | os.PathLike[str]) -> Path:
    """Refuse a place where a page cannot or should not be written, such as a file of data."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"A report is an HTML page: name it something.html, not {Path(path).name}.")
    return check_target(path)


def page(found: Sequence[Comparison], title: str = "Are these the same representation?") -> str:
    """The whole page as text."""
    from plotly.offline import get_plotlyjs

    sections = [{"c": c, "id": f"pair{k}", "figures": _figures(c)} for k, c in enumerate(found)]
    overview = _matrices(found)
    return (
        _environment()
        .get_template("comparison.html")
        .render(
            title=title, sections=sections, overview=overview, plotly=get_plotlyjs(), version=__version__, full=True
        )
    )


def fragment(c: Comparison) -> str:
    """The tables alone, for a notebook."""
    return _environment().get_template("fragment.html").render(c=c)


def _figures(c: Comparison) -> list[dict[str, Any]]:
    drawn = [
        ("How nearly: the ladder", plots.ladder(c), "Mean error of held-out rows over the target's diameter."),
        (
            "Both runs before and after alignment",
            plots.overlay(c),
            "A sample of rows in the target's first two principal components. Maps fitted on all rows.",
        ),
        ("Error of each row", plots.distributions(c), "Held out. A long right tail means a few rows disagree."),
        (
            "Matched columns",
            plots.matching(c),
            "Absolute correlation, columns in the order of their matches (strongest first, at most 64). A bright "
            "diagonal on a dark field is a permutation.",
        ),
        ("Spectra", plots.spectra(c), "Eigenvalues of each side's covariance."),
        ("Canonical correlations", plots.canonical(c), "Directions fitted on the other folds."),
    ]
    return [{"title": t, "figure": f, "caption": said} for t, f, said in drawn]


def _matrices(found: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Run x run heat maps where the comparisons are all pairs of three or more runs."""
    names = list(dict.fromkeys(n for c in found for n in c.names))
    if len(names) < 3 or len(found) != len(names) * (len(names) - 1) // 2:
        return []
    from nearid.identifiability.result import Comparisons

    pairs = tuple((names.index(c.names[0]), names.index(c.names[1])) for c in found)
    table = Comparisons(tuple(names), pairs, tuple(found))
    return [
        {"title": f"Mean epsilon, {g}", "figure": plots.matrix(names, table.matrix(g).tolist(), ""), "caption": ""}
        for g in found[0].groups
    ]


def _script_json(value: Any) -> str:
    """JSON that may stand inside a script element: no markup can be closed or opened from within."""
    text = json.dumps(finite(value), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _mean(values: Any) -> float:
    return float(np.mean(values))


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup

    env = Environment(loader=PackageLoader("nearid.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    env.filters.update(number=number, mean=_mean, headline=headline, script=lambda v: Markup(_script_json(v)))
    env.globals["span"] = span
    return env
